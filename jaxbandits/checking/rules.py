"""The rules of `jaxbandits.check`, in the order in which they are looked at. What each promises is its docstring.

A rule yields what is wrong: a message, and the place in the author's code, or the function that it is about.
"""

import math
import re
import warnings
import zlib
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.auditing.audit import audit
from jaxbandits.auditing.differences import find_differences
from jaxbandits.checking.subject import Subject
from jaxbandits.contract import one_line, place_of
from jaxbandits.mechanisms.composition import claimed_epsilon
from jaxbandits.random import Draws
from jaxbandits.recipe import BY_NAME, recipe_of
from jaxbandits.sweeps.arguments import PARTS, call_factory, factory_of, part_factory
from jaxbandits.sweeps.engines.calls import LEAST_LANES
from jaxbandits.sweeps.part_checks.fields import check_claim, check_means
from jaxbandits.sweeps.plan import build_algorithm, parts_in, with_horizon
from jaxbandits.sweeps.simulate import History
from jaxbandits.sweeps.sweep import sweep

# The rules in their order. A sweep looks at the first two, too: `sweeps.part_checks`.
__all__ = [
    "builds", "shapes", "traces_once", "draws", "addresses", "guarantee", "differences", "short_audit", "plays",
    "actions", "lane_alone", "chunks", "checkpoints", "windows", "bad_rewards",
]  # fmt: skip

Faults = Iterator[tuple[str, Any]]  # messages, and places or the functions that they are about

ANY_NAMES = "*args or **kwargs: name its arguments, they are filled in by name"
NO_NAMES = "positional-only arguments: make them keyword-only, a * before them"
# Of a short audit: one refutes a true claim once in a thousand times.
AUDIT_RUNS, AUDIT_CONFIDENCE = 20_000, 0.999
FEW_BITS = 0.01  # what uniforms of few bits may add to an epsilon, relatively: 0.0014 measured, at epsilon = 0.0001
BAD_REWARDS = ("nan", "inf", -np.inf)
POLICY_PLAYS = 24  # of a fixed policy
WINDOW_SIZES = (3, 8, 24)  # its windows, beside those of one play
REGRET_TOLERANCE = 1e-5  # between sums of float32 regrets over windows that are cut at other plays
# messages of `sweeps` end with "(file:line)" or "(in Program.act, file:line)"
_WITH_PLACE = re.compile(r"(?P<text>.*) \((?:(?P<inside>in .*), )?(?P<place>[^()]+:\d+)\)")


def _report_errors(
    subject: Subject, look: Callable[..., Any], *arguments: object, about: object = None, head: str = ""
) -> Generator[tuple[str, str], None, Any]:
    """Call what raises an error about a part, as sweeps do before they run: its message, and the place that it names,
    else the part. Returns what the call gives, None where it fails.

    about: the part's factory; None: the algorithm's. head: what the message begins with.
    """
    try:
        return look(*arguments)
    except (TypeError, ValueError) as error:
        if isinstance(error, TypeError) and place_of(error):  # the part's own code fails
            raise
        text = str(error)
        for label in (f"{subject.label}: ", f"{subject.label!r}: ", f"{subject.label!r} "):
            text = text.removeprefix(label)
        named = _WITH_PLACE.fullmatch(one_line(text))
        if named is not None:
            yield head + named["text"] + (f" ({named['inside']})" if named["inside"] else ""), named["place"]
        else:
            yield head + text, place_of(error.__cause__, subject.algorithm if about is None else about)


def stranger(subject: Subject) -> Faults:
    """A foreign learner plays to the horizon, chooses arms that are there, and has the same run from the same seed."""
    parts: Any = {slot: getattr(subject, slot) for slot in PARTS}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        about = {"horizon": subject.horizon, "seeds": subject.seeds, "progress": False, **parts}
        yield from _report_errors(subject, partial(sweep, {subject.label: subject.algorithm}, **about))
    for warning in said:
        yield str(warning.message), ""


# ---------------------------------------------------------------------------- what is built and traced


