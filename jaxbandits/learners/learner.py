"""The interface of online learners."""

from collections.abc import Callable
from typing import NamedTuple


class Learner(NamedTuple):
    """An online learner: functions, for one lane. Gradients are the caller's, clipped by it."""

    init: Callable  # () -> state
    predict: Callable  # state -> [d]
    update: Callable  # state, gradient [d] -> state
