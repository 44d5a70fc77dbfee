"""Tsallis-INF with an entropy that insures against delays (Zimmert and Seldin 2020; Masoudian et al. 2022)."""

import math
from functools import cache
from typing import Annotated, Literal, NamedTuple

import jax.numpy as jnp

from jaxbandits import theory
from jaxbandits.algorithms.adversarial.htinf import MIN_WEIGHT
from jaxbandits.declared import HOST, Example, Ge, Horizon, Le, NumArms
from jaxbandits.learners import tsallis
from jaxbandits.learners.observed_loss import encode_loss
from jaxbandits.numerics import columns, materialize
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Array, Float, Int, Numeric, Scalar
from jaxbandits.validation import factory


class Params(NamedTuple):
    """A = sqrt(t + first) and b = sqrt((share total + second) / ln K), total the sum of outstanding counts."""

    first: Numeric  # eta_0
    second: Numeric  # gamma_0
    share: Numeric  # 2 of the simple tuning, 1 of that for both worlds


class State(NamedTuple):
    """What the hybrid remembers. `delayed` sets the last two before every play."""

    estimate: columns.Columns  # `columns` [K], estimated summed losses, shifted so that the smallest is 0
    outstanding: Int[Array, ""]  # messages that were sent and are neither used nor lost
    outstanding_sum: Float[Array, ""]  # their sum over the plays so far, the coming one included


@cache
def program(num_arms: int) -> Program:
    """The hybrid's functions."""

    def init(params, draws):
        zero = jnp.zeros((), draws.dtype)
        return State(columns.full(num_arms, 0, draws.dtype), jnp.int32(0), zero)

    def act(params, state, draws, t, context):
        root = materialize(jnp.sqrt(t[0].astype(draws.dtype) + params.first))
        total = params.share * state.outstanding_sum + params.second
        entropy = materialize(jnp.sqrt(total / math.log(num_arms)))
        action, weight = tsallis.hybrid_draw(state.estimate, root, entropy, draws.uniform(t[0]))
        return jnp.full(t.shape, action), None, (action, jnp.maximum(weight, MIN_WEIGHT))

    def update(params, state, draws, t, note, message, used):
        action, weight = note
        estimate = columns.add_to_entry(state.estimate, action, materialize(message.total / weight))
        return state._replace(estimate=columns.above_least(estimate)), ()

    return Program(init, act, encode_loss, update)


@factory(
    plays_on="arms",
    example=Example(world="losses"),
    source="""Zimmert and Seldin 2020, read in a secondary source; Masoudian, Zimmert and Seldin 2022, its constants
        recalled; docs/formulas/robust_frontier.md#robust-frontier-hybrid""",
)
def hybrid_tsallis_inf(
    *,
    num_arms: NumArms,
    horizon: Horizon,
    tuning: Annotated[Literal["simple", "best_of_both"], HOST] = "simple",
    delay_bound: Annotated[Scalar, Ge(0), Le(1e9)] | None = None,
) -> Algorithm:
    """Tsallis-INF that knows how much feedback is outstanding, for losses of an opponent that come late.

    Meant as the base of `delayed`, which tells it. Play t draws its arm from the minimiser x of `<L, x> - 2 A sum_i
    sqrt(x_i) + b sum_i x_i ln x_i` over the simplex. L sums the losses 1 - reward that have arrived, each divided by
    the probability with which its play drew the arm. The entropy's b grows with the feedback that is outstanding.

    Args:
        tuning: With D_t the sum over plays s = 1..t of the messages outstanding when play s is chosen, "simple" has A =
            sqrt(t) and b = sqrt(2 D_t / ln K); "best_of_both" has A = sqrt(t + eta_0) and b = sqrt((D_t + gamma_0) / ln
            K), where `theory.hybrid_tuning` gives eta_0 and gamma_0. Both are one program.
        delay_bound: The largest delay in plays. "best_of_both" needs it, "simple" does not read it.

    Returns:
        Algorithm: Without a privacy guarantee. Outside `delayed` nothing is outstanding: "simple" is then `tsallis_inf`
            with its default step 1 / sqrt(t).

    Note:
        A non-finite reward counts as loss 1; losses are not clipped. Losses are divided by a probability of at least
        1e-12. Lost feedback does not count as outstanding; in the sources it would for ever. On benign stochastic arms
        the entropy costs: at delay 50 and T = 2000 regret is about five times that of `delayed` with `tsallis_inf`. The
        weights are solved for by a fixed number of Newton steps.

    >>> from functools import partial
    >>> late = partial(jb.algorithms.delayed, base=jb.algorithms.hybrid_tsallis_inf, delay=50)
    >>> late(num_arms=3, horizon=100).params.base.share
    2.0
    """
    if tuning == "simple":
        params = Params(0.0, 0.0, 2.0)
    elif delay_bound is None:
        raise ValueError(
            "delay_bound = None must be a number of plays for tuning = 'best_of_both': give the largest delay, or use "
            "tuning='simple', which needs none"
        )
    else:
        params = Params(*theory.hybrid_tuning(num_arms, delay_bound), 1.0)
    return Algorithm(program(num_arms), (Span(1, horizon),), params, rewards=Rewards(0.0, 1.0))
