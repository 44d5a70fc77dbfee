"""Where a reward is corrupted: as `reward_adversary` each reward is replaced with probability `corruption`.

That happens after the environment has paid and before the client encodes the reward (`window.py` calls it). In the
other slot, `message_adversary`, the same is done to the reports of clients, after their privacy noise.

Huber 1964; `docs/formulas/private_robust_mab.md#contamination` and `docs/formulas/robust_linear.md#adversaries`.
Axes: [P] plays of a window, [A] arms, [N] agents, [K] arms of an instance, [V] values of rewards.
"""

import math
from collections.abc import Callable
from functools import cache
from numbers import Real
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import lax, tree

from jaxbandits.declared import LATER, Doc, Ge, NonNegative, Probability
from jaxbandits.formatting import show
from jaxbandits.numerics import UNROLL, argmax, count, fixed_sum, pick
from jaxbandits.protocol import Adversary, AdversaryView, Attack, Loss, Moments, Report, Truth
from jaxbandits.random import Draws
from jaxbandits.typing import Array, Float, Int, Numeric, Scalar
from jaxbandits.validation import factory, number

Kind: TypeAlias = Literal[
    "fixed", "swapped", "gaussian", "cauchy", "sign_flip", "random_sign", "target", "subthreshold", "burst", "in_range"
]
# what value=None means; otherwise 0
VALUES = dict.fromkeys(("fixed", "random_sign", "target", "burst"), 10.0)
VALUES |= {"sign_flip": 1.0, "subthreshold": 0.99, "in_range": 1.0}
# kinds that read nothing but the numbers they replace, so that any message can be attacked by them
BLIND = ("fixed", "gaussian", "cauchy", "sign_flip", "random_sign")
CHOICES = 16  # how many honest reports "in_range" chooses from
# kinds that add few values, whatever the learner does
POINT_MASS_KINDS = ("fixed", "swapped", "sign_flip", "random_sign", "target")


class Params(NamedTuple):
    corruption: Numeric
    value: Numeric
    scale: Numeric
    batch: Numeric


def no_state(params, draws):
    """`Attack.init` where nothing is kept."""
    return ()


def mirror_arm(means: Float[Array, "... A"], action: Int[Array, "..."]) -> Int[Array, "..."]:
    """The arm whose rank by mean mirrors that of `action`: best and worst change places; equal means rank by index."""
    n = means.shape[-1]
    if n > UNROLL:
        order = jnp.argsort(means, axis=-1, stable=True).astype(jnp.int32)
        rank = jnp.argmax(order == action[..., None], axis=-1).astype(jnp.int32)
        return pick(order, n - 1 - rank)
    earlier = lax.broadcast_to_rank(np.tri(n, k=-1, dtype=bool), means.ndim + 1)  # [..., i, j]: j < i
    other, own = means[..., None, :], means[..., :, None]
    rank = count((other < own) | ((other == own) & earlier))
    return jnp.argmax(rank == (n - 1 - pick(rank, action))[..., None], axis=-1).astype(jnp.int32)


def _per(draws, t, shape, by_play):
    """How to address one draw for each entry of a payload: by play where each play has an entry, else by the window."""
    if by_play and shape[: t.ndim] == t.shape:
        return lambda method: getattr(draws.child(method[0]), method[1])(t, shape[t.ndim :])
    return lambda method: getattr(draws.child(method[0]), method[1])(t[0], shape)


def below_threshold(state: Any, share: Float[Array, ""]) -> Float[Array, ""]:
    """`|v|` at which a share of outliers +v and -v brings a filter's top eigenvalue to its threshold.

    alpha v^2 + rho^2 = 4 n lambda; `docs/formulas/robust_linear.md#adversaries`.
    """
    if isinstance(getattr(state, "threshold", ()), tuple):  # () where there is no filter
        raise ValueError(
            "huber(kind='subthreshold') hides below the threshold of a learner's filter: use it with "
            "robust_elimination, whose variance_bound is 'tight' or 'clean', or choose kind='target'"
        )
    return jnp.sqrt(jnp.maximum(state.threshold - state.mean_square, 0) / jnp.maximum(share, 1e-6))


