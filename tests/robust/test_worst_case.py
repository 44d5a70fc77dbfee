"""The search for the worst attack: its space, the cross-entropy method, the honest report, wrong arguments."""

import functools
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import study_tables
import xarray as xr

import jaxbandits as jb
from jaxbandits import theory
from jaxbandits.papers import Claim, Search, Study, reproduce
from jaxbandits.papers.across import worst_case as study
from jaxbandits.protocol import Adversary, Attack
from jaxbandits.searching import methods, worst_attack
from jaxbandits.searching.space import coordinate_of, dimensions_of, point_at, value_at
from jaxbandits.searching.worst_attack import python_text
from jaxbandits.sweeps.engines.local import Local

ARMS = functools.partial(jb.environments.bernoulli_arms, means=[0.2, 0.8])
HUBER = functools.partial(jb.adversaries.huber, corruption=0.05)
SETTINGS = {"horizon": 60, "seeds": 16, "report_seeds": range(100, 132), "progress": False}


def found(space, trials=18, **changes):
    given = {"algorithm": "ucb1", "environment": ARMS, "adversary": HUBER} | SETTINGS | changes
    return jb.worst_case(space=space, trials=trials, **given)


def test_an_attack_without_a_number_is_not_the_worst(monkeypatch):
    def evaluate(problem, settings, seeds, store):
        ((label, (points,)),) = settings.items()
        return {label: np.array([[[[math.nan if p["value"] < 0 else p["value"]] * len(seeds)] for p in points]])}

    coords = {"algorithm": ["ucb1"], "seed": range(100, 132), "t": [60]}
    report = xr.Dataset({"regret": (("algorithm", "seed", "t"), np.arange(32.0).reshape(1, 32, 1))}, coords)
    monkeypatch.setattr(worst_attack, "evaluate", evaluate)
    monkeypatch.setattr(worst_attack, "sweep", lambda *args, **given: report)
    assert found({"value": (-10.0, 10.0)}, trials=16).params == {"value": 10.0}


def test_ranges_hold_both_ends_and_the_middle():
    for given, values in (
        ((-10.0, 10.0), [-10.0, 0.0, 10.0]),
        ((-10.0, 10.0, "linear"), [-10.0, 0.0, 10.0]),
        ((0.01, 100.0, "log"), [0.01, 1.0, 100.0]),
        ((1, 3, "int"), [1, 2, 3]),
    ):
        (dimension,) = dimensions_of({"x": given})
        assert [value_at(dimension, x) for x in (0.0, 0.5, 1.0)] == pytest.approx(values)
        assert (value_at(dimension, 0.0), value_at(dimension, 1.0)) == (values[0], values[2])  # exactly
        assert type(value_at(dimension, 0.5)) is type(values[1])
        for value in values:
            assert value_at(dimension, coordinate_of(dimension, value)) == pytest.approx(value)


def test_integers_lists_and_names():
    (dimension,) = dimensions_of({"x": (-1, 2, "int")})
    counts = np.unique([value_at(dimension, x) for x in (np.arange(400) + 0.5) / 400], return_counts=True)
    assert [x.tolist() for x in counts] == [[-1, 0, 1, 2], [100] * 4]
    means = {"easy": [0.1, 0.9], "hard": [0.5, 0.6]}
    space = dimensions_of({"kind": ["fixed", "swapped"], "means": means, "n": (0, 1)})
    assert point_at(space, np.array([1.0, 0.0, 0.25])) == {"kind": "swapped", "means": [0.1, 0.9], "n": 0.25}
    assert coordinate_of(space[1], [0.5, 0.6]) == 1.0 and space[1].labels == ("easy", "hard")
    with pytest.raises(ValueError, match="does not hold 'burst'"):
        coordinate_of(space[0], "burst")


