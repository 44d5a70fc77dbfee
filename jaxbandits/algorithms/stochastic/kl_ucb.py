"""KL-UCB (Garivier and Cappe 2011; Cappe, Garivier, Maillard, Munos and Stoltz 2013): play the arm that may be best."""

from functools import cache
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.stochastic import arm_means
from jaxbandits.algorithms.stochastic.bernoulli_index import room_above
from jaxbandits.declared import Horizon, NumArms
from jaxbandits.numerics import argmax, columns, lanes_last, materialize, materialize_all
from jaxbandits.numerics.few import at_the_few
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Array, Bool, Float, Int
from jaxbandits.validation import factory

# An arm surely has a smaller index where its N d exceeds ln t by more than rounding may: an error of d, and a share of
# ln t.
ABSOLUTE, RELATIVE = 2e-6, 1e-4


class State(NamedTuple):
    """What KL-UCB remembers of the arms, `columns` [K]."""

    means: arm_means.Means
    entropy: columns.Columns  # mean log mean + (1 - mean) log (1 - mean)
    leader: Int[Array, ""]  # the arm played last


def index_room(mean, inverse_root, log_t):
    """1 - index of an arm; -1 before its first play. Any equal shapes."""
    return jnp.where(inverse_root > 0, room_above(mean, log_t * inverse_root * inverse_root), -1)


def surely_leads(state: State, log_t: Float[Array, ""]) -> Bool[Array, ""]:
    """Whether the arm played last has the largest index, by more than rounding.

    Its index q alone is solved for. Arm k's is below q where q > mean and N d(mean, q) > ln t.
    """
    mean, root = (columns.entry(x, state.leader) for x in (state.means.mean, state.means.inverse_root))
    room = index_room(mean, root, log_t)
    low, high, room = materialize_all([jnp.log(1 - room), jnp.log(room), room])

    def beaten(mean, root, entropy, here):
        divergence = entropy - mean * low - (1 - mean) * high
        enough = log_t * (1 + RELATIVE) * root * root
        return here | ((root > 0) & (divergence - ABSOLUTE > enough) & (1 - room > mean))

    arms = columns.marks(state.entropy, state.leader)
    return columns.every(columns.map_arms(beaten, state.means.mean, state.means.inverse_root, state.entropy, arms))


@lanes_last
def leader_of(sure, state, log_t):
    """The lowest arm of the largest index. Lanes that are `sure` of the arm played last solve for no other index."""

    def solve_leader(_, mean, root, log_t):
        return argmax(-index_room(mean, root, log_t), axis=0)[None]

    mean, root = columns.together(state.means.mean), columns.together(state.means.inverse_root)
    rows = (x.reshape(x.shape[0], -1) for x in (state.leader[None], mean, root, log_t[None]))
    return at_the_few(~sure.reshape(-1), solve_leader, *rows).reshape(jnp.shape(state.leader))


@cache
def program(num_arms: int) -> Program:
    """KL-UCB's functions."""

    def init(params, draws):
        none = arm_means.no_plays(num_arms, draws.dtype, mean=0.0)
        return State(none, columns.full_for_single_writes(num_arms, 0, draws.dtype), jnp.int32(0))

    def act(params, state, draws, t, context):
        log_t = jnp.log(t[0].astype(draws.dtype))
        # an accelerator solves for every index anyway: see `at_the_few`
        sure = lax.platform_dependent(state, log_t, cpu=surely_leads, default=lambda state, log_t: jnp.bool_(False))
        action = materialize(leader_of(materialize(sure.astype(jnp.int32)) > 0, state, log_t))
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        return unit_reward(reward[0])

    def update(params, state, draws, t, note, message, used):
        message = unit_reward(message)  # again here: reports may be corrupted on their way
        means, mean, _ = arm_means.with_reward(state.means, note, message)
        entropy = materialize(x_log_x(mean) + x_log_x(1 - mean))
        return State(means, columns.replace_entry(state.entropy, note, entropy), leader=note), ()

    return Program(init, act, encode, update)


def x_log_x(x: Float[Array, ""]) -> Float[Array, ""]:
    """x log x, 0 at 0."""
    return x * jnp.log(jnp.maximum(x, 1e-30))


def unit_reward(reward: Float[Array, "..."]) -> Float[Array, "..."]:
    """A reward clipped to [0, 1]; NaN is 0."""
    return jnp.where(jnp.isnan(reward), 0, jnp.clip(reward, 0, 1))


@factory(
    plays_on="arms",
    source="""Garivier and Cappe 2011, Algorithm 1 with c = 0, recalled from memory and not re-read;
        `docs/formulas/private_robust_mab.md#kl-ucb`.""",
)
def kl_ucb(*, num_arms: NumArms, horizon: Horizon) -> Algorithm:
    """Play the arm of largest q with N d(mean, q) <= ln t, d the Kullback-Leibler divergence of Bernoulli laws.

    N is the arm's number of pulls, t the index of the coming play. Every arm is played once first, in index order.

    Note:
        Rewards are clipped to [0, 1]; NaN counts as 0, +inf as 1 and -inf as 0. Ties go to the lowest index. The
        index is computed to float32 precision by two Halley steps.

    >>> jb.algorithms.kl_ucb(num_arms=3, horizon=100).rewards
    Rewards(low=0.0, high=1.0, outside='clip')
    """
    return Algorithm(program(num_arms), (Span(1, horizon),), (), rewards=Rewards(0.0, 1.0, "clip"))
