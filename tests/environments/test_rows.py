"""Rows of features, and the worlds that show them: labels, tables of rewards, and models of a log."""

import json
import warnings
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from planting import errors, planted
from reference import own_data
from reference.own_data import F, R, play_in_order, read_golden, rows_of
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

import jaxbandits as jb
from jaxbandits.environments.data import pass_order, predicts
from jaxbandits.environments.labelled_rows import attach_names
from jaxbandits.environments.logs import Log
from jaxbandits.environments.reward_models import cross_fit, fit_logistic, fit_models, sigmoid
from jaxbandits.environments.rows import make_rows
from jaxbandits.random import Draws
from jaxbandits.sweeps.arguments import jsonable
from jaxbandits.sweeps.assumptions import doubts_of_repeats
from jaxbandits.sweeps.dataset import Results
from jaxbandits.sweeps.plan import plan
from jaxbandits.sweeps.toml_file import read_config

E = jb.environments
NAMES = ["a", "b", "c"]
make = partial(make_rows, names=NAMES, dim=None, standardise=True, bias=True, norm="unit")
FIRST = [-0.0904355467, 0.4512146828, -0.6184591454, 0.6369733177]
FIRST_OF_TWO = [-0.3109204639, 0.6844031302, 0.6594852694]


# ---- from features to rows


@pytest.mark.filterwarnings("ignore:dim")
@pytest.mark.parametrize("dim", [None, 3, 2])
@pytest.mark.parametrize("norm", ["unit", "largest", "none"])
def test_rows_are_those_of_the_transcription(dim, norm):
    for standardise in (True, False):
        for bias in (True, False):
            how = {"dim": dim, "standardise": standardise, "bias": bias, "norm": norm}
            rows, kept = make(F, **how)
            np.testing.assert_allclose(rows, rows_of(F, **how), atol=1e-12)
            np.testing.assert_array_equal(kept.apply(F), rows)
    np.testing.assert_allclose(make(F[:6])[0][0], FIRST, atol=1e-10)
    np.testing.assert_allclose(make(F[:6], dim=3)[0][0], FIRST_OF_TWO, atol=1e-10)


@pytest.mark.parametrize(
    "error",
    errors(
        [
            ["** 2) / n", "** 2) / (n - 1)"],
            ["np.sign(entry)", "-np.sign(entry)"],
            ["np.argsort(-values)", "np.argsort(values)"],
            ["np.append(row, 1.0)", "np.append(row, 0.5)"],
        ],
        rows_of,
    ),
)
def test_planted_errors_of_rows_are_noticed(error):
    wrong = planted(*error)
    assert max(np.abs(wrong(F[:6])[0] - FIRST).max(), np.abs(wrong(F[:6], dim=3)[0] - FIRST_OF_TWO).max()) > 1e-3


def test_new_rows_are_made_by_the_old_numbers():
    old, new = F[:6], F[6:9] * 5
    mean, spread = old.mean(0), old.std(0)
    rows, kept = make(old, norm="largest")
    np.testing.assert_allclose([kept.mean, kept.sd], [mean, spread], rtol=1e-12)
    scale = np.linalg.norm(np.column_stack([(old - mean) / spread, np.ones(6)]), axis=1).max()
    want = np.column_stack([(new - mean) / spread, np.ones(3)]) / scale
    np.testing.assert_allclose(kept.apply(new), want, rtol=1e-12)
    assert np.linalg.norm(kept.apply(new), axis=1).max() > 1 >= np.linalg.norm(rows, axis=1).max()
    table, _ = jb.read_table(own_data_frame(), rewards=["r1", "r2"])
    np.testing.assert_array_equal(kept.apply(table), kept.apply(F))
    plain = make(F, names=[f"features[:, {j}]" for j in range(3)])[1]  # as arrays have it
    np.testing.assert_array_equal(plain.apply(own_named(F, NAMES)), plain.apply(F))
    for wrong, text in (
        (F[:, :2], "features has the columns features[:, 0], features[:, 1]; they must be a, b, c"),
        (own_named(F, ["b", "a", "c"]), "in this order"),
        (own_data_frame()[["c", "b", "a"]], "c, b, a; they must be a, b, c, in this order"),
    ):
        with pytest.raises(ValueError) as error:
            kept.apply(wrong)
        assert text in str(error.value)


def own_named(x, names):
    return attach_names(x.copy(), names)


def own_data_frame():
    return pd.DataFrame(np.column_stack([F, R[:, :2]]), columns=[*NAMES, "r1", "r2"])


