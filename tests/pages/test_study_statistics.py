"""What studies compute beside their sweeps, against the package's parts and against tables made by hand."""

import re
import sys
import warnings
from functools import cache, partial
from string import Formatter

import numpy as np
import pandas as pd
import pytest
import study_tables
import xarray as xr
from dealt import dealt
from PIL import Image
from scipy.stats import binomtest
from test_papers import DOCS, labels_of, rows_of, shape

import jaxbandits as jb
from jaxbandits import papers
from jaxbandits.papers import shared
from jaxbandits.papers.across import atlas, corruption, coverage, named_epsilon, plain_thompson
from jaxbandits.papers.byzantine import attacks, regret
from jaxbandits.papers.byzantine.attacks import attack_ratios, paper_bonus
from jaxbandits.papers.byzantine.instance import honest
from jaxbandits.papers.ldp_contextual import equal_budget, favourable, figure_1, readings, root_t
from jaxbandits.papers.private_adversarial import (
    exp3_leak,
    experts_map,
    lemmas,
    lower_bound,
    price_of_privacy,
    two_arms,
)
from jaxbandits.papers.private_robust_mab import experiments, moment_order
from jaxbandits.papers.robust_frontier import budgets
from jaxbandits.papers.robust_linear import breakdown, dimension
from jaxbandits.papers.study import Exact, Interval, judge_claim
from jaxbandits.reports import layout
from jaxbandits.sweeps.arguments import label_algorithms, seed_range
from jaxbandits.sweeps.dataset import coordinate_values
from jaxbandits.sweeps.grid import axes_of

TO_CLAIM = equal_budget.epsilon_to_claim.__wrapped__


@pytest.fixture(autouse=True)
def _no_epsilon_is_searched(monkeypatch):
    monkeypatch.setattr(equal_budget, "epsilon_to_claim", lambda label, epsilon: 3 * epsilon)


DIAGNOSTICS = (
    "corruption_spent", "corrupted_regret", "largest_error", "first_error", "nonfinite_rewards", "removals",
    "active_arms", "bytes_sent", *(f"lambda_min_{k}" for k in range(20)),
)  # fmt: skip


def invented(one, rng, scale=1.0):
    """A Dataset as a sweep gives it, of six seeds at most, with regrets that grow with t and numbers of any kind."""
    labels, horizons = list(label_algorithms(one.settings["algorithms"])), np.atleast_1d(one.settings["horizon"])
    axes = axes_of(one.settings.get("grid"), one.settings.get("points"), one.settings["horizon"])
    checkpoints, span = one.settings.get("checkpoints", 200), seed_range(one.settings["seeds"])
    if np.ndim(checkpoints):
        times = np.union1d(checkpoints, horizons)
    else:
        times = np.unique([np.ceil(np.linspace(t / checkpoints, t, checkpoints)).astype(int) for t in horizons])
    coordinates = {"algorithm": labels} | {axis.name: coordinate_values(axis.labels) for axis in axes}
    coordinates |= {"seed": np.array(span[:6]), "t": times, "arm": [0, 1, 2]}
    *lane, _, arm = (len(x) for x in coordinates.values())
    dims = tuple(coordinates)[:-2]
    growth = 1000 * np.sqrt(times / times[-1]) * times[-1] ** 0.3 * scale
    regret = rng.uniform(0.5, 2.0, size=(*lane[:-1], 1, 1)) * growth * np.exp(0.05 * rng.normal(size=(*lane, 1)))
    told = {name: (dims, rng.uniform(0.1, 3.0, size=lane)) for name in DIAGNOSTICS}
    told |= {"regret": ((*dims, "t"), regret), "pulls": ((*dims, "arm"), rng.integers(1, 999, size=(*lane, arm)))}
    ds = xr.Dataset(told, coordinates, {"constant_along": "{}", "guarantees": "{}"})
    for axis in axes:
        for j, key in enumerate(axis.keys):
            values = [row[j] for row in axis.values]
            if key != axis.name and not any(isinstance(x, list | tuple | np.ndarray) for x in values):
                ds = ds.assign_coords({key.replace(" ", "_"): (axis.name, coordinate_values(values))})
    return ds


@cache
def parts_of(name):
    """What a study computes at its quick size, which takes seconds, and its sweeps of full size."""
    study = papers.all_studies()[name]
    return dict(INVENTED[name] if name in INVENTED else study.computed(False)), study.sweeps(True)


def results_of(name, scale=1.0):
    """Invented results of a study of full size."""
    (computed, sweeps), rng = parts_of(name), np.random.default_rng(1)
    return computed | {key: invented(one, rng, scale) for key, one in sweeps.items()}


@cache
def claims_of(name, scale=1.0, share=None):
    """The claims of a study on invented results.

    share: what a regret is of 1000 sqrt(t / T), from the algorithm's label and the sweep's.
    """
    results = results_of(name, scale)
    for key, ds in results.items() if share is not None else ():
        if isinstance(ds, xr.Dataset) and "regret" in ds:
            shares = xr.DataArray([share(label, key) for label in ds["algorithm"].values], dims="algorithm")
            regret = 0 * ds["regret"] + 1000 * np.sqrt(ds["t"] / ds["t"][-1]) * shares
            ds["regret"] = regret.transpose(*ds["regret"].dims)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [judge_claim(claim, full=True) for claim in papers.all_studies()[name].claims(results)]


def points_of_series(monkeypatch):
    """The places along x, as they are printed, of every line of points that claims are about to write."""
    points = set()

    def watch(xs, ys, form=shared.AT, separator=", "):
        xs = np.asarray(xs if hasattr(xs, "__array__") else [*xs])
        ways = [way for _, name, way, _ in Formatter().parse(form) if name == "x"]  # none: the places are not printed
        points.update(format(x, way) for x in xs for way in ways)
        return series(xs, ys, form, separator)

    series = shared.series
    for name, module in [*sys.modules.items()]:
        if name.startswith("jaxbandits.papers") and getattr(module, "series", None) is series:
            monkeypatch.setattr(module, "series", watch)
    return points


def numbers(text):
    """(value, half a unit of its last digit) of every number of a text."""
    found = re.findall(r"\d[\d,]*(?:\.\d+)?", text)
    return [(float(x.replace(",", "")), 0.51 * 10.0 ** -len(x.partition(".")[2])) for x in found]


# Minutes of NumPy, searches, and studies that compare what further sweeps chose.
ELSEWHERE = {
    "robust-linear/filter", "byzantine/aggregate", "across/worst-case", "ldp-contextual/map",
}  # fmt: skip
# What takes minutes to compute, as a table made by hand.
INVENTED = {
    "ldp-contextual/favourable": {"best": dict.fromkeys(favourable.SPREADS[True], 0.02) | {"gaussian": 0.004}},
    "across/plain-thompson": {
        "claims": pd.DataFrame([
            {"form": form, "horizon": horizon, "g": 0.012 * horizon**0.5, "epsilon": 0.0345 * horizon}
            for form in plain_thompson.FORMS for horizon in (300, 1000, 10_000, 100_000, 1_000_000)
        ]),
        "audits": pd.DataFrame({"horizon": [2, 5, 20, 100], "claimed": 1.25, "proven by an audit": 0.75}),
    },
    "across/named-epsilon": {
        "mechanisms": pd.DataFrame([
            {"group": group, "mechanism": label, "bounded": True, "exact": True, "audited": 0.7}
            | {epsilon: epsilon for epsilon in named_epsilon.NAMED}
            for group, mechanisms in named_epsilon.GROUPS.items() for label in mechanisms
        ]),
    },
}  # fmt: skip
# Where the words depend on the draws, or on a size that is computed.
SAYING = {
    "private-adversarial/price-of-privacy", "private-adversarial/below-root", "private-adversarial/lower-bound",
    "private-robust-mab/outliers", "ldp-contextual/figure-1", "robust-linear/breakdown", "ldp-contextual/favourable",
    "ldp-contextual/squared-errors", "across/named-epsilon",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in papers.all_studies() if name not in ELSEWHERE])
