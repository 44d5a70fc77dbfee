"""Where rewards are corrupted up to a budget, as `reward_adversary`: what the attack is charged never exceeds `total`.

Strong budgets are charged what is done to the reward of the arm that is played, weak ones the most that may be done to
any arm: a weak adversary decides before it knows which arm is played. Lykouris, Mirrokni and Paes Leme 2018 (weak),
Bogunovic et al. 2022 (strong); the attacks are ours; `docs/formulas/robust_frontier.md#robust-frontier-budgets`.

Axes: [P] plays of a window, [A] arms, [K] arms of an instance.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import jax.numpy as jnp

from jaxbandits import numerics
from jaxbandits.adversaries.huber import mirror_arm
from jaxbandits.declared import HOST, Doc, Ge, Gt, Le, NonNegative
from jaxbandits.formatting import show
from jaxbandits.numerics import argmax, argmin, count, fixed_sum, materialize, materialize_all, one_hot, pick, rounded
from jaxbandits.protocol import Adversary, AdversaryView, Attack
from jaxbandits.typing import Array, Float, Numeric, Scalar
from jaxbandits.validation import factory

Kind: TypeAlias = Literal["lower_best", "raise_worst", "swap", "empirical_best"]
Strength: TypeAlias = Literal["strong", "weak"]
Schedule: TypeAlias = Literal["early", "late", "uniform", "burst"]
LAST_PLAY = 2**31 - 1  # no run is longer

End = Annotated[Scalar, Ge(-math.inf), Le(math.inf)]


class Params(NamedTuple):
    total: Numeric
    size: Numeric
    low: Numeric
    high: Numeric
    margin: Numeric
    start: Numeric  # plays start + 1 .. stop may be corrupted, int32
    stop: Numeric
    rate: Numeric  # after t plays at most rate * t is charged


class Aim(NamedTuple):
    """Which rewards of a window an attack changes, and how."""

    hit: Array  # [P], whether the arm that is played is attacked, and pays a finite reward
    needed: Numeric  # [P] or a number: a change of more than this is of no use
    difference: Any = ()  # [P], "swap": from the reward to that of the mirrored arm


class State(NamedTuple):
    spent: Array  # what was charged so far
    spent_low: Array  # what that sum lost by rounding
    regret: Array | tuple[()] = ()  # weak: regret in corrupted means
    regret_low: Array | tuple[()] = ()
    counts: Any = ()  # [K] int32, empirical_best: rewards delivered of each arm
    sums: Any = ()  # [K], and their sum


def spending_before(wants: Float[Array, " P"], bounds: Float[Array, " P"]) -> Float[Array, " P"]:
    """What plays 1 .. i - 1 of a window spend, if play j spends `wants[j]` until all have spent `bounds[j]`.

    A play makes s into min(s + want, bound). Such functions are composed pairwise, by doubling strides: a bound that
    is reached stays exact, however large the wants are that follow.
    """
    n, stride = wants.shape[0], 1
    nothing, anything = jnp.zeros_like(wants), jnp.full_like(bounds, jnp.inf)
    while stride < n:
        earlier = jnp.concatenate([nothing[:stride], wants[:-stride]])
        reached = jnp.concatenate([anything[:stride], bounds[:-stride]])
        wants, bounds = earlier + wants, jnp.minimum(reached + wants, bounds)
        stride *= 2
    return jnp.concatenate([nothing[:1], jnp.minimum(wants, bounds)[:-1]])


def refuse(kind: str, payload: object, view: AdversaryView) -> None:
    """Raise ValueError where the attack does not fit what it is to corrupt."""
    if view.encode is not None or not hasattr(payload, "ndim"):
        raise ValueError("budgeted corrupts rewards: use it as reward_adversary, and huber or byzantine for messages")
    if payload.ndim != 1:
        raise ValueError(
            "budgeted corrupts one reward a play, and this environment pays several agents: use poison or huber"
        )
    if view.truth.means is None:
        raise ValueError("budgeted needs an environment with arm means: choose another environment, or huber")
    if kind == "empirical_best" and view.truth.means.ndim != 1:
        raise ValueError(
            "budgeted(kind='empirical_best') needs arms whose means stay: choose kind='lower_best' where they change "
            "with the play"
        )


def attack_rewards(kind: str, params: Params, aim: Aim, x: Float[Array, " P"], cap: Array) -> Float[Array, " P"]:
    """The rewards x after an attack that changes each by `cap` at most."""
    cap = jnp.minimum(cap, aim.needed)
    if kind == "swap":
        new = x + jnp.clip(aim.difference, -cap, cap)
    elif kind == "raise_worst":
        new = jnp.maximum(x, jnp.minimum(params.high, x + cap))
    else:
        new = jnp.minimum(x, jnp.maximum(params.low, x - cap))
    # Rounding may carry the reward half a unit in its last place too far. Then it goes back by one unit:
    # 5/8 of epsilon times itself is more than a half of one and less than one and a half.
    unit = 0.625 * jnp.finfo(x.dtype).eps * jnp.abs(new)
    new = jnp.where(jnp.abs(new - x) > cap, jnp.where(new > x, new - unit, new + unit), new)
    return jnp.where(aim.hit & (cap > 0), new, x)


def gaps_under_attack(kind: str, params: Params, cap: Float[Array, " P"], best: Array, view: Any) -> Float[Array, " P"]:
    """By how much the best arm's mean exceeds the played arm's when the attack is made on the means, [P]."""
    means = jnp.broadcast_to(view.truth.means, (*cap.shape, view.truth.means.shape[-1]))
    action, worst, top = view.action, argmin(view.truth.means), jnp.max(view.truth.means, axis=-1)

    def mean_under_attack(arm, mean):
        if kind == "swap":
            return mean + jnp.clip(pick(means, mirror_arm(means, arm)) - mean, -cap, cap)
        if kind == "raise_worst":
            return mean + jnp.where(arm == worst, jnp.clip(params.high - mean, 0, cap), 0)
        return mean - jnp.where(arm == best, jnp.clip(mean - params.low, 0, cap), 0)

    of_best = mean_under_attack(jnp.broadcast_to(best, cap.shape), jnp.broadcast_to(top, cap.shape))
    return of_best - mean_under_attack(action, pick(means, action))


def ahead_of_rivals(weak: bool, params: Params, state: State, best: Array, t: Array) -> Array:
    """Empirical best: x plus this is what brings the best arm's mean with a reward x down to its rivals'.

    The rivals' is the largest mean that was delivered of another arm, less the margin: -inf without one. A weak
    attack, which does not see x, is told whether the best arm's mean is above: inf, or -inf where it is not.
    """
    means = state.sums / jnp.maximum(state.counts, 1).astype(state.sums.dtype)
    rivals = (jnp.arange(means.shape[0], dtype=jnp.int32) != best) & (state.counts > 0)
    some = jnp.any(rivals)
    aim = jnp.max(jnp.where(rivals, means, -jnp.inf)) - params.margin
    plays, mean = pick(state.counts, best), pick(means, best)
    if weak:
        return materialize(jnp.where(some & (plays > 0) & (mean > aim), jnp.inf, -jnp.inf).astype(mean.dtype))
    product = rounded((plays + 1).astype(mean.dtype) * jnp.where(some, aim, 0), t[0])
    return materialize(jnp.where(some, pick(state.sums, best) - product, -jnp.inf))


def aim_attack(kind: str, x: Float[Array, " P"], finite: Array, best: Array, needed: Any, view: AdversaryView) -> Aim:
    """What an attack of this kind is aimed at."""
    if kind == "swap":
        per_play = jnp.broadcast_to(view.truth.means, (*x.shape, view.truth.means.shape[-1]))
        difference = view.sample(mirror_arm(per_play, view.action)).astype(x.dtype) - x
        return Aim(finite & ~jnp.isnan(difference), needed, difference)
    return Aim(finite & (view.action == (argmin(view.truth.means) if kind == "raise_worst" else best)), needed)


@cache
def attack_in_budget(kind: str, strength: str) -> Attack:
    """The attack's functions. Draws: reward, for "swap" alone."""
    weak, watches = strength == "weak", kind == "empirical_best"

    def init(params, draws):
        zero = jnp.zeros((), draws.dtype)
        return State(zero, zero, *((zero, zero) if weak else ((), ())))

    def per_arm(state, arms):
        return state._replace(counts=jnp.zeros(arms, jnp.int32), sums=jnp.zeros(arms, state.spent.dtype))

    def corrupt(params, state, draws, t, x, view):
        refuse(kind, x, view)
        best, finite = argmax(view.truth.means), jnp.isfinite(x)
        may = view.play & (t > params.start) & (t <= params.stop)
        needed = jnp.inf
        if watches:
            needed = jnp.maximum(ahead_of_rivals(weak, params, state, best, t) + jnp.where(finite, x, 0), 0)
            may, needed = (may & (needed > 0), jnp.inf) if weak else (may, needed)
        aim = aim_attack(kind, x, finite, best, needed, view)

        def change(cap):
            return jnp.where(aim.hit, jnp.abs(attack_rewards(kind, params, aim, x, cap) - x), 0)

        room = (jnp.minimum(params.total, params.rate * t.astype(x.dtype)) - state.spent) - state.spent_low
        if t.shape[0] > 1:
            most = jnp.where(may, params.size, 0)
            room = room - spending_before(most if weak else change(most), room)
        cap = jnp.where(may, jnp.clip(room, 0, params.size), 0)
        new, charges = attack_rewards(kind, params, aim, x, cap), cap if weak else change(cap)
        charged = fixed_sum(charges)
        if t.shape[0] > 1:  # a sum may exceed what is left by some units in its last place
            charged = jnp.minimum(charged, jnp.maximum((params.total - state.spent) - state.spent_low, 0))
        account = [*numerics.two_sum(state.spent, state.spent_low, charged)]
        if weak:
            gaps = jnp.where(view.play, gaps_under_attack(kind, params, cap, best, view), 0)
            account += numerics.two_sum(state.regret, state.regret_low, fixed_sum(gaps))
        if t.shape[0] == 1:  # all of them in one loop over the lanes
            first, *account = materialize_all([new[0], *account])
            new = first[None]
        state = state._replace(**dict(zip(("spent", "spent_low", "regret", "regret_low"), account, strict=False)))
        return new, False, with_rewards(state, new, finite, view) if watches else state

    def diagnose(params, state):
        spent = {"corruption_spent": state.spent}
        return spent | {"corrupted_regret": state.regret} if weak else spent

    return Attack(init, corrupt, diagnose=diagnose, per_arm=per_arm if watches else None)


