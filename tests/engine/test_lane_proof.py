"""Lanes stay apart: every case by a walk over its batched programs (`lane_proof`), and what the walk must find.

What the walk excepts is played here, and every case beside the lane alone in `test_contract`.
"""

import itertools
from functools import partial
from importlib import import_module

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import KINDS, programs_of, untraced
from dealt import dealt
from jax import lax
from lane_proof import Proof, mixing
from lane_rules import Place, reshaped

from jaxbandits import catalogue
from jaxbandits.checking.subject import Subject
from jaxbandits.numerics import cond_any, dot, fixed_sum, lanes_last, materialize
from jaxbandits.numerics.device_forms import lane_kernel
from jaxbandits.numerics.few import at_the_few
from jaxbandits.recorder import Record
from jaxbandits.simulator import diagnoses
from jaxbandits.spans import segment
from jaxbandits.sweeps.compilation.compiled import Compiled
from jaxbandits.sweeps.compilation.settings import settings_of
from jaxbandits.sweeps.engines.calls import LEAST_LANES
from jaxbandits.sweeps.engines.one_call import programs_of_calls

filters = import_module("jaxbandits.estimators.spectral_filter")  # the package has a function of that name
LANES, POINTS = LEAST_LANES, 2
FEW, ROWS = "at_the_few", "rows by the lane's number"
COUNTED = "some lane: compiled.py Compiled.__init__.advance.busy"  # spans whose windows the algorithm cuts
PROJECTED = "some lane: project_ellipsoid.py _until_there.<lambda>"
# What playing has to show: these cases, and one of those whose spans are not full.
EXCEPTED = {
    "kl_ucb": {FEW},
    "ftpl": {FEW},
    "adac_oful": {FEW},
    "online_ucb": {FEW},
    "hvt_linucb": {FEW, PROJECTED},
    "robust_oful": {FEW, PROJECTED},
    "prm_elimination": {"some lane: fusion.py cond_any._"},
    "robust_elimination": {
        ROWS, "some lane: spectral_filter.py whole_batch.<lambda>",
        "some lane: _top_eigenvector.py _square_until_pure.some_impure",
    },
}  # fmt: skip


def subject_of(name) -> Subject:
    example = catalogue.EVERYTHING[name]
    attacks = example.reward_adversary, example.message_adversary
    return Subject(example.algorithm, example.environment, *attacks, horizon=example.horizon, seeds=LANES)


def proofs(subject, *, points=0, **planted) -> dict[str, Proof]:
    """Of each program of a call, traced as the engine traces it: playing the subject later does not trace it again.

    Lanes are the seeds, or with `points` the points of a grid that moves every number. planted: functions of the
    algorithm that are replaced.
    """
    plan, device, found = untraced(subject.current), jax.local_devices()[0], {}
    group, seeds = plan.groups[0], np.arange(LANES, dtype=np.uint32)
    with settings_of(plan.dtype, device):
        run, case, times = programs_of_calls(plan, 0, (0,), device)
        if points or planted:
            case = jax.tree.map(lambda x: jnp.stack([x] * points), case) if points else case
            leaves, treedef = jax.tree.flatten(case)
            parts = group.parts._replace(program=group.parts.program._replace(**planted))
            run = Compiled(parts, (0 if points else -1,) * len(leaves), treedef, max(points, 1), len(times))
        of_case, of_seeds, of_lane = (0, None, 1) if points else (None, 0, 0)

        def prove(name, *given, kind=()):
            """given: pairs of an argument and the axis of its lanes."""
            function = partial(run.functions[name], *kind)
            closed, out = jax.make_jaxpr(function, return_shape=True)(*(tree for tree, _ in given))
            axes = [axis for tree, axis in given for _ in jax.tree.leaves(tree)]
            found[f"{name} {kind}"] = mixing(closed, axes, of_lane)
            return out

        shared = (case, of_case), (seeds, of_seeds)
        lane = prove("begin", *shared)
        for kind, span in {(span.slots, span.full, span.whole): span for span in group.schedule}.items():
            where = segment(span, 0, 0, 1, group.times)
            prove("advance", *shared, (lane, of_lane), (times, None), (where, None), kind=(kind,))
        if any(span.close for span in group.schedule):
            prove("close", *shared, (lane, of_lane))
        if diagnoses(group.parts):
            prove("finish", shared[0], (lane._replace(record=Record((), (), (), ())), of_lane))
    return found