def builds(subject: Subject) -> Faults:
    """Factories can be called, and return the right NamedTuple with its arguments in `config`.

    They take named arguments, and none without a default is missing.
    """
    parts = {}
    for slot in PARTS:
        if (part := getattr(subject, slot)) is not None:
            parts[slot] = yield from _report_errors(subject, _build_part, subject, slot, about=part)
    if None in parts.values():
        return
    algorithm = yield from _report_errors(subject, _build_part, subject, "algorithm", parts["environment"])
    if algorithm is None:
        return
    version, names = algorithm.version, recipe_of(subject.algorithm).arguments
    if len(version) < 2:
        text = f"version = {version!r} must be (name, number, static values): results are stored under it"
        yield text, subject.algorithm
    if any(name not in algorithm.config for name in names):
        remedy = "decorate the factory with jaxbandits.validation.factory"
        yield f"config does not hold the factory's arguments ({', '.join(names)}): {remedy}", subject.algorithm
    yield from _report_errors(subject, lambda: subject.plan)  # they fit each other, or this says why not


def _build_part(subject: Subject, slot: str, environment: Any = None) -> Any:
    """What a part's factory builds, as a sweep builds it. environment: the built one, of an algorithm."""
    part, horizon = getattr(subject, slot), subject.horizon
    recipe = factory_of(part, slot, slot) if slot == "algorithm" else part_factory(part, slot)
    for parameter in recipe.arguments.values():
        if parameter.kind not in BY_NAME:
            what = NO_NAMES if parameter.kind is parameter.POSITIONAL_ONLY else ANY_NAMES
            raise ValueError(f"{slot}: the factory takes {what}")
    if slot == "algorithm":
        return build_algorithm(recipe, environment, horizon, subject.label)
    return call_factory(recipe if slot == "environment" else with_horizon(recipe, horizon, slot), slot)


def shapes(subject: Subject) -> Faults:
    """Functions take and return what the contract says, in windows of every size, in float32 and in float64."""
    for dtype, head in (("float32", ""), ("float64", "with dtype='float64', ")):
        for slots in subject.sizes:
            if (yield from _report_errors(subject, subject.trace_window, slots, dtype, head=head)) is None:
                return
    if subject.trace_window(subject.sizes[-1]).counted:
        yield from _report_errors(subject, check_means, subject.cell.environment)


def traces_once(subject: Subject) -> Faults:
    """Equal arguments give the identical Program, so that a sweep over parameters compiles it once."""
    first, second = subject.cell, subject.build_plan().cells[0]
    if first.algorithm.version != second.algorithm.version:
        text = "version differs between two calls with equal arguments: make it of the arguments alone"
        yield text, subject.algorithm
    one, other = parts_in(first, "float32"), parts_in(second, "float32")
    if one != other:
        same = {"Program": one.program == other.program, "World": one.world == other.world}
        names = ", ".join(name for name in same if not same[name])
        text = f"two calls with equal arguments give different functions ({names or 'of an adversary'})"
        remedy = "decorate the builder of hashable values with functools.cache"
        about = subject.algorithm if "Program" in names else subject.environment
        yield f"{text}, which compiles anew at every point of a grid: {remedy}", about


def draws(subject: Subject) -> Faults:
    """Randomness comes from `draws`.

    There are no constant keys, and nothing is drawn while functions are traced, as np.random does.
    """
    yield from dict.fromkeys(doubt for slots in subject.sizes for doubt in subject.trace_window(slots).doubts)


def addresses(subject: Subject) -> Faults:
    """Within one window no address (path, play, position) is drawn twice, and no two paths share a key."""
    drawn, told, keys = subject.trace_window(subject.sizes[-1]).addresses, set[str](), dict[int, str]()
    for i, (path, low, high, place) in enumerate(drawn):
        other = keys.setdefault(zlib.crc32(path.encode()), path)
        twice = any(path == one and low < end and start < high for one, start, end, _ in drawn[:i])
        if path in told or not (twice or other != path):
            continue
        told.add(path)
        if twice:
            message = f"{path} is drawn twice at one play, so both draws are the same number"
            yield f"{message}: take two children, draws.child('one') and draws.child('other')", place
        else:
            yield f"the paths {other} and {path} share a key: rename a child", place


# ---------------------------------------------------------------------------- what is claimed of privacy


