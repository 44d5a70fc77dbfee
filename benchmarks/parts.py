"""What a play is made of: operations counted while it runs, and what each of them takes at the machine's best speed.

`counted` plays one call of a sweep and counts the operations of its traced steps. Loops and branches count as they are
taken: a loop that runs three times counts three times. `unit_cost` measures what one such operation takes in a loop of
its own, over numbers that lie in the first-level cache. Count times cost is about the least that a part can take: the
real step also reads and writes memory between its kernels, starts them, and is not always computed in vectors.

`costs_of` puts this beside what the public `sweep` takes. Every figure is for one play of one lane.
"""

import functools
import math
import operator
import re
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import random
from jaxbandits.numerics import materialize
from jaxbandits.protocol import Algorithm, Guarantee, Hints, Program
from jaxbandits.simulator import arms_of
from jaxbandits.sweeps.compilation.compiled import WIDE_VECTORS, Compiled
from jaxbandits.sweeps.engines.calls import fitting, seeds_of_shard
from jaxbandits.sweeps.engines.one_call import Programs, play_call, programs_of_calls
from jaxbandits.sweeps.execution import SweepRun
from jaxbandits.sweeps.plan import host_case, stack_cases
from jaxbandits.sweeps.sweep import prepare_sweep
from jaxbandits.traced_once import without_unread

# What is counted. An operation of the traced step belongs to one kind; `KIND_OF` says to which.
FUNCTIONS = {
    "exp": ("exp", "exp2"), "log": ("log",), "log1p": ("log1p",), "expm1": ("expm1",), "sqrt": ("sqrt",),
    "rsqrt": ("rsqrt",), "division": ("div", "rem"), "power": ("pow",), "erf_inv": ("erf_inv",),
    "sine": ("sin", "cos", "tan"), "tanh": ("tanh", "logistic", "erf", "erfc"),
    "gamma": ("lgamma", "digamma", "igamma", "igammac", "cbrt", "atan2"),
}  # fmt: skip
ARITHMETIC = (
    "add", "sub", "mul", "max", "min", "neg", "abs", "select_n", "clamp", "sign", "floor", "ceil", "round", "square",
    "integer_pow", "add_any", "nextafter", "is_finite",
)  # fmt: skip
REDUCTIONS = (
    "reduce", "reduce_sum", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "argmax", "argmin", "reduce_prod",
    "cumsum", "cummax", "cumprod", "cumlogsumexp",
)  # fmt: skip
KIND_OF = {primitive: kind for kind, primitives in FUNCTIONS.items() for primitive in primitives}
KIND_OF |= dict.fromkeys(ARITHMETIC, "arithmetic") | dict.fromkeys(REDUCTIONS, "reduction")
KIND_OF |= {"gather": "gather", "sort": "sort", "dot_general": "product of matrices"}
KIND_OF |= dict.fromkeys(("scatter", "scatter-add", "scatter_add", "scatter-max", "scatter-min"), "scatter")
KINDS = (
    "threefry", *FUNCTIONS, "arithmetic", "reduction", "product of matrices", "gather", "scatter", "sort",
    "materialize",
)  # fmt: skip
# The parts that are printed, and the kinds of each.
PARTS = {
    "draws": ("threefry",),
    "functions": tuple(FUNCTIONS),
    "linear algebra": ("arithmetic", "reduction", "product of matrices"),
    "by index": ("gather", "scatter", "sort"),
    "stored once": ("materialize",),
}
ROTATIONS = 20  # of a Threefry block, each of them one shift to the left
INNER = (
    "pjit", "jit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "remat", "checkpoint", "with_form",
    "write_one",
)  # fmt: skip
# Counting runs once: it is compiled in less time.
HASTY: dict[str, str | bool] = {"xla_backend_optimization_level": "0", "xla_llvm_disable_expensive_passes": True}
COUNTED_LANES = 64
FEW_LANES = 16  # the fewest that a call on a CPU holds


# ---- counting


def work(equation: Any) -> tuple[str, float] | None:
    """The kind of an operation and how many there are of it; None for what only moves or names numbers."""
    name = equation.primitive.name
    out, first = equation.outvars[0].aval, equation.invars[0].aval if equation.invars else None
    if name == "shift_left":
        return "threefry", out.size / ROTATIONS
    if name in ("threefry2x32", "random_bits"):
        return "threefry", out.size / (1 if name == "threefry2x32" else 2)
    kind = KIND_OF.get(name)
    if kind is None or out.dtype == jnp.uint32:  # the generator's own sums
        return None
    if kind in ("reduction", "sort"):
        return kind, first.size
    if kind == "gather":
        return kind, math.prod(equation.invars[1].aval.shape[:-1])
    if kind == "scatter":
        return kind, math.prod(equation.invars[1].aval.shape[:-1])
    if kind == "product of matrices":
        (contracted, _), _ = equation.params["dimension_numbers"]
        return kind, out.size * math.prod(first.shape[axis] for axis in contracted)
    return kind, out.size


