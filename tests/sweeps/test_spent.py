"""What is spent is data: coordinates of every result, warnings once a label, words in tables, figures and reports."""

import math
import warnings
from functools import partial

import numpy as np
import pytest
import xarray as xr
from dealt import dealt

import jaxbandits as jb
from jaxbandits import catalogue, spending
from jaxbandits.sweeps.assumptions import doubts_of_spending, privacy_spent, warn

a = jb.algorithms
WORLD = partial(jb.environments.contextual_linear, num_arms=3, dim=2)
PUBLISHED = [partial(f, preset="reference", delta=0.1) for f in (a.jdp_linucb, a.ldp_linucb, a.shuffle_linucb)]


@pytest.fixture(scope="module")
def ds():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return jb.sweep(
            {"jdp": PUBLISHED[0], "ldp": PUBLISHED[1], "exact": a.ldp_linucb, "plain": a.linucb}, WORLD, horizon=30,
            seeds=4, checkpoints=3, grid={"epsilon": [1.0, 10.0]}, progress=False,
        )  # fmt: skip


def test_every_point_says_what_is_asked_for_and_spent(ds):
    assert ds.epsilon_spent.dims == ("algorithm", "epsilon") == ds.delta_spent.dims
    np.testing.assert_array_equal(ds.epsilon_asked, [[1, 10], [1, 10], [1, 10], [np.nan, np.nan]])
    np.testing.assert_allclose(ds.epsilon_spent[1], [1.5589268, 84.105246], rtol=1e-6)
    np.testing.assert_allclose(ds.epsilon_spent[2], [1, 10], rtol=1e-9)
    assert np.isinf(ds.epsilon_spent[0]).all() and np.isinf(ds.epsilon_spent[3]).all()
    np.testing.assert_array_equal(ds.delta_spent, [[0, 0], [0.1, 0.1], [0.001, 0.001], [0, 0]])
    built = PUBLISHED[1](num_arms=3, dim=2, horizon=30, epsilon=10.0)
    assert float(ds.epsilon_spent[1, 1]) == jb.privacy.ledger(built).epsilon


def test_a_spend_within_two_hundredths_is_what_was_asked_for():
    spent = {0.01: (0.01019, 0.01021), 10: (10.19, 10.21, 9.81, 9.79), np.inf: (np.inf,), np.nan: (1, np.inf)}
    found = [spending.spends_differently(np.array(x), np.array(several)).tolist() for x, several in spent.items()]
    assert found == [[False, True], [False, True, False, True], [False], [False, False]]


def test_a_legend_says_in_which_direction_a_spend_differs(ds):
    for values, words in (([0.5, 40.0], "another ε"), ([0.5, 4.0], "less"), ([2.0, 40.0], "more")):
        told = ds.epsilon_spent.where(ds.algorithm != "ldp", xr.DataArray(values, dims="epsilon"))
        assert spending.legend(ds.assign_coords(epsilon_spent=told))["ldp"] == f"ldp (spends {words})"


def test_a_delta_that_is_no_argument_is_told_of():
    made = a.ldp_linucb(num_arms=3, dim=2, horizon=50, epsilon=1.0, delta=0.1)
    ((about, size, text, _),) = doubts_of_spending(made._replace(config={"horizon": 50, "epsilon": 1.0}))
    assert (about, size) == ("delta", pytest.approx(5.0)) and text.startswith("delta = 0.1 exceeds 1 / horizon = 0.02")


def test_a_label_warns_once_of_its_spend_and_once_of_its_delta():
    algorithms = {f.func.__name__: partial(f, epsilon=10.0) for f in PUBLISHED} | {"plain": a.linucb}
    algorithms["exact"] = partial(a.ldp_linucb, epsilon=10.0)
    settings = {"horizon": 100, "seeds": 1, "grid": {"radius_scale": [1.0, 0.5]}, "progress": False}
    with pytest.warns(UserWarning) as caught:
        jb.sweep(algorithms, WORLD(), checkpoints=1, **settings)
    said = [str(warning.message) for warning in caught]
    for name, much in (("jdp_linucb", "infinity"), ("ldp_linucb", "84.1"), ("shuffle_linucb", "772")):
        (spend,) = (text for text in said if text.startswith(f"{name}: asked for epsilon 10, spends {much}"))
        assert spend.endswith("; preset='exact' keeps it")
        assert sum(text.startswith(f"{name}: delta = 0.1 exceeds 1 / horizon = 0.01") for text in said) == 1
    assert len(said) == 6


def test_less_is_said_and_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds = jb.sweep(
            partial(a.batched_exp4, epsilon=4.0, delta=0.01, window=12, learning_rate=0.2, mixing=0.5),
            jb.environments.rotating_experts(losses=jb.environments.bernoulli_losses(means=[0.2, 0.5]), num_experts=6),
            horizon=60, seeds=1, checkpoints=1, progress=False,
        )  # fmt: skip
    assert float(ds.epsilon_spent[0]) < 3.9
    assert spending.legend(ds) == {"batched_exp4": "batched_exp4 (spends ε = 1.08)"}


