"""`jaxbandits.check` and its rules.

What an algorithm, an environment or an adversary promises: each rule is a function that checks one promise.
"""

from jaxbandits.checking import rules
from jaxbandits.checking.check import Check, Finding, check
from jaxbandits.checking.rules import *  # noqa: F403 (they are named there, in their order)
from jaxbandits.checking.subject import Subject

__all__ = ["check", "Check", "Finding", "Subject", *rules.__all__]
