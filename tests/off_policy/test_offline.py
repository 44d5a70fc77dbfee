"""`jb.offline` on a log: values and errors against row-by-row transcriptions, and what is refused, warned of, said."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from planting import errors, planted
from reference import off_policy as literal
from reference.off_policy import TARGET
from reference.own_data import LOGGING, golden_log, read_golden, rows_of

import jaxbandits as jb
from jaxbandits.mechanisms.composition import Event
from jaxbandits.off_policy import estimators

CONTEXT, COLUMNS = golden_log()
LOG = read_golden()
PI = TARGET[CONTEXT]
ARGUMENTS = PI, COLUMNS["arm"], COLUMNS["click"], COLUMNS["chance"]
Q = literal.cross_fitted(rows_of(LOG.features), LOG.arm, LOG.reward, 3)
# estimator and clip: value and standard error, computed once in float64
REFERENCE = {
    ("ips", None): (0.51125, 0.0562771447),
    ("ips", 3): (0.46075, 0.0491447070),
    ("snips", None): (0.5332580021, 0.0410495013),
    ("dm", None): (0.4666363246, np.nan),
    ("dr", None): (0.5182566379, 0.0399828985),
}


def quiet(*args, **given):
    """`jb.offline` without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return jb.offline(*args, **given)


def worst_difference(oracle):
    """The largest difference between what is found and what an oracle says, over the estimators."""
    apart, q = [], oracle.cross_fitted(rows_of(LOG.features), LOG.arm, LOG.reward, 3)
    for name, clip in REFERENCE:
        found = quiet(PI, LOG, estimator=name, clip=clip)
        value, y = oracle.estimate(name, *ARGUMENTS, q=q, clip=clip or np.inf)
        apart.append(abs(found.value - value))
        if y is not None:
            apart += [
                abs(found.standard_error - np.std(y, ddof=1) / 20),
                abs(found.interval[1] - value - oracle.normal(y)),
            ]
    found = quiet(PI, LOG, estimator="ips", clip=8, interval="bernstein", confidence=0.9)
    value, y = oracle.estimate("ips", *ARGUMENTS, clip=8)
    return max(*apart, abs(found.interval[1] - value - oracle.bernstein(y, 8, 0.9)))


def test_values_and_errors_are_those_of_the_transcription():
    for (name, clip), (value, error) in REFERENCE.items():
        found = quiet(PI, LOG, estimator=name, clip=clip)
        np.testing.assert_allclose([found.value, found.standard_error], [value, error], atol=1e-10, err_msg=name)
        assert found.estimator == name and found.n == 400 and found.logged == 0.3375
        low, high = found.interval
        np.testing.assert_allclose([low, high], value + np.array([-1, 1]) * 1.959963984540054 * error, atol=1e-9)
    assert worst_difference(literal) < 1e-12
    found = quiet(PI, LOG, estimator="ips", clip=3)
    np.testing.assert_allclose([found.clipped, found.bias_bound], [0.11, 0.1132708333], atol=1e-10)
    # of the weights as they are, before they are cut
    np.testing.assert_allclose([found.mean_weight, found.largest_weight], [0.9587291667, 4], atol=1e-10)
    w = PI[np.arange(400), LOG.arm] / LOG.propensity
    for name in ("dm", "dr", "snips"):
        found = quiet(PI, LOG, estimator=name)
        np.testing.assert_allclose(found.effective_size, 145.3243778496, atol=1e-9)
        assert (found.mean_weight, found.largest_weight, found.bias_bound) == (w.mean(), w.max(), 0)


PLANTED = [
    ("/ propensity[i], clip)", "* propensity[i], clip)"),
    ("log(4 / (1", "log(2 / (1"),
    ("j % folds != i % folds and", ""),  # asked about rows that it was fitted on
    ("- value) / np.mean(w)", ") / np.mean(w)"),
    ("ddof=1", "ddof=0"),
]


@pytest.mark.parametrize("error", errors(PLANTED, literal))
def test_planted_errors_are_noticed(error):
    assert worst_difference(planted(*error)) > 1e-6


