"""`jaxbandits.check` and its rules.

What an algorithm, an environment or an adversary promises: each rule is a function that checks one promise.
"""

from jaxbandits.checking.check import Check, Finding, check
from jaxbandits.checking.rules import (
    actions,
    addresses,
    bad_rewards,
    builds,
    checkpoints,
    chunks,
    draws,
    guarantee,
    lane_alone,
    plays,
    shapes,
    short_audit,
    traces_once,
    windows,
)  # fmt: skip
from jaxbandits.checking.subject import Subject

__all__ = [
    "check", "Check", "Finding", "Subject", "builds", "shapes", "traces_once", "draws", "addresses", "guarantee",
    "short_audit", "plays", "actions", "lane_alone", "chunks", "checkpoints", "windows", "bad_rewards",
]  # fmt: skip
