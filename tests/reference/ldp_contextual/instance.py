"""docs/formulas/ldp_contextual.md#figure-1: the experiment of Figure 1."""

import math

import numpy as np


def lifted(directions, features, *, truth=False):
    """Directions on the (d - 1)-sphere, [..., d - 1], to features or theta [..., d]; the constant is the last entry."""
    one = np.ones((*directions.shape[:-1], 1))
    if features == "unit":
        return np.concatenate([directions, one], axis=-1) / math.sqrt(2)
    return np.concatenate([directions, one], axis=-1) * (0.5 if truth else 1.0)


def on_sphere(normals):
    return normals / np.sqrt((normals**2).sum(-1, keepdims=True))


def figure_1(arm_normals, theta_normals, *, features="unit"):
    """arm_normals [T, K, d - 1] (redrawn) or [1, K, d - 1] (fixed), theta_normals [d - 1]:
    contexts as many, theta [d].
    """
    contexts, theta = lifted(on_sphere(arm_normals), features), lifted(on_sphere(theta_normals), features, truth=True)
    if features == "reference":
        dim = len(theta)
        last = np.eye(dim)[-1]
        for i in range(dim - 1):
            contexts[:, i] = np.eye(dim)[i] + last
        contexts[:, dim - 1] = last
    return contexts, theta


def pseudo_regret(contexts, theta, actions):
    """Cumulative, [T]; contexts [T, K, d] or [1, K, d]."""
    means = contexts @ theta
    plays = np.broadcast_to(means, (len(actions), means.shape[1]))
    return np.cumsum(plays.max(1) - plays[np.arange(len(actions)), actions])