def test_what_must_agree_agrees():
    nothing = np.zeros((400, 3))
    assert quiet(PI, LOG, rewards=nothing).value == quiet(PI, LOG, estimator="ips").value
    assert quiet(PI, LOG, rewards=nothing, estimator="dm").value == 0
    scaled = LOG._replace(propensity=LOG.propensity * 0.37)
    first, second = (quiet(PI, log, estimator="snips") for log in (LOG, scaled))
    np.testing.assert_allclose(first.value, second.value, rtol=1e-13)
    np.testing.assert_allclose(first.interval, second.interval, rtol=1e-12)
    for name in ("ips", "snips", "dr", "replay"):  # the policy that logged
        found = jb.offline(LOG, LOG, estimator=name)
        assert found.estimator == "ips"  # of weights 1: no model and no other weights enter
        np.testing.assert_allclose([found.value, found.effective_size], [0.3375, 400], rtol=1e-14)
    np.testing.assert_allclose(quiet(LOGGING[CONTEXT], LOG, estimator="ips").value, 0.3375, rtol=1e-14)
    # any expected rewards leave dr without bias, so they may leave the range; only the Bernstein bound needs it
    w = PI[np.arange(400), LOG.arm] / LOG.propensity
    np.testing.assert_allclose(quiet(PI, LOG, rewards=nothing + 5).value, 5 + np.mean(w * (LOG.reward - 5)), rtol=1e-12)
    with pytest.raises(ValueError, match=r"rewards\[0, 0\] = 5"):
        jb.offline(PI, LOG, rewards=nothing + 5, interval="bernstein", floor=0.1)
    given = quiet(PI, LOG, rewards=Q)
    np.testing.assert_allclose(given.value, REFERENCE["dr", None][0], atol=1e-10)
    bounded = quiet(PI, LOG, rewards=Q, interval="bernstein", floor=0.1)  # a range of (1 - 0)(1 + 2 0.8/0.1)
    _, y = literal.estimate("dr", *ARGUMENTS, q=Q)
    np.testing.assert_allclose(bounded.interval[1] - bounded.value, literal.bernstein(y, 17, 0.95), rtol=1e-10)


def test_the_model_is_asked_about_rows_that_it_has_not_seen():
    """100 rows of 14 features that say nothing: a model of the same rows claims too narrow intervals."""
    random, missed = np.random.default_rng(5), {True: 0, False: 0}
    for _ in range(300):
        features, arm = random.normal(size=(100, 14)), random.integers(0, 3, 100)
        reward = (random.random(100) < 0.5).astype(float)
        log = LOG._replace(features=features, arm=arm, reward=reward, propensity=np.full(100, 1 / 3))
        log = log._replace(feature_names=tuple(map(str, range(14))))
        rows, seen = rows_of(features), np.zeros((100, 3))
        for a in range(3):
            z = rows[arm == a]
            seen[:, a] = rows @ np.linalg.solve(z.T @ z + np.eye(15), z.T @ reward[arm == a])
        for fitted, given in ((True, None), (False, np.clip(seen, 0, 1))):
            low, high = quiet(0, log, rewards=given).interval
            missed[fitted] += not low < 0.5 < high
    assert missed[True] < 30 < 36 < missed[False]  # 5% of 300 are 15, and few rows miss more


