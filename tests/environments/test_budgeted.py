"""Corruption budgets: tables of charges, literal paths, budgets kept to the last bit, what they do, and refusals."""

import functools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt
from numpy_draws import NumpyDraws
from planting import errors, planted
from plays import of_cases
from reference import budgeted as reference
from reference import stochastic
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits import catalogue, simulator
from jaxbandits.adversaries import budgeted
from jaxbandits.catalogue import ALGORITHMS
from jaxbandits.protocol import Adversary, AdversaryView, Attack, Truth
from jaxbandits.random import Draws
from jaxbandits.simulator import attack_state
from jaxbandits.sweeps.engines import one_call
from jaxbandits.sweeps.plan import cast, plan
from jaxbandits.sweeps.storage.store import BegunCall
from jaxbandits.window import Lane

MEANS = np.array([0.8, 0.6, 0.5, 0.3])
ARMS = partial(jb.environments.bernoulli_arms, means=MEANS)
NOISY = partial(jb.environments.gaussian_arms, means=MEANS, scale=0.4)  # indices are never tied
LOSSES = jb.environments.bernoulli_losses(means=[0.3, 0.5])
ACTIONS = np.array([0, 1, 2, 3, 0, 0, 1, 0, 3, 3, 0, 2, 0, 0, 1, 0])
REWARDS = np.array([1, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1.0])
KINDS = ["lower_best", "raise_worst", "swap", "empirical_best"]
OFFERED = 40  # plays of the windows of several plays here: one program serves them all
SCHEDULES = ["early", "late", "uniform", "burst"]


@functools.cache
def windows_of(attack):
    """Compiled windows of the attack, [W, P]. Where a reward is swapped, the fresh one is the arm's mean plus t / 1000.

    Gives the rewards, the budget spent after every window and the diagnostics.
    """

    def window(params, means, state, seen):
        t, action, reward, play = seen
        sample = lambda arm: means[arm] + t.astype(means.dtype) / 1000
        view = AdversaryView(t, (), action, play, Truth(means), (), (), (), sample)
        new, hit, state = attack.corrupt(params, state, Draws(jnp.uint32(0), "contamination"), t, reward, view)
        assert hit is False  # regret counts corrupted plays
        return state, (new, state.spent)

    @jax.jit
    def windows(params, means, t, action, reward, play):
        state = attack_state(attack, params, Draws(jnp.uint32(0), "contamination", means.dtype.type), len(means))
        state, seen = jax.lax.scan(partial(window, params, means), state, (t, action, reward, play))
        return *seen, attack.diagnose(params, state)

    return windows


