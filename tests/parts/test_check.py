"""`jb.check` finds every planted bug, names its line, and passes what is sound."""

import importlib
import itertools
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import catalogue, checking
from jaxbandits.checking import rules
from jaxbandits.checking.check import findings_of, small_environment
from jaxbandits.checking.rules import RULES
from jaxbandits.checking.subject import Subject
from jaxbandits.cli import main
from jaxbandits.contract import one_line, place_of
from jaxbandits.mechanisms import guarantee, laplace_event
from jaxbandits.mechanisms.composition import view_message
from jaxbandits.numerics import argmax
from jaxbandits.protocol import Adversary, Algorithm, Attack, Environment, Guarantee, Program, Score, Span, Truth, World
from jaxbandits.random import Draws
from jaxbandits.validation import factory

EXAMPLES = Path(__file__).parents[2] / "examples"
HORIZON = 40


class Params(NamedTuple):
    noise_scale: Any
    mechanism_scale: Any


class State(NamedTuple):
    mean: Any  # [K]
    pulls: Any  # [K] int32


def init(params, draws):
    return State(jnp.zeros(3, draws.dtype), jnp.zeros(3, jnp.int32))


def act(params, state, draws, t, context):
    anywhere = (draws.child("arm").uniform(t[0]) * 3).astype(jnp.int32)
    action = jnp.where(draws.child("coin").uniform(t[0]) < 0.3, anywhere, argmax(state.mean))
    return jnp.full(t.shape, action), None, action


def encode(params, note, draws, t, context, action, reward, play):
    inside = jnp.clip(jnp.where(jnp.isnan(reward[0]), 0, reward[0]), 0, 1)
    return inside + params.mechanism_scale * params.noise_scale * draws.laplace(t[0])


def update(params, state, draws, t, note, message, used):
    pulls = state.pulls.at[note].add(1)
    step = (message - state.mean[note]) / pulls[note].astype(message.dtype)
    return State(state.mean.at[note].add(step), pulls), ()


def events(params):
    return (laplace_event("reward", 1.0, params.noise_scale * params.mechanism_scale),)


PARAMS = Params(1.0, 1.0)


def of_horizon(horizon):
    return (Span(1, horizon),)


CLAIM = guarantee("local", "reward", events, view_message)


def own(*, schedule=of_horizon, claim=CLAIM, params=PARAMS, version=None, one=None, **functions):
    """A factory of the sound algorithm above, with some of it replaced. one: the builder of its program."""

    @cache
    def program():
        return Program(**{"init": init, "act": act, "encode": encode, "update": update, **functions})

    @factory
    def planted(*, num_arms, horizon):
        made = (one or program)()
        return Algorithm(made, schedule(horizon), params, claim, version or ("planted", 1, (num_arms,)), {})

    return planted


def look(rule, algorithm, environment=None, **others):
    """What a rule, and those that have to pass before it, say of an algorithm."""
    chosen = environment or small_environment(algorithm)
    subject = Subject(algorithm, chosen, **{"horizon": HORIZON, "seeds": 8} | others)
    return findings_of(getattr(checking, rule), subject)


# --- planted bugs: rule, what replaces the sound part, words of the finding, the function whose line it names


def always(action):
    def act(params, state, draws, t, context):
        return jnp.full(t.shape, action, jnp.int32), None, jnp.int32(0)

    return act


def two_values(params, state, draws, t, context):
    return jnp.zeros(t.shape, jnp.int32), None


def real_actions(params, state, draws, t, context):
    return jnp.zeros(t.shape), None, jnp.int32(0)


def one_action(params, state, draws, t, context):
    return jnp.int32(0), None, jnp.int32(0)


def a_dict(params, state, draws, t, context):
    return {"action": jnp.zeros(t.shape, jnp.int32)}


def state_alone(params, state, draws, t, note, message, used):
    return state


def half_precision(params, state, draws, t, note, message, used):
    return state._replace(mean=state.mean.astype(jnp.float16)), ()


def longer(params, state, draws, t, note, message, used):
    return state._replace(pulls=jnp.concatenate([state.pulls, state.pulls])), ()


