"""Estimators of one problem; `vmap` outside."""

from jaxbandits.estimators.catoni_mean import catoni_mean
from jaxbandits.estimators.g_optimal import Design, g_optimal_design
from jaxbandits.estimators.histogram_mean import HistogramMean, histogram_mean
from jaxbandits.estimators.huber_location import huber_location
from jaxbandits.estimators.median_of_means import median_of_means
from jaxbandits.estimators.packing import pack, unpack
from jaxbandits.estimators.shorth_mean import shorth_mean
from jaxbandits.estimators.spectral_filter import Filtered, spectral_filter
from jaxbandits.estimators.trimmed_mean import trimmed_mean
from jaxbandits.estimators.truncated_mean import truncated_mean

__all__ = [
    "Design",
    "Filtered",
    "HistogramMean",
    "catoni_mean",
    "g_optimal_design",
    "histogram_mean",
    "huber_location",
    "median_of_means",
    "pack",
    "shorth_mean",
    "spectral_filter",
    "trimmed_mean",
    "truncated_mean",
    "unpack",
]