def played(adversary, actions, rewards, *, slots=1, offered=None, dtype=jnp.float64, means=MEANS):
    """The attack on given plays in windows of `slots`: delivered rewards, the account after windows, diagnostics.

    offered: as many plays are offered by a window; those beyond `slots` are not made.
    """
    offered, dtype, number = offered or slots, np.dtype(dtype), -(-len(actions) // slots)
    starts = slots * np.arange(number)
    made = np.arange(offered) < np.minimum(slots, len(actions) - starts)[:, None]
    t = np.int32(starts[:, None] + 1 + np.arange(offered))
    # plays that are not made have some action and some reward
    action, reward = (np.resize(x, number * offered).reshape(number, offered) for x in (actions, rewards))
    action, reward = np.int32(action), np.asarray(reward, dtype)
    action[made], reward[made] = actions, rewards
    with jax.enable_x64(dtype == np.float64):
        params = jax.tree.map(lambda x: np.asarray(x, dtype if isinstance(x, float) else np.int32), adversary.params)
        seen = windows_of(adversary.attack)(params, np.asarray(means, dtype), t, action, reward, made)
        new, account, diagnostics = jax.tree.map(np.asarray, seen)
    np.testing.assert_array_equal(new[~made], reward[~made])  # plays that are not made are left alone
    return new[made], account.astype(float), {name: float(x) for name, x in diagnostics.items()}


def literally(module, adversary_arguments, actions, rewards, means=MEANS):
    attack = module.Budgeted(list(map(float, means)), **adversary_arguments)
    rank = attack.mirror
    seen = [
        attack.deliver(t, int(a), float(x), fresh=means[rank(int(a))] + t / 1000)
        for t, (a, x) in enumerate(zip(actions, rewards, strict=True), start=1)
    ]
    return np.array(seen), attack


@pytest.mark.parametrize(("slots", "offered"), [(1, 1), (4, OFFERED), (16, OFFERED)])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_charges_by_hand(slots, offered, dtype):
    by_hand = partial(played, actions=ACTIONS, rewards=REWARDS, slots=slots, offered=offered, dtype=dtype)
    seen, account, _ = by_hand(budgeted(total=2.5))
    assert seen.tolist() == [0, 1, 0, 0, 0, 0, 1, 0.5, 0, 1, 1, 1, 0, 1, 1, 1]
    assert account.tolist() == [float(x) for x in np.cumsum([1, 0, 0, 0, 1, 0, 0, 0.5] + [0] * 8)[slots - 1 :: slots]]
    seen, account, _ = by_hand(budgeted(total=2.5, strength="weak"))
    assert seen.tolist() == [0, *REWARDS[1:]]
    assert account.tolist() == [float(x) for x in np.cumsum([1, 1, 0.5] + [0] * 13)[slots - 1 :: slots]]


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_the_empirical_best_arm_is_brought_down_just_enough(dtype):
    seen, _, told = played(budgeted(total=2.0, kind="empirical_best"), ACTIONS, REWARDS, dtype=dtype)
    np.testing.assert_allclose(seen, [*REWARDS[:4], 0.8, *REWARDS[5:]], rtol=1e-6)
    assert told["corruption_spent"] == pytest.approx(0.2, rel=1e-6)


def test_schedules_are_the_printed_plays():
    at = lambda schedule, horizon: budgeted(total=8.0, schedule=schedule, horizon=horizon).params[-3:]
    assert at("late", 17)[:2] == (8, 2**31 - 1) and at("uniform", 16)[2] == 0.5
    assert at("burst", 100)[:2] == (25, 32) and at("burst", 16)[:2] == (4, 5) and at("burst", 17)[:2] == (4, 6)
    assert at("early", None) == at("early", 50) == (0, 2**31 - 1, math.inf)


RNG = np.random.default_rng(0)
MANY, LONG = RNG.integers(4, size=90), RNG.normal(0.5, 0.6, size=90)
LONG[[7, 30, 61]] = math.inf, -math.inf, math.nan


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("strength", ["strong", "weak"])
@pytest.mark.parametrize("kind", KINDS)
def test_charge_by_charge_as_in_the_literal_attack(kind, strength, schedule):
    # the last reaches both ends, of means too
    for total, size, low in ((3.7, 0.3, 0.0), (0.3, 0.1, -math.inf), (20.0, 0.9, 0.25)):
        arguments = {
            "total": total, "kind": kind, "strength": strength, "schedule": schedule, "size": size, "low": low,
            "high": 0.9, "margin": 0.05, "horizon": 90,
        }  # fmt: skip
        want, attack = literally(reference, arguments, MANY, LONG)
        sums = np.cumsum(attack.charges)
        # "empirical_best" goes by the means at a window's start
        for slots, offered in ((1, 1), *(((7, OFFERED), (40, OFFERED)) if kind != "empirical_best" else ())):
            seen, account, told = played(budgeted(**arguments), MANY, LONG, slots=slots, offered=offered)
            np.testing.assert_allclose(seen, want, rtol=1e-12, atol=1e-12)
            ends = [min(i + slots, 90) - 1 for i in range(0, 90, slots)]
            np.testing.assert_allclose(account, sums[ends], rtol=1e-12, atol=1e-12)
            if strength == "weak":
                assert told["corrupted_regret"] == pytest.approx(attack.corrupted_regret, abs=1e-11)


def test_who_keeps_an_account_sees_every_play_of_a_learner_at_rest():
    algorithm, environment = catalogue.case("robust_elimination")
    assert algorithm.program.hints.rest is not None
    parts = simulator.parts_of(algorithm, environment, None, None, "float32")
    account, plain = budgeted(total=9.0).attack, jb.adversaries.huber(corruption=0.1).attack
    seen = []

    def look(case):
        lane = simulator.begin(parts, case, np.uint32(0), 1)
        for attacks in ((None, None), (plain, plain), (account, None), (None, account)):
            of_both = dict(zip(("reward_attack", "message_attack"), attacks, strict=True))
            seen.append(simulator.resting(parts._replace(**of_both), case, lane) is not None)

    jax.eval_shape(look, jax.tree.map(partial(cast, dtype="float32"), simulator.case_of(algorithm, environment)))
    assert seen == [True, True, False, False]


def test_a_weak_attack_rests_while_the_best_arm_is_level():
    level = budgeted(total=9.0, kind="empirical_best", strength="weak", margin=0.0)
    seen, account, _ = played(level, np.arange(90) % 2, np.ones(90))
    assert (seen == 1).all() and (account == 0).all()


@pytest.mark.parametrize(("kind", "want"), [("lower_best", 1.05), ("raise_worst", 1.05), ("swap", 0.3)])
def test_corrupted_regret_of_means_that_change_with_the_play(kind, want):
    """A quarter less for the best arms 1, 0, 2, or more for the worst 0, 1, 1: (0.8 + 0.6 + 0.4) - 3 / 4.

    Swapped both: (0.65 - 0.35) + (0.45 - 0.35) + (0.35 - 0.45).
    """
    means = np.asarray([[0.1, 0.9, 0.5], [0.7, 0.1, 0.5], [0.5, 0.2, 0.6]], np.float32)
    attack = budgeted(total=9.0, kind=kind, size=0.25, strength="weak")

    @uncompiled
    def regret(params, means, t, actions, reward):
        state = attack.attack.init(params, Draws(jnp.uint32(0), "contamination"))
        view = AdversaryView(t, (), actions, t > 0, Truth(means), (), (), (), lambda arm: jnp.zeros(arm.shape))
        return attack.attack.corrupt(params, state, None, t, reward, view)[2].regret

    params = jax.tree.map(lambda x: np.float32(x) if isinstance(x, float) else x, attack.params)
    t, worst = np.arange(1, 4, dtype=np.int32), np.asarray([0, 1, 1], np.int32)
    assert float(regret(params, means, t, worst, np.full(3, 0.5, np.float32))) == pytest.approx(want, rel=1e-5)


@functools.cache
def swapped_rewards(seed, horizon):
    """What every arm pays, and pays where rewards are swapped, [T, K], as the simulator draws it in float64."""
    t = np.arange(1, horizon + 1)
    paths = "environment/reward", "contamination/reward"
    return tuple(MEANS + 0.4 * NumpyDraws(seed, path).normal(t)[:, None] for path in paths)


def literal_run(module, arguments, seed, horizon):
    """UCB1 under the literal attack: actions [T] and the attack."""
    paid, fresh = swapped_rewards(seed, horizon)
    attack = module.Budgeted(list(MEANS), **arguments, horizon=horizon)
    deliver = lambda t, arm: attack.deliver(t, arm, paid[t - 1, arm], fresh[t - 1, attack.mirror(arm)])
    return stochastic.ucb1(deliver, 4, horizon), attack


PATHS = {
    "lower_best": {"total": 12.0},
    "weak": {"total": 30.0, "strength": "weak", "size": 0.7},
    "raise_worst": {"total": 9.3, "kind": "raise_worst", "schedule": "uniform"},
    "swap": {"total": 20.0, "kind": "swap", "schedule": "burst", "size": 0.5},
    "empirical_best": {"total": 8.0, "kind": "empirical_best", "schedule": "late", "margin": 0.2},
}


@pytest.fixture(scope="module")
def fast_runs():
    @functools.cache
    def runs(name):
        attack, algorithm = budgeted(**PATHS[name], horizon=400), jb.algorithms.ucb1(num_arms=4, horizon=400)
        return of_cases([(algorithm, NOISY(), attack)], range(4))[0]

    def run(name, seed):
        found = runs(name)[seed]
        return found.history.action, {key: float(x) for key, x in found.diagnostics.items()}

    return run


@pytest.mark.parametrize("name", PATHS)
def test_ucb1_under_the_attack_plays_the_literal_path(name, fast_runs):
    for seed in range(4):
        actions, attack = literal_run(reference, PATHS[name], seed, 400)
        played_actions, told = fast_runs(name, seed)
        np.testing.assert_array_equal(played_actions, actions)
        assert told["corruption_spent"] == pytest.approx(math.fsum(attack.charges), rel=1e-12, abs=1e-12)
        if attack.strength == "weak":
            assert told["corrupted_regret"] == pytest.approx(attack.corrupted_regret, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "error"),
    errors([
        ("lower_best", "min(self.size,", "min(2 * self.size,"),
        ("swap", "self.start < t <= self.stop", "self.start <= t < self.stop"),
        ("raise_worst", "self.total * t /", "self.total * (t - 1) /"),
        ("weak", "min(self.size,", "min(2 * self.size,"),
    ], reference),
)  # fmt: skip
def test_planted_errors_are_noticed(name, error, fast_runs):
    wrong, arguments = planted(*error), PATHS[name] | ({"size": 0.4} if "size" in error.old else {})
    if arguments != PATHS[name]:  # the reward itself ends at 0: a larger size shows where it is below one
        attack = budgeted(**arguments)
        seen, _, _ = played(attack, MANY, LONG)
        assert not np.allclose(seen, literally(wrong, arguments, MANY, LONG)[0], equal_nan=True)
        return
    assert any(
        not np.array_equal(fast_runs(name, seed)[0], literal_run(wrong, PATHS[name], seed, 400)[0])
        or fast_runs(name, seed)[1]["corruption_spent"]
        != pytest.approx(math.fsum(literal_run(wrong, PATHS[name], seed, 400)[1].charges), rel=1e-12)
        for seed in range(4)
    )


