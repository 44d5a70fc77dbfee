"""What fixes a cell's results, as a key: equal keys mean equal bits.

A key is the sha256 of a description of what the cell computes, whoever wrote its parts: its traced program, its numbers
as they are used, and the values that it gives the host. No key depends on chunk sizes, memory, devices or what else
runs beside the cell, nor on where code lies and how it is written. So another machine, more seeds, more grid values,
new algorithms and other files all find what is finished.

A program is traced for one lane and never compiled. Functions of this package have names that need no trace
(`program_digest`). What was traced under such a name is remembered beside the compiled programs.

A Dataset says what was computed at each of its points (`selection.IDENTITY`), without a store too. There functions of
this package go by such a name, since a trace would hold up the first result, and a user's by their trace. The release
and the platform are in the Dataset's attribute `versions`.
"""

import contextlib
import hashlib
import json
import uuid
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
from jax.extend import core

from jaxbandits import simulator
from jaxbandits.contract import at_line, first_line, naming, operations, runs_own_code
from jaxbandits.protocol import Adversary, Algorithm, Case, Environment
from jaxbandits.recipe import unwrap
from jaxbandits.selection import label_digest
from jaxbandits.spans import Segment
from jaxbandits.strangers import Nameless, learner_of
from jaxbandits.sweeps.compilation import executables, settings
from jaxbandits.sweeps.compilation.compiled import Compiled
from jaxbandits.sweeps.compilation.program_digest import NoIdentity, fingerprint
from jaxbandits.sweeps.plan import Cell, Group, Plan, cast
from jaxbandits.sweeps.storage.store import KERNELS, KEYS
from jaxbandits.traced_once import Traces
from jaxbandits.validation import Arguments

PART_SLOTS = ("algorithm", "environment", "reward_adversary", "message_adversary")  # of a cell
PACKAGE = __name__.partition(".")[0]
BASELINE_SEEDS = 8  # a baseline that depends on the seed is evaluated on so many


def identify_cells(plan: Plan, platform: str, stored: bool) -> tuple[Plan, list[str], dict[str, str]]:
    """The plan with groups that know what they compute, its cells' keys, and of keys that no later run finds, why.

    platform: the kind of device, such as "cpu". stored: whether keys are wanted. If not, only users' own functions are
    traced: they may have changed, and code that was compiled before the change must not be used again.
    """
    about, known, groups = versions(platform) if stored else [], dict[Any, Any](), list[Group]()
    identities = [""] * len(plan.cells)
    keys, nameless = [""] * (len(plan.cells) if stored else 0), {}
    for group in plan.groups:
        group = group._replace(parts=group.parts._replace(traces=Traces()))  # it keeps its functions' first traces
        program: str | NoIdentity = ""
        if executables.code_name(group.parts) is None:  # only a trace names what is not this package's
            traced, program = _user_program(group, plan)
            group = group._replace(parts=group.parts._replace(traced=traced))
        elif stored:
            program = _package_program(group, plan, platform)
        groups.append(group)
        for c, words in zip(group.cells, _identify_points(group, plan, program, known), strict=True):
            identities[c] = words
        for c in group.cells if stored else ():
            spans = [[*map(int, span)] for span in plan.cells[c].algorithm.schedule]
            shared = _sha([about, plan.dtype, str(program), group.times.tolist(), spans])
            try:
                if isinstance(program, NoIdentity):
                    raise program
                keys[c] = _sha([shared, *inputs_of_cell(plan.cells[c], group.times, plan.dtype, known)])
            except NoIdentity as reason:
                keys[c] = _sha(uuid.uuid4().hex)
                nameless[keys[c]] = f"{plan.cells[c].label}: {reason}"
    return plan._replace(groups=groups, identities=tuple(identities)), keys, nameless


def _package_program(group: Group, plan: Plan, platform: str) -> str:
    """The program of a group of this package's functions, traced once for one state of the package."""
    cell = plan.cells[group.cells[0]]
    leaves, treedef = jax.tree.flatten(group.case)
    shapes = [(x.shape, x.dtype.str) for x in leaves]
    about = (platform, kinds_of(group), shapes, str(treedef), executables.classes_of(treedef), len(group.times))
    key = executables.key_of(executables.name_of_parts(group.parts, kernels=platform != "cpu"), None, "program", *about)
    # `KEYS` covers rules for `vmap`
    return executables.load_or_build(key, lambda: digest_of_group(group, cell, plan.dtype, lasting=True, batch=False))


def _user_program(group: Group, plan: Plan) -> tuple[str, str | NoIdentity]:
    """What users' functions are called in this process, and in any; why nothing lasting names them."""
    cell = plan.cells[group.cells[0]]
    try:
        now = digest_of_group(group, cell, plan.dtype, lasting=True, batch=True)
        anew = group._replace(parts=group.parts._replace(traces=Traces()))
        if not now.startswith(digest_of_group(anew, cell, plan.dtype, lasting=True, batch=False)):
            raise NoIdentity("its functions compute something else each time they are traced, as with `np.random`")
        return now, now
    except NoIdentity as reason:
        return executables.HERE + digest_of_group(group, cell, plan.dtype, lasting=False, batch=True), reason


