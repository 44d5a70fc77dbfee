"""The guide on choosing: its candidates are all there are, its calls play, and what is bold follows from the data."""

import math
import re
from functools import partial

import choosing
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from dealt import dealt

import jaxbandits as jb
from jaxbandits import algorithms as a
from jaxbandits import catalogue
from jaxbandits.validation import plays_on

FRAME = choosing.read()
SHORT = 3000  # plays at which algorithms that keep every reward can play, too


def printed() -> dict[tuple[str, str], bool]:
    """(problem, call) of every call that stands on the page, read from its text, and whether it is bold."""
    found, heading = {}, ""
    places = {(choosing.title(x.structure, x.corrupted), x.trusted): x.problem for x in FRAME.itertuples()}
    text = choosing.PAGE.read_text().split(choosing.BEGIN)[1].split(choosing.END)[0]
    for line in text.splitlines():
        heading = line.removeprefix("## ") if line.startswith("## ") else heading
        if call := re.search(r"\| (\*\*)?`(.*?)`", line):
            problem = places[heading, line.split("|")[1].strip()]
            found[problem, call[2]] = bool(call[1])
    return found


PRINTED = printed()


# read any reward with another option or default than in their case of the catalogue
ALSO = {"arms": set(), "heavy": {("thompson", "everyone"), ("local_robust_elimination", "nobody")}}


@pytest.mark.parametrize(("problem", "low", "high"), [("arms", 0.0, 1.0), ("heavy", -math.inf, math.inf)])
def test_the_candidates_are_all_that_play_there(problem, low, high):
    """Against a listing of the catalogue's cases by kind and rewards; those that assume tails assume what is true."""
    expected = set(ALSO[problem])
    for name in catalogue.ALGORITHMS:
        algorithm, _ = catalogue.case(name)
        reads = algorithm.rewards.low <= low and algorithm.rewards.high >= high
        if reads and (algorithm.plays_on or plays_on(getattr(a, name))) == "arms":
            expected.add((name, choosing.TRUSTED[algorithm.guarantee.model]))
    assert {(one.algorithm, one.trusted) for one in choosing.candidates(problem, SHORT)} == expected


def test_all_that_follow_experts_are_candidates_at_every_trust_of_their_bases():
    found = choosing.candidates("experts", choosing.PROBLEMS["experts"].horizon)
    follow = {x for x in catalogue.ALGORITHMS if plays_on(getattr(a, x)) == "advice"}
    arms = {one.algorithm for one in choosing.candidates("arms", choosing.PROBLEMS["arms"].horizon)}
    assert {one.algorithm for one in found} == follow | arms  # who needs no advice plays there, too
    trusted = [one.trusted for one in found if one.algorithm == "bandit_to_experts"]
    assert trusted == ["everyone", "everyone", "a server", "nobody"]