@pytest.mark.parametrize(("total", "size"), [(0.3, 0.1), (7.7, 0.1), (1e-3, 0.7), (100.0, 0.3)])
@pytest.mark.parametrize("kind", KINDS)
def test_no_budget_is_exceeded_in_single_precision(kind, total, size):
    """The float64 sum of what was changed. Large rewards are rounded more coarsely than what is left of a budget."""
    rng = np.random.default_rng(1)
    for scale, slots in ((1.0, 1), (50.0, 1), (1.0, OFFERED), (50.0, OFFERED)):
        plays = 60 if slots == 1 else 1200
        rewards = rng.normal(0.5, scale, size=plays).astype(np.float32)
        actions = rng.integers(2, size=plays) * 3
        attack = budgeted(total=total, kind=kind, size=size, low=-math.inf, high=math.inf)
        seen, account, told = played(attack, actions, rewards, slots=slots, dtype=jnp.float32)
        changes = np.abs(seen.astype(np.float64) - rewards)
        assert changes.sum() <= total * (1 + 1e-6)
        assert account.max() <= np.nextafter(np.float32(total), np.float32(np.inf))
        assert told["corruption_spent"] == pytest.approx(changes.sum(), rel=1e-5, abs=1e-9)
        if slots > 1 and kind != "empirical_best":
            assert changes.sum() > 0.999 * total  # and all of it was spent


