"""Reproductions: the machinery on small studies, papers' statistics against literal NumPy, quick sizes end to end."""

import contextlib
import datetime
import math
import os
import re
from functools import partial
from pathlib import Path

import ground_figures
import numpy as np
import pandas as pd
import pytest
import reproduce as into_pages
import study_tables as pages
import verdicts
import xarray as xr
from dealt import others
from PIL import Image

import jaxbandits as jb
from jaxbandits import papers
from jaxbandits.cli import main
from jaxbandits.papers import beside as own_beside
from jaxbandits.papers import study as machinery
from jaxbandits.papers import verdicts as claim_records
from jaxbandits.papers.private_adversarial import exp3_leak, experts_map, lower_bound
from jaxbandits.papers.robust_linear import breakdown
from jaxbandits.papers.shared import exponent, ratio_interval
from jaxbandits.papers.study import Claim, Exact, Interval, Sweep, Tuning, claims_table, judge_claim, reproduce
from jaxbandits.reports import layout
from jaxbandits.sweeps.compilation import compiled as compilation
from jaxbandits.sweeps.engines.local import Local

a, e = jb.algorithms, jb.environments
SETTINGS = {
    "algorithms": {"EXP3": partial(a.private_batched, base=partial(a.exp3, mixing=0.05)), "ucb": a.ucb1},
    "environment": partial(e.fixed_gap_losses, num_arms=3), "horizon": 60, "seeds": 8, "checkpoints": 1,
    "grid": {"environment.gap": [0.1, 0.5], "epsilon": [1.0, 0.1]},
}  # fmt: skip
RATES = [0.001, 0.1, 5.0]


def tuning(**changes):
    return Tuning({"EXP3": {"base.learning_rate": RATES}}, range(100, 108), **changes)


def small_study(**changes):
    return machinery.Study(
        "a title", "a source", lambda full: {"one": Sweep(SETTINGS | {"seeds": 12 if full else 8}, tuning())},
        {"curve": lambda r: jb.plot.against(r["one"].isel({"environment.gap": 0}), "epsilon")},
        lambda r: [Claim("regret", "finite", f"{float(r['one'].regret.mean()):.1f}", Exact(1.0, at_least=1.0))],
        **changes,
    )  # fmt: skip


def test_tuned_values_are_those_of_least_regret_on_the_tuning_seeds(tmp_path):
    ds, chosen = machinery.run_sweep(Sweep(SETTINGS, tuning()), tmp_path, progress=False)
    plain = {"progress": False, **SETTINGS, "algorithms": {"EXP3": SETTINGS["algorithms"]["EXP3"]}}
    grid = SETTINGS["grid"] | {"base.learning_rate": RATES}
    tried = jb.sweep(**plain | {"seeds": range(100, 108), "grid": grid}).regret.isel(t=-1, algorithm=0).mean("seed")
    assert ds.regret.dims == ("algorithm", "environment.gap", "epsilon", "seed", "t")
    assert ds["epsilon"].values.tolist() == [1.0, 0.1] and len(chosen) == 4
    for row in chosen.to_dict("records"):
        at = {"environment.gap": row["environment.gap"], "epsilon": row["epsilon"]}
        assert row["base.learning_rate"] == tried.sel(at).idxmin().item() and row["mean"] == tried.sel(at).min().item()
        assert row["edge"] == (row["base.learning_rate"] in (0.001, 5.0))
        chosen_at = at | {"base.learning_rate": row["base.learning_rate"]}
        again = jb.sweep(**plain | {"grid": {key: [value] for key, value in chosen_at.items()}})
        alone = again.regret.isel(algorithm=0).squeeze(drop=True)
        np.testing.assert_array_equal(ds.regret.sel(at).sel(algorithm="EXP3"), alone.values[:, None])


def test_an_unknown_key_is_tuned_for_its_worst_value(tmp_path):
    _, chosen = machinery.run_sweep(Sweep(SETTINGS, tuning(unknown=("environment.gap",))), tmp_path, progress=False)
    assert chosen["epsilon"].tolist() == [1.0, 0.1] and "environment.gap" not in chosen
    one, grid = {"EXP3": SETTINGS["algorithms"]["EXP3"]}, SETTINGS["grid"] | {"base.learning_rate": RATES}
    plain = SETTINGS | {"algorithms": one, "seeds": range(100, 108), "progress": False}
    tried = jb.sweep(**plain | {"grid": grid}).regret.isel(t=-1, algorithm=0)
    expected = tried.mean("seed").max("environment.gap").idxmin("base.learning_rate")
    assert chosen["base.learning_rate"].tolist() == expected.values.tolist()


def test_keys_that_concern_one_label_only(tmp_path):
    """An axis whose keys feed different algorithms: each tuning takes its own."""
    experts = partial(a.bandit_to_experts, base=partial(a.private_batched, base=a.htinf))
    made = {"experts": experts, "local": partial(a.local_exp4, mixing=0.1)}
    environment = e.rotating_experts(losses=e.fixed_gap_losses(num_arms=3), num_experts=4)
    grid = {("epsilon", "experts.base.epsilon"): [0.1, 1.0]}
    settings = SETTINGS | {"algorithms": made, "environment": environment, "grid": grid}
    grids = {"experts": {"base.base.tail_scale": [0.5, 2.0]}, "local": {"learning_rate": [0.01, 0.1]}}
    ds, chosen = machinery.run_sweep(Sweep(settings, Tuning(grids, range(50, 54))), tmp_path, progress=False)
    assert ds.regret.dims == ("algorithm", "epsilon", "seed", "t")
    assert chosen["algorithm"].tolist() == ["experts", "experts", "local", "local"]
    assert chosen["epsilon"].tolist() == [0.1, 1.0] * 2


def test_bad_tunings_say_so(tmp_path):
    for changes, given, message in (
        ({}, tuning()._replace(seeds=range(4, 20)), "meets seeds = "),
        ({"horizon": [30, 60]}, tuning(), "one horizon"),
        ({}, tuning(unknown=("gap",)), "no axis of over"),
    ):
        with pytest.raises(ValueError, match=message):
            machinery.run_sweep(Sweep(SETTINGS | changes, given), tmp_path, progress=False)


def test_a_reproduction_that_was_interrupted_goes_on_and_writes_everything(tmp_path, monkeypatch):
    def breaks(*given, **named):  # the tuning is done, the report is not
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(machinery, "report_sweep", breaks)
        reproduce(small_study(), tmp_path, progress=False)
    home = tmp_path / "quick"
    kept = {path: path.stat().st_mtime_ns for path in home.rglob("*.npz")}
    assert kept
    done = reproduce(small_study(), tmp_path, formats=("png", "pdf"), progress=False)
    names = {"curve.png", "curve.pdf", "curve.csv", "claims.csv", "claims.md", "one_tuning.csv"}
    assert {path.name for path in done.paths} == names <= {path.name for path in home.iterdir()}
    assert pd.read_csv(home / "claims.csv").columns.tolist() == ["statement", "paper", "measured", "holds"]
    kept |= {path: path.stat().st_mtime_ns for path in home.rglob("*.npz") if path not in kept}
    monkeypatch.setattr(Local, "run", lambda *args, **kwargs: pytest.fail("computed again"), raising=True)
    again = reproduce(small_study(), tmp_path, progress=False)
    xr.testing.assert_identical(again.results["one"], done.results["one"])
    assert all(path.stat().st_mtime_ns == at for path, at in kept.items())


OWN = """
from functools import partial
from jaxbandits import algorithms as a

mine = partial(a.ldp_exp3, learning_rate=0.1, mixing=0.05)
flat = a.uniform
features = a.linucb
"""


