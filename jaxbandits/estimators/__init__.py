"""Estimators of means, medians and designs, each for one problem: use `vmap` for many.

`jax.grad` and `jax.jvp` go through all means and medians.
"""

from jaxbandits.estimators.cut_means import HistogramMean, histogram_mean, local_mean, truncated_mean
from jaxbandits.estimators.g_optimal import Design, g_optimal_design
from jaxbandits.estimators.geometric_median import GeometricMedian, geometric_median
from jaxbandits.estimators.instrument import Instrument, instrument
from jaxbandits.estimators.m_estimators import catoni_mean, huber_location
from jaxbandits.estimators.middle_points import coordinate_median, krum, median_of_means, random_groups
from jaxbandits.estimators.spectral_filter import Filtered, spectral_filter
from jaxbandits.estimators.trimmed_mean import shorth_mean, trimmed_mean
from jaxbandits.numerics.packed import pack, unpack

__all__ = [
    "Design",
    "Filtered",
    "GeometricMedian",
    "HistogramMean",
    "Instrument",
    "catoni_mean",
    "coordinate_median",
    "g_optimal_design",
    "geometric_median",
    "histogram_mean",
    "huber_location",
    "instrument",
    "krum",
    "local_mean",
    "median_of_means",
    "pack",
    "random_groups",
    "shorth_mean",
    "spectral_filter",
    "trimmed_mean",
    "truncated_mean",
    "unpack",
]