def with_rewards(state: State, new: Float[Array, " P"], finite: Array, view: AdversaryView) -> State:
    """The state after rewards were delivered; finite: which of them were before the attack."""
    told = one_hot(view.action, view.truth.means.shape[0]) & (view.play & finite)[:, None]
    counts = state.counts + count(told, axis=0)
    return state._replace(counts=counts, sums=state.sums + fixed_sum(jnp.where(told, new[:, None], 0), axis=0))


@cache
def range_after(kind: str) -> Callable[[Params, float, float], tuple[float, float]]:
    """The least and the largest reward after the attack."""

    def widen(params: Params, low: float, high: float) -> tuple[float, float]:
        change = float(min(params.size, params.total))
        if kind == "swap":
            return low, high
        if kind == "raise_worst":
            return low, max(high, min(float(params.high), high + change))
        return min(low, max(float(params.low), low - change)), high

    return widen


@factory(
    source="Lykouris, Mirrokni and Paes Leme 2018 (weak budgets); Bogunovic et al. 2022 (strong ones); "
    "`docs/formulas/robust_frontier.md#robust-frontier-budgets`. The attacks are ours."
)
def budgeted(
    *,
    total: NonNegative,
    kind: Kind = "lower_best",
    strength: Strength = "strong",
    schedule: Annotated[Schedule, HOST] = "early",
    size: Annotated[Scalar, Gt(0), Le(math.inf), Doc("The most that one reward is changed by.")] = 1.0,
    low: End = 0.0,
    high: End = 1.0,
    margin: Annotated[NonNegative, Doc('For "empirical_best".')] = 0.1,
    horizon: Annotated[int, Ge(1), Le(LAST_PLAY - 1)] | None = None,
) -> Adversary:
    """Corrupt rewards up to a budget: what is charged never exceeds `total`, in every run.

    Used as `reward_adversary`. The best and the worst arm are those of largest and smallest true mean, the lowest
    index on ties.

    Args:
        total: The budget C of a run, in units of a reward. At 0 rewards are bit-identical to a run without an
            adversary.
        kind: What is done to a reward r, by at most cap = min(size, what is left of the budget). "lower_best": r - cap
            of the best arm, not below `low`. "raise_worst": r + cap of the worst arm, not above `high`. "swap": r moves
            towards a fresh reward of the arm whose mean has the mirrored rank. "empirical_best": as "lower_best", and
            no more than brings the best arm's mean of delivered rewards down to the largest such mean of another arm,
            less `margin`; a weak one takes its whole cap while that mean is above.
        strength: Whom the budget is charged for. "strong": the attack sees which arm is played and is charged what it
            does to that arm's reward. "weak": it is decided for all arms before one is played, and is charged cap, the
            most that it may do to any of them.
        schedule: When: "early", from the first play; "late", in the second half; "uniform", at most total t / T by t;
            "burst", in ceil(T / 16) plays after the first quarter.
        low, high: Rewards are not lowered below `low` or raised above `high`; "swap" reads neither. low < high,
            infinite ends allowed. A reward that is already beyond its end stays. Give -inf and inf where rewards leave
            [0, 1].
        horizon: Plays T of a run. `sweep` and `simulate` fill it in. Only "early" does without.

    Returns:
        Adversary: Regret is never masked: it is regret in clean means. Results hold `corruption_spent`, what was
            charged, and with strength="weak" `corrupted_regret`, regret in means that the attack has changed.

    Raises:
        ValueError: If an argument is out of range, or `horizon` is missing. When a run begins: if rewards are those of
            agents, the environment has no arm means, "empirical_best" meets means that change with the play, or the
            attack is a message adversary.

    Note:
        Rewards that are not finite pass untouched; a strong attack is charged nothing for them. In a window of many
        plays the budget is spent in their order, and plays that are offered and not made cost nothing; "empirical_best"
        goes by the means at the window's start. No run rests under this attack: plays that an algorithm has decided are
        made, since they may be charged.

    >>> arms = jb.environments.bernoulli_arms(means=[0.2, 0.8])
    >>> attack = jb.adversaries.budgeted(total=12.5)
    >>> run = jb.simulate(jb.algorithms.ucb1(num_arms=2, horizon=500), arms, reward_adversary=attack)
    >>> float(run.diagnostics["corruption_spent"]) <= 12.5
    True
    """
    if low >= high:
        raise ValueError(f"low = {show(low)} must be below high = {show(high)}: no reward lies between them")
    start, stop, rate = 0, LAST_PLAY, math.inf
    if horizon is None:
        if schedule != "early":
            raise ValueError(
                f"schedule = {schedule!r} needs horizon, the plays of a run: give it, or leave the factory uncalled, "
                f"as in functools.partial(budgeted, total={total:g}, schedule={schedule!r}), and it is filled in"
            )
        horizon = LAST_PLAY
    if schedule == "late":
        start = horizon // 2
    elif schedule == "burst":
        start = horizon // 4
        stop = start - (-horizon // 16)
    elif schedule == "uniform":
        rate = float(total / horizon)
    params = Params(total=total, size=size, low=low, high=high, margin=margin, start=start, stop=stop, rate=rate)
    return Adversary(attack_in_budget(kind, strength), params, None, {}, reward_range=range_after(kind))