def evaluate(jaxpr: Any, constants: Any, arguments: Any, learner: bool) -> tuple[list[Any], Any]:
    """What a traced program gives, and its counts [2, kinds]: of the learner, and of all else.

    learner: whether the program as a whole belongs to the learner.
    """
    values: dict[Any, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *arguments], strict=True))
    counts = jnp.zeros((2, len(KINDS)), jnp.float32)
    for equation in jaxpr.eqns:
        given = [x.val if hasattr(x, "val") else values[x] for x in equation.invars]
        own = learner or "learner" in str(equation.source_info.name_stack)
        found, more = apply(equation, given, own)
        counts = counts + more
        values.update(zip(equation.outvars, found, strict=True))
    return [x.val if hasattr(x, "val") else values[x] for x in jaxpr.outvars], counts


def apply(equation: Any, given: list[Any], learner: bool) -> tuple[list[Any], Any]:
    """What one operation gives, and its counts."""
    name, params = equation.primitive.name, equation.params
    nothing = jnp.zeros((2, len(KINDS)), jnp.float32)
    if name == "while":
        first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        of_test, of_body, carried = given[:first], given[first:second], given[second:]
        test, body = params["cond_jaxpr"], params["body_jaxpr"]

        def turn(carry):
            tested = evaluate(test.jaxpr, test.consts, [*of_test, *carry[0]], learner)[1]
            found, more = evaluate(body.jaxpr, body.consts, [*of_body, *carry[0]], learner)
            moving = moves(carry[0])
            if moving.ndim:  # a loop of many lanes: those that are through keep what they have

                def kept(new, old):
                    return jnp.where(moving.reshape(moving.shape + (1,) * (new.ndim - moving.ndim)), new, old)

                found = list(map(kept, found, carry[0]))
            return found, carry[1] + tested + more

        def moves(carried):
            return evaluate(test.jaxpr, test.consts, [*of_test, *carried], learner)[0][0]

        def goes_on(carry):
            return jnp.any(moves(carry[0]))

        return lax.while_loop(goes_on, turn, (carried, nothing))
    if name == "scan":
        inner, steps = params["jaxpr"], params["jaxpr"].out_avals
        # rows have an axis more than a step has; releases of JAX have other names for these numbers
        carried = sum(x.aval.ndim == step.ndim for x, step in zip(equation.outvars, steps, strict=True))
        kept = sum(x.aval.ndim == step.ndim for x, step in zip(equation.invars, inner.in_avals, strict=True))
        fixed, start, rows = given[: kept - carried], given[kept - carried : kept], given[kept:]

        def step(carry, row):
            found, more = evaluate(inner.jaxpr, inner.consts, [*fixed, *carry[0], *row], learner)
            return (found[:carried], carry[1] + more), found[carried:]

        (last, counts), stacks = lax.scan(
            step, (start, nothing), rows, length=params["length"], reverse=params["reverse"]
        )
        return [*last, *stacks], counts
    if name == "cond":

        def taken(branch, *arguments):
            return evaluate(branch.jaxpr, branch.consts, arguments, learner)

        return lax.switch(given[0], [partial(taken, branch) for branch in params["branches"]], *given[1:])
    if name in INNER or name.startswith("custom_vmap"):
        inner = next(params[key] for key in ("jaxpr", "call_jaxpr", "call", "plain") if key in params)
        closed = hasattr(inner, "consts")
        return evaluate(inner.jaxpr if closed else inner, inner.consts if closed else (), given, learner)
    if name == "materialize":
        stored = sum(x.size for x in given)
        return given, nothing.at[0 if learner else 1, KINDS.index("materialize")].set(stored)
    found = equation.primitive.bind(*given, **params)
    found = list(found) if equation.primitive.multiple_results else [found]
    counted_as = work(equation)
    if counted_as is not None:
        nothing = nothing.at[0 if learner else 1, KINDS.index(counted_as[0])].set(counted_as[1])
    return found, nothing


