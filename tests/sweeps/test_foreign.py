"""`jb.foreign`: other people's learners in a sweep, on the rewards that the package's own have in the same run."""

import functools
import importlib
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path

import fresh_process
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from reference.strangers import ByItself, EndsLate, Exp3Stranger, FailsLate, LinUCBStranger, OneArm, Told, UCB1Stranger

import jaxbandits as jb
from jaxbandits import strangers
from jaxbandits.environments.data import pass_order
from jaxbandits.protocol import Adversary, Attack
from jaxbandits.strangers_process import Player, PlayError, Rows, Stranger, play_many
from jaxbandits.sweeps.engines import calls
from jaxbandits.sweeps.engines import strangers as strangers_engine

ARMS = jb.environments.bernoulli_arms(means=[0.2, 0.8, 0.5])
QUIET = {"progress": False}


def stranger_of(make, **about):
    given = {"arguments": {}, "seeded": False, "ask": None, "tell": None, "diagnose": None, "view": None,
             "losses": False, "contexts": False}  # fmt: skip
    return Stranger(make=make, **(given | about))


# ---- the process, in this one


def test_what_a_learner_is_told():
    rewards = np.arange(8.0).reshape(4, 2) / 10
    player = Player(stranger_of(Told), 0)
    assert player.play(Rows(None, rewards[:3]))[0] == [1, 0, 1]
    assert player.play(Rows(None, rewards[3:]))[0] == [0]
    assert player.learner.told == [(1, 0.1), (0, 0.2), (1, 0.5), (0, 0.6)]
    player = Player(stranger_of(Told, losses=True, seeded=True), 1)
    assert player.play(Rows(None, rewards[:2]))[0] == [0, 1]
    assert player.learner.told == [(0, 1 - 0.0), (1, 1 - 0.3)]


def test_losses_are_told_and_rewards_viewed_as_many_as_every_run_has():
    rewards = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    player = Player(stranger_of(Told, losses=True, view=lambda learner, arm, reward: reward), 0)
    played, seen = player.play(Rows(None, rewards[:2]))
    assert player.learner.told == [(1, 1 - 0.2), (0, 1 - 0.3)]
    assert played == [1, 0] and np.concatenate(seen).tolist() == [0.2, 0.3]
    # arms 1 0 1 and 0 1 0: a number for each play of arm 1
    some = stranger_of(Told, seeded=True, view=lambda learner, arm, reward: [reward] * arm)
    assert play_many(some, [0, 1], Rows(None, rewards))[1].tolist() == [[0.2], [0.4]]


def test_who_is_shown_contexts_and_told_losses():
    kinds = {"arms": (False, False), "losses": (True, False), "decision set": (False, True), "row": (False, True)}
    for kind, wanted in kinds.items():
        made = strangers.learner_of(jb.foreign(Told, plays_on=kind)().program).stranger()
        assert (made.losses, made.contexts) == wanted, kind


@pytest.mark.parametrize("part", ["ask", "tell", "diagnose", "view"])
def test_every_function_of_a_module_beside_travels(part, tmp_path, monkeypatch):
    (tmp_path / "functions_beside.py").write_text("def f(*given):\n    return 5\n")
    with monkeypatch.context() as path:
        path.syspath_prepend(tmp_path)
        beside = importlib.import_module("functions_beside")
    packed = strangers._pickle(stranger_of(Told, **{part: beside.f}))
    monkeypatch.delitem(sys.modules, "functions_beside")
    assert getattr(Stranger(*pickle.loads(packed)), part)() == 5


def test_every_function_of_a_learner_names_its_runs():
    def identity(**given):
        made = jb.foreign(Told, version=1, **given)()
        return json.dumps(strangers.learner_of(made.program).identity())

    zero, one = lambda *_: 0, lambda *_: 1
    found = [identity(), *(identity(**{name: f}) for name in ("ask", "tell", "diagnose") for f in (zero, one))]
    assert len(set(found)) == 7
    assert len({identity(plays_on=kind) for kind in ("arms", "losses", "decision set", "row")}) == 4
    zero = strangers.learner_of(jb.foreign(Told, version=0)().program).identity()
    assert zero[1] == 0 and zero != strangers.learner_of(jb.foreign(Told, version="0")().program).identity()


