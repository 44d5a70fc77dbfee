"""The rules about functions that can be told from their traces, without compiling or playing anything."""

import functools
import itertools
import math
import zlib
from collections.abc import Iterator

import chex
import jax
import jax.numpy as jnp

from jaxbandits import simulator
from jaxbandits.checking.findings import told
from jaxbandits.checking.subject import Subject
from jaxbandits.checking.traces import CHECKPOINTS, walk_through, window_sizes
from jaxbandits.contract import constant_draws
from jaxbandits.environments.data import ORDER
from jaxbandits.source_places import place_of_function
from jaxbandits.sweeps.compilation.program_digest import first_difference
from jaxbandits.sweeps.part_checks.fields import check_means

Faults = Iterator[tuple[str, str]]
_turns = itertools.count()


def shapes(subject: Subject) -> Faults:
    """Functions take and return what the contract says, in windows of every size, in float32 and in float64."""
    where = place_of_function(subject.algorithm)
    sizes = window_sizes(subject.cell.algorithm.schedule)
    # a lane is begun from the shapes of a window of one play
    for dtype, tried in (("float32", sorted({1, *sizes})), ("float64", sizes)):
        for slots in tried:
            faults = list(told(subject.label, where, walk_through, subject.cell, dtype, slots))
            yield from (
                (message if dtype == "float32" else f"with dtype={dtype!r}, {message}", at) for message, at in faults
            )
            if faults:
                return
    if subject.traces().counted:
        yield from told(subject.label, where, check_means, subject.cell.environment)


def traces_once(subject: Subject) -> Faults:
    """Equal arguments give the identical Program, so that a sweep over parameters compiles it once."""
    first, second = subject.cell, subject.again().cells[0]
    where = place_of_function(subject.algorithm)
    if first.algorithm.version != second.algorithm.version:
        yield "version differs between two calls with equal arguments: make it of the arguments alone", where
    one_lane = _counted()
    case = jax.tree.map(lambda x: jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x)), subject.case())
    seed = jax.ShapeDtypeStruct((), jnp.uint32)
    try:
        for cell in (first, second):
            parts = simulator.parts_of(
                cell.algorithm, cell.environment, cell.reward_adversary, cell.message_adversary, "float32"
            )
            jax.eval_shape(functools.partial(one_lane, parts), case, seed)
    except AssertionError as error:
        if "is traced >" not in str(error):
            raise
        names = ", ".join(
            what for what, one, other in (
                ("Program", first.algorithm.program, second.algorithm.program),
                ("World", first.environment.world, second.environment.world),
            ) if one != other
        )  # fmt: skip
        message = (
            "two calls with equal arguments give different functions "
            f"({names or 'of an adversary'}), which compiles anew at every "
            "point of a grid: decorate the builder of hashable values with functools.cache"
        )
        yield message, where if "Program" in names else place_of_function(subject.environment)


def _counted():
    """A lane's beginning as a compiled function that may be traced once."""

    def one_lane(parts, case, seed):
        return simulator.begin(parts, case, seed, CHECKPOINTS)

    one_lane.__name__ = f"one_lane_{next(_turns)}"  # chex counts by name
    return jax.jit(chex.assert_max_traces(one_lane, n=1), static_argnums=0)


def addresses(subject: Subject) -> Faults:
    """Within one window no address (path, play, position) is drawn twice, and no two paths share a key."""
    spans = [
        (path, first, first + (1 if shape == "at" else max(math.prod(shape), 1)), place)
        for path, shape, first, place in subject.traces().addresses
        if not path.startswith(ORDER)  # a permutation, computed again wherever it is asked for
    ]
    told = set()
    for i, (path, low, high, place) in enumerate(spans):
        for other, other_low, other_high, _ in spans[:i]:
            if path == other and low < other_high and other_low < high and path not in told:
                told.add(path)
                message = f"{path} is drawn twice at one play, so both draws are the same number"
                yield f"{message}: take two children, draws.child('one') and draws.child('other')", place
    keys: dict = {}
    for path, _, _, place in spans:
        other = keys.setdefault(zlib.crc32(path.encode()), path)
        if other != path and path not in told:
            told.add(path)
            yield f"the paths {other} and {path} share a key: rename a child", place


def draws(subject: Subject) -> Faults:
    """Randomness comes from `draws`.

    There are no constant keys, and nothing is drawn while functions are traced, as np.random does.
    """
    once, again, program = subject.traces(), subject.traces(turn=1), subject.cell.algorithm.program
    functions = {"init": program.init, "close": program.close, "diagnose": program.diagnose}
    constant = (
        "a draw in {} uses a key that is the same in every lane: draw "
        "from draws, such as draws.uniform(t), or make the key by "
        "draws.key(t)"
    )
    other = (
        "{} is another program each time it is traced: np.random and "
        "random give one number for all lanes and plays; draw from draws"
    )
    for name, (closed, varying) in once.programs.items():
        fallback = place_of_function(functions.get(name, program.act))
        for place in constant_draws(closed, varying):
            yield constant.format(name), place or fallback
        place = first_difference(closed, again.programs[name][0])
        if place is not None:
            yield other.format(name), place or fallback
