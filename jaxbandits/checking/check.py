"""`jaxbandits.check`: what breaks the contract of a part, in plain words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from jaxbandits import adversaries, algorithms, environments
from jaxbandits.checking import building, claims, playing, tracing
from jaxbandits.checking.child import in_child
from jaxbandits.checking.findings import Check, Finding, found_by, name_of_part
from jaxbandits.checking.lookup import looked_up, small_environment
from jaxbandits.checking.subject import Subject
from jaxbandits.protocol import Adversary, Environment
from jaxbandits.typing import AdversaryFactory, AlgorithmFactory, EnvironmentFactory
from jaxbandits.validation import integer

BUILT: tuple[Callable[..., Any], ...] = (building.builds,)
TRACED: tuple[Callable[..., Any], ...] = (tracing.shapes,)
SEEN: tuple[Callable[..., Any], ...] = (tracing.traces_once, tracing.draws, tracing.addresses, claims.guarantee)
PLAYED: tuple[Callable[..., Any], ...] = (playing.plays,)
COMPARED: tuple[Callable[..., Any], ...] = (
    playing.actions, playing.lane_alone, playing.chunks, playing.checkpoints, playing.windows, playing.bad_rewards,
)  # fmt: skip
# All rules, in the order in which they are looked at. A stage that finds something ends the check where the next
# one could not run.
STAGES = (BUILT, TRACED, SEEN, PLAYED, COMPARED)
ENDING = (BUILT, TRACED, PLAYED)


class Request(NamedTuple):
    """The arguments of `check`, looked up: what a child process is given."""

    algorithm: Any
    environment: Any
    reward_adversary: Any
    message_adversary: Any
    horizon: int
    seeds: int
    audit: bool


def check(
    algorithm: AlgorithmFactory | str,
    environment: EnvironmentFactory | Environment | str | None = None,
    *,
    reward_adversary: AdversaryFactory | Adversary | str | None = None,
    message_adversary: AdversaryFactory | Adversary | str | None = None,
    horizon: int = 256,
    seeds: int = 8,
    audit: bool = False,
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
    environment : factory, functools.partial, Environment or str, optional
        By default a small one that fits the algorithm's arguments: `federated_linear` for ``num_agents``,
        `rotating_experts` for ``num_experts``, `linear_arms` for ``actions``, `contextual_linear` for ``dim``, and
        otherwise `bernoulli_arms`. A name of the package stands for the small one that the package's own tests use.
    reward_adversary, message_adversary : factory, functools.partial, Adversary or str, optional
        What contaminates rewards, and what attacks messages.
    horizon : int
        Plays of a lane, at least 1.
    seeds : int
        Lanes, at least 1.
    audit : bool
        Whether a private algorithm is also audited, with 20,000 runs.

    Returns
    -------
    Check
        `passed`, `findings` and `rules`; printed, a list of findings. The rules and what they promise:
        `jaxbandits.checking`.

    Raises
    ------
    ValueError
        For a name that is not known or cannot be imported, and for a horizon or seeds that are no positive integers.
        A broken part raises nothing.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> message = jb.check("ldp_ucb").findings[0].message
    >>> message.partition(";")[0]
    'algorithm: epsilon must be given: functools.partial(ldp_ucb, epsilon=...)'
    """
    algorithm = looked_up("algorithm", algorithm, algorithms)
    chosen = (
        small_environment(algorithm) if environment is None else looked_up("environment", environment, environments)
    )
    attacks = [
        looked_up(slot, part, adversaries)
        for slot, part in (("reward_adversary", reward_adversary), ("message_adversary", message_adversary))
    ]
    request = Request(
        algorithm=algorithm, environment=chosen, reward_adversary=attacks[0], message_adversary=attacks[1],
        horizon=integer("horizon", horizon, 1, 2**31 - 2), seeds=integer("seeds", seeds, 1, 2**16), audit=bool(audit),
    )  # fmt: skip
    findings, rules = in_child(request) or here(request)
    return Check(f"{name_of_part(algorithm)} on {name_of_part(chosen)}", tuple(findings), tuple(rules))


def here(request: Request, report: Callable[[str], Any] = lambda rule: None) -> tuple[list[Finding], list[str]]:
    """Findings and the rules looked at, in this process. report(rule) is told of every rule before it is looked at."""
    subject = Subject(
        request.algorithm, request.environment, request.reward_adversary, request.message_adversary,
        horizon=request.horizon, seeds=request.seeds,
    )  # fmt: skip
    findings: list[Finding] = []
    rules: list[str] = []
    for stage in STAGES:
        number = len(findings)
        for rule in wanted(stage, subject, request, findings):
            report(rule.__name__)
            rules.append(rule.__name__)
            findings += found_by(rule, subject)
        if stage in ENDING and len(findings) > number:
            break
    return findings, rules


def wanted(
    stage: Iterable[Callable[..., Any]], subject: Subject, request: Request, findings: list[Finding]
) -> Iterable[Callable[..., Any]]:
    """The rules of a stage that say something new about this subject."""
    broken = {finding.rule for finding in findings}
    for rule in stage:
        if rule is playing.windows and not subject.own_environment:
            continue
        if rule in (playing.lane_alone, playing.chunks) and "draws" in broken:
            continue  # every program is compiled with other numbers
        yield rule
    if stage is SEEN and request.audit and "guarantee" not in broken | {f.rule for f in findings}:
        yield claims.short_audit
