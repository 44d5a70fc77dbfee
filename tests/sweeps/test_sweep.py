"""`sweep`: what it computes does not depend on how; keys, fill-in and errors."""

import gc
import json
import subprocess
import sys
import threading
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxbandits as jb
from jaxbandits import catalogue, simulator
from jaxbandits.lane_faults import Faults
from jaxbandits.protocol import Algorithm, Guarantee, Program, Span
from jaxbandits.recorder import Record, Window
from jaxbandits.searching.space import dimensions_of
from jaxbandits.sweeps.arguments import checkpoint_times
from jaxbandits.sweeps.compilation import compiled as compilation
from jaxbandits.sweeps.compilation.compiled import functions_of_group
from jaxbandits.sweeps.engines import contract_faults, local
from jaxbandits.sweeps.engines.calls import Machine, add_lane_shapes, calls_of, default_memory, seeds_of_shard
from jaxbandits.sweeps.engines.contract_faults import Fault
from jaxbandits.sweeps.engines.one_lane import watch_lane
from jaxbandits.sweeps.plan import plan, stack_cases
from jaxbandits.sweeps.simulate import _regret, history_of_windows
from jaxbandits.sweeps.sweep import parse_memory

ARMS = jb.environments.bernoulli_arms(means=[0.2, 0.5, 0.8])
SMALL = {"horizon": 120, "seeds": 40, "checkpoints": 12, "progress": False}
EXP3 = partial(jb.algorithms.exp3, learning_rate=0.05, mixing=0.1)


def bits(ds):
    return {name: np.ascontiguousarray(ds[name].values).tobytes() for name in sorted(ds.data_vars)}


def laid_out(algorithms=None, **changes):
    settings = {"horizon": 120, "seeds": 40, "checkpoints": 12} | changes
    return plan(algorithms or {"ucb1": jb.algorithms.ucb1, "exp3": EXP3}, ARMS, **settings)


@pytest.fixture(scope="module")
def whole():
    return jb.sweep({"ucb1": jb.algorithms.ucb1, "exp3": EXP3}, ARMS, **SMALL)


def test_nothing_slow_is_imported_before_it_is_needed():
    slow = {"h5netcdf", "matplotlib", "optuna", "pandas", "scipy", "xarray"}
    script = "import sys, jaxbandits as jb; jb.sweep; print(*{name.split('.')[0] for name in sys.modules})"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "jax" in found and not slow & set(found)


WITHOUT = """
import sys
for name in ("h5netcdf", "h5py", "shtab"):
    sys.modules[name] = None  # its import fails, as where it is not installed
import jaxbandits as jb
arms = jb.environments.bernoulli_arms(means=[0.2, 0.8])
print(jb.sweep(jb.algorithms.ucb1, arms, horizon=20, seeds=16, progress=False).sizes["seed"])
"""


def test_a_sweep_in_memory_writes_no_file_and_needs_no_library_for_files():
    found = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert found.stdout == "16\n", found.stderr


def test_shapes_and_names(whole):
    assert dict(whole.sizes) == {"algorithm": 2, "seed": 40, "t": 12, "arm": 3}
    assert whole.regret.dtype == np.float64 and whole.pulls.dtype == np.int32 and whole.t.dtype == np.int64
    assert whole.regret.dims == ("algorithm", "seed", "t")
    assert np.all(whole.pulls.sum("arm") == 120)
    np.testing.assert_allclose(whole.regret[..., -1], whole.pulls.values @ np.array([0.6, 0.3, 0.0]), rtol=1e-12)
    assert np.all(np.diff(whole.regret.values, axis=-1) >= 0)
    assert whole.attrs["schema_version"] == 1 and json.loads(whole.attrs["config"])["horizon"] == 120


BUDGETS = ["12KB", "24KB", "40KB", None]


