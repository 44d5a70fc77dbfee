"""The HTML report: its numbers are the statistics', its texts are escaped, and a browser finds no fault with it."""

import base64
import hashlib
import html
import json
import math
import re
import tomllib
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from browser import CHROMIUM, WITHOUT, browser, faults, page_errors

import jaxbandits as jb
from jaxbandits import selection, theory
from jaxbandits.cli import main
from jaxbandits.reports import drawing, output
from jaxbandits.reports.page import curves, ledgers, tables, write
from jaxbandits.reports.page import headline as words_of
from jaxbandits.reports.page.headline import answers_in_words, headline, like_uniform
from jaxbandits.reports.page.runs import ReportRun, as_raw, is_own, papers, question, runs
from jaxbandits.sweeps.sweep import prepare_sweep
from jaxbandits.sweeps.toml_file import config_arguments

OURS, THEIRS = "ours <script>alert(1)</script>", "</script><b onclick='x'>&amp;"
EPSILONS = [0.1, 0.5, float("inf")]
MEANS = {"hard": [0.4, 0.6], "an easy one": [0.1, 0.9]}  # an order that sorting loses


def configured(algorithms, environment, constant=None, **settings):
    """A Dataset that says of itself what a sweep's does, with regret that is made up."""
    job = prepare_sweep(algorithms, environment, settings, progress=False)
    t = np.unique(np.concatenate([job.plan.times[h] for h in job.plan.times]))
    coords = {axis.name: list(axis.labels) for axis in job.plan.axes}
    dims = ("algorithm", *coords, "seed")
    shape = (len(job.plan.labels), *map(len, coords.values()), len(job.plan.seeds))
    lanes = np.random.default_rng(0).lognormal(2.0, 0.5, shape)
    for i, label in enumerate(job.plan.labels):
        if "epsilon" in job.plan.constant_along[label]:
            lanes[i] = lanes[i][:, :1]
    regret = lanes[..., None] * t**0.7
    if "horizon" in coords:
        beyond = t > np.reshape(coords["horizon"], (-1, 1))
        regret[np.broadcast_to(np.expand_dims(beyond, tuple(range(1, len(shape) - 1))), regret.shape)] = np.nan
    told = {c.label: {"model": c.algorithm.guarantee.model, "unit": c.algorithm.guarantee.unit} for c in job.plan.cells}
    return xr.Dataset(
        {"regret": ((*dims, "t"), regret), "pulls": ((*dims, "arm"), np.stack([lanes, 2 * lanes], -1))},
        coords | {"algorithm": job.plan.labels, "seed": list(job.plan.seeds), "t": t},
        {
            "config": json.dumps(job.config), "constant_along": json.dumps(job.plan.constant_along),
            "guarantees": json.dumps({label: x for label, x in told.items() if x["model"] != "none"}),
            "versions": json.dumps({"jaxbandits": "0"}),
        },
    )  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A sweep over three keys in a directory, with labels that are HTML."""
    out = tmp_path_factory.mktemp("runs") / "first"
    local = partial(jb.algorithms.ldp_exp3, learning_rate=0.05, mixing=0.02)
    ds = configured(
        {OURS: jb.algorithms.private_batched, THEIRS: local, "no privacy": jb.algorithms.tsallis_inf},
        jb.environments.bernoulli_losses, horizon=[60, 120], seeds=range(4, 12), checkpoints=20,
        grid={"epsilon": EPSILONS, "environment.means": MEANS},
    )  # fmt: skip
    jb.save(ds, out / "results.nc")
    return out


def by_hand(labels=("a", "b"), seeds=5):
    t = np.array([1, 10, 100])
    values = (1 + np.arange(len(labels)))[:, None, None] * (1 + np.arange(seeds))[:, None] * t**0.5
    return xr.Dataset({"regret": (("algorithm", "seed", "t"), values)}, {"algorithm": list(labels), "t": t})


class Parsed(HTMLParser):
    """The tables of a page by the title above them, its scripts, its addresses and all its text."""

    def __init__(self, path):
        super().__init__()
        self.title, self.tables, self.scripts, self.addresses, self.words, self.where = "", {}, [], [], [], []
        self.feed(Path(path).read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.where.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "action", "data")]
        assert not [name for name, _ in attrs if name.startswith("on")]
        if tag == "h2":
            self.title = ""
        if tag == "tr":
            self.tables.setdefault(self.title, []).append([])
        if tag in ("td", "th"):
            self.tables[self.title][-1].append("")
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        while self.where and self.where.pop() != tag:
            pass

    def handle_data(self, data):
        if "script" in self.where:
            self.scripts[-1] += data
        elif "td" in self.where or "th" in self.where:
            self.tables[self.title][-1][-1] += data
        else:
            self.title += data if "h2" in self.where else ""
            self.words.append(data)

    def rows(self, title):
        head, *rows = self.tables[title]
        return [dict(zip(head, row, strict=True)) for row in rows]


def test_numbers_are_those_of_the_statistics_and_labels_are_text(store, tmp_path, capsys):
    assert main(["report", str(store)]) == 0
    path = store / "report.html"
    assert f"written to {path}" in capsys.readouterr().out and path.stat().st_size < 1_000_000
    assert jb.report(store, tmp_path / "again" / "again.html").read_text(encoding="utf-8").replace(
        str(tmp_path / "again" / "again.html"), str(path)
    ) == path.read_text(encoding="utf-8")
    page, ds = Parsed(path), jb.load(store)
    summary = jb.summary(ds)
    rows = page.rows("Regret at the end")
    assert [row["algorithm"] for row in rows] == summary["algorithm"].tolist() and len(rows) == 36
    means = [f"{float(f'{x:.4g}'):,g}".replace("-", "−") for x in summary["mean"]]
    assert [row["mean regret"] for row in rows] == means
    assert {row["privacy level ε"] for row in rows} == {"0.1", "0.5", "∞"}
    paired, pair = page.rows("Paired differences"), jb.compare(ds, OURS, THEIRS)
    assert (paired[0]["a"], paired[0]["b"]) == (OURS, THEIRS) and len(paired) == 36
    assert float(paired[0]["a − b"].replace("−", "-")) == float(f"{pair['difference'][0]:.4g}")
    holm = jb.statistics.holm(np.concatenate([jb.compare(ds, *sides)["p_value"] for sides in (
        (OURS, THEIRS), (OURS, "no privacy"), (THEIRS, "no privacy"))]))  # fmt: skip
    assert float(paired[0]["p (Holm)"].replace("< ", "")) == pytest.approx(holm[0], rel=0.06)
    charts = json.loads(page.scripts[0])
    curves = charts[0]["series"]
    for one in curves:  # every line ends at its own horizon, in what the summary says
        row = ds.isel(horizon=one["at"][0], epsilon=one["at"][1] or 0, **{"environment.means": one["at"][2]})
        mean = float(row.regret.sel(algorithm=one["label"], t=int(row.horizon)).mean())
        assert [y for y in one["y"] if y is not None][-1] == pytest.approx(mean, rel=1e-4)
    assert len(curves) == 2 * 12 + 4  # without privacy a line does not depend on epsilon
    assert any(chart["ticks"] and ["∞" in text for _, text in chart["ticks"]][-1] for chart in charts)
    # labels are text wherever they stand
    assert len(page.scripts) == 3 and OURS in "".join(page.words) and THEIRS in "".join(page.words)
    source = path.read_text(encoding="utf-8")
    assert "<script>alert" not in source and "<b onclick" not in source
    # what runs is what the policy names, and nothing is loaded
    policy = html.unescape(re.search(r'Security-Policy" content="([^"]+)"', source)[1])
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in page.scripts[1:]]
    assert policy.endswith("script-src " + " ".join(f"'sha256-{d}'" for d in digests))
    assert "default-src 'none'" in policy
    assert page.addresses and all(x.startswith(("#", "data:image/svg+xml;base64,")) for x in page.addresses)


def test_configuration_privacy_and_theory(store):
    (run,) = runs(store)
    settings = config_arguments(tomllib.loads(run.toml), store)
    again = prepare_sweep(settings.pop("algorithms"), settings.pop("environment"), settings, progress=False)
    assert again.config == run.config
    assert [axis.name for axis in again.plan.axes][1:] == ["epsilon", "environment.means"]

    def privacy():
        path = jb.report(store, store / "privacy.html")
        return Parsed(path).rows("Privacy: claimed, spent, audited"), path.read_text(encoding="utf-8")

    rows, text = privacy()
    assert len(rows) == 24 and {row["audited ε at least"] for row in rows} == {"not audited"}
    assert rows[0]["claimed ε"] == rows[0]["spent ε"] == "0.1" and rows[0]["model"] == "central"
    assert "jaxbandits audit FILE.toml --out" in text and "No audit was found" in text
    (store / "audit").mkdir()
    lines = [f'"{rows[0]["algorithm"]}",0.07,False', f'"{rows[1]["algorithm"]}",0.3,True']
    (store / "audit" / "audit.csv").write_text("\n".join(["algorithm,audited,refuted", *lines]), encoding="utf-8")
    rows, text = privacy()
    assert [(row["audited ε at least"], row["refuted"]) for row in rows[:3]] == [
        ("0.07", "no"), ("0.3", "yes"), ("not audited", "–"),
    ]  # fmt: skip
    assert "does not cover all rows" in text
    # exponents: sqrt(K T / epsilon) for the conversion, sqrt(K T log(K T)) / epsilon for local EXP3, no bound without
    ours, theirs, none = np.reshape(tables.exponents(run.ds, run.plan, "t"), (3, -1))
    np.testing.assert_allclose(ours[:4], 0.5)
    assert 0.5 < theirs[0] < 0.7 and np.isnan(none).all()
    over = np.reshape(tables.exponents(run.ds, run.plan, "epsilon"), (3, -1))
    np.testing.assert_allclose(over[0], -0.5), np.testing.assert_allclose(over[1], -1.0)
    # a part of a sweep, or one in another order, is not taken for the whole
    assert runs(run.ds.isel(epsilon=[0]))[0].plan is None and runs(run.ds.isel(epsilon=[2, 1, 0]))[0].plan is None
    assert papers("Neu 2015: `docs/formulas/private_adversarial.md#exp3`. How: `docs/concepts.md`") == "Neu 2015"


def said_of(ds):
    (run,) = runs(ds)
    return headline(run)


def test_the_headline_says_how_many_times_as_much_the_next_one_has():
    assert said_of(by_hand()).startswith(
        "Least mean regret at the end: “a”, 30 ± 19.63 rewards; “b”, which is next, has 2 times (2 to 2) as much."
    )  # every seed of b has twice that of a; 19.63 is Student's t of 4 degrees, 2.776, times 15.81 / sqrt(5)


@pytest.mark.compiles(20)
def test_the_headline_says_what_privacy_costs_only_where_the_sweep_knows():
    a, settings = jb.algorithms, {"horizon": 400, "seeds": 60, "checkpoints": 5, "progress": False}
    parts = {"none": a.kl_ucb, "server": a.dp_klucb, "nobody": partial(a.ldp_exp3, mixing=0.05, learning_rate=0.05)}
    arms, grid = jb.environments.bernoulli_arms(means=[0.2, 0.5, 0.8]), {"epsilon": [0.2, 0.9, 4.0]}
    ds = jb.sweep(parts | {"ucb1": a.ucb1}, arms, grid=grid, **settings)
    final = ds.regret.isel(t=-1)

    def times(label, i, base="none"):
        sides = (final.sel(algorithm=x).isel(epsilon=i).values for x in (label, base))
        ratio, low, high = (float(x) for x in jb.intervals.of_ratio(*sides))
        assert low < ratio < high
        return ratio

    text = said_of(ds)
    found = re.findall(r"([\d.]+) times \(([\d.]+) to ([\d.]+)\)", text)
    wanted = [times(label, i) for i in (1, 0) for label in ("server", "nobody")]
    assert text.startswith("ε = 0.9 costs ") and "At ε = 0.2: " in text and "(“none”, the best of 2)" in text
    assert [float(x) for x, _, _ in found] == [pytest.approx(x, rel=0.06) for x in wanted]
    assert all(float(low) <= float(x) <= float(high) for x, low, high in found)
    assert "in the central model (“server”)" in text and "in the local model (“nobody”)" in text
    # nothing without privacy is known: no part, and one of the user's own, which may be anything
    assert "does not say what privacy costs" in said_of(ds.sel(algorithm=["server", "nobody"]))

    def mine(*, num_arms, horizon):
        return a.kl_ucb(num_arms=num_arms, horizon=horizon)

    own = said_of(jb.sweep({"mine": mine, "server": a.dp_klucb}, arms, grid=grid, **settings))
    assert "without privacy" in own and "does not say what privacy costs" in own and own.startswith("ε = 0.2 costs ")
    # one seed, one value of epsilon: what any sweep says
    for less in (ds.isel(seed=[0]), ds.sel(epsilon=[4.0])):
        assert said_of(less).startswith("Least mean regret at the end: ")
    assert "“ucb1”" in said_of(ds.sel(algorithm=["none", "ucb1"]).isel(epsilon=[0]))
    # regret of the best arm or less has no multiples
    shifted = ds.assign(regret=ds.regret - final.sel(algorithm="none").mean())
    assert " more than the regret without privacy" in said_of(shifted) and " times " not in said_of(shifted)
    # who spends more than is asked is not what epsilon costs
    over = ds.assign_coords(epsilon_spent=ds.epsilon_spent.where(ds.algorithm != "server", 50.0))
    assert "“server”" not in said_of(over) and "“nobody”" in said_of(over)


def test_what_is_asked_and_spent_stands_before_the_curves(tmp_path):
    a = jb.algorithms
    parts = {
        "plain": a.linucb,
        "dice": a.uniform,
        "as published": partial(a.ldp_linucb, preset="reference"),
        "exact": a.ldp_linucb,
    }
    world = partial(jb.environments.contextual_linear, dim=2, num_arms=3)
    settings = {"horizon": 20, "seeds": 2, "checkpoints": 2, "progress": False}
    jb.report(jb.sweep(parts, world, grid={"epsilon": [1.0, 2.0]}, **settings), tmp_path / "spent.html")
    first = (tmp_path / "spent.html").read_text(encoding="utf-8").split("<nav>")[0]
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr><td>.*?</tr>", first)]
    assert [row[0] for row in rows] == ["as published", "exact"] and all(row[2] == "1, 2" for row in rows)
    assert rows[1][3] == "as asked" and rows[0][3].startswith("2.2") and rows[0][1] == "local, one user"
    assert "δ: the probability that is allowed beyond it" in first
    spent = {row["algorithm"]: row["ε spent"] for row in Parsed(tmp_path / "spent.html").rows("Regret at the end")}
    assert (spent["plain"], spent["dice"], spent["exact"]) == ("not private", "0", "2")


def labelled(folder, shares, extra=None, seeds=40):
    """A run in a directory on twelve rows of a file, four classes, with made-up shares of right answers."""
    rows = [f"{i * i / 7:.3f},{i % 4}" for i in range(12)]
    (folder / "people.csv").write_text("\n".join(["age,answer", *rows]))
    features, labels = jb.read_labelled(folder / "people.csv", label="answer")
    world = jb.environments.classification(features=features, labels=labels, dim=2)
    a = jb.algorithms
    parts = {
        "none": a.exp3,
        "server": partial(a.private_batched, epsilon=1.0),
        "nobody": partial(a.ldp_exp3, epsilon=1.0),
    }
    ds = configured(parts | (extra or {}), world, horizon=120, seeds=seeds, checkpoints=3)
    noise = np.random.default_rng(1).normal(0, 6, (1, seeds, 1))
    noise -= noise.mean()
    best, share = 0.3 * ds.t, xr.DataArray(shares, dims="algorithm")
    noise = xr.DataArray(noise, dims=("algorithm", "seed", "t")).isel(algorithm=0, t=0)
    pulls = xr.DataArray(np.full((len(shares), seeds, 4), 30), dims=("algorithm", "seed", "arm"))
    paid = ((share * ds.t) + noise).transpose("algorithm", "seed", "t")
    ds = ds.drop_vars("pulls").assign(best_reward=best, regret=best - paid, pulls=pulls)
    out = folder / "run"
    jb.save(ds.transpose("algorithm", "seed", "t", "arm"), out / "results.nc")
    table = 'name = "classification", path = "people.csv", label = "answer", dim = 2'
    (out / "config.toml").write_text(f'algorithm = "exp3"\nhorizon = 120\nenvironment = {{{table}}}\n')
    return ds, out


def test_of_labelled_rows_a_report_says_the_share_of_right_answers(tmp_path):
    shares = [0.44, 0.36, 0.24]
    ds, out = labelled(tmp_path, shares)
    (run,) = runs(out)
    assert "on classification of people.csv (dim = 2) over 120 plays" in question(run) and "array" not in question(run)
    said = answers_in_words(run)
    assert said.endswith("“none” 44%, “server” 36%, “nobody” 24% and the best fixed arm 30%.")
    # uniform play names a quarter right: the local learner is within its noise, the central one above it
    assert like_uniform(run) == "“nobody” is not told apart from uniform play."
    assert re.match(
        "Least mean regret at the end: “none”, −16.8 ± 1.8[0-9]* right answers, which is better than the best fixed "
        "choice. Share of right", said_of(ds)
    )  # fmt: skip
    table = Parsed(jb.report(out, tmp_path / "table.html"))
    assert [row["right answers"] for row in table.rows("Regret at the end")] == ["44%", "36%", "24%"]
    assert "relative to b" not in table.rows("Paired differences")[0]
    page = jb.report(out, tmp_path / "page.html").read_text(encoding="utf-8")
    assert html.escape(said).replace("&#x27;", "'") in page and "Right answers against plays</h2>" in page
    assert "beside that of the best fixed arm." in page and "“nobody” is not told apart from uniform play." in page
    # uniform play that is there is what is compared with
    _, out = labelled(tmp_path, [*shares, 0.4], {"dice": jb.algorithms.uniform})
    assert like_uniform(runs(out)[0]) == " ".join(f"“{x}” is worse than uniform play." for x in ("server", "nobody"))


def test_regret_below_zero_has_no_slope_and_no_share_of_another(tmp_path):
    """Of three algorithms one earns more than the best arm at the end, another did before the last decade."""
    t = np.array([1, 5, 10, 100])
    lines = np.array([[1, 1, 2, 3], [-2, -1, 1, 9], [1, 2, 3, -3]], float)
    seeds = np.random.default_rng(0).normal(0, 0.1, (3, 40, 1))
    ds = by_hand(["up", "early", "below"])
    ds = xr.Dataset(
        {"regret": (("algorithm", "seed", "t"), lines[:, None] + seeds)}, {"algorithm": ds.algorithm, "t": t}
    )
    page = Parsed(jb.report(ds, tmp_path / "page.html"))
    text = " ".join("".join(page.words).split())
    assert [row["algorithm"] for row in page.rows("Slopes and theory")] == ["up", "early"]
    assert "positive at fewer than two points: “below” against plays t." in text and "{'algorithm'" not in text
    shares = {(row["a"], row["b"]): row["relative to b"] for row in page.rows("Paired differences")}
    assert shares["up", "below"] == shares["early", "below"] == "–" and shares["up", "early"].startswith("−66")
    assert "“below”, −3" in text and "better than the best fixed choice" in text
    with pytest.raises(ValueError, match=r"none below, .* 'below'\} has 0"):
        jb.slope(ds)
    page = Parsed(jb.report(-ds.isel(t=slice(-1, None), algorithm=[0, 1]), tmp_path / "page.html"))
    assert "relative to b" not in page.rows("Paired differences")[0]
    assert "Regret: what the best arm" in " ".join(page.words)


def test_uniform_play_is_known_of_arms_with_means_and_else_nothing_is_said():
    """Means 0.4 and 0.6 over 100 plays: uniform play has a regret of 10."""
    a, arms = jb.algorithms, jb.environments.bernoulli_arms(means=[0.4, 0.6])
    parts = {"none": a.ucb1, "bits": partial(a.ldp_ucb, epsilon=1.0)}
    ds = configured(parts, arms, horizon=100, seeds=9, checkpoints=[100])
    for regret, said in ((9.9, "is not told apart from"), (8.0, ""), (12.0, "is worse than")):
        made = ds.assign(
            regret=ds.regret * 0 + regret + xr.DataArray(np.linspace(-1, 1, 9), dims="seed"), best_reward=0.6 * ds.t
        )
        (run,) = runs(made)
        assert like_uniform(run) == (f"“bits” {said} uniform play." if said else "")
        assert answers_in_words(run) == "" and like_uniform(run._replace(plan=None)) == ""


def test_curves_look_as_in_the_pictures():
    ds = by_hand([f"a{i}" for i in range(12)])
    chart, styles = curves.regret_over_plays(ds), drawing.styles_of([f"a{i}" for i in range(12)])
    assert {look["mark"] for look in chart["looks"].values()} == set(drawing.MARKERS)
    for label, style in styles.items():
        look = chart["looks"][label]
        assert (look["colour"], look["mark"], bool(look["dash"])) == (
            style["color"], style["marker"], style["linestyle"] != "-",
        )  # fmt: skip
    assert not chart["xLog"] and not chart["yLog"] and chart["linear"] is None
    # values of a key rise, and each keeps its regret: of 10 to 50 once and three times
    falling = xr.concat([(x * by_hand(["a"])).assign_coords(gap=x) for x in (3.0, 1.0)], "gap")
    chart = curves.against(selection.whole(falling, "report"), "gap")
    assert (chart["x"], chart["series"][0]["y"]) == ([1, 3], [30, 90])
    assert chart["ticks"] == [[1, "1"], [3, "3"]]
    spread = curves.distribution(selection.whole(by_hand(["a"]), "report"))  # of 10, 20, 30, 40 and 50
    at = [(spread["x"][i], spread["series"][0]["y"][i]) for i in (0, 25, 45, 50)]
    assert at == [(0, 10), (0.5, 30), (0.9, 46), (1, 50)]
    far = ds.assign(regret=ds.regret * xr.DataArray([1, 100] * 6, dims="algorithm"))
    assert curves.regret_over_plays(far)["linear"] == 10.0 and curves.regret_over_plays(far)["yLog"]
    assert not curves.regret_over_plays(far)["xLog"]


def test_what_a_report_makes_of_less(store, tmp_path, monkeypatch):
    """One seed, a Dataset that says nothing of itself, an algorithm of the user's own, several sweeps, a selection."""

    def mine(*, num_arms, horizon):
        return jb.algorithms.ldp_ucb(num_arms=num_arms, horizon=horizon, epsilon=1.0)

    arms = jb.environments.bernoulli_arms(means=[0.2, 0.8])
    own = configured({"mine": mine}, arms, horizon=20, seeds=1, checkpoints=5)
    hand = by_hand([f"algorithm {i}" for i in range(9)])
    part = jb.load(store).isel(epsilon=0, algorithm=[0])
    path = jb.report({"own": own, "by hand": hand, "part": part, "whole": store}, tmp_path / "all.html", title="A & B")
    page = Parsed(path)
    text = " ".join("".join(page.words).split())
    assert "A & B" in page.words and "The Dataset does not say how it was computed." in text
    assert "a report runs no code of yours" in text and "jaxbandits audit MODULE:FACTORY" in text
    assert {row["sweep"] for row in page.rows("Regret at the end")} == {"own", "by hand", "part", "whole"}
    slopes = [row for row in page.rows("Slopes and theory") if row["sweep"] == "by hand"]
    assert [row["slope"] for row in slopes] == ["0.5"] * 9 and {row["theory"] for row in slopes} == {"–"}
    assert sum(row["sweep"] == "by hand" for row in page.rows("Paired differences")) == 8  # with the first one only
    assert "jb.report({" in text and path.stat().st_size < 1_500_000
    monkeypatch.setattr(curves, "MAX_CHART_NUMBERS", 400)
    many = xr.concat([by_hand(seeds=2).assign_coords(gap=x) for x in range(40)], "gap")
    chart = curves.regret_over_plays(selection.whole(many, "report"))
    assert chart["note"] == "The page has room for 3 of 40 values of gap." and len(chart["series"]) == 6


