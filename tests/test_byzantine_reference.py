"""Byzantine-UCB and its comparators against the literal transcription: the same draws in, the same paths out, in float64.

Medians are compared by the fixed iterations of specification section 7, which are transcribed too, and both to the exact median.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against_reference import planted
from reference import byzantine as byz
from reference import byzantine_attacks as attacks
from reference import byzantine_oracles as oracles
from reference import byzantine_privacy as privacy

import jaxbandits as jb
from jaxbandits import algorithms, environments
from jaxbandits.random import Draws, to_normal

N, A, D, L, T = 7, 5, 3, 6, 75  # the last episode has 3 plays
K = byz.episodes_of(T, L)
TIE = 1e-5  # relative: what the library calls a tie
SEEDS = range(3)
THETA_NORM = 0.7


# ---------------------------------------------------------------- the simulator's draws


@functools.partial(jax.jit, static_argnums=(0, 2, 3))
def _draw(path, seed, kind, shape, t):
    return getattr(Draws(seed, path, jnp.float64), kind)(t, shape)


def draw(seed, path, kind, t, shape=()):
    with jax.enable_x64(True):
        return np.asarray(_draw(path, jnp.uint32(seed), kind, shape, jnp.asarray(t, jnp.int32)))


@functools.lru_cache(maxsize=64)
def world(environment, seed, horizon):
    """Contexts [T, N, A, d], rewards of every arm [T, N, A] and theta, float64."""
    environment = environment()
    with jax.enable_x64(True):
        root, t = Draws(jnp.uint32(seed), "environment", jnp.float64), jnp.arange(1, horizon + 1, dtype=jnp.int32)
        params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), environment.params)
        x, _ = environment.world.observe(params, (), root.child("context"), t)
        pay = lambda arm: environment.world.reward(
            params, (), root.child("reward"), t, x, jnp.full(x.shape[:2], arm, jnp.int32)
        )
        rewards = jnp.stack([pay(arm) for arm in range(x.shape[2])], axis=-1)
        return np.asarray(x), np.asarray(rewards), np.asarray(params.theta)


def first_plays(horizon, window):
    return np.arange(0, horizon, window) + 1


def attack_of(seed, horizon, window, theta, *, corruption, kind="target", scale=1.0, prob=1.0, part="both"):
    """hits [K, N] and the attack of the transcription, on the adversary's draws: an episode is addressed by its first play."""
    t = first_plays(horizon, window)
    hits = np.arange(N) < oracles.attacked_count(corruption, N)
    hits = hits & (draw(seed, "attack/prob", "uniform", t, (N,)) < prob)
    if kind == "none":
        return {"hits": np.zeros_like(hits)}
    vector = draw(seed, "attack/vector", "normal", t, (N, D))

    def given(k, agent):
        G = np.zeros((D, D))
        for i in range(D):
            for j in range(i + 1):  # one normal a pair: (G + G') / sqrt 2 is what is drawn
                normal = word_normal(seed, "attack/gram", t[k - 1], (agent * D + i) * D + j)
                G[i, j] = G[j, i] = normal * (1 if i == j else math.sqrt(0.5))
        return G, vector[k - 1, agent]

    return {"hits": hits, "attack": attacks.byzantine(kind, scale, window, theta, part, given)}


def word_normal(seed, path, t, position):
    with jax.enable_x64(True):
        return float(to_normal(Draws(jnp.uint32(seed), path, jnp.float64).at(t, position), jnp.float64))


# ---------------------------------------------------------------- cases


class Case(NamedTuple):
    """One fast algorithm, in its world, and what the transcription is told."""

    factory: Any
    settings: dict
    attack: dict  # of byzantine, as message_adversary
    poison: dict  # as reward_adversary
    bounded: bool
    horizon: int
    window: int


def case(factory=algorithms.byzantine_ucb, *, attack=None, poison=None, bounded=False, horizon=T, window=L, **settings):
    return Case(factory, settings, attack or {}, poison or {}, bounded, horizon, window)


SHARP = {"ridge_scale": 0.05, "radius_scale": 0.2, "corruption_bound": 0.3}  # N_1 = 2
PRIVATE = {"bounded": True, "epsilon": 8.0, "ridge_scale": 0.02, "radius_scale": 0.02, "corruption_bound": 0.15}
CASES = {
    **{
        rule: case(aggregate=rule, **SHARP)
        for rule in ("geometric_median", "mean", "coordinate_median", "trimmed_mean", "krum", "median_of_means")
    },
}