def test_claims_on_invented_results_are_those_of_the_page_and_keep_their_units(name, monkeypatch):
    """Word for word what is stated and what the paper says, in order; of what is measured the shape.

    Where every regret is a thousand times as large, a number of a line is as it was, a thousand times as large or as
    small: a regret, a ratio, an exponent, a bound over a regret. One regret over another stays. No upper limit is met
    then that was not before.
    What must be at most or at least a number by the paper is held against that number. Where something was measured is
    a point of the page.
    """
    points = points_of_series(monkeypatch)
    claims, larger = claims_of(name), claims_of(name, 1000.0)
    page, labels = rows_of(study_tables.study_text(name, DOCS)), labels_of(papers.all_studies()[name])
    told = [[x.replace("|", "\\|") for x in (one.statement, one.paper, one.measured)] for one in claims]
    for column in range(3):
        here, there = ([row[column] for row in rows] for rows in (told, page))
        if name not in SAYING and column < 2:
            assert here == there
        elif name not in SAYING or column == 0 or (column == 1 and name != "private-adversarial/lower-bound"):
            assert [shape(x, labels) for x in here] == [shape(x, labels) for x in there]
    cells = [re.findall(r"of \d+ (?:cells|settings)", " ".join(row[2] for row in rows)) for rows in (told, page)]
    assert cells[0] == cells[1]
    words = " ".join(cell for row in page for cell in row[:3]).replace("\\|", "|")
    elsewhere = [x for x in points if not re.search(rf"(?<![\w.,]){re.escape(x)}(?!\w|[.,]\d)", words)]
    assert not elsewhere or name == "ldp-contextual/squared-errors"  # which computes fewer plays here
    for one, other in zip(claims, larger, strict=True):
        for ends in re.findall(r"([\d.,]*\d)(?: to | \(largest )([\d.,]*\d)", one.measured):
            low, high = (float(x.replace(",", "")) for x in ends)
            assert low < high, (one.statement, one.measured)
        pairs = zip(numbers(one.measured), numbers(other.measured), strict=True)
        factors = (1,) if re.search(r"over that of|ratio", one.statement) else (1, 1e3, 1e-3)
        wrong = [(x, y) for (x, u), (y, v) in pairs if all(abs(y - f * x) > v + f * u for f in factors)]
        assert not wrong, (one.statement, one.measured, other.measured)
        if one.evidence is not None and (found := re.search(r"at (most|least) [\d.,]*\d", one.paper)):
            limit = getattr(one.evidence, f"at_{found[1]}")
            assert any(abs(limit - x) <= u for x, u in numbers(found[0])), (one.statement, limit, one.paper)
        if isinstance(one.evidence, Exact) and (found := re.search(r"= (0\.\d+)$", one.paper)):
            middle = (one.evidence.at_least + one.evidence.at_most) / 2
            assert middle == pytest.approx(float(found[1]), abs=1e-12), (one.statement, middle, one.paper)
        if isinstance(one.evidence, Interval) and one.evidence.at_least == -np.inf:
            assert one.evidence.low <= one.evidence.high and not (other.holds and not one.holds)


# A study, what its claims state, and what they measure where every algorithm has the same regret, always.
EVEN = [
    ("across/believed", "a belief against none", "less regret in 0, more in 0 of 16 cells with corruption"),
    ("across/counting", "has less regret than the tree", "beyond chance in 0 of"),
    ("byzantine/privacy", "has no more regret than", "in 15 of 15 cells; on average 1.00 of it"),
    ("byzantine/attacks", "the mean breaks", "more than 2 times the attack-free regret in 0 of 44 cells"),
    # what the whole team loses is divided by those of ten agents that do not attack
    ("byzantine/attacks", "the mean breaks", " at 0.1 [1.11, 1.11]"),
    ("byzantine/attacks", "up to 30%", "1.43 at worst, target at 0.3"),
    ("byzantine/corruption", "geometric median up to 30%", "1.43 times the attack-free mean at worst"),
    ("byzantine/corruption", "mean at 10% attacked", "1.1 times the attack-free mean; interval [1.11, 1.11]"),
    # of 7, 14 and 28 honest agents, of 19, 18 and 16, and of 8, 9 and 10
    ("byzantine/price", "what the attack sets", "1.43 [1.43, 1.43] times the regret without"),
    ("byzantine/price", "exponent of N", "-1.00 [-1.00, -1.00]; regret 143 at 10, 71 at 20, 36 at 40"),
    ("byzantine/price", "exponent of α", "; regret 53 at 0.05, 56 at 0.1, 62 at 0.2"),
    ("byzantine/rate", "an honest agent, geometric median, α = 0.2", "T = 32,768: 125.0"),
    ("byzantine/rate", "an honest agent, median of means, α = 0.1", "T = 32,768: 111.1"),
    ("byzantine/rate", "an honest agent, mean, α = 0", "T = 32,768: 100.0"),
    ("ldp-contextual/figure-1", "O5, ε", "LDP 1,000; in this order, not all"),
    ("ldp-contextual/figure-1", "curve falls as ε rises", "not JDP, SDP-Amp, SDP-Vec, LDP"),
    (
        "private-adversarial/price-of-privacy",
        "has less regret than",
        "at none of these ε; within noise at 0.01, 0.03, 0.1",
    ),
    (
        "private-adversarial/below-root",
        "regret a play along ε = T^-0.5",
        "T grows 10,000-fold; share left [0.0001, 0.0001]",
    ),
    ("private-robust-mab/raw-moments", "PRM-UCB has less regret than", "in 0 of 30 cells; intervals overlap in 30"),
    ("private-robust-mab/central-moments", "less regret than all that", "in 0 of 12 cells; 1.0 to 1.0 times less"),
    ("robust-linear/regret", "private, no corruption: M2 has less regret than M1", "at 0 of 6 values of ε"),
]


def evenly(label, sweep):
    return 1.0


@pytest.mark.parametrize(("name", "statement", "measured"), EVEN)
def test_of_algorithms_that_do_equally_well_none_has_less_regret(name, statement, measured):
    found = [claim.measured for claim in claims_of(name, share=evenly) if statement in claim.statement]
    assert found and [x for x in found if measured not in x] == []


def test_the_median_under_attack_is_held_against_the_mean_without():
    found = claims_of("byzantine/attacks", share=lambda label, _: 2.0 if label == "geometric median" else 1.0)
    [median] = [claim.measured for claim in found if "attack-free mean" in claim.statement]
    assert median == "2.86 at worst, target at 0.3"  # twice as much, of 7 agents in place of 10


def test_the_favourable_case_has_a_limit_for_features_of_norm_1_alone():
    found = [x for x in claims_of("ldp-contextual/favourable") if x.statement.startswith("λ_min played")]
    unit = [x for x in found if "features of norm 1" in x.statement]
    assert 0 < len(unit) < len(found)
    for claim in found:
        assert ("(0.02 for the best arm" in claim.measured) == (claim.evidence is not None) == (claim in unit)


# A study, what its claims state, whose regret is above and whose below the line. None: the label in the statement.
OVER = [
    ("across/trust", " over aggregation, Laplace", None, "aggregation, Laplace"),
    ("across/counting", "regret of agents", "BLT, root mean square", "binary tree"),
    ("across/counting", "regret of users", "BLT, largest", "binary tree"),
    ("across/before-after", "binary: LDP-UCB, reports by honest ones over", "binary-in-range", "binary-before"),
    ("ldp-contextual/equal-budget", "against the local comparators", "OnlineUCB, pair", "SDP-Amp"),
    ("ldp-contextual/favourable", "not knowing T", "Algorithm 7", "Algorithm 1"),
    ("ldp-contextual/printed-form", "regret over that of the most favourable", None, "most favourable, OGD"),
    ("across/named-epsilon", "regret of M1 over that of OnlineUCB, reward only", "M1", "OnlineUCB, reward only"),
    ("private-adversarial/below-root", "central over local", "HTINF in batches", "HTINF, noise on every play"),
    ("private-adversarial/price-of-privacy", "price of privacy", "HTINF", "no privacy"),
    ("robust-frontier/budgets", "told nothing over told C", "elimination told nothing", "elimination told C"),
]


@pytest.mark.parametrize(("name", "statement", "above", "below"), OVER)
def test_a_ratio_has_above_the_line_who_is_named_first(name, statement, above, below):
    share = lambda text: 5.0 + sum(text.encode()) % 11
    labels = claims_of(name, share=lambda label, sweep: share(sweep if above == "binary-in-range" else label))
    found = [claim for claim in labels if statement in claim.statement]
    assert found
    for claim in found:
        first = above or claim.statement.replace(statement, "").removeprefix(" reading: ")
        ratios = re.findall(r"(\d+\.\d+)(?: \[| at ε| times)", claim.measured)
        wanted = share(first) / share(below)
        assert ratios and {abs(float(x) - wanted) < 0.051 for x in ratios} == {True}, (claim, wanted)
        assert abs(wanted - 1 / wanted) > 0.11


@pytest.mark.parametrize("name", dealt([name for name in papers.all_studies() if name not in ELSEWHERE], 16))
def test_pictures_of_invented_results_have_the_columns_and_places_of_the_page(name):
    """Of studies that take long `test_quick_sizes` plays few."""
    (paper, figure), labels = name.split("/"), labels_of(papers.all_studies()[name])
    for key, draw in papers.all_studies()[name].figures.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            drawn = draw(results_of(name))
        kept = DOCS / "figures" / paper / f"{figure}-{key}"
        page = pd.read_csv(f"{kept}.csv").columns.tolist()
        assert [column for column in drawn.data if column in page] == page
        words = layout.figure_words(drawn.figure), Image.open(f"{kept}.png").text["Description"].splitlines()
        here, there = ({shape(word, labels) for word in of} for of in words)
        assert here - {"#", "the winner has no valid theory tuning"} <= there
        axes = [label() for x in drawn.figure.axes for label in (x.get_xlabel, x.get_ylabel)]
        axes = [layout.plain_text(" ".join(label.split())) for label in axes]
        assert [word for word in words[0] if word in axes] == [word for word in words[1] if word in axes]


