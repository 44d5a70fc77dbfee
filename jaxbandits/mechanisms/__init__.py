"""Noise scales of privacy mechanisms; each takes its sensitivity explicitly."""

from jaxbandits.mechanisms.laplace import laplace_scale

__all__ = ["laplace_scale"]