def guarantee(subject: Subject) -> Faults:
    """A guarantee's functions return what they should, and the claim is finite.

    Half the noise costs at least twice as much.
    """
    algorithm, factory = subject.cell.algorithm, subject.algorithm
    claim, params = algorithm.guarantee, algorithm.params
    faults = list(_report_errors(subject, check_claim, algorithm, subject.label))
    yield from faults
    if faults:
        return
    epsilon, delta = claim.spend(params)
    if claim.model == "none":
        if not math.isinf(epsilon):
            yield "guarantee.spend is finite but the model is 'none': say which model the claim is about", factory
        return
    if math.isinf(epsilon) and claimed_epsilon(algorithm) == math.inf:  # no privacy is asked for
        return
    if not (0 < epsilon < math.inf and 0 <= delta < 1):
        text = f"guarantee.spend says epsilon = {epsilon}, delta = {delta}"
        yield f"{text}: a claim has 0 < epsilon < inf and 0 <= delta < 1", factory
    elif "mechanism_scale" not in claim.scales or not hasattr(params, "mechanism_scale"):
        text = "guarantee.scales must name params.mechanism_scale, 1 by default, which multiplies all privacy noise"
        yield f"{text}: tests and audits turn the noise by it", factory
    else:
        halved = claim.spend(params._replace(mechanism_scale=0.5 * params.mechanism_scale))[0]
        if not halved >= 2 * epsilon * (1 - FEW_BITS):
            text = f"half of mechanism_scale spends epsilon = {halved:.6g}, all of it {epsilon:.6g}"
            remedy = "it must at least double, so events must follow params.mechanism_scale"
            yield f"{text}: {remedy}", place_of(claim.events, factory)
    if not jax.tree.leaves(jax.eval_shape(claim.view, *subject.trace_window(subject.sizes[-1]).shown)):
        text = "guarantee.view shows nothing: return what the theorem covers, of message, released and action"
        yield text, place_of(claim.view, factory)


def differences(subject: Subject) -> Faults:
    """One unit changes as many releases of whole runs with the same noise as events say, by no more than they say."""
    algorithm = subject.cell.algorithm
    if algorithm.guarantee.model == "none" or algorithm.program.hints.tally:
        return
    if fault := find_differences(algorithm, subject.cell.environment).fault:
        yield fault, algorithm.program.update


def short_audit(subject: Subject) -> Faults:
    """A short audit, of 20,000 runs at confidence 0.999, does not refute the claim."""
    algorithm = subject.cell.algorithm
    if algorithm.guarantee.model == "none" or algorithm.program.hints.tally:
        return
    report = audit(algorithm, runs=AUDIT_RUNS, confidence=AUDIT_CONFIDENCE, environment=subject.cell.environment)
    if report.refuted and not report.fault:
        yield f"the audit refutes the claim: {report}", algorithm.program.encode


# ---------------------------------------------------------------------------- what is played, in several ways


def plays(subject: Subject) -> Faults:
    """Lanes reach the horizon with finite regrets, and their pulls add up to their plays."""
    arrays, horizon = subject.play_seeds(), subject.horizon
    regret, times = arrays["regret"], subject.plan.groups[0].times
    for lane, checkpoint in np.argwhere(~np.isfinite(regret))[:1]:
        text = f"regret is {regret[lane, checkpoint]} at play {times[checkpoint]} in lane {lane}"
        yield text, place_of(subject.cell.environment.world.score, subject.algorithm)
    totals = arrays["pulls"].sum(axis=-1) if "pulls" in arrays else np.array([horizon])
    for lane in np.flatnonzero(totals != horizon)[:1]:
        text = f"pulls of lane {lane} add up to {totals[lane]}, not to its {horizon} plays: an action is no arm"
        yield text, subject.algorithm


def actions(subject: Subject) -> Faults:
    """Every action is an arm, counted from 0."""
    if not subject.cell.algorithm.program.hints.tally:  # otherwise no single plays are made
        yield from _out_of_range(subject, subject.record_lane(0.0, 0.0)[0])


def lane_alone(subject: Subject) -> Faults:
    """A lane alone is the same, bit for bit, as in a batch."""
    last = subject.seeds - 1
    alone, together = subject.play_seeds(first=last, seeds=1), subject.play_seeds()
    if name := _differing(alone, {name: x[last:] for name, x in together.items()}):
        text = f"lane {last} has another {name} alone than beside others: what one lane computes must not depend on"
        causes = "np.random, host callbacks and custom batching rules do"
        remedy = "sums of floats go through jaxbandits.numerics.fixed_sum"
        yield f"{text} others ({causes}; {remedy})", subject.cell.algorithm.program.act


