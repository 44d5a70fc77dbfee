"""What one unit's data enter, release by release, and what the releases cost together: closed forms, on the host.

A unit is what neighbouring inputs differ in (`Guarantee.unit`). Releases that a unit does not enter cost it
nothing (parallel composition), so an algorithm that forgets a batch once its noisy mean is out lists one
release, however many batches there are.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np

from jaxbandits.declared import LATER, Doc, Ge, Kind, Lt
from jaxbandits.mechanisms.gaussian import gaussian_epsilon
from jaxbandits.mechanisms.loss_distribution import Release, compose_losses
from jaxbandits.protocol import Algorithm, Guarantee, Model, Unit
from jaxbandits.typing import Numeric, Scalar
from jaxbandits.validation import declare, integer, number

#: Said wherever a guarantee is shown.
SIMULATED = (
    "Guarantees are those of real-valued noise. The noise here is drawn in floating point and simulates the "
    "mechanisms; it must not protect real data (Mironov 2012, On significance of the least significant bits for "
    "differential privacy)."
)


What = Annotated[str, Doc("What is released, in words.")]
Repetitions = Annotated[int, LATER, Doc("How many such releases the unit enters.")]
Running = Annotated[bool, LATER, Doc("Whether running sums are released, as a tree's or a counter's are.")]
ForLedger = Annotated[Scalar, LATER, Doc("As in `Event`, for the ledger only. The default: nan, not stated.")]


@declare(check=False)
class Event(NamedTuple):
    """One kind of private release that a unit enters. Made by the functions below.

    Args:
        mechanism ({"laplace", "gaussian", "randomized_response", "binomial", "other"}): The mechanism, or another word
            for it.
        what (str): What is released, in words.
        sensitivity (float): Largest change between neighbours, in the L1 (Gaussian: L2) norm; inf: unbounded.
        scale (float): Of the noise: Laplace scale or standard deviation.
        times (int, default 1): How many such releases the unit enters.
        epsilon (float, default inf): Of one release; inf for Gaussian noise, whose epsilon follows from delta.
        delta (float, default 0.0): Of one release.
        largest (float, default nan): The largest change of what is shown, where `sensitivity` is another: that of the
            costliest of several releases, or in other units. nan: it is the same; inf: not known.
        running (bool or None, default False): Whether releases are running sums: a unit is then in every later one by
            design, and moves one increment. None: later data depend on earlier releases, so that only the first one
            that a unit moves can be looked at.
    """

    mechanism: str
    what: str
    sensitivity: float
    scale: float
    times: int = 1
    epsilon: float = math.inf
    delta: float = 0.0
    largest: float = math.nan
    running: bool | None = False


Events = Annotated[Iterable[Event], Kind("iterable of Event"), Doc("The releases that one unit enters.")]


def _ratio(sensitivity: Scalar, scale: Scalar) -> float:
    if sensitivity == 0:
        return 0.0
    return float(sensitivity) / float(scale) if scale > 0 and math.isfinite(sensitivity) else math.inf


@declare
def laplace_event(
    what: What, sensitivity: Numeric, scale: Numeric, times: Repetitions = 1, *, running: Running = False
) -> Event:
    """Releases with Laplace noise.

    One is sensitivity / scale-private.

    Args:
        sensitivity (float or array): L1 sensitivity of a release, at least 0; inf: unbounded. Tables (arrays of one
            shape) are releases of which a unit enters one, whichever it is: the costliest is taken.
        scale (float or array): Scale of the noise, at least 0; no noise costs infinity.

    >>> laplace_event("mean of 10", 0.1, 0.2).epsilon
    0.5
    >>> laplace_event("mean of a block", np.array([1.0, 0.5]), np.array([4.0, 1.0])).epsilon
    0.5
    """
    largest = float(np.max(sensitivity))
    sensitivity, scale = max(np.broadcast(sensitivity, scale), key=lambda pair: _ratio(*pair))
    epsilon = _ratio(sensitivity, scale)
    size, noise = float(sensitivity), float(scale)
    return Event("laplace", what, size, noise, times, epsilon=epsilon, largest=largest, running=running)


@declare
def gaussian_event(
    what: What, sensitivity: Scalar, scale: Scalar, times: Repetitions = 1, *, running: Running = False
) -> Event:
    """Releases with Gaussian noise.

    What they cost follows from the delta of `compose`.

    Args:
        sensitivity: L2 sensitivity of a release, at least 0; inf: unbounded.
        scale: Standard deviation of the noise, at least 0; no noise costs infinity.

    >>> round(compose([gaussian_event("sum of a batch", 1.0, 2.0)], 1e-3)[0], 2)
    1.35
    """
    return Event("gaussian", what, float(sensitivity), float(scale), times, running=running)


@declare
def response_event(what: What, scale: Scalar, times: Repetitions = 1, bits: int | None = None) -> Event:
    """Bits that randomized response flips with probability 1 / (1 + e^(1/scale)).

    One is 1 / scale-private, or less where `bits` are few.

    Args:
        scale: 1 / epsilon of a bit, at least 0; 0 flips none and costs infinity.
        bits: Bits of the uniforms that decide. Probabilities are then multiples of 2^-bits, and rare flips may be rarer
            than they should: what that spends is counted. The default: uniforms are real numbers.

    >>> response_event("bit", 1.0).epsilon, round(response_event("bit", 1 / 14.69, bits=23).epsilon, 2)
    (1.0, 14.84)
    """
    epsilon = _ratio(1.0, float(scale))
    if bits is not None and 0 < epsilon < math.inf:
        flipped = round(2.0**bits / (1 + math.exp(min(epsilon, 700.0))))
        epsilon = max(epsilon, math.log(2.0**bits / flipped - 1) if flipped else math.inf)
    return Event("randomized_response", what, 1.0, float(scale), times, epsilon=epsilon)


@declare
def other_event(
    mechanism: Annotated[str, Doc("The mechanism's name.")],
    what: What,
    epsilon: Annotated[Scalar, LATER, Doc("Epsilon of one release, at least 0.")],
    delta: Annotated[Scalar, LATER, Doc("Delta of one release, in [0, 1).")] = 0.0,
    *,
    sensitivity: ForLedger = math.nan,
    scale: ForLedger = math.nan,
    times: Repetitions = 1,
) -> Event:
    """Releases whose privacy follows by an argument of their own.

    >>> compose([other_event("binomial", "sums of a batch", 0.5, 1e-6, times=2)])
    (1.0, 2e-06)
    """
    return Event(mechanism, what, float(sensitivity), float(scale), times, epsilon=float(epsilon), delta=float(delta))


@declare(source="Asi, Raman and Talwar 2025, Lemma A.6: docs/formulas/private_adversarial.md#batched-exp4.")
def composed_epsilon(
    epsilon: Annotated[float, LATER, Doc("The privacy budget of one release, above 0.")],
    count: Annotated[int, LATER, Doc("The number of releases, at least 1.")],
    delta: Annotated[float, LATER, Doc("The failure probability of the composition, in (0, 1).")],
) -> Annotated[float, Doc("The epsilon of all releases together.")]:
    """What `count` releases, each `epsilon`-private, cost together at `delta` by the closed form of batched EXP4.

    The smaller of (3/2) count epsilon^2 + sqrt(6 count log(1/delta)) epsilon and count epsilon. `mechanisms.compose`
    counts better.

    >>> round(composed_epsilon(0.01, 10_000, 1e-3), 3), composed_epsilon(0.5, 4, 1e-3)
    (7.938, 2.0)
    """
    composed = 1.5 * count * epsilon**2 + math.sqrt(6 * count * math.log(1 / delta)) * epsilon
    return min(composed, count * epsilon)


@declare(
    source="Dwork and Roth 2014, Theorem 3.16; Balle and Wang 2018, Theorem 8; Doroshenko et al. 2022; Asi, "
    "Raman and Talwar 2025, Lemma A.6"
)
def compose(events: Events, delta: Annotated[Scalar, Ge(0), Lt(1)] = 0.0) -> tuple[float, float]:
    """The (epsilon, delta) of all releases that a unit enters, together.

    Args:
        delta: The delta that may be used; 0 only without Gaussian noise. Releases that have a delta of their own use
            that in any case.

    Returns:
        tuple of float: The epsilon, and the delta that is used. Nothing entered: (0.0, 0.0); a release without noise:
            (inf, 0.0).

    Raises:
        ValueError: Where delta is outside its range, or leaves nothing for Gaussian noise.

    Note:
        Epsilons and deltas add up. Several releases, or Gaussian ones, may cost less at `delta`: then their privacy
        losses are composed, rounded up, which comes within about a percent of the least epsilon. Gaussian ones alone
        are composed exactly, as one of the ratio sqrt(sum of (sensitivity / scale)^2).

    >>> compose([laplace_event("loss", 1.0, 2.0), laplace_event("bin", 1.0, 4.0, times=2)])
    (1.0, 0.0)
    >>> round(compose([laplace_event("loss", 1.0, 10.0, times=200)], 1e-5)[0], 2)
    6.38
    >>> nodes, sum_ = gaussian_event("node of a tree", 1.0, 3.0, times=9), gaussian_event("sum", 1.0, 1.0)
    >>> compose([nodes], 1e-5) == compose([sum_], 1e-5)
    True
    """
    delta, normal, rest = float(delta), list[Event](), list[Event]()
    for event in _releases_of_unit(events):
        (normal if event.mechanism == "gaussian" else rest).append(event)
    ratio = math.hypot(*map(_normal_ratio, normal))
    epsilon = math.fsum(event.times * event.epsilon for event in rest)
    used = math.fsum(event.times * event.delta for event in rest)
    if math.isinf(ratio) or math.isinf(epsilon):
        return math.inf, 0.0
    if normal:
        left = number("delta", delta - used, 0.0, 1.0, open_low=True, remedy="Gaussian noise has no pure guarantee")
        epsilon += gaussian_epsilon(ratio, 1.0, left) if ratio > 0 else 0.0
        used = delta
    if delta == 0 or sum(event.times for event in rest) + bool(ratio) < 2:
        return epsilon, used
    releases = [Release(kind, own, size, times) for (kind, own, size), times in _count_laws(rest).items()]
    together = compose_losses(tuple(releases + ([Release("gaussian", 0.0, ratio, 1)] if ratio > 0 else [])), delta)
    epsilons = {event.epsilon for event in rest}
    if used == 0 and len(epsilons) == 1:
        together = min(together, composed_epsilon(epsilons.pop(), sum(event.times for event in rest), delta))
    return (together, delta) if together < epsilon else (epsilon, used)


def repeat_events(events: Iterable[Event], plays: int, own: bool) -> tuple[Event, ...]:
    """The releases that someone's data enter who is played several times.

    own: each play has releases of its own. Otherwise group privacy: `plays` times the sensitivity.
    """
    if own:
        return tuple(event._replace(times=plays * event.times) for event in events)
    found = []
    for event in events:
        delta = event.delta and event.delta * math.fsum(math.exp(min(i * event.epsilon, 700.0)) for i in range(plays))
        epsilon = plays * event.epsilon if delta < 1 else math.inf
        found.append(event._replace(sensitivity=plays * event.sensitivity, epsilon=epsilon, delta=min(delta, 1.0)))
    return tuple(found)


@declare(source="Dong, Roth and Su 2022, Corollary 2")
def gdp(events: Events) -> float:
    """What releases with Gaussian noise cost together as Gaussian differential privacy.

    Returns:
        float: The least g for which they are g-GDP: sqrt(sum of times (sensitivity / scale)^2). inf where a release has
            no noise, or noise that is not Gaussian.

    >>> gdp([gaussian_event("sum", 1.0, 2.0, times=4)]), gdp([laplace_event("sum", 1.0, 2.0)])
    (1.0, inf)
    """
    return math.hypot(*(_normal_ratio(event) for event in _releases_of_unit(events)))


@declare(source="Bun and Steinke 2016, Propositions 1.4 and 1.6, Lemma 1.7")
def zcdp(events: Events) -> float:
    """What releases cost together as zero-concentrated differential privacy.

    Returns:
        float: rho: a Gaussian release costs (sensitivity / scale)^2 / 2, a pure one epsilon^2 / 2. inf where a release
            has no noise, or is private with a delta > 0 only.

    >>> zcdp([gaussian_event("sum", 1.0, 2.0, times=4)]), zcdp([laplace_event("sum", 1.0, 2.0)])
    (0.5, 0.125)
    """
    return math.fsum(event.times * _twice_rho(event) / 2 for event in _releases_of_unit(events))


def _releases_of_unit(events: Iterable[Event]) -> list[Event]:
    """The releases that a unit does enter."""
    return [event for event in events if integer("times", event.times, 0) > 0]


def _normal_ratio(event: Event) -> float:
    """What all the releases of one kind cost as g-GDP."""
    if event.mechanism == "gaussian":
        return math.sqrt(event.times) * _ratio(event.sensitivity, event.scale)
    return 0.0 if event.epsilon == 0 and event.delta == 0 else math.inf


def _twice_rho(event: Event) -> float:
    """Twice what one release costs in rho."""
    if event.mechanism == "gaussian":
        return _ratio(event.sensitivity, event.scale) ** 2
    return math.inf if event.delta > 0 else event.epsilon**2


def _count_laws(events: Sequence[Event]) -> Counter[tuple[str, float, float]]:
    """How often each pair of laws is released: {(kind, delta, epsilon): times}."""
    times = Counter[tuple[str, float, float]]()
    for event in events:
        kind = event.mechanism if event.mechanism == "laplace" and event.delta == 0 else "pure"
        if event.epsilon > 0 or event.delta > 0:
            times[kind, event.delta, event.epsilon] += event.times
    return times


def _spend(events: Callable[[Any], Any], delta: Callable[[Any], float], params: Any) -> tuple[float, float]:
    return compose(events(params), delta(params))


def _pure(params: object) -> float:
    return 0.0


def scale_mechanism(params: Any, scale: Numeric) -> Any:
    """Params of a conversion's base with their privacy noise multiplied by `scale`, where there is any."""
    if not hasattr(params, "mechanism_scale"):
        return params
    return params._replace(mechanism_scale=params.mechanism_scale * scale)


