"""Oblivious loss sequences l_t(i) in [0, 1]. Rewards are 1 - loss.

Regret is against the arm best over plays 1..t. Where losses change with time the recorder stores the losses of the
played arms, and `World.baseline` gives those of the best arm. The formulas are in `sequences` and on the page
`docs/formulas/private_adversarial.md#loss-sequences`. t is 1-based, arms are 0-based.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import jax.numpy as jnp
import numpy as np
from annotated_doc import Doc
from annotated_types import Ge, Le

from jaxbandits.declared import HOST, LATER, Axes, NumArms, Probability, Remedy
from jaxbandits.environments import sequences
from jaxbandits.environments.arms import Means, no_context, no_state
from jaxbandits.environments.sequences import NEVER, Losses
from jaxbandits.protocol import Environment, Score, Truth, World
from jaxbandits.typing import Matrix, Scalar
from jaxbandits.validation import array, factory, integer, number

if TYPE_CHECKING:
    import pandas as pd

Integers = Annotated[Sequence[int] | np.ndarray, Axes(1, "sequence of int"), LATER]
Arms = Annotated[NumArms, Doc("Number of arms K.")]
OtherLoss = Annotated[Probability, Doc("What every other arm loses.")]
LossEnvironment = Annotated[Environment, Doc("Regret is against the arm best over plays 1..t.")]
Gap = Annotated[Scalar, Ge(0), LATER, Doc("The advantage of the best arm, at most `base`.")]


@cache
def losses_world(num_arms: int, losses: Losses) -> World:
    """A world of oblivious losses without context."""

    def reward(params, state, draws, t, context, action):
        if losses.sample is not None:
            return 1 - losses.sample(params, draws, t, action)
        return 1 - losses.mean(params, t, action)

    def score(params, state, t, context, action):
        return Score(arm=action, regret=losses.mean(params, t, action) if losses.varies else None)

    def truth(params, state, t, context):
        if not losses.varies:
            return Truth(means=1 - params.losses)
        return Truth(means=1 - jnp.stack([losses.mean(params, t, jnp.full_like(t, i)) for i in range(num_arms)], -1))

    def baseline(params, seed, times):
        return losses.cumulative(params, np.asarray(times)).min(axis=1)

    return World(
        init=no_state, observe=no_context, reward=reward, score=score, truth=truth, num_arms=num_arms,
        baseline=baseline if losses.varies else None,
    )  # fmt: skip


def make(num_arms: int, losses: Losses, params: Any, **facts: Any) -> Environment:
    """An environment of a loss sequence in [0, 1]."""
    facts = {"num_arms": num_arms, "losses": losses, "reward_range": (0.0, 1.0), **facts}
    return Environment(losses_world(num_arms, losses), params, facts, None, {})


def _checked_gap(gap: Scalar, base: Scalar) -> float:
    return number("gap", gap, 0.0, float(base), remedy="the best arm's loss is base - gap")


@factory(source="`docs/formulas/private_adversarial.md#loss-sequences`.")
def fixed_gap_losses(
    *,
    num_arms: Arms,
    best: Annotated[int, Ge(0), LATER, Doc("The best arm, counted from 0; it loses base - gap at every play.")] = 0,
    base: OtherLoss = 0.5,
    gap: Gap = 0.3,
) -> Annotated[Environment, Doc("Regret is exact: it follows from the pull counts.")]:
    """Losses that never change: one arm is better than all others by a fixed gap.

    >>> jb.environments.fixed_gap_losses(num_arms=3, best=1).facts["means"].tolist()
    [0.5, 0.8, 0.5]
    """
    best = integer("best", best, 0, num_arms - 1, remedy="arms are numbered from 0")
    losses = np.full(num_arms, base)
    losses[best] = base - _checked_gap(gap, base)
    return make(num_arms, sequences.FIXED, sequences.Constant(losses), means=1 - losses)


@factory(source="`docs/formulas/private_adversarial.md#loss-sequences`.")
def bernoulli_losses(
    *, means: Annotated[Means, Ge(0), Le(1), Doc("Mean loss (not reward) of each arm; at least two arms.")]
) -> Annotated[Environment, Doc("What is reported is the pseudo-regret, from the pull counts.")]:
    """Losses that are 1 with a fixed probability for each arm and 0 otherwise, independent over arms and plays.

    >>> jb.environments.bernoulli_losses(means=[0.25, 0.5]).facts["means"].tolist()
    [0.75, 0.5]
    """
    means = np.asarray(means)
    if len(means) < 2:
        raise ValueError(f"means = {means.tolist()!r} must name at least two arms")
    return make(len(means), sequences.BERNOULLI, sequences.Constant(means), means=1 - means, coins=means)


@factory(source="`docs/formulas/private_adversarial.md#loss-sequences`.")
def loss_table(*, losses: "Matrix | pd.DataFrame") -> Annotated[Environment, Doc("The fact `max_horizon` is T.")]:
    """Losses that are given in a table, one row for each play.

    losses (array_like of shape (T, K) or pandas.DataFrame): Row t - 1 holds the losses of play t, each in [0, 1], for
        at least two arms. A run may not be longer than the table.

    Raises: Naming row and column (from 0) of the first entry that is no number, NaN or out of range.

    >>> jb.environments.loss_table(losses=[[0.0, 1.0], [0.5, 0.5]]).facts["max_horizon"]
    2
    """
    table = array("losses", losses, 2, 0.0, 1.0, remedy="one row for each play, one column for each arm")
    if table.shape[1] < 2:
        raise ValueError(f"losses has shape {table.shape}; it must be [T, K] with T >= 1 plays and K >= 2 arms")
    return make(table.shape[1], sequences.TABLE, sequences.Table(table), max_horizon=len(table))


@factory(source="`docs/formulas/private_adversarial.md#loss-sequences`.")
def switching_losses(
    *,
    num_arms: Arms,
    cuts: Annotated[Integers, Doc("How many plays are done when each segment starts: increasing, from cuts[0] = 0.")],
    arms: Annotated[Integers, Doc("The best arm of each segment, counted from 0.")],
    base: OtherLoss = 0.6,
    gap: Gap = 0.4,
) -> LossEnvironment:
    """Losses whose best arm changes at given plays.

    At plays cuts[k] < t <= cuts[k + 1] arm arms[k] loses base - gap and every other arm loses base.

    >>> jb.environments.switching_losses(num_arms=3, cuts=[0, 500], arms=[0, 2]).facts["num_arms"]
    3
    """
    cuts, arms = (array(name, x, 1, remedy="one integer a segment") for name, x in (("cuts", cuts), ("arms", arms)))
    cuts = np.array([integer(f"cuts[{k}]", x, 0, NEVER - 1) for k, x in enumerate(cuts)], np.int32)
    if cuts[0] != 0 or (np.diff(cuts) <= 0).any():
        raise ValueError(
            f"cuts = {cuts.tolist()!r} must increase from cuts[0] = 0: the plays done when each segment starts"
        )
    arms = np.array([integer(f"arms[{k}]", x, 0, num_arms - 1) for k, x in enumerate(arms)], np.int32)
    if len(arms) != len(cuts):
        raise ValueError(f"arms has {len(arms)} entries, cuts {len(cuts)}: give one best arm for each segment")
    gap = _checked_gap(gap, base)
    return make(num_arms, sequences.SWITCHING, sequences.Switching(cuts, arms, base, gap, np.zeros(num_arms)))


@factory(source="`docs/formulas/private_adversarial.md#loss-sequences`.")
def sinusoid_losses(
    *, num_arms: Arms, period: Annotated[Scalar, Ge(1), Remedy("shorter waves alias with the plays")]
) -> LossEnvironment:
    """Losses that follow a sine wave, shifted from arm to arm, so that the best arm keeps changing.

    l_t(i) = 0.5 + 0.3 sin(2 pi (t / period + i / K)) + 0.2 i / (K - 1).

    period: Plays of one wave, not necessarily an integer.

    Notes: The phase is reduced modulo the period on 64-bit fixed-point integers, so that float32 losses are accurate to
    1e-6 at any t below 2^31.

    >>> jb.environments.sinusoid_losses(num_arms=4, period=250.5).config["period"]
    250.5
    """
    fraction = round((Fraction(1) / Fraction(float(period)) % 1) * 2**64) % 2**64
    limbs = np.array([(fraction >> shift) & 0xFFFF for shift in (48, 32, 16, 0)], np.float64)
    still = 0.5 + 0.2 * np.arange(num_arms) / (num_arms - 1)
    return make(num_arms, sequences.SINUSOID, sequences.Sinusoid(limbs, period, still))


@factory(source="Asi, Raman and Talwar 2025, Lemma 5.1; `docs/formulas/private_adversarial.md#lower-bound`.")
def lemma51_losses(
    *,
    change: Annotated[int, Ge(0), Le(NEVER), Doc("Plays of the common part: the lemma's tau_0.")],
    primed: Annotated[bool, HOST, LATER, Doc("Whether the sequence changes.")] = False,
) -> LossEnvironment:
    """The two loss sequences of the lower bound of Asi, Raman and Talwar (2025), with two arms.

    The losses are (1/2, 1) at every play or, where `primed`, (1/2, 0) after play `change`.

    >>> jb.environments.lemma51_losses(change=100, primed=True).facts["num_arms"]
    2
    """
    if not isinstance(primed, bool | np.bool_):
        raise ValueError(f"primed = {primed!r} must be True (the sequence changes) or False")
    return make(2, sequences.LEMMA51, sequences.Lemma51(np.int32(change if primed else NEVER), np.array([0.5, 1.0])))