def other_tree(params, state, draws, t, note, message, used):
    return (state.mean, state.pulls, t), ()


def single_precision(params, draws):
    return State(jnp.zeros(3, jnp.float32), jnp.zeros(3, jnp.int32))


def to_float32(params, state, draws, t, note, message, used):
    return state._replace(mean=state.mean.astype(jnp.float32)), ()


def raises(params, state, draws, t, note, message, used):
    return state.missing, ()


def diagnoses(params, state):
    return {"means": state.mean}


def no_dict(params, state):
    return state.mean


def numpy_noise(params, draws):
    return State(jnp.asarray(np.random.rand(3), draws.dtype), jnp.zeros(3, jnp.int32))


def constant_key(params, state, draws, t, context):
    coin = jax.random.uniform(jax.random.PRNGKey(0))
    return jnp.where(coin < 0.5, jnp.zeros(t.shape, jnp.int32), 1), None, jnp.int32(0)


def key_of_the_play(params, state, draws, t, context):
    coin = jax.random.randint(jax.random.key(t[0].astype(jnp.uint32)), t.shape, 0, 3)
    return coin.astype(jnp.int32), None, coin[0]


def key_in_a_loop(params, state, draws, t, context):
    def more(i, total):
        return total + jax.random.uniform(jax.random.fold_in(jax.random.key(3), i))

    total = jax.lax.fori_loop(0, 3, more, jnp.float32(0))
    return jnp.where(total < 1.5, jnp.zeros(t.shape, jnp.int32), 1), None, jnp.int32(0)


def drawn_twice(params, state, draws, t, context):
    explore = draws.uniform(t[0]) < 0.3
    anywhere = (draws.uniform(t[0]) * 3).astype(jnp.int32)
    return jnp.full(t.shape, jnp.where(explore, anywhere, 0)), None, anywhere


def unclean(params, note, draws, t, context, action, reward, play):
    return reward[0]


def not_nan(params, note, draws, t, context, action, reward, play):
    return jnp.where(jnp.isnan(reward[0]), 0, reward[0])


def not_above(params, note, draws, t, context, action, reward, play):
    return jnp.where(jnp.isnan(reward[0]) | (reward[0] == jnp.inf), 0, reward[0])


def three_when_infinite(params, state, draws, t, context):
    return jnp.full(t.shape, jnp.where(jnp.isinf(state.mean).any(), 3, 0)), None, jnp.int32(0)


def keeps_the_largest(params, state, draws, t, note, message, used):
    return state._replace(mean=state.mean.at[note].max(message)), ()


SOUND, NUMBERS = own(), itertools.count()


def half_a_config(*, num_arms, horizon):
    return SOUND(num_arms=num_arms, horizon=horizon)._replace(config={"horizon": horizon})


def ever_newer(*, num_arms, horizon):
    return SOUND(num_arms=num_arms, horizon=horizon)._replace(version=("planted", 1, (next(NUMBERS),)))


def one_key(params, state, draws, t, context):
    """CRC-32 takes both words for one."""
    first, second = (draws.child(name).uniform(t[0]) for name in ("plumless", "buckeroo"))
    return jnp.full(t.shape, jnp.where(first < second, 0, 1)), None, jnp.int32(0)


@jax.custom_batching.custom_vmap
def of_the_batch(x):
    return x


@of_the_batch.def_vmap
def _of_the_batch(axis_size, batched, x):
    if axis_size == 1:  # the points of the grid; the seeds are outside
        return of_the_batch(x), batched[0]
    return x + jnp.sum(x, axis=0, keepdims=True), batched[0]


def shared_state(params, state, draws, t, note, message, used):
    clean, _ = update(params, state, draws, t, note, message, used)
    return clean._replace(mean=of_the_batch(clean.mean)), ()


def counts_windows(params, state, draws, t, note, message, used):
    return state._replace(pulls=state.pulls + jnp.int32(1)), ()


def by_windows(params, state, draws, t, context):
    action = state.pulls[0] % 3
    return jnp.full(t.shape, action), None, action