@pytest.mark.parametrize("memory", BUDGETS)
@pytest.mark.parametrize("cores", [1, 2])
def test_chunks_and_cores_change_no_bit(whole, memory, cores, monkeypatch):
    monkeypatch.setattr(local, "_cores", None)  # put back at the end
    jb.cores(cores)
    again = jb.sweep({"ucb1": jb.algorithms.ucb1, "exp3": EXP3}, ARMS, **SMALL, memory=memory)
    assert bits(again) == bits(whole)


def test_chunk_sizes_really_differ():
    """The budgets above give chunks of 16, 32 and 64 lanes."""
    wanted = seeds_of_shard(laid_out())
    machines = {m: Machine([], 1, "cpu", parse_memory(m) or default_memory("cpu")) for m in BUDGETS}
    lanes = {x: {task.lanes for task in calls_of(add_lane_shapes(laid_out()), wanted, m)} for x, m in machines.items()}
    assert lanes == {"12KB": {16}, "24KB": {32}, "40KB": {64}, None: {64}}


@pytest.mark.parametrize(("workers", "lanes"), [(1, 2048), (2, 1024), (4, 512), (8, 512)])
def test_each_of_few_groups_is_cut_for_all_cores(workers, lanes):
    """One of them may take longer than all others; calls of fewer lanes would be slower."""
    four = {"ucb1": jb.algorithms.ucb1, "moss": jb.algorithms.moss, "thompson": jb.algorithms.thompson, "exp3": EXP3}
    groups = add_lane_shapes(laid_out(four, seeds=2048))
    found = calls_of(groups, seeds_of_shard(groups), Machine([], workers, "cpu", 10**9))
    assert {call.lanes for call in found} == {lanes} and len(found) == 4 * 2048 // lanes


def test_a_lane_is_the_same_whatever_else_runs(whole):
    alone = jb.sweep({"exp3": EXP3}, ARMS, **(SMALL | {"seeds": range(7, 8)}))
    np.testing.assert_array_equal(alone.regret[0, 0], whole.regret.sel(algorithm="exp3", seed=7))
    far = jb.sweep({"exp3": EXP3}, ARMS, **(SMALL | {"seeds": range(5, 29)}))
    np.testing.assert_array_equal(far.regret[0], whole.regret.sel(algorithm="exp3", seed=range(5, 29)))
    one = jb.simulate(EXP3(num_arms=3, horizon=120), ARMS, seed=7, checkpoints=12)
    np.testing.assert_array_equal(one.regret, alone.regret[0, 0])
    np.testing.assert_array_equal(one.pulls, alone.pulls[0, 0])


@pytest.mark.compiles(24)  # what `simulate` puts together is computed operation by operation
def test_simulate_traces_and_keeps_history():
    algorithm = EXP3(num_arms=3, horizon=120)
    seeds = np.arange(4, dtype=np.uint32)
    regrets = jax.vmap(lambda s: jb.simulate(algorithm, ARMS, seed=s, checkpoints=12).regret)(seeds)
    run = jb.simulate(algorithm, ARMS, seed=2, checkpoints=12, history=True)
    np.testing.assert_allclose(regrets[2], run.regret, rtol=1e-5)
    np.testing.assert_array_equal(np.bincount(run.history.action, minlength=3), run.pulls)
    assert run.history.t.tolist() == list(range(1, 121)) and set(run.history.reward) <= {0.0, 1.0}


def test_history_and_counts_see_what_the_end_of_a_span_does():
    """Two spans of six plays of the arm that is the state; the end of the first adds one, that of the second none."""

    def act(params, state, draws, t, context):
        return jnp.broadcast_to(state, t.shape), None, ()

    program = Program(
        lambda params, draws: jnp.int32(0), act, lambda params, note, draws, t, context, action, reward, play: reward,
        lambda params, state, draws, t, note, message, used: (state, ()),
        close=lambda params, state, draws, t: state + 1,
    )  # fmt: skip
    spans = Span(2, 3, close=True), Span(2, 3)
    algorithm = Algorithm(program, spans, (), Guarantee(), ("steps", 1, ()), {"horizon": 12})
    run = jb.simulate(algorithm, ARMS, checkpoints=1, history=True)
    assert run.history.action.tolist() == [0] * 6 + [1] * 6 and run.pulls.tolist() == [6, 6, 0] and run.state == 1
    parts = simulator.parts_of(algorithm, ARMS, None, None, "float32")
    case, _ = stack_cases([simulator.case_of(algorithm, ARMS)], "float32")
    pieces = [*watch_lane(parts, spans, case, np.uint32(0), np.array([12], np.int32), most=2)]
    assert np.concatenate([windows.action.ravel() for _, windows in pieces]).tolist() == [0] * 6 + [1] * 6
    assert [int(lane.algorithm) for lane, _ in pieces] == [0, 1, 1, 1]  # once all of its windows are played


