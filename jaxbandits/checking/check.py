"""`jaxbandits.check`: what breaks the contract of a part, in plain words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from annotated_doc import Doc

from jaxbandits import catalogue
from jaxbandits.checking.child import in_child
from jaxbandits.checking.findings import Check, Finding, found_by
from jaxbandits.checking.rules import ENDING, RULES, chunks, lane_alone
from jaxbandits.checking.subject import Subject
from jaxbandits.contract import runs_own_code
from jaxbandits.declared import told_by
from jaxbandits.protocol import Adversary, Environment
from jaxbandits.sweeps.arguments import factory_of, signature_of
from jaxbandits.sweeps.own_factory import own_factory
from jaxbandits.sweeps.wording import name_of
from jaxbandits.typing import AdversaryFactory, AlgorithmFactory, EnvironmentFactory
from jaxbandits.validation import integer, plays_on, told


@told
def check(
    algorithm: AlgorithmFactory | str,
    environment: EnvironmentFactory | Environment | str | None = None,
    *,
    reward_adversary: AdversaryFactory | Adversary | str | None = None,
    message_adversary: AdversaryFactory | Adversary | str | None = None,
    horizon: Annotated[int, Doc("Plays of a lane, at least 1.")] = 256,
    seeds: Annotated[int, Doc("Lanes, at least 1.")] = 8,
    audit: Annotated[bool, Doc("Whether a private algorithm is also audited, with 20,000 runs.")] = False,
) -> Check:
    """Look for what breaks the contract of an algorithm, an environment or an adversary.

    An environment or adversary is checked beside a known algorithm.

    The factories are called, their functions traced, and a few lanes played in several ways that must not matter.
    Where the parts can be imported, that is done in a process of its own, on the CPU, so that a crash is a finding
    too; parts that are defined in a notebook or in the script itself run here.

    Parameters
    ----------
    algorithm : factory, functools.partial of one, or str
        A name of the package, such as ``"ucb1"``, or ``"module:factory"``. Arguments without a default that the
        environment does not fill in must be bound; those that are not are a finding.
    environment : factory, functools.partial, Environment or str
        By default a small one that fits the algorithm's arguments: `federated_linear` for ``num_agents``,
        `rotating_experts` for ``num_experts``, `linear_arms` for ``actions``, `contextual_linear` for ``dim``, and
        otherwise `bernoulli_arms`. A name of the package stands for the small one that the package's own tests use.
    reward_adversary, message_adversary : factory, functools.partial, Adversary or str
        What contaminates rewards, and what attacks messages.

    Returns
    -------
    Check
        `passed`, `findings` and `rules`; printed, a list of findings. The rules and what they promise:
        `jaxbandits.checking`.

    Raises
    ------
    ValueError
        For a name that is not known or cannot be loaded, and for a horizon or seeds that are no positive integers.
        A broken part raises nothing.

    >>> jb.check("ldp_ucb").findings[0].message
    'ldp_ucb needs epsilon: functools.partial(jb.algorithms.ldp_ucb, epsilon=...)'
    """
    algorithm = looked_up("algorithm", algorithm)
    chosen = small_environment(algorithm) if environment is None else looked_up("environment", environment)
    others = {"reward_adversary": reward_adversary, "message_adversary": message_adversary}
    subject = Subject(
        algorithm, chosen, **{slot: looked_up(slot, part) for slot, part in others.items()},
        horizon=integer("horizon", horizon, 1, 2**31 - 2), seeds=integer("seeds", seeds, 1, 2**16), audit=bool(audit),
    )  # fmt: skip
    findings, rules = in_child(subject) or here(subject)
    return Check(f"{name_of(algorithm)} on {name_of(chosen)}", tuple(findings), tuple(rules))


def here(subject: Subject, report: Callable[[str], Any] = lambda rule: None) -> tuple[list[Finding], list[str]]:
    """Findings and the rules looked at, in this process. report(rule) is told of every rule before it is looked at."""
    findings: list[Finding] = []
    rules: list[str] = []
    for look, needs in RULES:
        broken = {finding.rule for finding in findings}
        if needs == "an audit" and (not subject.audit or "guarantee" in broken):
            continue
        if look in (lane_alone, chunks) and "draws" in broken:  # every program is compiled with other numbers
            continue
        if needs == "a policy" and not runs_own_code(subject.cell.environment.world):
            continue
        report(look.__name__)
        rules.append(look.__name__)
        found = found_by(look, subject)
        findings += found
        if found and needs in ENDING:
            break
    return findings, rules


def looked_up(slot: str, part: Any) -> Any:
    """A part as it is, or the one that a name stands for: an environment or adversary of the package at the
    catalogue's size.

    Raises ValueError for a name that is not known, and where `module:factory` cannot be loaded.
    """
    if not isinstance(part, str):
        return part
    if ":" in part:
        return own_factory(part, Path())
    factory, example = factory_of(part, slot, slot), catalogue.ADVERSARIES.get(part)
    if part in catalogue.ENVIRONMENTS:
        return catalogue.ENVIRONMENTS[part].environment
    return factory if example is None else example.reward_adversary or example.message_adversary


def small_environment(algorithm: Any) -> EnvironmentFactory:
    """A small environment of the catalogue of the kind that an algorithm plays on.

    Numbers that the factory binds are the environment's too.
    """
    try:
        kind, (names, bound) = plays_on(algorithm), signature_of(algorithm)
        if callable(bound.get("base")):  # a conversion may hand on what its base does not name
            own = [name for name, parameter in names.items() if parameter.default is not None]
            kind = told_by([*own, *signature_of(bound["base"])[0]])
    except (TypeError, ValueError):  # no factory: that is a finding
        return catalogue.arms
    return catalogue.natural(kind, bound)
