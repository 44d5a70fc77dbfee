"""Compiled programs on disk: found by a fresh process, and never by one that would compute something else."""

import json
import os
import pickle
import shutil
import sys
import types
from collections import namedtuple
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import fresh_process
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.cli import main
from jaxbandits.protocol import Program
from jaxbandits.sweeps.compilation import executables, program_digest
from jaxbandits.sweeps.compilation.compilation_cache import without_jax_cache
from jaxbandits.sweeps.compilation.compiled import functions_of_group

PACKAGE = Path(jb.__file__).parent

# Sweeps an algorithm in a fresh process and says what was loaded and built, in which order, with the regrets.
CHILD = """
import json, sys, warnings
from jaxbandits.sweeps.compilation import executables
warnings.simplefilter("always")
built, kept = [], executables.load_or_build
def watched(key, build, *ways):
    if getattr(build, "func", None) is executables.sources.read:  # it traces and compiles nothing
        return kept(key, build, *ways)
    def counted():
        built.append(key)
        return build()
    value = kept(key, counted, *ways)
    asked.append(key)
    return value
asked = []
executables.load_or_build = watched
import jaxbandits as jb
arms = jb.environments.bernoulli_arms(means=[0.2, 0.5, 0.8])
algorithm = jb.algorithms.ucb1
if len(sys.argv) > 1:
    sys.path.insert(0, sys.argv[1])
    import mine
    algorithm = mine.mine
ds = jb.sweep({"a": algorithm}, arms, horizon=200, seeds=16, checkpoints=4, progress=False)
print(json.dumps({"asked": len(asked), "named": len([1 for key in asked if key]), "built": len(built),
                  "regret": ds.regret.values.tolist()}))
"""
MINE = """
import jax.numpy as jnp
from jaxbandits.algorithms import ucb1
BONUS = 1.0
def act(params, state, draws, t, context):
    action, used, note = library.act(params, state, draws, t, context)
    return (action * BONUS).astype(jnp.int32), used, note
def mine(*, num_arms, horizon):
    made = ucb1(num_arms=num_arms, horizon=horizon)
    return made._replace(program=made.program._replace(act=act), version=("mine", 1, ()))
library = ucb1(num_arms=3, horizon=200).program
"""


def child(cache, *arguments, package=PACKAGE, config=None, **changes):
    env = fresh_process.environment(**{"JAXBANDITS_CACHE": str(cache), "PYTHONPATH": str(package.parent)} | changes)
    run = fresh_process.run(CHILD, *arguments, cwd=cache.parent, env=env, config=config)
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout.splitlines()[-1]) | {"warned": run.stderr}


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A directory of programs, and what the process that filled it computed."""
    cache = tmp_path_factory.mktemp("programs") / "cache"
    return cache, child(cache)


@pytest.fixture
def copied(first, tmp_path):
    """A copy of the package whose programs are kept, for edits."""
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    cache = tmp_path / "cache"
    return cache, child(cache, package=tmp_path / PACKAGE.name), tmp_path / PACKAGE.name


def edit(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1, (path, old)
    changed = path.stat().st_mtime - 2  # an edit within the same second is not seen where byte code is kept
    path.write_text(text.replace(old, new))
    os.utime(path, (changed, changed))


def test_a_fresh_process_builds_nothing(first):
    cache, before = first
    assert before["built"] == before["asked"] == before["named"] >= 3
    again = child(cache)
    assert again["asked"] == before["asked"] and again["built"] == 0
    assert again["regret"] == before["regret"]


def test_words_compile_nothing_anew_and_an_edit_finds_nothing(copied):
    cache, before, package = copied
    edit(package / "simulator.py", '"""One lane: windows', '"""One  lane: windows')
    edit(package / "reports" / "citations.py", "import re\n", "import re  # for texts\n")
    edit(package / "algorithms" / "stochastic" / "ucb1.py", "2 * jnp.log", "2 * jnp.log  # a comment\n        ")
    again = child(cache, package=package)
    assert again["asked"] == before["asked"] and again["built"] == 0 and again["regret"] == before["regret"]
    edit(package / "algorithms" / "stochastic" / "ucb1.py", "2 * jnp.log", "3 * jnp.log")
    after = child(cache, package=package)
    assert after["built"] == after["asked"] and after["regret"] != before["regret"]


def test_a_users_part_is_found_by_what_it_computes(tmp_path):
    cache, home = tmp_path / "cache", tmp_path / "home"
    home.mkdir()
    (home / "mine.py").write_text(MINE)
    before = child(cache, home)
    assert before["built"] == before["asked"] == before["named"]
    (home / "mine.py").write_text("# a comment\n" + MINE)
    again = child(cache, home)
    assert again["built"] == 0 and again["regret"] == before["regret"]
    edit(home / "mine.py", "BONUS = 1.0", "BONUS = 0.0")
    after = child(cache, home)
    assert after["built"] == after["asked"] and after["regret"] != before["regret"]


def test_a_program_that_calls_a_library_is_not_kept(tmp_path):
    """A process that had read it from disk died: LAPACK is made ready where such a program is built."""
    cache, home = tmp_path / "cache", tmp_path / "home"
    home.mkdir()
    (home / "mine.py").write_text(
        MINE.replace("_replace(act=act)", "_replace(act=act, diagnose=diagnose)")
        + """