@pytest.mark.parametrize("slots", [1, OFFERED])
def test_a_weak_budget_is_spent_to_the_end_and_not_beyond(slots):
    for total, size in ((0.3, 0.1), (7.7, 0.1), (33.0, 0.7)):
        _, account, _ = played(
            budgeted(total=total, size=size, strength="weak"), np.zeros(120, int), np.ones(120), slots=slots,
            dtype=jnp.float32,
        )  # fmt: skip
        assert account[-1] == pytest.approx(min(total, 120 * size), rel=1e-6)
        assert account[-1] <= np.nextafter(np.float32(total), np.float32(np.inf))


@pytest.mark.parametrize(
    ("kind", "strength"),
    dealt(
        [(kind, strength) for kind in KINDS for strength in ("strong", "weak")],
        4,
        always=[("lower_best", "strong"), ("swap", "weak"), ("empirical_best", "strong")],
    ),
)
def test_nothing_happens_without_a_budget(kind, strength):
    attack = budgeted(total=0.0, kind=kind, strength=strength, schedule="uniform", horizon=60)
    algorithm = jb.algorithms.ucb1(num_arms=4, horizon=60)
    [[run], [clean]] = of_cases([(algorithm, ARMS(), attack), (algorithm, ARMS())], [4], compiled=False)
    jax.tree.map(np.testing.assert_array_equal, (run.history, run.state), (clean.history, clean.state))
    assert run.diagnostics["corruption_spent"] == 0
    if strength == "weak":
        regret = (MEANS.max() - MEANS[clean.history.action]).sum()
        np.testing.assert_allclose(run.diagnostics["corrupted_regret"], regret, rtol=1e-6)