def test_features_that_are_all_alike_have_the_eigenvalue_of_uniform_play():
    rng = np.random.default_rng(0)
    assert favourable.best_arm(rng, 4000, 0.0) == pytest.approx(favourable.LARGEST, abs=0.01)
    assert favourable.best_arm(rng, 4000, 1.0) == pytest.approx(4.3e-4, rel=0.15)
    assert favourable.best_arm(rng, 4000, None) == pytest.approx(3.9e-3, rel=0.15)


@pytest.mark.parametrize(("shares", "learned"), [((0.7, 0.3), False), ((0.5, 0.3), False), ((0.4, 0.3), True)])
def test_an_exponent_has_an_interval_once_every_horizon_is_learned(shares, learned):
    """Shares of uniform play's regret at the first horizon and the others: half of it is no learning."""
    results = {name: invented(one, np.random.default_rng(0)) for name, one in favourable.sweeps(True).items()}
    results["spread"]["regret"][:] = float(results["spread"].t[-1])  # uniform play loses 1 a play
    for case in favourable.TOLD:
        horizons = results[case]["horizon"]
        results[case]["regret"][:] = horizons * xr.where(horizons == horizons[0], *shares)
    alike = [x for x in favourable.regret_claims(results) if x.statement.startswith("exponent") and "√T" in x.paper[:3]]
    assert len(alike) == len(favourable.EPSILONS)
    assert [x.measured.count("0.30 of uniform") for x in alike] == [1] * len(alike)
    assert [("interval" in x.measured) or ("[" in x.measured) for x in alike] == [learned] * len(alike)


def test_exponents_and_ratios_of_trusting_nobody_are_those_of_powers():
    """Regret 3 sqrt(T) of instruments, T^(3/4) of LDP and T / 4 of others; T = 20,000 is spoiled, and in no fit."""
    declared, results = root_t.sweeps(True), {}
    results["thickness"] = over_h = invented(declared.pop("thickness"), np.random.default_rng(0))
    over_h["regret"][:] = np.arange(1000.0, 1060.0).reshape(6, 1, 10, 1, 1) * np.array([1, 1, 1, 1, 1, 7])[:, None]
    for name, one in declared.items():
        ds, (dim, T) = invented(one, np.random.default_rng(0)), map(int, name.split("-"))
        powers = {"instruments": 3 * T**0.5, "LDP": T**0.75} if T != 20_000 else {"instruments": 4000, "LDP": 4500}
        mean = np.array([powers.get(label, T / 4) for label in ds["algorithm"].values])[:, None, None, None]
        ds["regret"][:] = mean * dim * np.array([1, 1, 1, 1, 1, 7])[:, None]  # six seeds
        results[name] = ds
        thin, thick = (ds["environment.thickness"].sel(epsilon=f"ε = 1, {word}").item() for word in ("thin", "thick"))
        if name == "5-1000000":  # s = sqrt(4.5) / mu
            assert thin == pytest.approx((4.5 / 0.3884012483**2 * 5 / 1e6) ** 0.25) and thick**2 == pytest.approx(0.5)
    told = {one.statement: one for one in root_t.claims(results)}
    for label, slope, mean, median in (("instruments", 0.5, 30_000, 15_000), ("LDP", 0.75, 316_228, 158_114)):
        one = told[f"exponent of T, d = 5, ε = 1, thick: {label}"]
        assert one.measured.startswith(f"{slope:.2f} [{slope:.2f}, {slope:.2f}]; ") and one.paper
        assert one.measured.endswith(f"{mean:,} (median {median:,}) at 1,000,000")
    assert not told["exponent of T, d = 5, ε = 1, thick: JDP"].paper
    longest = told["regret over that of instruments, d = 2, ε = 10, thin, T = 1,000,000"].measured
    assert longest.startswith("LDP 10.54 [10.54, 10.54], OnlineUCB 83.33 ") and "instruments" not in longest
    short = told["regret over that of uniform play, d = 2, ε = 0.2, thick, T = 20,000"].measured
    assert short.startswith("instruments 0.80 [0.80, 0.80], LDP 0.90 ") and "uniform" not in short
    for k, label in enumerate(root_t.PLAYED):
        by_h = told[f"regret by h, d = 2, ε = 10: {label}"].measured.split(" at 0.001, ")
        assert by_h[0] == f"{2 * (1000 + 10 * k):,} (median {1000 + 10 * k:,})"
        assert by_h[1].endswith(f", {2 * (1009 + 10 * k):,} (median {1009 + 10 * k:,}) at 0.7")


def test_a_curve_that_stays_does_not_fall():
    values = {"LinUCB": [1, 1, 1], "JDP": [9, 4, 2], "SDP-Amp": [9, 5, 5], "SDP-Vec": [9, 6, 4], "LDP": [9, 8, 7]}
    coords = {"algorithm": [*values], "epsilon": figure_1.EPSILONS, "seed": range(3)}
    final = xr.DataArray(np.repeat(np.array([*values.values()], float)[..., None], 3, axis=2), coords, tuple(coords))
    *orders, falls = figure_1.comparators(final)
    assert falls.measured == "not SDP-Amp"
    assert [one.measured for one in orders][1] == "LinUCB 1, JDP 4, SDP-Amp 5, SDP-Vec 6, LDP 8; in this order"
    final.loc[{"algorithm": "SDP-Amp", "epsilon": figure_1.EPSILONS[-1]}] = 4.5
    assert [*figure_1.comparators(final)][-1].measured == "all fall"


@pytest.mark.parametrize(("share", "verdicts"), [(0.5, ("no", "yes", "yes")), (0.9, ("yes",) * 3), (2.0, ("no",) * 3)])
def test_orders_at_the_trials_of_the_paper(share, verdicts):
    """Ours have a share of each rival's regret: half of SDP's is below it, and not like it."""
    ours = lambda label, _: 1.0 if label in figure_1.RIVALS else share
    found = [x.measured for x in claims_of("ldp-contextual/figure-1", share=ours) if "the same at" in x.statement]
    wanted = ", ".join(
        f"{order} {x}" for order, x in zip(("O1, ε = 0.2", "O2, ε = 1", "O3, ε = 10"), verdicts, strict=True)
    )
    assert found == [wanted] * len(found) and len(found) == 8


def readings_world(regrets, epsilons, seeds=3):
    """The Dataset of the study of readings, from the final regret of each algorithm: [calibration, epsilon]."""
    own = {f"{readings.OURS}.{key}": ["practical"] for key in readings.OWN}
    own |= {f"{readings.OURS}.calibration": ["paper", "exact"], f"{readings.OURS}.private_features": ["False"]}
    own |= {f"{readings.OURS}.radius_scale": [1.0]}
    shared = {"environment.contexts": ["redraw"], "environment.features": ["reference"], "delta": [0.1]}
    coords = {"algorithm": [*regrets]} | own | shared | {"epsilon": epsilons, "seed": range(seeds), "t": [100]}
    values = np.reshape(
        [np.broadcast_to(x, (2, len(epsilons))) for x in regrets.values()], (-1, 2, *[1] * 6, len(epsilons), 1, 1)
    )
    lanes = np.broadcast_to(values, (*values.shape[:-2], seeds, 1))
    return xr.Dataset({"regret": (tuple(coords), lanes)}, coords)


def test_orders_of_the_readings_by_hand():
    rivals = {"LinUCB": [1, 1, 1], "JDP": [2, 2, 3.5], "SDP-Amp": [3, 3, 3], "SDP-Vec": [4, 6, 4], "LDP": [5, 5, 5]}
    ours = [[4, 1.5, 3.6], [4.9, 1.9, 2.9]]
    ds = readings_world({readings.OURS: ours} | rivals, [0.2, 1.0, 10.0])
    at = "redraw, reference, 0.1"
    assert readings.rivals(ds).measured == f"1 of 3 settings; not at {at}, 1; {at}, 10"
    table = readings.excess_table(ds)
    assert table["rival"].tolist() == ["LDP", "JDP", "SDP-Amp"] * 2
    assert table["difference"].tolist() == pytest.approx([-1, -0.5, 0.6, -0.1, -0.1, -0.1])
    assert table["order"].tolist() == ["below", "below", "above", "below", "below", "below"]
    assert table["sdp"].tolist() == pytest.approx([1, 0.5, 0.9, 4.9 / 4, 1.9 / 3, 2.9 / 3])
    settings = readings.settings_of(table)
    assert settings["orders"].tolist() == ["O1, O2", "O2, O3"]  # 4.9 is more than SDP's by a fifth
    told = {"calibration": "exact", "private_features": False, "delta": 0.1}
    (spent, _) = readings.true_privacy(readings.OGD, epsilon=1.0, feature_norm=2**0.5, **told)
    assert settings["O2 spends"][1] == pytest.approx(spent)
    pair = readings_world({readings.OURS: [[0.81, 1.19], [1.21, 0.79]], readings.MALER: [[1, 1], [1, 1]]}, [0.2, 1.0])
    assert readings.alike(pair).measured == "within 20% in 2 of 4 settings; 0.79 to 1.21 times"