def test_replay_of_a_fixed_policy():
    with pytest.raises(ValueError, match=r"equal propensities.*take 'snips'"):
        jb.offline(0, LOG, estimator="replay")
    context, columns = literal.uniform_log(300)
    log = jb.read_logged(pd.DataFrame(columns).drop(columns="chance"), arm="arm", reward="click", propensity="uniform")
    arms = TARGET[context].argmax(axis=1)
    used = arms == log.arm
    found = jb.offline(arms, log, estimator="replay")
    y = log.reward[used]
    assert (found.value, found.n) == (y.mean(), used.sum())
    np.testing.assert_allclose(found.standard_error, y.std(ddof=1) / np.sqrt(used.sum()), rtol=1e-13)
    exact = jb.offline(arms, log, estimator="replay", interval="bernstein")
    np.testing.assert_allclose(exact.interval[0], y.mean() - literal.bernstein(y, 1, 0.95), rtol=1e-12)
    paired = jb.offline([arms, arms, 1], log, estimator="replay")  # as the ratio of two means over all rows
    z = used * (log.reward - y.mean()) / used.mean()
    other = (log.arm == 1) * (log.reward - log.reward[log.arm == 1].mean()) / (log.arm == 1).mean()
    want = [0, (other - z).std(ddof=1) / np.sqrt(300)]
    np.testing.assert_allclose(paired["difference_error"].iloc[1:], want, atol=1e-13)
    bounded = jb.offline([arms, 1], log, estimator="replay", interval="bernstein")
    assert bounded["difference_low"].isna().all() and bounded["high"].notna().all()
    with pytest.raises(ValueError, match="one arm a row, and the policy is randomised"):
        jb.offline(TARGET[context], log, estimator="replay")


def test_a_bit_for_each_row():
    found = jb.offline(PI, LOG, estimator="ips", clip=8, epsilon=1.0)
    w = PI[np.arange(400), LOG.arm] / LOG.propensity
    chances, zero, one = zip(
        *(literal.chance_of_bit(a, r, 8, 1, 1.0) for a, r in zip(w, LOG.reward, strict=True)), strict=True
    )
    p, size = np.array(chances), one[0] - zero[0]
    # expectation and standard deviation over the bits, exactly
    np.testing.assert_allclose((zero[0] + p * size).mean(), 0.51125, rtol=1e-13)
    np.testing.assert_allclose(size * np.sqrt((p * (1 - p)).mean() / 400), 0.3920715935, atol=1e-10)
    from numpy_draws import NumpyDraws

    uniform = (NumpyDraws(0, "offline/bit").at(np.arange(1, 401), 0) + 0.5) * 2.0**-32
    bits = np.where(uniform < p, one[0], zero[0])
    np.testing.assert_allclose(found.value, bits.mean(), rtol=1e-12)
    np.testing.assert_allclose(found.standard_error, bits.std(ddof=1) / 20, rtol=1e-12)
    other = (NumpyDraws(3, "offline/bit").at(np.arange(1, 401), 0) + 0.5) * 2.0**-32
    value = jb.offline(PI, LOG, estimator="ips", clip=8, epsilon=1.0, seed=3).value
    np.testing.assert_allclose(value, np.where(other < p, one[0], zero[0]).mean(), rtol=1e-12)
    wide = jb.offline(PI, LOG, estimator="ips", clip=8, epsilon=1.0, interval="bernstein")
    np.testing.assert_allclose(wide.interval[1] - wide.value, literal.bernstein(bits, size, 0.95), rtol=1e-12)
    larger = jb.offline(
        PI, LOG._replace(reward=5 * LOG.reward), estimator="ips", clip=8, epsilon=1.0, interval="bernstein",
        reward_range=(0, 5),
    )  # fmt: skip
    np.testing.assert_allclose([larger.value, *larger.interval], 5 * np.array([wide.value, *wide.interval]), rtol=1e-9)
    # nothing else is told, and the likelihoods of a user's bit differ by e^epsilon at most, which they reach
    assert np.isnan([found.effective_size, found.mean_weight, found.largest_weight, found.logged]).all()
    ends = [literal.chance_of_bit(a, 1, 8, 1, 1.0)[0] for a in (0, 100)]
    np.testing.assert_allclose([ends[1] / ends[0], (1 - ends[0]) / (1 - ends[1])], np.e, rtol=1e-12)
    for share, below in (
        (-1.0, ends[0]),
        (0.0, ends[0]),
        (1.0, ends[1]),
        (2.0, ends[1]),
        (0.3, 0.5 - 0.2 * (2 * ends[1] - 1)),
    ):
        near = np.array([below - 1e-9, below + 1e-9])
        np.testing.assert_allclose(estimators.bits_of(np.full(2, 8 * share), near, 8.0, 1.0), [one[0], zero[0]])
    (event,), epsilon = found.ledger.events, found.ledger.epsilon
    assert isinstance(event, Event) and event.times == 1 and abs(epsilon - 1) < 1e-8 and found.ledger.model == "local"
    # rounding at random alone, the limit of large epsilon; and a bit for each of two policies
    exact = jb.offline(PI, LOG, estimator="ips", clip=8, epsilon=float("inf"))
    bits = np.where(uniform < np.minimum(w, 8) * LOG.reward / 8, 8, 0)
    assert exact.value == bits.mean() and exact.ledger.epsilon == np.inf
    both = jb.offline({"a": PI, "b": PI}, LOG, estimator="ips", clip=8, epsilon=1.0)
    assert both.loc["a", "value"] == found.value != both.loc["b", "value"]
    assert abs(both.attrs["ledger"].epsilon - 2) < 1e-8