def most_misleading(params: Params, draws: Draws, arm: Array, view: AdversaryView) -> Array:
    """Of some honest reports about a low reward of the best arm, or a high one of another, the lowest or highest.

    A loss is the other way round.
    """
    if view.encode is None:
        raise ValueError("huber(kind='in_range') sends reports: use it as message_adversary")
    if view.truth.means is None:
        raise ValueError("huber(kind='in_range') needs an environment with arm means: choose another kind")
    best = argmax(view.truth.means)
    pretended = jnp.where(view.action == best, -1, 1).astype(draws.dtype) * jnp.abs(params.value)
    sent = [view.encode(draws.child(f"choice{i}"), pretended.astype(draws.dtype)) for i in range(CHOICES)]
    values = jnp.stack([told.value if isinstance(told, Report) else tree.leaves(told)[0] for told in sent])
    best = best if best.shape in ((), arm.shape) else best[0]
    lowest = (arm == best) != isinstance(sent[0], Loss)
    return jnp.where(lowest, jnp.min(values, axis=0), jnp.max(values, axis=0))


def swap_rewards(x: Array, arm: Array, view: AdversaryView, loss: bool) -> Array:
    """Fresh rewards of the arms of mirrored rank, or losses."""
    # as many rewards as plays are drawn; a report that stands for several plays takes the first one's
    means = jnp.broadcast_to(view.truth.means, (*view.action.shape, view.truth.means.shape[-1]))
    fresh = view.sample(mirror_arm(means, view.action)).astype(x.dtype)
    if arm is view.action:
        return fresh
    if loss:
        return fixed_sum(jnp.where(view.play, 1 - fresh, 0))
    if x.ndim == fresh.ndim == 1:
        return fresh[jnp.argmax(view.action[None] == arm[:, None], axis=-1)]
    return fresh[0]


def blind_values(kind: str, params: Params, draw: Callable[..., Array], x: Array) -> Array:
    """What replaces x, for the kinds that read nothing else; draw: as `_per`."""
    value = jnp.asarray(params.value, x.dtype)
    if kind == "sign_flip":
        return -value * x
    if kind == "random_sign":
        return jnp.where(draw(("value", "uniform")) < 0.5, -value, value)
    if kind == "gaussian":
        return value + params.scale * draw(("value", "normal"))
    if kind == "cauchy":
        return value + params.scale * jnp.tan(math.pi * (draw(("value", "uniform")) - 0.5))
    return jnp.broadcast_to(value, x.shape)


def values_for_arm(kind: str, params: Params, x: Array, arm: Array, view: AdversaryView, loss: bool) -> Array:
    """What replaces the rewards, reports or losses x of an arm, for the kinds that look at the arm."""
    if view.truth.means is None:
        raise ValueError(f"huber(kind={kind!r}) needs an environment with arm means: choose another kind")
    if kind == "swapped":
        return swap_rewards(x, arm, view, loss)
    value = jnp.asarray(params.value, x.dtype)
    if kind == "subthreshold":
        value = value * below_threshold(view.state, jnp.asarray(params.corruption, x.dtype))
    best = argmax(view.truth.means)
    best = best if best.shape in ((), arm.shape) else best[0]  # means that change with the play, one report
    worse = jnp.where((arm == best) != loss, -1, 1).astype(x.dtype)  # a good arm is made worse
    return worse * jnp.abs(value)


