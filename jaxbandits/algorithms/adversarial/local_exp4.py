"""LDP-EXP4 (Asi, Raman and Talwar 2025, Algorithm 6): exponential weights over experts, noise on every loss."""

from functools import cache
from typing import Any, NamedTuple

from jaxbandits import theory
from jaxbandits.algorithms.adversarial.exp4 import program as exp4_program
from jaxbandits.algorithms.adversarial.ldp_exp3 import GUARANTEE
from jaxbandits.learners.observed_loss import clipped_loss
from jaxbandits.mechanisms.laplace import laplace_scale
from jaxbandits.protocol import Algorithm, Loss, Program, Rewards, Span
from jaxbandits.typing import Scalar
from jaxbandits.validation import factory, integer, number


class Params(NamedTuple):
    """The numbers of EXP4 and of the noise."""

    learning_rate: Any
    mixing: Any
    # 1 / epsilon, 0 without noise
    noise_scale: Any
    # multiplies all privacy noise
    mechanism_scale: Any


@cache
def program(num_arms: int, num_experts: int) -> Program:
    """The functions of EXP4, its clients sending noisy losses."""

    def encode(params, note, draws, t, context, action, reward, play):
        return Loss(clipped_loss(reward[0]) + params.mechanism_scale * params.noise_scale * draws.laplace(t[0]))

    return exp4_program(num_arms, num_experts)._replace(encode=encode)


@factory
def local_exp4(
    *,
    num_arms: int,
    num_experts: int,
    horizon: int,
    epsilon: Scalar,
    learning_rate: Scalar | None = None,
    mixing: Scalar | None = None,
) -> Algorithm:
    """EXP4 on losses to which every client adds Laplace noise: private in the local model, play by play.

    The client clips its loss, 1 - reward, to [0, 1] and adds Lap(1 / epsilon). The server runs `exp4` on what it is
    sent.

    Parameters
    ----------
    num_arms : int
        Number of arms K, at least 2 [static]. Filled in from the environment.
    num_experts : int
        Number of experts N, at least 2 [static]. Filled in from the environment.
    horizon : int
        Number of plays T, at least 1. The defaults below follow from it. Filled in from the sweep.
    epsilon : float
        Privacy budget of one play, in (0, inf]; at inf there is no noise.
    learning_rate : float, optional
        Step size of the log weights, above 0. Default: that of `theory.local_exp4_tuning`.
    mixing : float, optional
        Probability, in [0, 1], with which a play draws a uniform arm. Default: that of `theory.local_exp4_tuning`.

    Returns
    -------
    Algorithm
        epsilon-private in the local model; the unit of privacy is the losses of one play. The context of a play is
        the advice [N, K], which is public.

    Raises
    ------
    ValueError
        For an argument outside its range, and where the default mixing would exceed 1 (a small horizon).

    Notes
    -----
    A non-finite reward counts as loss 1. One Laplace variable is drawn a play, since only the played arm's loss is
    sent.

    References
    ----------
    Asi, Raman and Talwar 2025, Algorithm 6, Theorem 4.4. The tuning is repaired:
    `docs/formulas/private_adversarial.md#ldp-exp4`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> jb.algorithms.local_exp4(num_arms=3, num_experts=5, horizon=1000, epsilon=0.5).guarantee.model
    'local'
    """
    num_arms = integer("num_arms", num_arms, 2)
    num_experts = integer("num_experts", num_experts, 2)
    horizon = integer("horizon", horizon, 1)
    scale = laplace_scale(1.0, epsilon)
    if mixing is not None:
        mixing = number("mixing", mixing, 0.0, 1.0)
    tuning = {}
    if mixing is None or learning_rate is None:
        tuning = theory.local_exp4_tuning(num_arms, num_experts, horizon, epsilon, mixing=mixing)
    rate = (
        tuning["learning_rate"] if learning_rate is None else number("learning_rate", learning_rate, 0.0, open_low=True)
    )
    params = Params(rate, tuning["mixing"] if mixing is None else mixing, scale, 1.0)
    version = ("local_exp4", 3, (num_arms, num_experts))
    return Algorithm(
        program=program(num_arms, num_experts),
        schedule=(Span(1, horizon),),
        params=params,
        guarantee=GUARANTEE,
        version=version,
        config={},
        rewards=Rewards(0.0, 1.0, "clip"),
    )
