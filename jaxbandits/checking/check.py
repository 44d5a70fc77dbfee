"""`jaxbandits.check`: what breaks the contract of a part, in plain words.

Where the parts can be imported in another process, it is done in one, so that a part that kills the process is found,
too.
"""

from __future__ import annotations

import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from annotated_doc import Doc

from jaxbandits import catalogue
from jaxbandits.checking.rules import ENDING, RULES, chunks, differences, lane_alone, short_audit, stranger, windows
from jaxbandits.checking.subject import Subject
from jaxbandits.contract import describe_error, one_line, place_of, runs_own_code
from jaxbandits.forks import refuse_fork
from jaxbandits.protocol import Adversary, Environment
from jaxbandits.recipe import recipe_of, unwrap
from jaxbandits.strangers import Foreign
from jaxbandits.sweeps.arguments import PARTS, factory_of, own_factory, part_factory
from jaxbandits.sweeps.who_plays import what_is_read
from jaxbandits.typing import AdversaryFactory, AlgorithmFactory, EnvironmentFactory
from jaxbandits.validation import declare, integer

TIME_LIMIT = 1800  # seconds of a whole check in a child: a part that never comes back is a finding
_UNPACK = "import pickle, sys; sys.path[:], packed = pickle.load(sys.stdin.buffer)"
CHILD_CODE = f"{_UNPACK}; from jaxbandits.checking.check import main; main(packed)"
# Whether this is the child: a module that checks its own part when it is imported starts no further one.
_inside = False


class Finding(NamedTuple):
    """One thing that breaks the contract of a part."""

    rule: str  # that is broken: a function of `jaxbandits.checking`, whose docstring says what it promises
    message: str  # what is wrong and how to mend it, in one line
    where: str = ""  # `file:line` in the author's code, where it is known

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}" + (f"\n    {self.where}" if self.where else "")


