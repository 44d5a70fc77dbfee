"""Users' modules for tests of keys: loaded from text, named as a store names them, and played op by op for the truth."""

import contextlib
import importlib
import sys
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits as jb
from jaxbandits import simulator
from jaxbandits.sweeps import run
from jaxbandits.sweeps.identity import identified
from jaxbandits.sweeps.plan import host_case, plan, stacked

HORIZON, CHECKPOINTS, PLAYS, SEEDS = 12, (4, 12), 6, 2
ARMS = jb.environments.bernoulli_arms(means=[0.25, 0.5, 0.75])

# Where an edit stands is left open: VALUE is a number that the algorithm uses, DEFINITIONS come before it.
ALGORITHM = '''
"""An algorithm of a user's."""

import dataclasses, enum, functools, importlib, os
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import jaxbandits as jb
from jaxbandits.numerics import argmax
from jaxbandits.protocol import Adversary, Algorithm, Attack, Environment, Guarantee, Program, Score, Span, Truth, World

DEFINITIONS


def wave(t, seed, arm):  # in place of draws, which take longer to trace than all the rest
    return (jnp.sin((7 * t + 5 * seed.astype(jnp.int32) + 3 * arm).astype(jnp.float32)) + 1) / 2


class Params(NamedTuple):
    rate: Any = 0.5
    bias: Any = 0.0


@cache
def program(num_arms):
    def init(params, draws):
        return jnp.zeros((num_arms, 2), draws.dtype)

    def act(params, state, draws, t, context):
        weight = jnp.asarray(VALUE, draws.dtype)
        noise = wave(t[0], draws.seed, jnp.arange(num_arms))
        action = argmax(state[:, 0] + weight * noise)
        return jnp.full(t.shape, action), None, (action, weight)

    def encode(params, note, draws, t, context, action, reward, play):
        return reward[0]

    def update(params, state, draws, t, note, message, used):
        action, weight = note
        step = params.rate * (message + jnp.asarray(params.bias, message.dtype) - state[action, 0])
        return state.at[action].add(jnp.stack([step, weight])), ()

    def diagnose(params, state):
        return {"total": jnp.sum(state)}

    return Program(init, act, encode, update, diagnose=diagnose)


def mine(*, num_arms, horizon):
    config = {"horizon": horizon}
    return Algorithm(program(num_arms), (Span(1, horizon),), Params(), Guarantee(), ("mine", 1, (num_arms,)), config)


def init_world(params, draws):
    return draws.seed


def observe(params, state, draws, t):
    return (), state


def reward(params, state, draws, t, context, action):
    return wave(t + 1, state, action) * params


def score(params, state, t, context, action):
    return Score(action, 1 - wave(t, state, action))


def truth(params, state, t, context):
    return Truth()


world = Environment(World(init_world, observe, reward, score, truth, 3), 1.0, {"num_arms": 3}, None, {})
'''


class Outcome(NamedTuple):
    """A module's part in the eyes of the store, and what it does."""

    key: str
    nameless: bool
    results: tuple


def algorithm(definitions: str, value: str) -> str:
    """A module of an algorithm with these definitions that uses this number."""
    return ALGORITHM.replace("DEFINITIONS", definitions).replace("VALUE", value)


@contextlib.contextmanager
def loaded(folder: Path, files: dict[str, str], name: str = "mine", path: str = ""):
    """A module written to a folder and imported anew, with what it imports from there."""
    for file, text in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    before, written = dict(sys.modules), sys.dont_write_bytecode
    shadowed = {file.split("/")[-1].removesuffix(".py") for file in files} | {file.split("/")[0] for file in files}
    for module in shadowed & sys.modules.keys():
        del sys.modules[module]
    sys.path.insert(0, str(folder / path))
    sys.dont_write_bytecode = True  # two edits in a second look alike to it
    importlib.invalidate_caches()
    try:
        yield importlib.import_module(name)
    finally:
        sys.path.remove(str(folder / path))
        sys.dont_write_bytecode = written
        for module in [m for m, x in sys.modules.items() if str(folder) in str(getattr(x, "__file__", ""))]:
            del sys.modules[module]
        sys.modules.update({m: x for m, x in before.items() if m in shadowed})


def plan_of(module, **changes):
    """The plan of a module's sweep: `mine` on `world` under `adversary`, where it has them."""
    parts = {
        "algorithms": {"x": getattr(module, "mine", jb.algorithms.ucb1)},
        "environment": getattr(module, "world", ARMS),
        "reward_adversary": getattr(module, "adversary", None),
        "message_adversary": getattr(module, "forger", None),
    }
    settings = {"horizon": HORIZON, "seeds": SEEDS, "checkpoints": CHECKPOINTS}
    return plan(**(run.DEFAULTS | settings | parts | changes))


def key_of(module, **changes) -> tuple[str, bool]:
    """The key of a module's cell, and whether no later run will find it."""
    named = identified(plan_of(module, **changes), "cpu", stored=True)
    return named.keys[0], bool(named.nameless)


def results_of(module, plays: int = PLAYS, **changes) -> tuple:
    """What a few plays of a few seeds give, computed op by op: nothing is traced as a whole, hashed or found again."""
    laid_out = plan_of(module, **changes)
    group, cell = laid_out.groups[0], laid_out.cells[0]
    case, _ = stacked([host_case(cell)], laid_out.dtype)
    times = jnp.asarray(CHECKPOINTS, jnp.int32)

    def play(seed):
        lane = simulator.begin(group.parts, case, seed, len(times))
        windows = []
        for span in group.schedule[:1]:
            for before in range(0, plays, span.slots):
                if span.full:
                    limit = None if span.slots == 1 else jnp.int32(span.slots)
                    lane, window = simulator._offer(group.parts, case, seed, span.slots, lane, jnp.int32(before), limit)
                else:
                    lane, window = simulator.one_counted(
                        group.parts, tuple(span[:1] + span[2:4]), case, seed, lane, times
                    )
                windows.append((window.action, window.reward, window.regret, window.released))
        if any(span.close for span in group.schedule):
            lane = simulator.close(group.parts, case, seed, lane)
        return windows, lane.algorithm, lane.environment, simulator.finish(group.parts, case, lane)[1]

    seeds = jnp.arange(SEEDS, dtype=jnp.uint32)
    with jax.enable_x64(laid_out.dtype == "float64"):
        case = jax.tree.map(jnp.asarray, case)
        played = jax.vmap(play)(seeds)
    environment, baseline = cell.environment, None
    if environment.world.baseline is not None:
        ts = np.asarray(CHECKPOINTS)
        baseline = [np.asarray(environment.world.baseline(environment.params, s, ts), np.float64) for s in range(SEEDS)]
    means = environment.facts.get("means")
    leaves, treedef = jax.tree.flatten(
        (played[:3], played[3], None if means is None else np.asarray(means, np.float64), baseline)
    )
    names = tuple(sorted(played[3]))
    return (
        names,
        cell.algorithm.schedule,
        environment.world.num_arms,
        tuple(_bits(x) for x in leaves),
        treedef.num_leaves,
    )


def _bits(x) -> tuple:
    x = np.asarray(jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x)
    return x.shape, str(x.dtype), x.tobytes()


def outcome(folder: Path, files: dict[str, str], **where) -> Outcome:
    """Import, name and play a module."""
    with loaded(folder, files, **where) as module:
        key, nameless = key_of(module)
        return Outcome(key, nameless, results_of(module))