def faults_of(found: dict[str, Proof]) -> list[str]:
    return [f"{name}: {fault}" for name, proof in found.items() for fault in proof.faults]


@pytest.mark.parametrize("name", catalogue.EVERYTHING)
def test_no_operation_mixes_lanes(subject, name, unless_pinned):
    found = {program: mixing(closed, axes, 0) for program, (closed, axes) in programs_of(subject).items()}
    assert not faults_of(found)
    counted = {COUNTED} if any(not span.full for span in subject.cell.algorithm.schedule) else set()
    assert set().union(*(proof.exceptions for proof in found.values())) == EXCEPTED.get(name, set()) | counted


@pytest.mark.parametrize("name", EXCEPTED)
def test_lanes_that_the_walk_excepts_are_the_same_among_few_and_many(subject, name, unless_pinned):
    few, many = subject.play_seeds(lanes=LEAST_LANES), subject.play_seeds()
    for array in many:
        np.testing.assert_array_equal(few[array], many[array])


@pytest.mark.parametrize("name", dealt(catalogue.EVERYTHING, 16, always=KINDS))
def test_no_operation_mixes_points(name):
    assert not faults_of(proofs(subject_of(name), points=POINTS))


# what is planted in the package's own cases


def moved_on_in_batches_of(size):
    """Every lane gets what the one before it has, by a rule for `vmap` over so many."""

    @jax.custom_batching.custom_vmap
    def moved_on(x):
        return x

    @moved_on.def_vmap
    def _(axis_size, batched, x):
        return (jnp.roll(x, 1, axis=0) if axis_size == size and batched[0] else moved_on(x)), batched[0]

    return moved_on


def planted(subject, function, size, points):
    """The faults where a function of a subject's algorithm moves lanes on in batches of one size."""
    clean = getattr(subject.cell.algorithm.program, function)

    def wrong(*args):
        return jax.tree.map(moved_on_in_batches_of(size), clean(*args))

    return faults_of(proofs(subject, points=points, **{function: wrong}))


@pytest.mark.parametrize("name, function", [("ucb1", "update"), ("phased_elimination", "close"), ("exp3", "act")])
def test_a_function_that_reads_other_lanes_is_found(name, function):
    for size, points in ((LANES, 0), (POINTS, POINTS)):
        faults = planted(subject_of(name), function, size, points)
        assert any("mixes lanes: test_lane_proof.py" in fault for fault in faults), faults


def test_seeds_and_points_are_told_apart():
    subject = subject_of("ucb1")
    assert not planted(subject, "update", POINTS, 0) and not planted(subject, "update", LANES, POINTS)


def test_a_filter_that_reads_other_lanes_is_found(monkeypatch):
    """Its rows by number are excepted, and nothing beside them."""
    subject, pooled = subject_of("robust_elimination"), filters._pool_groups
    close = subject.cell.algorithm.program.close
    monkeypatch.setattr(filters, "_pool_groups", lambda *x: jax.tree.map(lambda y: jnp.roll(y, 1, -1), pooled(*x)))
    found = proofs(subject, close=lambda *args: close(*args))  # another object, which is traced anew
    assert {name.split()[0] for name, proof in found.items() if proof.faults} == {"close"}
    assert all("mixes lanes: test_lane_proof.py" in fault for fault in faults_of(found))


# small programs over lanes along axis 0

X, SQUARE = jnp.arange(3.0 * LANES).reshape(LANES, 3), jnp.arange(1.0 * LANES**2).reshape(LANES, LANES)


@jax.custom_batching.custom_vmap
def centred(x):
    return x


@centred.def_vmap
def _(axis_size, batched, x):
    return x - jnp.max(x, axis=0, keepdims=True), True


def until_none_wants(x):
    """Lanes count down to 0, and those that have arrived stay. Also the number of steps of the last one."""

    def step(carry):
        return carry[0] + 1, jnp.where(carry[1] > 0, carry[1] - 1, carry[1])

    return lax.while_loop(lambda carry: jnp.any(carry[1] > 0), step, (jnp.int32(0), x))[::-1]


