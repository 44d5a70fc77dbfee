"""How late feedback comes: the laws of `delayed`, checked on the host, and the delay of a play.

The law never depends on rewards. Formulas: `docs/formulas/robust_frontier.md#robust-frontier-delay`.
Axes: [T] plays.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits import theory
from jaxbandits.formatting import show
from jaxbandits.random import Draws
from jaxbandits.typing import Array, Int, Numeric
from jaxbandits.validation import array, integer, number

RING_STEP = 16  # rings are so many slots long and one, or twice as many, ...: delays that differ little share a program
LONGEST_DELAY = 2**30  # no run is as long

DELAY_REMEDY = (
    "give a number of plays, ('geometric', mean), ('uniform', low, high), or an array with a delay for each of the "
    "horizon's plays"
)


class Fixed(NamedTuple):
    """Every play's feedback is equally late, so that at most one message arrives at a play."""

    delay: Numeric  # plays of delay, int32
    most: Numeric  # feedback that is later is lost, int32
    horizon: Numeric  # T, int32


class Drawn(NamedTuple):
    """A delay of `low` and more for every play: uniform over `values` integers, or geometric."""

    low: Numeric
    values: Numeric  # integers that a uniform delay may take; 0: it is geometric
    inverse_log: Numeric  # 1 / ln p of P(d = k) = (1 - p) p^k; 0 where the mean is 0
    most: Numeric


class Listed(NamedTuple):
    """A delay for each play, given in advance."""

    delays: Numeric  # [T] int32
    most: Numeric


Law = Fixed | Drawn | Listed


def delay_of(law: Law, draws: Draws, t: Int[Array, ""]) -> Int[Array, ""]:
    """The delay d_t of the feedback of play t. Draws are those of (seed, "delay", play), whoever is the base."""
    if isinstance(law, Fixed):
        return jnp.asarray(law.delay).astype(jnp.int32)
    if isinstance(law, Listed):
        return jnp.asarray(law.delays)[t - 1].astype(jnp.int32)
    uniform = dataclasses.replace(draws, path="delay").uniform(t)
    values = jnp.asarray(law.values).astype(jnp.int32)
    even = jnp.minimum((uniform * values.astype(uniform.dtype)).astype(jnp.int32), values - 1)
    geometric = jnp.floor(jnp.log(uniform) * law.inverse_log).astype(jnp.int32)
    return jnp.asarray(law.low).astype(jnp.int32) + jnp.where(values > 0, even, geometric)


def slots_for(largest: int, horizon: int) -> int:
    """Slots of a ring whose messages come at most `largest` plays late.

    An odd number: lanes that are a power of two apart would compete for few places of a cache.
    """
    return RING_STEP * max(1, -(-min(largest, horizon) // RING_STEP)) + 1


def check_law(delay: Any, max_delay: int | None, horizon: int) -> tuple[Law, int]:
    """The law of an argument `delay`, or ValueError, and how many slots its ring has."""
    law, largest = _law_of(delay, horizon)
    if max_delay is None:
        # feedback that the ring could not hold until then counts as lost
        most = largest if isinstance(law, Drawn) and law.values == 0 else LONGEST_DELAY
    else:  # the ring is as long as the argument says, so that all laws of a sweep share a program
        most = largest = max_delay
    return law._replace(most=np.int32(min(most, LONGEST_DELAY))), slots_for(largest, horizon)


def _law_of(delay: Any, horizon: int) -> tuple[Law, int]:
    """A law, and the longest delay that it may have."""
    if isinstance(delay, str) or delay is None or isinstance(delay, bool):
        raise ValueError(f"delay = {show(delay)} is no delay: {DELAY_REMEDY}")
    if isinstance(delay, tuple | list) and delay and isinstance(delay[0], str):
        return _random_law(delay, horizon)
    if not isinstance(delay, tuple | list) and np.ndim(delay) == 0:
        plays = integer("delay", delay, 0, remedy=f"or {DELAY_REMEDY}")
        return Fixed(np.int32(min(plays, LONGEST_DELAY)), 0, np.int32(min(horizon, LONGEST_DELAY))), plays
    delays = array("delay", delay, 1, 0.0, remedy=DELAY_REMEDY)
    if len(delays) != horizon:
        raise ValueError(f"delay has {len(delays)} entries, and there are horizon = {horizon} plays: {DELAY_REMEDY}")
    if (delays != np.floor(delays)).any():
        raise ValueError(f"delay = {show(delay)} must hold whole numbers of plays: {DELAY_REMEDY}")
    return Listed(np.minimum(delays, LONGEST_DELAY).astype(np.int32), 0), int(delays.max())


def _random_law(delay: Any, horizon: int) -> tuple[Drawn, int]:
    kind, *numbers = delay
    if kind == "geometric" and len(numbers) == 1:
        mean = number("delay's mean", numbers[0], 0.0, 1e6)
        inverse_log = 1 / math.log(mean / (1 + mean)) if mean > 0 else 0.0
        return Drawn(np.int32(0), np.int32(0), inverse_log, 0), theory.geometric_bound(mean, horizon)
    if kind == "uniform" and len(numbers) == 2:
        low = integer("delay's low", numbers[0], 0, LONGEST_DELAY)
        high = integer("delay's high", numbers[1], low, LONGEST_DELAY)
        return Drawn(np.int32(low), np.int32(high - low + 1), 0.0, 0), high
    raise ValueError(f"delay = {show(delay)} is no law of delays: {DELAY_REMEDY}")
