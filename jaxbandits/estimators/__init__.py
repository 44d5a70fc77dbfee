"""Estimators of one problem; `vmap` outside."""

from jaxbandits.estimators.g_optimal import Design, g_optimal_design

__all__ = ["Design", "g_optimal_design"]
