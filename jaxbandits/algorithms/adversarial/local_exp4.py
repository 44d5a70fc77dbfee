"""LDP-EXP4 (Asi, Raman and Talwar 2025, Algorithm 6): exponential weights over experts, noise on every loss."""

from functools import cache
from typing import Any, NamedTuple

from jaxbandits import theory
from jaxbandits.algorithms.adversarial.exp4 import program as plain
from jaxbandits.algorithms.adversarial.ldp_exp3 import GUARANTEE
from jaxbandits.algorithms.adversarial.private_batched import client_loss
from jaxbandits.mechanisms.laplace import laplace_scale
from jaxbandits.protocol import Algorithm, Loss, Program, Rewards, Span
from jaxbandits.validation import factory, integer, number


class Params(NamedTuple):
    learning_rate: Any
    mixing: Any
    noise_scale: Any  # 1 / epsilon
    mechanism_scale: Any


@cache
def program(num_arms: int, num_experts: int) -> Program:
    def encode(params, note, draws, t, context, action, reward, play):
        return Loss(client_loss(reward[0]) + params.mechanism_scale * params.noise_scale * draws.laplace(t[0]))

    return plain(num_arms, num_experts)._replace(encode=encode)


@factory
def local_exp4(*, num_arms, num_experts, horizon, epsilon, learning_rate=None, mixing=None) -> Algorithm:
    """EXP4 on losses to which every client adds Lap(1 / epsilon); a client clips its loss to [0, 1], a non-finite one counts as 1.

    The context is the advice [1, N, K], public. num_arms >= 2, num_experts >= 2, epsilon in (0, inf] (inf: no noise).
    learning_rate > 0, mixing in [0, 1]: None is `theory.local_exp4_tuning`; ValueError where its mixing exceeds 1 (small T).
    Source: Asi, Raman and Talwar 2025, Algorithm 6, Theorem 4.4.

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
        program(num_arms, num_experts),
        (Span(1, horizon),),
        params,
        GUARANTEE,
        version,
        {},
        rewards=Rewards(0.0, 1.0, "clip"),
    )