def open_span(horizon):
    return (Span(4, horizon, False),)


def sends_zero(params, note, draws, t, context, action, reward, play):
    return jnp.zeros((), draws.dtype)


def bare(*, num_arms, horizon):
    return own()(num_arms=num_arms, horizon=horizon)._replace(config={})


class Planted(NamedTuple):
    rule: str
    algorithm: Any
    words: str
    culprit: Any = None  # the function whose line is named


BUGS = {
    "positional only": Planted("builds", lambda num_arms, /, horizon: None, "keyword-only"),
    "any keywords": Planted("builds", lambda **given: None, "name its arguments"),
    "returns a tuple": Planted("builds", lambda *, num_arms, horizon: (1, 2),
        "must return an Algorithm, it returned (1, 2)"),
    "returns a world": Planted("builds", lambda *, horizon: catalogue.arms(), "it returned an Environment alone"),
    "already called": Planted("builds", jb.algorithms.ucb1(num_arms=3, horizon=9), "already built"),
    "no factory": Planted("builds", 3, "must be a factory"),
    "missing argument": Planted("builds", jb.algorithms.ldp_ucb, "partial(jb.algorithms.ldp_ucb, epsilon=...)"),
    "unknown argument": Planted("builds", partial(jb.algorithms.ucb1, epsilon=1), "no argument 'epsilon'"),
    "no such argument here": Planted("builds", partial(jb.algorithms.linucb), "linucb reads dim features of each arm"),
    "a string among params": Planted("builds", own(params=Params("1", 1.0)),
        "Algorithm.params.noise_scale = '1' must be a number"),
    "None among params": Planted("builds", own(params=Params(None, 1.0)),
        "Algorithm.params.noise_scale = None must be a number"),
    "no config": Planted("builds", bare, "validation.factory"),
    "a version without number": Planted("builds", own(version="planted"), "Algorithm.version must be a tuple"),
    "a schedule that is no tuple": Planted("builds", own(schedule=lambda horizon: Span(1, horizon)), "tuple of Span"),
    "a span of parts of plays": Planted("builds", own(schedule=lambda horizon: (Span(1.5, horizon),)),
        "Span.slots = 1.5 must be an integer"),
    "a string for a function": Planted("builds", own(encode="reward"), "Program.encode must be a function"),
    "a string for a guarantee": Planted("builds", own(claim="local"), "must be a Guarantee"),
    "act returns two": Planted("shapes", own(act=two_values), "it returns 2 values", two_values),
    "act returns a dict": Planted("shapes", own(act=a_dict), "must return (action, used, note), it returns {'action'",
        a_dict),
    "act returns floats": Planted("shapes", own(act=real_actions), "arms as integers, it returns actions of float32",
        real_actions),
    "act returns one number": Planted("shapes", own(act=one_action),
        "actions of shape [P] (here 1) or [1], it returns int32[]", one_action),
    "update without released": Planted("shapes", own(update=lambda *given: (State(*given[1]),)), "it returns 1 value"),
    "update returns the state": Planted("shapes", own(update=state_alone),
        "Program.update must return (state, released), it returns a State alone", state_alone),
    "a drifting dtype": Planted("shapes", own(update=half_precision),
        "State.mean is float32 from init and float16 from update", half_precision),
    "a growing state": Planted("shapes", own(update=longer),
        "State.pulls is int32[3] from init and int32[6] from update", longer),
    "another state": Planted("shapes", own(update=other_tree), "must return a state of the fields that init returns",
        other_tree),
    "a dtype that drifts in float64": Planted("shapes", own(update=to_float32), "with dtype='float64'", to_float32),
    "an error inside": Planted("shapes", own(update=raises), "cannot be traced: AttributeError"),
    "vectors as diagnostics": Planted("shapes", own(diagnose=diagnoses), "its entry 'means' is float32[3]", diagnoses),
    "diagnostics without names": Planted("shapes", own(diagnose=no_dict), "must return a dict of numbers", no_dict),
    "no cache": Planted("traces_once", own(one=lambda: Program(init, lambda *given: act(*given), encode, update)),
        "functools.cache"),
    "np.random": Planted("draws", own(init=numpy_noise), "np.random", numpy_noise),
    "a constant key": Planted("draws", own(act=constant_key), "depends neither on the lane's seed", constant_key),
    "a key of the play alone": Planted("draws", own(act=key_of_the_play), "the same in every lane", key_of_the_play),
    "a constant key in a loop": Planted("draws", own(act=key_in_a_loop), "Program.act draws with a key", key_in_a_loop),
    "one address twice": Planted("addresses", own(act=drawn_twice), "alg/act is drawn twice", drawn_twice),
    "another model": Planted("builds", own(claim=CLAIM._replace(model="locall")), "did you mean 'local'"),
    "another unit": Planted("builds", own(claim=CLAIM._replace(unit="rewards")), "did you mean 'reward'"),
    "a view that is a string": Planted("builds", own(claim=CLAIM._replace(view="message")), "view must be a function"),
    "a view of nothing": Planted("guarantee", own(claim=CLAIM._replace(view=lambda *given: ())), "shows nothing"),
    "events that are a string": Planted(
        "guarantee",
        own(claim=Guarantee("local", "reward", lambda params: (1 / params.mechanism_scale, 0.0), view_message,
                            ("mechanism_scale",), events=lambda params: "laplace")),
        "return a tuple of Event"),
    "no scales": Planted("guarantee", own(claim=CLAIM._replace(scales=())), "mechanism_scale"),
    "events without their noise": Planted(
        "guarantee",
        own(claim=guarantee("local", "reward", lambda params: (laplace_event("x", 1.0, 1.0),), view_message)),
        "double"),
    "no noise": Planted("guarantee", own(params=Params(0.0, 1.0)), "epsilon = inf"),
    "a claim of no model": Planted("guarantee", own(claim=CLAIM._replace(model="none")), "say which model"),
    "too few windows": Planted("plays", own(schedule=lambda horizon: (Span(1, horizon // 2, full=False),)),
        "too few windows"),
    "arms from one to three": Planted("actions", own(act=always(3)), "played arm 3 at play 1; arms are 0..2"),
    "arm minus one": Planted("actions", own(act=always(-1)), "played arm -1 at play 1; arms are 0..2"),
    "rewards as they come": Planted("bad_rewards", own(encode=unclean, claim=Guarantee()), "makes state.mean NaN",
        update),
    "infinite rewards": Planted("bad_rewards", own(encode=not_nan, claim=Guarantee()),
        "a reward of inf makes state.mean NaN", update),
    "rewards of minus infinity": Planted("bad_rewards", own(encode=not_above, claim=Guarantee()),
        "a reward of -inf makes state.mean NaN", update),
    "arms after infinite rewards": Planted(
        "bad_rewards", own(act=three_when_infinite, encode=not_nan, update=keeps_the_largest, claim=Guarantee()),
        "after rewards of inf, it played arm 3", three_when_infinite),
    "half a config": Planted("builds", half_a_config, "config does not hold"),
    "a version of every call": Planted("traces_once", ever_newer, "version differs between two calls"),
    "two children of one key": Planted(
        "addresses", own(act=one_key), "alg/act/plumless and alg/act/buckeroo share a key"),
    "a delta of one": Planted(
        "guarantee", own(claim=CLAIM._replace(spend=lambda p: (1 / p.mechanism_scale, 1.0))), "delta = 1.0"),
    "a lane that reads others": Planted("lane_alone", own(update=shared_state), "another"),
    "calls that differ": Planted("chunks", own(update=shared_state), "calls of 32 and of 16 lanes", shared_state),
    "windows for plays": Planted(
        "checkpoints", own(act=by_windows, update=counts_windows, schedule=open_span), "count plays (used)",
        counts_windows),
}  # fmt: skip


@pytest.mark.planted("a user's algorithm, before `jb.check`")
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name):
    bug = BUGS[name]
    findings = look(bug.rule, bug.algorithm, environment=catalogue.arms)
    assert findings and all(finding.rule == bug.rule for finding in findings)
    assert any(bug.words in finding.message for finding in findings), findings
    assert all("\n" not in finding.message for finding in findings)
    if bug.culprit is not None:
        file, _, line = next(f.where for f in findings if bug.words in f.message).rpartition(":")
        first = int(place_of(bug.culprit).rpartition(":")[2])
        assert file == __file__ and first <= int(line) <= first + 8


@pytest.fixture(scope="module")
def sound():
    return Subject(own(), catalogue.arms, horizon=HORIZON, seeds=8)


@pytest.mark.compiles(20)  # the rules that play; the first one of them compiles for those after it
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in (rules.differences, rules.short_audit)])
def test_the_sound_part_passes_every_rule(sound, rule):
    assert findings_of(rule, sound) == []
    assert rule.__name__ in {bug.rule for bug in BUGS.values()} | {world[0] for world in WORLDS.values()}


