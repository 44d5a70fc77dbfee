"""An algorithm's functions played on given contexts and rewards, without the simulator."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from uncompiled import uncompiled

from jaxbandits.ask_tell import ask, draws_of_learner, tell

SHORT = 32  # plays: so many are evaluated in less time than a program is compiled in


def on_tape(algorithm, contexts, rewards, root=None, dtype=np.float32, state=None, before=0):
    """Actions [T], messages and states after every play (leaves [T, ...]) on contexts [T, ...] and rewards
    of every arm [T, A].

    root: streams with `child`, by default those of lane 5. Algorithms of one program share a compiled one.
    state: what is known after `before` plays; by default what the algorithm begins with.
    """
    root = draws_of_learner(np.uint32(5), dtype) if root is None else root

    def cast(x):
        x = np.asarray(x)
        return x.astype(dtype if x.dtype.kind == "f" else np.int32)

    t = np.arange(before + 1, before + len(rewards) + 1, dtype=np.int32)
    tape = t, np.asarray(contexts, dtype), np.asarray(rewards, dtype)
    play = _in_numpy(algorithm.program) if len(t) <= SHORT else functools.partial(_compiled, algorithm.program)
    state = None if state is None else jax.tree.map(cast, state)
    return jax.tree.map(np.asarray, play(jax.tree.map(cast, algorithm.params), root, tape, state))


@functools.cache
def _in_numpy(program):
    return uncompiled(functools.partial(_play, program))


def _play(program, params, root, tape, state):
    def step(state, now):
        t, context, reward = now
        action, note = ask(program, params, state, root, t, context)
        paid = jnp.take(reward, action)
        state, message, _ = tell(program, params, state, root, t, context, note, action, paid)
        return state, (action[0], message, state)

    return jax.lax.scan(step, program.init(params, root.child("init")) if state is None else state, tape)[1]


_compiled = functools.partial(jax.jit, static_argnums=0)(_play)
