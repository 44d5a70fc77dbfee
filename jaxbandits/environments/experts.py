"""Experts over a loss sequence: public advice, regret against the best expert.

Axes: [P] plays of a window, [N] experts, [K] arms, [C] checkpoints.
"""

from functools import cache
from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.declared import LATER, STATIC, Doc, Ge, Le, Probability
from jaxbandits.environments.losses import Losses
from jaxbandits.protocol import Environment, Score, World
from jaxbandits.typing import Numeric, Tensor
from jaxbandits.validation import array, factory, integer, numbers

CHUNK = 1 << 20  # entries of a temporary array on the host


class Params(NamedTuple):
    losses: Any  # params of the loss environment
    spread: Numeric  # rho: the share of an expert's probability that is spread evenly
    rotation: Numeric  # int32: plays between two moves of a rotating expert
    advice: Numeric | tuple[()]  # [N, K] or [T, N, K]; () where experts rotate


def _rotating_arm(num_arms: int, num_experts: int, turn: Any) -> Any:
    """The arm expert j leans on after `turn` [...] moves: j, or past the first K experts (j + turn) mod K: [..., N]."""
    expert = np.arange(num_experts, dtype=np.int32)
    expert, moves = (x.reshape((1,) * turn.ndim + x.shape) for x in (expert, (expert >= num_arms).astype(np.int32)))
    return (expert + turn[..., None] * moves) % num_arms


