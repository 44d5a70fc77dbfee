"""Estimators of one problem; `vmap` outside."""

from jaxbandits.estimators.g_optimal import Design, g_optimal_design
from jaxbandits.estimators.histogram_mean import HistogramMean, histogram_mean
from jaxbandits.estimators.truncated_mean import truncated_mean

__all__ = ["Design", "HistogramMean", "g_optimal_design", "histogram_mean", "truncated_mean"]