def later(loop):
    """The second turn of a loop mixes what the first one left."""

    def turn(i, carry):
        return jnp.max(carry[1], axis=0, keepdims=True) + carry[0], carry[0]

    return lambda x: loop(turn, (x, jnp.zeros_like(x)))[0]


def in_scan(turn, carry):
    return lax.fori_loop(0, 3, turn, carry)


def in_while(turn, carry):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, turn(*c)), (0, carry))[1]


def steps_of_each(x):
    start = (0.0, jnp.int32(0))
    return jax.vmap(lambda x: lax.while_loop(lambda c: c[0] < x[0], lambda c: (c[0] + 1, c[1] + 1), start))(x)[1]


def at_those(function):
    """A function of lanes that are last, at the lanes whose first entry is not 0."""

    def few(x):
        return at_the_few((x[0] != 0).reshape(-1), function, x.reshape(len(x), -1)).reshape(x.shape)

    return lanes_last(few)


def on_host(x):
    return jax.pure_callback(np.asarray, jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="expand_dims")


def number(x):
    return x[:, 0].astype(jnp.int32) % LANES


PAIR = "float32[16,3] float32[16,3]"
MIXED = {  # the program, its input, and what is said of which operation
    "a mean": (lambda x: x - jnp.mean(x, 0, keepdims=True), X, "reduce_sum float32[16,3] sums floats"),
    "a largest lane": (lambda x: x - jnp.max(x, 0, keepdims=True), X, "reduce_max float32[16,3] mixes"),
    "sorted": (lambda x: jnp.sort(x, axis=0), X, "sort float32[16,3] mixes"),
    "moved on": (lambda x: jnp.roll(x, 1, axis=0), X, "slice float32[16,3] mixes"),
    "turned round": (lambda x: x[::-1], X, "rev float32[16,3] mixes"),
    "the first for all": (lambda x: x + x[:1], X, "slice float32[16,3] mixes"),
    "the best for all": (lambda x: x + x[jnp.argmin(x[:, 0])][None], X, "argmin float32[16] mixes"),
    "rows of others": (lambda x: x[number(x)], X, "gather float32[16,3] int32[16,1] mixes"),
    "writes to others": (lambda x: x.at[number(x)].set(x), X, f"scatter float32[16,3] int32[16,1] {PAIR[:13]} mixes"),
    "counts": (lambda x: jnp.cumsum(number(x)), X, "cumsum int32[16] mixes"),
    "its number": (lambda x: x + jnp.arange(1.0 * LANES)[:, None], X, "add float32[16,3] float32[16,1] mixes"),
    "a constant for each": (lambda x: x + X, X, f"add {PAIR} mixes"),
    "its number among arms": (
        lambda x: x.reshape(-1) + jnp.broadcast_to(jnp.arange(1.0 * LANES)[:, None], (LANES, 3)).reshape(-1), X,
        "add float32[48] float32[48] mixes",
    ),
    "one key for all": (lambda x: x + jax.random.uniform(jax.random.key(3), x.shape), X, f"add {PAIR} mixes"),
    "nothing of its own": (lambda x: (x, X), X, "result 1 does not hold each lane's own along axis 0"),
    "a rule for vmap": (jax.vmap(centred), X, "reduce_max float32[16,3] mixes"),
    "a named axis": (jax.vmap(lambda x: lax.psum(x, "lanes"), axis_name="lanes"), X, "psum float32[16,3] is unknown"),
    "a callback": (jax.vmap(on_host), X, "pure_callback float32[16,3] is unknown"),
    "a number of the host": (lambda x: x + on_host(jnp.float32(3)), X, "pure_callback float32[] is unknown"),
    "a flag as data": (lambda x: jnp.where(jnp.any(x > 0), x, 0), X, f"select_n bool[] {PAIR} tells lanes whether"),
    "a flag as result": (lambda x: (x, jnp.any(x > 0)), X, "result 1 does not hold"),
    "steps of the slowest": (until_none_wants, X, "result 1 does not hold"),
    "steps in data": (lambda x: number(x) + until_none_wants(x)[1], X, "add int32[16] int32[] tells lanes whether"),
    "a branch for all": (
        lambda x: x + lax.cond(jnp.any(x > 0), lambda: 1.0, lambda: 2.0), X, "add float32[16,3] float32[] tells lanes",
    ),
    "a branch by one": (lambda x: lax.cond(x[0, 0] > 0, lambda: x, lambda: -x), X, "slice float32[16,3] mixes"),
    "in a loop": (lambda x: lax.fori_loop(0, 3, lambda i, c: c + c[:1], x), X, "slice float32[16,3] mixes"),
    "in a loop's second turn": (later(in_scan), X, "reduce_max float32[16,3] mixes"),
    "in a while loop's second turn": (later(in_while), X, "reduce_max float32[16,3] mixes"),
    "steps of others": (lambda x: x + jnp.max(steps_of_each(x)).astype(x.dtype), X, "reduce_max int32[16] mixes"),
    "a constant before a loop": (lambda x: in_while(lambda i, c: x, X), X, "moves lanes, or numbers them"),
    "a constant before a scan": (lambda x: in_scan(lambda i, c: x, X), X, "moves lanes, or numbers them"),
    "turned in a branch": (
        lambda x: in_scan(lambda i, c: lax.cond(i > 0, lambda: c.T, lambda: c), x), SQUARE, "moves lanes, or",
    ),
    "in a while loop": (
        lambda x: lax.while_loop(lambda c: jnp.any(c > 0), lambda c: c - c[:1], x), X, "slice float32[16,3] mixes",
    ),
    "in a scan": (lambda x: lax.scan(lambda c, _: (c[::-1], None), x, length=3)[0], X, "rev float32[16,3] mixes"),
    "one after another": (lambda x: lax.scan(lambda c, r: (c + r, c), X[0], x)[1], X, "takes one lane after another"),
    "among arms": (lambda x: x.reshape(3, LANES).T, X, "reshape float32[16,3] mixes"),
    "in place of arms": (lambda x: x.T, SQUARE, "result 0 does not hold each lane's own along axis 0"),
    "beside arms": (lambda x: x + x.T, SQUARE, "add float32[16,16] float32[16,16] mixes"),
    "among the few": (jax.vmap(at_those(lambda x: jnp.roll(x, 1, axis=1))), X, "slice float32[3,16] mixes"),
    "few arms, not lanes": (lambda x: at_the_few(x[0] > 0, jnp.square, x), SQUARE, "slice float32[16,16] mixes"),
    "few that are not last": (
        lambda x: at_the_few(jnp.arange(3) > 0, jnp.square, x), X, "gathers along an axis that is not the lanes'",
    ),
    # order of additions
    "a sum over arms": (jax.vmap(lambda x: jnp.sum(x)), X, "reduce_sum float32[16,3] sums floats"),
    "a sum along arms": (jax.vmap(lambda x: jnp.cumsum(x)), X, "cumsum float32[16,3] sums floats"),
    "a dot over features": (jax.vmap(lambda x: x @ x), X, f"dot_general {PAIR} sums floats"),
    "sums by arm": (jax.vmap(lambda x: jnp.zeros(2).at[jnp.arange(3) % 2].add(x)), X, "scatter-add float32[16,2]"),
}  # fmt: skip


