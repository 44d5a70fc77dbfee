"""What comparisons with `tests/reference` share: the simulator's addressed draws and fast paths."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits as jb
from jaxbandits.random import Draws


@functools.partial(jax.jit, static_argnums=(0, 2, 3, 5))
def _draw(path, seed, kind, shape, t, dtype):
    return getattr(Draws(seed, path, dtype), kind)(t, shape)


def draw(seed, path, kind, t, shape=()):
    """Draws of lane `seed` at plays t [n] under a path of the simulator, float64 [n, *shape]."""
    return np.asarray(_draw(path, jnp.uint32(seed), kind, shape, jnp.asarray(t, jnp.int32), jnp.float32), np.float64)


def exact_draw(seed, path, kind, t, shape=()):
    """`draw` of a simulation in float64."""
    with jax.enable_x64(True):
        return np.asarray(_draw(path, jnp.uint32(seed), kind, shape, jnp.asarray(t, jnp.int32), jnp.float64))


@functools.lru_cache(maxsize=64)
def exact_world(environment, seed, horizon):
    """Contexts [T, ..., A, d], rewards of every arm [T, ..., A] and theta [d] of one seed of a simulation in float64.

    environment: a hashable factory; ...: nothing, or the agents.
    """
    environment = environment()
    with jax.enable_x64(True):
        root, t = Draws(jnp.uint32(seed), "environment", jnp.float64), jnp.arange(1, horizon + 1, dtype=jnp.int32)
        params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), environment.params)
        state = environment.world.init(params, root.child("instance"))
        x, state = environment.world.observe(params, state, root.child("context"), t)
        pay = lambda arm: environment.world.reward(
            params, state, root.child("reward"), t, x, jnp.full(x.shape[:-2], arm, jnp.int32)
        )
        rewards = jnp.stack([pay(arm) for arm in range(x.shape[-2])], axis=-1)
        return np.asarray(x), np.asarray(rewards), np.asarray(environment.world.truth(params, state, t, x).theta)


def fast_runs(algorithm, environment, seeds, **adversaries):
    """The fast code, one run a seed: actions [S, T] or [S, T, N] and final regrets [S]."""
    runs = [jb.simulate(algorithm, environment, seed=s, history=True, checkpoints=1, **adversaries) for s in seeds]
    return np.array([run.history.action for run in runs]), np.array([run.regret[-1] for run in runs])


def world_tables(environment, seeds, horizon, choices, *, agents=None):
    """Contexts, truth and the reward of every arm, [S, T, ...] and [S, T, A] or [S, T, N, A],
    as the simulator draws them.
    """
    world, t = environment.world, jnp.arange(1, horizon + 1, dtype=jnp.int32)
    params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), environment.params)
    shape = (horizon,) if agents is None else (horizon, agents)

    @jax.jit
    @jax.vmap
    def one(seed):
        root = Draws(seed, "environment")
        context, state = world.observe(params, world.init(params, root.child("instance")), root.child("context"), t)

        def pay(arm):
            return world.reward(params, state, root.child("reward"), t, context, jnp.full(shape, arm, jnp.int32))

        rewards = jnp.moveaxis(jax.vmap(pay)(jnp.arange(choices, dtype=jnp.int32)), 0, -1)
        return context, world.truth(params, state, t, context).theta, rewards

    return jax.tree.map(lambda x: np.asarray(x, np.float64), one(jnp.asarray(seeds, jnp.uint32)))


def forked(fast, literal) -> float:
    """Share of paths, [S, T, ...] against as many, that differ anywhere."""
    return float(np.mean([not np.array_equal(a, b) for a, b in zip(fast, literal, strict=True)]))


def apart(a, b) -> float:
    """How many standard errors the means of two samples differ by."""
    error = np.sqrt(np.var(a, ddof=1) / len(a) + np.var(b, ddof=1) / len(b))
    return float(abs(np.mean(a) - np.mean(b)) / error)
