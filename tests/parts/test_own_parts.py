"""Parts of a user's own meet every interaction of the package.

What crashes the compiler takes its process along, so that is a child's.

python -m pytest tests/parts/test_own_parts.py
"""

import os
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import settings
from jax.extend.core import jaxprs_in_params

import jaxbandits as jb
from jaxbandits import catalogue
from jaxbandits.protocol import Adversary, Algorithm, Attack, Guarantee, Program, Span
from jaxbandits.traced_once import without_unread

HERE = Path(__file__).parent
# the options with which users compile
XLA_FLAGS = " ".join(f"--{name}={str(value).lower()}" for name, value in settings.FULLY_OPTIMIZED.items())


@cache
def blind_program(shape: tuple, num_arms: int) -> Program:
    """Uniform play that reads neither context nor message nor reward."""

    def act(params, state, draws, t, context):
        return jnp.minimum((draws.uniform(t, shape) * num_arms).astype(jnp.int32), num_arms - 1), None, ()

    return Program(
        init=lambda params, draws: (),
        act=act,
        encode=lambda params, note, draws, t, context, action, reward, play: (context, reward),
        update=lambda params, state, draws, t, note, message, used: (state, ()),
    )


def blind(*, num_arms, horizon):
    program = blind_program((), num_arms)
    return Algorithm(program, (Span(1, horizon),), (), Guarantee(), ("blind", 1, (num_arms,)), {"horizon": horizon})


def blind_agents(*, num_agents, num_arms, horizon):
    program = blind_program((num_agents,), num_arms)
    return Algorithm(program, (Span(1, horizon),), (), Guarantee(), ("blind", 1, (num_arms,)), {"horizon": horizon})


@cache
def onlooker_attack() -> Attack:
    """Looks at the truth, and at what another arm would pay, and does nothing about it."""

    def corrupt(params, state, draws, t, payload, seen):
        jax.tree.map(jnp.cos, (seen.truth, seen.sample(jnp.zeros_like(seen.action))))
        return payload, False, state

    return Attack(lambda params, draws: (), corrupt)


ONLOOKER = Adversary(onlooker_attack(), (), None, {})
TARGET = jb.adversaries.huber(kind="target", value=2.0)
POISON = jb.adversaries.poison(corruption=0.4)
ENVIRONMENTS = {
    "arms": catalogue.arms,
    "losses": catalogue.losses,
    "linear": catalogue.linear,
    "contexts redrawn": catalogue.contexts,
    "contexts fixed": partial(catalogue.contexts, contexts="fixed"),
    "federated": catalogue.federated,
    "experts": catalogue.experts,
    "classification": catalogue.rows,
}


def met():
    """Every meeting of a player and adversaries that read next to nothing with an environment: name and arguments."""
    for name, environment in ENVIRONMENTS.items():
        player = blind_agents if name == "federated" else blind
        yield name, (player, environment), {}
        yield f"{name} watched", (player, environment), {"reward_adversary": ONLOOKER, "message_adversary": ONLOOKER}
        if name in ("arms", "linear", "contexts redrawn", "contexts fixed", "losses"):
            yield f"{name} target", (player, environment), {"reward_adversary": TARGET}
    yield "federated poison", (blind_agents, catalogue.federated), {"reward_adversary": POISON}


def play_all():
    """In the child: play them all, and one by `simulate`, which compiles by itself."""
    for name, parts, adversaries in met():
        print("begins", name, flush=True)
        ds = jb.sweep(*parts, horizon=4, seeds=2, checkpoints=2, progress=False, **adversaries)
        assert np.isfinite(ds.regret).all(), name
    print("begins simulate", flush=True)
    factory = partial(blind_agents, horizon=4)
    jb.simulate(factory, catalogue.federated, reward_adversary=ONLOOKER, checkpoints=2, history=True)
    print("all played", flush=True)


@pytest.mark.dealt(8)
def test_players_and_adversaries_that_read_nothing_do_not_kill_the_compiler():
    paths = os.pathsep.join([str(HERE.parents[1]), str(HERE.parent), str(HERE), os.environ.get("PYTHONPATH", "")])
    child = subprocess.run(
        [sys.executable, "-c", "import test_own_parts; test_own_parts.play_all()"],
        capture_output=True, text=True, cwd=HERE, timeout=600,
        env=os.environ | {"PYTHONPATH": paths, "XLA_FLAGS": XLA_FLAGS},
    )  # fmt: skip
    assert child.returncode == 0 and child.stdout.endswith("all played\n"), child.stdout[-200:] + child.stderr[-2000:]


def primitives(jaxpr) -> list[str]:
    """The names of all operations, in loops and branches too."""
    names = []
    for equation in jaxpr.eqns:
        names.append(equation.primitive.name)
        for inner in jaxprs_in_params(equation.params):
            names += primitives(inner)
    return names


def loops(x, most):
    """Cosines are read, sines are not: in a while, a scan, a branch, a call and a loop in a loop."""

    @jax.jit
    def both(x):
        return jnp.cos(x), jnp.sin(x)

    def body(carry):
        i, x = carry
        jnp.sin(x)
        x = jax.lax.fori_loop(0, i, lambda _, x: both(x)[0], x)  # how often: not known, so a while in the while
        x = jax.lax.cond(i > 2, lambda: both(x)[0], lambda: x)
        return i + 1, jax.lax.scan(lambda x, _: (both(x)[0], None), x, length=3)[0]

    jnp.sin(x)
    return jax.lax.while_loop(lambda carry: carry[0] < most, body, (jnp.int32(0), x))[1]


def test_what_nothing_reads_is_taken_out_of_loops_branches_and_calls():
    x = jnp.linspace(-1.0, 1.0, 7)
    before = primitives(jax.make_jaxpr(loops)(x, 5).jaxpr)
    after = primitives(jax.make_jaxpr(without_unread(loops))(x, 5).jaxpr)
    assert before.count("sin") >= 5 and "sin" not in after and after.count("cos") == before.count("cos")
    np.testing.assert_array_equal(jax.jit(loops)(x, 5), jax.jit(without_unread(loops))(x, 5))


def test_effects_stay_and_static_arguments_are_passed_on():
    told = []

    def speaks(word, x, other, *, _=None):
        jax.debug.callback(lambda x: told.append((word, int(x))), x)
        return {"sum": x + other}

    assert jax.jit(without_unread(speaks), static_argnums=0)("hello", 1, 2)["sum"] == 3
    jax.effects_barrier()
    assert told == [("hello", 1)]


@pytest.mark.compiles(24)
@pytest.mark.parametrize("over", [jax.jit, jax.vmap, lambda f: jax.jit(jax.vmap(f))])
def test_a_lane_without_unread_code_maps_over_seeds(over):
    algorithm = jb.algorithms.ucb1(num_arms=3, horizon=20)

    def last(seed):
        return jb.simulate(algorithm, catalogue.arms, seed=seed, checkpoints=2).regret[-1]

    seeds = jnp.arange(3, dtype=jnp.uint32)
    alone = [float(last(seed)) for seed in range(3)]
    given, expected = (1, alone[1]) if over is jax.jit else (seeds, alone)
    np.testing.assert_allclose(over(last)(given), expected, rtol=1e-6)