@pytest.mark.parametrize("name", MIXED)
def test_what_mixes_lanes_is_found(name):
    function, x, text = MIXED[name]
    faults = mixing(jax.make_jaxpr(function)(x), [0]).faults
    assert any(text in fault for fault in faults), faults


def squared_until_large(x):
    return lax.while_loop(lambda x: jnp.max(x) < 9, lambda x: 2 * x + 1, x)


def drawn(x):
    first, second = jax.random.split(jax.random.fold_in(jax.random.key(3), x[0].astype(jnp.uint32)))
    return jax.random.uniform(first, x.shape) + jax.random.gamma(second, 2.0)


def filtered(x):
    values, arms, directions = x.reshape(3, 3), jnp.arange(3, dtype=jnp.int32) % 2, jnp.eye(2, 3)
    return filters.filter_blocks(x, 0, values, jnp.isfinite(values), arms, directions, 0.01).mean


APART = {  # the program of one lane, and the exceptions that it uses
    "sums": (lambda x: x / fixed_sum(x * x) + dot(x, x), set()),
    "integer sums": (lambda x: x[0].astype(jnp.int32) + jnp.sum(x > 0, dtype=jnp.int32), set()),
    "stored": (lambda x: materialize(2 * x), set()),
    "a kernel of lanes": (lane_kernel(lambda x: x / fixed_sum(x, axis=0)[None]), set()),
    "choices": (lambda x: x.at[jnp.argmax(x)].set(x[jnp.argmin(x)]), set()),
    "a slice that moves": (lambda x: lax.dynamic_slice_in_dim(x, x[0].astype(jnp.int32), 2), set()),
    "rows": (lambda x: lax.scan(lambda c, row: (c + row, c * row), x[0], x), set()),
    "draws": (drawn, set()),
    "a branch": (lambda x: lax.cond(x[0] > 0, lambda: x, lambda: -x), set()),
    "a loop of each lane": (squared_until_large, set()),
    "rare work": (lambda x: cond_any(x[0] > 9, lambda x: jnp.where(x[0] > 9, -x, x), x), EXCEPTED["prm_elimination"]),
    "a loop of all": (
        lanes_last(lambda x: until_none_wants(x)[0]), {"some lane: test_lane_proof.py until_none_wants.<lambda>"},
    ),
    "the few": (at_those(lambda x: x / fixed_sum(x, axis=0)[None]), {FEW}),
    "a filter": (filtered, EXCEPTED["robust_elimination"]),
}  # fmt: skip