def test_words_of_the_readings_by_hand():
    rivals = {"LinUCB": [1, 1, 1], "JDP": [2, 2, 3.5], "SDP-Amp": [3, 3, 3], "SDP-Vec": [4, 6, 4], "LDP": [5, 5, 5]}
    ours, theirs = [[4, 1.5, 3.6], [4.9, 1.9, 2.9]], [[4, 9, 9], [4, 9, 2.9]]
    alone = readings_world({readings.OURS: ours} | rivals, readings.EPSILONS)
    both = readings_world({readings.OURS: ours, readings.MALER: theirs} | rivals, readings.EPSILONS, seeds=4)
    axes = {key: f"{readings.OURS}.{key}" for key in readings.OWN}
    both = both.assign_coords({f"{readings.MALER}.{key}": (axis, both[axis].values) for key, axis in axes.items()})
    again = readings_world({readings.OURS: theirs} | rivals, readings.EPSILONS, seeds=5)
    again = again.isel({f"{readings.OURS}.calibration": [0]})  # an order held with this one alone
    results = {"map": alone, "again": again, "maler": both}
    found = {claim.statement: claim.measured for claim in readings.claims(results)}
    for calibration, of_ours, of_theirs in (("paper", (1, 1, 0), (1, 0, 0)), ("exact", (0, 1, 1), (1, 0, 1))):
        for epsilon, here, there in zip(readings.EPSILONS, of_ours, of_theirs, strict=True):
            noise = {"calibration": calibration, "private_features": False, "epsilon": epsilon}
            spent = [readings.true_privacy(readings.OGD, **noise, delta=delta)[0] for delta in (0.1, 0.001)]
            words = f"{here} of 1 settings; "
            words += f"again with OGD on 5 new seeds {there} of 1; " if calibration == "paper" else ""
            words += f"with Maler on 4 {there} of 1; spends {spent[0]:.3g} at δ = 0.1, {spent[1]:.3g} at δ = 0.001"
            keys = [key for key in found if key.endswith(f"ε = {epsilon:g}: {calibration}, reward alone noised")]
            assert [found.pop(key) for key in keys] == [words]
    assert [key[:2] for key in found] == ["O4", "O5"]
    assert [claim.statement[:2] for claim in readings.claims({"map": alone})][6:] == ["O5"]  # no order to confirm


def test_rivals_of_the_readings_that_are_equal_are_in_no_order():
    rivals = {"LinUCB": [1, 1, 1], "JDP": [1, 3, 2], "SDP-Amp": [3, 3, 3], "SDP-Vec": [4, 4, 5], "LDP": [5, 5, 5]}
    tied = readings_world({readings.OURS: [[1, 1, 1]] * 2} | rivals, readings.EPSILONS)
    assert readings.rivals(tied).measured.startswith("0 of 3 settings; not at ")


def test_shares_are_those_of_the_gap_that_costs_most():
    regret = np.zeros((2, 3, 4, 5, 1))  # algorithm, gap, epsilon, seed, t
    regret[0, 1], regret[0, 2], regret[1, 0] = 30.0, 10.0, 20.0
    dims = ("algorithm", "environment.gap", "epsilon", "seed", "t")
    coordinates = {"algorithm": list(two_arms.ALGORITHMS), "environment.gap": two_arms.GAPS, "seed": range(5)}
    ds = xr.Dataset({"regret": (dims, regret)}, coordinates | {"epsilon": [0.4, 0.3, 0.2, 0.1], "t": [100]})
    ds.attrs["constant_along"] = "{}"
    share = two_arms.shares({"100": ds})
    assert share.dims == ("algorithm", "power", "horizon", "seed") and share["power"].values.tolist() == two_arms.POWERS
    np.testing.assert_allclose(share[0], 30 / 50)
    np.testing.assert_allclose(share[1], 20 / 50)


def test_the_sums_over_histories_are_those_of_one_history_after_another():
    losses, rate, mixing = np.random.default_rng(0).uniform(-1, 1, (3, 4, 2)), 0.1, 0.2

    def spent(rows, estimate):
        if not len(rows):
            return 0.0
        p = (1 - mixing) * np.exp(-rate * estimate) / np.exp(-rate * estimate).sum() + mixing / 2
        after = [estimate + np.eye(2)[arm] * rows[0] / p for arm in range(2)]
        return sum(p[arm] * (rows[0, arm] + spent(rows[1:], after[arm])) for arm in range(2))

    wanted = [spent(rows, np.zeros(2)) - rows.sum(0).min() for rows in losses]
    np.testing.assert_allclose(lemmas.exp3_regret(losses, rate, mixing), wanted, rtol=1e-12)
    split = lemmas.exp3_regret(losses[:, :3], rate, mixing, losses[:, 3])
    np.testing.assert_allclose(split, wanted, rtol=1e-12)


def test_the_two_sides_of_a_lemma_by_hand():
    rate, rng = 0.3, np.random.default_rng(0)
    one_play = np.array([[[1.0, 0.0]]])
    assert lemmas.weights_ratio(one_play, rate) == pytest.approx(0.5 / (np.log(2) / rate + rate / 2))
    assert lemmas.exp3_bound(one_play, rate, 0.2)[0] == pytest.approx(0.4 + np.log(2) / rate + rate)
    assert lemmas.composition_ratio(rng, releases=1) == pytest.approx(1)  # one release costs its own epsilon
    assert lemmas.group_ratio(rng, records=1) == pytest.approx(1)
    norms = (rng.laplace(size=(2000, 1024)) ** 2).sum(1)
    assert 0.4 < lemmas.passing(1024, 1000) < (norms > lemmas.norm_limit(1024, 1000)).mean() < 0.95
    assert lemmas.passing(512, 1000) == 0


def test_the_two_sides_of_a_lemma_by_loops():
    """Over every history of outputs, every set of outputs, and every pair of inputs, with the same draws."""
    rng, drawn = np.random.default_rng(3), np.random.default_rng(3)

    def chances(*shape):
        raw = np.exp(drawn.uniform(-1, 1, shape))
        return raw / raw.sum(-1, keepdims=True)

    first, second = [[chances(size, 2) for _ in range(2)] for size in (1, 2)]
    losses = {
        (i, j): np.log(first[0][0, i] * second[0][i, j] / (first[1][0, i] * second[1][i, j]))
        for i in range(2) for j in range(2)
    }  # fmt: skip
    budget = sum(max(abs(np.log(one / other)).ravel()) for one, other in (first, second))
    ratio = max(map(abs, losses.values())) / budget
    assert lemmas.composition_ratio(rng, releases=2, outputs=2) == pytest.approx(ratio)

    (one, other), process = chances(2, 6), chances(6, 4)
    epsilon = drawn.uniform(0, max(abs(np.log(one / other))))

    def delta(p, q):  # the set of outputs for which it is largest
        sets = (np.array([k >> i & 1 for i in range(len(p))], bool) for k in range(2 ** len(p)))
        return max(p[chosen].sum() - np.exp(epsilon) * q[chosen].sum() for chosen in sets)

    before = max(delta(one, other), delta(other, one))
    after = max(delta(one @ process, other @ process), delta(other @ process, one @ process))
    assert lemmas.postprocessing_ratio(rng) == pytest.approx(after / before)

    raw, apart = np.log(chances(8, 3)), lambda a, b: sum(x != y for x, y in zip(f"{a:03b}", f"{b:03b}", strict=True))
    loss = {(a, b): max(abs(raw[a] - raw[b])) for a in range(8) for b in range(8) if a != b}
    costliest = max(x for pair, x in loss.items() if apart(*pair) == 1)
    ratio = max(x / (apart(*pair) * costliest) for pair, x in loss.items())
    assert lemmas.group_ratio(rng, records=3, outputs=3) == pytest.approx(ratio)