def test_own_algorithms_stand_beside_a_figure_and_nothing_else_is_computed(tmp_path, monkeypatch, capsys):
    """Through the command line: one that takes the grid's epsilon, and one that does not."""
    name, home = "private-adversarial/exp3-leak", tmp_path / "out"
    monkeypatch.setattr(papers, "find", lambda given: {name: small_study()})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_of_papers.py").write_text(OWN)
    plain = reproduce(small_study(), home, progress=False)
    kept = {path: path.read_bytes() for path in (home / "quick").glob("c*.*")}
    computed, run = [], Local.run

    def note_labels(engine, laid_out, remaining, machine, orders):
        computed.extend(laid_out.cells[cell].label for call in remaining.calls for cell in call.cells)
        run(engine, laid_out, remaining, machine, orders)

    monkeypatch.setattr(Local, "run", note_labels)
    command = ["reproduce", name, "--out", str(home), "--quiet", "--with", "own_of_papers:mine"]
    assert main([*command, "--with", "own_of_papers:flat"]) == 0
    assert set(computed) == {"mine", "flat"}
    said, place = capsys.readouterr().out, home / "quick/with-mine-flat"
    assert claims_table(plain.claims, judged=False) in said and (place / "curve.png").stat().st_size > 5000
    assert {path: path.read_bytes() for path in kept} == kept  # the study's own claims and picture
    # the picture has every published line as it was, and both of ours
    drawn, published = pd.read_csv(place / "curve.csv"), pd.read_csv(home / "quick/curve.csv")
    ours = drawn["algorithm"].isin(["mine", "flat"])
    pd.testing.assert_frame_equal(drawn[~ours].reset_index(drop=True), published)
    assert drawn[ours].groupby("algorithm")["centre"].nunique().to_dict() == {"flat": 1, "mine": 2}
    # what is told of ours is what a sweep of it alone gives
    ours = {"mine": partial(a.ldp_exp3, learning_rate=0.1, mixing=0.05)}
    alone = jb.summary(jb.sweep(**SETTINGS | {"algorithms": ours}, progress=False))
    table = pd.read_csv(place / "own.csv").query("algorithm == 'mine'")
    np.testing.assert_allclose(table["mean"], alone["mean"], rtol=1e-12)
    row = alone.iloc[-1]
    words = f"| mine | one | environment.gap = 0.5, epsilon = 0.1 | {row['mean']:.3g} [{row['ci_low']:.3g}, "
    assert words in said
    computed.clear()
    assert main(command) == 0 and computed == []
    assert "| flat |" not in capsys.readouterr().out and (home / "quick/with-mine/curve.png").exists()