def test_weak_charges_do_not_depend_on_the_arms_that_are_played():
    for kind in ("lower_best", "raise_worst", "swap"):
        attack = budgeted(total=9.9, kind=kind, strength="weak", size=0.7, schedule="uniform", horizon=90)
        accounts = [played(attack, actions, LONG, slots=slots)[1] for actions in (MANY, 0 * MANY) for slots in (1,)]
        np.testing.assert_array_equal(*accounts)
    strong = budgeted(total=9.9, size=0.7, schedule="uniform", horizon=90)
    assert not np.array_equal(played(strong, MANY, LONG)[1], played(strong, 0 * MANY, LONG)[1])


def test_means_that_change_with_the_play_have_best_and_worst_arms_of_their_own():
    means = np.asarray([[0.1, 0.9, 0.5], [0.9, 0.1, 0.5], [0.5, 0.1, 0.9]], np.float32)
    t = np.arange(1, 4, dtype=np.int32)
    for kind, actions, wanted in (("lower_best", [1, 0, 2], 0.25), ("raise_worst", [0, 1, 1], 0.75)):
        attack = budgeted(total=9.0, kind=kind, size=0.25)

        @uncompiled
        def corrupted(params, means, t, actions, reward, attack=attack.attack):
            state = attack.init(params, Draws(jnp.uint32(0), "contamination"))
            view = AdversaryView(t, (), actions, t > 0, Truth(means), (), (), (), None)
            return attack.corrupt(params, state, None, t, reward, view)[0]

        params = jax.tree.map(lambda x: np.float32(x) if isinstance(x, float) else x, attack.params)
        new = corrupted(params, means, t, np.asarray(actions, np.int32), np.full(3, 0.5, np.float32))
        assert new.tolist() == [wanted] * 3


@pytest.fixture(scope="module")
def attacked():
    def run(adversary):
        return jb.sweep(
            ["ucb1"], ARMS(), horizon=4000, seeds=200, checkpoints=[1000, 4000], progress=False,
            reward_adversary=adversary,
        ).isel(algorithm=0)  # fmt: skip

    attacks = {strength: partial(budgeted, total=60.0, strength=strength) for strength in ("strong", "weak")}
    return {strength: run(attack) for strength, attack in (attacks | {None: None}).items()}


def test_a_strong_budget_makes_ucb1_linear_and_a_weak_one_hardly_harms_it(attacked):
    mean = {(case, t): float(ds.regret.sel(t=t).mean()) for case, ds in attacked.items() for t in (1000, 4000)}
    assert mean["strong", 1000] > 190 and mean["strong", 4000] > 780  # the second arm costs 200 and 800
    assert mean["weak", 4000] < mean[None, 4000] + 6
    assert np.all(attacked["weak"].corruption_spent == 60.0)
    assert attacked["strong"].corruption_spent.max() < 50  # it needs less than it has


def test_regret_in_corrupted_means_is_near_the_clean_one(attacked):
    ds = attacked["weak"]
    apart = np.abs(ds.corrupted_regret - ds.regret.sel(t=4000))
    assert np.all(apart <= 2 * ds.corruption_spent) and apart.mean() > 1
    assert "corrupted_regret" not in attacked["strong"]


@pytest.mark.parametrize("schedule", ["late", "uniform"])
def test_the_horizon_is_filled_in(schedule):
    attack = partial(budgeted, total=5.0, schedule=schedule)
    ds = jb.sweep(["ucb1"], ARMS(), horizon=[60, 90], seeds=3, reward_adversary=attack, checkpoints=1, progress=False)
    for horizon in (60, 90):
        run = jb.simulate(
            partial(jb.algorithms.ucb1, horizon=horizon), ARMS(), seed=1, checkpoints=1,
            reward_adversary=budgeted(total=5.0, schedule=schedule, horizon=horizon),
        )  # fmt: skip
        swept = ds.sel(horizon=horizon, seed=1, algorithm="ucb1")
        assert float(swept.regret.sel(t=horizon)) == run.regret[-1]
        assert float(swept.corruption_spent) == run.diagnostics["corruption_spent"]


