"""JAX's cache of compiled programs: of the package's own in its place, while the user's programs stay where they were.

What `sweep` compiles is kept otherwise: see test_executables.py.
"""

import contextlib
import json
import threading

import fresh_process
import jax
import pytest
from jax_config import use_config

from jaxbandits.sweeps.compilation.compilation_cache import programs_on_disk, without_jax_cache

CHILD = """
import json, os, sys
import jax, jax.monitoring
hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event) if event.endswith("/cache_hits") else None)
import jaxbandits as jb
from pathlib import Path
ours, theirs = Path(os.environ["JAXBANDITS_CACHE"]), sys.argv[1]
if theirs:
    jax.config.update("jax_compilation_cache_dir", theirs)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
names = [name for name in jax.config.values if "compilation_cache" in name or "persistent_cache" in name]
before = {name: getattr(jax.config, name) for name in names}
files = lambda place: sorted(p.name for p in Path(place).rglob("*-cache")) if place and Path(place).exists() else []
arms = jb.environments.bernoulli_arms(means=[0.2, 0.8])
if sys.argv[2] == "simulate":
    jb.simulate(jb.algorithms.uniform(num_arms=2, horizon=4), arms, checkpoints=2)
else:
    jb.sweep(jb.algorithms.uniform, arms, horizon=4, seeds=2, checkpoints=2, progress=False)
made = files(ours), len(hits)
assert {name: getattr(jax.config, name) for name in names} == before
jax.jit(lambda x: x * 3 + 1)(2.0)  # the user's own
more = len(files(ours)) - len(made[0])
print(json.dumps({"ours": made[0], "hits": made[1], "more": more, "theirs": files(theirs)}))
"""


def child(tmp_path, cache, theirs="", run="simulate"):
    env = fresh_process.environment(JAXBANDITS_CACHE=str(cache))
    run = fresh_process.run(CHILD, theirs, run, cwd=tmp_path, env=env)
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


def test_one_run_keeps_its_programs_and_leaves_the_users_alone(tmp_path):
    first = child(tmp_path, tmp_path / "ours")
    assert first["ours"] and not first["hits"] and first["more"] == 0
    second = child(tmp_path, tmp_path / "ours")  # another process finds every program
    assert second["ours"] == first["ours"] and second["hits"] >= len(first["ours"]) and second["more"] == 0


def test_the_users_own_place_is_used_and_off_is_off(tmp_path):
    chosen = child(tmp_path, tmp_path / "ours", tmp_path / "theirs")
    assert not chosen["ours"] and len(chosen["theirs"]) > 2
    assert not child(tmp_path, "off")["ours"] and not (tmp_path / "off").exists()


@pytest.mark.parametrize("ours", ["off", "open"])
def test_the_users_own_cache_has_a_sweeps_programs_where_this_package_keeps_none(tmp_path, ours):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)  # others may write there
    ours = tmp_path / ours if ours == "open" else ours
    first, second = (child(tmp_path, ours, tmp_path / "theirs", "sweep") for _ in range(2))
    assert {"jit_begin", "jit_advance"} <= {name.partition("-")[0] for name in first["theirs"]}
    assert second["hits"]


@pytest.mark.parametrize("failing", [False, True])
def test_settings_come_back_when_the_last_of_several_threads_is_through(tmp_path, monkeypatch, failing):
    monkeypatch.setenv("JAXBANDITS_CACHE", str(tmp_path))
    entered, go = threading.Event(), threading.Event()

    def compile_long():
        with programs_on_disk():
            entered.set()
            go.wait(60)

    other = threading.Thread(target=compile_long)
    with use_config({"jax_compilation_cache_dir": None}):
        other.start()
        try:
            entered.wait(60)
            with pytest.raises(RuntimeError) if failing else contextlib.nullcontext(), programs_on_disk():
                assert str(jax.config.jax_compilation_cache_dir).startswith(str(tmp_path))
                if failing:
                    raise RuntimeError("does not compile")
            assert str(jax.config.jax_compilation_cache_dir).startswith(str(tmp_path))  # the other still compiles
        finally:
            go.set()
            other.join()
        assert jax.config.jax_compilation_cache_dir is None


def test_what_is_written_out_is_compiled_without_the_cache(tmp_path, monkeypatch):
    """An executable that came out of JAX's cache cannot be written out again, so no thread may find one meanwhile."""
    monkeypatch.setenv("JAXBANDITS_CACHE", str(tmp_path))
    names = ("jax_enable_compilation_cache", "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")

    def now():
        return tuple(getattr(jax.config, name) for name in names)

    before = now()
    with use_config({"jax_compilation_cache_dir": None}):
        outside = now()
        with programs_on_disk():
            assert now()[0] and str(now()[1]).startswith(str(tmp_path)) and now()[2] == 0
            inside = now()
            with without_jax_cache():
                assert now() == (False, *outside[1:])
                with programs_on_disk():
                    assert not now()[0]
            assert now() == inside
        assert now() == outside
    assert now() == before
