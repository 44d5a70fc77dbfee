"""What fixes a cell's results, as a key: equal keys mean equal bits.

A key is the sha256 of a description of what the cell computes, whoever wrote its parts: its traced program, its numbers
as they are used, and the values that it gives the host. No key depends on chunk sizes, memory, devices or what else
runs beside the cell, nor on where code lies and how it is written. So another machine, more seeds, more grid values,
new algorithms and other files all find what is finished.

Functions of this package have names that need no trace (`code_names`). What was traced under such a name is remembered
beside the compiled programs.
"""

import hashlib
import json
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jaxlib
import numpy as np

from jaxbandits.contract import runs_own_code
from jaxbandits.protocol import Adversary, Algorithm, Environment
from jaxbandits.source_places import place_of_error, place_of_function
from jaxbandits.sweeps.compilation import settings
from jaxbandits.sweeps.compilation.executables import (
    HERE,
    classes_of,
    code_name,
    key_of,
    name_of_parts,
    remembered,
    usable,
)
from jaxbandits.sweeps.compilation.program_digest import NoIdentity
from jaxbandits.sweeps.identity.traced_lane import kinds_of, traced_now
from jaxbandits.sweeps.plan import Cell, Group, Plan, cast, host_case, stacked
from jaxbandits.sweeps.storage.store import KEYS
from jaxbandits.sweeps.wording import first_line, in_brackets
from jaxbandits.traced_once import Traces
from jaxbandits.validation import Arguments
from jaxbandits.window import Parts

BASELINE_SEEDS = 8  # a baseline that depends on the seed is evaluated on so many


class Identified(NamedTuple):
    """A plan whose groups know what they compute, and the keys of its cells."""

    plan: Plan
    keys: list[str]
    nameless: dict[str, str]  # keys that no later run will find, and why


def identified(plan: Plan, platform: str, stored: bool) -> Identified:
    """Tell what every group computes, and name every cell.

    platform: the kind of device, such as "cpu". stored: whether keys are wanted. If not, only users' own functions are
    traced: they may have changed, and code that was compiled before the change must not be used again. Errors
    inside a user's functions pass through.
    """
    about, described = versions(platform), Described(plan.dtype)
    groups: list[Group] = []
    keys, nameless = [""] * (len(plan.cells) if stored else 0), {}
    for group in plan.groups:
        program: str | NoIdentity = ""
        own, group = own_functions(group.parts), _with_traces(group)
        if own:
            group, program = _traced(group, plan, stored)
        elif stored:
            program = _remembered(group, plan, platform)
        groups.append(group)
        if not stored:
            continue
        for c in group.cells:
            spans = [[*map(int, span)] for span in plan.cells[c].algorithm.schedule]
            shared = _sha([about, plan.dtype, str(program), group.times.tolist(), spans])
            try:
                if isinstance(program, NoIdentity):
                    raise program
                keys[c] = _sha([shared, *described.cell(plan.cells[c], group.times)])
            except NoIdentity as reason:
                keys[c] = _sha(uuid.uuid4().hex)
                nameless[keys[c]] = f"{plan.cells[c].label}: {reason}"
    return Identified(plan._replace(groups=groups), keys, nameless)


def own_functions(parts: Parts) -> bool:
    """Whether these parts hold anything but functions of this package and plain values: only a trace names it then.

    Whether a user wrote it is another question (`contract.runs_own_code`): an optax transformation has no name either.
    """
    return code_name(parts) is None


def _remembered(group: Group, plan: Plan, platform: str) -> str:
    """The program of a group of this package's functions, which is traced once for one state of the package.

    What its rules for `vmap` do is left to `KEYS`.
    """
    cell = plan.cells[group.cells[0]]
    leaves, treedef = jax.tree.flatten(stacked([host_case(cell)], plan.dtype)[0])
    shapes = [(x.shape, x.dtype.str) for x in leaves]
    about = (platform, kinds_of(group), shapes, str(treedef), classes_of(treedef), len(group.times))
    return remembered(
        key_of(name_of_parts(group.parts), None, "program", *about),
        lambda: traced_now(group, cell, plan.dtype, lasting=True, batch=False),
    )