def test_schedules_and_budgets_share_a_program():
    grid = {"reward_adversary.schedule": SCHEDULES, "reward_adversary.total": [1.0, 4.0]}
    attack = partial(budgeted, total=1.0)
    laid_out = plan(["ucb1"], ARMS(), horizon=80, seeds=2, grid=grid, reward_adversary=attack)
    assert len(laid_out.cells) == 8 and len(laid_out.groups) == 1


@pytest.mark.compiles(16)  # a run with a history and one without are divided into pieces in two ways
@pytest.mark.parametrize(
    ("algorithm", "strength"), dealt([("dp_se", "weak"), ("batched_exp4", "strong")], 4, always=[("dp_se", "weak")])
)
def test_windows_of_many_plays_keep_the_budget_and_count_every_play(algorithm, strength):
    """Runs whose arm is decided are played to the end too, so that a history and a sweep tell the same charges."""
    row = ALGORITHMS[algorithm]
    world = row.environment()
    attack = partial(budgeted, total=20.3, size=0.1, strength=strength, schedule="uniform")
    once = partial(jb.simulate, partial(row.algorithm, horizon=row.horizon), world, seed=3, reward_adversary=attack)
    run, plain = once(history=True), once(checkpoints=7)
    assert len(run.history.reward) == row.horizon
    assert plain.diagnostics["corruption_spent"] == pytest.approx(run.diagnostics["corruption_spent"], rel=1e-6)
    assert 0 < run.diagnostics["corruption_spent"] <= 20.3 * (1 + 1e-6)
    if strength == "weak" and world.facts.get("means") is not None:
        assert plain.diagnostics["corrupted_regret"] == pytest.approx(run.diagnostics["corrupted_regret"], rel=1e-5)
        assert abs(plain.diagnostics["corrupted_regret"] - plain.regret[-1]) <= 40.6


def test_a_run_that_goes_on_in_the_middle_is_the_same(monkeypatch):
    """Lanes that are saved and taken up again carry the account of the attack."""
    attack = partial(budgeted, total=9.7, size=0.3, kind="empirical_best")
    laid_out = plan(["ucb1"], ARMS(), horizon=120, seeds=4, checkpoints=3, reward_adversary=attack)
    monkeypatch.setattr(one_call, "segments", lambda windows, begin, done=0: ((i, 30) for i in range(done, 120, 30)))
    task, device, kept = one_call.Call(0, (0,), 0, 4, 4), jax.local_devices()[0], {}
    keep = lambda span, window, leaves, **_: kept.setdefault(window, [np.array(x) for x in leaves()])
    whole = one_call.play_call(task, laid_out, device, keep=keep)
    begun = BegunCall(keys=(), first=0, lanes=4, seeds=4, span=0, window=60)
    again = one_call.play_call(task, laid_out, device, begun=(begun, kept[60]))
    np.testing.assert_array_equal(again.regret, whole.regret)
    for name, values in whole.diagnostics.items():
        np.testing.assert_array_equal(again.diagnostics[name], values)
    assert np.all(whole.diagnostics["corruption_spent"] > 0)


def watching(name="corrupted_plays"):
    """An attack of a user that does nothing and counts plays."""

    def corrupt(params, state, draws, t, payload, view):
        return payload, False, state + jnp.sum(view.play, dtype=jnp.int32)

    attack = Attack(lambda params, draws: jnp.int32(0), corrupt, diagnose=lambda params, state: {name: state})
    return Adversary(attack, (), None, {"name": "watching"})


@pytest.mark.parametrize("slot", ["reward_adversary", "message_adversary"])
def test_an_attacks_diagnostics_are_variables_of_the_result(slot):
    attack = {slot: watching()}
    ds = jb.sweep(["ucb1"], ARMS(), horizon=50, seeds=3, progress=False, **attack)
    assert np.all(ds.corrupted_plays == 50)
    if slot == "message_adversary":  # what `jb.simulate` gives of attacks on rewards is looked at above
        run = jb.simulate(partial(jb.algorithms.ucb1, horizon=30), ARMS(), **attack)
        assert run.diagnostics["corrupted_plays"] == np.int32(30)


