"""What fixes a cell's results, as a key: equal keys mean equal bits.

A key is the sha256 of a description of the cell. A part of this package is described by its version number and by the
arguments that differ from their defaults. Its code is not read, so files may move and arguments may be added. A cell
that holds anything of a user's is described by what it computes: its traced program, its numbers as they are used,
and the values that it gives the host. No key depends on chunk sizes, memory, devices or what else runs beside the
cell. So another machine, more seeds, more grid values and new algorithms all find what is finished.
"""

import hashlib
import json
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jaxlib
import numpy as np

from jaxbandits.protocol import Environment, Span
from jaxbandits.source_places import place_of_error, place_of_function
from jaxbandits.sweeps.compilation import settings
from jaxbandits.sweeps.compilation.executables import HERE, usable
from jaxbandits.sweeps.compilation.program_digest import NoIdentity, fingerprint, naming
from jaxbandits.sweeps.identity import pinned_code
from jaxbandits.sweeps.identity.library_parts import Altered, bits, describe_part, is_altered, numbers
from jaxbandits.sweeps.identity.traced_lane import lane_programs
from jaxbandits.sweeps.plan import Cell, Group, Plan, cast, host_case, stacked
from jaxbandits.sweeps.storage.store import KEYS
from jaxbandits.sweeps.wording import first_line, in_brackets
from jaxbandits.traced_once import Traces
from jaxbandits.window import Parts

BASELINE_SEEDS = 8  # a user's baseline that depends on the seed is evaluated on so many


class Identified(NamedTuple):
    """A plan whose groups know what they compute, and the keys of its cells."""

    plan: Plan
    keys: list[str]
    nameless: dict[str, str]  # keys that no later run will find, and why


def identified(plan: Plan, platform: str, stored: bool) -> Identified:
    """Trace what is not this package's own, once a group, and name every cell.

    platform: the kind of device, such as "cpu". stored: whether keys are wanted. If not, only users' own parts are
    traced: they may have changed, and code that was compiled before the change must not be used again. Errors
    inside a user's functions pass through.
    """
    describe = Describer()
    described = [describe.cell(cell) for cell in plan.cells]
    programs: list[str | NoIdentity | None] = []
    groups = []
    for group in plan.groups:
        own, program = any(described[c] is None for c in group.cells), None
        if own or (stored and not pinned_code.unchanged()):
            parts, program = _traced(group, plan, stored)
            group = group._replace(parts=parts) if own else group
        programs.append(program)
        groups.append(group)
    plan = plan._replace(groups=groups)
    if not stored:
        return Identified(plan, [], {})
    keys, nameless = [""] * len(plan.cells), {}
    common = {"about": versions(platform), "dtype": plan.dtype}
    times = {h: numbers(np.asarray(t)) for h, t in plan.times.items()}
    for group, program in zip(plan.groups, programs, strict=True):
        for c in group.cells:
            cell, content = plan.cells[c], described[c]
            try:
                if isinstance(program, NoIdentity):
                    raise program
                if content is None or not pinned_code.unchanged():
                    content = describe.computed(cell, program, group, plan)
                keys[c] = _sha(common | {"horizon": cell.horizon, "times": times[cell.horizon], "cell": content})
            except NoIdentity as reason:
                keys[c] = _sha(uuid.uuid4().hex)
                nameless[keys[c]] = f"{cell.label}: {reason}"
    return Identified(plan, keys, nameless)


def traced_now(
    parts: Parts,
    schedule: Sequence[Span],
    cell: Cell,
    times: np.ndarray[Any, Any],
    dtype: str,
    *,
    lasting: bool,
    batch: bool = True,
) -> str:
    """What a cell's program computes now, as hashes.

    lasting: the hashes must hold in another process too; NoIdentity where that cannot be had. batch: see
    `lane_programs`.
    """
    case, _ = stacked([host_case(cell)], dtype)
    with jax.enable_x64(dtype == "float64"), naming(cell.label):
        return fingerprint(*lane_programs(parts, schedule, case, len(times), batch), lasting=lasting)