def test_a_world_goes_on_in_the_next_block_where_it_stood():
    """It pays how many blocks it has shown; each run begins with 0. The last block ends a run of 150 plays, or of 8."""
    for horizon, plays, lengths in ((150, 64, (64, 64, 22)), (8, 4, (4, 4))):
        tape = object.__new__(strangers_engine.Tape)
        tape.dtype, tape.horizon, tape.plays, tape.shows, tape.case = "float32", horizon, plays, False, ()
        tape.begin = lambda case, seed: 0
        tape.block = lambda case, seed, state, first: ((), np.full((plays, 2), state), (), state + 1)  # noqa: B023
        found = [
            (x.seed, x.first, len(x.rows.rewards), int(x.rows.rewards[0, 0]), x.last)
            for x in tape.draw_blocks([7, 8], jax.local_devices()[0])
        ]
        ends = len(lengths) - 1
        assert found == [(s, plays * k, n, k, k == ends) for s in (7, 8) for k, n in enumerate(lengths)]


def test_views_are_numbers_of_each_play():
    seen = play_many(stranger_of(Told, view=lambda learner, arm, reward: [arm, 10 * reward]), [5, 6],
                     Rows(None, np.array([[0.1, 0.2], [0.3, 0.4]])))  # fmt: skip
    np.testing.assert_array_equal(seen[0], [[1, 0], [1, 0]])
    np.testing.assert_allclose(seen[1], [[1, 2, 0, 3], [1, 2, 0, 3]])


class Pairs:
    """Has every pair of methods that is looked for; takes them away by name."""

    def act(self):
        return 0

    def predict(self, context=None):
        return 1 if context is None else int(np.argmax(context))

    def update(self, arm, reward):
        self.last = "update", arm, reward

    def partial_fit(self, arm, reward, context=None):
        self.last = "partial_fit", arm, reward, context


class Predicts:
    predict, partial_fit = Pairs.predict, Pairs.partial_fit


class TakesAny:
    def ask(self, *seen):
        return int(np.argmax(seen[0])) if seen else 0

    def tell(self, *told):
        self.last = told


ROW = np.array([[0.5, 2.0, 1.0]])


@pytest.mark.parametrize(
    ("make", "about", "rows", "arm", "last"),
    [
        (Pairs, {}, Rows(None, ROW), 0, ("update", 0, 0.5)),
        (Predicts, {}, Rows(None, ROW), 1, ("partial_fit", 1, 2.0, None)),
        (Predicts, {"contexts": True}, Rows([[1, 2, 3]], ROW), 2, ("partial_fit", 2, 1.0, [1, 2, 3])),
        (Pairs, {"contexts": True}, Rows([[1, 2, 3]], ROW), 0, ("update", 0, 0.5)),
        (Pairs, {"ask": lambda learner, context: np.int64(2)}, Rows(None, ROW), 2, ("update", 2, 1.0)),
        (Predicts, {"tell": lambda learner, *told: setattr(learner, "last", told)}, Rows(None, ROW), 1, (1, 2.0, None)),
        (Told, {"contexts": True, "ask": lambda learner, context: int(np.argmax(context)),
                "tell": lambda learner, *told: setattr(learner, "last", told)},
         Rows([[1, 2, 3]], ROW), 2, (2, 1.0, [1, 2, 3])),
        (TakesAny, {"contexts": True}, Rows([[1, 2, 3]], ROW), 2, (2, 1.0, [1, 2, 3])),
        (TakesAny, {}, Rows(None, ROW), 0, (0, 0.5)),
    ],
)  # fmt: skip
def test_methods_and_contexts(make, about, rows, arm, last):
    player = Player(stranger_of(make, **about), 0)
    assert player.play(rows)[0] == [arm]
    assert player.learner.last == last


class NeedsContext(Told):
    def ask(self, features):
        return 0


def boom(learner, arm, reward, context):
    if len(learner.told) == 2:
        raise KeyError("lost")
    learner.tell(arm, reward)


