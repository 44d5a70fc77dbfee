"""Locally private EXP3: the comparator of Asi, Raman and Talwar 2025, Table 1.

It is the template of Agarwal and Singh 2017 and of Tossou and Dimitrakakis 2017, noise on every loss, and not their
exact listings.
"""

from functools import cache
from typing import Annotated, Any, NamedTuple

from jaxbandits import theory
from jaxbandits.algorithms.adversarial.exp3 import exp3
from jaxbandits.declared import Doc, Epsilon, Example, Horizon, NumArms, Positive, Probability
from jaxbandits.learners.observed_loss import unit_loss
from jaxbandits.mechanisms.composition import Event, guarantee, laplace_event, view_message
from jaxbandits.mechanisms.pure import laplace_scale
from jaxbandits.protocol import Algorithm, Loss, Program, Rewards, Span
from jaxbandits.typing import Numeric
from jaxbandits.validation import factory


class Params(NamedTuple):
    base: Any  # Params of EXP3
    noise_scale: Numeric  # 1 / epsilon, 0 without noise
    mechanism_scale: Numeric


def events(params: Any) -> tuple[Event, ...]:
    """One release a play: the noisy loss of the arm played."""
    scale = params.noise_scale * params.mechanism_scale
    return (laplace_event("loss in [0, 1] of one play", 1.0, scale),)


GUARANTEE = guarantee("local", "loss_vector", events, view_message)


def noisy_loss(params, note, draws, t, context, action, reward, play):
    """`protocol.Encode`: the clipped loss of the window's one play and Laplace noise."""
    return Loss(unit_loss(reward[0]) + params.mechanism_scale * params.noise_scale * draws.laplace(t[0]))


@cache
def program(base: Program) -> Program:
    """The functions of `base`, its clients sending noisy losses."""

    def init(params, draws):
        return base.init(params.base, draws.child("base"))

    def act(params, state, draws, t, context):
        return base.act(params.base, state, draws.child("base"), t, context)

    def update(params, state, draws, t, note, message, used):
        return base.update(params.base, state, draws.child("base"), t, note, message, used)

    return Program(init, act, noisy_loss, update, lockstep=base.lockstep)


@factory(
    plays_on="arms",
    example=Example({"epsilon": 0.5, "learning_rate": 0.02, "mixing": 0.1}, "losses"),
    source="""Asi, Raman and Talwar 2025, Table 1, "existing work"; Agarwal and Singh 2017; Tossou and Dimitrakakis
        2017. The tuning is ours: `docs/formulas/private_adversarial.md#ldp-exp3`.""",
)
def ldp_exp3(
    *,
    num_arms: NumArms,
    horizon: Horizon,
    epsilon: Epsilon,
    learning_rate: Positive | None = None,
    mixing: Probability | None = None,
) -> Annotated[Algorithm, Doc("epsilon-private in the local model; the unit of privacy is the losses of one play.")]:
    """EXP3 on losses to which every client adds Laplace noise: private in the local model, play by play.

    The client clips its loss, 1 - reward, to [0, 1] and adds Lap(1 / epsilon). The server runs `exp3` on what it is
    sent.

    Args:
        epsilon: Privacy budget of one play; at inf there is no noise.
        learning_rate: Step size of EXP3's log weights. The default: that of `theory.exp3_noisy_tuning` at noise scale 1
            / epsilon over T plays.
        mixing: Probability with which a play draws a uniform arm. The default: that of `theory.exp3_noisy_tuning`.

    Raises:
        ValueError: For an argument outside its range, and where the default mixing would exceed 1 (a small horizon).

    Note:
        A non-finite reward counts as loss 1.

    >>> jb.algorithms.ldp_exp3(num_arms=3, horizon=1000, epsilon=0.5).guarantee.model
    'local'
    """
    scale = laplace_scale(1.0, epsilon)
    if learning_rate is None or mixing is None:
        tuning = theory.exp3_noisy_tuning(num_arms, horizon, scale, mixing=mixing)
        learning_rate = tuning["learning_rate"] if learning_rate is None else learning_rate
        mixing = tuning["mixing"]
    base = exp3(num_arms=num_arms, horizon=horizon, learning_rate=learning_rate, mixing=mixing)
    params, rewards = Params(base.params, scale, 1.0), Rewards(0.0, 1.0, "clip")
    return Algorithm(program(base.program), (Span(1, horizon),), params, GUARANTEE, rewards=rewards)
