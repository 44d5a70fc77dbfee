"""The store: what is kept is found again and is right; what is damaged is never taken for a result."""

import contextlib
import errno
import itertools
import json
import os
import re
import shutil
import subprocess
import threading
import time
import tracemalloc
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from dealt import dealt

import jaxbandits as jb
from jaxbandits.cli import main
from jaxbandits.sweeps import estimate, execution
from jaxbandits.sweeps.compilation import compiled
from jaxbandits.sweeps.dataset import Results
from jaxbandits.sweeps.engines import calls, local, one_call, remaining
from jaxbandits.sweeps.engines.calls import Call
from jaxbandits.sweeps.engines.local import this_machine
from jaxbandits.sweeps.engines.one_call import Progress
from jaxbandits.sweeps.engines.remaining import Remaining
from jaxbandits.sweeps.storage import dataset_file, store
from jaxbandits.sweeps.storage.store import BegunCall, Damaged, Store, pack, unpack
from jaxbandits.sweeps.sweep import prepare_sweep

A, E = jb.algorithms, jb.environments
ARMS = E.bernoulli_arms(means=[0.2, 0.5, 0.8])
SMALL = {"horizon": 60, "seeds": 40, "checkpoints": 6, "progress": False, "grid": {"learning_rate": [0.05, 0.1]}}
BOTH = {"ucb1": A.ucb1, "exp3": A.exp3}


@pytest.fixture(scope="module")
def whole():
    """The sweep in memory."""
    return jb.sweep(BOTH, ARMS, **SMALL)


@pytest.fixture
def played(monkeypatch):
    """The lanes that are computed: (label, learning rate, seed) for every one."""
    lanes: list = []
    original = local.play_call

    def counted(task, plan, *args, **keywords):
        for c in task.cells:
            cell = plan.cells[c]
            rate = cell.algorithm.config.get("learning_rate")
            lanes.extend((cell.algorithm.version[0], rate, s) for s in range(task.first, task.first + task.seeds))
        return original(task, plan, *args, **keywords)

    monkeypatch.setattr(local, "play_call", counted)
    return lanes


def chunks(directory) -> list[Path]:
    return sorted(p for p in (directory / "chunks").rglob("*.npz") if p.parent.name != "begun")


def arrays():
    return {"regret": np.arange(12.0).reshape(4, 3), "pulls": np.ones((4, 2), np.int32), "empty": np.zeros((0, 3))}


def test_a_file_gives_back_what_it_was_given(tmp_path):
    (tmp_path / "x").write_bytes(pack({"key": "k"}, arrays()))
    about, back = unpack(tmp_path / "x")
    assert about == {"key": "k"} and back.keys() == arrays().keys()
    for name, x in arrays().items():
        np.testing.assert_array_equal(back[name], x)
        assert back[name].dtype == x.dtype
    assert pack({"key": "k"}, arrays()) == pack({"key": "k"}, arrays())  # no time of day in it


@pytest.mark.parametrize("bits", [1, pytest.param(8, marks=pytest.mark.dealt(8))])
def test_no_flipped_bit_passes(tmp_path, bits):
    """One bit of every byte, or every bit in turn: noticed, or without effect on what is read."""
    content, path, noticed = pack({"key": "k"}, arrays()), tmp_path / "x", 0
    for at, bit in itertools.product(range(len(content)), range(bits)):
        path.write_bytes(content[:at] + bytes([content[at] ^ (1 << (at + bit) % 8)]) + content[at + 1 :])
        try:
            about, back = unpack(path)
        except Damaged:
            noticed += 1
        else:
            assert about == {"key": "k"} and len(back) == 3
            assert all(np.array_equal(back[name], x) for name, x in arrays().items())
    assert noticed > bits * len(content) / 2


def test_truncated_files_and_pickles_are_refused(tmp_path):
    content, path = pack({"key": "k"}, arrays()), tmp_path / "x"
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(Damaged):
            unpack(path)
    np.savez(tmp_path / "x.npz", regret=np.array([print], dtype=object))
    with pytest.raises(Damaged):
        unpack(tmp_path / "x.npz")


def test_in_a_store_as_in_memory(whole, tmp_path):
    kept = jb.sweep(BOTH, ARMS, **SMALL, store=tmp_path)
    xr.testing.assert_identical(kept, whole)
    xr.testing.assert_identical(jb.load(tmp_path), whole)
    assert not list(tmp_path.rglob("*.part")) and len(chunks(tmp_path)) == 3


HUBER = partial(jb.adversaries.huber, value="nan")
SHAPES = {
    "horizons": (A.exp3, ARMS, {"horizon": [20, 50]}),
    "points": (A.exp3, ARMS, {"horizon": 30, "points": [{"learning_rate": 0.1, "mixing": 0.2}]}),
    "arms": (A.ucb1, E.bernoulli_arms,
        {"horizon": 30, "grid": {"environment.means": {"a": [0.1, 0.2], "b": [0.1, 0.5]}}}),
    "attacked": (A.ucb1, ARMS,
        {"horizon": 30, "reward_adversary": HUBER, "grid": {"reward_adversary.corruption": [0, 0.2]}}),
    "bases": (A.private_batched, ARMS, {"horizon": 30, "grid": {"base": [A.exp3, A.htinf], "epsilon": [0.5]}}),
    "text": ({"LABEL": A.private_batched}, ARMS,
        {"horizon": 30, "grid": {"LABEL.base": {"one": A.exp3}, "epsilon": [0.5]}}),
    "linear": (A.linucb, E.contextual_linear(num_arms=3, dim=2), {"horizon": 30, "dtype": "float64"}),
}  # fmt: skip


@pytest.mark.parametrize("name", dealt(SHAPES, 3, always=["horizons", "attacked", "text"]))
def test_all_shapes_of_results_pass_through_a_file(tmp_path, name):
    """Several horizons, points, named arrays, diagnostics, factories and text on an axis."""
    algorithm, environment, settings = SHAPES[name]
    settings = {"seeds": 9, "checkpoints": 5, "progress": False} | settings
    in_memory = jb.sweep(algorithm, environment, **settings)
    xr.testing.assert_identical(jb.sweep(algorithm, environment, **settings, store=tmp_path), in_memory)
    assert name != "attacked" or "nonfinite_rewards" in in_memory