def chunks(subject: Subject) -> Faults:
    """Results are the same, bit for bit, however many lanes a call holds."""
    lanes = -(-max(subject.seeds, 2 * LEAST_LANES) // LEAST_LANES) * LEAST_LANES
    if name := _differing(subject.play_seeds(lanes=lanes), subject.play_seeds()):
        text = f"calls of {lanes} and of {LEAST_LANES} lanes give another {name}: write sums over short axes with"
        order = "jaxbandits.numerics.fixed_sum, dot or matvec, whose order is fixed"
        yield f"{text} {order}", subject.cell.algorithm.program.update


def checkpoints(subject: Subject) -> Faults:
    """Pulls and regret at the horizon do not depend on where checkpoints lie."""
    usual, other, update = subject.play_seeds(), subject.play_seeds(evenly=True), subject.cell.algorithm.program.update
    advice = "a checkpoint may end a window early, so count plays (used), not windows"
    first, second, most = usual["regret"][:, -1], other["regret"][:, -1], REGRET_TOLERANCE
    if "pulls" in usual and not np.array_equal(usual["pulls"], other["pulls"]):
        yield f"pulls at the horizon depend on the checkpoints: {advice}", update
    elif not np.allclose(first, second, rtol=most, atol=most * subject.horizon):
        yield f"regret at the horizon depends on the checkpoints: {advice}", update


def windows(subject: Subject) -> Faults:
    """An environment pays a fixed policy the same rewards, bit for bit, under windows of every size."""
    one = _rewards(subject, 1)
    for slots in WINDOW_SIZES:
        if not np.array_equal(_rewards(subject, slots), one, equal_nan=True):
            text = f"a fixed policy is paid other rewards in windows of {slots} plays than in windows of one"
            remedy = "address draws by t, and make what changes with time a function of t"
            yield f"{text}: {remedy}", subject.cell.environment.world.reward
            return


def bad_rewards(subject: Subject) -> Faults:
    """Rewards that are infinite or NaN make no state NaN, and no action leave the arms."""
    program = subject.cell.algorithm.program
    if program.hints.tally:  # no single rewards are paid
        return
    clean = _with_nan(subject.record_lane(0.0, 0.0)[1])
    for value in BAD_REWARDS:
        history, state = subject.record_lane(0.3, value)
        if fields := [name for name in _with_nan(state) if name not in clean]:
            text = f"a reward of {value} makes {', '.join(fields)} NaN, for good: rewards may be contaminated"
            yield f"{text}, so read them with jnp.where(jnp.isfinite(reward), reward, 0)", program.update
            return
        for message, where in _out_of_range(subject, history):
            yield f"after rewards of {value}, {message}", where
            return


def _out_of_range(subject: Subject, history: History) -> Faults:
    environment, played = subject.cell.environment, np.asarray(history.action)
    num_arms = environment.world.num_arms or environment.facts.get("num_arms", 0)
    for at in map(tuple, np.argwhere((played < 0) | (played >= num_arms))[: 1 if num_arms else 0]):
        text = f"it played arm {played[at]} at play {int(history.t[at[0]])}; arms are 0..{num_arms - 1}"
        yield text, subject.cell.algorithm.program.act


def _with_nan(state: object) -> list[str]:
    leaves = jax.tree_util.tree_flatten_with_path(state)[0]
    floats = [(path, np.asarray(x)) for path, x in leaves if jnp.issubdtype(jnp.result_type(x), jnp.floating)]
    return ["state" + jax.tree_util.keystr(path) for path, x in floats if np.isnan(x).any()]


def _rewards(subject: Subject, slots: int) -> np.ndarray[Any, Any]:
    case, world = subject.case(), subject.plan.groups[0].parts.world
    draws, agents = Draws(jnp.uint32(3), "environment"), subject.cell.environment.facts.get("num_agents")

    @jax.jit  # as it runs: a lone operation outside a compiled program may round another way
    def pay(params, state, t, action):
        context, state = world.observe(params, state, draws.child("context"), t)
        return state, world.reward(params, state, draws.child("reward"), t, context, action)

    state, rewards = jax.jit(world.init)(case.environment, draws.child("instance")), []
    for start in range(0, POLICY_PLAYS, slots):
        t = np.arange(start + 1, start + 1 + slots, dtype=np.int32)
        action = (t % 2) if agents is None else np.broadcast_to((t % 2)[:, None], (slots, agents))
        state, paid = pay(case.environment, state, t, action)
        rewards.append(np.asarray(paid))
    return np.concatenate(rewards)


def _differing(one: dict[str, Any], other: dict[str, Any]) -> str:
    """The first array that differs in a bit, or nothing."""
    for name, x in one.items():
        y = other[name]
        if x.shape != y.shape or x.dtype != y.dtype or x.tobytes() != y.tobytes():
            return name.removeprefix("diagnostic.")
    return ""


RULES: tuple[Callable[[Subject], Faults], ...] = tuple(globals()[name] for name in __all__)
ENDING = (builds, shapes, plays)  # where one of these finds something, what follows could not run