def test_tables_csv_legends_and_captions_say_it(ds):
    said = "ε spent: jdp ∞ (asked 1), ∞ (asked 10); ldp 1.56 (asked 1), 84.1 (asked 10)"
    assert f" {said}." in jb.table(ds) and f" {said}." in jb.table(ds, "latex")
    assert "ldp 84.1 (asked 10)" in jb.table(ds.sel(epsilon=10.0)) and "asked 1)" not in jb.table(ds.sel(epsilon=10.0))
    assert jb.summary(ds)["epsilon_spent"].tolist()[2:6] == pytest.approx([1.5589268, 84.105246, 1, 10])
    assert jb.summary(ds.sel(epsilon=10.0))["epsilon_asked"].tolist()[:3] == [10, 10, 10]
    figure, _ = jb.plot.regret(ds.sel(epsilon=10.0))
    words = [text.get_text() for text in (*figure.legends[0].get_texts(), *figure.texts)]
    assert words[:4] == ["jdp (spends ε = ∞)", "ldp (spends ε = 84.1)", "exact", "plain"]
    assert "jdp ∞ (asked" in words[4].replace("\n", " ")
    legend = [text.get_text() for text in jb.plot.against(ds, "epsilon").figure.legends[0].get_texts()]
    assert legend == ["jdp (spends ε = ∞)", "ldp (spends more)", "exact", "plain"]


def test_regret_against_what_is_spent(ds):
    figure, data = jb.plot.against(ds, "epsilon_spent")
    assert data[data.algorithm == "ldp"]["epsilon_spent"].tolist() == pytest.approx([1.5589268, 84.105246])
    assert figure.axes[0].get_xlabel() == r"$\varepsilon$ spent"
    assert {text.get_text() for text in figure.legends[0].get_texts()} == {"jdp", "ldp", "exact", "plain"}
    with pytest.raises(ValueError, match="'epsilon_spent' is drawn over the values of one key, and none have several"):
        jb.plot.against(ds.sel(epsilon=[1.0]), "epsilon_spent")


def test_joined_and_listed_and_old_results(ds, tmp_path):
    joined = jb.concat([ds.sel(algorithm=["plain"]), ds.sel(algorithm=["ldp"])], dim="algorithm")
    np.testing.assert_allclose(joined.epsilon_spent, ds.epsilon_spent[[3, 1]])
    listed = jb.sweep(
        a.ldp_linucb, WORLD, horizon=20, seeds=1, checkpoints=1, progress=False,
        points=[{"epsilon": 1.0, "radius_scale": 1.0}, {"epsilon": 2.0, "radius_scale": 2.0}],
    )  # fmt: skip
    assert listed.epsilon_spent.dims == ("algorithm", "point")
    assert [c for c in jb.summary(listed).columns if c == "epsilon_spent"] == ["epsilon_spent"]
    assert "epsilon_spent" not in jb.table(listed.isel(algorithm=0))
    old = ds.drop_vars(spending.COORDINATES)
    assert "spent" not in jb.table(old) and "epsilon_spent" not in jb.summary(old).columns
    jb.report(old, tmp_path / "old.html")
    jb.report(ds, tmp_path / "new.html")
    assert "compare at what is spent" in (tmp_path / "new.html").read_text()
    assert "compare at what is spent" not in (tmp_path / "old.html").read_text()


def test_a_report_knows_the_ledger_of_a_part_that_is_gone(ds, tmp_path):
    own = ds.assign_attrs(config="{}")  # nothing can be built again from it
    jb.report(own, tmp_path / "own.html")
    text = (tmp_path / "own.html").read_text()
    assert "84.1" in text and "not known" not in text


def test_no_promise_and_no_noise():
    plain = a.linucb(num_arms=3, dim=2, horizon=10)
    assert privacy_spent(plain, None)[1:] == (math.inf, 0.0) and math.isnan(privacy_spent(plain, None).asked)
    silent, private = (a.ldp_linucb(num_arms=3, dim=2, horizon=10, epsilon=epsilon) for epsilon in (math.inf, 1.0))
    malformed = private._replace(guarantee=private.guarantee._replace(spend=lambda params: 3))
    assert [doubt for algorithm in (plain, silent, malformed) for doubt in doubts_of_spending(algorithm)] == []


# ---- rewards that an adversary sends

ARMS = jb.environments.bernoulli_arms(means=[0.3, 0.7])
huber, budgeted = (partial(jb.adversaries.huber, corruption=0.5), partial(jb.adversaries.budgeted, total=400.0))
SENDING = {
    **{f"huber {kind} {v}": huber(kind=kind, value=v) for kind in ("fixed", "random_sign", "target") for v in (0.5, 8)},
    **{f"huber {kind}": huber(kind=kind) for kind in ("swapped", "gaussian", "cauchy")},
    **{f"huber sign_flip {v}": huber(kind="sign_flip", value=v) for v in (0.5, -1, 3)},
    **{f"huber fixed {v}": huber(value=v) for v in ("inf", "nan")}, "huber of no share": huber(corruption=0.0),
    **{f"budgeted {kind} {size}": budgeted(kind=kind, size=size, low=-1.5, high=2.0)
       for kind in ("lower_best", "raise_worst", "swap", "empirical_best") for size in (0.25, 5.0)},
}  # fmt: skip