@pytest.mark.parametrize(
    ("stranger", "play", "words"),
    [
        (
            stranger_of(dict),
            0,
            ["dict has none", "ask and tell", "partial_fit", "lambda learner, arm, reward, context"],
        ),
        (stranger_of(NeedsContext), 0, ["ask takes 'features'", "plays_on='decision set'"]),
        (stranger_of(Told, ask=lambda learner, context: 7), 1, ["arm 7", "none of the 2 arms"]),
        (stranger_of(Told, ask=lambda learner, context: -1), 1, ["arm -1"]),
        (stranger_of(Told, ask=lambda learner, context: 0.5), 1, ["no arm", "float"]),
        (stranger_of(Told, tell=boom), 3, ["KeyError: 'lost'", "test_foreign.py, line", 'raise KeyError("lost")']),
        (stranger_of(Told, arguments={"arms": 2}), 0, ["TypeError", "unexpected keyword argument 'arms'"]),
    ],
)
def test_failures_name_the_play_and_the_stranger_s_own_line(stranger, play, words):
    with pytest.raises(PlayError) as error:
        Player(stranger, 0).play(Rows(None, np.zeros((5, 2))))
    assert error.value.play == play
    assert all(word in error.value.reason for word in words), error.value.reason


# ---- sweeps


@pytest.mark.usefixtures("fully_optimized")  # Bernoulli arms tie, and a tie is one in programs as users have them
def test_literal_strangers_choose_the_arms_of_ours():
    """UCB1 on Bernoulli arms, EXP3 on losses that change, LinUCB on contexts, in float64, seed by seed."""
    about = {"seeds": range(3, 9), "dtype": "float64", "checkpoints": 40, **QUIET}
    rate = {"learning_rate": 0.2, "mixing": 0.1}
    losses = jb.environments.sinusoid_losses(num_arms=3, period=40)
    contexts = jb.environments.contextual_linear(num_arms=4, dim=3)
    linucb = functools.partial(jb.algorithms.linucb, preset="theory", radius_scale=0.3)
    for theirs, ours, world in (
        (jb.foreign(UCB1Stranger), jb.algorithms.ucb1, ARMS),
        (functools.partial(jb.foreign(Exp3Stranger, plays_on="losses"), **rate),
         functools.partial(jb.algorithms.exp3, **rate), losses),
        (functools.partial(jb.foreign(LinUCBStranger, plays_on="decision set"), radius_scale=0.3), linucb, contexts),
    ):  # fmt: skip
        ds = jb.sweep({"theirs": theirs, "ours": ours}, world, horizon=300, **about)
        np.testing.assert_allclose(ds.regret.sel(algorithm="theirs"), ds.regret.sel(algorithm="ours"), rtol=1e-9,
                                   atol=1e-9)  # fmt: skip
        if "pulls" in ds:
            np.testing.assert_array_equal(ds.pulls.sel(algorithm="theirs"), ds.pulls.sel(algorithm="ours"))


def mix(params, state, draws, t, payload, view):
    """Of what is paid, of another draw for the next arm, of the mean of the arm, and of draws of the attack's own."""
    means = jnp.broadcast_to(view.truth.means, (*view.action.shape, 3))
    own = jnp.take_along_axis(means, view.action[:, None], axis=-1)[:, 0]
    other = view.sample((view.action + 1) % 3)
    mixed = (
        0.5 * payload
        + 0.25 * other
        + 0.125 * own
        + 0.125 * draws.uniform(t)
        + 0.001 * (view.t % 7).astype(payload.dtype)
    )
    return jnp.where(view.play, mixed, 9.0), False, state


MIX = Attack(lambda params, draws: (), mix)


def mixed_rewards():
    return Adversary(MIX, ())


def test_a_grid_reaches_make_and_an_adversary_the_rewards(monkeypatch):
    """Blocks of 64 plays, of which checkpoints cut some; corrupted rewards are those of ours."""
    from jaxbandits.sweeps.engines import strangers

    monkeypatch.setattr(strangers, "MOST_PLAYS", 64)
    about = {"reward_adversary": mixed_rewards, "dtype": "float64"}
    theirs = jb.foreign(UCB1Stranger, diagnose=lambda learner: {"last": learner.counts[2]})
    ds = jb.sweep(
        {"theirs": theirs, "ours": "ucb1"}, ARMS,
        horizon=150, seeds=5, grid={("theirs.scale", "ours.bonus_scale"): [0.4, 1.5]}, checkpoints=[1, 63, 64, 65, 150],
        **about, **QUIET,
    )  # fmt: skip
    np.testing.assert_array_equal(ds.regret.sel(algorithm="theirs"), ds.regret.sel(algorithm="ours"))
    assert ds.regret.sel(algorithm="theirs").std("theirs.scale").max() > 0
    np.testing.assert_array_equal(ds["last"].sel(algorithm="theirs"), ds.pulls.sel(algorithm="theirs", arm=2))
    assert np.isnan(ds["last"].sel(algorithm="ours")).all()


