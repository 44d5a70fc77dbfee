"""`jb.until`: the law of the sequential test, sweeps that end when they are decided, stores, files, wrong arguments."""

import functools
import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
import until as simulation
from scipy import integrate, stats

import jaxbandits as jb
from jaxbandits.cli import main
from jaxbandits.sweeps import until_decided
from jaxbandits.sweeps.engines import calls
from jaxbandits.sweeps.execution import SweepRun
from jaxbandits.sweeps.plan import plan
from jaxbandits.sweeps.toml_file import read_config
from jaxbandits.sweeps.until_decided import SequentialTest

a = jb.algorithms
ARMS = jb.environments.bernoulli_arms(means=[0.4, 0.6])
THREE = {"UCB": a.ucb1, "uniform": a.uniform, "narrow": functools.partial(a.ucb1, bonus_scale=0.95)}
PAIRS = [("UCB", "uniform"), ("narrow", "UCB")]
ROOT = Path(__file__).parents[2]
PLAIN = {"horizon": 60, "checkpoints": 2, "progress": False}


def p_values_of(differences, block):
    """The smallest p-value [M] after every seed, looking at each: [S, M]."""
    test = SequentialTest(len(differences), 0.05, block)
    found = []
    for seed in differences.T:
        test.add(seed[:, None])
        found.append(test.smallest)
    return np.array(found)


def test_e_is_the_mean_of_exponential_supermartingales():
    rng = np.random.default_rng(0)
    x = rng.gamma(2.0, size=40) - 0.5
    for stop in (8, 23, 40):
        total, squares, scale = x[:stop].sum(), (x[:stop] ** 2).sum(), (x[:8] ** 2).sum()
        density = stats.norm(scale=scale**-0.5).pdf
        e, _ = integrate.quad(lambda s: np.exp(s * total - s * s * squares / 2) * density(s), -5, 5)  # noqa: B023
        last = SequentialTest(1, 0.05, 8)
        last.add(x[None, :8])
        if stop > 8:
            last.smallest[:] = np.inf  # what the second look alone says
            last.add(x[None, 8:stop])
        assert last.smallest[0] == pytest.approx(1 / e, rel=1e-6)


@pytest.mark.planted("the p-values of `jb.until`", "an exponent without its 1/2")
def test_every_sign_pattern_is_counted_and_too_few_of_them_decide():
    """All 2^14 signs of fourteen differences of any size: exact, and a twice as large exponent would not be."""
    sizes = np.random.default_rng(1).uniform(0.5, 1.5, 14)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=14)))
    smallest = p_values_of(signs * sizes, block=2)[-1]
    levels = np.array([0.3, 0.1, 0.05, 0.02])
    shares = (smallest[:, None] <= levels).mean(0)
    assert (shares <= levels).all() and (shares > levels / 100).all()
    total, squares = np.cumsum(signs * sizes, 1)[:, 1:], np.cumsum(sizes**2)[1:]
    wide = squares + squares[0]
    wrong = np.sqrt(wide / squares[0]) * np.exp(-(total**2) / wide)  # the exponent without its 1/2
    assert ((wrong.min(1)[:, None] <= levels).mean(0) > levels).all()


def test_zero_differences_say_nothing_and_a_block_of_others_is_needed():
    x = np.random.default_rng(2).standard_normal((3, 30)) + 0.3
    sparse = np.zeros((3, 120))
    sparse[:, ::4] = x
    np.testing.assert_allclose(p_values_of(sparse, 10)[::4], p_values_of(x, 10))
    assert (p_values_of(np.ones((1, 9)), 10) == 1).all() and p_values_of(np.ones((1, 14)), 10)[-1] < 0.05
    assert (p_values_of(np.zeros((2, 40)), 10) == 1).all()


def test_decisions_are_holm_s_and_stay():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((4, 400)) + np.array([[0.5], [0.0], [-0.25], [0.2]])
    test, first = SequentialTest(4, 0.05, 8), np.zeros(4, int)
    p = p_values_of(x, 8)
    for n in range(400):
        test.add(x[:, n : n + 1])
        now = jb.statistics.holm(p[n]) <= 0.05
        first[now & (first == 0)] = n + 1
        assert test.decided.tolist() == (first > 0).tolist()
    assert test.sign.tolist() == [1, 0, -1, 1] and test.seeds.tolist() == np.where(first, first, 400).tolist()
    assert first[3] > first[0] and p[first[3] - 1, 3] > 0.05 / 4  # Bonferroni would have decided later