def test_forms_of_policies():
    frame = jb.offline({"all": 1, "named": "1", "of rows": np.full(400, 1), "drawn": np.eye(3)[np.full(400, 1)]}, LOG)
    assert frame.index.name == "policy" and (frame["value"] == frame["value"].iloc[0]).all()
    assert frame["difference"].tolist() == frame["difference_error"].tolist() == [0] * 4
    assert [*frame.columns[:5]] == ["value", "low", "high", "standard_error", "difference"]
    function = lambda features: np.where(features[:, features.names.index("x")] > 0, 2, 0)
    frame = quiet([1, "2", function, PI, PI, LOG], LOG)
    assert frame.index.tolist() == ["arm 1", "arm 2", "<lambda>", "policy 4", "policy 5", "logged"]
    single = quiet(np.where(COLUMNS["x"] > 0, 2, 0).tolist(), LOG)
    assert isinstance(single, jb.Offline) and single.value == frame.loc["<lambda>", "value"]
    assert quiet(PI.tolist(), LOG).value == frame.loc["policy 4", "value"]
    # paired, since all see the same rows
    first, last = (
        literal.estimate("dr", TARGET[CONTEXT] if i else np.eye(3)[[1] * 400], *ARGUMENTS[1:], q=Q)[1] for i in (0, 1)
    )
    apart = np.subtract(last, first)
    np.testing.assert_allclose(frame.loc["policy 4", "difference_error"], apart.std(ddof=1) / 20, rtol=1e-9)
    pair = quiet([PI, 1], LOG, estimator="ips", clip=8, interval="bernstein", confidence=0.9)
    one, other = (literal.estimate("ips", pi, *ARGUMENTS[1:], clip=8)[1] for pi in (PI, np.eye(3)[[1] * 400]))
    apart = np.subtract(other, one)  # of two ranges of 8
    ends = apart.mean() + np.array([-1, 1]) * literal.bernstein(apart, 16, 0.9)
    np.testing.assert_allclose(pair.loc["arm 1", ["difference_low", "difference_high"]].tolist(), ends, rtol=1e-9)
    assert frame.loc["policy 4", "difference_error"] < np.hypot(*frame.loc[["arm 1", "policy 4"], "standard_error"])


def test_no_propensities():
    log = LOG._replace(propensity=None)
    found = jb.offline(PI, log, estimator="dm")
    assert (
        found.value == quiet(PI, LOG, estimator="dm").value and np.isnan([*found.interval, found.effective_size]).all()
    )
    frame = quiet([PI, 1], LOG, estimator="dm")  # whose error is not known, of differences neither
    assert frame[["low", "high", "difference_low", "difference_high", "difference_error"]].isna().all(axis=None)
    for name in ("ips", "snips", "dr", "replay"):
        with pytest.raises(ValueError, match=f"estimator = '{name}' needs propensities.*'dm'"):
            jb.offline(PI, log, estimator=name)


