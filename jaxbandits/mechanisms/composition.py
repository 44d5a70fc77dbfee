"""What one unit's data enter, release by release, and what the releases cost together: closed forms, on the host.

A unit is what neighbouring inputs differ in (`Guarantee.unit`). Releases that a unit does not enter cost it nothing (parallel
composition), so an algorithm that forgets a batch once its noisy mean is out lists one release, however many batches there are.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from jaxbandits.mechanisms.gaussian import gaussian_epsilon
from jaxbandits.mechanisms.loss_distribution import Release, composed
from jaxbandits.protocol import Algorithm, Guarantee
from jaxbandits.validation import integer, number

#: Said wherever a guarantee is shown.
SIMULATED = (
    "Guarantees are those of real-valued noise. The noise here is drawn in floating point and simulates the mechanisms; it must not "
    "protect real data (Mironov 2012, On significance of the least significant bits for differential privacy)."
)


class Event(NamedTuple):
    """One kind of private release that a unit enters. Made by the functions below."""

    mechanism: str  # "laplace" | "gaussian" | "randomized_response" | "binomial" | "other"
    what: str  # what is released, in words
    sensitivity: float  # largest change between neighbours, in the L1 (Gaussian: L2) norm; inf: unbounded
    scale: float  # of the noise: Laplace scale or standard deviation
    times: int = 1  # how many such releases the unit enters
    epsilon: float = math.inf  # of one release; inf for Gaussian noise, whose epsilon follows from delta
    delta: float = 0.0  # of one release


def _ratio(sensitivity, scale) -> float:
    if sensitivity == 0:
        return 0.0
    return float(sensitivity) / float(scale) if scale > 0 and math.isfinite(sensitivity) else math.inf


def laplace_event(what: str, sensitivity, scale, times=1) -> Event:
    """`times` releases with Laplace noise of `scale`, each of L1 sensitivity `sensitivity`; no noise costs infinity.

    Tables (arrays of one shape) are releases of which a unit enters one, whichever it is: the costliest is kept.

    >>> laplace_event("mean of 10", 0.1, 0.2).epsilon, laplace_event("mean of a block", np.array([1.0, 0.5]), np.array([4.0, 1.0])).epsilon
    (0.5, 0.5)
    """
    sensitivity, scale = (np.ravel(x) for x in np.broadcast_arrays(sensitivity, scale))
    costs = [_ratio(*pair) for pair in zip(sensitivity, scale, strict=True)]
    most = int(np.argmax(costs))
    return Event("laplace", what, float(sensitivity[most]), float(scale[most]), times, costs[most])


def gaussian_event(what: str, sensitivity, scale, times=1) -> Event:
    """`times` releases with Gaussian noise of standard deviation `scale`, each of L2 sensitivity `sensitivity`.

    >>> round(compose([gaussian_event("sum of a batch", 1.0, 2.0)], 1e-3)[0], 2)
    1.35
    """
    return Event("gaussian", what, float(sensitivity), float(scale), times)


def response_event(what: str, scale, times=1, bits=None) -> Event:
    """`times` bits, each flipped with probability 1 / (1 + e^(1/scale)): 1/scale-private; scale 0 flips none.

    bits: of the uniforms that decide, None for real numbers. Probabilities are then multiples of 2^-bits, and rare flips may be
    rarer than they should: what that spends is told.

    >>> response_event("bit", 1.0).epsilon, round(response_event("bit", 1 / 14.69, bits=23).epsilon, 2)
    (1.0, 14.84)
    """
    epsilon = _ratio(1.0, float(scale))
    if bits is not None and 0 < epsilon < math.inf:
        flipped = round(2.0**bits / (1 + math.exp(min(epsilon, 700.0))))
        epsilon = max(epsilon, math.log(2.0**bits / flipped - 1) if flipped else math.inf)
    return Event("randomized_response", what, 1.0, float(scale), times, epsilon)


def other_event(
    mechanism: str, what: str, epsilon, delta=0.0, *, sensitivity=math.nan, scale=math.nan, times=1
) -> Event:
    """`times` releases that are (epsilon, delta)-private each, by an argument of their own.

    >>> compose([other_event("binomial", "sums of a batch", 0.5, 1e-6, times=2)])
    (1.0, 2e-06)
    """
    return Event(mechanism, what, float(sensitivity), float(scale), times, float(epsilon), float(delta))


def composed_epsilon(epsilon, count, delta) -> float:
    """What `count` releases, each `epsilon`-private, cost together at `delta` by the closed form of batched EXP4 (Lemma A.6).

    The smaller of (3/2) count epsilon^2 + sqrt(6 count log(1/delta)) epsilon and count epsilon. `mechanisms.compose` counts better.

    >>> round(composed_epsilon(0.01, 10_000, 1e-3), 3), composed_epsilon(0.5, 4, 1e-3)
    (7.938, 2.0)
    """
    composed = 1.5 * count * epsilon**2 + math.sqrt(6 * count * math.log(1 / delta)) * epsilon
    return min(composed, count * epsilon)


def compose(events, delta=0.0) -> tuple[float, float]:
    """(epsilon, delta) of all releases that a unit enters together. Nothing entered: (0.0, 0.0); one without noise: (inf, 0.0).

    Epsilons and deltas add up. Several releases, or Gaussian ones, may cost less at `delta`: then their privacy losses are composed, rounded
    up (`mechanisms.loss_distribution`), within about a percent of the least epsilon; Gaussian ones alone exactly, as one of ratio
    sqrt(sum of (sensitivity / scale)^2). delta in [0, 1): what may be used, 0 only without Gaussian noise; what is used comes back.
    Raises ValueError where it does not suffice.
    Source: Dwork and Roth 2014, Theorem 3.16; Balle and Wang 2018, Theorem 8; Doroshenko et al. 2022; `composed_epsilon`.

    >>> compose([laplace_event("loss", 1.0, 2.0), laplace_event("bin", 1.0, 4.0, times=2)])
    (1.0, 0.0)
    >>> round(compose([laplace_event("loss", 1.0, 10.0, times=200)], 1e-5)[0], 2)
    6.38
    >>> compose([gaussian_event("node of a tree", 1.0, 3.0, times=9)], 1e-5) == compose([gaussian_event("sum", 1.0, 1.0)], 1e-5)
    True
    """
    delta = number("delta", delta, 0.0, 1.0, open_high=True)
    entered = [event for event in events if integer("times", event.times, 0) > 0]
    normal = [event for event in entered if event.mechanism == "gaussian"]
    rest = [event for event in entered if event.mechanism != "gaussian"]
    ratio = math.hypot(*(math.sqrt(event.times) * _ratio(event.sensitivity, event.scale) for event in normal))
    epsilon = math.fsum(event.times * event.epsilon for event in rest)
    used = math.fsum(event.times * event.delta for event in rest)
    if math.isinf(ratio) or math.isinf(epsilon):
        return math.inf, 0.0
    if normal:
        left = number("delta", delta - used, 0.0, 1.0, open_low=True, remedy="Gaussian noise has no pure guarantee")
        epsilon += gaussian_epsilon(ratio, 1.0, left) if ratio > 0 else 0.0
        used = delta
    if sum(event.times for event in rest) + bool(ratio) < 2 or delta == 0:
        return epsilon, used
    releases = [Release(kind, own, size, times) for (kind, own, size), times in _counted(rest).items()]
    together = composed(tuple(releases + ([Release("gaussian", 0.0, ratio, 1)] if ratio > 0 else [])), delta)
    same = {event.epsilon for event in rest}
    if used == 0 and len(same) == 1:
        together = min(together, composed_epsilon(same.pop(), sum(event.times for event in rest), delta))
    return (together, delta) if together < epsilon else (epsilon, used)


def _counted(events) -> dict[tuple[str, float, float], int]:
    """How often each pair of laws is released: {(kind, delta, epsilon): times}."""
    times: dict[tuple[str, float, float], int] = {}
    for event in events:
        kind = event.mechanism if event.mechanism == "laplace" and event.delta == 0 else "pure"
        if event.epsilon > 0 or event.delta > 0:
            key = kind, event.delta, event.epsilon
            times[key] = times.get(key, 0) + event.times
    return times


def _spend(events, delta, params):
    return compose(events(params), delta(params))


def _pure(params):
    return 0.0


def view_message(message, released, action):
    """The view of the local and the shuffle model: what clients send."""
    return message


def view_released(message, released, action):
    """The view of the central and the federated model: what the server releases; actions follow from it."""
    return released


def guarantee(
    model: str, unit: str, events: Callable, view: Callable, *, delta: Callable = _pure,
    scales=("mechanism_scale",), bound=math.inf,
) -> Guarantee:  # fmt: skip
    """A `Guarantee` whose `spend` follows from its events: params -> tuple of `Event`; delta: params -> what may be spent.

    >>> events = lambda scale: (laplace_event("reward in [0, 1]", 1.0, scale),)
    >>> guarantee("local", "reward", events, view_message).spend(0.5)
    (2.0, 0.0)
    """
    return Guarantee(
        model=model,
        unit=unit,
        spend=partial(_spend, events, delta),
        view=view,
        scales=scales,
        bound=bound,
        events=events,
    )


def claimed_epsilon(algorithm: Algorithm) -> float | None:
    """The epsilon that an algorithm was given, or that its guarantee says was asked for; None where neither names one."""
    given = algorithm.config.get("epsilon")
    return algorithm.guarantee.claimed if given is None else float(given)