def test_a_lemmas_ratio_is_the_largest_that_is_found(monkeypatch):
    """Over sequences, settings, rates and mechanisms, wherever it stands."""
    plays = np.array([[[1.0, 0.0]], [[0.5, 0.5]], [[0.0, -0.5]]])
    alone = [lemmas.weights_ratio(one[None], 0.3) for one in plays]
    assert lemmas.weights_ratio(plays, 0.3) == max(alone) and alone.index(max(alone)) == 0
    assert lemmas.weights_ratio(plays[::-1], 0.3) == max(alone)
    ways = iter([*range(200), *range(1000, 1200)[::-1], *range(300, 500)])
    monkeypatch.setattr(lemmas, "composition_ratio", lambda rng: next(ways))
    monkeypatch.setattr(lemmas, "postprocessing_ratio", lambda rng: next(ways))
    monkeypatch.setattr(lemmas, "group_ratio", lambda rng: next(ways))
    monkeypatch.setattr(lemmas, "batches_ratio", lambda rate, mixing: mixing / rate - abs(mixing - 0.5))
    monkeypatch.setattr(lemmas, "weights_ratio", lambda losses, rate: losses.shape[2] - abs(rate - 0.3))
    monkeypatch.setattr(lemmas, "exp3_regret", lambda losses, rate, mixing: losses[:, 0, 0] * rate)
    monkeypatch.setattr(lemmas, "exp3_bound", lambda losses, rate, mixing: losses[:, 0, 0] * 0 + mixing**2)
    monkeypatch.setattr(lemmas, "advanced_ratio", lambda: 0.25)
    assert lemmas.compute_lemma_ratios(True)["ratios"] == {
        "batches": 2, "weights": 3, "exp3": pytest.approx(2.5), "composition": 199, "advanced": 0.25,
        "processed": 1199, "group": 499, "norms": 1,
    }  # fmt: skip


def test_the_printed_bonus_is_above_the_largest_gap_until_late():
    assert paper_bonus(1e6) > 2 > paper_bonus(1e9)


@pytest.mark.parametrize("dim", [5, 20])
def test_the_share_from_which_a_radius_drops_no_arm_is_that_of_the_algorithm(dim):
    horizon, gap = 100_000, 0.7
    share = dimension.useful_share(dim, gap)
    actions = dimension.world(dim).keywords["actions"]
    make = partial(jb.algorithms.bogunovic_elimination, actions=actions, horizon=horizon)
    own = make(corruption_budget=share * horizon * (dimension.VALUE + 1)).params.own
    clean = make(corruption_budget=0.0).params.own
    about_corruption = np.ravel(own.slack) - np.ravel(clean.slack)
    np.testing.assert_allclose(about_corruption, gap * (horizon / 2) / np.ravel(own.sizes), rtol=1e-4)


def test_probabilities_are_at_most_one_and_proportional():
    p = moment_order.probabilities(1000, 0.1, [0.1, 0.2, 100.0])
    assert p[1] == pytest.approx(2 * p[0]) and p[2] == 1.0
    assert p[0] == pytest.approx(0.1 * moment_order.NUM_ARMS * np.log(1000) / 100)


def test_shares_of_sets_that_miss_the_truth_by_hand():
    """Two sets in two settings: failures, exact 95% intervals, the first set of a run where that is promised."""
    seeds = 40
    largest = np.full((2, 2, seeds), 0.5)
    largest[0, 0, :3], largest[0, 1, :7], largest[1, 1, 0], largest[1, 0, 30:] = 1.5, 2.0, 1.0, np.nan
    first = np.where(np.arange(seeds) < 2, largest, 0.25)
    sets, dims = ["median, printed", "raw, constants of 1"], ("algorithm", "corruption_bound", "seed")
    coords = {"algorithm": sets, "corruption_bound": [0.0, 0.2], "seed": range(seeds)}
    ds = xr.Dataset({"largest_error": (dims, largest), "first_error": (dims, first)}, coords)

    def interval(failures, runs):
        found = binomtest(failures, runs).proportion_ci(0.95, method="exact")
        return pytest.approx(found.low), pytest.approx(found.high)

    told = coverage.failure_shares({"Byzantine-UCB": ds}, "Byzantine-UCB")
    assert told["failures"].tolist() == [3, 7, 0, 0] and told["runs"].tolist() == [40, 40, 30, 40]
    for row, failures, runs in zip(told.to_dict("records"), (3, 7, 0, 0), (40, 40, 30, 40), strict=True):
        assert (row["low"], row["high"]) == interval(failures, runs)
    printed, attacked, *_, open_one = coverage.claims({"Byzantine-UCB": ds})
    assert (printed.evidence.low, printed.evidence.high) == interval(
        3, 40
    ) and printed.evidence.at_most == pytest.approx(0.0375)
    assert printed.paper == "at most 0.0375 (3δ/4)" and open_one.paper == "at most δ, constants hidden"
    assert attacked.measured == "outside in 7 of 40 runs, error 0.5 of the radius"
    assert attacked.statement == "Byzantine-UCB: median, printed, 20% corrupted" and open_one.evidence is None
    _, one, *_ = coverage.claims({"PRM": ds})
    assert one.measured == "outside in 2 of 40 runs, error 0.25 of the radius; any set of a run: 18%"


@pytest.mark.parametrize(("latest", "where"), [(9, "in all"), (10, "not in all")])
def test_words_of_the_lower_bound_by_hand(monkeypatch, latest, where):
    """A point with triples whose two terms are equal, one whose second term is 0, and one without a triple."""
    same = {"epsilon": 0.1, "regret_l": 30.0, "regret_primed": 70.0, "rate": 100.0, "worst": 70.0, "worst_low": 65.0}
    triple = {"gamma": 0.02, "p": 5.0, "tau_0": 4.0, "calm": 0.6, "sure": 2, "latest": latest}
    nothing = dict.fromkeys(triple, np.nan) | {"bound": np.nan, "second": np.nan, "sure": 0, "satisfying": 0}
    rows = [
        {"algorithm": "A"} | same | triple | {"bound": 25.0, "second": 25.0, "satisfying": 3},
        {"algorithm": "A"} | same | triple | {"bound": 24.0, "second": 0.0, "satisfying": 1, "epsilon": 0.01},
        {"algorithm": "B"} | same | nothing | {"worst": 140.0},
    ]
    monkeypatch.setattr(lower_bound, "statistics_frame", lambda results: pd.DataFrame(rows))
    found = {claim.statement: (claim.paper, claim.measured) for claim in lower_bound.claims({})}
    both, alone, none = (found.pop(f"{name}, ε = {x:g}") for name, x in (("A", 0.1), ("A", 0.01), ("B", 0.1)))
    assert (
        both[0] == "3 triples; regret at least 25 = 0.25 √(T/ε)"
        and "; largest second term 25, worst regret 70 [" in both[1]
    )
    assert f"largest τ₀ {latest}; 2 triples at 95%; regrets 30 on l, 70 on the worst l'" in both[1]
    assert alone[0].startswith("1 triples") and alone[1].endswith("on the worst l'")
    assert none == ("satisfied by no triple: says nothing", "regrets 30 on l, 70 on the worst l'")
    assert {statement: measured for statement, (_, measured) in found.items()} == {
        "some γ, p and τ₀ satisfy the lemma": "at 2 of 3 points",
        "τ₀ lies within the first batch of ⌈1/ε⌉ plays": f"{where} of these triples",
        "the lemma's second term, the one about privacy": "at most 0.250 √(T/ε); above γT/4 at 1 points",
        "triples that satisfy the lemma, A": "3 at ε = 0.1, 1 at ε = 0.01",
        "triples that satisfy the lemma, B": "0 at ε = 0.1",
        "worst regret over √(T/ε)": "between 0.70 and 1.40",
    }
    assert "satisfy it (2 of 3 points)" in " ".join(layout.figure_words(lower_bound.draw_bound({}).figure))


@pytest.mark.parametrize(("shares", "words"), [
    # ln(0.9 / 0.7) / ln 4, along 1 / epsilon
    ((1.0, 0.9, 0.8, 0.7, 1.0), r"0\.18 over 3 points; exponent \[0\.181, 0\.181\]"),
    ((1.0, 0.9, 0.8, 1.0, 1.0), "regret is below half of random play's at 2 of 5 points only"),
])  # fmt: skip
def test_an_exponent_is_of_points_below_half_of_random_play(monkeypatch, shares, words):
    """Shares of that half, and it does not count itself. Random play loses gap (K - 1) / K a play."""
    label, gap, horizon = next(iter(price_of_privacy.EXPONENTS)), 0.5, 1024
    half = gap * (price_of_privacy.NUM_ARMS - 1) / price_of_privacy.NUM_ARMS * horizon / 2
    coords = {"algorithm": [label], "epsilon": [0.1, 0.2, 0.4, 0.8, 1.6], "seed": range(3), "t": [horizon]}
    regret = np.broadcast_to(half * np.array(shares)[None, :, None, None], (1, 5, 3, 1))
    ds = xr.Dataset({"regret": (tuple(coords), regret)}, coords, {"constant_along": "{}"})
    monkeypatch.setattr(price_of_privacy, "sweep_along", lambda results, kind, key: ds)
    arms = ds.assign_coords({"environment.gap": ("gap", [0.1, gap])})
    [claim] = price_of_privacy.slopes({"arms": arms}, "arms", "epsilon")
    assert re.match(words, claim.measured)


