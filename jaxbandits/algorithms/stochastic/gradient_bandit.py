"""Softmax policy gradient with a baseline (Williams 1992; Sutton and Barto 2018, section 2.8).

Draws: alg/act (one uniform a play).
"""

from functools import cache
from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp

from jaxbandits.algorithms.stochastic.plain_reports import encode_reward, finite
from jaxbandits.declared import STATIC, Doc, Example, Horizon, NumArms, Positive
from jaxbandits.learners.transformations import GradientTransformation, begin, check_transformation, step
from jaxbandits.numerics import SUMMED, fixed_sum, inverse_cdf, materialize, moved_mean, one_hot, tree_where, two_sum
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Array, Float, Numeric
from jaxbandits.validation import factory


class Params(NamedTuple):
    learning_rate: Numeric  # alpha of plain ascent; not read where there is an optimizer


class State(NamedTuple):
    """What persists from play to play."""

    # H, the arms' preferences
    preferences: Float[Array, " K"]
    # what rounding left out of them; an optimizer takes its steps from the rounded ones, and leaves nothing
    left_out: Float[Array, " K"]
    # mean of the rewards so far
    mean: Float[Array, ""]
    # what rounding left out of it
    rest: Float[Array, ""]
    # the optimizer's own; () for plain ascent
    optimizer: Any


@cache
def program(num_arms: int, optimizer: Any, baseline: bool) -> Program:
    """The functions of gradient ascent. optimizer: an optax transformation, or None for plain ascent."""

    def init(params, draws):
        preferences = jnp.zeros(num_arms, draws.dtype)
        inner = () if optimizer is None else begin(optimizer, preferences)
        zero = jnp.zeros((), draws.dtype)
        return State(preferences, preferences, zero, zero, inner)

    def act(params, state, draws, t, context):
        weights = jnp.exp(state.preferences - materialize(jnp.max(state.preferences)))
        total = materialize(fixed_sum(weights))
        action = materialize(inverse_cdf(weights, draws.uniform(t[0]) * total))
        return jnp.full(t.shape, action), None, (action, weights / total)

    def update(params, state, draws, t, note, message, used):
        action, policy = note
        reward = finite(message)
        before = jnp.where(t == 1, reward, state.mean) if baseline else jnp.zeros_like(reward)
        # the gradient of log policy[action] in the preferences, times how much better than the baseline the reward was
        ascent = materialize(reward - before) * (one_hot(action, num_arms).astype(policy.dtype) - policy)
        if optimizer is None:
            preferences, left_out = two_sum(state.preferences, state.left_out, params.learning_rate * ascent)
            inner = ()
        else:
            preferences, inner = step(optimizer, -ascent, state.optimizer, state.preferences)
            left_out = state.left_out
        mean, rest = moved_mean(state.mean, state.rest, reward, 1 / t.astype(reward.dtype))
        kept = jnp.all(jnp.isfinite(preferences)) & jnp.isfinite(mean)
        after = State(preferences, left_out, mean, rest, inner)
        return tree_where(kept, after, state), ()

    plays = None if optimizer is None else SUMMED
    # the baseline counts the rewards it has seen by t
    return Program(init, act, encode_reward, update, lockstep=baseline, float32_plays=plays)


@factory(
    plays_on="arms",
    example=Example({"learning_rate": 0.4}),
    source="""R. J. Williams, "Simple statistical gradient-following algorithms for connectionist reinforcement
        learning", Machine Learning 8, 1992, section 4 (REINFORCE). R. S. Sutton and A. G. Barto, "Reinforcement
        Learning: An Introduction", 2nd edition, 2018, section 2.8, equations (2.11) and (2.12).""",
)
def gradient_bandit(
    *,
    num_arms: NumArms,
    horizon: Horizon,
    learning_rate: Positive = 0.1,
    optimizer: Annotated[GradientTransformation | None, STATIC] = None,
    baseline: bool = True,
) -> Annotated[Algorithm, Doc("Not private. It reads rewards of any size.")]:
    """Draw the arm from a softmax of preferences, and follow the gradient of the expected reward in them.

    Args:
        learning_rate: Step size alpha of plain ascent, in preference per unit of reward; the default is one of the
            book's examples. An optimizer has step sizes of its own and does not read it.
        optimizer (optax.GradientTransformation, optional): An optax transformation that takes the steps instead, such
            as ``optax.adam(0.05)``: it is given the gradient of minus the expected reward, and must need nothing else.
            Its learning rate is part of the compiled program, so a grid over optimizers is one program for each. Make
            one object for a whole sweep: two equal calls of optax are unequal objects, and each is compiled. The
            default is plain ascent.
        baseline: Whether rewards are compared with the mean of the rewards before. False compares them with 0.

    Raises:
        ValueError: Where an argument is out of range, or where the optimizer needs the value of the loss (lbfgs,
            polyak_sgd), draws random numbers of its own (noisy_sgd), or is no transformation.

    Note:
        *Law.* With preferences H, first all 0, arm a is drawn with probability pi(a) = exp(H(a)) / sum over b of
        exp(H(b)). After the reward R of play t, H(a) grows by alpha (R - B) (1[a was played] - pi(a)).

        *Baseline.* B is the mean of the rewards before play t, without that of play t; at the first play, B = R, so
        that nothing is learned from it. So says equation (2.12) of the book in its later printings; the book's own
        figures, by its footnote, include the reward of play t in the mean.

        *Ties and non-finite values.* The draw breaks ties. A non-finite reward counts as 0. A step that would make a
        preference infinite or NaN is not taken, and B stays as it is.

        *Rounding.* Sums over arms have a fixed order, also those that the optimizer makes (``learners.from_optax`` says
        which), so that the number of lanes changes no bit.

        *Departures.* None with ``optimizer=None``; ``optax.sgd(alpha)`` is the same algorithm.

    >>> jb.algorithms.gradient_bandit(num_arms=3, horizon=100, learning_rate=0.4).params
    Params(learning_rate=0.4)
    >>> import optax
    >>> adam = jb.algorithms.gradient_bandit(num_arms=3, horizon=100, optimizer=optax.adam(0.05))
    >>> adam.guarantee.model
    'none'
    """
    if optimizer is not None:
        optimizer = check_transformation("optimizer", optimizer, num_arms)
    functions = program(num_arms, optimizer, baseline)
    return Algorithm(functions, (Span(1, horizon),), Params(learning_rate), rewards=Rewards())