def test_points_that_hardly_differ_are_two():
    near = [(np.float64(1e-9),), (np.float64(8e-9),)], [(np.array([1.0, 2.0]),), (np.array([1.0, 2.000004]),)]
    for first, second in near:
        (numbers,), (mark,) = stack_cases([first, second], "float64")
        np.testing.assert_array_equal(numbers, [first[0], second[0]])
        assert mark == 0
    made, mixing = partial(jb.algorithms.exp3, learning_rate=0.05), [0.1, 0.1 + 1e-9]
    assert [cell.algorithm.config["mixing"] for cell in laid_out(made, grid={"mixing": mixing}).cells] == mixing


def test_infinite_regret_is_a_fault_from_its_first_checkpoint():
    regret = np.zeros((3, 2, 4))
    regret[1, 1, 2:] = regret[2, 1, 3] = np.inf
    found = contract_faults.find_faults((4, 5), 10, Faults((), (), (), ()), regret, None, np.array([1, 5, 20, 60]))
    assert found == (Fault(5, "regret", 11, 20, 2),)


def test_grid_points_and_tied_keys_agree():
    common = SMALL | {"seeds": 16}
    grid = jb.sweep(jb.algorithms.exp3, ARMS, **common, grid={"learning_rate": [0.02, 0.05], "mixing": [0.1, 0.2]})
    assert grid.regret.dims == ("algorithm", "learning_rate", "mixing", "seed", "t")
    points = jb.sweep(
        jb.algorithms.exp3, ARMS, **common,
        points=[{"learning_rate": 0.05, "mixing": 0.2}, {"learning_rate": 0.02, "mixing": 0.1}],
    )  # fmt: skip
    np.testing.assert_array_equal(points.regret[0, 0], grid.regret[0, 1, 1])
    np.testing.assert_array_equal(points.regret[0, 1], grid.regret[0, 0, 0])
    tied = jb.sweep(jb.algorithms.exp3, ARMS, **common, grid={("learning_rate", "mixing"): [0.05, 0.1]})
    assert tied.regret.dims == ("algorithm", "learning_rate", "seed", "t")
    pair = jb.sweep(partial(jb.algorithms.exp3, learning_rate=0.1, mixing=0.1), ARMS, **common)
    np.testing.assert_array_equal(tied.regret[0, 1], pair.regret[0])


def test_arms_tied_to_a_number(tmp_path):
    """Rows of an array and a number: their configuration is written, and each row is the sweep of its own values."""
    rows = {"near": ([0.4, 0.5], 0.1), "far": ([0.1, 0.9], 0.3)}
    common = SMALL | {"seeds": 8}
    environment = jb.environments.bernoulli_arms
    exp3 = partial(jb.algorithms.exp3, mixing=0.1)
    grid = {("environment.means", "learning_rate"): rows}
    ds = jb.sweep(exp3, environment, **common, grid=grid, store=tmp_path)
    assert ds["environment.means"].values.tolist() == ["near", "far"]
    for row, (means, rate) in zip(ds.regret[0], rows.values(), strict=True):
        alone = jb.sweep(partial(exp3, learning_rate=rate), environment(means=means), **common)
        np.testing.assert_array_equal(row, alone.regret[0])