def view_message(message: Any, released: object, action: object) -> Any:
    """The view of the local and the shuffle model: what clients send."""
    return message


def view_released(message: object, released: Any, action: object) -> Any:
    """The view of the central and the federated model: what the server releases. Audits look at the arms besides."""
    return released


@declare(check=False)
def guarantee(
    model: Model,
    unit: Unit,
    events: Callable[[Any], tuple[Event, ...]],
    view: Callable[[Any, Any, Any], Any],
    *,
    delta: Callable[[Any], float] = _pure,
    scales: tuple[str, ...] = ("mechanism_scale",),
    bound: float = math.inf,
) -> Guarantee:
    """A guarantee whose `spend` follows from the releases that a unit enters.

    Args:
        model ({"local", "central", "shuffle", "federated"}): Who adds the noise.
        unit (str): What neighbouring inputs differ in: "loss_vector", "reward", "user" or "message".
        events (callable): params -> tuple of `Event`: the releases that one unit enters.
        view (callable): message, released, action -> what the claim covers: `composition.view_message` or
            `composition.view_released`, or one's own.
        delta (callable, optional): params -> the delta that may be spent. The default: 0.
        scales (tuple of str, default ("mechanism_scale",)): Fields of params that scale the privacy noise.
        bound (float, default inf): The claim holds for rewards in [-bound, bound]; inf: whatever they are.

    Returns:
        Guarantee: For the field of an `Algorithm`.

    >>> events = lambda scale: (laplace_event("reward in [0, 1]", 1.0, scale),)
    >>> guarantee("local", "reward", events, view_message).spend(0.5)
    (2.0, 0.0)
    """
    spend = partial(_spend, events, delta)
    return Guarantee(model=model, unit=unit, spend=spend, view=view, scales=scales, bound=bound, events=events)


def delta_of_params(params: Any) -> float:
    """The delta among the params: the `delta` of a guarantee that states one."""
    return float(params.delta)


def sums_anew(events: Iterable[Event]) -> tuple[Event, ...]:
    """Events of running sums that begin again, or come in another order: of a unit the first of them is looked at."""
    return tuple(event._replace(running=None) if event.running else event for event in events)


def claimed_epsilon(algorithm: Algorithm) -> float | None:
    """The epsilon that an algorithm was given, or that its guarantee says was asked for; None where there is none."""
    given = algorithm.config.get("epsilon")
    return algorithm.guarantee.claimed if given is None else float(given)