def replace_entries(kind: str, params: Params, draws: Draws, t: Array, payload: Any, view: AdversaryView) -> Any:
    """A message of several numbers: where it is hit each of them is replaced."""
    if kind not in BLIND:
        raise ValueError(
            f"huber(kind={kind!r}) replaces one number for a play, and {type(payload).__name__} holds several: "
            f"choose one of {', '.join(map(repr, BLIND))}"
        )
    hit = (draws.child("hit").uniform(t[0]) < params.corruption) & jnp.any(view.play)

    def replace_leaf(number, x):
        if not jnp.issubdtype(x.dtype, jnp.floating):
            return x
        draw = _per(draws.child(f"entry{number}"), t, x.shape, by_play=False)
        return jnp.where(hit, blind_values(kind, params, draw, x), x)

    leaves, structure = tree.flatten(payload)
    return tree.unflatten(structure, [replace_leaf(i, x) for i, x in enumerate(leaves)])


def point_law(kind: str, params: Params, values: Array, probabilities: Array, truth: Truth) -> tuple[Array, Array]:
    """Rewards' values [V] and the arms' probabilities [K, V] with the point masses that a kind of POINTS adds."""
    share, value = jnp.asarray(params.corruption, values.dtype), jnp.asarray(params.value, values.dtype)
    arms = probabilities.shape[0]
    clean = (1 - share) * probabilities
    if kind == "swapped":
        other = mirror_arm(jnp.broadcast_to(truth.means, (arms, arms)), jnp.arange(arms, dtype=jnp.int32))
        return values, clean + share * probabilities[other]
    if kind == "sign_flip":
        return jnp.concatenate([values, -value * values]), jnp.concatenate([clean, share * probabilities], axis=-1)
    if kind == "fixed":
        added, weights = value[None], jnp.full((arms, 1), share)
    else:
        added = jnp.stack([-jnp.abs(value), jnp.abs(value)])
        weights = jnp.full((arms, 2), share / 2)
        if kind == "target":
            best = jnp.arange(arms, dtype=jnp.int32) == argmax(truth.means)
            weights = share * jnp.stack([best, ~best], axis=-1).astype(values.dtype)
    return jnp.concatenate([values, added]), jnp.concatenate([clean, weights], axis=-1)


@cache
def huber_attack(kind: str) -> Attack:
    """The attack's functions. Draws: hit and value, one of each for every reward or report."""

    def corrupt(params, state, draws, t, payload, view):
        loss = isinstance(payload, Loss)
        if isinstance(payload, Report):  # as message_adversary
            x, arm, may = payload.value, payload.arm, payload.present
        elif loss:
            x, arm, may = payload.total, view.action[0], jnp.any(view.play)
        elif hasattr(payload, "shape"):  # as reward_adversary
            x, may = payload, True
            arm = view.action if x.shape == view.action.shape else view.action[0]
        elif isinstance(payload, Moments):
            raise ValueError("huber corrupts rewards or reports, not Moments, the sums of agents: use byzantine")
        else:
            return replace_entries(kind, params, draws, t, payload, view), False, state
        # Reports that stand for several plays may be as many as the window's plays: those of one play carry its own
        # action.
        draw = _per(draws, t, x.shape, not isinstance(payload, Report) or payload.arm is view.action)
        hit = (draw(("hit", "uniform")) < params.corruption) & may
        if kind == "burst":
            if not hasattr(view.state, "batch"):
                raise ValueError(
                    "huber(kind='burst') waits for a batch: use it with a learner that plays batches, such as "
                    "robust_elimination"
                )
            hit = hit & (view.state.batch + 1 == jnp.asarray(params.batch).astype(jnp.int32))
        if kind == "in_range":
            bad = most_misleading(params, draws, arm, view)
        elif kind in (*BLIND, "burst"):
            bad = blind_values(kind, params, draw, x)
        else:
            bad = values_for_arm(kind, params, x, arm, view, loss)
        x = jnp.where(hit, bad, x)
        if loss:
            return payload._replace(total=x), False, state
        return (payload._replace(value=x) if isinstance(payload, Report) else x), False, state

    def law(params, values, probabilities, truth):
        return point_law(kind, params, values, probabilities, truth)

    return Attack(no_state, corrupt, law if kind in POINT_MASS_KINDS else None)