def diagnose(params, state):
    return {"least": jnp.linalg.eigvalsh(jnp.eye(2) + jax.tree.leaves(state)[0].sum())[0]}
import jax
"""
    )
    before = child(cache, home)
    again = child(cache, home)
    assert again["regret"] == before["regret"] and again["built"] == 1


def test_numbers_of_a_random_generator_have_no_name(tmp_path):
    cache, home = tmp_path / "cache", tmp_path / "home"
    home.mkdir()
    text = MINE.replace("BONUS)", "np.random.rand())").replace(
        "import jax.numpy", "import numpy as np\nimport jax.numpy"
    )
    (home / "mine.py").write_text(text)
    found = child(cache, home)
    assert found["named"] == 0 and found["built"] == found["asked"]


DAMAGE = lambda content: b"", lambda content: content[:-1], lambda content: content[:40] + b"x" + content[41:]


def test_damaged_entries_are_built_again(first, tmp_path):
    cache = tmp_path / "cache"
    shutil.copytree(first[0], cache)
    entries = [path for path in (cache / "executables").rglob("*") if path.is_file()]
    assert len(entries) >= len(DAMAGE)
    for i, path in enumerate(entries):
        path.write_bytes(DAMAGE[i % len(DAMAGE)](path.read_bytes()))
    again = child(cache)
    assert again["built"] == again["asked"] == len(entries) - 1  # and what the programs reach
    assert again["regret"] == first[1]["regret"]
    assert child(cache)["built"] == 0


def test_entries_that_cannot_be_opened_are_built_again(first, tmp_path):
    cache = tmp_path / "cache"
    shutil.copytree(first[0], cache)
    for path in (cache / "executables").rglob("*"):
        if path.is_file():  # whole, and of something else
            head = path.read_bytes()[executables._CHECK :].partition(b"\n")[0]
            content = head + b"\n" + pickle.dumps(Planted(tmp_path / "ran"))
            path.write_bytes(executables.hashlib.sha256(content).digest() + content)
    again = child(cache)
    assert again["built"] == again["asked"] and again["regret"] == first[1]["regret"]
    assert not (tmp_path / "ran").exists()


class Planted(NamedTuple):
    """Whoever unpickles it makes a folder."""

    place: Path

    def __reduce__(self):
        return os.mkdir, (str(self.place),)


def test_off_is_off_and_other_settings_find_nothing(tmp_path, first):
    found = child(tmp_path / "cache", JAXBANDITS_CACHE="off")
    assert found["built"] == found["asked"] and not (tmp_path / "cache").exists()
    assert child(first[0], config={"jax_default_matmul_precision": "highest"})["built"]
    assert child(first[0], XLA_FLAGS="--xla_cpu_enable_fast_min_max=true")["built"]


def test_the_command_says_and_clears(first, tmp_path, monkeypatch, capsys):
    cache = tmp_path / "cache"
    shutil.copytree(first[0], cache)
    monkeypatch.setenv("JAXBANDITS_CACHE", str(cache))
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert main(["cache", "info"]) == 0
    said = capsys.readouterr().out
    assert f"{len(files)} files" in said and str(cache) in said and "2,147.5 MB" in said
    assert main(["cache", "clear"]) == 0
    assert f"{len(files)} files deleted" in capsys.readouterr().out
    assert not [path for path in cache.rglob("*") if path.is_file()]
    monkeypatch.setenv("JAXBANDITS_CACHE", "off")
    assert main(["cache", "info"]) == 0 and "nowhere" in capsys.readouterr().out


def test_the_least_recently_used_go_first(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXBANDITS_CACHE", str(tmp_path))
    for i in range(5):
        (tmp_path / str(i)).write_bytes(bytes(100))
        os.utime(tmp_path / str(i), (i, i))
    os.utime(tmp_path / "0", (9, 9))  # used again
    assert executables.prune(250) == (3, 300)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "4"]


def test_names_tell_functions_apart():
    def adding(amount):
        return lambda x: x + amount

    ours = [jb.numerics.argmax, jb.numerics.argmin, partial(jb.numerics.argmax, tie=0.0), jb.numerics.fixed_sum]
    names = [program_digest.name_of(function) for function in ours]
    assert None not in names and len(set(names)) == len(names)
    assert program_digest.name_of(adding(1)) is None  # a user's
    arrays = [np.zeros(3), np.zeros(3, np.float32), np.zeros((3, 1)), np.array([0.0, 0.0, -0.0]), jax.numpy.ones(3)]
    names = [program_digest.name_of((jb.numerics.argmax, x)) for x in arrays]
    assert None not in names and len(set(names)) == len(names)
    assert program_digest.name_of(np.array([object()])) is None
    numbers = [1, 1.0, True, "1", None, (1,), [1], {"a": 1}, np.float32(1)]
    assert len({program_digest.name_of(x) for x in numbers}) == len(numbers)


def test_static_values_of_one_builder_have_names_of_their_own():
    parts = [jb.algorithms.ucb1(num_arms=k, horizon=10).program for k in (2, 3, 2)]
    names = [program_digest.name_of(tuple(program)) for program in parts]
    assert names[0] == names[2] != names[1]


def test_programs_from_disk_change_no_bit(tmp_path, monkeypatch):
    """A sweep of another kind, in this process: batches, contexts, floats; compiled twice and loaded once."""
    monkeypatch.setenv("JAXBANDITS_CACHE", str(tmp_path / "cache"))
    contexts = jb.environments.contextual_linear(num_arms=4, dim=3)

    def run():
        functions_of_group.cache_clear()
        grid = {"radius_scale": [0.2, 0.5]}
        return jb.sweep(jb.algorithms.linucb, contexts, horizon=100, seeds=16, grid=grid, progress=False)

    first, second = run(), run()
    np.testing.assert_array_equal(first.regret, second.regret)


def test_classes_of_one_name_are_told_apart(tmp_path, monkeypatch):
    """Two modules hold a class of one name, and algorithms that compute the same."""
    monkeypatch.setenv("JAXBANDITS_CACHE", str(tmp_path / "cache"))
    arms, made = jb.environments.bernoulli_arms(means=[0.2, 0.8]), jb.algorithms.ucb1(num_arms=2, horizon=50)

    def mine(module):
        Params = namedtuple("Params", ["arm"], module=module)
        monkeypatch.setitem(sys.modules, module, SimpleNamespace(Params=Params))  # so that it has a name

        def act(params, state, draws, t, context):
            return jnp.full(t.shape, params.arm.astype(jnp.int32)), None, ()

        program = Program(
            init=lambda params, draws: (),
            act=act,
            encode=lambda params, note, draws, t, context, action, reward, play: (),
            update=lambda params, state, draws, t, note, message, used: (state, ()),
        )
        return lambda *, num_arms, horizon: made._replace(program=program, params=Params(1.0), version=("mine", 1, ()))

    first, second = (jb.sweep(mine(x), arms, horizon=50, seeds=16, progress=False) for x in ("here", "there"))
    np.testing.assert_array_equal(first.regret, second.regret)


def test_keys_do_not_depend_on_what_another_thread_compiles():
    """While one thread compiles, JAX's own cache is off for all: a key that showed it would not be found again."""
    device = jax.devices()[0]
    before = executables.key_of("a", device, 1)
    with without_jax_cache():
        assert executables.key_of("a", device, 1) == before is not None


@pytest.mark.parametrize("name", ["jax", "jaxlib", "numpy"])
def test_a_program_is_found_by_every_version(name, monkeypatch):
    before = executables.key_of("a", None, 1)
    monkeypatch.setattr(f"{name}.__version__", "0.0.0")
    assert executables.key_of("a", None, 1) != before


def test_names_tell_defaults_apart():
    def made(*defaults, **named):
        space = {"__name__": "jaxbandits.numerics"}  # so that it is this package's
        function = types.FunctionType((lambda x, y=0, *, z=0: x).__code__, space, "f", defaults)
        function.__kwdefaults__ = named
        return function

    functions = [made(0, z=0), made(1, z=0), made(0, z=1), made(0), made(0, z=0)]
    names = [program_digest.name_of(function) for function in functions]
    assert None not in names and len(set(names)) == 4 and names[0] == names[4]