def test_an_own_algorithm_that_cannot_play_is_refused_before_anything_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_refused.py").write_text(OWN)
    for study, factory, words in (
        ("private-adversarial/below-root", "features", ["linucb reads dim features", "plays on contextual_linear"]),
        ("private-adversarial/lemmas", "flat", ["nothing is simulated there"]),
        ("private-robust-mab/outliers", "mine", ["needs epsilon", "partial(jb.algorithms.ldp_exp3, epsilon=...)"]),
        ("private-robust-mab/outliers", "none", ["cannot load 'own_refused:none'"]),
    ):  # fmt: skip
        assert main(["reproduce", study, "--with", f"own_refused:{factory}", "--out", "out"]) == 2
        said = capsys.readouterr().err
        assert all(word in said for word in [f"own_refused:{factory}", *words]) and said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_own_algorithms_get_what_the_grid_gives_others_where_it_is_one_value():
    """`private_batched` takes `window`, `epsilon` and a base's `mixing`."""
    own = {"own": jb.recipe.recipe_of(partial(a.private_batched, base=a.exp3))}
    published = {"A": a.private_batched, "B": a.private_batched, "C": partial(a.private_batched, base=a.exp3)}

    def widened(**grid):
        settings = {"algorithms": published, "environment": e.fixed_gap_losses, "horizon": 60, "seeds": 2}
        return own_beside.widen_sweep(Sweep(settings | grid), own).settings

    one = widened(grid={("A.window", "B.epsilon"): {"few": (3, 0.1), "many": (9, 1.0)}, "environment.gap": [0.1]})
    keys = ("A.window", "B.epsilon", "own.window", "own.epsilon")
    assert one["grid"] == {keys: {"few": (3, 0.1, 3, 0.1), "many": (9, 1.0, 9, 1.0)}, ("environment.gap",): {0.1: 0.1}}
    assert list(one["algorithms"]) == ["A", "B", "C", "own"]
    # two labels that differ tell nothing of a third; a key without a label reaches it by itself
    for grid in ({("A.epsilon", "B.epsilon"): [(0.1, 0.2)]}, {("epsilon", "A.window"): [0.1]}, {"epsilon": [0.1]}):
        assert not any("own.epsilon" in keys for keys in widened(grid=grid)["grid"])
    alike = widened(grid={("A.epsilon", "B.epsilon"): [0.1, 1.0], "C.base.mixing": [0.2]})["grid"]
    assert alike == {
        ("A.epsilon", "B.epsilon", "own.epsilon"): {0.1: (0.1,) * 3, 1.0: (1.0,) * 3},
        ("C.base.mixing", "own.base.mixing"): {0.2: (0.2, 0.2)},
    }
    assert widened(points=[{"A.epsilon": 0.1}])["points"] == [{"A.epsilon": 0.1, "own.epsilon": 0.1}]


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A study of full size, and where it was run."""
    home = tmp_path_factory.mktemp("run")
    study = small_study(computed=lambda full: {"number": 7 if full else 3})
    return reproduce(study, home, full=True, progress=False), home


def test_full_and_quick_have_their_own_directories_results_and_verdicts(full, tmp_path):
    done, home = full
    quick = reproduce(small_study(computed=lambda full: {"number": 7 if full else 3}), tmp_path, progress=False)
    assert (quick.results["number"], done.results["number"]) == (3, 7) and done.results["one"].sizes["seed"] == 12
    assert quick.claims[0].holds is None and (tmp_path / "quick" / "claims.md").read_text().rstrip().endswith("| - |")
    assert done.claims[0].holds is True and (home / "full" / "claims.md").read_text().rstrip().endswith("| yes |")


def test_the_table_of_claims():
    first = Claim("a|b", "1", "2", Exact(1.0, at_least=2.0))
    claims = [first, Claim("c", "", "3"), Claim("d", "4", "5", Exact(1, 1, 1))]
    rows = claims_table([*claims, Claim("e", "6", "7")]).splitlines()
    assert rows[2] == "| a\\|b | 1 | 2 | **no** |" and rows[3].endswith("| 3 |  |") and rows[4].endswith("| yes |")
    assert rows[5] == "| e | 6 | 7 | - |"
    rows = claims_table(claims, lambda statement: "Lemma 1: fails" if statement == "d" else "").splitlines()
    assert rows[0] == "|  | the paper says | we measure | here | the claim |"
    assert rows[4] == "| d | 4 | 5 | yes | Lemma 1: fails |" and rows[3] == "| c |  | 3 |  |  |"


def test_a_verdict_follows_from_what_could_contradict_the_statement():
    for evidence, verdict in (
        (Exact(0.99995, 0.99995 - 5e-7, 0.99995 + 5e-7), True),
        (Exact(0.9999, 0.99995 - 5e-7, 0.99995 + 5e-7), False),
        (Interval("ratio", 1.1, 1.4, at_most=1.5), True),
        (Interval("ratio", 1.4, 1.6, at_most=1.5), None),  # the interval meets the constant
        (Interval("ratio", 1.6, 1.8, at_most=1.5), False),
        (Interval("ratio", 0.9, 1.1, 0.8, 1.2), True),
        (Interval("ratio", 0.7, 0.79, 0.8, 1.2), False),
        (Interval("an attack's lower bound", 0.0, math.inf, at_most=1.0), None),  # it can refute and not confirm
        (Interval("an attack's lower bound", 1.1, math.inf, at_most=1.0), False),
        (None, None),
    ):
        claim = Claim("s", "the paper", "m", evidence)
        assert judge_claim(claim, full=True).holds is verdict and judge_claim(claim, full=False).holds is None


def test_a_verdict_shows_its_decisive_interval_and_a_quick_run_shows_it_without_one():
    for full in (True, False):
        mean = judge_claim(Claim("s", "the paper", "m", Interval("ratio", 1.234, 1234.5, at_most=1e4)), full=full)
        assert mean.measured == "m; ratio [1.23, 1,234]" and mean.holds is (True if full else None)
    held = [Interval("a", -9, -2, at_most=0), Interval("b", -5, -1, at_most=0)]
    undecided, refuted = Interval("c", -1, 1, at_most=0), Interval("d", 1, 2, at_most=0)
    for more, name in (([], "b"), ([undecided], "c"), ([undecided._replace(high=9), refuted], "d")):
        assert machinery.decisive([*held, *more]).what == name


def curves(slopes, values=(10, 100, 1000, 10_000, 100_000), seeds=200, noise=0.1):
    """Regret along a horizon whose local log-log slopes are given, with a lognormal factor a seed."""
    rng, ends = np.random.default_rng(0), np.log(values)
    mean = np.exp(np.concatenate([[0.0], np.cumsum(np.array(slopes) * np.diff(ends))]))
    regret = mean[:, None] * np.exp(noise * rng.normal(size=seeds))
    dims = ("algorithm", "horizon", "seed", "t")
    return xr.Dataset(
        {"regret": (dims, regret[None, ..., None])},
        {"algorithm": ["a"], "horizon": list(values), "seed": range(seeds), "t": [1]}, {"constant_along": "{}"},
    )  # fmt: skip


def test_an_exponent_knows_its_interval_its_decades_and_its_bias():
    def parts(words):
        return [float(x) for x in re.findall(r"[\d.]+", words)]  # low, high, decades, bias

    slope, words = exponent(curves([0.5] * 4), "horizon")
    low, high, decades, bias = parts(words)
    assert slope == pytest.approx(0.5, abs=0.01) and low <= round(slope, 3) <= high and decades == 4 and bias < 0.01
    slope, words = exponent(curves([0.9, 0.8, 0.6, 0.5]), "horizon")
    assert slope == pytest.approx(0.7, abs=0.02) and parts(words)[3] == pytest.approx(0.15, abs=0.02)
    falling = curves([-0.5, -0.5, -0.8, -0.8]).rename(horizon="epsilon")
    slope, words = exponent(falling, "epsilon", sign=-1)
    low, high, decades, bias = parts(words)
    assert slope == pytest.approx(0.65, abs=0.01) and low <= round(slope, 3) <= high and decades == 4
    assert bias == pytest.approx(0.15, abs=0.02)  # towards small values, where the regret is large
    with pytest.raises(ValueError, match="has 2 values"):
        exponent(curves([0.5], (10, 1000)), "horizon")


def test_ratio_intervals_cover_and_are_paired():
    rng, covered, widths = np.random.default_rng(0), 0, []
    for _ in range(400):
        below = rng.gamma(4.0, size=60)
        _, low, high = ratio_interval(2 * below + rng.normal(scale=0.5, size=60), below)
        covered += bool(low <= 2 <= high)
        widths.append(high - low)
    assert 360 <= covered <= 392  # 95% of 400, and four standard errors
    assert np.mean(widths) < 0.1  # unpaired values would have 0.7


def test_worst_takes_each_point_at_its_own_worst_value():
    values = np.array([[[1.0, 2.0], [9.0, 8.0]], [[5.0, 5.0], [1.0, 1.0]]])[..., None]  # [algorithm, gap, seed, t]
    dims, coords = ("algorithm", "gap", "seed", "t"), {"algorithm": ["a", "b"], "gap": [1, 2], "t": [9]}
    ds = xr.Dataset({"regret": (dims, values)}, coords)
    found = machinery.worst(ds, "gap").regret
    assert found.dims == ("algorithm", "seed", "t") and found.squeeze().values.tolist() == [[9.0, 8.0], [5.0, 5.0]]


def test_horizons_join_as_a_sweep_over_horizons_gives_them():
    grid = {"epsilon": [0.5, 1.0]}
    settings = SETTINGS | {"progress": False, "grid": grid, "environment": e.fixed_gap_losses(num_arms=3)}
    settings["algorithms"] = {"EXP3": partial(a.private_batched, base=partial(a.exp3, mixing=0.05, learning_rate=0.1))}
    parts = [jb.sweep(**settings | {"horizon": h}) for h in (30, 60)]
    both = jb.sweep(**settings | {"horizon": [30, 60]})
    joined = machinery.over_horizons(parts)
    np.testing.assert_array_equal(joined.regret, both.regret)
    assert joined.regret.dims == both.regret.dims
    pd.testing.assert_frame_equal(jb.summary(joined), jb.summary(both))


def test_names_of_studies(capsys):
    names = list(papers.all_studies())
    own = [name for name in names if name.startswith("private-adversarial/")]
    assert list(papers.find("private_adversarial")) == own
    assert len({name.partition("/")[0] for name in names}) == len(papers.PAPERS)
    assert list(papers.find("Private-Adversarial/lower_bound")) == ["private-adversarial/lower-bound"]
    assert main(["list", "papers"]) == 0 and names[0] in capsys.readouterr().out


def test_an_unknown_name_and_a_bad_format_come_before_any_work(tmp_path, capsys):
    near = {"private-adversarial/price-of-privcy": "/price-of-privacy", "privat-adversarial": ""}
    for name, end in near.items():
        assert main(["reproduce", name, "--out", str(tmp_path / "out")]) == 2
        said = capsys.readouterr().err
        assert f"did you mean 'private-adversarial{end}'" in said and said.count("\n") == 1 and "exp3-leak" in said
    assert main(["reproduce", "private-adversarial/exp3-leak", "--out", str(tmp_path / "out"), "--format", "gif"]) == 2
    assert "gif" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_an_interrupt_prints_the_command_that_goes_on(tmp_path, capsys, monkeypatch):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(papers, "reproduce", stop)
    command = ["reproduce", "private-adversarial/exp3-leak", "--full", "--out", str(tmp_path), "--format", "pdf"]
    assert main(command) == 130
    assert " ".join(["jaxbandits", *command]) in capsys.readouterr().err


def test_the_forced_history_is_the_papers_listing():
    """Against the listing with its weights themselves, 50,000 plays, and its end values at full length."""

    def listing(plays, eta, primed):
        w1, w2, out = 1.0, 1.0, []
        for t in range(plays):
            p2 = (1 - eta) * (w2 / (w1 + w2)) + eta / 2
            out.append(p2)
            if t % 2:
                w1 = w1 * np.exp(-eta / (1 - p2))
            elif t or primed:
                w2 = w2 * np.exp(-eta / p2)
        return np.array(out)

    for primed in (False, True):
        found = exp3_leak.probability_of_arm_1(50_000, primed=primed)
        np.testing.assert_allclose(found, listing(50_000, 1e-4, primed), rtol=0, atol=1e-9)
    p = exp3_leak.compute_curves(True)["forced"]
    np.testing.assert_allclose(p[:, -1], [0.99995, 0.00005], atol=1e-8)
    gap = p[0] - p[1]
    assert int(np.argmax(gap > 0.5)) == 92_130 and int(np.argmax(gap > 0.9)) == 98_012


def test_the_empirical_epsilon_is_below_the_truth_and_near_it():
    rng = np.random.default_rng(0)
    lowers = [exp3_leak.epsilon_lower(rng.binomial(1, 0.8, 4000), rng.binomial(1, 0.2, 4000)) for _ in range(40)]
    truth = math.log(4)  # 5% may exceed it: 6 of 40 has probability 0.3%
    assert sum(x > truth for x in lowers) <= 6 and np.mean(lowers) > 0.8 * truth
    same = [exp3_leak.epsilon_lower(rng.normal(size=2000), rng.normal(size=2000)) for _ in range(20)]
    assert np.median(same) == 0 and max(same) < 0.5


def test_the_exact_epsilon_is_that_of_the_simulated_law():
    """EXP3 by literal NumPy on the two tables: the best event's ratio, at a rate where it is large."""
    rng, rate, horizon, seeds = np.random.default_rng(1), 0.2, 60, 40_000
    counts = {}
    for lost in (1.0, 0.0):
        first = rng.random(seeds) < 0.5  # arm 1 at even odds
        after = np.where(first, 1 / (1 + np.exp(rate * lost * 2)), 0.5)
        counts[lost] = first + rng.binomial(horizon - 1, after)
    c = np.arange(horizon + 1)
    found = []
    for hits in (lambda x: (x[:, None] <= c).mean(0), lambda x: (x[:, None] >= c).mean(0)):
        lost, not_lost = hits(counts[1.0]), hits(counts[0.0])
        use = (np.maximum(lost, not_lost) >= 0.01) & (np.minimum(lost, not_lost) > 1e-3)
        found.append(np.abs(np.log(lost[use] / not_lost[use])).max())
    assert abs(exp3_leak.exact_epsilon(rate, horizon) - max(found)) < 0.2 * max(found)


