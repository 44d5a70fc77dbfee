"""What comparisons share: the simulator's addressed draws, fast paths, and algorithms on given rewards."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from numpy_draws import NumpyDraws
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.ask_tell import draws_of_learner, play_tape
from jaxbandits.random import Draws

SHORT = 32  # plays: so many are evaluated in less time than a program is compiled in


def draw(seed, path, kind, t, shape=()):
    """Draws of lane `seed` at plays t [n] under a path of the simulator, float64 [n, *shape]."""
    return getattr(NumpyDraws(seed, path, np.float32), kind)(np.asarray(t), shape).astype(np.float64)


def exact_draw(seed, path, kind, t, shape=()):
    """`draw` of a simulation in float64."""
    return getattr(NumpyDraws(seed, path), kind)(np.asarray(t), shape)


@functools.lru_cache(maxsize=64)
def _world(environment, horizon, dtype):
    """A function of the seed, evaluated in NumPy: contexts, rewards of every arm and the truth of every play."""
    environment = environment()
    params, world = jax.tree.map(lambda x: np.asarray(x, dtype), environment.params), environment.world

    def drawn(seed):
        root, t = Draws(seed, "environment", dtype), jnp.arange(1, horizon + 1, dtype=jnp.int32)
        state = world.init(params, root.child("instance"))
        x, state = world.observe(params, state, root.child("context"), t)
        arms = jnp.arange(x.shape[-2], dtype=jnp.int32)
        pay = lambda arm: world.reward(params, state, root.child("reward"), t, x, jnp.broadcast_to(arm, x.shape[:-2]))
        return x, jnp.moveaxis(jax.vmap(pay)(arms), 0, -1), world.truth(params, state, t, x).theta

    return uncompiled(drawn)


@functools.lru_cache(maxsize=64)
def exact_world(environment, seed, horizon):
    """Contexts [T, ..., A, d], rewards of every arm [T, ..., A] and theta [d] of one seed of a simulation in float64.

    environment: a hashable factory; ...: nothing, or the agents.
    """
    with jax.enable_x64(True):
        return _world(environment, horizon, np.float64)(np.uint32(seed))


def fast_runs(algorithm, environment, seeds, **adversaries):
    """The fast code, one run a seed: actions [S, T] or [S, T, N] and final regrets [S]."""
    runs = [jb.simulate(algorithm, environment, seed=s, history=True, checkpoints=1, **adversaries) for s in seeds]
    return np.array([run.history.action for run in runs]), np.array([run.regret[-1] for run in runs])


def world_tables(environment, seeds, horizon, choices, *, agents=None):
    """Contexts, truth and every arm's reward, [S, T, ...] and [S, T, A] or [S, T, N, A], as a simulator draws them."""
    world, shape = environment.world, (horizon,) if agents is None else (horizon, agents)

    @uncompiled
    @jax.vmap
    def drawn(seed):
        root, t = Draws(seed, "environment"), jnp.arange(1, horizon + 1, dtype=jnp.int32)
        params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), environment.params)
        context, state = world.observe(params, world.init(params, root.child("instance")), root.child("context"), t)

        def pay(arm):
            return world.reward(params, state, root.child("reward"), t, context, jnp.full(shape, arm, jnp.int32))

        rewards = jnp.moveaxis(jax.vmap(pay)(jnp.arange(choices, dtype=jnp.int32)), 0, -1)
        return context, world.truth(params, state, t, context).theta, rewards

    return jax.tree.map(lambda x: x.astype(np.float64), drawn(np.asarray(seeds, np.uint32)))


def forked(fast, literal) -> float:
    """Share of paths, [S, T, ...] against as many, that differ anywhere."""
    return float(np.mean([not np.array_equal(a, b) for a, b in zip(fast, literal, strict=True)]))


def apart(a, b) -> float:
    """How many standard errors the means of two samples differ by."""
    error = np.sqrt(np.var(a, ddof=1) / len(a) + np.var(b, ddof=1) / len(b))
    return float(abs(np.mean(a) - np.mean(b)) / error)


def on_tape(algorithm, contexts, rewards, root=None, dtype=np.float32, state=None, before=0):
    """`ask_tell.play_tape` on contexts [T, ...] and rewards of every arm [T, A], on the host.

    root: streams with `child`, by default those of lane 5. Algorithms of one program share a compiled one.
    state: what is known after `before` plays; by default what the algorithm begins with.
    """
    root = draws_of_learner(np.uint32(5), dtype) if root is None else root

    def cast(x):
        x = np.asarray(x)
        return x.astype(dtype if x.dtype.kind == "f" else np.int32)

    tape = np.int32(before + 1), np.asarray(contexts, dtype), np.asarray(rewards, dtype)
    play = _tape_in_numpy(algorithm.program) if len(tape[2]) <= SHORT else functools.partial(_tape, algorithm.program)
    state = None if state is None else jax.tree.map(cast, state)
    return jax.tree.map(np.asarray, play(jax.tree.map(cast, algorithm.params), state, root, *tape))


@functools.partial(jax.jit, static_argnums=0)
def _tape(program, params, state, root, *tape):
    return play_tape(program, params, program.init(params, root.child("init")) if state is None else state, root, *tape)


@functools.cache
def _tape_in_numpy(program):
    return uncompiled(functools.partial(_tape, program))
