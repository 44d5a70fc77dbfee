"""Host side of the shuffle model: statistics with their numbers and guarantee, for batches of `window` users."""

import math
from functools import partial
from typing import Any

from jaxbandits.algorithms.contextual.arguments import (
    COUNTERS,
    PUBLISHED,
    Part,
    Setting,
    change,
    claimed_delta,
    joint_part,
    local_part,
    none_part,
    private_params,
)
from jaxbandits.algorithms.contextual.selection import Params
from jaxbandits.algorithms.contextual.shuffle_statistics import VectorParams, amplified, vector
from jaxbandits.mechanisms.composition import Event, guarantee, other_event, view_message
from jaxbandits.mechanisms.shuffle import amplified_epsilon, vector_epsilon
from jaxbandits.numerics.packed import pairs
from jaxbandits.theory.linear_widths import amplified_tuning, moment_sensitivity, vector_tuning
from jaxbandits.validation import choice, integer


def batch(window: Any, horizon: int) -> int:
    """A checked number of users of a batch."""
    return integer("window", window, 1, horizon, remedy="a batch of users fits in the horizon")


def amplified_events(dim: int, window: int, params: Params) -> tuple[Event, ...]:
    """A user whose message is one of a permuted batch: local, unless an amplification theorem gives less."""
    p = params.statistics
    scale, delta = float(p.diagonal) * float(params.mechanism_scale), float(p.delta)
    if scale == 0:
        return (other_event("gaussian, shuffled", "a user's x x' and x y", math.inf),)
    moved = change(p)
    epsilon = amplified_epsilon(moved, scale, window, len(pairs(dim)) + dim, delta)
    return (other_event("gaussian, shuffled", "a user's x x' and x y", epsilon, delta, sensitivity=moved, scale=scale),)


def vector_events(dim: int, params: Params) -> tuple[Event, ...]:
    """A user whose integers enter one batch's sums."""
    p = params.statistics
    trials = math.floor(float(params.mechanism_scale) ** 2 * float(p.code.trials))
    moved = moment_sensitivity(float(p.code.bound))  # cutting coordinates at L moves them no further apart
    epsilon = vector_epsilon(p.code._replace(trials=trials), moved, len(pairs(dim)) + dim, float(p.delta))
    return (other_event("binomial", "sums of a batch's x x' and x y", epsilon, float(p.delta), sensitivity=moved),)


def shuffle_part(preset: str, protocol: str, window: int, s: Setting) -> Part:
    """Users add noise, the shuffler hides who sent what. protocol: "amplified" or "vector"."""
    choice("preset", preset, ("reference", "theory"))
    numbers = (preset, s.horizon, s.dim, s.epsilon, s.delta, window, s.feature_norm)
    if choice("protocol", protocol, ("amplified", "vector")) == "amplified":
        tuning, statistics = amplified_tuning(*numbers), amplified(s.dim)
        params, events = private_params(tuning, s), partial(amplified_events, s.dim, window)
    else:
        (tuning, code), statistics = vector_tuning(*numbers), vector(s.dim)
        params, events = VectorParams(code, tuning.ridge, tuning.ridge_root, s.delta), partial(vector_events, s.dim)
    claim = guarantee("shuffle", "user", events, view_message, delta=claimed_delta)
    return Part(statistics, params, tuning, claim, (protocol, window))


def chosen_part(statistics: str, protocol: str, window: Any, tree: str, s: Setting) -> tuple[Part, int]:
    """Statistics by their name, with the noise and ridge of the preset "reference", and their plays a window."""
    choice("statistics", statistics, ("none", "ldp", "jdp", "shuffle"))
    choice("protocol", protocol, ("amplified", "vector"))
    choice("tree", tree, (*PUBLISHED, *COUNTERS))
    plays = batch(window, s.horizon) if statistics == "shuffle" else 1
    if statistics == "none":
        if s.epsilon < float("inf"):
            raise ValueError(
                f"epsilon = {s.epsilon!r} with statistics = 'none', which adds no noise: choose 'ldp', 'jdp' "
                "or 'shuffle', or bind epsilon=float('inf'), which a sweep's grid then leaves alone"
            )
        part = none_part("reference", s)
    elif statistics == "ldp":
        part = local_part("reference", s)
    elif statistics == "jdp":
        part = joint_part("reference", tree, s)
    else:
        part = shuffle_part("reference", protocol, plays, s)
    return part._replace(static=(statistics, *part.static)), plays