def test_a_decision_is_that_of_its_evidence():
    """The first comparison is nearly decided for one side and turns; when the second is, it is enough for the first."""
    test = SequentialTest(2, 0.05, 8)
    turning, clear = np.r_[np.ones(13), -np.ones(14)], np.r_[np.zeros(13), np.ones(14)]
    for n in range(27):
        test.add(np.array([[turning[n]], [clear[n]]]))
    assert test.total[0] < 0 < test.total[1]  # now
    assert 0.025 < test.smallest[0] <= 0.05 and test.sign.tolist() == [1, 1]


def test_the_tables_of_the_page_are_made_of_real_decisions(monkeypatch):
    rng = np.random.default_rng(0)
    sign, seeds = simulation.decided(lambda shape: rng.standard_normal(shape) - 1, 20, 64)
    assert (sign == -1).all() and (seeds == 64).all()
    found = stats.ttest_1samp(0.5 + rng.standard_normal((4000, simulation.known(0.5))), 0, axis=1).pvalue <= 0.05
    assert abs(found.mean() - 0.9) < 4 * 0.3 / 4000**0.5
    heads = [next(rows) for rows in (simulation.nulls(40), simulation.family(20), simulation.power(8))]
    monkeypatch.setattr(simulation, "MOST", 256)
    monkeypatch.setattr(
        simulation, "laws",
        lambda: {
            "never": lambda rng, shape: np.zeros(shape),
            "rare": lambda rng, shape: np.where(rng.random(shape) < 0.01, 99.0, -1.0),
        },
    )  # fmt: skip
    _, never, rare = simulation.nulls(40)
    assert [cell.split()[0] for cell in never[2:]] == ["0.00%"] * 4 and float(rare[2].split("%")[0]) > 60
    page = (ROOT / "docs/concepts.md").read_text()
    for head in heads:
        assert f"| {' | '.join(head)} |" in page


def test_what_is_said_and_written_of_decisions():
    """Of five comparisons: one for each side, three open ones and one more; numbers are of all seeds."""
    test = SequentialTest(6, 0.05, 4)
    test.looked_at, test.total = 8, np.array([4.0, -8.0, 1.0, 2.0, 0.5, 16.0])
    test.sign, test.seeds = np.array([1, -1, 0, 0, 0, 0]), np.array([4, 8, 8, 8, 8, 8])
    test.smallest = np.array([0.001, 0.002, 0.5, 0.5, 0.9, 1.0])
    asked = [until_decided.Comparison("a", f"b{i}", {"k": i} if i == 2 else {}, (0, i)) for i in range(6)]
    said = "until: 8 seeds, 2 of 6 decided; open: a and b2, k = 2; a and b3; a and b4 and 1 more"
    assert until_decided._progress(test, asked) == said
    test.sign[5] = 1
    assert until_decided._progress(test, asked).endswith("3 of 6 decided; open: a and b2, k = 2; a and b3; a and b4")
    test.sign[2:] = -1
    assert until_decided._progress(test, asked) == "until: 8 seeds, 6 of 6 decided"
    test.sign[2] = 0
    told = until_decided._outcome(test, asked, jb.until([("a", "b")], error=0.01, most=80, block=9))
    assert {key: told[key] for key in ("error", "most", "block")} == {"error": 0.01, "most": 80, "block": 9}
    p = jb.statistics.holm(test.smallest).tolist()
    assert [tuple(row.values()) for row in told["rows"][:3]] == [
        ("a", "b0", {}, "b0", 4, 0.5, p[0]), ("a", "b1", {}, "a", 8, -1.0, p[1]),
        ("a", "b2", {"k": 2}, "undecided", 8, 0.125, p[2]),
    ]  # fmt: skip
    assert list(told["rows"][0]) == ["a", "b", "at", "lower", "seeds", "difference", "p_value"]