@pytest.mark.parametrize("change", [None, 20])
def test_plays_of_arm_1_are_those_of_the_history(change):
    environment = e.lemma51_losses(change=change or 60, primed=change is not None)
    times = np.arange(5, 61, 5)
    for seed in range(4):
        made = a.exp3(num_arms=2, horizon=60, learning_rate=0.05, mixing=0.1)
        run = jb.simulate(made, environment, seed=seed, checkpoints=times.tolist(), history=True)
        plays = np.cumsum(np.asarray(run.history.action).ravel() == 1)[times - 1]
        np.testing.assert_array_equal(lower_bound.plays_of_arm_1(run.regret, times, change), plays)


@pytest.mark.parametrize(("step", "sure"), [(1, False), (10, False), (1, True)])
def test_the_lemmas_triples_are_those_of_literal_counts(step, sure):
    """Every gamma, p and tau_0 by loops over plays; 21 of 31 seeds show 1/2 at 95%, 20 do not."""
    rng = np.random.default_rng(2)
    horizon, epsilon, needed = 400, 0.05, 21 if sure else 15.5
    actions = rng.random((31, horizon)) < np.where(np.arange(horizon) < 30, 0.12, 0.03)  # arm 1 grows rare
    times = np.arange(step, horizon + 1, step)
    found = lower_bound.triples(np.cumsum(actions, axis=1)[:, times - 1], times, epsilon, sure)
    median, expected = sorted(int(x.sum()) for x in actions)[15] / horizon, []
    for part in lower_bound.PARTS_OF_MEDIAN:
        gamma = median * part
        for multiple in lower_bound.MULTIPLES:
            p = multiple / epsilon
            for tau in [0, *(t for t in times.tolist() if t < horizon / 2)]:
                if gamma > 0.5 or not 2 * gamma * tau <= p <= gamma * (horizon - tau):
                    continue
                end = math.ceil((tau + math.floor(p / gamma)) / step) * step
                in_gamma = sum(int(x.sum()) >= gamma * horizon for x in actions)
                in_p = sum(int(x[tau:end].sum()) <= p for x in actions)
                if in_gamma >= needed and in_p >= needed:
                    second = (1 - math.exp(multiple) / 2) * (p / gamma - p) / 2 - tau / 2
                    expected.append((gamma, p, tau, end - tau, in_p / 31, second, gamma * horizon / 4))
    assert len(expected) > 5 and len({row[2] for row in expected}) > 2
    np.testing.assert_allclose(found[list(lower_bound.TRIPLE)].to_numpy(float), np.array(expected), rtol=1e-12)


def test_the_lemma_says_nothing_about_a_player_of_even_odds_or_one_that_never_explores():
    rng, times = np.random.default_rng(3), np.arange(1, 401)
    late = np.cumsum(np.arange(400) >= 300, axis=0) * np.ones((31, 1))  # all of arm 1 at the end: no early calm
    assert len(lower_bound.triples(np.zeros((31, 400)), times, 0.05)) == 0
    even = lower_bound.triples(np.cumsum(rng.random((31, 400)) < 0.5, axis=1), times, 0.05)
    assert (even["second"] < even["first"]).all()  # and then it says no more than that half the plays are of arm 1
    early = lower_bound.triples(late, times, 0.05)
    assert len(early) and (early["tau_0"] + early["window"] <= 300 + early["p"]).all()


def test_the_sizes_of_corrupted_reports_have_rows_of_equal_height():
    """From 1 to a million: on a logarithmic axis the six rows would overprint each other."""
    shares, sizes = [0.0, 0.01, 0.2], [1.0, 3.0, 10.0, 30.0, 100.0, 1e6]
    labels, dims = list(breakdown.FIRST), ("algorithm", "corruption_bound", "seed", "t")
    regret = np.random.default_rng(0).uniform(1, 2, size=(len(labels), len(shares), 3, 1))
    coordinates = {"algorithm": labels, "corruption_bound": shares, "seed": range(3), "t": [9]}
    ds = xr.Dataset({"regret": (dims, regret)}, coordinates)
    figure = breakdown.draw(breakdown.FIRST, {f"{size:g}": ds for size in sizes}).figure
    heights = {round(p.get_height(), 6) for axes in figure.axes for p in axes.patches if p.get_height()}
    assert heights == {1.0} and jb.plot.overlaps(figure) == []
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["1", "3", "10", "30", "100", "1M"]


def test_cells_without_a_theory_tuning_are_known():
    assert not experts_map.valid("batched EXP4", 64, 100_000, 0.01) and experts_map.valid("batched EXP4", 4, 10**9, 0.1)
    assert experts_map.valid("experts as arms", 64, 1000, 0.01) and not experts_map.valid("local EXP4", 64, 5, 0.1)


DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted((DOCS / "reproductions").glob("*.md"))


def rows_of(text):
    """The rows of the tables of claims in a text, as lists of their first four cells."""
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row[:4]] for row in rows if len(row) > 3 and row[1].strip() != "the paper says"]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_pages_keep_the_rule_of_verdicts(page):
    """A verdict has what the paper says beside it and an interval, unless its value is exact."""
    rows = rows_of(page.read_text())
    assert rows
    of_page = {name: study for name, study in papers.all_studies().items() if pages.page_of(name, DOCS) == page}
    drawless = [name for name, study in of_page.items() if not study.sweeps(True) and not study.searches(True)]
    enumerated = {row[0] for name in drawless for row in rows_of(pages.study_text(name, DOCS))}
    for statement, paper, measured, verdict in rows:
        assert verdict in (("yes", "**no**", "-") if paper else ("",)), statement
        if verdict in ("yes", "**no**"):
            exact = statement in EXACT | enumerated or statement.startswith(COMPOSED)
            assert re.search(r"\[.+, .+\]", measured) or exact, statement


EXACT = {  # no draw enters
    "end value on l", "end value on l'", "the printed variance bound lets the filter remove something",
    "reports that the printed threshold removes",
    "center, the orders at T = 10,000", "Lemma 10, the worst case of the proof",
}  # fmt: skip
COMPOSED = "ε spent by "  # by composition, on the host


def test_a_page_is_written_between_the_marks_of_its_study(full, tmp_path):
    home, figures = tmp_path / "reproductions", tmp_path / "figures" / "a-paper"
    home.mkdir()
    page = home / "a_paper.md"
    begin, end = pages.marks("a-paper/one")
    page.write_text(f"# Title\n\n{begin}\nwas here before\n{end}\n\nwords \\1\n")
    done, run = full
    paths = pages.write_study("a-paper/one", done, tmp_path)
    assert paths == [page, figures / "one-curve.csv", figures / "one-curve.png"]
    table = pages.study_text("a-paper/one", tmp_path)
    assert page.read_text() == f"# Title\n\n{begin}{table}{end}\n\nwords \\1\n" and "before" not in table
    assert rows_of(table) == [["regret", "finite", done.claims[0].measured, "yes"]]
    command = "`jaxbandits reproduce a-paper/one --full`"
    assert done.seconds > 0 and f"{command}: {done.seconds:,.0f} s, seeds 0 to 11, T = 60," in table
    assert "[curve](../figures/a-paper/one-curve.csv)" in table
    assert paths[1].read_text() == (run / "full" / "curve.csv").read_text()
    again = reproduce(small_study(), run, full=True, progress=False)  # from the store
    assert again.seconds == done.seconds
    first = page.read_text()
    pages.write_study("a-paper/one", again, tmp_path)
    assert page.read_text() == first