def test_regret_against_the_best_of_a_seed_s_own_order_and_numbers_that_some_runs_lack():
    """One arm alone, against the arm that is best in hindsight of the rows that a seed has had."""

    def diagnose(learner):
        return {"kept": 2.5} if learner.seed != 4 else {"other": 1.0}

    paid = np.random.default_rng(1).random((7, 3))
    world = jb.environments.contextual_table(features=np.eye(7), rewards=paid, regret_against="fixed")
    theirs = jb.foreign(OneArm, diagnose=diagnose)
    with pytest.warns(UserWarning, match="diagnose gives other, left out, since each is a name that was not there"):
        ds = jb.sweep(theirs, world, horizon=10, seeds=range(3, 6), checkpoints=[2, 10], dtype="float64", **QUIET)
    for seed in (3, 4, 5):
        sums = paid[np.concatenate([pass_order(seed, turn, 7) for turn in (0, 1)])].cumsum(0)[[1, 9]]
        np.testing.assert_allclose(ds.regret.sel(seed=seed)[0], sums.max(1) - sums[:, 1], atol=1e-9)
    assert ds["kept"].values.tolist() == [[2.5, pytest.approx(np.nan, nan_ok=True), 2.5]] and "other" not in ds


@pytest.mark.parametrize("name", ["t", "regret", "a/b", "scale"])
def test_a_diagnostic_of_a_name_that_is_taken_is_refused_before_the_run(name):
    theirs = jb.foreign(UCB1Stranger, diagnose=lambda learner: {name: 1.0})
    why = "this sweep varies" if name == "scale" else "a result cannot hold under that name"
    with pytest.raises(ValueError, match=f"^theirs: diagnose gives '{name}', which {why}: call it otherwise"):
        jb.sweep({"theirs": theirs}, ARMS, horizon=150, seeds=5, grid={"scale": [0.4, 1.5]}, **QUIET)


def test_a_process_that_ends_is_replaced(tmp_path):
    strangers = {"one": OneArm, "bad": EndsLate, "two": Told}
    strangers, cores = {label: jb.foreign(make, version=1) for label, make in strangers.items()}, jb.cores()
    words = "bad, seed 1, the process that plays it ended with status 7"
    jb.cores(1)
    try:
        with pytest.warns(RuntimeWarning, match="'bad' failed"), pytest.raises(jb.SweepError, match=words):
            jb.sweep(strangers, ARMS, horizon=30, seeds=3, store=tmp_path, **QUIET)
    finally:
        jb.cores(cores)
    kept = {}
    for path in tmp_path.rglob("*.npz"):
        key, seeds, _ = path.name.split(".")
        first, stop = map(int, seeds.split("-"))
        kept[key] = kept.get(key, 0) + stop - first
    assert sorted(kept.values())[-2:] == [3, 3]  # all runs of the others


def test_a_learner_that_draws_from_elsewhere_is_told_of(tmp_path):
    about = {"horizon": 50, "store": tmp_path, **QUIET}
    with pytest.warns(UserWarning, match=r"ByItself: seed 2, played twice, chose other arms"):
        jb.sweep(jb.foreign(ByItself, version=1), ARMS, seeds=range(2, 5), **about)
    with warnings.catch_warnings():  # its first run is kept, and not played
        warnings.simplefilter("error")
        jb.sweep(jb.foreign(ByItself, version=1), ARMS, seeds=range(2, 6), **about)
    checked = jb.check(jb.foreign(ByItself), ARMS, horizon=50, seeds=2)
    assert [finding.rule for finding in checked.findings] == ["stranger"]
    assert jb.check(jb.foreign(Told), ARMS, horizon=50, seeds=2).passed