def scoped(program: Program) -> Program:
    """A program whose operations say that they are the learner's."""

    def named(function):
        return None if function is None else jax.named_scope("learner")(function)

    steps = {name: named(getattr(program, name)) for name in ("init", "act", "encode", "update", "relay", "close")}
    return program._replace(**steps, hints=program.hints._replace(rest=named(program.hints.rest)))


class Counting:
    """The compiled functions of a group, which also count. In the place of `Compiled` for one call."""

    kernels = False

    def __init__(self, run: Compiled) -> None:
        self.run, self.counts, self.programs = run, np.zeros((2, len(KINDS))), {}

    def __call__(self, name: str, device: Any, *args: Any, kind: Any = None) -> Any:
        static = () if kind is None else (kind,)
        key = name, kind
        if key not in self.programs:
            places = tuple(range(len(static)))
            trace = jax.make_jaxpr(self.run.functions[name], static_argnums=places, return_shape=True)
            traced, form = trace(*static, *args)
            program = without_unread(lambda *leaves: evaluate(traced.jaxpr, traced.consts, leaves, False))
            both = jax.jit(program, compiler_options=HASTY)
            self.programs[key] = both, jax.tree.structure(form)
        both, form = self.programs[key]
        leaves, counts = both(*jax.tree.leaves(args))
        if name in ("advance", "close"):
            self.counts += np.asarray(counts, float)
        return jax.tree.unflatten(form, leaves)


def first_call(job: Any) -> Any:
    """The first call of a sweep."""
    return fitting(job.plan, seeds_of_shard(job.plan), job.engine.machine)[1][0]


def counted(job: Any) -> np.ndarray:
    """Operations [2, kinds] of a play and lane in the first call of a sweep."""
    task, plan = first_call(job), job.plan
    group = plan.groups[task.group]
    shared = programs_of_calls(plan, task.group, task.cells, jax.devices()[0])
    parts = group.parts._replace(program=scoped(group.parts.program), traces=None)
    leaves, tree = jax.tree.flatten(stack_cases([host_case(plan.cells[c]) for c in task.cells], plan.dtype)[1])
    counting = Counting(Compiled(parts, tuple(leaves), tree, len(task.cells), len(group.times)))
    play_call(task, plan, jax.devices()[0], programs=Programs(counting, *shared[1:]))
    return counting.counts / (task.lanes * int(group.times[-1]))


# ---- kernels

NO_KERNEL = ("parameter", "constant", "get-tuple-element", "tuple", "bitcast", "after-all", "conditional")
BYTES = {"pred": 1, "s8": 1, "u8": 1, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8}


class Kernels(NamedTuple):
    """What the compiled loop of a call does once a turn, all lanes together."""

    number: int
    bytes: int  # that kernels read and write

    def times(self, turns: int) -> "Kernels":
        return Kernels(turns * self.number, turns * self.bytes)

    def plus(self, other: "Kernels") -> "Kernels":
        return Kernels(self.number + other.number, self.bytes + other.bytes)


def kernels_of(text: str, depth: int) -> Kernels:
    """The kernels of a compiled program's innermost loop over plays.

    depth: loops from the outside to that one. Of an inner loop whose number of turns the compiler does not know one
    turn counts, of a branch nothing. What a kernel changes in place counts as read and written whole, unless it is a
    slice: then the slice counts.
    """
    computations: dict[str, list[str]] = {}
    current, entry = "", ""
    for line in text.splitlines():
        if head := re.match(r"(ENTRY )?%([\w.\-]+) \(.*\{$", line):
            current = head[2]
            entry = current if head[1] else entry
            computations[current] = []
        elif line.startswith("  ") and current:
            computations[current].append(line.strip())

    def size(shape: str) -> int:
        return sum(
            BYTES.get(kind, 4) * math.prod(int(n) for n in axes.split(",") if n)
            for kind, axes in re.findall(r"(\w+)\[([\d,]*)\]", shape)
        )

    @cache
    def of(name: str) -> Kernels:
        total, shapes = Kernels(0, 0), {}
        for line in computations[name]:
            found = re.match(r"(?:ROOT )?%([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*?)\)", line)
            if found is None:
                continue
            own, shape, operation, operands = found.groups()
            shapes[own] = size(shape)
            if operation in NO_KERNEL:
                continue
            if operation == "while":
                turns = re.search(r'"known_trip_count":\{"n":"(\d+)"\}', line)
                body = re.search(r"body=%([\w.\-]+)", line)
                total = total.plus(of(body[1]).times(int(turns[1]) if turns else 1)) if body else total
                continue
            if operation == "call":
                callee = re.search(r"to_apply=%([\w.\-]+)", line)
                total = total.plus(of(callee[1])) if callee else total
                continue
            read = [shapes.get(x, 0) for x in re.findall(r"%([\w.\-]+)", operands)]
            if "dynamic-update-slice" in own or "scatter" in own:  # in place
                read = [x for x in read if x != shapes[own]]
                total = total.plus(Kernels(1, 2 * sum(read)))
            else:
                total = total.plus(Kernels(1, sum(read) + shapes[own]))
        return total

    place = entry
    for _ in range(depth):
        bodies = [
            found[1]
            for line in computations[place]
            if " while(" in line and (found := re.search(r"body=%([\w.\-]+)", line))
        ]
        if not bodies:
            break
        place = max(bodies, key=lambda body: of(body).number)
    return of(place)