def test_cells_that_a_page_does_not_have_are_listed(full, tmp_path, monkeypatch, capsys):
    done, run = full
    name, begin, end = "paper/figure", *pages.marks("paper/figure")
    page = tmp_path / "reproductions" / "paper.md"
    page.parent.mkdir()
    page.write_text(f"{begin}\n{end}\n")
    pages.write_study(name, done, tmp_path)
    table, drawn = pages.study_text(name, tmp_path), done.figures["curve"].data
    cells = sum(line.count(" | ") + 1 for line in table.split("\n") if line.startswith("| ")) - 4 + drawn.size
    assert pages.differences(name, done, tmp_path) == (cells, [], 0.0, [])
    data = tmp_path / "figures/paper/figure-curve.csv"
    frame = pd.read_csv(data, dtype=str, keep_default_na=False)
    row = next(k for k in frame.index if frame.at[k, "low"] and frame.at[k, "low"] != frame.at[k, "high"])
    low, centre, high = (float(frame.at[row, column]) for column in ("low", "centre", "high"))

    def with_cell(column, text):
        frame.assign(**{column: [text if k == row else x for k, x in frame[column].items()]}).to_csv(data, index=False)
        return pages.differences(name, done, tmp_path)

    assert with_cell("centre", repr(centre * (1 + 5e-7))) == (cells, [], 0.0, [])  # rounding
    assert len(with_cell("centre", repr(centre * (1 + 2e-6))).moved) == 1
    for end in (low, high):  # the interval's ends are in it
        at_end = with_cell("centre", repr(end)).furthest
        assert at_end == pytest.approx(abs(centre - end) / (high - low)) and at_end > 0
    moved = with_cell("centre", repr(centre + 0.25 * (high - low)))
    assert moved.furthest == pytest.approx(0.25) and moved.words == []
    assert moved.moved == [f"figure-curve.csv, row {row + 1}, centre: {centre + 0.25 * (high - low)!r} -> {centre!r}"]
    (alone := run / "full" / "curve.csv").write_text((whole := alone.read_text()).replace("low,high", "lo,hi", 1))
    data.write_text(whole.replace("low,high", "lo,hi", 1).replace(frame.at[row, "centre"], "0", 1))
    without = pages.differences(name, done, tmp_path)
    alone.write_text(whole)
    assert len(without.moved) == 1 and without.furthest == 0.0 and without.words == []
    beyond = with_cell("centre", repr(centre + 3 * (high - low)))  # no estimate of this interval
    assert len(beyond.moved) == 1 and beyond.furthest == 0.0
    other = with_cell("algorithm", "another")
    assert other.moved == [] and other.words[0].startswith(f"figure-curve.csv, row {row + 1}, algorithm: another -> ")
    assert with_cell("epsilon", "none").words == [
        f"figure-curve.csv, row {row + 1}, epsilon: none -> {frame.at[row, 'epsilon']}"
    ]
    frame.iloc[:-1].to_csv(data, index=False)
    line = next(line for line in table.split("\n") if line.startswith("| regret"))
    page.write_text(page.read_text().replace(line, line.replace("finite", "infinite").replace("8.5", "9.5")))
    found = pages.differences(name, done, tmp_path)
    assert found.moved == ["table, line 1, we measure: 9.5 -> 8.5"] and found.cells == cells - frame.shape[1]
    assert found.words[0] == "table, line 1, the paper says: infinite -> finite"
    assert re.search(r"^figure-curve.csv: .* x \d+ -> .* x \d+$", found.words[1]) and len(found.words) == 2
    page.write_text(page.read_text().replace(f"{line.replace('finite', 'infinite').replace('8.5', '9.5')}\n", ""))
    assert "table: 0 lines -> 1" in pages.differences(name, done, tmp_path).words
    # a statement may hold what was measured: its numbers move, and its words do not
    monkeypatch.setattr(pages, "claims_table", lambda claims, about: "| |\n| regret 217, at T = 1,000 | | | no |")
    monkeypatch.setattr(pages, "study_text", lambda *of: "| |\n| regret 215.5, at T = 1,000 | | | yes |")
    found = pages.differences(name, done, tmp_path)
    assert found.moved == ["table, line 1, statement: regret 215.5, at T = 1,000 -> regret 217, at T = 1,000"]
    assert found.words[0] == "table, line 1, here: yes -> no"
    monkeypatch.undo()
    # the command goes on from what was computed, says how many, and writes it down
    study = small_study(computed=lambda full: {"number": 7 if full else 3})
    monkeypatch.setattr(papers, "find", lambda given: {name: study})
    monkeypatch.setattr(papers, "all_studies", lambda: {name: study})
    (overview := tmp_path / "reproductions.md").write_text("\n".join(pages.OVERVIEW))
    monkeypatch.setattr(into_pages.verdicts, "word_finder", lambda name: lambda statement: "")
    (tmp_path / "runs/paper").mkdir(parents=True)
    (tmp_path / "runs/paper/figure").symlink_to(run)
    assert into_pages.compare(["all"], tmp_path, tmp_path / "runs") == 2
    computed = max(path.stat().st_mtime for path in run.rglob("*.npz"))
    day = datetime.datetime.fromtimestamp(computed, datetime.UTC).date().isoformat()
    [row] = pages.read_compared(tmp_path).values()
    assert row == {"day": day, "cells": found.cells - 4, "moved": 0, "furthest": 0.0, "words": 2}
    text = f"{day}: {row['cells']} cells, **2 differ otherwise**"
    said = capsys.readouterr().out
    assert said.startswith("paper/figure: ") and f" s; {text}\n  table: 0 lines -> 1\n  figure-curve.csv: " in said
    assert f"| {text} |" in overview.read_text()
    pages.write_study(name, done, tmp_path)  # nobody has compared this page
    assert pages.read_compared(tmp_path) == {}
    several = {"day": day, "cells": 1_234, "moved": 56, "furthest": 0.31, "words": 0}
    assert pages.comparison_text(several) == f"{day}: 1,234 cells, 56 moved, at most by 0.31 of an interval's length"
    assert pages.comparison_text(several | {"furthest": 0.0}) == f"{day}: 1,234 cells, 56 moved"
    assert pages.comparison_text(several | {"moved": 0}) == f"{day}: 1,234 cells, all the same"
    assert pages.comparison_text(None) == ""


def test_pages_take_what_only_moved_and_keep_what_was_found(full, tmp_path, monkeypatch, capsys):
    done, run = full
    name, begin, end = "paper/figure", *pages.marks("paper/figure")
    page, data = tmp_path / "reproductions/paper.md", tmp_path / "figures/paper/figure-curve.csv"
    page.parent.mkdir()
    page.write_text(f"{begin}\n{end}\n")
    pages.write_study(name, done, tmp_path)
    text, drawn = page.read_text(), data.read_text()
    data.with_suffix(".png").write_bytes(b"drawn long ago")
    study = small_study()
    monkeypatch.setattr(papers, "find", lambda given: {name: study})
    monkeypatch.setattr(papers, "all_studies", lambda: {name: study})
    monkeypatch.setattr(into_pages.verdicts, "word_finder", lambda name: lambda statement: "")
    monkeypatch.setattr(into_pages.verdicts, "write_verdicts", lambda *of: written.append(of))
    written = []
    (overview := tmp_path / "reproductions.md").write_text("\n".join(pages.OVERVIEW))
    (runs := tmp_path / "runs/paper").mkdir(parents=True)
    (runs / "figure").symlink_to(run)
    frame = pd.read_csv(data)
    row = next(k for k in frame.index if frame.at[k, "low"] < frame.at[k, "high"])

    def edit(page_text, centre=0.25, head="algorithm"):
        page.write_text(page_text)
        shift = centre * (frame.at[row, "high"] - frame.at[row, "low"])
        moved = frame.assign(centre=frame["centre"].where(frame.index != row, frame["centre"] + shift))
        moved.rename(columns={"algorithm": head}).to_csv(data, index=False)

    edit(text.replace("8.5", "9.5"), head="learner")  # another column is no number: the page is left
    assert into_pages.compare(["all"], tmp_path, tmp_path / "runs", take=True) == 1
    assert page.read_text() == text.replace("8.5", "9.5") and "learner" in data.read_text()
    assert "taken" not in pages.read_compared(tmp_path)[name]
    edit(text.replace("8.5", "9.5"))
    assert into_pages.compare(["all"], tmp_path, tmp_path / "runs") == 0  # without being asked, too
    assert page.read_text() == text.replace("8.5", "9.5") and data.read_text() != drawn and written[1:] == []
    for _ in range(2):  # a page that was taken is not compared with itself
        assert into_pages.compare(["all"], tmp_path, tmp_path / "runs", take=True) == 0
        assert page.read_text() == text and data.read_text() == drawn
        assert data.with_suffix(".png").read_bytes() == (run / "full/curve.png").read_bytes()
        found = pages.read_compared(tmp_path)[name]
        assert (found["moved"], found["furthest"], found["words"], found["taken"]) == (2, 0.25, 0, True)
        said = "2 moved, at most by 0.25 of an interval's length; the page has the new ones"
        assert said in overview.read_text() and said in capsys.readouterr().out
    assert len(written) == 3
    assert pages.comparison_text(found | {"moved": 0}).endswith("cells, all the same")
    edit(text.replace("8.5", "9.5"))
    assert into_pages.compare(["all"], tmp_path, tmp_path / "runs") == 0
    assert "taken" not in pages.read_compared(tmp_path)[name]