def test_where_the_conversion_is_cheaper_by_hand(monkeypatch):
    """Bounds that are below T = 1000 where epsilon is below 0.1, and where it is above 0.7: 100 and 16 of 200."""
    base, local = "HTINF", price_of_privacy.LOCAL
    bound = {base: lambda x: 1e4 * x, local: lambda x: 700 / x}
    monkeypatch.setattr(price_of_privacy, "_regret_bound", lambda name, horizon, x: bound[name](x))
    monkeypatch.setattr(price_of_privacy, "slopes", lambda *asked: ())
    coords = {"algorithm": [base, local, "no privacy"], "epsilon": [0.1, 0.2, 0.4], "seed": range(4), "t": [1000]}
    regret = np.full((3, 3, 4, 1), 100.0)
    regret[0, :, :, 0] = np.array([[90.0], [101.0], [110.0]]) + [-3.0, -1.0, 1.0, 3.0]
    regret[2] = 50
    ds = xr.Dataset({"regret": (tuple(coords), regret)}, coords)
    monkeypatch.setattr(price_of_privacy, "sweep_along", lambda *asked: ds)
    cheaper, price = price_of_privacy.claims({})
    assert cheaper.paper.endswith("below ε = 0.26, but one of them is below T at 116 of 200 such ε")  # sqrt(0.07)
    assert re.fullmatch(r"below ε = 0\.1\d; within noise at 0\.2", cheaper.measured)
    assert price.measured == "1.8 at ε = 0.1, 2.0 at ε = 0.2, 2.2 at ε = 0.4"


@pytest.mark.parametrize(("learnt", "words"), [
    (3, "0.75; exponent [0.75, 0.75] over 2.0 decades"),
    (2, "regret is below half of uniform play's at 2 of 5 horizons"),
])  # fmt: skip
def test_an_exponent_below_the_root_is_of_learnt_horizons(monkeypatch, learnt, words):
    horizons = np.array([10**k for k in range(2, 7)])
    share = np.where(np.arange(5) < 5 - learnt, two_arms.LEARNT, horizons**-0.25)  # regret over T: that of T^(3/4)
    dims = {"algorithm": [*two_arms.ALGORITHMS], "power": two_arms.POWERS, "horizon": horizons, "seed": range(3)}
    values = np.broadcast_to(share[:, None], [len(x) for x in dims.values()])
    monkeypatch.setattr(two_arms, "shares", lambda results: xr.DataArray(values, dims, tuple(dims)))
    found = [x.measured for x in two_arms.claims(dict.fromkeys(horizons)) if x.statement.startswith("exponent of T")]
    assert len(found) == len(two_arms.POWERS) and all(x.startswith(words) for x in found)


def test_words_of_the_map_of_experts_by_hand(monkeypatch):
    batched, local = "batched EXP4", "local EXP4"
    cells = {"winner": [local, local, batched], "predicted": [local, batched, batched], "clear": [False, True, True]}
    tried = {"algorithm": [local, local, batched, batched], "valid": [True, False, True, True]}
    monkeypatch.setattr(experts_map, "winners", lambda results: pd.DataFrame(cells))
    monkeypatch.setattr(experts_map, "regret_cells", lambda results: pd.DataFrame(tried))
    rows = [
        ("rates, T = 1e5", True, batched, batched), ("rates, T = 1e5", True, batched, None),
        ("rates, T = 1e8", True, local, local), ("rates, T = 1e8", False, batched, batched),
    ]  # fmt: skip
    for k, word in enumerate(experts_map.BOUNDS_HORIZONS):
        rows += [(f"bounds, T = {word}", True, batched, batched if j < k else None) for j in range(4)]
    bounds = pd.DataFrame(rows, columns=["panel", "region", "least", "smallest"])
    assert [(claim.paper, claim.measured) for claim in experts_map.claims({"bounds": bounds})] == [
        ("rates only, constants dropped", "in 2 of 3 cells; of the 2 whose winner's interval is apart, in 1"),
        ("smallest rate in 1 of 3 cells", "least regret in 2 of 3 cells; theory tuning valid in 1"),
        ("smallest rate in 2 of 3 cells", "least regret in 1 of 3 cells; theory tuning valid in 2"),
        ("for N ≥ K and ε ≤ 1/√T (Table 2)", "in 2 of the 3 cells of that region; in 1 of them below T"),
        ("", "0 of 4 at T = 1e5, 1 of 4 at T = 1e8, 2 of 4 at T = 1e12"),
    ]


def test_claims_about_the_filter_by_hand():
    def row(dim, reports, share, removed, over, errors):
        told = {label: np.array([1.0, 3.0]) * error for label, error in zip(breakdown.ESTIMATES, errors, strict=True)}
        told |= {f"removed, {breakdown.PRINTED}": np.array(removed), "eigenvalue over the limit": np.array(over)}
        return {"dim": dim, "reports": reports, "share": share} | told

    order = [*breakdown.ESTIMATES]
    errors = [dict.fromkeys(order, 9.0) | {breakdown.TIGHT: tight, breakdown.KNOWN: 2.0} for tight in (2.5, 2.1, 4, 8)]
    rows = [
        row(5, 200, 0.0, [0, 0], [0.2, 0.9], errors[0].values()),
        row(20, 200, 0.0, [0, 1], [0.1, 0.3], errors[1].values()),
        row(5, 200, 0.04, [0, 0], [0.31, 0.2], errors[2].values()),
        row(20, 200, 0.25, [0, 0], [0.3, 0.1], errors[3].values()),
    ]
    threshold, cost, error, *lines = breakdown.filter_claims({"errors": rows})
    assert threshold.measured == "at most 1 in any of 8 batches; largest eigenvalue at most 0.90 of the limit"
    assert threshold.evidence == Exact(1, at_least=1)
    assert cost.measured == "1.050 to 1.250 times the error of least squares"
    assert error.measured == "0.80 to 4.00 of 2d√α"  # means 8 and 16 over 2 and 20
    assert lines[3].statement == "error, d = 20, n = 200, α = 0.25" and f"{breakdown.TIGHT} 16" in lines[3].measured


def test_points_between_the_bounds_are_counted_one_by_one():
    results, wanted = {}, {}
    for name, sweep in experiments.BOUNDED.sweeps(True).items():
        ds = invented(sweep, np.random.default_rng(2))
        key, at, _ = experiments.ALONG[name]
        upper, lower = experiments.order_lines(int(ds.t[-1]), at).values()
        x = ds[key].values
        ratios = np.array([0.3, 0.9, 1.01, 1.7, 0.5, 0.99, 2.4])[: len(x)]  # of the upper bound
        for j, label in enumerate(ds.algorithm.values):
            final = upper(x) * np.roll(ratios, j) if j % 2 else lower(x) * (np.arange(len(x)) % 3 > 0) * 2 + 1
            ds["regret"].loc[{"algorithm": label}] = np.broadcast_to(
                final.reshape([-1 if d == ds[key].dims[0] else 1 for d in ds.regret.dims[1:]]), ds.regret.shape[1:]
            )
            above, below = (sum(map(bool, z)) for z in (final >= lower(x), final <= upper(x)))
            wanted[f"between the bounds along {'1/ε' if name == 'epsilon' else 'α'}, {label}"] = (
                f"above the lower (times 1/27) at {above}, below the upper at {below} of {len(x)} points; "
                f"{min(final / upper(x)):.2f} to {max(final / upper(x)):.2f} of the upper"
            )
        results[name] = ds
    found = {claim.statement: claim.measured for claim in experiments.bound_claims(results)}
    assert {key: found[key] for key in wanted} == wanted
    assert len(set(wanted.values())) > 2


def finals(regret):
    """A Dataset of one algorithm: final regret by share of attacked agents."""
    values = np.tile(np.array(list(regret.values()), float)[None, :, None, None, None], (1, 1, 1, 3, 1))
    coords = {"algorithm": ["mean"], "corruption_bound": list(regret), "window": [25], "seed": range(3), "t": [100]}
    return xr.Dataset({"regret": (tuple(coords), values)}, coords)


def test_regret_is_divided_by_the_agents_that_do_not_attack():
    assert [honest(x) for x in (0.0, 0.2, 0.3)] == [10, 8, 7] and honest(0.2, 0.5) == 9
    # every agent that does not attack loses 5: agents that attack half the time lose half of it
    regrets = {"target": finals({0.0: 50, 0.2: 40, 0.4: 30}), "half the time": finals({0.0: 50, 0.4: 40})}
    frame = attack_ratios(regrets)
    assert frame["ratio"].tolist() == pytest.approx([1] * 5)