def test_constant_features_become_nothing_and_zero_rows_stay():
    """The mean of 0.1, six times, is not 0.1: its spread is rounding alone."""
    x = np.column_stack([np.full(6, 0.1), F[:6, 1]])
    rows, kept = make(x, names=["a", "b"], bias=False)
    assert (rows[:, 0] == 0).all() and kept.sd[0] == 1 and np.abs(rows[:, 1]).tolist() == [1] * 6
    rows, _ = make(np.ones((3, 1)), names=["a"], bias=False)
    assert rows.tolist() == [[0], [0], [0]]
    with pytest.warns(UserWarning, match="contextual_table: 1 of 1 features are the same in every row"):
        flat = E.contextual_table(features=np.ones((3, 1)), rewards=R[:3], bias=False, norm="none")
    assert flat.facts["feature_norm"] == 1  # a learner divides by it


def test_what_is_left_out_is_said():
    said = r"dim = 3 keeps 2 of 3 components, 81 % of the variance"
    with pytest.warns(UserWarning, match=said) as caught:
        world = E.contextual_table(features=F[:6], rewards=R[:6], dim=3)
    assert caught[0].filename == __file__ and world.facts["dim"] == 3
    for dim, bias in ((4, True), (3, False), (None, True)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            E.contextual_table(features=F, rewards=R, dim=dim, bias=bias)
    x, y = load_digits(return_X_y=True)
    x = x + 1e-9 * np.arange(len(x))[:, None]  # pixels that never change are another warning
    with pytest.warns(UserWarning, match=r"blocks keep 4 of 64 components, 49 % of the variance: give dim, up to 640"):
        blocks = E.classification(features=x, labels=y, view="blocks")
    assert blocks.facts["dim"] == 40 and blocks.facts["shows"] == "decision set"


@pytest.mark.parametrize("norm", ["unit", "largest", "none"])
def test_facts_of_rows(norm):
    world = E.contextual_table(features=F, rewards=R, norm=norm)
    norms = np.linalg.norm(world.params.features, axis=1)
    np.testing.assert_allclose(world.facts["feature_norm"], norms.max())
    assert norm != "unit" or np.ptp(norms) < 1e-12
    asked = {"shows": "row", "models": "per_arm", "dim": 4, "num_arms": 3, "num_rows": 40, "regret_against": "row"}
    assert asked.items() <= world.facts.items() and world.facts["reward_range"] == (R.min(), R.max())
    labelled = E.classification(features=F, labels=R.argmax(1))
    np.testing.assert_allclose(labelled.params.features, rows_of(F), atol=1e-12)
    assert labelled.facts["regret_against"] == "fixed" and labelled.facts["shows"] == "row"


# ---- rows in their order: the reference values of LinUCB with a model an arm


def labels_as_rewards(labels):
    return (labels[:, None] == np.arange(labels.max() + 1)).astype(float)


@pytest.mark.filterwarnings("ignore:classification")  # pixels that are always 0
def test_reference_values_of_rows_in_their_order():
    table = E.contextual_table(features=F, rewards=R, shuffle=False)
    arms, pulls = play_in_order(table.params.features, R, 200)
    paid = R[np.arange(200) % 40, arms].sum()
    assert pulls.tolist() == [80, 75, 45] and round(paid, 2) == 143.20
    fixed = E.contextual_table(features=F, rewards=R, shuffle=False, regret_against="fixed")
    losses = 200 - paid
    np.testing.assert_allclose(losses - table.world.baseline(table.params, 0, [200]), [3.20], atol=1e-9)
    np.testing.assert_allclose(losses - fixed.world.baseline(fixed.params, 0, [200]), [-42.60], atol=1e-9)
    assert not table.world.seeded
    for (x, y), plays, right, pulls in (
        (load_iris(return_X_y=True), 450, 423, [149, 151, 150]), (load_digits(return_X_y=True), 1200, 1022, None),
    ):  # fmt: skip
        world = E.classification(features=x, labels=y, shuffle=False)
        arms, found = play_in_order(world.params.features, labels_as_rewards(y), plays)
        assert (arms == y[np.arange(plays) % len(y)]).sum() == right and pulls in (None, found.tolist())


# ---- the worlds


def played(world, plays, seed=11):
    """The contexts of plays 1..n, and rewards and losses of each arm [n, K]."""
    params = jax.tree.map(lambda x: np.asarray(x, np.float32) if np.asarray(x).dtype.kind == "f" else x, world.params)
    t, root, num_arms = jnp.arange(1, plays + 1, dtype=jnp.int32), Draws(np.uint32(seed), "environment"), 3

    def run(params):
        state = world.world.init(params, root.child("instance"))
        context, state = world.world.observe(params, state, root.child("context"), t)
        found = []
        for arm in range(num_arms):
            action = jnp.full(plays, arm, jnp.int32)
            reward = world.world.reward(params, state, root.child("reward"), t, context, action)
            found.append((reward, world.world.score(params, state, t, context, action).regret))
        return (
            context,
            *(jnp.stack(column, -1) for column in zip(*found, strict=True)),
            (world.world.truth(params, state, t, context).means),
        )

    return tuple(map(np.asarray, jax.jit(run)(params)))


@pytest.mark.parametrize("shuffle", [True, False])
def test_a_table_pays_what_it_says(shuffle):
    how = {"features": F, "rewards": R * 3 - 1, "shuffle": shuffle}
    world, fixed = (E.contextual_table(**how, regret_against=against) for against in ("row", "fixed"))
    context, reward, loss, truth = played(world, 100)
    passes = [pass_order(11, turn, 40) if shuffle else np.arange(40) for turn in range(3)]
    order = np.concatenate(passes)[:100]
    np.testing.assert_allclose(context, rows_of(F)[order], atol=1e-6)
    np.testing.assert_allclose(reward, (R * 3 - 1)[order], atol=1e-6)
    np.testing.assert_array_equal(truth, reward)
    np.testing.assert_allclose(loss, 1 - reward, atol=1e-6)
    assert shuffle == (sorted(order[:40]) == list(range(40)) and order[0] != 0)
    times, given = np.array([1, 39, 40, 41, 100]), (R * 3 - 1)[order]
    best = (1 - given.max(axis=1)).cumsum()[times - 1]
    np.testing.assert_allclose(world.world.baseline(world.params, 11, times), best, atol=1e-9)
    best = (1 - given).cumsum(axis=0).min(axis=1)[times - 1]
    np.testing.assert_allclose(fixed.world.baseline(fixed.params, 11, times), best, atol=1e-9)


def test_labels_may_be_compared_with_every_row():
    y = R.argmax(1)
    world = E.classification(features=F, labels=y, regret_against="row")
    np.testing.assert_array_equal(world.world.baseline(world.params, 3, [1, 50, 77]), [0, 0, 0])
    context, reward, loss, _ = played(world, 45)
    assert context.shape == (45, 4) and (reward.sum(1) == 1).all() and (loss == 1 - reward).all()


def test_rewards_of_a_fitted_log_are_drawn_around_its_means():
    """The first forty rows of the golden log, a hundred times."""
    log, plays = read_golden().split(0.1, seed=None)[0], 4000
    for noise, model in (("bernoulli", "logistic"), ("gaussian", "ridge")):
        world = E.fitted(log=log, noise=noise, model=model)
        _, reward, loss, truth = played(world, plays)
        order = np.concatenate([pass_order(11, turn, 40) for turn in range(100)])
        np.testing.assert_allclose(truth, world.params.means[order], atol=1e-6)
        np.testing.assert_allclose(loss, 1 - truth, atol=1e-6)
        spread = world.params.noise_scale if noise == "gaussian" else np.sqrt(truth * (1 - truth))
        error = (reward - truth) / spread
        assert np.abs(error.mean(0) * np.sqrt(plays)).max() < 4 and np.abs(error.std(0) - 1).max() < 0.05
        if noise == "bernoulli":  # one draw for all arms: what one pays, those of larger means pay too
            assert set(np.unique(reward)) == {0, 1} and world.facts["reward_range"] == (0, 1)
            assert (reward[:, 0] <= reward[:, 1])[truth[:, 0] < truth[:, 1]].all()
    paid = log.reward - world.params.means[np.arange(40), log.arm]
    np.testing.assert_allclose(world.params.noise_scale, paid.std(), rtol=1e-12)
    assert world.facts["reward_range"] == (-np.inf, np.inf)


# ---- models of rewards


def test_reference_values_of_the_golden_log():
    world = E.fitted(log=read_golden(), model="ridge")
    means, fit = world.params.means, world.facts["fit"]
    np.testing.assert_allclose(fit.theta[0], [0.3195863869, -0.3038989654, 0.5470777821], atol=1e-10)
    np.testing.assert_allclose(means.mean(axis=0), [0.3113258378, 0.3818187814, 0.3920418406], atol=1e-10)
    np.testing.assert_allclose(means.max(axis=1).mean(), 0.5174100910, atol=1e-10)
    assert fit.rows == (167, 94, 139) and fit.score == "R^2" and fit.constant == 0
    assert str(fit) in repr(world) and str(fit).startswith("ridge, rows an arm 167, 94, 139; R^2 0.0")
    logistic = E.fitted(log=read_golden())
    assert round(logistic.params.means.max(axis=1).mean(), 3) == 0.585  # ridge shrinks
    assert logistic.facts["fit"].model == "logistic" and logistic.facts["fit"].score == "log loss"


def test_the_gradient_vanishes_at_theta():
    log, ridge = read_golden(), 0.3
    world = E.fitted(log=log, ridge=ridge)
    rows, theta = world.params.features, world.facts["fit"].theta
    for arm in range(3):
        z, r = rows[log.arm == arm], log.reward[log.arm == arm]
        mean = 1 / (1 + np.exp(-z @ theta[arm]))
        assert np.abs(z.T @ (mean - r) + ridge * theta[arm]).max() <= 1e-10
        np.testing.assert_allclose(world.params.means[log.arm == arm, arm], mean, rtol=1e-12)
    assert E.fitted(log=log, ridge=1e9).facts["fit"].value == pytest.approx(np.log(2), abs=1e-6)  # which says 1/2
    # rewards that a logistic model cannot leave are not cut further; those of a ridge are cut to the log's range
    narrow = log._replace(reward=0.4 + 0.2 * log.reward)
    world = E.fitted(log=narrow, model="logistic", ridge=1e-6, norm="none")
    want = 1 / (1 + np.exp(-world.params.features @ world.facts["fit"].theta.T))
    np.testing.assert_allclose(world.params.means, want, rtol=1e-12)
    nothing = log._replace(reward=np.zeros(400))
    assert (E.fitted(log=nothing).params.means > 0).all() and (
        E.fitted(log=nothing, model="ridge").params.means == 0
    ).all()
    # from far away whole steps of Newton's diverge; rewards that a line separates have large coefficients
    x = np.linspace(-3, 3, 60)[:, None] * [1, 40]
    theta = fit_logistic(x, (x[:, 0] > 1.5).astype(float), 1e-6)
    assert np.abs(x.T @ (sigmoid(x @ theta) - (x[:, 0] > 1.5)) + 1e-6 * theta).max() <= 1e-10


def test_models_are_fitted_without_the_fold_that_they_judge():
    """The rewards are noise: a model that saw its rows explains some of it, one that did not does worse than 0."""
    rng = np.random.default_rng(2)
    rows, arm, reward = rng.normal(size=(100, 14)), np.arange(100) % 2, rng.normal(size=100)
    how = {"ridge": 1.0, "reward_range": (reward.min(), reward.max())}
    found = cross_fit("ridge", rows, arm, reward, 2, folds=5, **how)
    for i in (0, 7, 99):
        rest = np.arange(100) % 5 != i % 5
        others = fit_models("ridge", rows[rest], arm[rest], reward[rest], 2, **how)
        np.testing.assert_allclose(found[i], others.predict(rows[i : i + 1])[0], rtol=1e-12)
    seen = fit_models("ridge", rows, arm, reward, 2, **how).predict(rows)
    errors_of = [((reward - q[np.arange(100), arm]) ** 2).mean() / reward.var() for q in (seen, found)]
    assert errors_of[0] < 0.9 and errors_of[1] > 1.05
    log = Log(rows, arm.astype(np.int32), reward, None, ("0", "1"), tuple(map(str, range(14))))
    fit = E.fitted(log=log, standardise=False, bias=False, norm="none").facts["fit"]
    q, fold = found[np.arange(100), arm], np.arange(100) % 5
    constant = np.array([reward[fold != one].mean() for one in fold])
    want = 1 - ((reward - q) ** 2).sum() / ((reward - constant) ** 2).sum()
    np.testing.assert_allclose(fit.value, want, rtol=1e-12)
    assert fit.value < 0


def test_models_of_other_libraries():
    log = read_golden()
    forest = RandomForestClassifier(5, random_state=0)
    world = E.fitted(log=log, model=forest)
    fit = world.facts["fit"]
    own = RandomForestClassifier(5, random_state=0).fit(world.params.features[log.arm == 1], log.reward[log.arm == 1])
    np.testing.assert_allclose(world.params.means[:, 1], own.predict_proba(world.params.features)[:, 1])
    assert not hasattr(forest, "classes_") and fit.theta is None and fit.score == "log loss"
    assert world.config["model"] is forest and "RandomForestClassifier" in repr(world)
    json = jsonable(world.config)
    assert isinstance(json["model"], str) and len(json["log"]) == 6
    line = E.fitted(log=log, model=LinearRegression(fit_intercept=False))
    plain = E.fitted(log=log, model="ridge", ridge=1e-9)
    np.testing.assert_allclose(line.params.means, plain.params.means, atol=1e-6)
    # all clicks of an arm alike: there is nothing to tell apart
    same = log._replace(reward=np.where(log.arm == 2, 1.0, log.reward))
    assert (E.fitted(log=same, model=forest).params.means[:, 2] == 1).all()


def test_an_arm_without_rows_is_said():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = read_golden(arms=[0, 1, 2, 3])
    with pytest.warns(UserWarning, match="fitted: no row of the log shows 3: the mean reward") as caught:
        world = E.fitted(log=log)
    assert caught[0].filename == __file__ and world.facts["num_arms"] == 4
    np.testing.assert_allclose(world.params.means[:, 3], 135 / 400, rtol=1e-12)
    assert np.isnan(world.facts["fit"].theta[3]).all()


# ---- runs


def test_runs_say_what_regret_is_against_and_that_rows_repeat(tmp_path):
    said = r"90 plays of 40 rows, each up to 3 times: epsilon = 0.5 is of one play, and who stands behind a row "
    parts, table = ["uniform", partial(jb.algorithms.ldp_exp3, epsilon=0.5)], E.contextual_table(features=F, rewards=R)
    with pytest.warns(UserWarning, match=f"{said}spends 1.5 .3 releases."):
        ds = jb.sweep(parts, table, horizon=90, seeds=3, checkpoints=[40, 80, 90], progress=False)
    assert ds.regret.attrs["long_name"] == "regret against the best arm of every row"
    whole = R.max(axis=1).sum()
    np.testing.assert_allclose(ds.best_reward.sel(t=[40, 80]), [[whole, 2 * whole]] * 3, rtol=1e-12)
    assert set(jb.plot.reward(ds).data["algorithm"]) == {"uniform", "ldp_exp3", "best arm of every row"}
    # a pass of uniform play earns what a row pays on average
    lost = ds.regret.sel(t=80, algorithm="uniform").mean("seed") - 2 * (whole - R.mean(axis=1).sum())
    assert abs(lost) < 4 * np.sqrt(80 * R.var(axis=1).mean() / 3)
    page = jb.report(ds, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "local, one loss vector (of one play; a row has up to 3)" in page and "as asked" in page
    central = partial(jb.algorithms.private_batched, num_arms=3, epsilon=0.5, base=jb.algorithms.htinf)
    ((_, ratio, text, _),) = doubts_of_repeats(central(horizon=90), table)
    assert ratio == pytest.approx(3) and text.endswith("spends 1.5 (a group of 3)")
    assert list(doubts_of_repeats(central(horizon=40), table)) == []
    # Gaussian noise: someone in three rows moves three times as much, where three releases would cost less
    gaussian = jb.algorithms.adac_ucb(num_arms=3, horizon=90, rho=0.5, delta=0.01)
    ((_, ratio, text, _),) = doubts_of_repeats(gaussian, table)
    one, three = (jb.mechanisms.gaussian_epsilon(moved, 1.0, 0.01) for moved in (1, 3))
    assert ratio == pytest.approx(three / one) and text.endswith(f"spends {three:.3g} (a group of 3)")
    shuffled = gaussian._replace(guarantee=gaussian.guarantee._replace(model="shuffle"))
    assert [ratio for _, ratio, *_ in doubts_of_repeats(shuffled, table)] == [pytest.approx(three / one)]
    told = central(horizon=90)
    whole = told._replace(guarantee=told.guarantee._replace(events=lambda params: ()))
    assert [ratio for _, ratio, *_ in doubts_of_repeats(whole, table)] == [pytest.approx(3)]


def test_a_guarantee_says_the_most_plays_of_a_row_at_any_horizon():
    """Forty rows: 90 plays show some three times, 40 plays once."""
    local = partial(jb.algorithms.ldp_exp3, epsilon=0.5, learning_rate=0.1, mixing=0.05)
    for horizons in ([90, 40], [40, 90]):
        laid_out = plan({"x": local}, E.contextual_table(features=F, rewards=R), horizon=horizons, seeds=1)
        about = Results._attrs(SimpleNamespace(plan=laid_out, config={}, notes={}))
        assert json.loads(about["guarantees"])["x"]["plays"] == "3"


def test_a_log_that_is_played_as_labels_is_said():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {"age": rng.normal(size=400), "clicked": rng.integers(0, 2, 400), "item": rng.integers(0, 3, 400)}
    )
    said = "no feature predicts the labels, and there is a column clicked, so that this looks like a log of choices"
    with pytest.warns(UserWarning, match=said) as caught:
        E.classification(features=frame[["age", "clicked"]], labels=frame["item"])
    assert caught[0].filename == __file__
    scored = frame[["age", "clicked"]].assign(pscore=np.array([0.2, 0.3, 0.5])[frame["item"]])  # which predicts
    with pytest.warns(UserWarning, match="so that this looks like a log of choices"):
        E.classification(features=scored, labels=frame["item"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        E.classification(features=frame[["age", "clicked"]], labels=(frame["age"] > 1).astype(int))
        E.classification(features=frame[["age", "clicked"]].rename(columns={"clicked": "member"}), labels=frame["item"])
        E.classification(features=frame[["age", "clicked"]] * [1, 7], labels=frame["item"])
    assert predicts(load_iris().data[:, :1], load_iris().target) and not predicts(
        rng.normal(size=(50, 9)), np.arange(50) % 3
    )


def test_files_of_settings_name_tables_and_logs(tmp_path):
    own_data_frame().to_csv(tmp_path / "table.csv", index=False)
    pd.DataFrame(own_data.golden_log()[1]).to_csv(tmp_path / "log.csv", index=False)
    head = 'horizon = 9\nseeds = 1\nalgorithm = "ucb1"\n[environment]\n'
    (tmp_path / "run.toml").write_text(
        f'{head}name = "contextual_table"\npath = "table.csv"\nrewards = ["r1", "r2"]\nnorm = "largest"\n'
    )
    world = read_config(tmp_path / "run.toml")["environment"]()
    np.testing.assert_array_equal(world.params.rewards, R[:, :2])
    assert world.facts["arm_names"] == ("r1", "r2") and world.facts["rows"].norm == "largest"
    text = (
        f'{head}name = "fitted"\nmodel = "ridge"\n[environment.log]\npath = "log.csv"\narm = "arm"\nreward = "click"\n'
    )
    (tmp_path / "run.toml").write_text(text + 'propensity = "chance"\n')
    world = read_config(tmp_path / "run.toml")["environment"]()
    np.testing.assert_array_equal(world.params.means, E.fitted(log=read_golden(), model="ridge").params.means)
    for wrong, said in (
        (
            text.replace('arm = "arm"\n', ""),
            "environment.log: read_logged() missing 1 required keyword-only argument: 'arm'",
        ),
        (text + "arms_ = [1]\n", "environment.log: read_logged() got an unexpected keyword argument 'arms_'"),
        (text.replace('path = "log.csv"\n', ""), "environment.log needs path"),
        (head + 'name = "contextual_table"\npath = "table.csv"\n', "environment needs rewards"),
    ):
        (tmp_path / "run.toml").write_text(wrong)
        with pytest.raises((ValueError, TypeError)) as error:
            read_config(tmp_path / "run.toml")
        assert said in str(error.value)


def test_a_fitted_log_is_played_in_the_order_and_against_what_is_asked():
    log, times = read_golden().split(0.1, seed=None)[0], np.array([1, 13, 40, 95])
    for against in ("row", "fixed"):
        world = E.fitted(log=log, shuffle=False, regret_against=against)
        means = world.params.means[np.arange(95) % 40]
        best = means.cumsum(axis=0).max(axis=1) if against == "fixed" else means.max(axis=1).cumsum()
        found = world.world.baseline(world.params, 11, times)
        np.testing.assert_allclose(found, times - best[times - 1], atol=1e-9)
        assert world.facts["regret_against"] == against and not world.world.seeded


def test_rows_of_zeros_have_no_length_to_divide_by():
    rows, kept = make(np.ones((3, 1)), names=["a"], bias=False, norm="largest")
    assert rows.tolist() == [[0]] * 3 and kept.apply(np.full((2, 1), 4.0)).tolist() == [[3], [3]]
    with pytest.warns(UserWarning, match="2 of 2 features are the same in every row"):
        blocks = E.classification(features=np.ones((4, 2)), labels=[0, 1, 0, 1], view="blocks")
    assert blocks.params.features.tolist() == [[0, 0]] * 4
