"""Runs of an algorithm whose windows are one play each, as one scan: in NumPy without a compiler, or as one program.

`jb.simulate` compiles a run in five pieces. A test that looks at what is sent, released or played, and not at how
runs are divided, needs none of them.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from uncompiled import uncompiled

from jaxbandits import simulator
from jaxbandits.sweeps.plan import stack_cases
from jaxbandits.window import offer


def played(
    algorithm: Any,
    environment: Any,
    plays: int,
    seeds: Any,
    reward_adversary: Any = None,
    *,
    evaluated: Any = uncompiled,
    dtype: str = "float64",
) -> tuple[Any, Any]:
    """The lanes after the plays and every window of them, with leading axes [seeds] and [seeds, plays]."""
    parts = simulator.parts_of(algorithm, environment, reward_adversary, None, dtype)
    case = stack_cases([simulator.case_of(algorithm, environment, reward_adversary)], dtype)[0]

    def run(case, seed):
        def play(lane, before):
            return offer(parts, case, seed, 1, lane, before, None)

        lane = simulator.begin(parts, case, seed, 1)
        return jax.lax.scan(play, lane, jnp.arange(plays, dtype=jnp.int32))

    with jax.enable_x64(dtype == "float64"):
        lanes = evaluated(jax.vmap(run, (None, 0)))(case, np.asarray(seeds, np.uint32))
        return jax.tree.map(np.asarray, lanes)


in_one_program = partial(played, evaluated=jax.jit)