def test_models_of_rewards():
    class Mean:
        def fit(self, x, y):
            self.mean = y.mean()

        def predict(self, x):
            return np.full(len(x), self.mean)

    found = quiet(PI, LOG, estimator="dm", model=Mean(), folds=2)
    means = [[LOG.reward[fold::2][LOG.arm[fold::2] == a].mean() for a in range(3)] for fold in (1, 0)]
    np.testing.assert_allclose(found.value, np.mean([PI[i] @ means[i % 2] for i in range(400)]), rtol=1e-13)
    assert 0.4 < quiet(PI, LOG, estimator="dm", model="logistic").value < 0.55
    assert 0 <= quiet(PI, LOG, estimator="dm", ridge=1e9).value < 400 / 1e9  # |theta| is |Z'r| / ridge at most

    class High(Mean):
        def predict(self, x):
            return np.full(len(x), 0.9)

    half = LOG._replace(reward=LOG.reward / 2)  # up to 1/2, in a range up to 1 unless another is declared
    for given, value in (({}, 0.9), ({"reward_range": (0, 0.75)}, 0.75)):
        assert quiet(PI, half, estimator="dm", model=High(), **given).value == pytest.approx(value)
    # rewards in other units: what a model expects is cut to the log's own range
    log = LOG._replace(reward=10 * LOG.reward - 5)
    found = quiet(PI, log, clip=3)
    assert np.isnan(found.bias_bound) and np.isfinite(found.value)
    assert np.isnan(quiet(PI, LOG._replace(reward=LOG.reward - 0.5), clip=3).bias_bound)  # below 0, and not above 1
    assert quiet(PI, log, clip=3, reward_range=(-5, 5)).bias_bound == pytest.approx(10 * 0.1132708333)


def test_a_bound_takes_the_narrower_of_clip_and_floor():
    """Weights of PI are at most 0.8 / floor, whatever clip is; those of the policy that logged are 1."""
    for given, widest in (({"clip": 20, "floor": 0.1}, 8), ({"clip": 5, "floor": 0.1}, 5), ({"floor": 0.05}, 16)):
        found = quiet(PI, LOG, estimator="ips", interval="bernstein", **given)
        _, y = literal.estimate("ips", *ARGUMENTS, clip=given.get("clip", np.inf))
        np.testing.assert_allclose(found.interval[1] - found.value, literal.bernstein(y, widest, 0.95), rtol=1e-10)
    found = jb.offline(LOG, LOG, estimator="ips", interval="bernstein", clip=8)
    np.testing.assert_allclose(found.interval[1] - found.value, literal.bernstein(LOG.reward, 1, 0.95), rtol=1e-10)


def test_the_range_of_what_is_averaged_by_hand():
    """A weight lies in [0, w], so that 0 is among w r whatever the rewards are."""
    for ends, size in (((0, 1), 3), ((1, 2), 6), ((-2, -1), 6), ((-1, 2), 9)):
        assert estimators.spread_of("ips", *ends, 3.0) == size
    assert estimators.spread_of("replay", 1, 3, 9.0) == 2 and estimators.spread_of("dr", 1, 3, 2.0) == 10


@pytest.mark.parametrize(("reward", "ends", "off"), [(0.6, (0, 1), 1), (10.6, (10, 11), 11), (-10.6, (-11, -10), 11)])
def test_cut_weights_miss_all_of_a_reward(reward, ends, off):
    """Weights 2 and 0, cut to 1 and 0: half of every reward is left out, and a mean of weights of 1/2 is put right."""
    arm = np.arange(200) % 2
    log = LOG._replace(arm=arm, reward=np.full(200, reward), propensity=np.full(200, 0.5), features=np.zeros((200, 1)))
    given = {"clip": 1.0, "reward_range": ends}
    found = quiet(0, log, estimator="ips", **given)
    assert found.value == pytest.approx(reward / 2) and found.bias_bound == pytest.approx(off / 2)
    assert quiet(0, log, estimator="snips", **given).bias_bound == 0.5


WARNINGS = {
    "effective size is 9.75 rows": (np.where(np.arange(400) < 12, LOG.arm, (LOG.arm + 1) % 3), {}),
    "mean weight is .* not 1": (PI, {"log": LOG._replace(propensity=np.minimum(1, 1.5 * LOG.propensity))}),
    "clip = 0.5 may bias it by": (PI, {"estimator": "ips", "clip": 0.5}),
}