@cache
def range_after(kind: str) -> Callable[[Params, float, float], tuple[float, float]]:
    """The least and the largest reward after the attack."""

    def widen(params: Params, low: float, high: float) -> tuple[float, float]:
        value = abs(float(params.value))
        if params.corruption == 0 or kind == "swapped":
            return low, high
        if kind == "sign_flip":
            value *= max(abs(low), abs(high))
        elif kind in ("gaussian", "cauchy", "subthreshold") or math.isnan(value):
            value = math.inf
        return min(low, -value), max(high, value)

    return widen


@factory(
    source="Huber 1964; `docs/formulas/private_robust_mab.md#contamination`; "
    "`docs/formulas/robust_linear.md#adversaries`."
)
def huber(
    *,
    corruption: Annotated[Probability, Doc("At 0 rewards are bit-identical to a run without an adversary.")] = 0.1,
    kind: Kind = "fixed",
    value: Annotated[Scalar | str, LATER] | None = None,
    scale: Annotated[NonNegative, Doc('For "gaussian" and "cauchy".')] = 1.0,
    batch: Annotated[int, Ge(1), Doc('The batch that "burst" hits, the learner\'s first being 1.')] = 1,
) -> Annotated[Adversary, Doc("Regret is never masked.")]:
    """Replace each reward (as `reward_adversary`) or report (as `message_adversary`) with probability `corruption`.

    Rewards or reports are hit independently of each other.

    Args:
        kind: What a reward r is replaced by, with v = value. "fixed": v. "swapped": a fresh reward of the arm whose
            mean has the mirrored rank (as it is, without a client's noise, where it replaces a report). "gaussian":
            N(v, scale^2). "cauchy": v + scale * Cauchy. "sign_flip": -v * r. "random_sign": v or -v. "target": minus
            `|v|` on the best arm, `|v|` on the others. "subthreshold": as "target" with `|v|` = value sqrt((4 n lambda
            - rho^2) / corruption), just under what the filter of `robust_elimination` notices, read from the learner's
            state. "burst": as "fixed", in one batch of the learner only. "in_range": the report, of 16 that an honest
            client could have sent about a reward -`|v|` (best arm) or `|v|` (others), that misleads most; message
            adversary only. A loss, 1 - reward, is raised for the best arm where a reward would be lowered.
        value (float or {"inf", "-inf", "nan"}, optional): v. None: 10 for "fixed", "random_sign", "target" and "burst",
            1 for "sign_flip" and "in_range", 0.99 for "subthreshold", else 0.

    Raises:
        ValueError: If an argument is out of range. When a run begins: if "subthreshold" meets a learner without a
            filter, or "burst" one without batches; if "in_range" is a reward adversary, or a kind that needs to know
            the arm meets messages of several numbers.

    Note:
        Messages of several numbers, as linear bandits send, are hit as a whole: each number is replaced, by the kinds
        "fixed", "gaussian", "cauchy", "sign_flip" and "random_sign". The sums of agents are for `byzantine`. Learners
        from losses have no defence: an infinite loss spoils them, and the run says so.

    >>> jb.adversaries.huber(corruption=0.05, value="inf").params.value
    inf
    """
    if batch != 1 and kind != "burst":
        raise ValueError(f"batch = {batch!r} needs kind='burst', not {kind!r}: no other kind waits for a batch")
    if value is None:
        value = VALUES.get(kind, 0.0)
    elif isinstance(value, str):
        if value not in ("inf", "-inf", "nan"):
            raise ValueError(f"value = {show(value)} must be a number, 'inf', '-inf' or 'nan'")
        value = float(value)
    elif not (isinstance(value, Real) and math.isnan(value)):
        value = number("value", value, finite=False)
    params = Params(corruption, value, scale, batch)
    return Adversary(huber_attack(kind), params, None, {}, reward_range=range_after(kind))
