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
    preset_of,
    private_params,
)
from jaxbandits.algorithms.contextual.selection import Params
from jaxbandits.algorithms.contextual.shuffle_statistics import VectorParams, amplified, vector
from jaxbandits.mechanisms.composition import Event, guarantee, other_event, view_message
from jaxbandits.mechanisms.shuffle import amplified_epsilon, vector_epsilon
from jaxbandits.numerics.packed import pairs
from jaxbandits.theory.exact_presets import batch_of, exact_local, exact_scale, exact_vector
from jaxbandits.theory.linear_widths import amplified_tuning, moment_sensitivity, vector_tuning
from jaxbandits.validation import choice, integer

PROTOCOL_OF = {"exact": "vector", "reference": "amplified", "theory": "amplified"}


def batch(window: Any, horizon: int, preset: str) -> int:
    """A checked number of users of a batch. None: 20, and with the preset "exact" as many as there are batches."""
    if window is None:
        return batch_of(horizon) if preset == "exact" else min(20, horizon)
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


def shuffle_part(preset: str, protocol: str | None, window: int, s: Setting) -> Part:
    """Users add noise, the shuffler hides who sent what. protocol None: the preset's of `PROTOCOL_OF`."""
    protocol = choice("protocol", PROTOCOL_OF[preset] if protocol is None else protocol, ("amplified", "vector"))
    numbers, norm = (preset, s.horizon, s.dim, s.epsilon, s.delta, window, s.feature_norm), s.feature_norm
    if protocol == "amplified":
        if preset == "exact":
            scale = exact_scale("amplified", s.dim, s.epsilon, s.delta, norm, window)
            tuning = exact_local(scale, s.horizon, s.dim, norm, s.theta_bound)
        else:
            tuning = amplified_tuning(*numbers)
        statistics, params = amplified(s.dim), private_params(tuning, s)
        events: Any = partial(amplified_events, s.dim, window)
    else:
        if preset == "exact":
            tuning, code = exact_vector(*numbers[1:5], norm, s.theta_bound, window)
            units = norm**2, norm
        else:
            (tuning, code), units = vector_tuning(*numbers), (1.0, 1.0)
        statistics, events = vector(s.dim), partial(vector_events, s.dim)
        params = VectorParams(code, norm, *units, tuning.ridge, tuning.ridge_root, s.delta)
    claim = guarantee("shuffle", "user", events, view_message, delta=claimed_delta)
    return Part(statistics, params, tuning, claim, (protocol, window))


def chosen_part(
    statistics: str, preset: str | None, protocol: str | None, window: Any, tree: str | None, s: Setting
) -> tuple[Part, int, str]:
    """Statistics by their name, with the noise and ridge of a preset; their plays a window; and the preset."""
    choice("statistics", statistics, ("none", "ldp", "jdp", "shuffle"))
    preset = preset_of(preset, statistics != "none")
    if protocol is not None:
        choice("protocol", protocol, ("amplified", "vector"))
    if tree is not None:
        choice("tree", tree, (*PUBLISHED, *COUNTERS))
    plays = batch(window, s.horizon, preset) if statistics == "shuffle" else 1
    if statistics == "none":
        if s.epsilon < float("inf"):
            raise ValueError(
                f"epsilon = {s.epsilon!r} with statistics = 'none', which adds no noise: choose 'ldp', 'jdp' "
                "or 'shuffle', or bind epsilon=float('inf'), which a sweep's grid then leaves alone"
            )
        part = none_part(preset, s)
    elif statistics == "ldp":
        part = local_part(preset, s)
    elif statistics == "jdp":
        part = joint_part(preset, tree, s)
    else:
        part = shuffle_part(preset, protocol, plays, s)
    return part._replace(static=(statistics, *part.static)), plays, preset