def test_one_that_fails_stops_nobody_else(tmp_path):
    both = {"bad": jb.foreign(FailsLate, version=1), "good": jb.foreign(Told, version=1), "ours": "ucb1"}
    words = r"bad, seed 1, play 20: ValueError: too late \(strangers.py, line \d+: raise ValueError"
    with pytest.warns(RuntimeWarning, match="'bad' failed"), pytest.raises(jb.SweepError, match=words):
        jb.sweep(both, ARMS, horizon=30, seeds=3, store=tmp_path, **QUIET)
    told = []
    rest = {"good": both["good"], "ours": "ucb1"}
    jb.sweep(rest, ARMS, horizon=30, seeds=3, store=tmp_path, on_chunk=lambda *x: told.append(x), **QUIET)
    assert not told  # all of it was kept
    with pytest.raises(jb.StrangerError, match=words):
        jb.sweep(both, ARMS, horizon=30, seeds=3, **QUIET)


def test_what_is_kept_follows_version_code_and_arguments(tmp_path):
    def computed(strangers):
        told = []
        about = {"horizon": 15, "seeds": 2, "store": tmp_path, "on_chunk": lambda *x: told.append(x), **QUIET}
        jb.sweep(strangers, ARMS, **about)
        return {label for ds, *_ in told for label in ds.algorithm.values.tolist()}

    first = {"one": jb.foreign(Told, version=1)}
    others = {
        "version": jb.foreign(Told, version=2),
        "class": jb.foreign(FailsLate, version=1),
        "bound before": jb.foreign(functools.partial(UCB1Stranger, scale=0.5), version=1),
        "bound after": functools.partial(jb.foreign(UCB1Stranger, version=1), scale=0.5),
        "another value": functools.partial(jb.foreign(UCB1Stranger, version=1), scale=0.25),
        "a function": jb.foreign(Told, version=1, ask=lambda learner, context: 0),
        "another function": jb.foreign(Told, version=1, ask=lambda learner, context: 1),
        "losses": jb.foreign(Told, version=1, plays_on="losses"),
    }
    assert computed(first) == first.keys()
    assert computed(first | others) == others.keys()
    with pytest.warns(UserWarning, match="without a version=.* computed anew"):
        assert computed(others | {"not kept": jb.foreign(Told)}) == {"not kept"}
    with pytest.warns(UserWarning, match="computed anew"):
        assert computed({"not kept": jb.foreign(Told)}) == {"not kept"}


def rate(t, decay):
    return decay**t


def scaled(decay):
    class Scaled(Told):
        by = decay

        def scale(self, t):
            return decay * t

    return Scaled


def wrapped(decay):
    def wrap(function):
        @functools.wraps(function)
        def inner(*given):
            return decay * function(*given)

        return inner

    return wrap


def of_class(**held):
    return type("Made", (Told,), held)


class Schedule:
    def __init__(self, decay):
        self.decay = decay


class Scheduled(Told):
    def __init__(self, num_arms, schedule):
        super().__init__(num_arms)


def built_on(base):
    class Built(base):
        pass

    return Built