def kernels_of_call(job: Any) -> tuple[float, float]:
    """Kernels of a play of all lanes, and bytes of a play and lane, in the span of most plays. The job has run."""
    task = first_call(job)
    group = job.plan.groups[task.group]
    span = max(group.schedule, key=lambda span: span.repeats * (span.length or span.slots))
    run = programs_of_calls(job.plan, task.group, task.cells, jax.devices()[0]).run
    kind = span.kind
    text = next(program.as_text() for key, program in run.programs.items() if key[:2] == ("advance", kind))
    found = kernels_of(text, 2 if span.slots == 1 and span.full else 1)
    return found.number / span.slots, found.bytes / (span.slots * task.lanes)


# ---- the speed of single operations

NUMBERS = 4_096  # of a loop: 16 kB
BESIDE = 4  # operations on a number, none of which waits for another
UNIT_SECONDS = 0.03


def seconds_of_turn(turn: Callable[[Any, Any], Any], carry: Any, least: float = UNIT_SECONDS) -> float:
    """CPU seconds of one turn of a loop as the engine compiles it, the least of five. turn: index, carry -> carry."""
    run = jax.jit(lambda number, carry: lax.fori_loop(0, number, turn, carry), compiler_options=WIDE_VECTORS)
    number, spent = 16, 0.0
    jax.block_until_ready(run(number, carry))
    while True:
        began = time.process_time()
        jax.block_until_ready(run(number, carry))
        spent = time.process_time() - began
        if spent >= least:
            break
        number *= 2 if spent > least / 8 else 8
    for _ in range(4):
        began = time.process_time()
        jax.block_until_ready(run(number, carry))
        spent = min(spent, time.process_time() - began)
    return spent / number


def _of_numbers(function: Callable[[Any], Any]) -> float:
    """Seconds of one evaluation of a function of a number in (0, 1)."""

    def turn(_, x):
        return 0.2 * sum(function(x + np.float32(i / 16)) for i in range(BESIDE))

    return seconds_of_turn(turn, jnp.linspace(0.1, 0.9, NUMBERS, dtype=jnp.float32)) / (NUMBERS * BESIDE)


def _threefry() -> float:
    """Seconds of a block, both of whose words are read."""

    def turn(t, word):
        blocks = [
            random.threefry2x32((jnp.uint32(7), jnp.uint32(path)), (t.astype(jnp.uint32), word))
            for path in range(BESIDE)
        ]
        return functools.reduce(operator.xor, [word for block in blocks for word in block], word)

    return seconds_of_turn(turn, jnp.arange(NUMBERS, dtype=jnp.uint32)) / (NUMBERS * BESIDE)


def _arithmetic() -> float:
    """Seconds of one product or sum, which the compiler may do together."""

    def turn(_, x):
        for _ in range(BESIDE):
            x = x * np.float32(0.999) + np.float32(1e-4)
        return x

    return seconds_of_turn(turn, jnp.linspace(0.1, 0.9, NUMBERS, dtype=jnp.float32)) / (NUMBERS * BESIDE * 2)


ROW = 10  # numbers of a lane in the loops below


def _rows() -> tuple[Any, Any]:
    """Rows of numbers, and a place in each."""
    lanes = NUMBERS // ROW
    return jnp.ones((lanes, ROW), jnp.float32), (jnp.arange(lanes, dtype=jnp.int32) * 7) % ROW


def _reduction() -> float:
    """Seconds a number of the largest of a row."""
    rows, _ = _rows()

    def turn(_, carry):
        rows, largest = carry
        return rows, jnp.max(rows + largest[:, None], axis=1) * 0.5

    return seconds_of_turn(turn, (rows, jnp.zeros(rows.shape[0]))) / rows.size