def test_studies_that_were_never_compared_come_first_then_the_oldest(monkeypatch, tmp_path):
    known = {"b": {"day": "2026-03-02"}, "a": {"day": "2026-03-01"}, "e": {"day": "2026-03-01"}}
    seconds = {"a": "1,000", "b": "1", "c": "20", "d": "3", "e": "999"}
    monkeypatch.setattr(pages, "seconds_of", lambda name, docs: seconds[name])
    order = sorted("abcde", key=lambda name: into_pages.longest_ago(name, known, tmp_path))
    assert order == ["d", "c", "e", "a", "b"]


def test_the_day_of_a_run_is_that_of_its_last_chunk(tmp_path):
    before = datetime.datetime.now(datetime.UTC).date().isoformat()
    assert before <= into_pages.day_of(tmp_path) <= datetime.datetime.now(datetime.UTC).date().isoformat()
    for name, day in (("b.npz", 4), ("a.npz", 5), ("c.npz", 3), ("later.txt", 9)):
        (path := tmp_path / "sweeps" / name).parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
        os.utime(path, (datetime.datetime(2026, 3, day, 23, 59, tzinfo=datetime.UTC).timestamp(),) * 2)
    assert into_pages.day_of(tmp_path) == "2026-03-05"


def test_a_page_without_its_marks_is_said_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(papers, "reproduce", lambda *args, **kwargs: pytest.fail("ran"))
    with pytest.raises(ValueError, match="there is no page"):
        into_pages.reproduce(["byzantine/rate"], tmp_path)
    (tmp_path / "reproductions").mkdir()
    for text, places in (("# Title\n", 0), ("{0}\n{1}\n{0}\n{1}\n", 2), ("{1}\n{0}\n", 0)):
        (tmp_path / "reproductions" / "byzantine.md").write_text(text.format(*pages.marks("byzantine/rate")))
        with pytest.raises(ValueError, match=f"{places} places"):
            into_pages.reproduce(["byzantine/rate"], tmp_path)


def test_every_study_has_its_place_on_a_page_and_its_pictures_beside_it():
    pictures = set()
    for name, study in papers.all_studies().items():
        paper, figure = name.split("/")
        text = pages.page_of(name, DOCS).read_text()
        assert rows_of(pages.study_text(name, DOCS)), name
        for key in study.figures:
            pictures.add(f"{paper}/{figure}-{key}.png")
            assert f"](../figures/{paper}/{figure}-{key}.png)" in text, f"{name}: {key} is not shown"
    folders = {name.partition("/")[0] for name in papers.all_studies()}  # those of other pages are theirs
    there = {f"{folder}/{path.name}" for folder in folders for path in (DOCS / "figures" / folder).glob("*.png")}
    assert there == pictures


def test_the_page_of_verdicts_explains_every_word():
    text = (DOCS / "verdicts.md").read_text()
    assert tuple(re.findall(r"^- \*\*(.+?)\*\*: ", text, flags=re.M)) == verdicts.WORDS


def test_rows_that_go_against_papers_pages_or_lines_are_named(monkeypatch):
    """Every fault is planted: `verdicts.verdict_tables` refuses to write what has one."""
    known, record = papers.all_studies(), verdicts.read_verdicts()
    row = next(row for row in record["byzantine"]["claim"] if row.number == "Lemma 3")
    assert row.both_words == (verdicts.NOT_CONTRADICTED,) and row.constants == "stated" and not row.lost
    no = [f"{name}: {line[0]}" for name in known for line in verdicts.lines_of(name, DOCS) if line[3] == "**no**"]
    yes = [f"{name}: {line[0]}" for name in known for line in verdicts.lines_of(name, DOCS) if line[3] == "yes"]
    for changes, words in (
        ({"number": "Lemma Z.9"}, f"no row is about {row.number}"), ({"ground": ""}, "is empty"),
        ({"statement": "x", "study": ""}, "go together"),
        ({"ground": "garbled"}, "say in `lost`"), ({"claim": "It is ε-private with regret R"}, "are two rows"),
        ({"rows": (*row.rows, no[0])}, "a line says no"), ({"printed": "fails", "rows": (yes[0],)}, "no line says no"),
        ({"printed": "cannot be decided", "rows": (yes[0],)}, "a line says yes"), ({"rows": ("a/b: c",)}, "no line is"),
        ({"number": f"{row.number}, privacy"}, "has no row"), ({"rows": ()}, "no row is about '"),
        # the two words
        ({"reading": "fails"}, "says which one it is"), ({"under": "if"}, "says which one it is"),
        ({"printed": "true of another algorithm"}, "is a word of readings"),
        ({"reading": "no claim", "under": "x"}, "is no word of readings"),
        ({"reading": "measured here", "under": "x", "rows": (no[0],)}, "and no line says yes"),
        # a bound whose constants are not stated
        ({"constants": "not stated"}, "its constants are not stated"),
        ({"printed": "fails", "constants": "not stated", "rows": ()}, "its constants are not stated"),
        ({"printed": "cannot be decided", "constants": "", "rows": ()}, "say whether its constants"),
        ({"constants": "ours"}, "need a proof"), ({"constants": "none helps"}, "it fails"),
        ({"constants": "some"}, "is none of"),
        # what our copy has lost
        ({"lost": "x"}, "is a reading"), ({"copy": "max a A a 2 M 1 2d"}, "no relation"),
        *(({"copy": f"at most {x}"}, "are damaged") for x in ("τ 1", "T = 1 ε ,", "O( p T", "is -DP", "Lap(0, 1 9:")),
        *(
            ({"copy": f"at most {x}", "printed": verdicts.NOT_READABLE, "lost": named}, f"what is lost, one of {word}")
            for x, named, word in (
                ("ξa Lap 2 naε", "the sign", "bracket"), ("Z Lap(λ)", "the scale", "sign"), ("N K", "a root", "sign"),
                ("ε [ 1 T , 1]", "signs, a root", "fraction"), ("q T", "a fraction", r"\broot"), ("(K/ )", "α", "ε"),
                ("when = 0", "ε", "α"), ("a 2 M 1 n", "the sign", "norm"), ("1 δ", "the bound", "sign"),
                (r"\mathcal{E}", "a part of G", "ℰ"), ("with Maler", "the event ℰ", "Algorithms"),
                ("of Algorithm 2 under", "Algorithm 3", r"\b7"),
            )
        ),
        *(({"copy": f"at most {x}"}, "cut within a formula") for x in (r"\sqrt{N", "$1", "$1 [...] 2$")),
        ({"ground": "It is 3 times the order at most here."}, "over what"),
        ({"copy": ""}, "give the characters"), ({"would_change": "A bound: holds under a reading."}, "names no word"),
        ({"copy": ""}, "no row has the characters of Lemma 3"),
        ({"ground": "{a}"}, "figures are those"), ({"figures": {"a": "computed: b"}}, "figures are those"),
    ):  # fmt: skip
        claims = [row._replace(**changes) if one == row else one for one in record["byzantine"]["claim"]]
        changed = record | {"byzantine": record["byzantine"] | {"claim": claims}}
        monkeypatch.setattr(verdicts, "read_verdicts", lambda changed=changed: changed)
        assert any(words in found for found in verdicts.faults(DOCS, known)), words
    assert verdicts.numbers_of("Lemmas A.3 and A.4") == {"Lemma A.3", "Lemma A.4"}
    assert verdicts.numbers_of("Theorem 6.5 and Corollary 6.6") == {"Theorem 6.5", "Corollary 6.6"}
    assert verdicts.numbers_of("Corollaries A.3 to A.5") == {"Corollary A.3", "Corollary A.4", "Corollary A.5"}