def values_that_differ():
    """Lists of values of which no two may have one name."""
    bind, lock = functools.partial, threading.Lock()
    return [
        [bind(rate, decay=0.9), bind(rate, decay=0.5), rate, bind(pow, 0.9), bind(pow, 0.5), bind(pow, exp=0.5), pow],
        [scaled(0.9), scaled(0.5), of_class(by=1), of_class(by=2), of_class(by=property(made_with(1))),
         of_class(by=property(made_with(2))), of_class(by=functools.partialmethod(rate, decay=1)),
         of_class(by=functools.partialmethod(rate, decay=2)), of_class(by=functools.lru_cache(made_with(1))),
         of_class(by=functools.lru_cache(made_with(2))), of_class(by=staticmethod(made_with(3))), of_class(by=lock),
         built_on(UCB1Stranger), built_on(Told)],
        [made_with(0.9), made_with(0.5), made_with(np.arange(3)), made_with(np.arange(3.0)),
         made_with({1: 0.5, "1": 0.9}), made_with({1: 0.7, "1": 0.9}), lambda t, d=1: t, lambda t, d=2: t,
         lambda t, *, d=2: t, lambda t, *, d=3: t],
        [lambda t: t, lambda t: 2 * t], [wrapped(0.9)(rate), wrapped(0.5)(rate), rate, jax.jit(rate), jax.vmap(rate),
         jax.vmap(rate, in_axes=1), jax.jit(jax.grad(rate)), jax.jit(jax.grad(rate, argnums=1))],
        [0.5, "0.5", np.float32([0.5, 1]), np.float64([0.5, 1]), [0.5, 2], (0.5, 2), {"a": 0.5}, None, b"0.5",
         range(2), range(0, 10, 2), range(0, 10, 5), [0, 1], np.datetime64("2026-01-01"), np.complex64(1), True, 1, 1.0,
         float("inf"), "inf", {1: 0.5}.get, {1: 0.9}.get, Path("a"), Path("b"), np, jnp, np.float32, np.float64,
         np.add, Told, np.zeros(6), np.zeros((2, 3)), np.zeros((3, 2)), np.zeros(6, int)],
    ]  # fmt: skip


def names_of(values):
    return [json.dumps(strangers.Described().describe(x)) for x in values]