@cache
def experts_world(inner: World, losses: Losses, num_experts: int, kind: str) -> World:
    """A loss world seen through experts; kind: "rotating", "fixed" (advice [N, K]) or "table" (advice [T, N, K])."""
    num_arms = inner.num_arms

    def init(params, draws):
        return inner.init(params.losses, draws)

    def observe(params, state, draws, t):
        _, state = inner.observe(params.losses, state, draws, t)
        if kind == "fixed":
            return jnp.broadcast_to(params.advice, (*t.shape, *params.advice.shape)), state
        if kind == "table":
            return params.advice[jnp.minimum(t - 1, params.advice.shape[0] - 1)], state
        turn = (t - 1) // jnp.asarray(params.rotation).astype(jnp.int32) % num_arms
        leader = _rotating_arm(num_arms, num_experts, turn)[..., None]
        lean = leader == np.arange(num_arms, dtype=np.int32).reshape((1,) * turn.ndim + (1, num_arms))
        spread = jnp.asarray(params.spread, draws.dtype)
        return jnp.where(lean, 1 - spread, 0) + spread / num_arms, state

    def reward(params, state, draws, t, context, action):
        return inner.reward(params.losses, state, draws, t, (), action)

    def score(params, state, t, context, action):
        return Score(arm=action, regret=losses.mean(params.losses, t, action))

    def truth(params, state, t, context):
        return inner.truth(params.losses, state, t, ())

    def expert_losses(params, starts, totals):
        """Loss of each expert over stretches of constant advice: first plays [n], summed losses [n, K] -> [n, N]."""
        if kind == "fixed":
            return totals @ np.asarray(params.advice, np.float64).T
        if kind == "table":
            return np.einsum("nk,njk->nj", totals, np.asarray(params.advice, np.float64)[starts - 1])
        spread = float(params.spread)
        arms = _rotating_arm(num_arms, num_experts, (starts - 1) // int(params.rotation) % num_arms)
        return (1 - spread) * np.take_along_axis(totals, arms, 1) + spread / num_arms * totals.sum(1, keepdims=True)

    def baseline(params, seed, times):
        times = np.asarray(times, np.int64)
        horizon = int(times.max(initial=0))
        length = {"rotating": int(params.rotation), "fixed": max(horizon, 1), "table": 1}[kind]
        stride = max(1, CHUNK // (num_experts * (num_arms if kind == "table" else 1))) * length
        best, total = np.zeros(len(times)), np.zeros(num_experts)
        before = np.zeros(num_arms)
        for start in range(0, horizon, stride):  # stretches end where the advice moves and at every checkpoint
            stop = min(start + stride, horizon)
            inside = (times > start) & (times <= stop)
            ends = np.unique(np.concatenate([np.arange(start + length, stop, length), times[inside], [stop]]))
            sums = np.concatenate([before[None], losses.cumulative(params.losses, ends)])
            firsts = np.concatenate([[start], ends[:-1]]) + 1
            running = total + np.cumsum(expert_losses(params, firsts, np.diff(sums, axis=0)), axis=0)
            best[inside] = running.min(axis=1)[np.searchsorted(ends, times[inside])]
            before, total = sums[-1], running[-1]
        return best

    return World(init, observe, reward, score, truth, num_arms=num_arms, baseline=baseline)


@factory(source="The instance is ours: `docs/formulas/private_adversarial.md#advice`.")
def rotating_experts(
    *,
    losses: Annotated[Environment, Doc("A loss environment, already called, such as ``bernoulli_losses(means=...)``.")],
    num_experts: Annotated[int, Ge(2), STATIC, LATER] | None = None,
    spread: Probability = 0.2,
    rotation: Annotated[int, Ge(1), Le(2**31 - 1)] = 100,
    advice: Tensor | None = None,
) -> Environment:
    """Experts who advise on the arms of a loss environment, either by rotating favourites or by given probabilities.

    Args:
        num_experts: Number of experts N. Needed unless `advice` is given.
        spread: Share of an expert's probability that is spread evenly over the arms. The rest is on its favourite.
        rotation: Plays between two moves of a favourite. Expert j < K always favours arm j; expert j >= K favours arm
            (j + floor((t - 1) / rotation)) mod K.
        advice (array_like of shape (N, K) or (T, N, K), optional): Probabilities over the arms instead, the same at
            every play or one table for each of T plays. Then `spread` and `rotation` are not used.

    Returns:
        Environment: The context of a play is the advice [N, K]. Facts: `num_arms`, `num_experts`, and `max_horizon`
            where a table limits the plays. Regret compares the expected losses of the played arms with those of the
            best expert over plays 1..t.

    Raises:
        ValueError: For an argument outside its range; names the row of advice that does not sum to 1.

    >>> inner = jb.environments.fixed_gap_losses(num_arms=3)
    >>> jb.environments.rotating_experts(losses=inner, num_experts=5).facts["num_experts"]
    5
    """
    facts = getattr(losses, "facts", {})
    if not isinstance(losses, Environment) or "losses" not in facts:
        name = getattr(losses, "__name__", None) or type(losses).__name__
        raise ValueError(f"losses = {name} must be a called loss environment: bernoulli_losses(means=...), for example")
    num_arms = facts["num_arms"]
    horizons = [facts["max_horizon"]] if "max_horizon" in facts else []
    checked: Any
    if advice is None:
        if num_experts is None:
            raise ValueError("num_experts = None must be an integer of at least 2 unless advice is given")
        kind, checked = "rotating", ()
    else:
        remedy = "[N, K] or [T, N, K] probabilities"
        checked = numbers("advice", advice, remedy)
        kind = "table" if checked.ndim == 3 else "fixed"
        checked = array("advice", checked, 3 if kind == "table" else 2, 0.0, 1.0, remedy=remedy)
        if checked.shape[-1] != num_arms:
            raise ValueError(
                f"advice has {checked.shape[-1]} columns, losses {num_arms} arms: give one probability for each arm"
            )
        off = np.abs(checked.sum(axis=-1) - 1) > 1e-6
        if off.any():
            row = tuple(int(i) for i in np.argwhere(off)[0])
            raise ValueError(
                f"advice, row {list(row)}, sums to {checked[row].sum():.6g}, not to 1: divide it by its sum"
            )
        if num_experts is not None and num_experts != checked.shape[-2]:
            raise ValueError(
                f"num_experts = {num_experts} disagrees with advice, which has {checked.shape[-2]} experts: drop one"
            )
        num_experts = checked.shape[-2]
        if kind == "table":
            horizons.append(len(checked))
    num_experts = integer("num_experts", num_experts, 2)
    params = Params(losses.params, spread, np.int32(rotation), checked)
    known = {"num_arms": num_arms, "num_experts": num_experts, "shows": "advice"}
    if "reward_range" in facts:
        known["reward_range"] = facts["reward_range"]
    if horizons:
        known["max_horizon"] = min(horizons)
    return Environment(experts_world(losses.world, facts["losses"], num_experts, kind), params, known, None, {})