def _identify_points(group: Group, plan: Plan, program: str | NoIdentity, known: dict[Any, Any]) -> Iterator[str]:
    """What a Dataset says was computed in each cell of a group: digests of its world, of all of it, and of its label.

    program: of users' functions; their worlds alone have no name. known: as `shared` of `inputs_of_cell`.
    """
    parts, without = group.parts._replace(settings="", traced=""), dict[str, Any](program=None, long=False)
    whole, world = map(executables.code_name, (parts, parts._replace(**without)))
    about = _sha([KEYS, plan.dtype, group.times.tolist()])
    spans = _sha([[*map(int, span)] for span in group.schedule])
    for c in group.cells:
        words = ["", ""]
        with contextlib.suppress(NoIdentity):
            inputs = partial(inputs_of_cell, plan.cells[c], group.times, plan.dtype, known, our_baselines=False)
            met = inputs(PART_SLOTS[1:])
            if world is not None:
                words[0] = _sha([about, world.sha, met])[:16]
            (algorithm,) = inputs(PART_SLOTS[:1])
            if whole is not None or isinstance(program, str):
                words[1] = _sha([about, whole.sha if whole else program, spans, algorithm, met])[:16]
        words = [word or f"-{uuid.uuid4().hex[:15]}" for word in words]  # equal to none
        yield " ".join([*words, label_digest(plan.cells[c].label)])


def versions(platform: str) -> list[Any]:
    """What the bits of results depend on beside the sweep: versions of JAX, the platform, and settings in force."""
    numbers = KEYS if platform == "cpu" else (KEYS, KERNELS)
    return [numbers, jax.__version__, jaxlib.__version__, platform, settings.in_force()]


def inputs_of_cell(
    cell: Cell,
    times: np.ndarray[Any, Any],
    dtype: str,
    shared: dict[Any, Any],
    slots: Sequence[str] = PART_SLOTS,
    *,
    our_baselines: bool = True,
) -> list[Any]:
    """What a cell computes with, and gives the host, beside its program.

    shared: descriptions of parts that cells share, by the ids of part and times, beside both, so that ids stay theirs.
    our_baselines: whether the values of this package's baselines are wanted, which follow from params.
    """
    found = []
    for part in map(cell.__getattribute__, slots):
        key = (id(part), id(times), our_baselines)
        if key not in shared:
            shared[key] = part, times, None if part is None else _inputs_of_part(part, times, dtype, our_baselines)
        found.append(shared[key][-1])
    return found


def _inputs_of_part(
    part: Algorithm | Environment | Adversary, times: np.ndarray[Any, Any], dtype: str, our_baselines: bool
) -> list[Any]:
    about = [_bits(*(cast(x, dtype) for x in jax.tree.leaves(part.params))), _own_version(part)]
    if not isinstance(part, Environment):
        return about
    means, wanted = part.facts.get("means"), our_baselines or runs_own_code(part.world.baseline)
    about.append(None if means is None else _bits(np.asarray(means, np.float64)))
    return [*about, _baseline(part, times) if wanted else None]


def _own_version(part: Algorithm | Environment | Adversary) -> str | None:
    """The number that a user gave a part, for what nothing else shows, such as a baseline's file; None for our own."""
    if isinstance(part, Algorithm) and (learner := learner_of(part.program)) is not None:
        try:
            return json.dumps(learner.identity())
        except Nameless as reason:
            raise NoIdentity(str(reason)) from None
    config: Any = part.config
    ours = isinstance(config, Arguments) and config.home.partition(".")[0] == PACKAGE
    if ours and config.built[-1] == part.version:
        bases = config.get("base"), config.get("bases")
        return str(part.version) if any(bases) and _are_users(bases) else None  # a conversion's has its bases' numbers
    return str(part.version[1:2] if isinstance(part, Algorithm) else part.version)


def _are_users(bases: Any) -> bool:
    """Whether any of some factories, in lists or not, is a user's."""
    if isinstance(bases, list | tuple):
        return any(map(_are_users, bases))
    if not callable(bases):
        return False
    function, bound, _ = unwrap(bases)
    return str(function.__module__).partition(".")[0] != PACKAGE or _are_users([bound.get("base"), bound.get("bases")])