@pytest.mark.parametrize("mirrored", [False, True])
def test_words_of_the_leak_by_hand(monkeypatch, mirrored):
    """The largest ratio is that of arm 0's probabilities, 0.97 over 0.01, or, mirrored, that of arm 1's."""
    p = np.array([[0.5, 0.9, 0.6, 0.99], [0.5, 0.6, 0.06, 0.03]])
    bounds = {exp3_leak.FIXED: [0.1, 0.9, 0.7], exp3_leak.TUNED: [0.3, 0.2, 0.4], exp3_leak.PRIVATE: [0.2, 0.8, 0.6]}
    rows = [(f"{x}: measured", 10**k, y, True) for x, ys in bounds.items() for k, y in enumerate(ys, 1)]
    rows += [(f"{x}: exact", 10**k, 2.5 * k, False) for x in (exp3_leak.FIXED, exp3_leak.TUNED) for k in (1, 2, 3)]
    frame = pd.DataFrame(rows, columns=["algorithm", "horizon", "epsilon", "markers"])
    monkeypatch.setattr(exp3_leak, "leak_frame", lambda results: frame)
    *ends, plays, loss, fixed, tuned, private = exp3_leak.claims({"forced": 1 - p[::-1] if mirrored else p})
    assert [one.measured for one in ends] == (["0.970000", "0.010000"] if mirrored else ["0.990000", "0.030000"])
    assert plays.measured == "2 and 3" and loss.measured == f"{np.log(97):.2f}"
    assert fixed.measured == "0.10 at T = 10, 0.90 at T = 100, 0.70 at T = 1,000; exactly 2.50, 5.00, 7.50"
    assert tuned.measured.endswith("; exactly 2.50, 5.00, 7.50") and tuned.evidence is None
    assert fixed.evidence == Interval("ε at T = 1,000", 0.7, np.inf, at_least=2.5)
    assert private.evidence == Interval("ε at the T of the largest bound", 0.8, np.inf, at_most=1.0)


def test_what_is_alike_is_asked_on_both_sides_of_one():
    """OGD over Maler at each ε, and our regret over that of both SDP: the distance from 1 counts."""
    values = {"Maler": [10, 10, 10], "OGD": [5, 13, 11], "SDP-Amp": [10, 1, 1], "SDP-Vec": [110 / 7, 1, 1]}
    values |= {"JDP": [1, 1, 1], "LDP": [12, 20, 20], "own": [11, 4, 4]}
    coords = {"algorithm": [*values], "epsilon": figure_1.EPSILONS, "seed": range(3)}
    final = xr.DataArray(np.repeat(np.array([*values.values()], float)[..., None], 3, axis=2), coords, tuple(coords))
    furthest = figure_1.alike(final, ["Maler", "OGD"])
    assert furthest.measured == "0.50 times at ε = 0.2, 1.30 times at ε = 1, 1.10 times at ε = 10"
    assert furthest.evidence == Interval("at ε = 0.2", 0.5, 0.5, 0.8, 1.2)
    below, sdp, *others = figure_1.orders(final, "own")
    assert sdp.measured == "1.10 times SDP-Amp, 0.70 times SDP-Vec"
    assert (sdp.evidence.what, sdp.evidence.low) == ("ratio to SDP-Amp", pytest.approx(1.1))
    assert below.measured == "nearest rival LDP: -1" and (below.evidence.low, below.evidence.high) == (-1, -1)
    assert [one.measured for one in others] == ["nearest rival JDP: +3"] * 2  # +3 of every rival but LDP: the first


def test_words_of_the_breakdown_by_hand():
    """Two sizes whose texts are in another order, and cells whose extremes lie in different ones."""

    def of(regret, arms, removals):
        lanes = np.repeat(np.array(regret, float)[..., None, None], 2, axis=2)
        told = {"active_arms": np.full((2, 3, 2), 9.0), "removals": np.zeros((2, 3, 2))}
        told["active_arms"][0], told["removals"][0, :, 1] = np.array(arms)[:, None], removals
        coords = {"algorithm": ["as printed", "tight, presieve"], "corruption_bound": [0.0, 0.1, 0.2], "seed": [0, 1]}
        told = {name: (tuple(coords), x) for name, x in told.items()}
        return xr.Dataset(told | {"regret": ((*coords, "t"), lanes)}, coords | {"t": [100]})

    results = {
        "10": of([[10, 30, 20], [1000, 1500, 2500]], [2, 3, 4], [0, 0, 5]),
        "9": of([[10, 80, 19], [1000, 4000, 1100]], [2, 6, 7], [0, 4, 0]),
    }
    printed, tight, removed, arms, sizes = breakdown.claims(results)
    assert printed.statement == "as printed: regret 10 without corruption"
    assert printed.measured == "breaks in 2 of 4 cells; worst 8.0 at share 0.1, size 9"
    assert tight.measured == "breaks in 2 of 4 cells; worst 4.0 at share 0.1, size 9"
    assert removed.measured == "at most 5 removals in any run" and removed.evidence == Exact(5, at_least=1)
    assert arms.measured.startswith("at least 6 of ") and arms.measured.endswith(" with reports of size 9")
    assert sizes.measured == "size 9: up to 4.0; size 10: up to 2.5"


def under_attack(mean, median):
    """Final regrets of two algorithms, by share of attacked agents."""
    parts = [finals(mean), finals(median).assign_coords(algorithm=["geometric median"])]
    return xr.concat(parts, "algorithm").assign_attrs(constant_along="{}")


def test_what_breaks_and_what_holds_under_attack_by_hand():
    """An agent loses 5 without an attack. Of 10, 8, 7 and 6 agents the mean loses most with few attacked ones."""
    target = under_attack({0.0: 50, 0.2: 120, 0.3: 84, 0.4: 30}, {0.0: 50, 0.2: 48, 0.3: 56, 0.4: 300})
    vector = under_attack({0.0: 50, 0.2: 160, 0.3: 35, 0.4: 30}, {0.0: 50, 0.2: 88, 0.3: 42, 0.4: 300})
    *_, median, mean = attacks.claims({"target": target, "vector only": vector})
    assert median.measured == "2.20 at worst, vector only at 0.2"
    assert mean.measured == "more than 2 times the attack-free regret in 3 of 6 cells"
    assert mean.evidence == Interval("ratio under vector only at 0.2", 4, 4, at_least=attacks.BROKEN)
    *_, median, mean = regret.share_claims({"rules": vector.expand_dims("radius_scale", 3)})
    assert median.measured == "2.20 times the attack-free mean at worst"
    assert mean.statement == "mean at 20% attacked" and mean.measured == "4.0 times the attack-free mean"
    assert mean.evidence == Interval("interval", 4, 4, at_least=regret.BROKEN)


def test_regret_while_episodes_are_many_by_hand():
    """Of 100 plays, in episodes of up to 8 plays: 2, 10 and 4 an agent, of 8 agents."""
    told = {}
    for name, final in (("attacked", [16, 80, 32, 4000]), ("honest", [10, 10, 900, 10])):
        values = np.tile(np.array(final, float)[None, :, None], (1, 1, 3))
        coords = {"algorithm": [name], "window": [2, 5, 8, 20], "seed": range(3)}
        told[name] = xr.Dataset(
            {"bytes_sent": (tuple(coords), values), "regret": ((*coords, "t"), values[..., None])},
            coords | {"t": [100]},
        )
    first, *_, flat = regret.episode_claims(told)
    assert first.measured == "attacked 2, honest 1; 16 bytes sent an agent" and first.statement.endswith(
        "K = 50 episodes"
    )
    assert flat.measured == "within a factor of 5.00"


def test_words_of_central_moments_by_hand():
    """Two cells for each D, in which the largest and the least ratio change places."""
    results, share = {}, experiments.SHARE
    for bound, own, raw in ((10, [10, 20], [30, 30]), (100, [90, 1], [1, 90]), (1000, [40, 30], [20, 60])):
        values = np.tile(np.array([own, raw], float)[:, None, :, None, None], (1, 1, 1, 3, 1))
        coords = {"algorithm": ["PRM elimination", experiments.RAW], "epsilon": [experiments.EPSILON]}
        coords |= {"corruption_bound": [0.0, share], "seed": range(3), "t": [100]}
        results[f"D-{bound}"] = xr.Dataset({"regret": (tuple(coords), values)}, coords)
    found = [one.measured for one in experiments.central_claims(results)]
    assert found[0] == "in 2 of 2 cells; 1.5 to 3.0 times less" and found[6] == "in 1 of 2 cells; 0.5 to 2.0 times less"
    assert found[-1] == "1.50 to 4.00 times the regret of PRM elimination, over the cells"


def test_what_is_spent_is_held_against_what_is_named_wherever_it_is_most():
    at = (
        (group, label)
        for group, labels in named_epsilon.GROUPS.items()
        for label, x in labels.items()
        if x.source.read and all(map(x.source.within, named_epsilon.NAMED))
    )
    group, label = next(at)
    row = {"group": group, "mechanism": label, "bounded": True, "exact": True, "audited": 0.7}
    for k, most in enumerate(named_epsilon.NAMED):
        spent = {x: 3 * x if x == most else x / (2 + k) for x in named_epsilon.NAMED}
        assert named_epsilon._spending(row | spent).evidence.value == pytest.approx(3)


def test_a_moment_is_at_the_factor_that_costs_most():
    order, eps, horizon = 3, 0.1, 1000
    factors = moment_order.FACTORS[True]
    p = moment_order.probabilities(horizon, eps, factors)
    wanted = np.array([[4.0, 7.0, *[5.0] * (len(factors) - 2)], [9.0, 7.0, *[5.0] * (len(factors) - 2)]])
    lanes = np.repeat((wanted * p ** (1 / order))[..., None, None], 2, axis=2)
    coords = {"algorithm": ["A", "B"], "seed": [0, 1], "t": [horizon]}
    ds = xr.Dataset({"regret": (("algorithm", "point", "seed", "t"), lanes)}, coords)
    cost = moment_order.costs({f"{order}-{eps}": ds})
    np.testing.assert_allclose(cost[:, 0, 0, 0], [7, 9])
    assert cost["factor"].values.ravel().tolist() == [factors[1], factors[0]]


