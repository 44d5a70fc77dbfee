"""The rules about what an algorithm claims of privacy."""

import math
from typing import Any

import jax

from jaxbandits.auditing.audit import audit
from jaxbandits.checking.findings import Faults, told
from jaxbandits.checking.subject import Subject
from jaxbandits.protocol import Guarantee
from jaxbandits.source_places import place_of_function
from jaxbandits.sweeps.part_checks.fields import check_claim

# Of a short audit: one refutes a true claim once in a thousand times.
AUDIT_RUNS, AUDIT_CONFIDENCE = 20_000, 0.999
FEW_BITS = 0.01  # what uniforms of few bits may add to an epsilon, relatively: 0.0014 measured, at epsilon = 0.0001


def guarantee(subject: Subject) -> Faults:
    """A guarantee's functions return what they should, and the claim is finite.

    Half the noise costs at least twice as much.
    """
    claim, params = subject.cell.algorithm.guarantee, subject.cell.algorithm.params
    where = place_of_function(subject.algorithm)
    faults = list(told(subject.label, where, check_claim, subject.cell.algorithm, subject.label))
    yield from faults
    if faults:
        return
    if claim.model == "none":
        if not math.isinf(claim.spend(params)[0]):
            yield "guarantee.spend is finite but the model is 'none': say which model the claim is about", where
        return
    yield from _spending(claim, params, where)
    view = place_of_function(claim.view) or where
    if not jax.tree.leaves(jax.eval_shape(claim.view, *subject.traced(subject.sizes[-1]).shown)):
        yield "guarantee.view shows nothing: return what the theorem covers, of message, released and action", view


def _spending(claim: Guarantee, params: Any, where: str) -> Faults:
    epsilon, delta = claim.spend(params)
    if not (0 < epsilon < math.inf and 0 <= delta < 1):
        message = f"guarantee.spend says epsilon = {epsilon}, delta = {delta}"
        yield f"{message}: a claim has 0 < epsilon < inf and 0 <= delta < 1", where
        return
    if not claim.scales or "mechanism_scale" not in claim.scales or not hasattr(params, "mechanism_scale"):
        message = (
            "guarantee.scales must name params.mechanism_scale, 1 by default, which multiplies all privacy noise: "
            "tests and audits turn the noise by it"
        )
        yield message, where
        return
    halved = claim.spend(params._replace(mechanism_scale=0.5 * params.mechanism_scale))[0]
    if not halved >= 2 * epsilon * (1 - FEW_BITS):
        message = (
            f"half of mechanism_scale spends epsilon = {halved:.6g}, all of it {epsilon:.6g}: it must at least "
            "double, so events must follow params.mechanism_scale"
        )
        yield message, place_of_function(claim.events) or where


def short_audit(subject: Subject) -> Faults:
    """A short audit, of 20,000 runs at confidence 0.999, does not refute the claim."""
    algorithm = subject.cell.algorithm
    if algorithm.guarantee.model == "none" or algorithm.program.hints.tally:
        return
    report = audit(algorithm, runs=AUDIT_RUNS, confidence=AUDIT_CONFIDENCE, environment=subject.cell.environment)
    if report.refuted:
        yield f"the audit refutes the claim: {report}", place_of_function(algorithm.program.encode)
