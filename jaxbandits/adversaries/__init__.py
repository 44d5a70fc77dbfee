"""Adversary factories: keyword arguments in, `protocol.Adversary` out."""

from jaxbandits.adversaries.byzantine import byzantine
from jaxbandits.adversaries.huber import huber

__all__ = ["huber", "byzantine"]