def test_regret_that_follows_the_checkpoints_is_found():
    """Windows of 4 count as one play: arm 0 is played more often where checkpoints cut fewer of them."""

    def every_second_window(params, state, draws, t, context):
        return jnp.full(t.shape, state.pulls[0] % 2), None, jnp.int32(0)

    lost = arms_of(score=lambda p, s, t, c, action: Score(regret=jnp.where(action == 0, 0.6, 0.0)))
    (finding,) = look("checkpoints", own(act=every_second_window, update=counts_windows, schedule=open_span), lost)
    assert "regret at the horizon depends on the checkpoints" in finding.message


def test_a_check_looks_at_all_that_it_is_given(monkeypatch):
    seen = []
    monkeypatch.setattr(
        sys.modules["jaxbandits.checking.check"], "_in_child", lambda subject: seen.append(subject) or ["builds"]
    )
    reward, message = partial(jb.adversaries.huber, corruption=0.1), partial(jb.adversaries.byzantine, corruption=0.1)
    jb.check("ucb1", catalogue.arms, reward_adversary=reward, message_adversary=message, horizon=7, seeds=3, audit=True)
    (one,) = seen
    assert (one.environment, one.reward_adversary, one.message_adversary) == (catalogue.arms, reward, message)
    assert (one.horizon, one.seeds, one.audit) == (7, 3, True)
    for words, audit in (([], False), (["--audit"], True)):
        assert main(["check", "ucb1", *words]) == 0 and seen[-1].audit == audit


