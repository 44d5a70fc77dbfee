"""LDP-EXP4 (Asi, Raman and Talwar 2025, Algorithm 6): exponential weights over experts, noise on every loss."""

from functools import cache
from typing import NamedTuple

from jaxbandits import theory
from jaxbandits.algorithms.adversarial.exp4 import program as exp4_program
from jaxbandits.algorithms.adversarial.ldp_exp3 import GUARANTEE, noisy_loss
from jaxbandits.declared import Epsilon, Example, Horizon, NumArms, NumExperts, Positive, Probability
from jaxbandits.mechanisms.pure import laplace_scale
from jaxbandits.protocol import Algorithm, Program, Rewards, Span
from jaxbandits.typing import Numeric
from jaxbandits.validation import factory


class Params(NamedTuple):
    learning_rate: Numeric
    mixing: Numeric
    noise_scale: Numeric  # 1 / epsilon, 0 without noise
    mechanism_scale: Numeric


@cache
def program(num_arms: int, num_experts: int) -> Program:
    """The functions of EXP4, its clients sending noisy losses."""
    return exp4_program(num_arms, num_experts)._replace(encode=noisy_loss)


@factory(
    plays_on="advice",
    example=Example({"epsilon": 1.0, "learning_rate": 0.02, "mixing": 0.1}),
    source="""Asi, Raman and Talwar 2025, Algorithm 6, Theorem 4.4. The tuning is repaired:
        `docs/formulas/private_adversarial.md#ldp-exp4`.""",
)
def local_exp4(
    *,
    num_arms: NumArms,
    num_experts: NumExperts,
    horizon: Horizon,
    epsilon: Epsilon,
    learning_rate: Positive | None = None,
    mixing: Probability | None = None,
) -> Algorithm:
    """EXP4 on losses to which every client adds Laplace noise: private in the local model, play by play.

    The client clips its loss, 1 - reward, to [0, 1] and adds Lap(1 / epsilon). The server runs `exp4` on what it is
    sent.

    Args:
        epsilon: Privacy budget of one play; at inf there is no noise.
        learning_rate: Step size of the log weights. The default: that of `theory.local_exp4_tuning`.
        mixing: Probability with which a play draws a uniform arm. The default: that of `theory.local_exp4_tuning`.

    Returns:
        epsilon-private in the local model; the unit of privacy is the losses of one play. The context of a play is the
        advice [N, K], which is public.

    Raises:
        ValueError: For an argument outside its range, and where the default mixing would exceed 1 (a small horizon).

    Note:
        A non-finite reward counts as loss 1. One Laplace variable is drawn a play, since only the played arm's loss
        is sent.

    >>> jb.algorithms.local_exp4(num_arms=3, num_experts=5, horizon=1000, epsilon=0.5).guarantee.model
    'local'
    """
    tuning = {}
    if mixing is None or learning_rate is None:
        tuning = theory.local_exp4_tuning(num_arms, num_experts, horizon, epsilon, mixing=mixing)
    rate = tuning["learning_rate"] if learning_rate is None else learning_rate
    mixing = tuning["mixing"] if mixing is None else mixing
    params, rewards = Params(rate, mixing, laplace_scale(1.0, epsilon), 1.0), Rewards(0.0, 1.0, "clip")
    return Algorithm(program(num_arms, num_experts), (Span(1, horizon),), params, GUARANTEE, rewards=rewards)