@functools.cache
def decided():
    return jb.sweep(THREE, ARMS, seeds=jb.until(PAIRS, most=96, block=16), **PLAIN)


def test_the_result_is_a_plain_sweep_with_its_decisions(monkeypatch, tmp_path):
    ds = decided()
    plain = jb.sweep(THREE, ARMS, seeds=96, **PLAIN)
    assert ds.equals(plain) and ds.attrs.keys() - plain.attrs.keys() == {"decisions"}
    assert json.loads(ds.attrs["config"])["seeds"] == [0, 96]
    frame = jb.decisions(ds)
    assert frame.attrs == {"error": 0.05, "most": 96, "block": 16}
    assert frame[["a", "b", "lower"]].values.tolist() == [["UCB", "uniform", "UCB"], ["narrow", "UCB", "undecided"]]
    regret = plain.regret.isel(t=-1)
    differences = np.array([regret.sel(algorithm=x).values - regret.sel(algorithm=y).values for x, y in PAIRS])
    np.testing.assert_allclose(frame["difference"], differences.mean(1))
    test, ends = SequentialTest(2, 0.05, 16), [16, 32, 48, 64, 80, 96]
    for low, high in itertools.pairwise([0, *ends]):
        test.add(differences[:, low:high])
    np.testing.assert_allclose(frame["p_value"], test.p_values)
    assert frame["seeds"].tolist() == test.seeds.tolist() == [test.seeds[0], 96] and test.seeds[0] <= 48
    assert jb.compare(ds, "UCB", "uniform").seeds.tolist() == [96]
    with pytest.raises(ValueError, match=r"ran a given number of seeds: compare\(ds"):
        jb.decisions(plain)
    # looks of several calls, and a chunk that begins before the second look
    jb.sweep(THREE, ARMS, seeds=96, store=tmp_path, **PLAIN)
    monkeypatch.setattr(calls, "CPU_LANES", 16)
    for more in ({}, {"store": tmp_path}):
        found = jb.sweep(THREE, ARMS, seeds=jb.until(PAIRS, most=96, block=48), **PLAIN, **more)
        want = differences[:, : found.sizes["seed"]].mean(1)
        np.testing.assert_allclose(jb.decisions(found)["difference"], want)


def test_it_ends_when_all_is_decided_and_says_how_far_it_is(capsys):
    ds = jb.sweep(THREE, ARMS, seeds=jb.until(PAIRS[:1], block=16), **PLAIN | {"progress": True})
    assert ds.sizes["seed"] == jb.decisions(ds)["seeds"][0] < 100
    said = capsys.readouterr().err
    assert "until: 1 comparison at an error of 0.05, at most 10,000 seeds" in said
    assert re.search(r"until: 16 seeds, \d of 1 decided", said) and "1 of 1 decided" in said
    assert said.count("runs to compute") == 1


def test_points_at_which_nothing_changes_are_compared_once():
    grid = {"bonus_scale": [0.5, 2.0], "environment.means": {"easy": [0.1, 0.9], "hard": [0.4, 0.6]}}
    labels = {"UCB": a.ucb1, "uniform": a.uniform, "TS": a.thompson}
    rule = jb.until([("UCB", "uniform"), ("uniform", "TS")], most=16, block=16)
    ds = jb.sweep(labels, "bernoulli_arms", grid=grid, seeds=rule, **PLAIN)
    frame = jb.decisions(ds)
    assert len(frame) == 6 and frame["bonus_scale"].isna().tolist() == [False] * 4 + [True] * 2
    for row in frame.to_dict("records"):
        at = {key: row[key] for key in ("bonus_scale", "environment.means") if row[key] == row[key]}
        at.setdefault("bonus_scale", 0.5)
        both = ds.regret.isel(t=-1).sel(at)
        difference = (both.sel(algorithm=row["a"]) - both.sel(algorithm=row["b"])).mean()
        assert row["difference"] == pytest.approx(float(difference))


