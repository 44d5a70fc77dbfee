"""The rules about what an algorithm claims of privacy."""

import math
from collections.abc import Iterator

import jax

from jaxbandits.auditing import audit
from jaxbandits.auditing.neighbours import UNITS
from jaxbandits.checking.findings import place_of_function
from jaxbandits.checking.subject import Subject
from jaxbandits.mechanisms.composition import Event
from jaxbandits.protocol import Guarantee
from jaxbandits.validation import nearest

Faults = Iterator[tuple[str, str]]
MODELS = ("local", "central", "shuffle", "federated", "none")
RUNS, CONFIDENCE = 20_000, 0.999  # of a short audit: one refutes a true claim once in a thousand times
SLACK = 1e-9


def guarantee(subject: Subject) -> Faults:
    """A guarantee's model, unit, view, events and scales are well formed, and half the noise costs at least twice as much."""
    claim, params = subject.cell.algorithm.guarantee, subject.cell.algorithm.params
    where = place_of_function(subject.algorithm)
    if claim.model not in MODELS:
        message = f"guarantee.model = {claim.model!r} must be one of {', '.join(MODELS)}"
        yield f"{message}{nearest(claim.model, MODELS)}", where
        return
    for name in ("spend", "view", "events"):
        if not callable(getattr(claim, name)):
            yield f"guarantee.{name} = {getattr(claim, name)!r} must be a function{_arguments(name)}", where
            return
    if claim.model == "none":
        if not math.isinf(claim.spend(params)[0]):
            yield "guarantee.spend is finite but the model is 'none': say which model the claim is about", where
        return
    if claim.unit not in UNITS:
        yield f"guarantee.unit = {claim.unit!r} must be one of {', '.join(UNITS)}{nearest(claim.unit, UNITS)}", where
    yield from _events(claim, params, where)
    yield from _spending(claim, params, where)
    view = place_of_function(claim.view) or where
    if not jax.tree.leaves(jax.eval_shape(claim.view, *subject.traces().shown)):
        yield "guarantee.view shows nothing: return what the theorem covers, of message, released and action", view


def _arguments(name: str) -> str:
    return {"spend": " of params", "events": " of params", "view": " of message, released, action"}[name]


def _events(claim: Guarantee, params, where: str) -> Faults:
    events = claim.events(params)
    if not isinstance(events, tuple | list) or not all(isinstance(event, Event) for event in events):
        message = (
            f"guarantee.events returned {events!r}: return a tuple of events, such as "
            "(mechanisms.laplace_event('reward', 1.0, scale),)"
        )
        yield message, place_of_function(claim.events) or where


def _spending(claim: Guarantee, params, where: str) -> Faults:
    spent = claim.spend(params)
    if not isinstance(spent, tuple) or len(spent) != 2:
        yield f"guarantee.spend returned {spent!r}: return (epsilon, delta)", place_of_function(claim.spend) or where
        return
    epsilon, delta = spent
    if not (0 < epsilon < math.inf and 0 <= delta < 1):
        message = f"guarantee.spend says epsilon = {epsilon}, delta = {delta}"
        yield f"{message}: a claim has 0 < epsilon < inf and 0 <= delta < 1", where
        return
    if not claim.scales or "mechanism_scale" not in claim.scales or not hasattr(params, "mechanism_scale"):
        message = (
            "guarantee.scales must name params.mechanism_scale, 1 by default, which multiplies all privacy noise: tests and audits "
            "turn the noise by it"
        )
        yield message, where
        return
    missing = [name for name in claim.scales if not hasattr(params, name)]
    if missing:
        yield f"guarantee.scales names {', '.join(missing)}, which params does not have", where
    halved = claim.spend(params._replace(mechanism_scale=0.5 * params.mechanism_scale))[0]
    if not halved >= 2 * epsilon * (1 - SLACK):
        message = (
            f"half of mechanism_scale spends epsilon = {halved:.6g}, all of it {epsilon:.6g}: it must at least "
            "double, so events must follow params.mechanism_scale"
        )
        yield message, place_of_function(claim.events) or where


def short_audit(subject: Subject) -> Faults:
    """A short audit, of 20,000 runs at confidence 0.999, does not refute the claim."""
    algorithm = subject.cell.algorithm
    if algorithm.guarantee.model == "none" or algorithm.program.tally:
        return
    report = audit(algorithm, runs=RUNS, confidence=CONFIDENCE, environment=subject.cell.environment)
    if report.refuted:
        yield f"the audit refutes the claim: {report}", place_of_function(algorithm.program.encode)