class Check(NamedTuple):
    """The findings of `jaxbandits.check`. Prints as a list of findings, or as one line where there are none."""

    about: str  # what was checked, in words
    findings: tuple[Finding, ...]  # everything that breaks the contract, in the order of the rules
    rules: tuple[str, ...]  # that were looked at: where a part cannot be built or traced, nothing of it is played

    @property
    def passed(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    def __repr__(self) -> str:
        if self.passed:
            return f"{self.about}: passed, {len(self.rules)} rule{'s' * (len(self.rules) != 1)}"
        number = "1 finding" if len(self.findings) == 1 else f"{len(self.findings)} findings"
        return "\n".join([f"{self.about}: {number}", *(f"  {finding}" for finding in self.findings)])


@declare(check=False)
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

    Args:
        algorithm (factory, functools.partial of one, or str): A name of the package, such as ``"ucb1"``, or
            ``"module:factory"``. Arguments without a default that the environment does not fill in must be bound; those
            that are not are a finding.
        environment (factory, functools.partial, Environment or str, optional): By default a small one that fits the
            algorithm's arguments: `federated_linear` for ``num_agents``, `rotating_experts` for ``num_experts``,
            `linear_arms` for ``actions``, `contextual_linear` for ``dim``, and otherwise `bernoulli_arms`. A name of
            the package stands for the small one that the package's own tests use.
        reward_adversary, message_adversary (factory, functools.partial, Adversary or str, optional): What contaminates
            rewards, and what attacks messages.

    Returns:
        Check: `passed`, `findings` and `rules`; printed, a list of findings. The rules and what they promise:
            `jaxbandits.checking`.

    Raises:
        ValueError: For a name that is not known or cannot be loaded, and for a horizon or seeds that are no positive
            integers. A broken part raises nothing.

    >>> jb.check("ldp_ucb").findings[0].message
    'ldp_ucb needs epsilon: functools.partial(jb.algorithms.ldp_ucb, epsilon=...)'
    """
    algorithm = look_up_part("algorithm", algorithm)
    chosen = small_environment(algorithm) if environment is None else look_up_part("environment", environment)
    others = {"reward_adversary": reward_adversary, "message_adversary": message_adversary}
    adversaries = {slot: look_up_part(slot, part) for slot, part in others.items()}
    horizon, seeds = integer("horizon", horizon, 1, 2**31 - 2), integer("seeds", seeds, 1, 2**16)
    subject = Subject(algorithm, chosen, **adversaries, horizon=horizon, seeds=seeds, audit=bool(audit))
    lines = _in_child(subject) or list(_here(subject))
    findings, rules = [x for x in lines if isinstance(x, Finding)], [x for x in lines if isinstance(x, str)]
    return Check(f"{unwrap(algorithm).name} on {unwrap(chosen).name}", tuple(findings), tuple(rules))


def _here(subject: Subject) -> Iterator[str | Finding]:
    """The name of every rule before it is looked at, and what it finds."""
    refuse_fork()
    broken = set[str]()
    if isinstance(unwrap(subject.algorithm).function, Foreign):
        yield stranger.__name__
        yield from findings_of(stranger, subject)
        return
    for rule in RULES:
        if rule in (differences, short_audit) and (not subject.audit or "guarantee" in broken):
            continue
        if rule in (lane_alone, chunks) and "draws" in broken:  # every program is compiled with other numbers
            continue
        if rule is windows and not runs_own_code(subject.cell.environment.world):
            continue
        yield rule.__name__
        for finding in findings_of(rule, subject):
            broken.add(finding.rule)
            yield finding
        if rule in ENDING and rule.__name__ in broken:
            break


def findings_of(rule: Callable[..., Any], *arguments: object) -> list[Finding]:
    """Run a rule: what it yields, and the error that it stopped with, a SystemExit too, as findings."""
    findings = []
    try:
        for message, where in rule(*arguments):
            findings.append(Finding(rule.__name__, one_line(message), place_of(where)))
    except (Exception, SystemExit) as error:
        findings.append(Finding(rule.__name__, describe_error(error), place_of(error)))
    return findings


def look_up_part(slot: str, part: Any) -> Any:
    """A part as it is, or the one that a name stands for, of the catalogue's size. ValueError for an unknown name."""
    if not isinstance(part, str):
        return part
    if ":" in part:
        return own_factory(part, Path())
    factory, example = factory_of(part, slot, slot).function, catalogue.ADVERSARIES.get(part)
    if part in catalogue.ENVIRONMENTS:
        return catalogue.ENVIRONMENTS[part].environment
    return factory if example is None else example.reward_adversary or example.message_adversary


def small_environment(algorithm: object) -> EnvironmentFactory:
    """A small environment of the kind that an algorithm plays on, with the numbers that its factory binds."""
    try:
        recipe = recipe_of(algorithm)
        return catalogue.natural(what_is_read(recipe)[0], recipe.bound)
    except (TypeError, ValueError):  # no factory: that is a finding
        return catalogue.arms


def main(packed: bytes) -> None:
    """What the child runs: it writes a line for everything that a check tells, and at the end an empty list."""
    global _inside
    _inside = True
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a part prints is none of these lines
    for line in itertools.chain(_here(pickle.loads(packed)), [()]):
        print(json.dumps(line), file=lines)


def _in_child(subject: Subject) -> list[str | Finding]:
    """The same from a child, with a finding more where it dies or takes too long; nothing where it cannot be asked."""
    if isinstance(unwrap(subject.algorithm).function, Foreign):  # it is played in processes of its own
        return []
    packed = None if _inside or not sys.executable else _pickle_subject(subject)
    if packed is None:
        return []
    command, asked = [sys.executable, "-c", CHILD_CODE], pickle.dumps(([str(entry) for entry in sys.path], packed))
    env = os.environ | {"JAX_PLATFORMS": "cpu"}  # the parent may hold the accelerator's memory
    try:
        ended: Any = subprocess.run(command, input=asked, env=env, capture_output=True, timeout=TIME_LIMIT, check=False)
        code = ended.returncode
    except subprocess.TimeoutExpired as error:
        ended, code = error, None
    written = [json.loads(line) for line in (ended.stdout or b"").splitlines()]
    lines = [x if isinstance(x, str) else Finding(*x) for x in written if x]
    if not lines or (code == 0 and not written[-1]):
        return lines
    how = f"was stopped after {TIME_LIMIT} seconds" if code is None else f"ended with exit code {code}"
    how = f"died with signal {signal.Signals(-code).name}" if code is not None and code < 0 else how
    output = (ended.stderr or b"").decode(errors="replace").strip().splitlines()
    said = f" It said last: {output[-1]}" if output and code is not None and code > 0 else ""
    rule = next(x for x in reversed(lines) if isinstance(x, str))
    return [*lines, Finding(rule, f"the process {how} while the rule {rule!r} was looked at.{said}")]


def _pickle_subject(subject: Subject) -> bytes | None:
    """The subject for another process; None where it holds what cannot be imported there by name."""
    parts = {slot: getattr(subject, slot) for slot in PARTS}
    called = {slot: part for slot, part in parts.items() if isinstance(part, Environment | Adversary)}
    # of a called part, what calls it again: for one that was changed since, that has no name
    again = {slot: part_factory(part, slot).factory for slot, part in called.items()}
    try:
        packed = pickle.dumps(replace(subject, **again))
    except Exception:  # a closure, a lambda, a module object: whatever its own pickling raises
        return None
    return None if b"__main__" in packed or b"__mp_main__" in packed else packed