def test_nothing_is_computed_twice(whole, tmp_path, played):
    """More seeds, more values, new and relabelled algorithms: only what is new."""
    jb.sweep({"exp3": A.exp3}, ARMS, **(SMALL | {"seeds": range(8, 24)}), store=tmp_path)
    assert len(played) == 32
    jb.sweep({"exp3": A.exp3}, ARMS, **SMALL, store=tmp_path)
    assert len(played) == 80
    jb.sweep({"exp3": A.exp3}, ARMS, **(SMALL | {"grid": {"learning_rate": [0.1, 0.2, 0.05]}}), store=tmp_path)
    assert len(played) == 120
    jb.sweep({"a": A.exp3, "again": A.exp3}, ARMS, **SMALL, store=tmp_path)
    assert len(played) == 120
    kept = jb.sweep(BOTH, ARMS, **SMALL, store=tmp_path)
    assert len(played) == 160 and len(set(played)) == 160
    xr.testing.assert_identical(kept, whole)
    smaller = jb.sweep(BOTH, ARMS, **(SMALL | {"seeds": range(3, 11)}), store=tmp_path)
    np.testing.assert_array_equal(smaller.regret, whole.regret.sel(seed=range(3, 11)))
    assert len(played) == 160


CHANGES = {
    "horizon": {"horizon": 61},
    "checkpoints": {"checkpoints": 7},
    "dtype": {"dtype": "float64"},
    "environment": {"environment": E.bernoulli_arms(means=[0.2, 0.5, 0.7])},
    "reward_adversary": {"reward_adversary": jb.adversaries.huber(corruption=0.1)},
    "message_adversary": {"message_adversary": jb.adversaries.huber(corruption=0.1)},
}