# whose epsilon is that of rewards in [-1, 1]
BOUNDED = [
    "robust_elimination", "phased_elimination", "private_elimination", "adac_gope", "median_elimination",
    "trimmed_elimination",
]  # fmt: skip


@pytest.mark.parametrize("name", dealt(SENDING, 4, always=["huber sign_flip 3", "budgeted lower_best 5.0"]))
def test_an_adversary_sends_what_it_says(name):
    adversary = SENDING[name]._replace(remake=None)
    low, high = adversary.reward_range(adversary.params, 0.0, 1.0)
    run = jb.simulate(a.uniform(num_arms=2, horizon=1000), ARMS, reward_adversary=adversary, history=True)
    sent = np.asarray(run.history.reward)
    assert low <= np.nanmin(sent) and np.nanmax(sent) <= high and (np.isfinite(sent).all() or math.isinf(high))
    if "gaussian" not in name and "cauchy" not in name and math.isfinite(high):  # what may be sent is sent
        assert max(-np.min(sent), np.max(sent)) == max(-low, high)


@pytest.mark.parametrize("name", dealt(catalogue.private(), 8, always=BOUNDED))
def test_what_is_claimed_of_bounded_rewards_is_spent_once_an_adversary_sends_others(name):
    algorithm, environment = catalogue.case(name)
    bound = algorithm.guarantee.bound
    for adversary in SENDING.values():
        spent = privacy_spent(algorithm, environment, adversary).epsilon
        if math.isinf(bound) or math.isinf(privacy_spent(algorithm, environment).epsilon):
            assert spent == privacy_spent(algorithm, environment).epsilon  # it clips, or promised nothing before
        else:
            beyond = max(map(abs, adversary.reward_range(adversary.params, -bound, bound))) > bound
            assert math.isinf(spent) == beyond
    assert math.isfinite(bound) == (name in BOUNDED)
    if math.isfinite(bound):
        poison = jb.adversaries.poison()
        assert privacy_spent(algorithm, environment, poison) == privacy_spent(algorithm, environment)


def test_a_sweep_says_that_an_adversary_spends_it_all():
    world = jb.environments.linear_arms(actions=np.eye(2), theta=[0.5, 0.2], noise="rademacher", noise_scale=0.3)
    learner = partial(a.robust_elimination, epsilon=4.0, num_batches=2)
    settings = {"horizon": 200, "checkpoints": 1, "progress": False}
    attack = partial(jb.adversaries.huber, corruption=0.1, kind="target")
    with pytest.warns(UserWarning, match=r"sends rewards up to 10: it is infinite .*; its guarantee does not hold"):
        ds = jb.sweep(
            learner, world, seeds=2, reward_adversary=attack, grid={"reward_adversary.value": [0.5, 10.0]}, **settings
        )
    np.testing.assert_array_equal(ds.epsilon_spent, [[4.0, np.inf]])
    assert "infinite: rewards leave [-1, 1]" in ds.attrs["guarantees"]
    silent = jb.adversaries.huber(value=0.5)._replace(reward_range=None, remake=None)
    with pytest.warns(UserWarning, match="reward_adversary does not say what it sends: give Adversary"):
        assert jb.sweep(learner, world, seeds=1, reward_adversary=silent, **settings).epsilon_spent == 4.0
    untold = world._replace(
        facts={key: x for key, x in world.facts.items() if key not in ("reward_range", "reward_bound")}
    )
    with pytest.warns(UserWarning, match="the environment does not say what it pays: give its facts a reward_range"):
        assert jb.sweep(learner, untold, seeds=1, **settings).epsilon_spent == 4.0


def test_each_label_is_told_of_its_own_epsilon():
    world = jb.environments.linear_arms(actions=np.eye(2), theta=[0.5, 0.2], noise="gaussian")
    made = [(f"{x:g}", a.phased_elimination(actions=np.eye(2), horizon=50, epsilon=x), world, None) for x in (4.0, 8.0)]
    with pytest.warns(UserWarning) as caught:
        warn(made, "float32", stacklevel=1)
    said = [str(warning.message) for warning in caught]
    assert [text.split(" is that")[0] for text in said] == ["4: epsilon = 4", "8: epsilon = 8"]


def test_what_is_sent_counts_in_a_world_that_says_nothing():
    facts = {key: x for key, x in ARMS.facts.items() if key not in ("reward_range", "reward_bound")}
    algorithm = catalogue.case("private_elimination")[0]
    sent = [jb.adversaries.huber(kind="target", value=v) for v in (0.5, 10.0)]
    found = [privacy_spent(algorithm, ARMS._replace(facts=facts), adversary).epsilon for adversary in sent]
    assert [math.isinf(epsilon) for epsilon in found] == [False, True]


def test_an_infinite_epsilon_has_no_delta():
    algorithm = catalogue.case("adac_gope")[0]
    assert algorithm.guarantee.spend(algorithm.params)[1] > 0
    assert privacy_spent(algorithm, partial(catalogue.linear, noise="gaussian")())[1:] == (math.inf, 0.0)