@pytest.mark.dealt(3)
def test_code_is_let_go_where_memory_maps_run_out(monkeypatch):
    """A process that asks for more memory maps than the system gives it dies."""
    common = SMALL | {"seeds": 8}
    taken, limit = compilation.memory_maps()
    assert sys.platform != "linux" or 100 < taken < limit
    jb.sweep({"ucb1": jb.algorithms.ucb1, "exp3": EXP3}, ARMS, **common)
    before = jb.sweep(EXP3, ARMS, **common)
    assert functions_of_group.cache_info().currsize >= 2
    monkeypatch.setattr(compilation, "memory_maps", lambda: (40_000, 65_530))
    jb.sweep(jb.algorithms.moss, ARMS, **common)
    assert functions_of_group.cache_info().currsize == 1
    np.testing.assert_array_equal(jb.sweep(EXP3, ARMS, **common).regret, before.regret)


def test_points_alike_to_an_algorithm_are_computed_once(tmp_path):
    points = [{"learning_rate": x, "bonus_scale": y} for x in (0.02, 0.05) for y in (0.5, 1.0, 2.0)]
    made = {"exp3": partial(jb.algorithms.exp3, mixing=0.1), "ucb1": jb.algorithms.ucb1}
    ds = jb.sweep(made, ARMS, **SMALL | {"seeds": 8}, points=points, store=tmp_path)
    assert len(list(tmp_path.glob("**/*.npz"))) == 2 + 3
    assert ds.regret.dims == ("algorithm", "point", "seed", "t") and ds["bonus_scale"].dims == ("point",)
    assert ds["learning_rate"].values.tolist() == [point["learning_rate"] for point in points]
    for label, key in (("exp3", "learning_rate"), ("ucb1", "bonus_scale")):
        assert len(np.unique(ds.regret.sel(algorithm=label)[:, 0, -1])) > 1
        for value in {point[key] for point in points}:
            rows = ds.regret.sel(algorithm=label)[[i for i, point in enumerate(points) if point[key] == value]]
            np.testing.assert_array_equal(rows, np.broadcast_to(rows[0], rows.shape))


def test_keys_address_parts_and_constants_are_repeated():
    grid = {"mixing": [0.1, 0.3], "environment.means": {"easy": [0.1, 0.2, 0.9], "hard": [0.5, 0.5, 0.6]}}
    made = {"ucb1": jb.algorithms.ucb1, "exp3": partial(jb.algorithms.exp3, learning_rate=0.05)}
    ds = jb.sweep(made, ARMS, **SMALL, grid=grid)
    assert ds["environment.means"].values.tolist() == ["easy", "hard"]
    assert json.loads(ds.attrs["constant_along"]) == {"ucb1": ["mixing"], "exp3": []}
    ucb1 = ds.regret.sel(algorithm="ucb1")
    np.testing.assert_array_equal(ucb1[0], ucb1[1])
    assert not np.array_equal(ucb1[0, 0], ucb1[0, 1])
    grid = {"a.mixing": [0.1, 0.3], "learning_rate": [0.05]}
    labelled = jb.sweep({"a": EXP3.func, "b": EXP3.func}, ARMS, **SMALL, grid=grid)
    assert json.loads(labelled.attrs["constant_along"]) == {"a": [], "b": ["a.mixing"]}


def test_a_static_key_takes_a_program_each():
    means = {"two": [0.1, 0.9], "three": [0.1, 0.5, 0.9]}
    ds = jb.sweep("ucb1", partial(jb.environments.bernoulli_arms), **SMALL, grid={"environment.means": means})
    assert ds.pulls.shape[-1] == 3 and np.all(ds.pulls.sel({"environment.means": "two"})[..., 2] == 0)


def test_a_list_of_horizons():
    ds = jb.sweep(jb.algorithms.ucb1, ARMS, **(SMALL | {"horizon": [50, 120]}))
    assert ds.regret.dims == ("algorithm", "horizon", "seed", "t")
    alone = jb.sweep(jb.algorithms.ucb1, ARMS, **(SMALL | {"horizon": 50}))
    np.testing.assert_array_equal(ds.regret.sel(horizon=50, t=alone.t)[0], alone.regret[0])
    assert np.isnan(ds.regret.sel(horizon=50, t=120)).all() and not np.isnan(ds.regret.sel(horizon=120, t=120)).any()