def test_another_run_is_refused_by_name(tmp_path):
    assert CHANGES.keys() == {*store.SHARED}
    settings = {"environment": ARMS, **(SMALL | {"seeds": 8})}
    jb.sweep({"exp3": A.exp3}, **settings, store=tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for name, change in CHANGES.items():
        with pytest.raises(ValueError, match=rf"holds another run \({name} differ: {name}\S* is .* there, .* here"):
            jb.sweep({"exp3": A.exp3}, **(settings | change), store=tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
    two = {"algorithms": A.exp3, "environment": ARMS, "seeds": 8, "checkpoints": 4, "progress": False}
    jb.sweep(**two, horizon=[20, 30], store=tmp_path / "axis")
    assert jb.sweep(**two, horizon=[20, 30, 40], store=tmp_path / "axis").sizes["horizon"] == 3  # an axis may grow
    assert jb.sweep(**two, horizon=[20, 30], store=tmp_path / "axis").sizes["horizon"] == 2  # and a part be asked for
    with pytest.raises(ValueError, match="horizon"):
        jb.sweep(**two, horizon=[20, 50], store=tmp_path / "axis")


def test_a_call_that_reaches_over_files_is_cut_where_they_begin(tmp_path):
    """Seeds 3 to 12 of two cells in files of four seeds; the regret is the seed, in the second cell half more."""
    made, call = Store(tmp_path, block=4), Call(0, (0, 1), 3, 16, 10, ("a" * 64, "b" * 64))
    made.prepare()
    regret = np.arange(3.0, 13.0)[:, None, None] + np.array([0.0, 0.5])[:, None]
    one_call.keep_outcome(made, call, one_call.Outcome(regret, None, {"x": regret[..., 0]}))
    for m, key in enumerate(call.keys):
        files = made.chunks([key])[key]
        assert [(x.first, x.stop) for x in files] == [(3, 4), (4, 8), (8, 12), (12, 13)]
        for x in files:
            found = made.read(x, {"regret": (1,), "diagnostic.x": ()})
            np.testing.assert_array_equal(found["regret"][:, 0], np.arange(x.first, x.stop) + m / 2)
            np.testing.assert_array_equal(found["diagnostic.x"], found["regret"][:, 0])


def test_a_file_under_the_name_of_other_seeds_is_set_aside(tmp_path):
    made, key = Store(tmp_path), "ab" * 32
    made.prepare()
    made.write(key, 8, {"x": np.arange(3.0)})
    [chunk] = made.chunks([key])[key]
    assert made.read(chunk, {"x": ()})["x"].tolist() == [0, 1, 2]
    chunk.path.rename(chunk.path.with_name(f"{key}.16-19.npz"))
    [chunk] = made.chunks([key])[key]
    with pytest.warns(RuntimeWarning, match="it holds another chunk"):
        assert made.read(chunk, {"x": ()}) is None


def damage_flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def damage_foreign(path):
    """Another chunk's content under this name."""
    others = (p for p in chunks(path.parents[2]) if p != path and p.stat().st_size == path.stat().st_size)
    path.write_bytes(next(others).read_bytes())


def cut(about, arrays):
    return about, {name: x[:3] for name, x in arrays.items()}


DAMAGE = {
    "flipped": damage_flip,
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: os.truncate(path, 0),
    "foreign content": damage_foreign,
    "text": lambda path: path.write_text("not a chunk"),
    "a plain npz": lambda path: np.savez(path, regret=np.zeros((40, 6))),
    "a link to nothing": lambda path: (path.unlink(), path.symlink_to(path.with_name("gone"))),
    "seeds missing": lambda path: path.write_bytes(pack(*cut(*unpack(path)))),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_set_aside_and_computed_again(whole, tmp_path, played, name):
    first = jb.sweep(BOTH, ARMS, **SMALL, store=tmp_path)
    hurt = chunks(tmp_path)[1]
    good = hurt.read_bytes()
    DAMAGE[name](hurt)
    played.clear()
    with pytest.warns(RuntimeWarning, match=rf"set aside chunks/{hurt.parent.name}/{hurt.name}"):
        again = jb.sweep(BOTH, ARMS, **SMALL, store=tmp_path)
    xr.testing.assert_identical(again, first)
    assert len(played) == 40 and hurt.read_bytes() == good and os.path.lexists(f"{hurt}.bad")
    assert not hurt.is_symlink()


def test_strangers_are_left_alone_or_set_aside(whole, tmp_path, played):
    jb.sweep(BOTH, ARMS, **SMALL, store=tmp_path)
    folder = chunks(tmp_path)[0].parent
    (folder / "notes.txt").write_text("mine")
    (folder / "stranger.npz").write_bytes(b"x")
    played.clear()
    with pytest.warns(RuntimeWarning, match="not a chunk's name"):
        xr.testing.assert_identical(jb.sweep(BOTH, ARMS, **SMALL, store=tmp_path), whole)
    assert not played and (folder / "notes.txt").exists() and (folder / "stranger.npz.bad").exists()


def test_stale_temporary_files_go_and_fresh_ones_stay(tmp_path):
    Store(tmp_path).prepare()
    old, new = ([tmp_path / f"chunks/.{k}.part", tmp_path / f".results.nc.{k}.part"] for k in "ab")
    for path in (*old, *new):
        path.write_bytes(b"")
        os.utime(path, (time.time() - 2 * store.STALE_SECONDS * (path in old),) * 2)
    Store(tmp_path).prepare()
    assert not any(path.exists() for path in old) and all(path.exists() for path in new)
    Store(tmp_path).delete_files()  # another process may be writing its results
    assert [path.exists() for path in new] == [False, True]


def test_files_that_another_process_removed_are_gone_too(tmp_path, monkeypatch):
    (one := Store(tmp_path)).prepare()
    kept, *ours = (one.home / name for name in ("notes.txt", "token", "sweep.json", ".a.part"))
    for path in (kept, *ours):
        path.write_bytes(b"")
    listed = Path.rglob

    def slowly(self, pattern):
        found = list(listed(self, pattern))
        ours[0].unlink()  # after it was listed
        return found

    monkeypatch.setattr(Path, "rglob", slowly)
    one.delete_files()
    assert kept.exists() and not any(path.exists() for path in ours)


def test_bad_input_makes_no_directory(tmp_path):
    wrong = {"seeds": 0, "memory": "3B", "engine": "rey", "grid": {"learning_rat": [0.1]}, "devices": 99}
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=name):
            jb.sweep(BOTH, ARMS, **(SMALL | {name: value}), store=tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("")
    for name, why in {"file": "Not a directory", "x" * 300: "File name too long"}.items():
        with pytest.raises(ValueError, match=rf"^store = .*{name}': cannot write there \({why}\)"):
            jb.sweep(BOTH, ARMS, **SMALL, store=tmp_path / name)


def test_an_error_in_one_algorithm_keeps_the_others(tmp_path, played, monkeypatch):
    closing = jax.custom_batching.custom_vmap(lambda x: x)

    @closing.def_vmap
    def _(lanes, batched, x):
        if lanes in range(16, 1000):  # other numbers are traced before the run, and what fails there is said there
            raise ZeroDivisionError("never closed")
        return x, batched[0]

    def close(params, state, draws, t):
        return jax.tree.map(closing, state)

    def broken(*, num_arms, horizon):
        made = A.ucb1(num_arms=num_arms, horizon=horizon)
        span = made.schedule[0]._replace(close=True)
        return made._replace(program=program._replace(close=close), schedule=(span,), version=("broken", 1, ()))

    program = A.ucb1(num_arms=3, horizon=60).program
    with (
        pytest.warns(RuntimeWarning, match=r"'broken' failed, the other calls go on(.|\n)*ZeroDivisionError"),
        pytest.raises(jb.SweepError, match=r"1 of 3 calls failed.*'broken', seeds 0 to 39: .*never closed") as raised,
    ):
        jb.sweep({"broken": broken, **BOTH}, ARMS, **SMALL, store=tmp_path)
    assert raised.value.failures[0][:2] == ("broken", range(0, 40)) and len(chunks(tmp_path)) == 3
    played.clear()
    jb.sweep(BOTH, ARMS, **SMALL, store=tmp_path)
    assert not played
    with pytest.raises(ZeroDivisionError):  # nothing to keep: said at once
        jb.sweep({"broken": broken, **BOTH}, ARMS, **SMALL)
    # the thread that compiles may meet the error first, and leaves it to the call
    with pytest.warns(RuntimeWarning, match="'broken' failed"), pytest.raises(jb.SweepError):
        jb.sweep({"broken": broken, **BOTH}, ARMS, **SMALL | {"progress": True}, store=tmp_path / "shown")
    assert len(chunks(tmp_path / "shown")) == 3


def test_the_time_is_said_once_from_segments_that_were_played(monkeypatch, capsys):
    monkeypatch.setattr(estimate, "SAY_AFTER", 0.0)
    monkeypatch.setattr(one_call, "segments", lambda windows, begin, done=0: ((i, 1) for i in range(done, windows)))
    jb.sweep(BOTH, ARMS, **SMALL | {"progress": True})  # its programs are compiled now
    capsys.readouterr()
    jb.sweep(BOTH, ARMS, **SMALL | {"progress": True})
    said = capsys.readouterr().err
    assert said.count("time: about ") == 1 and " more on " in said
    assert "2 programs in 2 calls" in said


def test_the_time_that_remains_is_that_of_the_core_that_is_done_last():
    plan = prepare_sweep(BOTH, ARMS, settings_of(SMALL), progress=False).plan
    given, horizon = [Call(group, (group,), 0, 16, 10) for group in range(2)], int(plan.groups[0].times[-1])
    left = Remaining(plan, given, this_machine(None, None)._replace(workers=1))
    first, second = left.take(), left.take()
    assert left.seconds_left() is None
    left.note_plays(Progress(first, 2 * horizon, seconds=0.0))  # its first segment: compiling is not playing
    left.note_plays(Progress(first, 4 * horizon, seconds=8.0 * horizon))
    assert left.seconds_left() is None  # nobody knows of the other group
    left.note_taste(second.group, None)  # two seconds a play; of the other group by its operations
    share = plan.groups[second.group].shape.operations / plan.groups[first.group].shape.operations
    assert left.seconds_left() == pytest.approx(2.0 * (4 + 10 * share) * horizon)
    left.note_taste(second.group, 3.0)
    assert left.seconds_left() == pytest.approx(2.0 * 4 * horizon + 3.0 * 10 * horizon)
    left.note_plays(Progress(second, 5 * horizon, seconds=5.0 * horizon))
    assert left.seconds_left() == pytest.approx(2.0 * 4 * horizon + 1.0 * 5 * horizon)
    left.workers = 2
    assert left.seconds_left() == pytest.approx(2.0 * 4 * horizon)
    left.note_end(first)
    assert left.seconds_left() == pytest.approx(1.0 * 5 * horizon)


def test_one_call_of_every_group_comes_first_and_the_longest_once_speeds_are_known():
    given = [Call(group, (group,), first, seeds, seeds) for group, seeds in ((0, 30), (1, 10)) for first in (0, seeds)]
    plan = prepare_sweep(BOTH, ARMS, settings_of(SMALL), progress=False).plan
    left = Remaining(plan, given, this_machine(None, None))
    found = [left.take() for _ in given]
    assert [(call.group, call.first) for call in found] == [(1, 0), (0, 0), (0, 30), (1, 10)]
    left = Remaining(plan, given, this_machine(None, None))
    left.note_plays(Progress(given[0], 10, seconds=1.0))
    asked = left.note_compiled()  # what was timed beside compiling is forgotten
    assert [(call.group, call.first) for call in asked] == [(1, 0), (0, 0)]
    assert left.worth_a_taste(0) == 2 * 30 * int(plan.groups[0].times[-1]) // remaining.TASTE
    left.note_taste(0, 1.0)
    left.note_taste(1, 4.0)
    found = [left.take() for _ in given]
    assert [(call.group, call.first) for call in found] == [(1, 0), (1, 10), (0, 0), (0, 30)]
    left.note_plays(Progress(given[0], 10, seconds=1.0))
    assert left.worth_a_taste(0) == 0


def test_a_taste_of_a_group_that_waits_is_thrown_away(monkeypatch, whole):
    tastes, compiled_all = [], threading.Event()

    def waiting(windows, begin, done=0):
        for i in range(done, windows):
            yield i, 1
            compiled_all.wait(60)

    def compiled_now(self, compiled=Remaining.note_compiled):
        asked = compiled(self)
        compiled_all.set()
        return asked

    def noted(self, group, seconds, tasted=Remaining.note_taste):
        tastes.append((group, seconds))
        tasted(self, group, seconds)

    monkeypatch.setattr(local, "_cores", 1)
    monkeypatch.setattr(one_call, "segments", waiting)
    monkeypatch.setattr(remaining, "TASTE", 1)
    monkeypatch.setattr(Remaining, "note_compiled", compiled_now)
    monkeypatch.setattr(Remaining, "note_taste", noted)
    xr.testing.assert_identical(jb.sweep(BOTH, ARMS, **SMALL).regret, whole.regret)
    assert 1 <= len(tastes) <= 2 and all(seconds > 0 for _, seconds in tastes)  # both may wait


def test_what_compiling_takes_is_said_before_it_begins(monkeypatch, capsys, tmp_path):
    """The size of a user's function is known once it is traced."""
    monkeypatch.setenv("JAXBANDITS_CACHE", str(tmp_path))  # nothing was compiled before
    monkeypatch.setattr(compiled, "SECONDS", 1.0)
    monkeypatch.setattr(compiled, "BYTES", 2**50)

    def written_out(*, num_arms, horizon):
        made = A.ucb1(num_arms=num_arms, horizon=horizon)

        def update(params, state, draws, t, note, message, used):
            for _ in range(300):
                message = message + 0.0
            return made.program.update(params, state, draws, t, note, message, used)

        return made._replace(program=made.program._replace(update=update))

    with pytest.warns(RuntimeWarning, match=r"compiling [\d,]+ operations takes about .* (min|h) and .*lax.fori_loop"):
        jb.sweep(written_out, ARMS, horizon=20, seeds=4)
    said = capsys.readouterr().err
    numbers = [int(n.replace(",", "")) for n in re.findall(r"compiling ([\d,]+) operations: about", said)]
    assert 300 < max(numbers) < 3000
    assert re.search(r"compiling: at most about .* (min|h|days) and .*B \(less if it was compiled before\)\n", said)


def test_the_first_lines_know_how_much_is_compiled(monkeypatch, tmp_path):
    monkeypatch.setenv("JAXBANDITS_CACHE", str(tmp_path))
    compiled: list[int] = []
    monkeypatch.setattr(estimate.Meter, "compiles", lambda self, number: compiled.append(number))
    algorithms = BOTH | {"counted": partial(A.private_batched, epsilon=1.0)}
    job = prepare_sweep(algorithms, ARMS, settings_of({"horizon": 60, "seeds": 40}), progress=True)
    given = calls.fitting(job.plan, calls.seeds_of_shard(job.plan), job.engine.machine)[1]
    expected = estimate.operations_of(given, job.plan)
    execution.SweepRun(job).dataset()
    assert 0.7 < expected / sum(compiled) < 1.4


def test_operations_are_those_of_loops_and_functions_too():
    def looped(x):
        return jax.lax.fori_loop(0, 5, lambda _, y: jax.jit(lambda z: jnp.sin(z) + 1)(y), x) * 2

    alone, inside = (compiled.number_of(jax.make_jaxpr(f)(1.0)) for f in (lambda x: jnp.sin(x) + 1, looped))
    assert alone == 2 and 2 < inside < 12
    assert compiled.compile_cost(2000)[0] < 5 < compiled.compile_cost(20_000)[0] < compiled.LONG


def test_an_error_of_tracing_names_its_algorithm(tmp_path):
    def broken(*, num_arms, horizon):
        made = A.ucb1(num_arms=num_arms, horizon=horizon)
        return made._replace(program=made.program._replace(update=lambda params, *_: params.nothing))

    words = r"'broken' cannot be traced: AttributeError: .*nothing.* \(.*test_store.py:\d+\)"
    with pytest.raises(ValueError, match=words):
        jb.sweep({"broken": broken, **BOTH}, ARMS, **SMALL, store=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_merge_wants_every_seed(tmp_path):
    """A chunk that another process set aside meanwhile is a hole, not a row of NaN."""
    made = execution.SweepRun(prepare_sweep(BOTH, ARMS, settings_of(SMALL), store=tmp_path, progress=False))
    made.compute()
    hurt = chunks(tmp_path)[0]
    hurt.rename(hurt.with_name("gone.bad"))
    assert not made.merge(made.sweep.store) and not (tmp_path / "results.nc").exists()
    made.compute()
    assert made.merge(made.sweep.store)


def settings_of(keywords):
    return {name: x for name, x in keywords.items() if name not in ("progress", "memory")}


def test_fresh_removes_what_is_ours(tmp_path):
    jb.sweep(BOTH, ARMS, **SMALL, store=tmp_path)
    (tmp_path / "chunks" / "thesis.tex").write_text("years")
    (tmp_path / "chunks" / "ab").mkdir(exist_ok=True)
    (tmp_path / "chunks" / "ab" / "other.npz").write_text("mine")
    changed = settings_of(SMALL) | {"horizon": 30, "seeds": 8}
    job = prepare_sweep(BOTH, ARMS, changed, store=tmp_path, progress=False, fresh=True)
    assert chunks(tmp_path) and (tmp_path / "results.nc").exists()  # nothing happens before it runs
    execution.SweepRun(job).compute((999, 1000))  # a shard without work
    assert not (tmp_path / "results.nc").exists()  # an interrupted fresh run leaves no old results
    assert [p.name for p in chunks(tmp_path)] == ["other.npz"] and (tmp_path / "chunks" / "thesis.tex").exists()


def test_a_store_without_chunks_refuses_nothing(tmp_path):
    made = prepare_sweep(BOTH, ARMS, settings_of(SMALL) | {"seeds": 8}, store=tmp_path, progress=False)
    execution.SweepRun(made).compute((999, 1000))
    assert jb.sweep(BOTH, ARMS, **(SMALL | {"horizon": 30}), store=tmp_path).t[-1] == 30


def test_the_same_run_said_otherwise_goes_on(tmp_path, played):
    huber = jb.adversaries.huber
    one = SMALL | {"reward_adversary": partial(huber, corruption=0.1)}
    jb.sweep(BOTH, partial(E.bernoulli_arms, means=(0.2, 0.5, 0.8)), **one, store=tmp_path)
    played.clear()
    jb.sweep(BOTH, ARMS, **(SMALL | {"reward_adversary": huber(corruption=0.1)}), store=tmp_path)
    jb.sweep(BOTH, ARMS, **(one | {"horizon": [60]}), store=tmp_path)
    table = np.random.default_rng(0).random((400, 3))
    jb.sweep(A.exp3, E.loss_table(losses=table), horizon=50, seeds=8, progress=False, store=tmp_path / "table")
    before = len(played)
    jb.sweep(A.exp3, E.loss_table(losses=table.tolist()), horizon=50, seeds=8, progress=False, store=tmp_path / "table")
    assert before == len(played) == 8


@pytest.mark.parametrize("content", ["{", "[1]", '{"config": 3}', '{"config": {"horizon": 60}}'])
def test_an_odd_record_is_written_again(whole, tmp_path, played, content):
    jb.sweep(BOTH, ARMS, **SMALL, store=tmp_path)
    (tmp_path / "chunks" / "sweep.json").write_text(content)
    played.clear()
    xr.testing.assert_identical(jb.sweep(BOTH, ARMS, **SMALL, store=tmp_path), whole)
    assert not played and json.loads((tmp_path / "chunks" / "sweep.json").read_text())["config"]["horizon"] == 60


FILE = """
horizon = 60
seeds = 40
checkpoints = 6
environment = {name = "bernoulli_arms", means = [0.2, 0.5, 0.8]}
algorithm = ["ucb1", "exp3"]
grid = {learning_rate = [0.05, 0.1]}
"""


def test_a_shard_of_an_empty_store_finds_nothing_there(tmp_path, capsys):
    file = tmp_path / "run.toml"
    file.write_text(FILE)
    for shard, said in (("1/2", ""), ("2/2", ""), ("2/2", "nothing to compute")):
        assert main(["worker", str(file), "--shard", shard, "--out", str(tmp_path / "out")]) == 0
        printed = capsys.readouterr()
        assert "from the store" not in printed.err and said in printed.out
        assert said or "60 of 120 runs to compute" in printed.err


def test_provenance_counts_what_was_computed(tmp_path, capsys):
    """UCB1 has no rate: its lanes are computed once, and stand at both points of the result."""
    file, out = tmp_path / "run.toml", tmp_path / "out"
    file.write_text(FILE)
    assert main(["run", str(file), "--out", str(out), "--quiet"]) == 0
    said, kept = capsys.readouterr().out, json.loads((out / "provenance.json").read_text())
    assert "0 runs from the store, 120 computed" in said and kept["lanes"] == 120
    assert f"in {kept['seconds']:.1f} s" in said


def test_tables_are_those_of_the_numbers_beside_them(tmp_path, capsys):
    """Workers may have computed others for the same configuration: nothing is left for `run` to compute then."""
    file, out = tmp_path / "run.toml", tmp_path / "out"
    file.write_text(FILE)
    again = ["run", str(file), "--out", str(out), "--quiet"]
    assert main(again) == 0
    table, kept = (out / "summary.csv").read_text(), json.loads((out / "provenance.json").read_text())
    for digest, stays in ((kept["sha256"]["regret"], True), ("of other numbers", False)):
        (out / "summary.csv").write_text("older")
        (out / "provenance.json").write_text(json.dumps(kept | {"sha256": {"regret": digest}}))
        assert main(again) == 0 and ("already holds this run" in capsys.readouterr().out) == stays
        assert (out / "summary.csv").read_text() == ("older" if stays else table)
    assert json.loads((out / "provenance.json").read_text())["sha256"] == kept["sha256"]


def test_fresh_leaves_files_of_other_kinds(tmp_path):
    file, names = tmp_path / "run.toml", ["regret.py", "reward.ipynb", "against_all.md", "regret.d"]
    file.write_text(FILE)
    for name in names[:-1]:
        (tmp_path / name).write_text("mine")
    (tmp_path / names[-1]).mkdir()
    earlier = ["reward.svg", "against_window.pdf", "decisions.csv"]
    for name in earlier:
        (tmp_path / name).write_text("of an earlier run")
    assert main(["run", str(file), "--out", str(tmp_path), "--quiet", "--fresh"]) == 0
    assert all((tmp_path / name).exists() for name in [*names, "regret.png"])
    assert not any((tmp_path / name).exists() for name in earlier)


def test_what_a_picture_cannot_show_is_said_before_the_run(tmp_path, played, capsys):
    file, named = tmp_path / "run.toml", "{easy = [0.2, 0.8], hard = [0.4, 0.6]}"
    worlds = FILE.replace("{learning_rate = [0.05, 0.1]}", f'{{"environment.means" = {named}}}')
    worlds = worlds.replace(", means = [0.2, 0.5, 0.8]", "")
    for text, words in (
        (worlds + '[figure]\nagainst = "environment.means"\n', "figure.against = 'environment.means' needs numbers"),
        (FILE + '[figure]\ndotted = ["exp3"]\n', "figure: dotted: 'exp3' has no partner None"),
        (FILE + '[figure]\ntitle = "Regret"\n', "figure has no key 'title'"),
    ):  # fmt: skip
        file.write_text(text)
        assert main(["run", str(file), "--out", str(tmp_path / "out"), "--quiet"]) == 2
        assert words in capsys.readouterr().err and not played and not (tmp_path / "out").exists()


def test_what_a_smaller_run_leaves_out_of_the_result_is_said(tmp_path, capsys):
    file, out = tmp_path / "run.toml", tmp_path / "out"

    def run(text, *options):
        file.write_text(text)
        assert main(["run", str(file), "--out", str(out), "--quiet", *options]) == 0
        return capsys.readouterr().out

    assert "no longer" not in run(FILE) + run(FILE) + run(FILE, "--seeds", "48")
    assert "results.nc no longer holds 40 of its 48 seeds: finished chunks" in run(FILE, "--seeds", "8")
    assert "no longer" not in run(FILE, "--seeds", "48")
    few = FILE.replace('"ucb1", ', "").replace("[0.05, 0.1]", "[0.05]")
    assert "results.nc no longer holds 8 of its 48 seeds; ucb1; learning_rate = 0.1: " in run(few)
    jb.sweep(BOTH, ARMS, **SMALL | {"progress": True}, store=out)
    assert "no longer" not in capsys.readouterr().err
    jb.sweep(BOTH, ARMS, **SMALL | {"progress": True, "seeds": 8}, store=out)
    assert "results.nc no longer holds 32 of its 40 seeds: " in capsys.readouterr().err


@pytest.mark.parametrize("shards", [["0/2", "1/2"], ["1/3", "2/3", "3/3"]])
def test_workers_share_a_sweep(whole, tmp_path, played, shards, capsys):
    file, out = tmp_path / "run.toml", tmp_path / "out"
    file.write_text(FILE)
    for shard in shards:
        before = len(played)
        assert main(["worker", str(file), "--shard", shard, "--out", str(out), "--quiet"]) == 0
        assert 0 < len(played) - before < 120
    assert len(played) == len(set(played)) == 120
    assert f"jaxbandits run {file} --out {out}" in capsys.readouterr().out
    assert main(["run", str(file), "--out", str(out), "--quiet"]) == 0
    assert len(played) == 120 and not (set(jb.load(out).regret.values.flat) ^ set(whole.regret.values.flat))
    np.testing.assert_array_equal(jb.load(out).regret, whole.regret)


@pytest.mark.parametrize("shard", ["3/2", "1", "a/b", "-1/2", "0/0"])
def test_a_wrong_shard_is_bad_input(tmp_path, capsys, shard):
    (tmp_path / "run.toml").write_text(FILE)
    paths = [str(tmp_path / "run.toml"), "--out", str(tmp_path / "out")]
    assert main(["worker", *paths, f"--shard={shard}", "--quiet"]) == 2
    assert "--shard" in capsys.readouterr().err and not (tmp_path / "out").exists()


class Stop(BaseException):
    """Pulls the plug."""


@pytest.fixture
def short(monkeypatch):
    """Segments of seven windows, every one of them kept; `log` holds the windows that were played."""
    log: list = []

    def segments(windows, begin, done=0):
        for first in range(done, windows, 7):
            log.append(first)
            yield first, min(7, windows - first)

    monkeypatch.setattr(one_call, "segments", segments)
    monkeypatch.setattr(one_call, "KEEP_SECONDS", 0.0)
    monkeypatch.setattr(one_call, "KEEP_SHARE", float("inf"))
    return log


def test_a_call_goes_on_inside_its_horizon(whole, tmp_path, monkeypatch, short, capsys):
    original, saves = one_call.Keeper.__call__, []

    def plug(self, *args, **keywords):
        original(self, *args, **keywords)
        saves.append(args[1])
        if len(saves) == 4:
            raise Stop

    monkeypatch.setattr(one_call.Keeper, "__call__", plug)
    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr(local, "_cores", 1)
        jb.sweep({"exp3": A.exp3}, ARMS, **SMALL, store=tmp_path)
    assert saves == [7, 14, 21, 28] and len(list((tmp_path / "chunks" / "begun").iterdir())) == 1
    short.clear()
    monkeypatch.setattr(one_call.Keeper, "__call__", original)
    # more seeds would be cut into other calls: what was begun goes on as it is
    capsys.readouterr()
    kept = jb.sweep({"exp3": A.exp3}, ARMS, **(SMALL | {"seeds": 80, "progress": True}), store=tmp_path)
    assert "160 runs (80 of them go on from where they stood) to compute: " in capsys.readouterr().err
    assert 28 in short and short.count(0) == 2  # the rest is cut at seed 64
    np.testing.assert_array_equal(kept.regret[0][:, :40], whole.regret.sel(algorithm="exp3"))
    assert not list((tmp_path / "chunks" / "begun").iterdir())


def interrupted(directory, monkeypatch):
    """A sweep stopped right after its first save."""
    original = one_call.Keeper.__call__

    def stop_at_once(self, *args, **keywords):
        original(self, *args, **keywords)
        raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(one_call.Keeper, "__call__", stop_at_once)
        with pytest.raises(Stop):
            jb.sweep({"exp3": A.exp3}, ARMS, **SMALL, store=directory)
    (saved,) = (directory / "chunks" / "begun").iterdir()
    return saved


def test_where_a_call_stands_is_read_as_it_was_kept(tmp_path):
    kept, lanes = BegunCall(("a" * 64, "b" * 64), 8, 16, 12, span=2, window=7), [np.arange(3), np.ones((2, 0), bool)]
    made = Store(tmp_path)
    made.prepare()
    made.keep_begun(kept, [np.zeros(3)])
    made.keep_begun(kept, lanes)  # in place of it
    for call in (kept, kept._replace(span=0, window=0)):
        begun, found = made.read_begun(call)
        assert begun == kept and [(x.dtype, x.tolist()) for x in found] == [(x.dtype, x.tolist()) for x in lanes]
    assert list(made.all_begun()) == [kept]
    others = [{"keys": kept.keys[::-1]}, {"keys": kept.keys[:1]}, {"first": 16}, {"lanes": 12}, {"seeds": 16}]
    for other in (kept._replace(**change) for change in others):
        assert made.read_begun(other) is None
        made.forget_begun(other)
    assert made.read_begun(kept) is not None
    made.forget_begun(kept)
    assert made.read_begun(kept) is None and not made.reported


def test_a_save_too_large_for_the_memory_is_not_taken_up(whole, tmp_path, monkeypatch, short, played):
    """What the last run died of does not kill this one."""
    monkeypatch.setattr(local, "_cores", 2)  # they share the memory
    interrupted(tmp_path, monkeypatch)
    short.clear()
    kept = jb.sweep({"exp3": A.exp3}, ARMS, **SMALL, store=tmp_path, memory="18KB")
    assert short.count(0) == 3  # calls of sixteen seeds, each from its beginning
    np.testing.assert_array_equal(kept.regret[0], whole.regret.sel(algorithm="exp3"))
    assert not list((tmp_path / "chunks" / "begun").iterdir())


def of_another_release(path):
    about, arrays = unpack(path)
    arrays.popitem()
    path.write_bytes(pack(about | {"window": 21}, arrays))


@pytest.mark.parametrize("damaged", [True, False])
def test_a_damaged_save_is_set_aside_and_that_of_another_release_goes(whole, tmp_path, monkeypatch, short, damaged):
    saved = interrupted(tmp_path, monkeypatch)
    os.truncate(saved, 1000) if damaged else of_another_release(saved)
    short.clear()
    with pytest.warns(RuntimeWarning, match="set aside chunks/begun") if damaged else contextlib.nullcontext():
        kept = jb.sweep({"exp3": A.exp3}, ARMS, **SMALL, store=tmp_path)
    assert short[0] == 0
    np.testing.assert_array_equal(kept.regret[0], whole.regret.sel(algorithm="exp3"))


def test_an_interrupt_in_the_middle_of_a_write_keeps_the_call(whole, tmp_path, monkeypatch, played):
    original, writes = Store.write, []

    def write(self, *args):
        writes.append(args[0])
        if len(writes) == 1:
            raise KeyboardInterrupt
        original(self, *args)

    monkeypatch.setattr(Store, "write", write)
    with pytest.raises(KeyboardInterrupt) as stopped:
        jb.sweep({"exp3": A.exp3}, ARMS, **SMALL, store=tmp_path)
    assert "the same call goes on" in stopped.value.__notes__[0] and len(chunks(tmp_path)) == 2
    played.clear()
    kept = jb.sweep({"exp3": A.exp3}, ARMS, **SMALL, store=tmp_path)
    assert not played
    np.testing.assert_array_equal(kept.regret[0], whole.regret.sel(algorithm="exp3"))


def test_what_is_under_way_at_an_interrupt_ends_at_its_next_segment_and_nothing_else_begins(monkeypatch):
    """Calls, and what compiles their programs: an interrupt that reached neither would only be answered later."""
    begun, told, runs, programs, lock, two = [], [], [], [], threading.Lock(), threading.Barrier(2)

    def play_call(task, *given, stopped, **more):
        with lock:
            begun.append(task)
            number = len(begun)
        if number <= 2:
            two.wait(60)
        if number == 1:
            raise KeyboardInterrupt
        until = time.monotonic() + 20
        while not (asked := stopped()) and time.monotonic() < until:
            time.sleep(0.01)
        told.append(asked)
        raise one_call.Interrupted

    compile_all = local._compile
    monkeypatch.setattr(local, "_cores", 2)
    monkeypatch.setattr(local, "play_call", play_call)
    monkeypatch.setattr(local, "_compile", runs.append)
    many = SMALL | {"grid": {"learning_rate": np.linspace(0.01, 0.1, 8).tolist()}}
    with pytest.raises(KeyboardInterrupt):
        jb.sweep({"exp3": A.exp3}, ARMS, **many, memory="18KB")
    [run] = runs
    assert len(run.remaining.calls) > 4 and 2 <= len(begun) <= 3  # the worker of the first may have begun another
    assert told == [True] * (len(begun) - 1)
    monkeypatch.setattr(local.LocalRun, "programs_on", lambda self, *given: programs.append(given))
    compile_all(run)
    assert not programs


def test_saves_that_others_overtook_are_forgotten(whole, tmp_path, monkeypatch, short):
    interrupted(tmp_path, monkeypatch)
    one = SMALL | {"grid": {"learning_rate": [0.05]}}
    jb.sweep({"exp3": A.exp3}, ARMS, **one, store=tmp_path)  # half of the saved call: it is computed afresh
    assert list((tmp_path / "chunks" / "begun").iterdir())
    other = SMALL | {"grid": {"learning_rate": [0.1]}}
    jb.sweep({"exp3": A.exp3}, ARMS, **other, store=tmp_path)
    assert not list((tmp_path / "chunks" / "begun").iterdir())


@contextlib.contextmanager
def small_disk(path, size):
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    if not shutil.which("mount") or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs more rights than this user has")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def remount(path, options):
    subprocess.run(["mount", "-o", f"remount,{options}", str(path)], check=True)


WIDE = SMALL | {"seeds": 200, "checkpoints": 60, "memory": "200KB"}  # calls of 32 seeds, files of 20 kB


def test_a_full_disk_costs_nothing_that_was_finished(tmp_path, played, monkeypatch):
    expected = jb.sweep(BOTH, ARMS, **WIDE)
    played.clear()
    with small_disk(tmp_path / "disk", "200k") as disk:
        with pytest.raises(ValueError, match=r"the result needs .* are free on the disk"):
            jb.sweep(BOTH, ARMS, **WIDE, store=disk / "run")
        assert not list(disk.iterdir()) and not played
        with monkeypatch.context() as patch:  # the disk fills up after it was asked
            patch.setattr(execution, "check_room", lambda *asked: None)
            with pytest.raises(OSError, match="make room and run it again, everything finished is kept"):
                jb.sweep(BOTH, ARMS, **WIDE, store=disk / "run")
        finished = {p: p.read_bytes() for p in chunks(disk / "run")}
        assert finished and not list(disk.rglob("*.part"))
        assert all(unpack(p) for p in finished)
        remount(disk, "size=2m")
        checked = prepare_sweep(BOTH, ARMS, settings_of(WIDE), memory="200KB", store=disk / "run", progress=False)
        execution.SweepRun(checked).compute()
        used = shutil.disk_usage(disk).used
        remount(disk, f"size={used + 8192}")  # the chunks fit, results.nc beside them does not
        with monkeypatch.context() as patch, pytest.raises(OSError, match=r"results\.nc .*everything finished is kept"):
            patch.setattr(execution, "check_room", lambda *asked: None)
            jb.sweep(BOTH, ARMS, **WIDE, store=disk / "run")
        assert not list(disk.rglob("*.part")) and not (disk / "run" / "results.nc").exists()
        assert all(p.read_bytes() == content for p, content in finished.items())
        before = len(played)
        remount(disk, "size=2m")
        xr.testing.assert_identical(jb.sweep(BOTH, ARMS, **WIDE, store=disk / "run"), expected)
        assert len(played) == before


def test_a_read_only_directory_is_said_at_once(tmp_path, played):
    with small_disk(tmp_path / "disk", "2m") as disk:
        jb.sweep(BOTH, ARMS, **SMALL, store=disk)
        remount(disk, "ro")
        played.clear()
        with pytest.raises(ValueError, match="cannot write there"):
            jb.sweep(BOTH, ARMS, **(SMALL | {"seeds": 80}), store=disk)
        assert not played and jb.load(disk).sizes["seed"] == 40


def test_a_finished_run_on_a_read_only_disk_is_read_plotted_and_reported(tmp_path, played, capsys):
    file = tmp_path / "run.toml"
    file.write_text(FILE.replace('"ucb1", "exp3"', '"ucb1"').partition("grid")[0])
    with small_disk(tmp_path / "disk", "4m") as disk:
        again = ["run", str(file), "--out", str(disk / "run"), "--quiet"]
        assert main(again) == 0
        remount(disk, "ro")
        played.clear()
        capsys.readouterr()
        assert main(again) == 0 and not played
        told = capsys.readouterr().out
        assert "holds this run, finished, and cannot be written" in told and "ucb1" in told
        assert main(["plot", str(disk / "run")]) == 1
        assert "--out" in capsys.readouterr().err
        assert main(["plot", str(disk / "run"), "--out", str(tmp_path / "pictures")]) == 0
        assert (tmp_path / "pictures" / "regret.png").exists()
        assert main([*again, "--seeds", "80"]) == 2 and not played  # more is wanted than is there
        assert "cannot write there" in capsys.readouterr().err


def test_a_damaged_chunk_that_cannot_be_set_aside_is_named(tmp_path, monkeypatch):
    jb.sweep(BOTH, ARMS, **SMALL, store=tmp_path)
    hurt = chunks(tmp_path)[1]
    hurt.write_bytes(b"")
    replace = Path.replace

    def refused(self, target):
        if self == hurt:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refused)
    words = rf"{hurt.name} is damaged .*Permission denied.*delete it, or make its folder writable"
    with pytest.raises(OSError, match=words):
        jb.sweep(BOTH, ARMS, **SMALL, store=tmp_path)


@pytest.mark.parametrize(("number", "advice"), [(errno.ENOSPC, "make room"), (errno.EIO, "see to the disk")])
def test_room_is_asked_for_only_where_it_is_short(tmp_path, monkeypatch, number, advice):
    jb.sweep(BOTH, ARMS, **SMALL, store=tmp_path)
    error = RuntimeError(f"h5: {os.strerror(number)}")
    monkeypatch.setattr(Results, "put_best", lambda self: (_ for _ in ()).throw(error))
    with pytest.raises(OSError, match=rf"cannot write .*results\.nc .*: {advice} and run it again"):
        jb.sweep(BOTH, ARMS, **SMALL, store=tmp_path)


def test_large_results_are_read_as_they_are_asked_for(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(dataset_file, "LAZY_BYTES", 0)
    kept = jb.sweep(BOTH, ARMS, **SMALL, store=tmp_path / "run")
    assert not kept.regret.variable._in_memory
    assert jb.summary(kept).equals(jb.summary(whole))
    assert not kept.regret.variable._in_memory  # a summary reads the horizon alone
    xr.testing.assert_identical(kept.load(), whole)
    for name in ("x.nc", "x.zarr"):
        again = jb.load(jb.save(jb.load(tmp_path / "run"), tmp_path / name))
        xr.testing.assert_identical(again.load(), whole)
    file = tmp_path / "x.zarr" / "regret" / ".zarray"
    assert json.loads(file.read_text())["chunks"] == [1, *whole.regret.shape[1:]]  # one algorithm at a time
    jb.save(whole, tmp_path / "x.zarr")  # replaces it
    xr.testing.assert_identical(jb.load(tmp_path / "x.zarr").load(), whole)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"filters": [{"id": "pickle"}], "dtype": "|O"}))
    with pytest.raises(ValueError, match="asks for a pickle"):
        jb.load(tmp_path / "x.zarr")
    monkeypatch.undo()  # a small one is written at once
    xr.testing.assert_identical(jb.load(jb.save(whole, tmp_path / "small.zarr")), whole)
    about = json.loads((tmp_path / "small.zarr" / "regret" / ".zarray").read_text())
    assert about["chunks"] == list(whole.regret.shape)
    assert not [p for p in tmp_path.iterdir() if "part" in p.name]


def test_a_merge_is_a_stream(tmp_path):
    """Its memory does not grow with the number of lanes."""
    peaks, sizes = [], []
    for seeds in (2000, 8000):
        settings = settings_of(SMALL) | {"seeds": seeds, "checkpoints": 60}
        made = execution.SweepRun(prepare_sweep(BOTH, ARMS, settings, store=tmp_path / str(seeds), progress=False))
        made.compute()
        tracemalloc.start()
        assert made.merge(made.sweep.store)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        sizes.append((tmp_path / str(seeds) / "results.nc").stat().st_size)
    assert sizes[1] > 3 * sizes[0] and peaks[1] < 1.2 * peaks[0] + 100_000 < sizes[1]


def test_slabs_are_all_values_in_order():
    rng = np.random.default_rng(0)
    for shape in ((3,), (4, 5, 6), (1, 2000), (2000, 1), (2, 1, 300)):
        x = xr.DataArray(rng.random(shape))
        for most in (16, 100, 1000, 10**6):
            pieces = list(dataset_file.slabs(x, most))
            np.testing.assert_array_equal(np.concatenate([p.ravel() for p in pieces]), x.values.ravel())
            assert max(p.nbytes for p in pieces) <= max(most, 8)


def test_save_replaces_results_only(whole, tmp_path):
    (tmp_path / "mine.zarr").mkdir()
    (tmp_path / "mine.zarr" / "thesis.tex").write_text("years")
    (tmp_path / "notes.nc").write_text("mine")
    for name in ("mine.zarr", "notes.nc"):
        with pytest.raises(ValueError, match="not a result that could be replaced"):
            jb.save(whole, tmp_path / name)
    assert (tmp_path / "mine.zarr" / "thesis.tex").exists() and (tmp_path / "notes.nc").read_text() == "mine"


def test_files_of_a_key_come_by_their_seeds(tmp_path, monkeypatch):
    store, key, listed = Store(tmp_path), "ab" * 32, os.scandir
    store.prepare()
    (store.home / "ab").mkdir()
    for first in (100, 20, 3):
        (store.home / "ab" / f"{key}.{first}-{first + 1}.npz").touch()
    for reverse in (False, True):  # whatever the disk's order
        by_name = lambda folder, turn=reverse: sorted(listed(folder), key=lambda entry: entry.name, reverse=turn)
        monkeypatch.setattr(os, "scandir", by_name)
        assert [chunk.first for chunk in store.chunks([key])[key]] == [3, 20, 100]


def test_load_says_what_is_missing(tmp_path):
    with pytest.raises(ValueError, match=r"no results\.nc there"):
        jb.load(tmp_path)
    with pytest.raises(ValueError, match="no such file"):
        jb.load(tmp_path / "nowhere.nc")
    Store(tmp_path / "begun").prepare()
    with pytest.raises(ValueError, match=r"whole or in shards, and its results\.nc is not written yet"):
        jb.load(tmp_path / "begun")
    (tmp_path / "bad.nc").write_text("no")
    with pytest.raises(ValueError, match="not a readable result"):
        jb.load(tmp_path / "bad.nc")


def test_what_a_node_is_sent_and_which_store_it_sees(tmp_path):
    ray_cluster = pytest.importorskip("jaxbandits.sweeps.engines.ray_cluster")
    a, b, c, d = (lambda i=i: i for i in range(4))
    assert [*ray_cluster._functions({"x": [partial(a, b, k=partial(c))], "y": (d, 0.5)})] == [a, b, c, d]
    (made := Store(tmp_path)).prepare()
    token, see = made.token, ray_cluster._store.__wrapped__
    assert see(str(tmp_path), token, 8).block == 8 and see(str(tmp_path), "of another disk", 8) is None
    assert see(str(tmp_path / "nowhere"), token, 8) is None


@pytest.mark.parametrize("name", [".zarray", ".zmetadata", "zarr.json"])
@pytest.mark.parametrize("asks", [{"id": "pickle"}, {"name": "numcodecs.pickle"}])
def test_no_file_of_a_zarr_may_ask_for_a_pickle(tmp_path, name, asks):
    (tmp_path / "regret").mkdir()
    for content, refused in (({"a": [{"id": "blosc"}, "pickle"]}, False), ({"a": {"b": [1, asks]}}, True)):
        (tmp_path / "regret" / name).write_text(json.dumps(content))
        with pytest.raises(ValueError, match="asks for a pickle") if refused else contextlib.nullcontext():
            dataset_file._refuse_pickles(tmp_path)


def test_seconds_of_all_processes_add_up(tmp_path):
    Store(tmp_path).prepare()
    for ago in (10.0, 20.0):
        one = Store(tmp_path, began=time.perf_counter() - ago)
        one.note_seconds()
        one.note_seconds(last=True)  # in place of what it wrote before
    (one.home / "spent" / "killed.txt").write_text("")
    assert 30.0 <= Store(tmp_path).seconds < 35.0


def test_a_group_that_was_not_timed_is_as_fast_as_the_geometric_mean_of_the_others():
    """Seconds an operation are 2 / 1 and 2 / 4, whose geometric mean is 1."""
    left = object.__new__(Remaining)
    left._operations, left._plays = [1, 4, 2], dict.fromkeys(range(3), 10)
    left._tasted, left._timed = {0: 2.0, 1: 9.0, 2: None}, {1: (4, 8.0)}  # what was played counts before a taste
    assert left._speeds() == pytest.approx({0: 2.0, 1: 2.0, 2: 2.0})