def _scatter() -> float:
    """Seconds of adding to one place of a row."""
    rows, places = _rows()

    def one(row, place):
        return row.at[place].add(1.0)

    def turn(t, rows):
        return jax.vmap(one)(rows, (places + t) % ROW)

    return seconds_of_turn(turn, rows) / rows.shape[0]


def _gather() -> float:
    """Seconds of reading one place of a row."""
    rows, places = _rows()

    def turn(_, places):
        return jax.vmap(lambda row, place: row[place])(following, places)

    following = (places[:, None] + jnp.arange(1, ROW + 1, dtype=jnp.int32)) % ROW
    return seconds_of_turn(turn, places) / rows.shape[0]


def _sort() -> float:
    """Seconds a number of a sorted row."""
    rows, _ = _rows()
    turns = jnp.sin(jnp.arange(rows.size, dtype=jnp.float32)).reshape(rows.shape)
    return seconds_of_turn(lambda _, rows: jnp.sort(turns - rows, axis=1), rows) / rows.size


def _product() -> float:
    """Seconds of one product and sum of matrices [8, 8] by vectors, a pair a lane."""
    matrix, vector = jnp.eye(8)[None].repeat(64, 0), jnp.ones((64, 8))
    return seconds_of_turn(lambda _, x: jnp.einsum("lij,lj->li", matrix, x), vector) / matrix.size


def _materialize() -> float:
    """Seconds of a number that is computed once and stored (`numerics.materialize`)."""
    return _of_numbers(lambda x: materialize(x * np.float32(0.5)))


def _byte() -> float:
    """Seconds of a byte that a kernel reads or writes, in arrays of half of a second-level cache."""
    x = jnp.ones(1 << 16, jnp.float32)
    return seconds_of_turn(lambda _, x: x * np.float32(0.5) + np.float32(1), x) / (2 * x.nbytes)


UNITS: dict[str, Callable[[], float]] = {
    "threefry": _threefry,
    "exp": lambda: _of_numbers(lambda x: jnp.exp(-x)),
    "log": lambda: _of_numbers(lambda x: jnp.log(x + 3)),
    "log1p": lambda: _of_numbers(lambda x: jnp.log1p(x + 1)),
    "expm1": lambda: _of_numbers(lambda x: jnp.expm1(-x)),
    "sqrt": lambda: _of_numbers(lambda x: jnp.sqrt(x + 1)),
    "rsqrt": lambda: _of_numbers(lambda x: lax.rsqrt(x + 1)),
    "division": lambda: _of_numbers(lambda x: 1 / (x + 1)),
    "power": lambda: _of_numbers(lambda x: (x + 1) ** x),
    "erf_inv": lambda: _of_numbers(lambda x: lax.erf_inv(x * 0.5)),
    "sine": lambda: _of_numbers(lambda x: jnp.sin(x + 1)),
    "tanh": lambda: _of_numbers(jnp.tanh),
    "gamma": lambda: _of_numbers(lambda x: lax.lgamma(x + 2) * 0.1 + 0.3),
    "arithmetic": _arithmetic,
    "reduction": _reduction,
    "product of matrices": _product,
    "gather": _gather,
    "scatter": _scatter,
    "sort": _sort,
    "materialize": _materialize,
    "byte": _byte,
}


@cache
def unit_cost(kind: str) -> float:
    """Seconds of one operation."""
    return UNITS[kind]()


# ---- beside the sweep


class NoParams(NamedTuple):
    """The idle learner has no numbers."""


def idle(algorithm: Algorithm, arms: int) -> Algorithm:
    """A learner that goes round the arms, a step further after a reward, in the windows of another algorithm.

    What its play costs is the environment's: contexts, rewards, counting and recording.
    """
    other = algorithm.program

    def act(params, state, draws, t, context):
        def chosen():
            return other.act(algorithm.params, other.init(algorithm.params, draws), draws, t, context)[0]

        return jnp.broadcast_to(state, jax.eval_shape(chosen).shape), None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        paid = jnp.where(play.reshape(play.shape + (1,) * (reward.ndim - play.ndim)), reward, 0)
        return jnp.sum(paid)

    def update(params, state, draws, t_last, note, message, used):
        state = state + 1 + (message > 0.5)
        return jnp.where(state >= arms, state - arms, state), ()

    program = Program(
        init=lambda params, draws: jnp.int32(0), act=act, encode=encode, update=update,
        hints=Hints(one_arm=other.hints.one_arm, tally=other.hints.tally),
    )  # fmt: skip
    return algorithm._replace(program=program, params=NoParams(), guarantee=Guarantee(), config={}, rewards=None)