@pytest.mark.parametrize("name", APART)
def test_what_keeps_lanes_apart_passes(name):
    function, exceptions = APART[name]
    for points in (False, True):  # under one vmap, and both axes of lanes under two
        mapped = jax.vmap(jax.vmap(function)) if points else jax.vmap(function)
        x = jax.ShapeDtypeStruct((LANES, LANES, 9) if points else (LANES, 9), jnp.float32)
        for axis in range(1 + points):
            assert mixing(jax.make_jaxpr(mapped)(x), [axis], axis) == Proof([], exceptions)


# the rules, against what is computed: lanes may lie along each axis of a cube


def doubled(x):
    return jnp.concatenate([x, x], axis=1).reshape(4, 4, 4)


def parts_at(starts, x):
    return jax.vmap(lambda start: lax.dynamic_slice_in_dim(x, start, 8, axis=1), out_axes=1)(starts)


def written(x, part):
    return lax.dynamic_update_slice(x, part, (0, 2))


CUBE = np.random.default_rng(3).permutation(64).reshape(4, 4, 4).astype(np.int32)
OPERATIONS = {
    "elementwise": lambda x: 2 * x + x[:1],
    "broadcast": lambda x: x + lax.broadcast_in_dim(jnp.ones((1, 4, 1), jnp.int32), (4, 4, 4), (0, 1, 2)),
    "reduced": lambda x: jnp.max(x, axis=1, keepdims=True) + x,
    "best": lambda x: jnp.argmin(x, axis=2, keepdims=True).astype(jnp.int32) * x,
    "cumulative": lambda x: jnp.cumsum(x, axis=1),
    "sorted": lambda x: jnp.sort(x, axis=2),
    "turned": lambda x: jnp.flip(x, (0, 2)),
    "transposed": lambda x: jnp.transpose(x, (2, 0, 1)),
    "squeezed": lambda x: jnp.squeeze(x[:, None, 1:2], (1, 2))[:, None] + x,
    "merged": lambda x: (x.reshape(16, 4) + 1).reshape(4, 4, 4),
    "a part of what is merged": lambda x: doubled(x.reshape(4, 16)[:, 2:10]),
    "a part of it read at": lambda x: doubled(lax.dynamic_slice(x.reshape(4, 16), (0, jnp.int32(2)), (4, 8))),
    "parts of it gathered": lambda x: parts_at(np.array([2, 3]), x.reshape(4, 16)).reshape(4, 4, 4),
    "merged and padded": lambda x: jnp.pad(x[:, :2].reshape(4, 8), ((0, 0), (2, 6))).reshape(4, 4, 4),
    "merged and written in": lambda x: x.reshape(4, 16).at[:, 2:10].set(x[:, 1:3].reshape(4, 8)).reshape(4, 4, 4),
    "merged and written at": lambda x: written(x.reshape(4, 16), x[:, 1:3].reshape(4, 8)).reshape(4, 4, 4),
    "merged otherwise": lambda x: x.reshape(4, 16).T.reshape(4, 4, 4),
    "rolled": lambda x: jnp.roll(x, 1, axis=1),
    "split": lambda x: jnp.stack(jnp.split(x, 4, axis=2)[::-1], axis=1)[:, :, :, 0],
    "stacked": lambda x: jnp.stack([x[0], x[2], x[2], x[0]], axis=1),
    "padded": lambda x: jnp.pad(x[:, 1:], ((0, 0), (0, 1), (0, 0))),
    "read at": lambda x: lax.dynamic_slice(x, (0, jnp.int32(1), 0), (4, 1, 4)) + x,
    "written at": lambda x: lax.dynamic_update_slice(x, -x[:, :1], (0, 2, 0)),
    "gathered": lambda x: x[:, np.array([3, 1, 1, 0])],
    "taken along": lambda x: jnp.take_along_axis(x, x % 4, axis=1),
    "scattered": lambda x: x.at[:, np.array([1, 2])].set(x[:, 2:]),
    "scattered along": lambda x: jax.vmap(lambda row, i: row.at[i % 4].add(row[::-1]))(x, x[:, 0]),
    "from a table": lambda x: jnp.asarray(CUBE.ravel())[x],
    "scanned": lambda x: lax.scan(lambda c, row: (c + row, c - row), x[0], x)[1],
    "scanned in rows": lambda x: lax.scan(lambda c, row: (c + row, c - row), x[:, 0], jnp.swapaxes(x, 0, 1))[1],
    "looped": lambda x: lax.fori_loop(0, 2, lambda i, c: c + c[:, ::-1], x),
    "looped until": jax.vmap(lambda x: lax.while_loop(lambda x: x[0, 0] < 99, lambda x: 2 * x + 9, x)),
    "chosen": jax.vmap(lambda x: lax.cond(x[0, 0] % 2 > 0, lambda: x, lambda: -x), 1, 1),
}  # fmt: skip