@pytest.mark.planted("a user's algorithm, before `jb.check`", "a claim of less than it spends")
def test_an_understated_claim_is_refuted_by_the_short_audit():
    """The events say twice the noise that is drawn."""
    twice = lambda p: (laplace_event("reward", 1.0, 3 * p.noise_scale * p.mechanism_scale),)
    halved = guarantee("local", "reward", twice, view_message)
    (finding,) = look("short_audit", own(claim=halved))
    assert "REFUTES" in finding.message and finding.where == place_of(encode)
    assert look("short_audit", own()) == []
    assert rules.AUDIT_CONFIDENCE >= 0.999


# --- environments and adversaries


def world_of(**functions):
    """Two arms that pay 0.2 and 0.8 on average, with some of it replaced."""

    def reward(params, state, draws, t, context, action):
        mean = jnp.asarray(params)[action]
        return (draws.uniform(t) < mean).astype(mean.dtype)

    sound = {
        "init": lambda params, draws: (),
        "observe": lambda params, state, draws, t: ((), state),
        "reward": reward,
        "score": lambda params, state, t, context, action: Score(arm=action),
        "truth": lambda params, state, t, context: Truth(means=jnp.asarray(params)),
    }
    return World(**{**sound, **functions}, num_arms=2)


def arms_of(facts=None, **functions):
    means = np.array([0.2, 0.8])
    return Environment(world_of(**functions), means, facts or {"num_arms": 2, "means": means}, None, {})


def by_pulls(params, state, draws, t, context, action):
    """Addressed within the window, not by the play."""
    return draws.uniform(jnp.arange(len(t), dtype=jnp.int32)).astype(draws.dtype)


def whole_rewards(params, state, draws, t, context, action):
    return action