class Case(NamedTuple):
    """The arguments of a small `sweep`, as the catalogue's examples give them."""

    algorithm: Any
    environment: Any
    reward_adversary: Any = None
    message_adversary: Any = None


def sweep_of(case: Any, horizon: int, seeds: int, checkpoints: int = 200) -> Any:
    """A sweep of a case, ready to run."""
    settings = {
        "horizon": horizon, "seeds": seeds, "checkpoints": checkpoints, "reward_adversary": case.reward_adversary,
        "message_adversary": case.message_adversary,
    }  # fmt: skip
    return prepare_sweep({"algorithm": case.algorithm}, case.environment, settings, progress=False)


def busy(function: Callable[[], Any]) -> float:
    """CPU seconds of one call."""
    began = time.process_time()
    function()
    return time.process_time() - began


def seconds_of(job: Any, turns: int) -> float:
    """CPU seconds of a sweep, the least of some turns after one that compiles."""
    run = SweepRun(job)
    run.dataset()
    return min(busy(run.dataset) for _ in range(turns))


class Costs(NamedTuple):
    """Nanoseconds of a play and lane, but for the first four."""

    lanes: int  # that a call holds
    counts: np.ndarray  # [2, kinds]: of the learner, and of all else
    kernels: float  # of a play of all lanes
    bytes: float  # that the kernels of a play read and write for a lane
    play: float  # the whole, by `sweep`
    rewards: float  # the environment alone, by `sweep` of a learner that goes round the arms
    parts: dict[str, float]  # of the learner: at the machine's best speed, and launches

    @property
    def rest(self) -> float:
        """What the parts do not explain. It may be below 0: kernels that read the first-level cache are faster."""
        return self.play - self.rewards - sum(self.parts.values())


def parts_of(counts: np.ndarray) -> dict[str, float]:
    """Nanoseconds of the parts, from counts of the kinds."""
    return {
        part: float(sum(1e9 * unit_cost(kind) * n for kind in kinds if (n := counts[KINDS.index(kind)])))
        for part, kinds in PARTS.items()
    }


def costs_of(case: Any, horizon: int, lanes: int, turns: int = 3, checkpoints: int = 200) -> Costs:
    """What a play costs and what its parts take.

    Launches: the time of a call as a straight line in its lanes, through few lanes and as many as the sweep takes. What
    the line gives for no lanes is spent whatever the lanes are, mostly on starting kernels.
    """
    job = sweep_of(case, horizon, lanes, checkpoints)
    algorithm = job.plan.cells[0].algorithm
    nothing = idle(algorithm, arms_of(job.plan.cells[0].environment) or 2)
    learner_less = Case(lambda: nothing, case.environment, case.reward_adversary)
    idle_job = sweep_of(learner_less, horizon, lanes, checkpoints)
    some = min(lanes, COUNTED_LANES)
    counts, idle_counts = (counted(sweep_of(x, horizon, some, checkpoints)) for x in (case, learner_less))

    def timed(job: Any, of: Any) -> tuple[float, float]:
        """Nanoseconds of a play, and of them what does not grow with the lanes."""
        held = first_call(job).lanes
        whole = 1e9 * seconds_of(job, turns) / (lanes * horizon)
        if held <= FEW_LANES:
            return whole, 0.0
        few = 1e9 * seconds_of(sweep_of(of, horizon, FEW_LANES, checkpoints), turns) / (FEW_LANES * horizon)
        return whole, max(0.0, (few - whole) * FEW_LANES / (held - FEW_LANES))

    (play, launches), (rewards, own_launches) = timed(job, case), timed(idle_job, learner_less)
    (kernels, moved), (_, own_moved) = kernels_of_call(job), kernels_of_call(idle_job)
    # a lane at rest draws nothing more: then the environment does less than under the idle learner
    share = min(1.0, counts[1, 0] / idle_counts[1, 0]) if idle_counts[1, 0] else 1.0
    passes = 1e9 * unit_cost("byte") * max(0.0, moved - share * own_moved)
    parts = parts_of(counts[0]) | {"passes": passes, "launches": max(0.0, launches - share * own_launches)}
    return Costs(first_call(job).lanes, counts, kernels, moved, play, share * rewards, parts)