def test_wrong_calls_are_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir(), Path("folder.html").mkdir(), Path("file").write_text("")
    for given, path, message in (
        (by_hand(), "page.pdf", "does not end in .html"),
        (by_hand(), "folder.html", "is a directory"),
        (by_hand(), "file/page.html", "cannot write there"),
        (by_hand(), 3, "must be the name of a file"),
        ("nothing", "page.html", "no such file"),
        ("empty", "page.html", "no results.nc there"),
        (by_hand().regret, "page.html", "ds is <xarray.DataArray"),
        (by_hand().drop_vars("regret"), "page.html", "without regret"),
        (by_hand().mean("seed"), "page.html", "no 'seed' any more"),
        ({}, "page.html", "holds no sweep"),
        (["empty", "empty"], "page.html", "different names"),
        (7, "page.html", "a run's directory"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            jb.report(given, path)
    assert not Path("page.html").exists()


@pytest.mark.planted("a page of a report", "a script that fails, a lost image, text too wide")
@pytest.mark.skipif(CHROMIUM is None, reason=WITHOUT)
@pytest.mark.pages
def test_a_browser_finds_nothing_wrong(store, tmp_path):
    path = jb.report(store, tmp_path / "page.html")
    with browser() as page:
        page.open(path, width=390)
        assert faults(page) == [] and page.errors == [] and page.run("document.documentElement.dataset.ready") == "yes"
        assert page.run("document.images.length") == 3
        assert page.run("document.querySelectorAll('b, [onclick]').length") == 0
        charts = "document.querySelectorAll('.chart')"
        assert page.run(f"[...{charts}].every((c) => c.querySelector('canvas').width > 200)")
        # a click sorts, a second one the other way round
        page.run("document.querySelectorAll('#table th button')[5].click()")
        column = "[...document.querySelectorAll('#table tbody tr')].map((row) => Number(row.cells[5].dataset.order))"
        rising = page.run(column)
        assert rising == sorted(rising) and len(set(rising)) > 1
        page.run("document.querySelectorAll('#table th button')[5].click()")
        assert page.run(column) == rising[::-1]
        # a name takes its curve away and brings it back; the grid's keys choose the curves
        drawn = "document.querySelector('#regret canvas').toDataURL()"
        button = "document.querySelector('#regret .legend button')"
        before = page.run(drawn)
        page.run(f"{button}.click()")
        assert page.run(drawn) != before and page.run(f"{button}.getAttribute('aria-pressed')") == "false"
        page.run(f"{button}.click()")
        assert page.run(drawn) == before
        said = page.run(f"{button}.textContent")
        page.run("(() => { const s = document.querySelectorAll('#regret select')[1]; s.value = 2; "
                 "s.dispatchEvent(new Event('change')); })()")  # fmt: skip
        assert page.run(f"{button}.textContent") != said
        # no table is cut on a wide screen
        page.open(path, width=1100)
        cut_off = "[...document.querySelectorAll('.scroll, table.spent')].filter((x) => x.scrollWidth > x.clientWidth)"
        assert page.run(f"{cut_off}.map((x) => x.closest('section').id)") == []
        # wide and dark, then printed
        page.open(path, width=1280, dark=True)
        assert faults(page) == [] and page.run("getComputedStyle(document.body).backgroundColor") == "rgb(22, 23, 24)"
        page.pdf(tmp_path / "page.pdf")
        assert page.errors == [] and (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    # the checker sees planted faults
    broken = tmp_path / "broken.html"
    wide = "<p style='width: 900px'>wide</p>"
    broken.write_text(f"<img alt=gone src=gone.png>{wide}<script>throw Error('thrown')</script>")
    errors = " ".join(page_errors(broken, 390, "['and one more']"))
    for fault in ("thrown", "ERR_FILE_NOT_FOUND", "no image: gone", "wider than the window", "and one more"):
        assert fault in errors


def test_a_report_of_one_arm_s_plays_has_no_chart_of_arms(tmp_path):
    ds = jb.sweep("ucb1", jb.environments.bernoulli_arms(means=[0.2, 0.7]), horizon=50, seeds=3, progress=False)
    texts = [jb.report(chosen, tmp_path / "page.html").read_text() for chosen in (ds, ds.sel(arm=0))]
    assert ["plays of the arm" in text for text in texts] == [True, False]


def run_of(ds, algorithms, plan=None):
    config = {"algorithms": {x: {"name": y} for x, y in algorithms.items()}}
    return ReportRun("x", ds, None, config, "", "", {}, plan, "", None)


def test_settings_in_which_a_learner_is_no_better_than_uniform_play():
    """Regret 4, 10 and 16 beside 10; and 12, where uniform play loses 0.1 a play of 100."""
    lanes, noise = np.array([[4.0], [10.0], [16.0]]), np.linspace(-1, 1, 9)
    coords = {"algorithm": ["bits", "dice"], "k": [1, 2, 3], "seed": range(9), "t": [50]}
    regret = np.stack([lanes + noise, 10 + 0 * (lanes + noise)])[..., None]
    private = {"guarantees": json.dumps({"bits": {}})}
    ds = xr.Dataset({"regret": (tuple(coords), regret)}, coords, private)
    run = run_of(ds, {"bits": "ldp_ucb", "dice": "uniform"})
    assert like_uniform(run) == "“bits” is not told apart from uniform play at 2 of 3 settings."
    outer = run._replace(ds=run.ds.isel(k=[0, 2]))
    assert like_uniform(outer) == "“bits” is worse than uniform play at 1 of 2 settings."
    assert words_of._least(run) == "Least mean regret at the end: “bits” at 2 and “dice” at 1 of 3 points of the grid."
    coords = {"algorithm": ["bits"], "k": [100, 200], "seed": range(9), "t": [100]}
    regret = np.full((1, 2, 9, 1), 12.0) + noise[:, None]
    ds = xr.Dataset({"regret": (tuple(coords), regret), "best_reward": ("t", [60.0])}, coords, private)
    facts = SimpleNamespace(environment=SimpleNamespace(facts={"means": [0.4, 0.6]}))
    run = run_of(ds, {"bits": "ldp_ucb"}, SimpleNamespace(cells=[facts]))
    assert like_uniform(run) == "“bits” is worse than uniform play."
    for key in ("horizon", "point", "environment.gap"):
        assert like_uniform(run._replace(ds=ds.rename(k=key))) == ""


def test_who_spends_more_at_one_epsilon_says_nothing_of_growth():
    x = np.array([0.5, 4.0])
    spent = {"as asked": x, "more at 4": np.array([0.5, 8.0]), "less": x / 4, "server": x}
    models = dict.fromkeys(spent, "local") | {"server": "central"}
    found = words_of.Privates(x, None, [], models, spent, "rewards")
    assert words_of._of_model(found, "local", 0) == ["as asked", "more at 4", "less"]
    assert words_of._of_model(found, "local", 0, 1) == words_of._of_model(found, "local", 1) == ["as asked", "less"]


def test_the_theory_of_a_report_is_that_of_the_arguments():
    a, linear = jb.algorithms, {"dim": 5, "horizon": 1000, "epsilon": 2.0}
    arms = {"num_arms": 8, "horizon": 1000, "epsilon": 0.25}
    agents = {"num_agents": 10, "horizon": 2000, "dim": 4, "corruption_bound": 0.2}
    tree, of_tree = agents | {"epsilon": 4.0, "delta": 1e-3, "privacy": "tree"}, (10, 2000, 4, 4.0, 1e-3)
    more = {"corruption_bound": 0.05, "moment_order": 3.0, "moment_bound": 2.0}
    tails = arms | more | {"mean_bound": 10.0}
    for name, known, bound in (
        ("private_batched", {"base": a.htinf} | arms, theory.arms_rates(8, 1000, 0.25)["conversion"]),
        ("private_batched", {"base": a.exp3} | arms, theory.exp3_corrected_bound(8, 1000, 0.25)),
        ("private_batched", {"base": a.ftpl} | arms, theory.ftpl_bound(8, 1000, 0.25)),
        ("prm_elimination", {"moment": "raw"} | tails, theory.prm_raw_bound(8, 1000, 0.25, **more)),
        ("prm_elimination", {"moment": "central"} | tails, theory.prm_central_bound(8, 1000, 0.25, 10.0, **more)),
        ("byzantine_ucb", {"privacy": None, "aggregate": "geometric_median"} | agents,
            theory.byzantine_ucb_bound(10, 2000, 4)),
        ("byzantine_ucb", {"privacy": None, "aggregate": "krum"} | agents, None),
        ("byzantine_ucb", {"aggregate": "geometric_median"} | tree, theory.byzantine_ucb_dp_bound(*of_tree)),
        ("byzantine_ucb", {"aggregate": "median_of_means"} | tree,
            theory.byzantine_ucb_dp_mom_bound(*of_tree, corruption_bound=0.2)),
        ("robust_elimination", {"model": "M1", "corruption_bound": 0.1} | linear,
            theory.robust_linear_reward_bound(5, 1000, 2.0, corruption=0.1)),
        ("robust_elimination", {"model": "M1", "corruption_bound": 0.0} | linear,
            theory.robust_linear_reward_bound(5, 1000, 2.0)),
        ("robust_elimination", {"model": "M2", "corruption_bound": 0.0} | linear,
            theory.robust_linear_action_bound(5, 1000, 2.0)),
        ("robust_elimination", {"model": "M2", "corruption_bound": 0.1} | linear, None),
    ):  # fmt: skip
        function = tables.BOUNDS[name](known)
        assert (None if function is None else function(known | {"name": name})) == bound, (name, known)


def test_a_base_of_ones_own_is_ones_own():
    assert not is_own({"name": "private_batched", "label": "batches", "base": {"name": "exp3", "mixing": 0.1}})
    nested = ["exp3", {"name": "doubling", "base": "theirs:b"}]
    for base in ("theirs:b", {"name": "exp3", "learner": "theirs:b"}, nested):
        assert is_own({"name": "private_batched", "base": base})


def test_a_configuration_as_a_file_leaves_nothing_out():
    values = ("algorithm", "epsilon", "gap", "seed", "t"), np.zeros((2, 2, 2, 1, 1))
    ds = xr.Dataset({"regret": values}, {"algorithm": ["b", "a"], "epsilon": [0.1, 1.0], "gap": ["hard", "easy"]})
    same = {"horizon": 60, "seeds": [0, 4], "checkpoints": 9, "dtype": "float64"}
    same |= {"environment": {"name": "bernoulli_arms"}, "reward_adversary": {"name": "huber", "corruption": 0.1}}
    learners = {"a": {"name": "ucb1"}, "b": {"name": "ldp_ucb", "epsilon": "inf"}}
    gaps, both = {"easy": [0.1, 0.9], "hard": [0.4, 0.6]}, [[0.1, 1], [1.0, 2]]
    grid = {"gap": gaps, "epsilon+b.window": both}
    raw = as_raw(same | {"message_adversary": None, "points": None, "algorithms": learners, "grid": grid}, ds)
    assert raw == same | {
        "algorithm": [{"label": "b", "name": "ldp_ucb", "epsilon": math.inf}, {"label": "a", "name": "ucb1"}],
        "tied": [{"keys": ["epsilon", "b.window"], "values": both}], "grid": {"gap": gaps},
    }  # fmt: skip
    assert list(raw["grid"]["gap"]) == ["hard", "easy"]


def test_an_audit_is_of_the_label_that_it_names():
    claims = {key: {"model": "local", "unit": "reward", "epsilon": 1.0} for key in ("mine", "mine 2")}
    ds = by_hand([*claims]).assign_attrs(guarantees=json.dumps(claims))
    rows = {"algorithm": ["mine, epsilon = 1.0", "mine 2"], "audited": [0.5, 0.7], "refuted": [False, True]}
    lines = ledgers._lines(run_of(ds, {})._replace(audit=pd.DataFrame(rows)))
    assert [(line[0], *line[-2:]) for line in lines] == [("mine, epsilon = 1.0", 0.5, "no"), ("mine 2", 0.7, "yes")]


def test_plot_hands_on_what_the_file_says_and_a_strangers_provenance_is_said(tmp_path, monkeypatch):
    jb.save(by_hand(), tmp_path / "results.nc")
    (tmp_path / "config.toml").write_text('caption = "two arms"\n[figure]\ndotted = {b = "a"}\n')
    told = []
    monkeypatch.setattr(output, "draw", lambda ds, place, **given: told.append(given) or [])
    assert main(["plot", str(tmp_path), "--format", "pdf", "--reward", "--against", "seed"]) == 0
    figure = {"dotted": {"b": "a"}, "reward": True, "against": "seed"}
    assert told == [{"formats": ("pdf",), "figure": figure, "caption": "two arms"}]
    ds = by_hand()
    for digest, said in (("other", True), (output.regret_digest(ds), False)):
        facts = dict(write._facts(run_of(ds, {})._replace(provenance={"sha256": {"regret": digest}})))
        assert ("describes another result" in facts.get("SHA-256 in provenance.json", "")) == said


def test_two_keys_of_which_the_first_has_more_values_than_panels_are_drawn(tmp_path):
    coords = {"algorithm": ["a"], "epsilon": np.arange(1.0, 9), "k": [1, 2], "seed": range(3), "t": [5, 10]}
    values = np.random.default_rng(0).random((1, 8, 2, 3, 2))
    paths = output.draw(xr.Dataset({"regret": (tuple(coords), values)}, coords), tmp_path, formats=["png"])
    assert [path.name for path in paths] == ["regret.png", "against_epsilon.png"]


def test_names_that_would_be_one_are_told_apart(tmp_path):
    """Labels of runs, and keys called as our own columns are."""
    for pair in (("run 1", "run  1"), (1, "1"), (None, "None")):
        with pytest.raises(ValueError, match="two labels are both written"):
            write.report(dict.fromkeys(pair, by_hand()), tmp_path / "r.html")
    for key in ("interval", "quantiles", "over", "counted", "sweep"):
        ds = xr.concat([by_hand(), by_hand()], pd.Index([1.0, 2.0], name=key)).transpose("algorithm", key, ...)
        ds["fallbacks"] = ("algorithm", key, "seed"), np.ones((2, 2, ds.sizes["seed"]))
        page = write.report({"one": ds, "two": ds}, tmp_path / "r.html").read_text()
        assert f">{key}<" in page and ">95% interval<" in page


def test_regret_has_its_unit_and_one_seed_no_interval(tmp_path):
    ds = by_hand()
    ds["regret"].attrs |= {"units": "reward", "long_name": "cumulative regret"}
    page = write.report(ds, tmp_path / "r.html").read_text()
    for words in ("cumulative regret", "regret at the end"):
        assert json.dumps(f"{words} (in\u00a0rewards)").strip('"') in page or f"{words} (in\u00a0rewards)" in page
    assert headline(run_of(ds.isel(seed=[0]), {})).split(" rewards")[0].count("±") == 0
    assert " ± " in headline(run_of(ds, {}))


def test_names_in_tables_of_ours_are_texts(tmp_path):
    (tmp_path / "offline.csv").write_text("policy,value,low,high\nNone,0.5,,1\n007,0.25,0,inf\n")
    (run,) = runs(tmp_path)
    assert run.offline["policy"].tolist() == ["None", "007"] and run.offline["value"].tolist() == [0.5, 0.25]
    assert np.isnan(run.offline["low"][0]) and run.offline["high"].tolist() == [1, np.inf]


def test_what_an_adversary_sends_is_spent_in_the_table_of_privacy_too(tmp_path):
    """Rewards outside the range of which the noise was drawn: the ledger alone does not know of them."""
    fixed = jb.environments.linear_arms(actions=[[1, 0], [0, 1]], theta=[0.5, 0.1], noise="rademacher")
    private = partial(jb.algorithms.private_elimination, num_batches=2)
    settings = {"horizon": 64, "seeds": 1, "checkpoints": 2, "grid": {"epsilon": [0.5, 1.0]}, "progress": False}
    for attack, spent in (
        (None, [0.5, 1.0]),
        (partial(jb.adversaries.huber, kind="fixed", value=10.0), [math.inf] * 2),
    ):
        given = {} if attack is None else {"reward_adversary": partial(attack, corruption=0.1)}
        (run,) = runs(jb.sweep(private, fixed, **settings, **given))
        assert [line[4] for line in ledgers._lines(run)] == spent == run.ds.epsilon_spent.values.ravel().tolist()


def test_keys_are_not_rounded_into_one(tmp_path):
    ds = by_hand(seeds=3)
    for values, shown in (
        ([20240101, 20240102], ["20,240,101", "20,240,102"]),
        ([0.9999, 0.99999], ["0.9999", "0.99999"]),
    ):
        both = xr.concat([ds, ds], pd.Index(values, name="decay")).transpose("algorithm", "decay", ...)
        page = Parsed(write.report(both, tmp_path / "r.html"))
        said = " ".join(page.words)
        assert all(text in said for text in shown) and "20.24M" not in said
        assert f"({', '.join(shown)})?" in said