def test_no_figure_in_a_ground_is_typed():
    """What is measured or computed stands as {name} there: nothing that looks like it is left."""
    figure = re.compile(
        r"(?<![\w.,^=≤≥<>(/√-])(?<![=≤≥<>] )(?<!\bof )(?<!\bat )(?<!\band )(?<!most )(?<!than )(?<!above )(?<!to )"
        r"\d+(?:\.\d+|%|,\d{3}| times\b)"
    )
    typed = []
    for paper in verdicts.read_verdicts().values():
        for row in paper["claim"]:
            pages_read = {source.partition(" ~ ")[0] for source in row.figures.values() if source.startswith("page: ")}
            assert pages_read <= {"page: privacy.md"}, row.number  # the sentence of a page is typed, too
            text = re.sub(
                r"\]\([^)]*\)|`[^`]*`|arXiv [\d.]+|within \d+%", "", f"{row.ground} {row.under} {row.would_change}"
            )
            text = re.sub(
                rf"(?:{verdicts.KINDS}|Section|Definition)s? [A-Z0-9.]+(?:(?:,| and) [A-Z]?\d+\.\d+)*", "", text
            )
            typed += [f"{row.number}: {text[max(0, x.start() - 30) : x.end()]}" for x in figure.finditer(text)]
    assert typed == []


def test_a_search_that_ends_where_it_stops_looking_gives_no_figure():
    """Of the informal theorems the orders of Figure 1 cross at 324, and of the proof's beyond the T that it draws."""
    assert ground_figures.figure_1_crossing() == "324"
    for changes in ({"horizon": 323}, {"source": "proof"}, {"epsilon": math.inf}):
        with pytest.raises(ValueError, match="do not cross"):
            ground_figures.figure_1_crossing(**changes)
    for changes in ({"dim": 1e-9}, {"dim": 1e12}):
        with pytest.raises(ValueError, match="do not cross"):
            ground_figures.byzantine_useful_from(**changes)
    with pytest.raises(ValueError, match="below T at once"):
        verdicts.useful_from(lambda horizon: 0.5)