@pytest.fixture(scope="module")
def results():
    """What each operation makes of the cube [axis of the lanes, lane that was changed, ...]; at 4 none was."""
    cubes = np.stack([[CUBE] * 5] * 3)
    for axis in range(3):
        for lane in range(4):
            at = (slice(None),) * axis + (lane,)
            cubes[axis, lane][at] = 99 - cubes[axis, lane][at]
    return jax.jit(lambda cubes: {name: jax.vmap(jax.vmap(f))(cubes) for name, f in OPERATIONS.items()})(cubes)


@pytest.mark.parametrize("name", OPERATIONS)
def test_rules_say_what_operations_do(results, name):
    """There is a fault where what a lane gets depends on another one; for each axis of the lanes, and of the result."""
    closed, result, number = jax.make_jaxpr(OPERATIONS[name])(CUBE), np.asarray(results[name]), 0
    for axis, out in itertools.product(range(3), range(3)):
        others = tuple(1 + i for i in range(3) if i != out)
        depends = (result[axis, :4] != result[axis, 4:]).any(axis=others)  # [lane that was changed, lane]
        faults = mixing(closed, [axis], out).faults
        assert bool(faults) == depends[~np.eye(4, dtype=bool)].any(), (axis, out, faults)
        number += bool(faults)
    assert 0 < number < 9


def shapes_of(total, axes):
    """All shapes of so many entries."""
    if axes == 1:
        return [(total,)]
    return [(n, *rest) for n in range(1, total + 1) if total % n == 0 for rest in shapes_of(total // n, axes - 1)]


def test_where_lanes_lie_after_a_reshape():
    """Exactly where each lane's entries are found, for every pair of shapes of 48 entries with up to three axes."""
    shapes = [shape for axes in (1, 2, 3) for shape in shapes_of(48, axes)]
    for old, axis in itertools.product(shapes, range(3)):
        if axis < len(old) and old[axis] > 1:
            lanes = np.indices(old)[axis]
            for new in shapes:
                place, found = reshaped(Place(axis, old[axis]), old, new), lanes.reshape(new)
                possible = [
                    Place(i, old[axis], inner) for i, n in enumerate(new) for inner in range(1, n + 1)
                    if n % (inner * old[axis]) == 0 and (found == numbers(new, i, inner, old[axis])).all()
                ]  # fmt: skip
                assert [place] == (possible or [None])


def numbers(shape, axis, inner, size):
    """The lane of every entry, where lanes lie along an axis."""
    return (np.arange(shape[axis]) // inner % size).reshape([-1 if i == axis else 1 for i in range(len(shape))])