def test_a_killed_run_goes_on_and_a_larger_budget_too(tmp_path, monkeypatch):
    rule = jb.until(PAIRS, most=96, block=16)
    compute, computed = SweepRun.compute, []

    def dying(run, sweep=None):
        if sweep.plan.seeds.start == 48:
            raise KeyboardInterrupt
        compute(run, sweep=sweep)

    monkeypatch.setattr(SweepRun, "compute", dying)
    with pytest.raises(KeyboardInterrupt) as stop:
        jb.sweep(THREE, ARMS, seeds=rule, store=tmp_path, **PLAIN)
    assert "the same call goes on from there" in stop.value.__notes__[0]

    def watched(run, sweep=None):
        before = run.lanes_computed
        compute(run, sweep=sweep)
        computed.append(((sweep or run.sweep).plan.seeds.start, run.lanes_computed - before))

    monkeypatch.setattr(SweepRun, "compute", watched)
    small = jb.sweep(THREE, ARMS, seeds=rule._replace(most=64), store=tmp_path, **PLAIN)
    assert computed == [(48, 48), (0, 0)] and small.sizes["seed"] == 64
    chunk = next(tmp_path.glob("chunks/*/*.0-16.npz"))
    chunk.write_bytes(chunk.read_bytes()[:-7])
    with pytest.warns(RuntimeWarning, match="set aside"):
        ds = jb.sweep(THREE, ARMS, seeds=rule, store=tmp_path, **PLAIN)
    assert computed[2:] == [(0, 16), (64, 48), (80, 48), (0, 0)]
    assert ds.equals(decided()) and jb.load(tmp_path).attrs["decisions"] == decided().attrs["decisions"]


FILE = """
horizon = 60
seeds = { until = [["UCB", "uniform"]], error = 0.01, most = 80, block = 16 }
checkpoints = 2
environment = { name = "bernoulli_arms", means = [0.4, 0.6] }
[[algorithm]]
name = "ucb1"
label = "UCB"
[[algorithm]]
name = "uniform"
"""


def test_a_file_says_the_same(tmp_path, capsys):
    file, out = tmp_path / "run.toml", tmp_path / "out"
    file.write_text(FILE)
    assert read_config(file)["seeds"] == jb.until([("UCB", "uniform")], error=0.01, most=80, block=16)
    assert main(["run", str(file), "--out", str(out), "--quiet"]) == 0
    first = capsys.readouterr().out
    assert jb.decisions(jb.load(out)).to_string(index=False) in first
    assert (out / "decisions.csv").read_text().startswith("a,b,lower,seeds,difference,p_value\nUCB,uniform,UCB,")
    assert main(["run", str(file), "--out", str(out), "--quiet"]) == 0
    assert "already holds this run" in capsys.readouterr().out
    settings = {key: x for key, x in read_config(file).items() if key != "figure"}
    assert [cell.label for cell in plan(**settings).cells] == ["UCB", "uniform"]
    assert main(["worker", str(file), "--out", str(out), "--shard", "0/2", "--quiet"]) == 2
    assert "use `run`, or give the shards a number of seeds (--seeds N)" in capsys.readouterr().err
    assert main(["worker", str(file), "--out", str(tmp_path / "n"), "--shard", "0/1", "--seeds", "16", "--quiet"]) == 0
    capsys.readouterr()
    for line, words in {
        'until = [["UCB", "uniform"]], mots = 9': "seeds has no key 'mots' (did you mean 'most'?)",
        "error = 0.1": "seeds needs until",
        'until = ["UCB", "uniform"]': "comparisons holds 'UCB': give pairs of labels",
        'until = [["UCB", "uniforn"]]': "until names 'uniforn' (did you mean 'uniform'?)",
    }.items():
        file.write_text(re.sub(r"seeds = .*", f"seeds = {{ {line} }}", FILE))
        assert main(["run", str(file), "--out", str(out), "--quiet"]) == 2
        (error,) = capsys.readouterr().err.splitlines()
        assert words in error
    file.write_text(FILE + "[tune.space]\nUCB.bonus_scale = [0.5, 1.0]\n")
    assert main(["tune", str(file), "--out", str(out)]) == 2
    assert "tune.report_seeds = until(...)" in capsys.readouterr().err