def _traced(group: Group, plan: Plan, stored: bool) -> tuple[Parts, str | NoIdentity]:
    """A group's parts with their traces, which calls are made of, and their name for the store.

    Where two traces of the same functions differ, nothing lasting names them: a NoIdentity stands in its place.
    """
    cell, parts, again = plan.cells[group.cells[0]], *(group.parts._replace(traces=Traces()) for _ in range(2))

    def trace(parts: Parts, lasting: bool, batch: bool = True) -> str:
        return traced_now(parts, group.schedule, cell, group.times, plan.dtype, lasting=lasting, batch=batch)

    program: str | NoIdentity = NoIdentity("nothing is stored")
    if stored or usable():
        try:
            program = trace(parts, lasting=True)
            if not program.startswith(trace(again, lasting=True, batch=False)):
                raise NoIdentity("its functions compute something else each time they are traced, as with `np.random`")
            return parts._replace(traced=program), program
        except NoIdentity as reason:
            program = reason
    return parts._replace(traced=HERE + trace(parts, lasting=False)), program


def versions(platform: str) -> list[Any]:
    """What the bits of results depend on beside the sweep: versions of JAX, the platform, and settings in force."""
    return [KEYS, jax.__version__, jaxlib.__version__, platform, settings.in_force()]


def _sha(x: Any) -> str:
    return hashlib.sha256(json.dumps(x, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class Describer:
    """Describes cells, each environment and adversary once: cells share them."""

    def __init__(self) -> None:
        # id of a part -> the part, so that the id stays its own, and its description
        self.parts: dict[int, tuple[Any, Any]] = {}
        self.baselines: dict[tuple, Any] = {}

    def cell(self, cell: Cell) -> list[Any] | None:
        """The versions and arguments of a cell of this package's parts; None where it holds anything of a user's."""
        shared = (cell.environment, cell.reward_adversary, cell.message_adversary)
        try:
            return [describe_part(cell.algorithm), *(self._part(part) for part in shared)]
        except Altered:
            return None

    def _part(self, part: Any) -> Any:
        if id(part) not in self.parts:
            try:
                description: Any = describe_part(part)
            except Altered as own:
                description = own
            self.parts[id(part)] = (part, description)
        description = self.parts[id(part)][1]
        if isinstance(description, Altered):
            raise description
        return description

    def computed(self, cell: Cell, program: str | None, group: Group, plan: Plan) -> dict[str, Any]:
        """What a cell computes: its program, numbers and schedule, and what it gives the host."""
        leaves = jax.tree.leaves(host_case(cell))
        return {
            "program": program,
            "numbers": [bits(np.asarray(cast(x, plan.dtype))) for x in leaves],
            "schedule": [[int(x) for x in span] for span in cell.algorithm.schedule],
            "means": None if (means := cell.environment.facts.get("means")) is None else bits(_float64(means)),
            "baseline": self._baseline(cell.environment, group.times),
            # A version number covers what no entry above shows, such as a baseline that reads a file for later seeds:
            # its author gives it a higher number.
            "versions": [str(cell.algorithm.version[1:2]), *(str(part and part.version) for part in cell[2:5])],
        }

    def _baseline(self, environment: Environment, times: np.ndarray[Any, Any]) -> Any:
        """What is subtracted from losses: described where it is this package's, otherwise its values."""
        if environment.world.baseline is None:
            return None
        if pinned_code.unchanged() and not is_altered(environment):
            return self._part(environment)
        key = (id(environment), id(times))
        if key not in self.baselines:
            seeds = range(BASELINE_SEEDS if environment.world.seeded else 1)
            values, again = ([bits(_baseline_values(environment, seed, times)) for seed in seeds] for _ in range(2))
            if values != again:
                raise NoIdentity("the environment's baseline is something else each time it is asked for")
            self.baselines[key] = values
        return self.baselines[key]


def _baseline_values(environment: Environment, seed: int, times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What a user's baseline gives. ValueError where it fails or gives other than one number a checkpoint."""
    baseline: Any = environment.world.baseline
    try:
        values = _float64(baseline(environment.params, seed, times))
    except Exception as error:
        where = place_of_error(error) or place_of_function(baseline)
        raise ValueError(
            f"World.baseline(params, seed, times) fails: {type(error).__name__}: {first_line(error)}"
            f"{in_brackets(where)}"
        ) from error
    if values.shape != times.shape:
        raise ValueError(
            f"World.baseline must give one number a checkpoint, {len(times)} here, it gives shape {values.shape}"
            f"{in_brackets(place_of_function(baseline))}"
        )
    return values


def _float64(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x, np.float64)
