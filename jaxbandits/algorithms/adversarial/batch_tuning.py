"""What a base of `private_batched` says about its tuning.

The conversion feeds its base the mean loss of a batch plus Laplace noise. A base may want to know. It says so in one
of two ways: it takes an argument `feedback_scale` (the scale of that noise) or `tail_scale` (the scale of HTINF's
losses), which is then filled in; or it carries a function of its own, put on it by `tuned_in_batches`.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from jaxbandits.recipe import unwrap
from jaxbandits.typing import AlgorithmFactory


class Batches(NamedTuple):
    """What the conversion knows when it calls its base."""

    num_arms: int
    horizon: int  # plays of the whole run
    epsilon: float
    window: int  # plays of a batch
    chosen: bool  # whether the user chose the window; otherwise it follows from epsilon
    bound: dict[str, Any]  # arguments of the base that a partial binds

    @property
    def noise_scale(self) -> float:
        """The scale of the Laplace noise on a batch's mean loss."""
        return 1 / (self.window * self.epsilon)


BatchTuning = Callable[[Batches], dict[str, Any]]


def tuned_in_batches(base: AlgorithmFactory, tuning: BatchTuning) -> None:
    """Let a factory say which arguments `private_batched` passes to it."""
    vars(base)["tuning_in_batches"] = tuning


def no_tuning(batches: Batches) -> dict[str, Any]:
    """A base keeps its own defaults."""
    return {}


def tail_scale(batches: Batches) -> float:
    """HTINF's scale of losses under noise of more than the scale that its default assumes."""
    return math.sqrt(2 + 4 * batches.noise_scale**2)


def needs_tail_scale(batches: Batches) -> bool:
    """Whether the noise exceeds what HTINF's default scale assumes."""
    return batches.noise_scale > 1 + 1e-6


def tuning_of(base: AlgorithmFactory, batches: Batches) -> dict[str, Any]:
    """The arguments that the conversion passes to its base, without those that a partial binds already."""
    if math.isinf(batches.epsilon):
        return {}
    maker = unwrap(base).function
    given = {key for key, value in batches.bound.items() if value is not None}
    declared: BatchTuning | None = getattr(maker, "tuning_in_batches", None)
    if declared is not None:
        tuning = declared(batches)
    else:
        names = inspect.signature(maker).parameters
        tuning = {"feedback_scale": batches.noise_scale} if "feedback_scale" in names else {}
        if "tail_scale" in names and needs_tail_scale(batches):
            tuning["tail_scale"] = tail_scale(batches)
    return {key: value for key, value in tuning.items() if key not in given}
