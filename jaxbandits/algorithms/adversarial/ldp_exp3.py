"""Locally private EXP3: the comparator of Asi, Raman and Talwar 2025, Table 1 (after Agarwal and Singh 2017; Tossou and Dimitrakakis 2017).

The template of those papers, noise on every loss, not their exact listings.
"""

from functools import cache
from typing import Any, NamedTuple

from jaxbandits import theory
from jaxbandits.algorithms.adversarial.exp3 import exp3
from jaxbandits.algorithms.adversarial.private_batched import client_loss
from jaxbandits.mechanisms.composition import guarantee, laplace_event, view_message
from jaxbandits.mechanisms.laplace import laplace_scale
from jaxbandits.protocol import Algorithm, Loss, Program, Rewards, Span
from jaxbandits.validation import factory, integer


class Params(NamedTuple):
    base: Any
    noise_scale: Any  # 1 / epsilon
    mechanism_scale: Any


def events(params):
    """One release a play: the noisy loss of the arm played."""
    scale = params.noise_scale * params.mechanism_scale
    return (laplace_event("loss in [0, 1] of one play", 1.0, scale),)


GUARANTEE = guarantee("local", "loss_vector", events, view_message)


@cache
def program(base: Program) -> Program:
    def init(params, draws):
        return base.init(params.base, draws.child("base"))

    def act(params, state, draws, t, context):
        return base.act(params.base, state, draws.child("base"), t, context)

    def encode(params, note, draws, t, context, action, reward, play):
        return Loss(client_loss(reward[0]) + params.mechanism_scale * params.noise_scale * draws.laplace(t[0]))

    def update(params, state, draws, t, note, message, used):
        return base.update(params.base, state, draws.child("base"), t, note, message, used)

    return Program(init, act, encode, update)


@factory
def ldp_exp3(*, num_arms, horizon, epsilon, learning_rate=None, mixing=None) -> Algorithm:
    """EXP3 on losses to which every client adds Lap(1 / epsilon); a client clips its loss to [0, 1], a non-finite one counts as 1.

    epsilon in (0, inf] (inf: no noise). learning_rate > 0, mixing in [0, 1]: None is `theory.exp3_noisy_tuning` at noise scale
    1 / epsilon over T plays; ValueError where its mixing exceeds 1 (small T).

    >>> import jaxbandits as jb
    >>> jb.algorithms.ldp_exp3(num_arms=3, horizon=1000, epsilon=0.5).guarantee.model
    'local'
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    scale = laplace_scale(1.0, epsilon)
    if learning_rate is None or mixing is None:
        tuning = theory.exp3_noisy_tuning(num_arms, horizon, scale, mixing=mixing)
        learning_rate = tuning["learning_rate"] if learning_rate is None else learning_rate
        mixing = tuning["mixing"]
    made = exp3(num_arms=num_arms, horizon=horizon, learning_rate=learning_rate, mixing=mixing)
    params = Params(made.params, scale, 1.0)
    version = ("ldp_exp3", 1, (num_arms, made.version))
    return Algorithm(
        program(made.program), (Span(1, horizon),), params, GUARANTEE, version, {}, rewards=Rewards(0.0, 1.0, "clip")
    )
