"""The rules about what is played: a few lanes to the horizon, in several ways that must not matter."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.checking.findings import Faults
from jaxbandits.checking.subject import Subject
from jaxbandits.random import Draws
from jaxbandits.source_places import place_of_function
from jaxbandits.sweeps.engines.calls import LEAST_LANES

BAD_REWARDS = ("nan", "inf", -np.inf)
POLICY_PLAYS = 24  # of a fixed policy
WINDOW_SIZES = (3, 8, 24)  # its windows, beside those of one play
REGRET_TOLERANCE = 1e-5  # between sums of float32 regrets over windows that are cut at other plays


def plays(subject: Subject) -> Faults:
    """Lanes reach the horizon with finite regrets, and their pulls add up to their plays."""
    arrays, label = subject.played(), place_of_function(subject.algorithm)
    regret = arrays["regret"]
    bad = ~np.isfinite(regret)
    if bad.any():
        lane, checkpoint = np.argwhere(bad)[0]
        t = subject.plan.groups[0].times[checkpoint]
        where = place_of_function(subject.cell.environment.world.score)
        yield f"regret is {regret[lane, checkpoint]} at play {t} in lane {lane}", where or label
    if "pulls" in arrays and np.any(arrays["pulls"].sum(axis=-1) != subject.horizon):
        lane = int(np.argmax(arrays["pulls"].sum(axis=-1) != subject.horizon))
        total = int(arrays["pulls"][lane].sum())
        yield f"pulls of lane {lane} add up to {total}, not to its {subject.horizon} plays: an action is no arm", label


def actions(subject: Subject) -> Faults:
    """Every action is an arm, counted from 0."""
    if subject.cell.algorithm.program.hints.tally:
        return  # no single plays are made
    yield from _out_of_range(subject, subject.watched(0.0, 0.0)[0])


def bad_rewards(subject: Subject) -> Faults:
    """Rewards that are infinite or NaN make no state NaN, and no action leave the arms."""
    if subject.cell.algorithm.program.hints.tally:
        return
    clean = _with_nan(subject.watched(0.0, 0.0)[1])
    for value in BAD_REWARDS:
        history, state = subject.watched(0.3, value)
        fields = [name for name in _with_nan(state) if name not in clean]
        if fields:
            message = (
                f"a reward of {value} makes {', '.join(fields)} NaN, for "
                "good: rewards may be contaminated, so read them with "
                "jnp.where(jnp.isfinite(reward), reward, 0)"
            )
            yield message, place_of_function(subject.cell.algorithm.program.update)
            return
        for message, where in _out_of_range(subject, history):
            yield f"after rewards of {value}, {message}", where
            return


def _out_of_range(subject: Subject, history) -> Faults:
    environment = subject.cell.environment
    num_arms = environment.world.num_arms or environment.facts.get("num_arms", 0)
    played = np.asarray(history.action)
    bad = (played < 0) | (played >= num_arms)
    if num_arms and bad.any():
        at = tuple(np.argwhere(bad)[0])
        message = f"it played arm {played[at]} at play {int(history.t[at[0]])}; arms are 0..{num_arms - 1}"
        yield message, place_of_function(subject.cell.algorithm.program.act)


def _with_nan(state) -> list[str]:
    leaves = jax.tree_util.tree_flatten_with_path(state)[0]
    floats = [(path, np.asarray(x)) for path, x in leaves if jnp.issubdtype(jnp.result_type(x), jnp.floating)]
    return ["state" + jax.tree_util.keystr(path) for path, x in floats if np.isnan(x).any()]


def lane_alone(subject: Subject) -> Faults:
    """A lane alone is the same, bit for bit, as in a batch."""
    last = subject.seeds - 1
    alone, together = subject.played(first=last, seeds=1), subject.played()
    name = _differing(alone, {name: x[last:] for name, x in together.items()})
    if name:
        message = (
            f"lane {last} has another {name} alone than beside others: what "
            "one lane computes must not depend on others (np.random, "
            "host callbacks and custom batching rules do; sums of floats go through jaxbandits.numerics.fixed_sum)"
        )
        yield message, place_of_function(subject.cell.algorithm.program.act)


def chunks(subject: Subject) -> Faults:
    """Results are the same, bit for bit, however many lanes a call holds."""
    lanes = -(-max(subject.seeds, 2 * LEAST_LANES) // LEAST_LANES) * LEAST_LANES
    name = _differing(subject.played(lanes=lanes), subject.played())
    if name:
        message = (
            f"calls of {lanes} and of {LEAST_LANES} lanes give another {name}: write sums over short axes with "
            "jaxbandits.numerics.fixed_sum, dot or matvec, whose order is fixed"
        )
        yield message, place_of_function(subject.cell.algorithm.program.update)


def checkpoints(subject: Subject) -> Faults:
    """Pulls and regret at the horizon do not depend on where checkpoints lie."""
    usual, other = subject.played(), subject.played(evenly=True)
    where = place_of_function(subject.cell.algorithm.program.update)
    advice = "a checkpoint may end a window early, so count plays (used), not windows"
    if "pulls" in usual and not np.array_equal(usual["pulls"], other["pulls"]):
        yield f"pulls at the horizon depend on the checkpoints: {advice}", where
    elif not np.allclose(
        usual["regret"][:, -1], other["regret"][:, -1], rtol=REGRET_TOLERANCE, atol=REGRET_TOLERANCE * subject.horizon
    ):
        yield f"regret at the horizon depends on the checkpoints: {advice}", where


def windows(subject: Subject) -> Faults:
    """An environment pays a fixed policy the same rewards, bit for bit, under windows of every size."""
    one = _rewards(subject, 1)
    for slots in WINDOW_SIZES:
        if not np.array_equal(_rewards(subject, slots), one, equal_nan=True):
            message = (
                f"a fixed policy is paid other rewards in windows of {slots} "
                "plays than in windows of one: address draws by t, "
                "and make what changes with time a function of t"
            )
            yield message, place_of_function(subject.cell.environment.world.reward)
            return


def _rewards(subject: Subject, slots: int) -> np.ndarray:
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


def _differing(one: dict, other: dict) -> str:
    """The first array that differs in a bit, or nothing."""
    for name, x in one.items():
        y = other[name]
        if x.shape != y.shape or x.dtype != y.dtype or x.tobytes() != y.tobytes():
            return name.removeprefix("diagnostic.")
    return ""