def test_a_row_that_names_what_is_not_there_says_so(tmp_path):
    known = papers.all_studies()
    row = verdicts.Verdict("Theorem 1", "c", verdicts.PROVED, "g", rows=("byzantine/rate: *",))
    row = row._replace(study="byzantine/rate", statement="none such")
    for changes, said in (
        ({}, r"Theorem 1: .*byzantine.md has no row 'none such' of byzantine/rate"),
        ({"rows": ()}, "rows leave out byzantine/rate: 'none such'"),
        ({"study": "byzantine/none"}, "no study 'byzantine/none'"),
        ({"study": "", "audited": "nobody"}, "no audit of 'nobody'"),
        ({"printed": "maybe"}, "'maybe'"), ({"reading": "perhaps", "under": "x"}, "'perhaps'"),
        ({"printed": "fails", "would_change": ""}, "Theorem 1: fails, would_change = ''"),
        ({"would_change": "a figure"}, f"Theorem 1: {verdicts.PROVED}, would_change = 'a figure'"),
        ({"study": "", "ground": "{n}", "figures": {"n": "page: privacy.md ~ no such words"}}, "Theorem 1: n: nothing"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            verdicts.verdict_cells(row._replace(**changes), DOCS, known)
    figures = {
        "a": "page: a.md ~ is (\\d+)%",
        "b": "byzantine/rate: Lemma 1 ~ [\\d.]+ times",
        "c": "computed: local_cost",
    }
    row, (begin, end) = row._replace(figures=figures), pages.marks("byzantine/rate")
    (tmp_path / "a.md").write_text("it is 7%")
    (tmp_path / "reproductions").mkdir()
    (tmp_path / "reproductions" / "byzantine.md").write_text(f"{begin}\n| Lemma 1 | p | 2.5 times | yes |\n{end}\n")
    assert ground_figures.fill("{a} and {b}, {c}", row, tmp_path) == "7 and 2.5 times, 0.0149"
    taken = row._replace(figures={"a": "byzantine/rate: Lemma 1 ~ 2(.)"})
    with pytest.raises(ValueError, match="ends before the comma"):
        ground_figures.fill("{a}", taken, tmp_path)
    (tmp_path / "verdicts.md").write_text("no marks")
    with pytest.raises(ValueError, match="one pair of lines"):
        verdicts.write_verdicts(tmp_path, known)


def test_instances_and_the_largest_ratio_are_counted_in_the_lines(tmp_path):
    """Lines that could not have contradicted the claim do not count, and the ratio decides between the two words."""
    page, (begin, end) = tmp_path / "reproductions" / "byzantine.md", pages.marks("byzantine/rate")
    page.parent.mkdir()
    held, reached = verdicts.NOT_CONTRADICTED, verdicts.REACHED
    for word, lines, said in (
        (held, {"0.2 of it": "yes", "0.4 of the bound": "yes", "9 of it": "\u2013"}, "2 instances; largest ratio 0.4"),
        (held, {"0.2 of it": "yes"}, "1 instance; largest ratio 0.2"),
        (reached, {"0.2 of the radius": "yes", "0.7 of the radius": "yes"}, "2 instances; largest median ratio 0.7"),
        (reached, {"0.2 of it": "yes"}, None),
        (held, {"0.7 of it": "yes"}, None),
        (held, {"1.1 of it": "**no**"}, None),
        (held, {"9 of it": "\u2013"}, None),
        (held, {"much": "yes"}, None),
    ):
        table = claims_table([Claim(f"a {i}", "p", measured) for i, measured in enumerate(lines)])
        for verdict in lines.values():
            table = table.replace("| - |", f"| {verdict} |", 1)
        page.write_text(f"{begin}\n{table}\n{end}\n")
        row = verdicts.Verdict("Lemma 1", "c", word, "g", rows=("byzantine/rate: a *",))
        for one in (row, row._replace(printed=verdicts.NOT_READABLE, reading=word, under="u")):
            with pytest.raises(ValueError, match="Lemma 1") if said is None else contextlib.nullcontext():
                assert verdicts.evidence(one, tmp_path) == f" ({said})"


def test_two_claims_of_one_line_are_refused_and_a_changed_word_reaches_the_page(tmp_path, monkeypatch):
    (tmp_path / "reproductions").mkdir()
    begin, end = pages.marks("byzantine/rate")
    table = claims_table([Claim("a|b", "p", "m"), Claim("other", "", "m")])
    (tmp_path / "reproductions" / "byzantine.md").write_text(f"{begin}\n{table}\n{end}\n")
    head = '[[paper]]\nname = "byzantine"\ntitle = "t"\n'
    claim = '[[paper.claim]]\nnumber = "{}"\nclaim = "c"\nprinted = "{}"\nground = "g"\nrows = ["byzantine/rate: {}"]\n'
    reading = 'reading = "reached"\nunder = "u"\n'
    for i, (more, words) in enumerate(
        (("", "fails"), ("", "not settled"), (reading, "fails; under a reading: reached"))
    ):
        (path := tmp_path / f"{i}.toml").write_text(head + claim.format("Lemma 1", words.split(";")[0], "a|b") + more)
        monkeypatch.setattr(verdicts, "word_finder", partial(claim_records.word_finder, path=path))
        written = verdicts.text_with_words("byzantine/rate", tmp_path)
        assert f"| a\\|b | p | m | - | Lemma 1: {words} |" in written and "| other |  | m |  |  |" in written
        (tmp_path / "reproductions" / "byzantine.md").write_text(f"{begin}{written}{end}\n")
    both = claim.format("Lemma 1", "fails", "a*") + claim.format("Lemma 2", "fails", "*b")
    (path := tmp_path / "both.toml").write_text(head + both)
    monkeypatch.setattr(verdicts, "word_finder", partial(claim_records.word_finder, path=path))
    with pytest.raises(ValueError, match=r"Lemma 1, Lemma 2 name byzantine/rate: 'a\|b'"):
        verdicts.text_with_words("byzantine/rate", tmp_path)


def labels_of(study):
    """The labels of algorithms, sweeps and values of the grid at full size, the longest first."""
    found = set()
    for name, one in study.sweeps(True).items():
        found |= {name, *one.settings["algorithms"]}
        for values in one.settings.get("grid", {}).values():
            found |= {str(value) for value in values if isinstance(value, str)}
    return sorted((label for label in found if re.search(r"[^\W\d]", label)), key=len, reverse=True)


def shape(text, labels):
    """A text with @ for a label and # for a number, or for a list of them: of both a full run has more."""
    # few seeds and keys of one value, which depend on the size
    text = re.sub(r" \(few: it may miss more often\)|; [^;=\d]+ = [^\s;=,]+(?=;|$)", "", text)
    for label in labels:
        text = re.sub(rf"(?<!\w){re.escape(label)}(?!\w)", "@", text)
    number = r"(?<![\w.])[-+∓±]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+|[kMGT]\b)?%?"  # an axis has 100M, another 10G
    text = re.sub(rf"∞|\binf\b|{number}", "#", text)
    text = re.sub(r"([@#])(?:(?:, | and |; | )[@#])+", r"\1", text)
    # what is spent, where it is not what was asked for, which depends on the size
    return re.sub(r" \(spends [^)]*\)|ε spent: (?:[@#] \(asked #\)(?: \.\.\.)?[,;] )+", "", text)


def test_the_shape_of_a_text():
    assert shape("target: trimmed mean at 0, 0.1, 0.2", ["trimmed mean"]) == "target: @ at #"
    assert shape("M1, M2 and UCB1 at ε = ∞, 5% of ±30", ["M1", "M2"]) == "@ and UCB1 at ε = # of #"
    assert shape("100M", []) == shape("10G", []) == "#" and shape("3 GB, 2 Gaussians", []) == "# GB, # Gaussians"
    assert shape("below JDP", ["JDP"]) != shape("above JDP", ["JDP"])
    few = "3 seeds (few: it may miss more often); window (plays) = 10; ten arms"
    assert shape(few, []) == "# seeds; ten arms" and shape("3 seeds (few); ten = arms, 3", []) != "# seeds"
    spent = "3 seeds; ε spent: JDP ∞ (asked 1), 2.7 (asked 2) ...; LDP 3 (asked 4); two arms"
    assert shape(spent, ["JDP", "LDP"]) == "# seeds; two arms" and shape("JDP (spends ε = ∞)", ["JDP"]) == "@"


def test_pictures_of_the_reproductions_say_what_is_spent():
    words = Image.open(DOCS / "figures/ldp-contextual/figure-1-printed.png").text["Description"]
    assert "JDP (spends ε = ∞)" in words and "LDP 0 (asked 0.2), 1.56 (asked 1), 84.1 (asked 10)" in words


@pytest.fixture
def forgotten():
    """The programs of a study are let go at its end."""
    yield
    compilation.functions_of_group.cache_clear()


# These take 20 seconds each and longer. One of them stays, where all of a paper do.
LONG = {
    "across/before-after", "across/counting", "across/coverage", "across/named-epsilon", "byzantine/aggregate",
    "byzantine/corruption", "byzantine/episodes", "byzantine/isolated", "byzantine/price", "byzantine/privacy",
    "byzantine/rate", "ldp-contextual/equal-budget", "ldp-contextual/favourable", "ldp-contextual/figure-1",
    "ldp-contextual/map", "ldp-contextual/printed-form", "ldp-contextual/squared-errors", "ldp-contextual/steps",
    "private-adversarial/experts-map",
    "private-adversarial/price-of-privacy", "robust-linear/breakdown", "robust-linear/dimension",
    "robust-linear/figure-1", "robust-linear/regret",
}  # fmt: skip


@pytest.mark.pages
@pytest.mark.parametrize("name", [name if name not in LONG else others([name])[0] for name in papers.all_studies()])
def test_quick_sizes(tmp_path, name, forgotten):
    """A quick run ends, its pictures are legible, and the page has the same claims and labels."""
    study = papers.all_studies()[name]
    done = reproduce(study, tmp_path, formats=(), progress=False)
    assert len(done.claims) >= 3 and all(claim.measured for claim in done.claims)
    labels = labels_of(study)
    here, there = rows_of(claims_table(done.claims)), rows_of(pages.study_text(name, DOCS))
    assert {shape(row[0], labels) for row in here} == {shape(row[0], labels) for row in there}
    assert {shape(row[1], labels) for row in here} <= {shape(row[1], labels) for row in there}
    paper, figure = name.split("/")
    for key, picture in done.figures.items():
        assert jb.plot.overlaps(picture.figure) == []
        assert len(pd.read_csv(tmp_path / "quick" / f"{key}.csv")) > 1
        kept = Image.open(DOCS / "figures" / paper / f"{figure}-{key}.png").text["Description"]
        words = layout.figure_words(picture.figure), kept.splitlines()
        here, there = ({shape(word, labels) for word in of} for of in words)
        assert here <= there
        data = pd.read_csv(DOCS / "figures" / paper / f"{figure}-{key}.csv")
        assert data.columns.tolist() == picture.data.columns.tolist()


def test_a_study_through_the_command_line(tmp_path, capsys):
    assert main(["reproduce", "private-adversarial/exp3-leak", "--out", str(tmp_path), "--quiet"]) == 0
    study, home = papers.all_studies()["private-adversarial/exp3-leak"], tmp_path / "quick"
    said = capsys.readouterr().out
    assert "| the paper says | we measure | the claim |" in said and study.title in said and "quick size" in said
    (row,) = (row for row in claim_records.read_verdicts()["private-adversarial"]["claim"] if "G.1)" in row.number)
    assert said.count(f"{row.number}: {row.claim}\n    {row.say_words()}") == 1 and f"| {row.number} |" in said
    for figure in study.figures:
        assert (home / f"{figure}.png").stat().st_size > 5000 and len(pd.read_csv(home / f"{figure}.csv")) > 1
    assert len(pd.read_csv(home / "claims.csv")) >= 3


def test_the_place_of_an_own_algorithm_by_hand():
    lanes = np.array([[2.0, 5.0], [2.0, 3.0], [1.0, 9.0]])  # of two published ones and of ours, at two points
    coords = {"algorithm": ["A", "B", "ours"], "epsilon": [0.5, 2.0], "seed": range(3), "t": [9]}
    ds = xr.Dataset({"regret": (tuple(coords), np.repeat(lanes[..., None, None], 3, axis=2))}, coords)
    assert own_beside.place_table({"one": ds}, ["ours"]).splitlines()[2:] == [
        "| ours | one | epsilon = 0.5 | 1 [1, 1] | 1 of 3 | A 2 |",
        "| ours | one | epsilon = 2 | 9 [9, 9] | 3 of 3 | B 3 |",
    ]  # fmt: skip
    tie = own_beside.place_table({"one": ds.assign(regret=0 * ds.regret + 4)}, ["ours"])
    assert tie.count("| 4 [4, 4] | 1 of 3 | A 4 |") == 2