@pytest.mark.parametrize("words", WARNINGS)
def test_doubts(words):
    policy, given = WARNINGS[words]
    with pytest.warns(UserWarning, match=words) as told:
        jb.offline(policy, **{"log": LOG} | given)
    assert all(warning.filename == __file__ for warning in told)
    with pytest.warns(UserWarning, match=f"^mine: .*{words}"):
        jb.offline({"mine": policy}, **{"log": LOG} | given)


def test_nothing_to_doubt(recwarn):
    assert jb.offline(PI, LOG, clip=20).value == quiet(PI, LOG).value
    assert not recwarn.list


def test_a_log_that_never_shows_the_policy():
    other = (LOG.arm + 1) % 3
    for name in ("ips", "snips", "dr"):
        with pytest.raises(ValueError, match="all weights are 0: the log never shows what the policy plays"):
            jb.offline(other, LOG, estimator=name)
    assert np.isfinite(jb.offline(other, LOG, estimator="dm").value)


def test_it_says_itself_in_four_lines():
    said = repr(quiet(PI, LOG, clip=3))
    assert len(said.splitlines()) == 4 and "by dr, interval 0." in said and "11.0% cut (bias at most 0.113)" in said
    assert re.search(r"standard error 0\.0\d+, of 400 rows, worth 155", said) and "logged policy earned 0.3375" in said
    assert "epsilon = 2" in repr(jb.offline(PI, LOG, estimator="ips", clip=3, epsilon=2))


def test_the_picture_shows_every_policy(tmp_path):
    frame = quiet({"a new policy of a long name that goes on and on": PI, "logged": LOG}, LOG)
    picture = jb.plot.offline(frame, path=tmp_path / "a.png")
    (axes,) = picture.figure.axes
    labels = [text.get_text().replace("\n", " ") for text in axes.get_yticklabels()]
    assert labels == ["a new policy of a long name that goes on and on (145)", "logged (400)"]
    assert jb.plot.overlaps(picture.figure) == [] and (tmp_path / "a.png").is_file()
    assert picture.data["value"].tolist() == frame["value"].tolist()
    (line,) = [line for line in axes.lines if line.get_label().startswith("the logged policy")]
    assert line.get_xdata()[0] == 0.3375
    single = jb.plot.offline(quiet(PI, LOG, estimator="dm"))
    assert single.data["policy"].tolist() == ["policy"] and jb.plot.overlaps(single.figure) == []


def test_tables_are_read_by_the_names_of_arms():
    """Whoever has columns called as the arms means these, in whatever order; a number is a place, and no other name."""
    names = list(LOG.arm_names)
    always = pd.DataFrame(np.eye(len(names))[0 * LOG.arm], columns=names)
    for given in (
        lambda x: {"policy": x},
        lambda x: {"policy": lambda features: x},
        lambda x: {"policy": 0, "rewards": x},
    ):
        one, other = (
            quiet(log=LOG, estimator="dm" if "rewards" in given(x) else "snips", **given(x)).value
            for x in (always, always[always.columns[::-1]])
        )
        assert one == other
    plain = always.to_numpy()[:, ::-1]  # without names by their places
    assert quiet(plain, LOG, estimator="snips").value == quiet(len(names) - 1, LOG, estimator="snips").value
    counted = LOG._replace(arm_names=("1", "2", "3"))
    with pytest.raises(ValueError, match=r"policy = 1 may be a number or a name \(arm number 0 is called '1'\)"):
        jb.offline(1, counted)
    assert quiet("1", counted).value == quiet(0, counted).value


def test_a_policy_is_judged_on_its_own_arms():
    frame = lambda two: pd.DataFrame({"x": np.arange(40) * 7 % 5, "arm": list(two) * 20, "r": [1, 0] * 20})
    own, others = (jb.read_logged(frame(x), arm="arm", reward="r", propensity="uniform") for x in ("ab", "bc"))
    policy = jb.trained("ucb1", jb.environments.fitted(log=own), horizon=20, seeds=2)
    with pytest.raises(ValueError, match="plays the arms a, b, and those of the log are b, c: read both logs with"):
        jb.offline(policy, others, estimator="snips")