def test_orders_at_widths_are_those_of_the_least_regret():
    found = {one.statement: one.measured for one in claims_of("ldp-contextual/widths")}
    best = [(key, words) for key, words in found.items() if key.endswith(", at the width of least regret")]
    assert len(best) == 6
    for statement, words in best:
        epsilon, label = re.search(r"ε = ([\d.]+): (.*), at the width", statement).groups()
        along = re.findall(r"([\d,]+) at ([\d.]+)", found[f"regret by width, ε = {epsilon}: {label}"])
        least, width = min(along, key=lambda pair: int(pair[0].replace(",", "")))
        assert words.startswith(f"width {width}: regret {least}; ")


@pytest.mark.parametrize(("largest", "holds"), [(49.99, False), (50.0, True)])
def test_words_of_the_noises_reach_by_hand(monkeypatch, largest, holds):
    """A claim for every epsilon up to 50 holds where its largest reach is as far."""
    reach = {0.0: lambda delta: 2.0, 1.0: lambda delta: 0.5 + 100 * delta, 2.0: lambda delta: 10 * largest * delta}
    monkeypatch.setattr(equal_budget.theory, "printed_noise_reach", lambda delta, length: reach[length](delta))
    rows = [judge_claim(claim, True) for claim in equal_budget.reach_claims({})]
    assert [row.statement.rpartition(": ")[2] for row in rows] == [*equal_budget.RANGES] * 2
    assert [row.holds for row in rows] == [None, None, holds, None, None, None]
    assert [bool(row.paper) for row in rows] == [False, False, True, False, False, False]
    assert rows[0].measured == "2 at 0.1, 2 at 0.01, 2 at 0.001, 2 at 0.0001, 2 at 1e-05, 2 at 1e-06, 2 at 1e-08"
    assert rows[1].measured.startswith("10.5 at 0.1, 1.5 at 0.01, 0.6 at 0.001")
    assert rows[3].measured == "1e-08, the smallest looked at" and rows[4].measured == "0.005"
    assert (
        rows[5].measured == f"{1 / (10 * largest):.3g}"
        and "[1e-08, 0.1] with the claim true for all ε ≤ 1" in rows[5].statement
    )


def test_deltas_of_the_reach_are_whole_decades_too(monkeypatch):
    monkeypatch.setattr(equal_budget.theory, "printed_noise_reach", lambda delta, length: delta + length)
    for full, count in ((True, 141), (False, 29)):
        found = equal_budget.reach_computed(full)["reach"]
        assert [len(of) for _, of in found.groupby("rewards", sort=False)] == [count] * 3
        assert set(equal_budget.DELTAS) <= set(found["delta"])
        lengths = [equal_budget.RANGES[name] for name in found["rewards"]]
        np.testing.assert_array_equal(found["epsilon"], found["delta"] + lengths)


def test_exponents_of_privacy_are_along_its_inverse(monkeypatch):
    results = {}
    for name, sweep in experiments.BOUNDED.sweeps(True).items():
        ds = invented(sweep, np.random.default_rng(2))
        along = ds[experiments.ALONG[name][0]] ** (-0.5 if name == "epsilon" else 0.5)
        ds["regret"] = (0 * ds["regret"] + along).transpose(*ds["regret"].dims)
        results[name] = ds
    found = [x.measured for x in experiments.bound_claims(results) if x.statement.startswith("exponent of")]
    assert found == ["0.50 [0.50, 0.50]"] * 6
    coords = {"algorithm": [*moment_order.PRM], "order": moment_order.ORDERS, "seed": range(3)}
    cost = xr.DataArray([3e-5, 1e-4, 3e-4], {"epsilon": [3e-5, 1e-4, 3e-4]}, "epsilon") ** -0.5
    cost = cost.expand_dims(coords).transpose("algorithm", "order", "epsilon", "seed")
    cost = cost.assign_coords(factor=0 * cost.isel(seed=0, drop=True) + 1)
    monkeypatch.setattr(moment_order, "costs", lambda _: cost)
    monkeypatch.setattr(moment_order, "horizon_of", lambda _: 10**8)
    found = [x.measured for x in moment_order.claims({}) if x.statement.startswith("exponent of 1/ε")]
    assert len(found) == 6 and all(x.startswith("0.50; ") for x in found)


def table_of(lanes, **coords):
    """A Dataset of three seeds that lose 1 less, as much and 1 more than lanes [algorithm, ...]."""
    coords |= {"seed": range(3), "t": [1000]}
    return xr.Dataset({"regret": (tuple(coords), (np.array(lanes)[..., None] + [-1.0, 0, 1])[..., None])}, coords)


def test_ratios_have_their_own_base_by_hand(monkeypatch):
    shares = {"corruption_bound": [0.0, 0.1], "reward_adversary.corruption": [0.0, 0.1]}
    blocks = table_of([[[10.0, 40.0], [20.0, 10.0]]], algorithm=["A"], **shares)
    frame = corruption.belief_ratios({"blocks": blocks})
    at = frame.set_index(["true", "believed"])["ratio"].to_dict()
    assert at == pytest.approx({(0.0, 0.0): 1, (0.0, 0.1): 2, (0.1, 0.0): 1, (0.1, 0.1): 0.25})
    monkeypatch.setattr(atlas.theory, "private_kl_lower_bound", lambda means, epsilon: 4 * epsilon)
    frame = atlas.ratios_to_bound({"easy": table_of([[100.0, 100.0]], algorithm=["A"], epsilon=[0.5, 1.0])})
    np.testing.assert_allclose(frame["ratio"], [100 / (2 * np.log(1000)), 100 / (4 * np.log(1000))])
    np.testing.assert_allclose(frame["uniform"], 100 / 250)  # its means lose 0.25 a play
    results = {name: invented(one, np.random.default_rng(0)) for name, one in budgets.REGIME.sweeps(True).items()}
    for ds in results.values():
        ds["regret"] = (0 * ds["regret"] + 7 + 2 * ds[budgets.BUDGET]).transpose(*ds["regret"].dims)
    added = [x.measured for x in budgets.regime_claims(results) if "added by a unit of C" in x.statement]
    assert added == [", ".join(f"2.00 [2.00, 2.00] at {x}" for x in (3, 10, 30, 100, 300, 1000, 3000))] * 2


def test_winners_by_hand(monkeypatch):
    """Student's 95% interval of three seeds is 2.48 on both sides: 20 and 24 meet."""
    a, b, c = experts_map.WORDS.values()
    ds = table_of([[30.0, 20.0], [10.0, 25.0], [90.0, 24.0]], algorithm=[a, b, c], epsilon=[0.1, 1.0])
    rates = lambda arms, *at: dict(zip(experts_map.WORDS, (at[0], at[1] * at[2] / 2.5, 500), strict=True))
    monkeypatch.setattr(experts_map.theory, "experts_rates", rates)
    monkeypatch.setattr(experts_map, "valid", lambda label, *at: label != b)
    frame = experts_map.winners({"experts-64": ds})[["winner", "regret", "clear", "predicted", "no_tuning"]]
    assert frame.values.tolist() == [[b, 10, True, b, True], [a, 20, False, a, False]]


def test_what_is_claimed_spends_no_more_than_is_wanted(monkeypatch):
    monkeypatch.setattr(equal_budget, "true_privacy", lambda made, epsilon: (2 * epsilon, equal_budget.DELTA))
    for wanted in (0.5, 7.0):
        assert wanted / 1.001 <= 2 * TO_CLAIM("LDP", wanted) <= wanted


def test_the_costliest_sequence_is_that_of_the_largest_mean(monkeypatch):
    def lanes(*final):
        coords = {"algorithm": ["A"], "epsilon": [0.25], "seed": range(3), "t": [2, 4]}
        return xr.Dataset({"regret": (tuple(coords), np.stack([np.zeros(3), final], -1)[None, None])}, coords)

    none = pd.DataFrame({key: [] for key in lower_bound.TRIPLE}, dtype=float)
    monkeypatch.setattr(lower_bound, "triples", lambda *given, **more: none)
    for plain, costliest in (((1.0, 1.0, 1.5), 3.0), ((3.0, 4.0, 5.0), 4.0)):
        results = {"l": lanes(*plain), "l'-2": lanes(2.0, 3.0, 4.0), "l'-4": lanes(9.0, -3.0, -3.0)}
        (row,) = lower_bound.statistics_frame(results).to_dict("records")
        found = row["regret_l"], row["regret_primed"], row["worst"], row["rate"]
        assert found == (np.mean(plain), 3.0, costliest, 4.0)
