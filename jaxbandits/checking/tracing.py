"""The rules about functions that can be told from their traces, without compiling or playing anything."""

import math
import zlib

import jax

from jaxbandits.checking.findings import Faults, told
from jaxbandits.checking.subject import Subject
from jaxbandits.checking.traces import window_sizes
from jaxbandits.contract import constant_draws
from jaxbandits.environments.data import ORDER
from jaxbandits.source_places import place_of_function
from jaxbandits.sweeps.compilation.program_digest import first_difference
from jaxbandits.sweeps.part_checks.examination import Examination
from jaxbandits.sweeps.part_checks.fields import check_means
from jaxbandits.sweeps.plan import parts_in


def shapes(subject: Subject) -> Faults:
    """Functions take and return what the contract says, in windows of every size, in float32 and in float64."""
    where, cell, claim = place_of_function(subject.algorithm), subject.cell, subject.cell.algorithm.guarantee
    sizes, agents = window_sizes(cell.algorithm.schedule), cell.environment.facts.get("num_agents")
    view = None if claim.model == "none" else claim.view
    # a lane is begun from the shapes of a window of one play
    tries = [("float32", slots) for slots in sorted({1, *sizes})] + [("float64", slots) for slots in sizes]
    for dtype, slots in tries:
        with jax.enable_x64(dtype == "float64"):
            parts, case = subject.shapes(dtype)
            look = Examination(cell.label, parts, slots, agents, unread=True).of
            faults = list(told(subject.label, where, look, case, view))
        head = "" if dtype == "float32" else f"with dtype={dtype!r}, "
        yield from ((head + message, at) for message, at in faults)
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
    one, other = parts_in(first, "float32"), parts_in(second, "float32")
    if one != other:
        same = {"Program": one.program == other.program, "World": one.world == other.world}
        names = ", ".join(name for name in same if not same[name])
        yield (
            f"two calls with equal arguments give different functions ({names or 'of an adversary'}), which compiles "
            "anew at every point of a grid: decorate the builder of hashable values with functools.cache",
            where if "Program" in names else place_of_function(subject.environment),
        )


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