CUBE = dimensions_of({"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)})


def searched(objective, trials, start=None, seed=0):
    """What the engine of all searches tries: coordinates [R, D] and values [R] of which the largest is sought."""
    proposer, values = methods.CrossEntropy(CUBE, trials, start, seed), []

    def evaluate(settings, seeds):
        values.append(objective(len(values) + 1, settings["x"][0]))
        return {"x": values[-1][None, :, None, None]}

    loss = lambda found: -found[..., 0, 0]
    tried = methods.by_generations({"x": [proposer]}, evaluate, range(1), loss, trials, proposer.size)
    return np.array([[p["a"], p["b"], p["c"]] for p in tried.settings["x"][0]]), np.concatenate(values)


def chosen(trials, peak, seed, method):
    """The true value -|p - peak|^2 of the point of the largest noisy value."""
    noise = np.random.default_rng([seed, 1])

    def true(points):
        return -((np.array([[p["a"], p["b"], p["c"]] for p in points]) - peak) ** 2).sum(-1)

    def noisy(number, points):
        return true(points) + 0.1 * noise.normal(size=len(points))

    if method == "search":
        coordinates, values = searched(noisy, trials, (0.5, 0.5, 0.5), seed)
        return true([point_at(CUBE, coordinates[values.argmax()])])[0]
    points = [point_at(CUBE, x) for x in np.random.default_rng(seed).random((trials, 3))]
    return true([points[int(np.argmax(noisy(1, points)))]])[0]


def test_the_search_beats_random_points_on_a_noisy_peak():
    """The mean true value of what is chosen among 128 trials; peaks anywhere in the cube."""
    peaks = np.random.default_rng(5).random((200, 3))
    means, errors = {}, {}
    for method in ("search", "random"):
        values = [chosen(128, peak, seed, method) for seed, peak in enumerate(peaks)]
        means[method], errors[method] = np.mean(values), np.std(values) / math.sqrt(len(values))
    assert means["search"] > means["random"] + 4 * math.hypot(*errors.values())
    assert abs(means["search"] + 0.030) < 4 * errors["search"]  # -0.030 over 1,000 peaks by a transcription
    inside = [chosen(128, np.array([0.3, 0.5, 0.7]), seed, "search") for seed in range(200)]
    assert abs(np.mean(inside) + 0.024) < 4 * np.std(inside) / math.sqrt(200)


def test_the_first_generation_holds_the_start_and_the_corners():
    rng = np.random.default_rng(0)
    first = methods.first_generation(CUBE, 16, (0.2, 0.3, 0.4), rng)
    assert first[0].tolist() == [0.2, 0.3, 0.4]
    assert sorted(map(tuple, first[1:9])) == sorted(np.ndindex(2, 2, 2))
    assert np.all((first[9:] > 0) & (first[9:] < 1))
    many = dimensions_of({str(i): (0.0, 1.0) for i in range(4)})  # sixteen corners are more than half
    assert not np.any(methods.first_generation(many, 16, None, rng) == 1.0)


def test_listed_values_in_the_first_generation():
    few = dimensions_of({"x": (0.0, 1.0), "kind": ["a", "b", "c"]})
    first = methods.first_generation(few, 16, (0.5, 2.0), np.random.default_rng(0))
    assert {tuple(row) for row in first[1:7]} == {(x, k) for x in (0.0, 1.0) for k in (0.0, 1.0, 2.0)}
    many = dimensions_of({"x": (0.0, 1.0), "kind": list("abcde")})
    first = methods.first_generation(many, 16, None, np.random.default_rng(0))
    assert first[:2, 0].tolist() == [0.0, 1.0] and np.bincount(first[:, 1].astype(int)).tolist() == [4, 3, 3, 3, 3]


def test_the_distribution_follows_the_elite():
    space = dimensions_of({"x": (0.0, 1.0), "kind": ["a", "b", "c"]})
    elite = np.array([[0.2, 1.0], [0.4, 1.0], [0.2, 1.0], [0.4, 2.0]])
    once = methods.fit_distribution(space, elite, None)
    assert (once.mean[0], once.spread[0]) == pytest.approx((0.3, 0.1))
    assert once.shares[1] == pytest.approx([0.1, 0.7 * 0.75 + 0.1, 0.7 * 0.25 + 0.1]) and not len(once.shares[0])
    twice = methods.fit_distribution(space, np.array([[0.5, 1.0], [0.5, 1.0]]), once)
    assert (twice.mean[0], twice.spread[0]) == pytest.approx((0.7 * 0.5 + 0.3 * 0.3, 0.03))
    assert twice.shares[1] == pytest.approx([0.03, 0.7 + 0.3 * 0.625, 0.3 * 0.275])
    for _ in range(9):
        twice = methods.fit_distribution(space, np.array([[0.5, 1.0], [0.5, 1.0]]), twice)
    assert twice.spread[0] == 0.02 and twice.shares[1] == pytest.approx([0.02 / 1.04, 1 / 1.04, 0.02 / 1.04], rel=0.05)
    drawn = methods.next_generation(once, 40, np.random.default_rng(1))
    assert np.all((drawn[:, 0] >= 0) & (drawn[:, 0] <= 1))
    assert np.bincount(drawn[:, 1].astype(int)).tolist() == [4, 25, 11]


def test_generations():
    calls = []

    def flat(number, points):
        calls.append((number, len(points)))
        return np.full(len(points), math.nan) if number == 1 else np.ones(len(points))

    coordinates, _ = searched(flat, 40)
    assert calls == [(1, 16), (2, 16), (3, 8)]
    calls.clear()
    searched(flat, 256)
    assert calls[0] == (1, 32)  # an eighth of the trials
    fewer, _ = searched(flat, 20)
    np.testing.assert_array_equal(fewer, coordinates[:20])


def test_the_worst_attack_on_ucb1():
    space = {"value": (-10.0, 10.0), "corruption": (0.0, 0.05)}
    case = found(space)
    values = case.trials["search_value"].values
    assert values.shape == (18,) and values.max() >= values[0]  # never less than the adversary's own values
    own = {key: case.trials[key].values[0] for key in space}
    assert own == pytest.approx({"value": 10.0, "corruption": 0.05})  # what value=None stands for
    at = int(values.argmax())
    assert case.params == {key: case.trials[key].values[at] for key in space}
    assert case.trials["generation"].values.tolist() == [1] * 16 + [2] * 2
    np.testing.assert_array_equal(case.trials["regret"].mean("seed"), values)
    assert case.trials["seed"].values.tolist() == list(range(16))
    # the report: one sweep of the attack found, on the report seeds alone
    again = jb.sweep(
        "ucb1", ARMS, horizon=60, seeds=range(100, 132), reward_adversary=functools.partial(HUBER, **case.params),
        checkpoints=1, progress=False,
    )  # fmt: skip
    row = jb.summary(again).iloc[0]
    assert (case.regret, *case.interval) == pytest.approx((row["mean"], row["ci_low"], row["ci_high"]))
    np.testing.assert_array_equal(case.trials["report_regret"], again.regret.isel(algorithm=0, t=-1))
    # as printed
    text, command = repr(case), case.trials.attrs["command"]
    assert "search value (biased upwards)" in text and command in text and "report seeds 100 to 131" in text
    printed = eval(command, {"jb": jb, "functools": functools})
    np.testing.assert_array_equal(printed.regret.values, again.regret.values)
    # deterministic
    twice = found(space)
    assert twice.params == case.params and (twice.regret, twice.interval) == (case.regret, case.interval)
    xr.testing.assert_identical(twice.trials, case.trials)


def test_one_trial_is_a_plain_evaluation():
    case = found({"value": (-10.0, 10.0)}, trials=1)
    plain = jb.sweep("ucb1", ARMS, horizon=60, seeds=16, reward_adversary=HUBER, checkpoints=1, progress=False).regret
    assert case.params == {"value": 10.0} and case.trials.sizes["trial"] == 1
    np.testing.assert_array_equal(case.trials["regret"].values, plain.isel(algorithm=0, t=-1).values[None])
    assert "biased" not in repr(case)


def test_static_keys_and_named_values():
    space = {"kind": ["fixed", "target"], "value": {"quiet": 0.5, "loud": 10.0}}
    case = found(space, trials=6, algorithm={"mine": functools.partial(jb.algorithms.ucb1)}, adversary="huber")
    assert case.trials["kind"].values[0] == "fixed" and case.trials["value"].values[0] == "loud"
    assert case.params["kind"] in space["kind"] and case.params["value"] in (0.5, 10.0)
    assert case.trials.attrs["algorithm"] == "mine" and "{'mine': jb.algorithms.ucb1}" in repr(case)


def test_messages_and_a_called_adversary():
    case = found(
        {"value": (0.5, 20.0, "log"), "corruption": (0.0, 0.1)},
        trials=8, algorithm=functools.partial(jb.algorithms.ldp_ucb, epsilon=1.0), slot="message",
        adversary=jb.adversaries.huber(corruption=0.1, kind="target", value=2.0),
    )  # fmt: skip
    first = {key: float(case.trials[key][0]) for key in ("value", "corruption")}
    assert first == pytest.approx({"value": 2.0, "corruption": 0.1})
    assert "message_adversary=functools.partial(jb.adversaries.huber, corruption=" in repr(case)
    assert case.trials["search_value"].max() > case.trials["search_value"].where(case.trials["corruption"] == 0).max()


def test_a_search_goes_on_from_its_store(tmp_path, monkeypatch, capsys):
    space = {"value": (-10.0, 10.0)}
    monkeypatch.setattr(methods, "POPULATION", 2)
    case = found(space, trials=4, store=tmp_path / "runs", progress=True)
    assert "generation 2: 4 of 4 trials" in capsys.readouterr().err
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"generation-001", "generation-002", "report"}
    monkeypatch.setattr(Local, "run", lambda *args, **kwargs: pytest.fail("computed again"), raising=True)
    again = found(space, trials=4, store=tmp_path / "runs")
    assert again.params == case.params and again.regret == case.regret
    xr.testing.assert_identical(again.trials.drop_attrs(), case.trials.drop_attrs())


def own_attack(size):
    """An adversary of a user's own, whose argument has no default: it lowers every reward by `size`."""

    def corrupt(params, state, draws, t, payload, view):
        return payload - params, False, state

    return Adversary(Attack(lambda params, draws: (), corrupt), float(size), None, {})


def test_an_adversary_of_ones_own():
    case = found({"size": (0.0, 1.0)}, trials=3, adversary=functools.partial(own_attack, size=0.5))
    assert case.trials["size"].values.tolist() == [0.5, 0.0, 1.0]
    assert "functools.partial(own_attack, size=" in repr(case)


def test_expressions():
    arms = jb.environments.bernoulli_arms(means=np.array([0.1, 0.9]))
    assert python_text(arms) == "jb.environments.bernoulli_arms(means=[0.1, 0.9])"
    assert python_text(np.zeros((30, 4))) == "<array of shape (30, 4)>"
    assert python_text(("a", {"b": [np.float64(1.5), math.nan]})) == "('a', {'b': [1.5, float('nan')]})"
    assert python_text((1,)) == "(1,)" and python_text(own_attack) == "own_attack"
    changed = jb.adversaries.huber()
    assert python_text(changed._replace(params=changed.params._replace(scale=2.0))) == "huber"
    inner = functools.partial(jb.algorithms.exp3, mixing=0.1)
    outer, text = functools.partial(jb.algorithms.private_batched, base=inner), python_text(inner)
    assert text == "functools.partial(jb.algorithms.exp3, mixing=0.1)"
    assert python_text(outer) == f"functools.partial(jb.algorithms.private_batched, base={text})"


def small_study():
    attack = {"adversary": HUBER, "space": {"value": (-10.0, 10.0)}, "trials": 2} | SETTINGS
    del attack["progress"]
    return Study(
        "a title", "a source", lambda full: {}, {},
        lambda results: [Claim("regret", "", f"{results['ucb'].regret:.1f}")],
        searches=lambda full: {"ucb": Search({"algorithm": "ucb1", "environment": ARMS} | attack)},
    )  # fmt: skip


def test_a_study_searches_and_goes_on(tmp_path, monkeypatch):
    done = reproduce(small_study(), tmp_path, progress=False)
    assert done.results["ucb"].trials.sizes["trial"] == 2 and done.claims[0].measured
    assert "attacks chosen among 2 on seeds 0 to 15" in study_tables.how_it_was_run("across/worst-case", done)
    monkeypatch.setattr(Local, "run", lambda *args, **kwargs: pytest.fail("computed again"), raising=True)
    assert reproduce(small_study(), tmp_path, progress=False).results["ucb"].regret == done.results["ucb"].regret


def test_the_study_of_every_robust_algorithm():
    searched = study.searches(True)
    assert {name for name in study.sweeps(True)} == {name.removesuffix(", attacked") for name in searched}
    assert {one.settings["trials"] for one in searched.values()} == {32}
    for one in [*searched.values(), *study.searches(False).values()]:
        assert not set(range(one.settings["seeds"])) & set(one.settings["report_seeds"])
    again = study.again("UCB1", full=False, kind="target", value=3.0)
    attack = functools.partial(jb.adversaries.huber, corruption=0.05, kind="target", value=3.0)
    plain = jb.sweep(
        "ucb1", study.PARETO, horizon=300, seeds=range(1000, 1016), checkpoints=1, reward_adversary=attack,
        progress=False,
    )  # fmt: skip
    np.testing.assert_array_equal(again.regret.values, plain.regret.values)


def test_the_largest_of_normals():
    exact = {1: 0.0, 2: 1 / math.sqrt(math.pi), 3: 1.5 / math.sqrt(math.pi)}
    for m, value in (exact | {32: 2.0697, 128: 2.5946}).items():
        assert theory.expected_max(m) == pytest.approx(value, abs=5e-5)


def test_the_largest_of_many_normals():
    draws = np.random.default_rng(0).normal(size=(4000, 500)).max(-1)
    assert abs(draws.mean() - theory.expected_max(500)) < 4 * draws.std() / math.sqrt(4000)
    assert 4.86 < theory.expected_max(10**6) < math.sqrt(2 * math.log(10**6))


def test_words_of_the_study_by_hand():
    lanes = ("algorithm", "seed", "t"), np.array([[[5.0], [15.0]]])
    about = {"adversary": "huber", "algorithm": "UCB1", "slot": "reward"}
    values = {"report_regret": ("seed", [20.0, 30.0]), "search_value": ("trial", [40.0, 70.0, 50.0])}
    attacked = SimpleNamespace(trials=xr.Dataset(values, attrs=about), params={"kind": "fixed", "value": 12.345})
    plain = xr.Dataset({"regret": lanes}, {"algorithm": ["UCB1"], "t": [9]})
    attack, regrets, biased, _ = study.claims({"UCB1": plain, "UCB1, attacked": attacked})
    assert attack.measured == "kind = fixed, value = 12.3, on 5% of rewards" and biased.measured == "70"
    assert re.findall(r"(?:^|; )(\S+) \[", regrets.measured) == ["25", "10", "15"]
