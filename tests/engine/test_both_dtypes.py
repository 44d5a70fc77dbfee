"""float32 and float64 live in one process: whatever a builder or a function keeps from one serves the other.

Programs are traced, not compiled. What is kept is forgotten before each order, so that each dtype is once the first
to come.
"""

import functools
import gc
import os

import jax
import jax.numpy as jnp
import pytest
from dealt import others

from jaxbandits import catalogue, simulator
from jaxbandits.sweeps.plan import Cell, host_case, plan, stack_cases
from jaxbandits.window import offer

QUARTERS = 4
ORDERS = [("float32", "float64"), ("float64", "float32")]


def forget():
    """Empty the caches of the package: arrays that they hold are made anew."""
    for thing in gc.get_objects():
        if isinstance(thing, functools._lru_cache_wrapper) and str(thing.__module__).startswith("jaxbandits"):
            thing.cache_clear()


def traced(example, dtype: str):
    """One lane of an example, from its first play to its diagnostics, traced."""
    given = {"environment": example.environment, "horizon": example.horizon, "seeds": 1}
    attacks = {"reward_adversary": example.reward_adversary, "message_adversary": example.message_adversary}
    cell: Cell = plan({"x": example.algorithm}, **given, **attacks, checkpoints=2, dtype=dtype).cells[0]
    parts = simulator.parts_of(cell.algorithm, cell.environment, cell.reward_adversary, cell.message_adversary, dtype)

    def play(case, seed):
        lane = simulator.begin(parts, case, seed, 2)
        for slots in sorted({span.slots for span in cell.algorithm.schedule}):
            lane = offer(parts, case, seed, slots, lane, jnp.int32(0), jnp.int32(slots))[0]
        if any(span.close for span in cell.algorithm.schedule):
            lane = simulator.close(parts, case, seed, lane)
        return simulator.finish(parts, case, lane)

    with jax.enable_x64(dtype == "float64"):
        case, _ = stack_cases([host_case(cell)], dtype)
        return jax.make_jaxpr(play)(case, jnp.uint32(3))


@pytest.mark.parametrize("order", [ORDERS[0], *others([(ORDERS[1],)])], ids="-".join)
def test_every_case_in_both_dtypes_in_one_process(order, request):
    """A quarter of the cases, another one from commit to commit: the contract traces each by itself in both dtypes."""
    forget()
    turn = None if request.config.getoption("exhaustive") else int(os.environ["DEAL"]) % QUARTERS
    names = [name for i, name in enumerate(catalogue.EVERYTHING) if turn in (None, i % QUARTERS)]
    # held, as compiled ones hold their constants: JAX knows a NumPy array by identity, with the dtype it first had
    programs = []
    for dtype in order:
        for name in names:
            programs.append(traced(catalogue.EVERYTHING[name], dtype))
            dtypes = {aval.dtype.name for aval in programs[-1].out_avals}
            assert {d for d in dtypes if d.startswith("float")} <= {dtype}, (name, dtype, dtypes)