def _baseline(environment: Environment, times: np.ndarray[Any, Any]) -> list[str] | None:
    """The values of the host's function that is subtracted from losses; ValueError where it is malformed."""
    baseline: Any = environment.world.baseline
    if baseline is None:
        return None

    def values(seed: int) -> str:
        try:
            found = np.asarray(baseline(environment.params, seed, times), np.float64)
        except Exception as error:
            reason = f"{type(error).__name__}: {first_line(error)}{at_line(error, baseline)}"
            raise ValueError(f"World.baseline(params, seed, times) fails: {reason}") from error
        if found.shape != times.shape:
            text = f"World.baseline must give one number a checkpoint, {len(times)} here, it gives shape {found.shape}"
            raise ValueError(text + at_line(baseline))
        return _bits(found)

    seeds = range(BASELINE_SEEDS if environment.world.seeded else 1)
    found = [*map(values, seeds)]
    # a user's function may give something else the next time
    if runs_own_code(baseline) and found != [*map(values, seeds)]:
        raise NoIdentity("the environment's baseline is something else each time it is asked for")
    return found


def _bits(*arrays: np.ndarray[Any, Any]) -> str:
    """Arrays exactly as they are: a hash of types, shapes and content."""
    sha = hashlib.sha256()
    for x in arrays:
        sha.update(f"{x.dtype.str} {x.shape} ".encode() + x.tobytes())
    return sha.hexdigest()


def _sha(x: object) -> str:
    return hashlib.sha256(json.dumps(x, separators=(",", ":")).encode()).hexdigest()


# ---------------------------------------------------------------------------- what a lane computes


def digest_of_group(group: Group, cell: Cell, dtype: str, *, lasting: bool, batch: bool) -> str:
    """What the program of a group computes now, as hashes.

    cell: one of the group, of whose numbers only shapes and dtypes matter. lasting: the hashes must hold in another
    process too; NoIdentity where that cannot be had. batch: where a function has a rule of its own for `vmap`, also
    trace what a batch of lanes computes. Errors inside a user's functions become a ValueError that names the cell.
    """
    case = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), group.case)
    with jax.enable_x64(dtype == "float64"):
        with naming(cell.label):
            program, results = _lane_program(group, case)
            programs = [program]
            if batch and "custom_vmap_call" in {one.primitive.name for one in operations(program.eqns)}:
                programs += [*_batch_programs(group, case, False), *_batch_programs(group, case, True)]
        return fingerprint(programs, results, lasting=lasting)


def _lane_program(group: Group, case: Case) -> tuple[core.ClosedJaxpr, list[Any]]:
    """The whole of one lane: begin, every kind of window, the end of a span, diagnostics; and names of the results."""
    parts, (kinds, closes) = group.parts, kinds_of(group)

    def lane(case, seed, times, segment):
        before = simulator.begin(parts, case, seed, len(group.times))
        after = [simulator.advance(parts, kind, case, seed, before, times, segment) for kind in kinds]
        closed = simulator.close(parts, case, seed, before) if closes else ()
        return before, after, closed, simulator.finish(parts, case, before)

    seed = jax.ShapeDtypeStruct((), jnp.uint32)
    program, out = jax.make_jaxpr(lane, return_shape=True)(case, seed, *_clock(group))
    record, diagnostics = out[3]
    return program, [str(jax.tree.structure(record)), sorted(diagnostics)]


def _batch_programs(group: Group, case: Case, moves: bool) -> Iterator[core.ClosedJaxpr]:
    """The engine's programs for two points and two seeds. moves: the params differ from point to point."""
    leaves, treedef = jax.tree.flatten(case)
    run = Compiled(group.parts, (0 if moves else -1,) * len(leaves), treedef, 2, len(group.times)).functions
    if moves:
        case = jax.tree.map(lambda x: jax.ShapeDtypeStruct((2, *x.shape), x.dtype), case)
    seeds, (kinds, closes) = jax.ShapeDtypeStruct((2,), jnp.uint32), kinds_of(group)
    begin, lane = jax.make_jaxpr(run["begin"], return_shape=True)(case, seeds)
    yield begin
    for kind in kinds:
        yield jax.make_jaxpr(run["advance"], static_argnums=0)(kind, case, seeds, lane, *_clock(group))
    if closes:
        yield jax.make_jaxpr(run["close"])(case, seeds, lane)
    yield jax.make_jaxpr(run["finish"])(case, lane)


def kinds_of(group: Group) -> tuple[tuple[tuple[int, bool, bool], ...], bool]:
    """The kinds of windows of a group's schedule, and whether something is computed at the end of a span."""
    kinds = dict.fromkeys((span.slots, span.full, span.whole) for span in group.schedule)
    return tuple(kinds), any(span.close for span in group.schedule)


def _clock(group: Group) -> tuple[jax.ShapeDtypeStruct, Segment]:
    """The shapes of the times of checkpoints, and of a segment."""
    number = jax.ShapeDtypeStruct((), jnp.int32)
    return jax.ShapeDtypeStruct(group.times.shape, jnp.int32), Segment(*(number,) * len(Segment._fields))
