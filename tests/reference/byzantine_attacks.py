"""Attacks on messages: docs/formulas/byzantine.md#attacks.

Bars and standard deviations: honest agents of the episode.
"""

import math

import numpy as np


def forged(kind, scale, window, theta, own, honest, draws=None):
    """What one attacked agent sends: own (U, u), honest ([M, d, d], [M, d]), draws (G [d, d], g [d]) of `noise`."""
    dim = len(theta)
    c, L = scale, window
    if kind == "sign_flip":
        return own[0], -c * own[1]
    if kind == "noise":
        G, g = draws
        return c * L * (G + G.T) / math.sqrt(2), c * L * g
    if kind == "constant":
        return c * L * np.eye(dim), -c * L * np.ones(dim)
    if kind == "zero":
        return np.zeros((dim, dim)), np.zeros(dim)
    if kind == "nonfinite":
        return np.full((dim, dim), np.nan), np.full(dim, np.inf)
    mean_gram, mean_vector = honest[0].mean(axis=0), honest[1].mean(axis=0)
    if kind == "alie":
        return mean_gram, mean_vector - c * honest[1].std(axis=0) * np.sign(mean_vector)
    if kind == "inner_product":
        return mean_gram, -c * mean_vector
    if kind == "target":
        return mean_gram, mean_gram @ (-c * np.asarray(theta))
    raise ValueError(kind)


def byzantine(kind, scale, window, theta, part="both", draws=None):
    """attack(k, matrices, vectors, hit) for `play_episodes`; draws(k, agent) -> (G, g)."""

    def attack(k, matrices, vectors, hit):
        new_matrices, new_vectors = matrices.copy(), vectors.copy()
        honest = matrices[~hit], vectors[~hit]
        for i in np.flatnonzero(hit):
            given = draws(k, i) if kind == "noise" else None
            U, u = forged(kind, scale, window, theta, (matrices[i], vectors[i]), honest, given)
            if part != "vector":
                new_matrices[i] = U
            if part != "matrix":
                new_vectors[i] = u
        return new_matrices, new_vectors

    return attack