def _traced(group: Group, plan: Plan, stored: bool) -> tuple[Group, str | NoIdentity]:
    """A group of a user's functions that knows its trace, which calls are made of, and its name for the store.

    Where two traces of the same functions differ, nothing lasting names them: a NoIdentity stands in its place.
    """
    cell = plan.cells[group.cells[0]]
    program: str | NoIdentity = NoIdentity("nothing is stored")
    if stored or usable():
        try:
            program, again = (
                traced_now(x, cell, plan.dtype, lasting=True, batch=x is group) for x in (group, _with_traces(group))
            )
            if not program.startswith(again):
                raise NoIdentity("its functions compute something else each time they are traced, as with `np.random`")
            return group._replace(parts=group.parts._replace(traced=program)), program
        except NoIdentity as reason:
            program = reason
    now = HERE + traced_now(group, cell, plan.dtype, lasting=False, batch=True)
    return group._replace(parts=group.parts._replace(traced=now)), program


def _with_traces(group: Group) -> Group:
    """A group that keeps its functions' first traces."""
    return group._replace(parts=group.parts._replace(traces=Traces()))


def versions(platform: str) -> list[Any]:
    """What the bits of results depend on beside the sweep: versions of JAX, the platform, and settings in force."""
    return [KEYS, jax.__version__, jaxlib.__version__, platform, settings.in_force()]


class Described:
    """What cells compute with, and give the host, beside their programs. Parts that cells share are described once."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        # ids of a part and of times -> both, so that the ids stay their own, and a description
        self.shared: dict[tuple[int, int], tuple[Any, Any, Any]] = {}

    def cell(self, cell: Cell, times: np.ndarray[Any, Any]) -> list[Any]:
        shared = []
        for part in (cell.environment, cell.reward_adversary, cell.message_adversary):
            key = (id(part), id(times))
            if key not in self.shared:
                self.shared[key] = part, times, self._part(part, times)
            shared.append(self.shared[key][-1])
        return [self._part(cell.algorithm, times), *shared]

    def _part(self, part: Algorithm | Environment | Adversary | None, times: np.ndarray[Any, Any]) -> Any:
        if part is None:
            return None
        numbers = [cast(x, self.dtype) for x in jax.tree.leaves(part.params)]
        host = []
        if isinstance(part, Environment):
            means = part.facts.get("means")
            host = [None if means is None else _bits([_float64(means)]), _baseline(part, times)]
        return [_bits(numbers), _own_version(part), *host]


def _own_version(part: Algorithm | Environment | Adversary) -> str | None:
    """The number that a user gave a part, None where it is this package's.

    It covers what nothing else shows, such as a baseline that reads a file for later seeds: its author raises it.
    """
    config: Any = part.config
    ours = isinstance(config, Arguments) and config.home.partition(".")[0] == __name__.partition(".")[0]
    if ours and config.built[-1] == part.version:
        return None
    return str(part.version[1:2] if isinstance(part, Algorithm) else part.version)


def _baseline(environment: Environment, times: np.ndarray[Any, Any]) -> list[str] | None:
    """The values of what is subtracted from losses, which is a function of the host."""
    if environment.world.baseline is None:
        return None
    seeds = range(BASELINE_SEEDS if environment.world.seeded else 1)
    # a user's function may give something else the next time
    turns = range(2 if runs_own_code(environment.world.baseline) else 1)
    values, *again = ([_bits([_baseline_values(environment, seed, times)]) for seed in seeds] for _ in turns)
    if again and again != [values]:
        raise NoIdentity("the environment's baseline is something else each time it is asked for")
    return values


def _baseline_values(environment: Environment, seed: int, times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What a baseline gives. ValueError where it fails or gives other than one number a checkpoint."""
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


def _bits(arrays: Sequence[np.ndarray[Any, Any]]) -> str:
    """Arrays exactly as they are: a hash of types, shapes and content."""
    sha = hashlib.sha256()
    for x in arrays:
        sha.update(f"{x.dtype.str} {x.shape} ".encode() + x.tobytes())
    return sha.hexdigest()


def _sha(x: Any) -> str:
    return hashlib.sha256(json.dumps(x, separators=(",", ":")).encode()).hexdigest()