def test_what_a_learner_is_given_names_its_runs():
    """By position, closed over, defaults, in a class, behind a decorator; and the same in another process."""
    names = [*map(names_of, values_that_differ())]
    for each in names:
        assert len(set(each)) == len(each)
    script = "import json, test_foreign as t; print(json.dumps([*map(t.names_of, t.values_that_differ())]))"
    folders = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1])])
    done = fresh_process.run(script, env=fresh_process.environment(PYTHONPATH=folders, PYTHONHASHSEED="7"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(json.dumps(names))


def test_what_has_no_description_names_no_runs():
    masked, circle = np.ma.masked_array([1.0, 2.0], [True, False]), [1]
    circle.append(circle)
    bind = functools.partial
    for x in (Schedule(0.9), Schedule(0.9).__init__, [Schedule(1)], bind(rate, Schedule(1)), {1}, np.array([Schedule]),
              made_with(Schedule(1)), masked, pd.DataFrame({"a": [1]})):  # fmt: skip
        with pytest.raises(strangers.Nameless, match="could name its runs"):
            strangers.Described().describe(x)

    def calls_itself(n):
        return calls_itself(n - 1) if n else 0

    assert names_of([calls_itself]) == names_of([calls_itself]) and names_of([circle]) == [
        '["list", [["int", "1"], ["again", 0]]]'
    ]


def made_with(scale):
    return lambda num_arms: UCB1Stranger(num_arms, scale=scale)


def first_scale(scale, num_arms):
    return UCB1Stranger(num_arms, scale=scale)


def test_two_of_one_class_are_two_runs(tmp_path):
    given = {f"closed over {x}": jb.foreign(made_with(x), version=1) for x in (0.25, 1.0)}
    given |= {f"by position {x}": jb.foreign(functools.partial(first_scale, x), version=1) for x in (0.5, 2.0)}
    ds = jb.sweep(given, ARMS, horizon=60, seeds=3, store=tmp_path, **QUIET)
    assert len({row.tobytes() for row in ds.regret.values}) == len(given)
    assert len({path.name.partition(".")[0] for path in tmp_path.rglob("*.npz")}) == len(given)  # keys
    with pytest.warns(UserWarning, match="of type Schedule is no number.* computed anew"):
        jb.sweep(functools.partial(jb.foreign(Scheduled, version=1), schedule=Schedule(0.9)), ARMS, horizon=9, seeds=1,
                 store=tmp_path / "schedule", **QUIET)  # fmt: skip


def test_seeds_of_a_learner_without_a_version_are_joined_with_a_warning():
    one, other = (jb.sweep(jb.foreign(Told), ARMS, horizon=9, seeds=range(k, k + 2), **QUIET) for k in (0, 2))
    with pytest.warns(UserWarning, match="not all say what was computed"):
        assert jb.concat([one, other], dim="seed").sizes["seed"] == 4
    elsewhere = jb.sweep(jb.foreign(Told), jb.environments.bernoulli_arms(means=[0.2, 0.8, 0.4]), horizon=9,
                         seeds=range(2, 4), **QUIET)  # fmt: skip
    with pytest.raises(ValueError, match="concat"):
        jb.concat([one, elsewhere], dim="seed")


def test_a_sum_of_regrets_does_not_depend_on_blocks():
    paid = np.random.default_rng(0).random((400, 2))
    found = set()
    for cuts in ([400], [1, 399], [128, 5, 267], [399, 1]):
        record, first = strangers_engine.Record(2, np.array([150, 400])), 0
        for plays in cuts:
            rows = Rows(None, paid[first : first + plays])
            block = strangers_engine.Block(0, first, rows, paid[first : first + plays], last=False)
            record.add(block, np.arange(first, first + plays) % 2, {})
            first += plays
        found.add(record.regret_at.tobytes())
    assert len(found) == 1


def test_a_process_that_owes_an_answer_is_replaced(monkeypatch):
    """The world fails while a learner plays: the answer to that is not taken for the next run's."""
    draw, failed = strangers_engine.Tape.draw_blocks, []

    def draw_and_fail(self, seeds, device):
        for block in draw(self, seeds, device):
            if block.seed == 1 and block.first > 0 and not failed:
                failed.append(block)
                raise FloatingPointError("a NaN")
            yield block

    monkeypatch.setattr(strangers_engine, "MOST_PLAYS", 64)
    monkeypatch.setattr(calls, "MAX_STRANGER_SEEDS", 1)
    honest, cores = jb.sweep(jb.foreign(UCB1Stranger, version=1), ARMS, horizon=150, seeds=6, **QUIET), jb.cores()
    monkeypatch.setattr(strangers_engine.Tape, "draw_blocks", draw_and_fail)
    told = []
    jb.cores(1)
    try:
        with pytest.raises((FloatingPointError, jb.SweepError)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jb.sweep(jb.foreign(UCB1Stranger, version=1), ARMS, horizon=150, seeds=6,
                     on_chunk=lambda ds, *_: told.append(ds), **QUIET)  # fmt: skip
    finally:
        jb.cores(cores)
    assert failed and len(told) == 5  # all but the run that fails
    for ds in told:
        np.testing.assert_array_equal(ds.regret, honest.regret.sel(seed=ds.seed))


def test_functions_of_the_world_run_in_the_thread_that_called():
    called = set()

    def baseline(params, seed, times):
        called.add(threading.get_ident())
        return np.zeros(len(times))

    world = jb.environments.loss_table(losses=np.eye(40, 3))
    world = world._replace(world=world.world._replace(baseline=baseline))
    jb.sweep({"one": jb.foreign(Told), "two": jb.foreign(OneArm)}, world, horizon=[20, 40], seeds=3, **QUIET)
    assert called == {threading.get_ident()}


LATE = """
class Late:
    def __init__(self, num_arms):
        self.plays = 0

    def ask(self):
        self.plays += 1
        return 0

    def tell(self, arm, reward):
        if self.plays == 4:
            raise ValueError("four")  # here
"""


def test_code_that_travelled_fails_with_its_own_line(tmp_path, monkeypatch):
    """A module that is not found by name where it is played, as those beside a TOML file and a notebook's classes."""
    (tmp_path / "beside_a_file.py").write_text(LATE)
    with monkeypatch.context() as path:
        path.syspath_prepend(tmp_path)
        beside = importlib.import_module("beside_a_file")
    with pytest.raises(
        jb.StrangerError, match=r'Late: play 4: ValueError: four \(.*line 12: raise ValueError\("four"\)'
    ):
        jb.sweep(jb.foreign(beside.Late), ARMS, horizon=9, seeds=1, **QUIET)


SCRIPT = """
import sys, time
import jaxbandits as jb

class Slow:  # in the script itself, which has no guard
    def __init__(self, num_arms, seed):
        open(f"{sys.argv[1]}/{seed}", "a").write("made ")
    def ask(self):
        time.sleep(0.004)
        return 0
    def tell(self, arm, reward):
        pass

jb.sweep(jb.foreign(Slow, version=1), "bernoulli_arms" and jb.environments.bernoulli_arms(means=[0.2, 0.8]),
         horizon=100, seeds=16, store=sys.argv[2], progress=False)
"""


def test_nothing_is_computed_twice_after_a_kill(tmp_path):
    """kill -9 in the middle, and the same call again: a run that is kept is not made again."""
    script, made, store = tmp_path / "script.py", tmp_path / "made", tmp_path / "store"
    script.write_text(textwrap.dedent(SCRIPT))
    made.mkdir()
    command = [sys.executable, str(script), str(made), str(store)]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    running = subprocess.Popen(command, env=environment)
    until = time.monotonic() + 60
    while len(list(store.rglob("*.npz"))) < 1 and time.monotonic() < until:
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait()
    kept = {path: path.stat().st_mtime_ns for path in store.rglob("*.npz")}
    before = {path.name: path.read_text().count("made") for path in made.iterdir()}
    assert kept and len(before) < 16
    subprocess.run(command, env=environment, check=True, timeout=120)
    assert all(path.stat().st_mtime_ns == at for path, at in kept.items())
    after = {path.name: path.read_text().count("made") for path in made.iterdir()}
    assert len(after) == 16
    # lane 0 is tried, played twice, and tried again; what was under way is made again, what was kept is not
    again = [name for name, count in before.items() if name != "0" and after[name] > count]
    assert len(again) <= 2 * max(1, jb.cores()), again
    assert jb.load(store).regret.notnull().all()


def test_a_file_of_a_sweep_names_a_stranger(tmp_path):
    (tmp_path / "bandit_of_mine.py").write_text(
        "class First:\n    def __init__(self, num_arms): pass\n    def ask(self): return 0\n"
        "    def tell(self, *told): pass\n"
    )
    file = tmp_path / "sweep.toml"
    file.write_text(
        'horizon = 20\nseeds = 2\ncheckpoints = 1\n[environment]\nname = "bernoulli_arms"\nmeans = [0.25, 0.75]\n'
        '[[algorithm]]\nname = "bandit_of_mine:First"\nforeign = true\nversion = 1\nlabel = "theirs"\n'
    )
    from jaxbandits.cli import main

    assert main(["run", str(file), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    ds = jb.load(tmp_path / "out")
    np.testing.assert_array_equal(ds.regret, np.full((1, 2, 1), 10.0))
    assert json.loads(ds.config)["algorithms"]["theirs"] == {"name": "First", "foreign": True}


def test_a_report_says_that_a_stranger_states_no_guarantee(tmp_path):
    private = functools.partial(jb.algorithms.ldp_ucb, epsilon=1.0)
    ds = jb.sweep({"theirs": jb.foreign(Told), "ours": private}, ARMS, horizon=20, seeds=2, **QUIET)
    jb.report(ds, tmp_path / "report.html")
    assert "states no guarantee" in (tmp_path / "report.html").read_text()


def test_a_misspelt_argument_is_refused():
    for call in (
        lambda: jb.sweep(functools.partial(jb.foreign(UCB1Stranger), scal=2.0), ARMS, horizon=9, seeds=1, **QUIET),
        lambda: jb.audit(functools.partial(jb.foreign(UCB1Stranger), scal=2.0), horizon=9, epsilon=1.0, runs=2000),
    ):
        with pytest.raises(TypeError, match=r"UCB1Stranger has no argument 'scal' \(did you mean 'scale'\?\)"):
            call()


def test_learners_of_ours_cannot_be_made_of_one():
    stranger = jb.foreign(Told)
    for call in (
        lambda: jb.simulate(functools.partial(stranger, horizon=9), ARMS, seed=0),
        lambda: jb.sweep(functools.partial(jb.algorithms.delayed, base=stranger, delay=2), ARMS, horizon=9, seeds=1),
    ):
        with pytest.raises((TypeError, ValueError), match="foreign learner"):
            call()


def test_numbers_of_a_learner_are_there_at_every_horizon():
    theirs = jb.foreign(Told, diagnose=lambda learner: {"made": len(learner.told)})
    ds = jb.sweep(theirs, ARMS, horizon=[4, 9], seeds=2, **QUIET)
    assert ds["made"].isel(algorithm=0).transpose("horizon", "seed").values.tolist() == [[4, 4], [9, 9]]
