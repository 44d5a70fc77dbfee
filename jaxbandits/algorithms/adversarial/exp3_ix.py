"""EXP3-IX (Neu 2015): exponential weights with implicit exploration; not private."""

import math
from functools import cache
from typing import Annotated, NamedTuple

from jaxbandits.algorithms.adversarial.batch_tuning import no_tuning, tuned_in_batches
from jaxbandits.algorithms.adversarial.exp3 import program as exp3_program
from jaxbandits.declared import Example, Ge, Horizon, Le, NumArms, Positive, Remedy
from jaxbandits.learners.exponential import reweigh
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Numeric, Scalar
from jaxbandits.validation import factory


class Params(NamedTuple):
    learning_rate: Numeric
    mixing: Numeric  # the implicit exploration: added to the played arm's probability where a loss is divided by it


@cache
def program(num_arms: int) -> Program:
    """EXP3-IX's functions: those of EXP3 without mixing, but for the update."""

    def update(params, weights, draws, t, note, message, used):
        action, weight = note
        step = -params.learning_rate * message.total / (weight + params.mixing)
        return reweigh(weights, action, step), ()

    return exp3_program(num_arms, mixed=False)._replace(update=update)


@factory(
    plays_on="arms",
    example=Example(world="losses"),
    source="Neu 2015, Theorem 1; `docs/formulas/private_adversarial.md#exp3-ix`.",
)
def exp3_ix(
    *,
    num_arms: NumArms,
    horizon: Horizon,
    learning_rate: Positive | None = None,
    mixing: Positive | None = None,
    feedback_scale: Annotated[
        Scalar, Ge(0), Le(0), Remedy("no tuning for noisy losses is known; use exp3 or htinf")
    ] = 0.0,
) -> Algorithm:
    """Exponential weights over arms that divide a loss by the arm's probability plus a constant instead of exploring.

    A play draws its arm I from p = softmax(log weights). Its loss, 1 - reward, then lowers the log weight of I by
    learning_rate * loss / (p_I + mixing).

    Args:
        learning_rate: Step size of the log weights. The default: sqrt(2 log K / (K T)).
        mixing: The constant added to the probability. Unlike the mixing of `exp3` it draws no arm: it only makes the
            estimates of rare arms smaller. The default: learning_rate / 2.
        feedback_scale: Must be 0: no tuning for losses with noise is known. Use `exp3` or `htinf` for those.

    Note:
        Learns from `Loss` messages, so that it can be the base of `private_batched`. A non-finite reward counts as loss
        1; losses are not clipped. Weights stay above 1e-37 and one update moves a log weight by at most 80, the range
        of a float32 exponential (`docs/deviations.md`).

    >>> jb.algorithms.exp3_ix(num_arms=3, horizon=100, learning_rate=0.5).params.mixing
    0.25
    """
    rate = math.sqrt(2 * math.log(num_arms) / (num_arms * horizon)) if learning_rate is None else learning_rate
    params = Params(rate, rate / 2 if mixing is None else mixing)
    return Algorithm(program(num_arms), (Span(1, horizon),), params, rewards=Rewards(0.0, 1.0))


tuned_in_batches(exp3_ix, no_tuning)  # no theorem says how: it plays with its own defaults