def test_two_diagnostics_of_one_name_are_refused():
    sweep = partial(jb.sweep, environment=ARMS(), horizon=20, seeds=2, progress=False)
    with pytest.raises(ValueError, match="gives 'corrupted_plays', and so does another part of this run"):
        sweep(["ucb1"], reward_adversary=watching(), message_adversary=watching())
    (taken,) = jb.simulate(partial(jb.algorithms.htinf, horizon=9), LOSSES).diagnostics
    with pytest.raises(ValueError, match=f"gives {taken!r}, and so does another part"):
        sweep(["htinf"], environment=LOSSES, reward_adversary=watching(taken))


def test_parts_of_the_package_that_share_a_name_are_refused():
    """The functions of the package are not looked at one by one: the simulator itself says so."""
    attack, algorithm = budgeted(total=1.0), jb.algorithms.ucb1(num_arms=4, horizon=9)
    parts = simulator.parts_of(algorithm, ARMS(), attack, attack, "float32")
    state = attack.attack.init((), Draws(jnp.uint32(0), ""))
    lane = Lane(*[()] * len(Lane._fields))._replace(reward_adversary=state, message_adversary=state)
    with pytest.raises(ValueError, match=r"reward_adversary and message_adversary both give .* 'corruption_spent'"):
        simulator.finish(parts, simulator.case_of(algorithm, ARMS(), attack, attack), lane)


@pytest.mark.parametrize("name", ["regret", "a/b"])
def test_names_that_a_result_cannot_hold_are_refused(name):
    with pytest.raises(ValueError, match=r"Attack.diagnose gives"):
        jb.sweep(["ucb1"], ARMS(), horizon=20, seeds=2, progress=False, reward_adversary=watching(name))


def test_contexts_may_be_attacked():
    contexts = jb.environments.contextual_linear(num_arms=6, dim=3)
    ds = jb.sweep("linucb", contexts, horizon=20, seeds=2, progress=False, reward_adversary=budgeted(total=1.0))
    assert np.all(ds.corruption_spent <= 1.0)


@pytest.mark.parametrize(("strength", "second", "spent"), [
    ("strong", [0.6, 0.6, 0.0, 0.5], 0.8), ("weak", [0.75, 0.75, 0.0, 0.25], 1.0),
])  # fmt: skip
def test_the_empirical_best_goes_by_rewards_of_plays_that_were_made(strength, second, spent):
    """Both means are 3/4 at the second window: 3/2 - 3 (0.75 - 0.05) + 1 = 0.4 above; a weak attack takes 1/4 each."""
    size = 1.0 if strength == "strong" else 0.25
    attack = budgeted(total=9.0, kind="empirical_best", strength=strength, margin=0.05, size=size)
    first = [1.0, 0.5, 1.0, 0.5]
    actions, rewards = np.array([0, 0, 1, 1, 0, 0, 1, 0]), np.array([*first, 1.0, 1.0, 0.0, 0.5])
    seen, account, _ = played(attack, actions, rewards, slots=4, offered=OFFERED)
    np.testing.assert_allclose(seen, [*first, *second], atol=1e-12)
    np.testing.assert_allclose(account, [0.0, spent], atol=1e-12)


def test_each_adversary_begins_and_tells_by_its_own_numbers_and_draws():
    def adversary(name, number):
        attack = Attack(
            lambda params, draws: params[0] + draws.uniform(jnp.int32(0)),
            lambda params, state, draws, t, payload, view: (payload, False, state),
            diagnose=lambda params, state: {name: jnp.stack([state, params[0]])},
        )
        return Adversary(attack, (np.float64(number),), None, {})

    algorithm, both = jb.algorithms.ucb1(num_arms=4, horizon=9), (adversary("one", 1), adversary("two", 2))
    parts = simulator.parts_of(algorithm, ARMS(), *both, "float32")
    case = jax.tree.map(partial(cast, dtype="float32"), simulator.case_of(algorithm, ARMS(), *both))

    @uncompiled
    def told(case, seed):
        return simulator.finish(parts, case, simulator.begin_without_record(parts, case, seed))[1]

    found = told(case, np.uint32(5))
    for name, number, path in (("one", 1, "contamination"), ("two", 2, "attack")):
        drawn = NumpyDraws(5, path, np.float32).uniform(0)
        np.testing.assert_allclose(found[name], [number + drawn, number], rtol=1e-6)
