"""An algorithm's functions played on given contexts and rewards, without the simulator."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.random import Draws


def on_tape(algorithm, contexts, rewards, root=None, dtype=jnp.float32):
    """Actions [T], messages and states after every play (leaves [T, ...]) on contexts [T, ...] and rewards
    of every arm [T, A].

    root: streams with `child`, by default those of lane 5.
    """
    program, root = algorithm.program, Draws(jnp.uint32(5), "alg", dtype) if root is None else root

    def cast(x):
        x = np.asarray(x)
        return jnp.asarray(x, dtype if x.dtype.kind == "f" else jnp.int32)

    params = jax.tree.map(cast, algorithm.params)

    def step(state, now):
        t, context, reward = now
        ts = t[None]
        action, _, note = program.act(params, state, root.child("act"), ts, context[None])
        paid = jnp.take(reward, action)
        message = program.encode(params, note, root.child("encode"), ts, context[None], action, paid, jnp.ones(1, bool))
        state, _ = program.update(params, state, root.child("update"), t, note, message, 1)
        return state, (action[0], message, state)

    @jax.jit
    def run():
        t = jnp.arange(1, len(rewards) + 1, dtype=jnp.int32)
        tape = t, jnp.asarray(contexts, dtype), jnp.asarray(rewards, dtype)
        return jax.lax.scan(step, program.init(params, root.child("init")), tape)[1]

    return jax.tree.map(np.asarray, run())