def test_one_of_two_experts_is_always_right_and_no_arm_is():
    for instance, gap in zip(choosing.ADVICE, (0.4, 0.2), strict=True):
        losses = np.asarray(instance.keywords["losses"].config["losses"])
        plays = np.arange(choosing.T)
        favoured = (4 + plays // 100) % 3  # of expert 4, as `rotating_experts` says
        assert losses.shape == (choosing.T, 3) and {*np.unique(losses)} == {0, 1}
        np.testing.assert_allclose(losses[plays, favoured].mean(), 0.3, atol=0.01)
        np.testing.assert_allclose(losses.mean(axis=0), 0.3 + gap * 2 / 3, atol=0.01)


def test_a_client_of_many_rewards_is_trusted_with_them():
    found = choosing.candidates("linear", SHORT)
    assert choosing.PROBLEMS["linear-share"].kinds == choosing.PROBLEMS["linear"].kinds
    of_means = [one for one in found if "M2" in one.call and one.unit]
    assert len(of_means) == 1 and of_means[0].trusted == "one client an arm"
    assert {one.trusted for one in found if one.unit} == {*choosing.TRUSTED.values()} - {
        "everyone",
        choosing.TRUSTED["federated"],
    }


def test_the_page_says_what_stays_near_uniform_play():
    start = "| regret over that of uniform play, d = 5, ε = 0.2, thick, T = 20,000 |"
    table = (choosing.DOCS / "reproductions" / "ldp_contextual.md").read_text()
    row = next(line for line in table.splitlines() if line.startswith(start))
    point = next(line for line in choosing.PAGE.read_text().splitlines() if line.startswith("5. "))
    for label in ("instruments", "LDP", "OnlineUCB", "SDP-Vec", "JDP"):
        assert f"{100 * float(re.search(rf'[ ]{label} ([0-9.]+) ', row)[1]):.0f}%" in point


def test_corruption_is_told_to_those_that_ask():
    calls = [one.call for one in choosing.candidates("share", SHORT)]
    assert {"huber_ucb", "partial(huber_ucb, corruption_bound=0.05)"} <= {*calls}
    told = {call.split(",")[0].split("(")[1] for call in calls if "corruption_" in call}
    assert told == {"cr_ucb", "crimed", "huber_ucb"} - {"crimed"}  # CRIMED believes in 5% by default


def test_private_candidates_spend_one_and_no_call_stands_twice():
    for problem in ("arms", "experts", "reports"):
        found = choosing.candidates(problem, choosing.PROBLEMS[problem].horizon)
        assert len({one.call for one in found}) == len(found)
        for one in found:
            assert (one.unit == "") == (one.trusted == "everyone") == math.isinf(one.epsilon)
            assert one.trusted == "everyone" or 0.28 < one.epsilon <= 1 + 1e-6


def test_a_budget_is_found_where_the_spent_one_is_another():
    spent = lambda factory: 0.5 * factory.keywords["epsilon"] ** 2
    call = choosing.write_call(choosing.spend_all(partial(a.dp_se), spent))
    assert call == "partial(dp_se, epsilon=1.414)"  # 1.415 would spend 1.0011


def test_a_budget_outside_of_a_tuning_is_too_much_above_one_and_too_little_below():
    def spent(factory):
        if not 0.5 <= factory.keywords["epsilon"] <= 3.0:
            raise ValueError("no tuning")
        return factory.keywords["epsilon"] / 10

    assert choosing.write_call(choosing.spend_all(a.dp_se, spent)) == "partial(dp_se, epsilon=3)"
    assert choosing.write_call(choosing.spend_all(a.dp_se, lambda x: 2 * spent(x))) == "partial(dp_se, epsilon=3)"
    assert choosing.write_call(choosing.spend_all(a.dp_se, lambda x: 16 * spent(x))) == "partial(dp_se, epsilon=0.625)"


def test_calls_are_written_as_python():
    call = partial(a.bandit_to_experts, base=partial(a.private_batched, base=a.exp3, epsilon=0.5))
    text = "partial(bandit_to_experts, base=partial(private_batched, base=exp3, epsilon=0.5))"
    assert choosing.write_call(call) == text
    assert choosing.write_call(partial(a.ldp_ucb, mechanism="laplace")) == "partial(ldp_ucb, mechanism='laplace')"


def regrets(means: dict[str, tuple[float, float]], noise: float = 1.0) -> xr.DataArray:
    """Regrets of calls on two instances, seeds 0 to 49, with noise of their own."""
    rng = np.random.default_rng(3)
    values = np.array(list(means.values()))[:, :, None, None] + noise * rng.normal(size=(len(means), 2, 50, 1))
    coords = {"algorithm": list(means), "instance": [0, 1], "seed": range(50), "t": [9]}
    return xr.DataArray(values, coords, ["algorithm", "instance", "seed", "t"], name="regret")


def test_calls_are_ranked_by_both_instances_and_bold_by_holm():
    regret = regrets({"worse": (13.0, 11.0), "first": (10.0, 12.0), "as good": (12.0, 10.3), "other row": (0.0, 0.0)})
    twin = regret.sel(algorithm=["first"]).assign_coords(algorithm=["partial(delayed, base=first)"])
    row = ["partial(delayed, base=first)", "worse", "first", "as good"]
    frame = choosing.rank(xr.concat([regret, twin], "algorithm"), row)
    assert frame["call"].tolist() == ["first", "as good", "worse"]  # its twin did the same in every run
    np.testing.assert_allclose(frame[["regret 1", "regret 2"]], [[10, 12], [12, 10.3], [13, 11]], atol=0.5)
    assert frame["p"][0] == 1 and frame["p"][1] > choosing.ERROR > 1e-4 > frame["p"][2]
    both = regret.mean("instance").squeeze("t")
    raw = [
        jb.compare(both.expand_dims("t", -1).to_dataset(), x, "first")["p_value"].item() for x in ("as good", "worse")
    ]
    np.testing.assert_allclose(frame["p"][1:], [raw[0], 2 * raw[1]])


def test_a_table_has_three_algorithms_of_a_row_and_all_calls_that_are_as_good():
    rows = [("a", "a", 1.0), ("b", "b", 0.049), ("a2", "a", 0.9), ("b2", "b", 0.03), ("c", "c", 0.01), ("d", "d", 1e-9)]
    frame = pd.DataFrame([*rows, ("e", "e", 0.051)], columns=["call", "algorithm", "p"])
    place = {"problem": "arms", "structure": "arms", "corrupted": "none", "trusted": "a server", "unit": "reward"}
    frame = frame.assign(**place, plays=2000, delta=1e-5, epsilon=1.0, **{"regret 1": 1234.4, "regret 2": 8.0})
    frame = frame.assign(**{"uniform 1": 2000.0, "uniform 2": math.nan})
    spent = frame[:1].assign(call="f", algorithm="f", p=math.nan, epsilon=0.7)
    _, _, *lines = choosing.table(frame).splitlines()
    assert [re.findall(r"`(\w+)`", line)[0] for line in lines] == ["a", "b", "a2", "c", "e"]
    assert ["**1,234 (62%)** | **8** |" in line for line in lines] == [True, False, True, False, True]
    assert all(line.startswith("| a server | one reward | ") and line.endswith(" | 1e-05 |") for line in lines)
    section = choosing.section(pd.concat([frame, spent]))
    assert "## Arms\n" in section and " 2,000 plays.\n" in section and "left out: `f`." in section


def best_calls(*rows: tuple[str, str, float, float, float]) -> pd.DataFrame:
    """Rows of (trusted, unit, regret on either instance, delta), each with one call."""
    frame = pd.DataFrame(rows, columns=["trusted", "unit", "regret 1", "regret 2", "delta"])
    frame = frame.assign(problem="arms", structure="arms", corrupted="none", plays=9, p=1.0)
    calls = [f"call{i}" for i in frame.index]
    return frame.assign(call=calls, algorithm=calls, **{"uniform 1": math.nan, "uniform 2": math.nan})


def test_a_row_names_what_trusts_fewer_or_protects_more_and_costs_less():
    reward, nobody = ("a server", "reward", 10.0, 20.0, 1e-5), ("nobody", "reward", 9.0, 19.0, 1e-5)
    for other, named in (
        (nobody, "↓ nobody, one reward"),
        (("nobody", "user", 9.0, 19.0, 0.0), "↓ nobody, one user"),
        (("a server", "loss vector", 9.0, 19.0, 0.0), "↓ a server, one loss vector"),
        (("nobody", "message", 9.0, 19.0, 0.0), ""),  # another promise
        (("nobody", "reward", 9.0, 20.1, 0.0), ""),  # costs more on one instance
        (("nobody", "reward", 9.0, 19.0, 2e-5), ""),  # a weaker promise
        (("everyone", "", 9.0, 19.0, 0.0), ""),
        (("one client an arm", "reward", 9.0, 19.0, 0.0), ""),  # neither more nor less to trust
    ):
        line = choosing.table(best_calls(reward, other)).splitlines()[2]
        assert line.startswith(f"| a server | one reward | {named and f'{named} | '}**`call0`** |")
    least = ("a shuffler or secure sums", "reward", 8.0, 18.9, 0.0)
    assert "| ↓ a shuffler or secure sums, one reward |" in choosing.table(best_calls(reward, nobody, least))
    assert choosing.table(best_calls(nobody, reward)).count("↓") == 1  # and nobody's row names no server
    assert not choosing.table(best_calls(reward)).splitlines()[0].count("take instead")


def test_prices_are_over_the_best_without_privacy_of_the_same_problem():
    rows = [("everyone", "", 10.0), ("everyone", "", 20.0), ("a server", "reward", 25.0), ("a server", "reward", 99.0)]
    rows += [("a server", "user", 30.0), ("nobody", "user", 90.0)]
    frame = best_calls(*((*place, regret, regret, 0.0) for *place, regret in rows))
    alone = best_calls(("nobody", "user", 5.0, 5.0, 0.0)).assign(problem="alone")
    head, _, line = choosing.prices(pd.concat([frame, alone])).splitlines()
    assert head == "| played | a server | nobody |"
    assert line == "| [Arms](#arms) | 2.5 (one reward), 3 (one user) | 9 (one user) |"
    below = frame.assign(**{"regret 1": frame["regret 1"] - 30, "regret 2": frame["regret 2"] - 30})
    assert choosing.prices(pd.concat([frame, below.assign(problem="below")])).count("\n") == 2  # no price of a gain
    frame.loc[5, ["regret 1", "regret 2"]] = 15.0
    assert "| 1.5 ↓ (one reward), 1.5 ↓ (one user) | 1.5 (one user) |" in choosing.prices(frame)


def test_the_page_is_of_calls_that_are_candidates():
    """A new algorithm is a candidate at once, and stands on the page when somebody has played the table again."""
    assert set(FRAME["problem"]) == set(choosing.PROBLEMS)
    for name in ("arms", "experts", "linear"):
        now = {(x.call, x.trusted, x.unit) for x in choosing.candidates(name, choosing.PROBLEMS[name].horizon)}
        part = FRAME[FRAME["problem"] == name]
        assert {*zip(part["call"], part["trusted"], part["unit"], strict=True)} <= now


def test_bold_calls_of_the_page_are_those_of_the_data():
    p = FRAME.set_index(["problem", "call"])["p"]
    assert PRINTED == {at: bool(p[at] > 0.05) for at in PRINTED} and False in PRINTED.values()
    assert {(x.problem, x.call) for x in FRAME.itertuples() if x.p > 0.05} == {at for at in PRINTED if PRINTED[at]}
    rows = FRAME.set_index(["problem", "call"]).loc[list(PRINTED)].reset_index()[choosing.ROW]
    assert len(rows.drop_duplicates()) == len(FRAME[choosing.ROW].drop_duplicates())  # none is missing on the page


def test_the_page_says_what_is_played_and_its_example_takes_bold_calls():
    text = choosing.PAGE.read_text()
    headings = {choosing.title(x.structure, x.corrupted) for x in choosing.PROBLEMS.values()}
    assert headings <= set(re.findall(r"^## (.*)$", text, flags=re.M)) and len(choosing.ABOUT) == len(headings)
    given = text.split("```python")[1].split("```")[0].replace('"coupled"', "'coupled'")
    example = re.findall(r'": (\w+(?:\(.*\))?)[,}]', given)
    assert len(example) == 2 and all(PRINTED["arms", call] for call in example)


@pytest.mark.parametrize(("problem", "call"), dealt(PRINTED, 48, always=list(PRINTED)[3:5]))
def test_every_call_of_the_page_is_played(problem, call):
    factory = eval(call, {"partial": partial} | {name: getattr(a, name) for name in a.__all__})
    shown = choosing.PROBLEMS[problem]
    horizon = 400 if "agents" in shown.kinds else 6000  # batched_exp4 has a tuning from 5,539 on
    ds = jb.sweep({"x": factory}, shown.instances[0], horizon=horizon, seeds=2, checkpoints=1, progress=False)
    assert np.isfinite(ds["regret"].values).all()