def test_one_program_serves_a_grid_and_a_horizon():
    """Parameters are data: new values and new horizons compile nothing."""
    settings = {"seeds": 16, "progress": False, "checkpoints": [10, 50]}
    grid = {"mixing": [0.1, 0.2, 0.3]}
    maker = partial(jb.algorithms.exp3, learning_rate=0.05)
    jb.sweep(maker, ARMS, horizon=100, grid=grid, **settings)
    known = functions_of_group.cache_info().misses
    programs = programs_in_memory()
    jb.sweep(maker, ARMS, horizon=100, grid={"mixing": [0.15, 0.25, 0.35]}, **settings)
    jb.sweep(maker, ARMS, horizon=130, grid=grid, **settings)
    assert functions_of_group.cache_info().misses == known and programs_in_memory() == programs


def test_one_program_serves_every_batch_length_of_a_window():
    """The batch length is data: other epsilons, learning rates and horizons of equal windows compile nothing."""
    losses = jb.environments.bernoulli_losses(means=[0.3, 0.5, 0.6])
    maker = partial(jb.algorithms.private_batched, base=partial(jb.algorithms.exp3, mixing=0.1))
    settings = {"seeds": 16, "progress": False, "checkpoints": [10, 60]}

    def run(horizon, epsilon, rate):
        grid = {"epsilon": [epsilon], "base.learning_rate": [rate]}
        return jb.sweep(maker, losses, horizon=horizon, grid=grid, **settings)

    run(100, 1 / 20, 0.05)
    programs = programs_in_memory()
    run(100, 1 / 30, 0.05)
    run(100, 1 / 20, 0.01)
    run(140, 1 / 30, 0.02)
    assert programs_in_memory() == programs
    epsilons = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, float("inf"))
    made = [jb.algorithms.private_batched(num_arms=3, horizon=1000, epsilon=epsilon) for epsilon in epsilons]
    assert len({id(algorithm.program) for algorithm in made}) == 1
    slots = sum(s.repeats * -(-s.length // s.slots) * s.slots for algorithm in made[:7] for s in algorithm.schedule)
    assert 7 * 1000 / slots >= 0.9  # useful plays / executed slots


def programs_in_memory():
    return sum(len(x.programs) for x in gc.get_objects() if isinstance(x, compilation.Compiled))


def test_float64_agrees_with_float32_in_law():
    low = jb.sweep(EXP3, ARMS, **(SMALL | {"seeds": 200}))
    high = jb.sweep(EXP3, ARMS, **(SMALL | {"seeds": 200}), dtype="float64")
    difference = (low.regret - high.regret)[0, :, -1]
    assert abs(float(difference.mean())) < 4 * float(low.regret[0, :, -1].std()) / np.sqrt(200)


@pytest.mark.parametrize("horizon", [1, 5, 200, 1000, 10_000, 10**6, 10**9])
def test_checkpoints_are_as_many_as_asked(horizon, number=200):
    times = checkpoint_times(horizon, number)
    assert len(times) == min(number, horizon) and times[-1] == horizon and times[0] >= 1 and np.all(np.diff(times) > 0)


def test_an_algorithms_error_comes_out(monkeypatch):
    """An error in a worker thread reaches the caller."""
    broken = ARMS._replace(facts={"num_arms": 3}, remake=lambda: broken)
    with pytest.raises(ValueError, match="means"):
        jb.sweep(jb.algorithms.ucb1, broken, **SMALL)
    monkeypatch.setattr("jaxbandits.sweeps.engines.one_call.regret_of", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        jb.sweep(jb.algorithms.ucb1, ARMS, **SMALL)


def test_a_users_own_parts_are_taken_as_they_are():
    """Parts without a factory are neither dropped nor called."""
    made = jb.adversaries.huber(corruption=1.0, value=0.0)
    own = made._replace(remake=None, config={})
    arms = ARMS._replace(remake=None)
    regret = [jb.sweep("ucb1", arms, reward_adversary=x, **SMALL).regret.values for x in (None, made, own)]
    np.testing.assert_array_equal(regret[1], regret[2])
    assert not np.array_equal(regret[0], regret[1])


def test_a_base_on_the_grid_takes_its_own_keys_and_labels_may_hold_dots():
    a = jb.algorithms
    ds = jb.sweep(
        partial(a.private_batched, epsilon=0.2), ARMS, **SMALL,
        grid={"base": {"one": a.htinf, "other": partial(a.htinf, tail_index=1.5)}, "base.tail_scale": [0.05, 50.0]},
    )  # fmt: skip
    assert len(set(ds.regret.isel(t=-1).mean("seed").values.ravel().tolist())) == 4
    ds = jb.sweep({"UCB 0.5": jb.algorithms.ucb1}, ARMS, **SMALL, grid={"UCB 0.5.bonus_scale": [0.5, 1.0]})
    assert not np.array_equal(ds.regret[0, 0], ds.regret[0, 1])


def test_simulate_traces_params():
    environment = jb.environments.contextual_linear(num_arms=4, dim=3)
    algorithm = jb.algorithms.online_ucb(num_arms=4, dim=3, horizon=40, epsilon=4.0, learner="ogd")

    def final(radius_scale):
        params = algorithm.params._replace(radius_scale=radius_scale)
        return jb.simulate(algorithm._replace(params=params), environment, seed=3).regret[-1]

    scales = np.array([0.0, 0.1, 2.0])
    expected = [final(scale) for scale in scales]
    np.testing.assert_allclose(jax.vmap(final)(scales), expected, rtol=1e-5)
    assert len(set(expected)) == 3
    with pytest.raises(ValueError, match="environment and the adversaries need numbers"):
        jax.vmap(lambda x: jb.simulate(algorithm, environment._replace(params=(x,))).regret)(scales)


def test_arrays_without_axes_are_numbers():
    """Of JAX and of NumPy, wherever a number goes: the same cells as of Python's."""
    a = jb.algorithms
    one = {
        "algorithms": [partial(a.ldp_ucb, epsilon=jnp.float32(0.5)), "ucb1"],
        "horizon": np.array(20),
        "seeds": jnp.int32(3),
    }
    one |= {"checkpoints": np.array(4), "grid": {"bonus_scale": jnp.linspace(0.5, 1.0, 3)}, "memory": np.array(1e9)}
    other = {"algorithms": [partial(a.ldp_ucb, epsilon=0.5), "ucb1"], "horizon": 20, "seeds": 3, "checkpoints": 4}
    other |= {"grid": {"bonus_scale": [0.5, 0.75, 1]}}
    both = [jb.sweep(environment=ARMS, progress=False, **given) for given in (one, other)]
    xr.testing.assert_identical(*(ds.drop_attrs() for ds in both))
    assert json.loads(both[0].attrs["config"]) == json.loads(both[1].attrs["config"])
    config = a.ucb1(num_arms=np.array(3), horizon=jnp.int32(9)).config
    assert config == a.ucb1(num_arms=3, horizon=9).config and type(config["horizon"]) is int
    values = dimensions_of({"bonus_scale": jnp.array([0.5, 1.0]), "window": [np.array(8), 16]})
    assert [[type(x) for x in dimension.values] for dimension in values] == [[float, float], [int, int]]


@pytest.mark.parametrize("stored", [False, True])
def test_who_looks_on_sees_every_run_once(tmp_path, stored):
    """In this thread, with the numbers of the result, the places in between empty; what a store has is not shown."""
    seen, settings = [], {"horizon": [16, 24], "checkpoints": 3, "memory": "60KB", "progress": False}
    settings |= {"grid": {"bonus_scale": [0.5, 1.0, 2.0]}, "store": tmp_path / "run" if stored else None}
    looker = lambda *told: seen.append((*told, threading.current_thread()))
    whole = jb.sweep(["ucb1", "uniform"], ARMS, seeds=40, on_chunk=looker, **settings)
    assert len(seen) > 4 and {thread for *_, thread in seen} == {threading.current_thread()}
    found = xr.zeros_like(whole.regret)
    for ds, _, _, _ in seen:
        there = whole.regret.sel(algorithm=ds.algorithm, bonus_scale=ds.bonus_scale, horizon=ds.horizon, seed=ds.seed)
        there = there.sel(t=ds.t)
        assert (ds.identity == there.identity).all() and ds.epsilon_spent.equals(there.epsilon_spent)
        assert ds.regret.notnull().any() and (ds.regret.isnull() | (ds.regret == there)).all()
        assert ds.attrs["config"] == whole.attrs["config"] and set(ds.data_vars) == set(whole.data_vars)
        found += ds.regret.notnull().reindex_like(found, fill_value=False).astype(float)
    np.testing.assert_array_equal(found, whole.regret.notnull())
    lanes, seconds = [told for _, told, _, _ in seen], [told for _, _, told, _ in seen]
    assert lanes == sorted(lanes) and lanes[-1] == 40 * (2 * 3 + 2) and seconds == sorted(seconds) and seconds[0] > 0
    again = jb.sweep(["ucb1", "uniform"], ARMS, seeds=40, on_chunk=looker, **settings)
    assert len(seen) == (1 + (not stored)) * len(lanes) and again.identical(whole)


def test_who_looks_on_and_fails_is_told_once():
    calls = []

    def fails(*told):
        calls.append(told)
        raise KeyError("no room")

    settings = {"horizon": 16, "seeds": 40, "memory": "20KB", "progress": False, "checkpoints": 3}
    with pytest.warns(RuntimeWarning, match=r"on_chunk fails with KeyError: 'no room': it is not called again") as told:
        ds = jb.sweep("ucb1", ARMS, on_chunk=fails, **settings)
    assert len(calls) == len(told) == 1 and ds.identical(jb.sweep("ucb1", ARMS, **settings))
    with pytest.raises(ValueError, match=r"on_chunk = 3 must be a function of \(dataset, lanes_done, seconds\)"):
        jb.sweep("ucb1", ARMS, on_chunk=3, **settings)


def test_data_of_a_built_environment_are_looked_at_once(recwarn):
    features = np.column_stack([np.ones(12), np.arange(12.0) ** 2])  # one says nothing
    rows = jb.environments.classification(features=features, labels=np.arange(12) % 2)
    jb.sweep("ucb1", rows, horizon=9, seeds=2, progress=False)
    assert len([x for x in recwarn if "the same in every row" in str(x.message)]) == 1


def test_simulate_with_a_seeded_baseline():
    algorithm, rows = jb.algorithms.exp3(num_arms=3, horizon=40), catalogue.rows()
    one = jb.simulate(algorithm, rows, seed=np.uint32(3), checkpoints=4)
    ds = jb.sweep(jb.algorithms.exp3, rows, horizon=40, seeds=8, checkpoints=4, progress=False)
    np.testing.assert_array_equal(one.regret, ds.regret[0, 3])
    later = jb.sweep(jb.algorithms.exp3, rows, horizon=40, seeds=range(3, 11), checkpoints=4, progress=False)
    np.testing.assert_array_equal(later.regret.sel(seed=range(3, 8)), ds.regret.sel(seed=range(3, 8)))
    with pytest.raises(ValueError, match="depends on the seed"):
        jax.vmap(lambda s: jb.simulate(algorithm, rows, seed=s).regret)(np.arange(2, dtype=np.uint32))


def test_a_context_that_all_seeds_share_is_not_counted_for_each():
    """Advice that does not depend on the seed is one array for a whole call: it must not make calls small."""

    def context(name):
        example = catalogue.EVERYTHING[name]
        laid_out = plan({"x": example.algorithm}, example.environment, horizon=20, seeds=8, checkpoints=4)
        return add_lane_shapes(laid_out).groups[0].shape.context

    assert context("rotating_experts") == 0 and context("linucb") > 0


def test_what_is_said_of_faults_of_lanes_by_hand(monkeypatch):
    """Of two cells of one label and one of another: each kind once, with its first lane; of breaches the first."""
    monkeypatch.setattr(contract_faults, "_witness", lambda cell, fault, *_: (fault.play, 8))
    parts = {
        "algorithm": SimpleNamespace(program=SimpleNamespace(encode=None, update=None)),
        "environment": SimpleNamespace(world=SimpleNamespace(reward=None, num_arms=3), facts={}),
    }
    cells = [SimpleNamespace(label=label, horizon=99, **parts) for label in ("one", "two", "two")]
    faults = [
        Fault(2, "reward", 2, 4, 1), Fault(1, "reward", 7, 3, 1000), Fault(0, "reward", 5, 9, 1),
        Fault(2, "regret", 4, 6, 1), Fault(1, "regret", 9, 20, 11),
        Fault(0, "pulls", 3, 99, 2), Fault(0, "action", 4, 6, 1),
    ]  # fmt: skip
    with pytest.warns(UserWarning) as said:
        error = contract_faults.verdict(cells, {99: None}, "float32", faults, stacklevel=1)
    assert [str(one.message) for one in said] == [
        "one: the environment pays NaN from play 9 on (seed 5; 1 lane in all)",
        "two: the environment pays NaN from play 3 on (seed 7; 1,001 lanes in all)",
    ]
    assert str(error) == (
        "one played arm 8 at play 6; arms are 0..2 (seed 4; nothing of it is kept); two's regret is not finite at play "
        "20, where it played arm 8 (seed 9, the first of 12 lanes; nothing of it is kept)"
    )
    assert contract_faults.verdict(cells, {99: None}, "float32", [], stacklevel=1) is None


@pytest.mark.parametrize("traced", [True, False])
def test_regret_is_what_was_lost_beyond_the_best_arm(traced):
    world = SimpleNamespace(baseline=lambda params, seed, times: np.array([1.0, 2.5]))
    record = Record((), (), (), (np.float32([2, 5]), np.float32([0, 0.25])))
    parts = SimpleNamespace(world=world, dtype=np.float32)
    found = _regret(record, SimpleNamespace(params=()), parts, 0, np.array([3, 9]), traced)
    assert found.tolist() == [1.0, 2.75]


def test_a_history_marks_plays_where_something_is_traced_and_cuts_where_nothing_is():
    """Three windows of three plays of two agents: of the second one play is made, of the third none."""
    play = np.array([[1, 1, 1], [1, 0, 0], [0, 0, 0]], bool)
    action, t = np.arange(18).reshape(3, 3, 2), np.arange(1, 10).reshape(3, 3)
    window = Window(
        t=t, play=play, used=np.array([3, 1, 0]), action=action, reward=action / 2, message=np.array([10, 20, 30]),
        released=(), arm=None, regret=None,
    )  # fmt: skip
    whole, made = history_of_windows([window], True), history_of_windows([window], False)
    assert whole.t.tolist() == list(range(1, 10)) and whole.play.tolist() == [True] * 4 + [False] * 5
    assert whole.action.tolist() == action.reshape(9, 2).tolist() and whole.message.tolist() == [10, 20, 30]
    assert made.t.tolist() == [1, 2, 3, 4] and made.play.all() and made.message.tolist() == [10, 20]
    assert made.reward.tolist() == (action.reshape(9, 2)[:4] / 2).tolist()


def test_one_run_is_no_longer_than_its_environment():
    ends = ARMS._replace(facts={**ARMS.facts, "max_horizon": 3})
    for algorithm in (partial(jb.algorithms.ucb1, horizon=4), jb.algorithms.ucb1(num_arms=3, horizon=4)):
        with pytest.raises(ValueError, match="horizon = 4 is longer than the environment's 3 plays"):
            jb.simulate(algorithm, ends)
