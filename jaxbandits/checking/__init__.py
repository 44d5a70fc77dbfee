"""`jaxbandits.check` and its rules.

What an algorithm, an environment or an adversary promises: each rule is a function that checks one promise.
"""

from jaxbandits.checking.building import addresses, builds, draws, shapes, traces_once
from jaxbandits.checking.check import check
from jaxbandits.checking.claims import guarantee, short_audit
from jaxbandits.checking.findings import Check, Finding
from jaxbandits.checking.playing import actions, bad_rewards, checkpoints, chunks, lane_alone, plays, windows
from jaxbandits.checking.subject import Subject

__all__ = [
    "check",
    "Check",
    "Finding",
    "Subject",
    "builds",
    "shapes",
    "traces_once",
    "draws",
    "addresses",
    "guarantee",
    "short_audit",
    "plays",
    "actions",
    "lane_alone",
    "chunks",
    "checkpoints",
    "windows",
    "bad_rewards",
]
