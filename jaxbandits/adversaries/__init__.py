"""Adversary factories: keyword arguments in, `protocol.Adversary` out."""

from jaxbandits.adversaries.byzantine import byzantine
from jaxbandits.adversaries.huber import huber
from jaxbandits.adversaries.poison import poison

__all__ = ["huber", "byzantine", "poison"]