def wide_rewards(params, state, draws, t, context, action):
    return jnp.zeros((len(t), 2), draws.dtype)


def untrue(params, state, t, context):
    return jnp.asarray(params)


WORLDS = {
    "rewards by pull": ("windows", arms_of(reward=by_pulls), "address draws by t", by_pulls),
    "integers as rewards": ("shapes", arms_of(reward=whole_rewards), "must return floats, it returns int32[1]",
        whole_rewards),
    "rewards of two": ("shapes", arms_of(reward=wide_rewards),
        "must return rewards of shape [P] (here 1), it returns float32[1,2]", wide_rewards),
    "score without a name": ("shapes", arms_of(score=lambda *given: given[4]), "World.score must return a Score", None),
    "truth without a name": ("shapes", arms_of(truth=untrue), "World.truth must return a Truth", untrue),
    "no means": ("shapes", arms_of(facts={"num_arms": 2}), "facts['means']", None),
    "another number of arms": ("builds", arms_of(facts={"num_arms": 3, "means": np.ones(3)}), "disagrees", None),
    "no environment": ("builds", lambda: 3, "must return an Environment, it returned 3", None),
    "infinite regret": (
        "plays", arms_of(score=lambda p, s, t, c, a: Score(a, jnp.full(t.shape, jnp.inf))), "regret is", None),
}  # fmt: skip


@pytest.mark.planted("a user's environment, before `jb.check`")
@pytest.mark.parametrize("name", WORLDS)
def test_a_planted_bug_of_an_environment_is_found(name):
    rule, environment, words, culprit = WORLDS[name]
    findings = look(rule, jb.algorithms.ucb1, environment)
    assert any(words in finding.message for finding in findings), findings
    if culprit is not None:
        assert findings[0].where == place_of(culprit)


def test_a_sound_environment_passes():
    subject = Subject(jb.algorithms.ucb1, arms_of(), horizon=HORIZON)
    for rule in ("builds", "shapes", "traces_once", "draws", "addresses", "windows"):
        assert findings_of(getattr(checking, rule), subject) == []


def test_adversaries_are_looked_at():
    def forgets(params, state, draws, t, payload, seen):
        return payload, False

    def whole(params, state, draws, t, payload, seen):
        return (payload > 0).astype(jnp.int32), False, state

    for corrupt, words in (
        (forgets, "(payload, hit, state), it returns 2 values"),
        (whole, "rewards as it receives them, float32[1], it returns int32[1]"),
    ):
        adversary = Adversary(Attack(lambda params, draws: (), corrupt), (), None, {})
        (finding,) = look("shapes", jb.algorithms.ucb1, catalogue.arms, reward_adversary=adversary)
        assert words in finding.message and finding.where == place_of(corrupt)
    (finding,) = look("builds", jb.algorithms.ucb1, catalogue.arms, message_adversary=lambda: 3)
    assert "must return an Adversary, it returned 3" in finding.message


# --- the whole check


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Writes a module that this process and a child can import."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        sys.modules.pop(name, None)
        return name

    return write


CRASH = """
import os, signal
from functools import cache
from my_private_algorithm import Algorithm, Params, Span, factory, guarantee, events, view_message, program
from my_private_algorithm import private_greedy

@cache
def crashing(num_arms):
    def init(params, draws):
        os.kill(os.getpid(), signal.SIGSEGV)
    return program(num_arms)._replace(init=init)

@factory
def kills(*, num_arms, horizon):
    return private_greedy(num_arms=num_arms, horizon=horizon, epsilon=1.0)._replace(program=crashing(num_arms))

def kills_later(*, num_arms, horizon):
    made = private_greedy(num_arms=num_arms, horizon=horizon, epsilon=1.0)
    another = made.program._replace(act=lambda *given: made.program.act(*given))
    claim = made.guarantee._replace(spend=lambda params: os.kill(os.getpid(), signal.SIGSEGV))
    return made._replace(program=another, guarantee=claim)

def leaves(*, num_arms, horizon):
    raise SystemExit(3)
"""


def test_a_crash_is_a_finding(modules, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    module = importlib.import_module(modules("crash", CRASH))
    found = jb.check(module.kills)
    assert not found.passed and found.findings[-1].rule == found.rules[-1] == "shapes"
    assert "died with signal SIGSEGV while the rule 'shapes'" in found.findings[-1].message
    assert "1 finding" in repr(found) and "kills on bernoulli_arms" in repr(found)
    later = jb.check(module.kills_later)  # what was found before stays
    assert [finding.rule for finding in later.findings] == ["traces_once", "guarantee"]
    assert later.rules[-1] == "guarantee" and "died with signal SIGSEGV" in later.findings[-1].message


def test_the_private_example_passes_in_a_child(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(EXAMPLES)
    seen = []
    monkeypatch.setattr(subprocess, "run", lambda *x, run=subprocess.run, **how: seen.append(x) or run(*x, **how))
    assert main(["check", "my_private_algorithm:one_budget"]) == 0
    said = capsys.readouterr().out
    assert said.strip() == "private_greedy on bernoulli_arms: passed, 12 rules" and len(seen) == 1


def test_parts_without_a_module_play_here(monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *given, **named: pytest.fail("a child was started"))
    found = jb.check(own(act=always(3)), horizon=HORIZON)
    assert found.findings[0].rule in ("plays", "actions") and not found.passed
    assert "lambda" in repr(jb.check(lambda **given: 3))

    def leaves(*, num_arms, horizon):
        raise SystemExit(3)

    assert jb.check(leaves).findings[0].message == "SystemExit: 3"


def test_a_part_that_was_changed_is_the_one_that_is_checked():
    arms = jb.environments.bernoulli_arms(means=[0.2, 0.8])
    changed = arms._replace(facts={**arms.facts, "num_arms": 3})
    assert "disagrees" in jb.check("ucb1", changed).findings[0].message
    assert jb.check("ucb1", arms, horizon=HORIZON, seeds=2).passed


class Called:
    """A factory that is no function."""

    def __call__(self, *, num_arms, horizon):
        return own()(num_arms=num_arms, horizon=horizon)


def endless():
    while True:
        yield 1


ODD = [
    None, 42, 1.5, True, object(), [], {}, print, os.getcwd, int, Called, lambda: None, lambda: 3, partial(int, 3),
    endless(), np.ones(3), jnp,
    jb.environments.bernoulli_arms, jb.environments.bernoulli_arms(means=[0.2, 0.8]), jb.adversaries.huber, Algorithm,
    partial(Algorithm), b"ucb1",
    partial(jb.algorithms.ucb1, num_arms="three"), partial(jb.algorithms.ucb1, num_arms=0),
    partial(jb.algorithms.ucb1, horizon=7),
    partial(jb.algorithms.linucb, dim=-1), partial(jb.algorithms.exp4, num_experts=None),
    partial(jb.algorithms.ucb1, num_arms=np.ones(2)),
]  # fmt: skip


@pytest.mark.parametrize("index", range(len(ODD)))
def test_nothing_odd_raises(index, monkeypatch):
    monkeypatch.setattr(sys.modules["jaxbandits.checking.check"], "_inside", True)
    report = jb.check(ODD[index])
    assert not report.passed and report.findings[0].rule == "builds" and "\n" not in report.findings[0].message
    assert "jaxbandits/checking" not in repr(report)
    if index:
        beside = jb.check("ucb1", ODD[index]) if not isinstance(ODD[index], Environment) else None
        assert beside is None or not beside.passed


def test_a_factory_may_be_any_callable():
    assert look("builds", Called()) == [] and look("plays", Called()) == []


def test_what_a_child_cannot_load_plays_here(monkeypatch):
    """A module that lives in this process only."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    sound = importlib.import_module("my_private_algorithm")
    monkeypatch.setitem(sys.modules, "of_this_process", sound)
    monkeypatch.setattr(sound.private_greedy, "__module__", "of_this_process")
    assert "needs epsilon" in jb.check(sound.private_greedy).findings[0].message


def test_wrong_calls_are_one_line(capsys, modules):
    assert main(["check", "nowhere:factory"]) == 2 and main(["check", "ucb"]) == 2
    modules("broken", "raise RuntimeError('at import')")
    assert main(["check", "broken:factory"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3 and "RuntimeError: at import" in said[2]
    assert main(["check", "ucb1", "--set", "bonus_scale=-1"]) == 1 and "bonus_scale = -1" in capsys.readouterr().out


def test_the_environment_follows_from_the_arguments():
    for algorithm, name in (
        (jb.algorithms.ucb1, "bernoulli_arms"), (jb.algorithms.linucb, "contextual_linear"),
        (jb.algorithms.exp4, "rotating_experts"),
        (jb.algorithms.phased_elimination, "linear_arms"), (jb.algorithms.byzantine_ucb, "federated_linear"),
    ):  # fmt: skip
        assert small_environment(algorithm)().config["name"] == name
    assert small_environment(partial(jb.algorithms.ucb1, num_arms=7))().facts["num_arms"] == 7
    assert small_environment(partial(jb.algorithms.linucb, dim=2, num_arms=4))().facts["dim"] == 2


def test_an_own_factory_is_audited_from_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(EXAMPLES)
    out = ["--runs", "4000", "--out", str(tmp_path / "out")]
    assert main(["audit", "my_private_algorithm:one_budget", *out]) == 0
    assert "does not refute the claim (1, 0)" in capsys.readouterr().out
    assert (tmp_path / "out/private_greedy.png").exists()
    for name, words in (
        ("my_private_algorithm:private_greedy", "needs epsilon"),
        ("my_private_algorithm:nothing", "cannot load"),
        ("my_algorithm:epsilon_greedy_arms", "has no guarantee"), ("my_private_algorithm:__doc__", "no function"),
    ):  # fmt: skip
        assert main(["audit", name, "--out", str(tmp_path / "none")]) == 2
        said = capsys.readouterr().err
        assert words in said and said.count("\n") == 1
    assert not (tmp_path / "none").exists()


def test_the_page_lists_every_rule_and_small_things():
    page = (EXAMPLES.parent / "docs/extending.md").read_text()
    assert [rule.__name__ for rule in RULES if f"| `{rule.__name__}` |" not in page] == []
    assert all(getattr(checking, rule.__name__) is rule and rule.__doc__ for rule in RULES)
    assert jb.check(own(), horizon=1, seeds=1).passed
    assert one_line("a\n  b") == "a b"
    assert os.path.basename(place_of(partial(own()))).startswith("test_check.py:")
    assert place_of(jb.algorithms.ucb1) == ""


STRIDE = {"arms": 1}


def test_what_changed_since_the_last_check_is_seen():
    """As in a notebook: a global changes between two checks, the functions do not."""

    def act(params, state, draws, t, context):
        return jnp.full(t.shape, STRIDE["arms"]), None, 0

    stepping = own(act=act)
    assert look("plays", stepping, environment=catalogue.arms) == []
    STRIDE["arms"] = 5
    try:
        assert look("plays", stepping, environment=catalogue.arms) != []
    finally:
        STRIDE["arms"] = 1


def test_draws_of_another_thread_are_none_of_the_window():
    """Its draw stands at an address that the window draws at too."""

    def beside(params, state, draws, t, context):
        with ThreadPoolExecutor(1) as thread:
            thread.submit(Draws(np.uint32(1), "alg/act/arm").words, np.int32(1)).result()
        return act(params, state, draws, t, context)

    assert look("addresses", own(act=beside)) == []


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 7.0])
def test_few_bits_of_a_uniform_are_no_broken_claim(epsilon):
    made = partial(jb.algorithms.ldp_ucb, epsilon=epsilon, mechanism="randomized_response")
    assert look("guarantee", made) == []

    def deaf(*, num_arms, horizon):
        algorithm = made(num_arms=num_arms, horizon=horizon)
        return algorithm._replace(guarantee=algorithm.guarantee._replace(spend=lambda params: (epsilon, 0.0)))

    assert "double" in look("guarantee", deaf)[0].message
