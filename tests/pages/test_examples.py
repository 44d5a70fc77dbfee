"""The examples run as they stand, at small sizes."""

import importlib
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import jaxbandits as jb
from jaxbandits.cli import main
from jaxbandits.sweeps.toml_file import read_config

# No page shows an algorithm that spends more than its label says.
pytestmark = [pytest.mark.pages, pytest.mark.filterwarnings("error:.*asked for epsilon .*, spends")]
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PICTURE = ROOT / "docs/figures/quickstart.png"


@pytest.fixture
def own(monkeypatch):
    """Modules beside the examples, importable as a user's own."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


def run(file, out, seeds=8):
    assert main(["run", str(file), "--out", str(out), "--seeds", str(seeds), "--quiet"]) == 0
    return jb.load(out)


def test_my_algorithm_learns(own):
    greedy = own("my_algorithm").epsilon_greedy_arms
    arms = jb.environments.bernoulli_arms(means=[0.2, 0.5, 0.8])
    settings = {"horizon": 500, "seeds": 64, "progress": False}
    ds = jb.sweep([greedy, jb.algorithms.uniform], arms, **settings, grid={"exploration": [0, 5]})
    final = ds.regret.isel(t=-1).mean("seed").sel(exploration=5)
    assert float(final.sel(algorithm="epsilon_greedy_arms")) < 0.5 * float(final.sel(algorithm="uniform"))
    assert np.all(ds.pulls.sum("arm") == 500)
    lane = jb.simulate(greedy(num_arms=3, horizon=500, exploration=5), arms, seed=7)
    here = ds.regret.sel(algorithm="epsilon_greedy_arms", exploration=5, seed=7).isel(t=-1)
    assert float(here) == lane.regret[-1]
    with pytest.raises(ValueError, match="exploration"):
        greedy(num_arms=3, horizon=500, exploration=-1)


def test_my_environment_pays_what_it_says(own):
    drifting = own("my_environment").drifting_arms
    world = partial(drifting, start=[0.1, 0.9], end=[0.9, 0.1], duration=100)
    ds = jb.sweep([jb.algorithms.uniform], world, horizon=200, seeds=256, checkpoints=[100, 200], progress=False)
    # the gap falls from 0.8 to 0 over 50 plays, rises again until 100 and stays; uniform play pays half of it
    gaps = np.abs(1.6 * np.minimum(np.arange(1, 201) / 100, 1) - 0.8) / 2
    found = ds.regret.isel(algorithm=0)
    wanted = np.cumsum(gaps)[[99, 199]]
    assert np.all(np.abs(found.mean("seed").values - wanted) < 4 * (found.std("seed").values / np.sqrt(256)))
    lane = jb.simulate(jb.algorithms.ucb1(num_arms=2, horizon=2000), world(), history=True)
    late = lane.history.t > 100
    for arm, mean in ((0, 0.9), (1, 0.1)):
        paid = lane.history.reward[late & (lane.history.action == arm)]
        assert abs(paid.mean() - mean) < 4 * 0.3 / np.sqrt(len(paid)) + 1e-6
    with pytest.raises(ValueError, match="end"):
        drifting(start=[0.1, 0.9], end=[0.5], duration=3)


def test_my_private_algorithm_spends_what_it_says(own, tmp_path):
    greedy = own("my_private_algorithm").private_greedy
    arms = jb.environments.bernoulli_arms(means=[0.2, 0.5, 0.8])
    ledger = jb.privacy.ledger(greedy(num_arms=3, horizon=100, epsilon=0.5))
    assert ledger.epsilon == 0.5 and ledger.delta == 0 and ledger.events[0].sensitivity == 1
    audit = jb.audit(greedy(num_arms=3, horizon=100, epsilon=1.0), runs=20_000)
    assert not audit.refuted and audit.ratio > 0.8  # and tight: what is claimed is nearly what can be proven
    settings = {"horizon": 500, "seeds": 64, "progress": False}
    ds = jb.sweep([greedy, jb.algorithms.uniform], arms, **settings, grid={"epsilon": [0.1, 1000]})
    final = ds.regret.isel(t=-1).mean("seed")
    much, little = final.sel(algorithm="private_greedy").values
    assert little < 0.5 * float(final.sel(algorithm="uniform").mean()) and little < much
    settings = read_config(EXAMPLES / "my_private_algorithm.toml")
    assert settings["grid"] == {"epsilon": [0.5, 1, 4]}
    assert list(settings["algorithms"]) == ["private greedy", "ldp_ucb", "ucb1"]
    noiseless = greedy(num_arms=3, horizon=50, epsilon=float("inf"))
    lane = jb.simulate(noiseless, arms, history=True)
    np.testing.assert_array_equal(lane.history.message, lane.history.reward)  # Bernoulli rewards as they are


def test_own_parts_from_the_command_line(tmp_path):
    short = (EXAMPLES / "my_algorithm.toml").read_text().replace("horizon = 10000", "horizon = 300")
    for name in ("my_algorithm.py", "my_environment.py"):
        (tmp_path / name).write_text((EXAMPLES / name).read_text())
        sys.modules.pop(name.removesuffix(".py"), None)
    (tmp_path / "run.toml").write_text(short)
    ds = run(tmp_path / "run.toml", tmp_path / "out")
    assert dict(ds.sizes) == {"algorithm": 3, "exploration": 3, "seed": 8, "t": 100, "arm": 3}
    assert (tmp_path / "out/regret.png").exists()


def test_the_quickstart_and_the_price_of_privacy_run(tmp_path):
    for name in ("quickstart", "price_of_privacy"):
        ds = run(EXAMPLES / f"{name}.toml", tmp_path / name)
        assert ds.sizes["seed"] == 8 and (tmp_path / name / "against_epsilon.png").exists()
    # a linear axis of plays, three curves apart: the picture of the README is this one at 200 seeds
    quick = jb.load(tmp_path / "quickstart")
    final = quick.regret.isel(t=-1).mean("seed").sel(epsilon=1.0)
    assert np.all(np.diff(final.sel(algorithm=["no privacy", "central privacy", "local privacy"])) > 10)
    drawn, shown = (Image.open(path).text["Description"] for path in (tmp_path / "quickstart/regret.png", PICTURE))
    assert drawn.replace("over 8 seeds (few: it may miss more often)", "over 200 seeds") == shown
    assert {axes.get_xscale() for axes in jb.plot.regret(quick).figure.axes} == {"linear"}


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """The digits' files and configurations in a directory of their own."""
    pytest.importorskip("sklearn")
    directory = tmp_path_factory.mktemp("digits")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        importlib.import_module("digits").write(directory)
    for name in ("digits.toml", "digits_models.toml"):
        (directory / name).write_text((EXAMPLES / name).read_text())
    return directory


def test_the_digits_are_read_back(digits):
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    features, marks = jb.read_labelled(digits / "digits.csv", label="label")
    np.testing.assert_array_equal(features, pixels)
    np.testing.assert_array_equal(marks, labels)
    losses = jb.read_losses(digits / "digits_losses.csv")
    assert losses.shape == (17970, 5) and set(np.unique(losses)) == {0.0, 1.0}
    assert np.all(np.diff(losses.mean(axis=0)) < 0)  # from the worst classifier to the best
    assert read_config(digits / "digits_models.toml")["environment"].keywords["losses"].shape == losses.shape


def test_the_digits_run(digits, tmp_path):
    short = (digits / "digits.toml").read_text().replace("horizon = 5000", "horizon = 300")
    (digits / "short.toml").write_text(short)
    ds = run(digits / "short.toml", tmp_path / "out", seeds=4)
    right = (ds.best_reward - ds.regret).isel(t=-1).mean("seed") / 300  # 0.60, 0.39 and 0.34 over many seeds
    for label, least in {"LinUCB": 0.5, "Thompson sampling": 0.3, "epsilon-greedy": 0.2}.items():
        assert float(right.sel(algorithm=label)) > least
    assert abs(float(right.sel(algorithm="UCB1, sees no picture")) - 0.1) < 0.05  # nothing to learn from losses alone
    assert (tmp_path / "out/reward.png").exists()


@pytest.mark.dealt(8)
def test_the_classifiers_run(digits, tmp_path):
    final = run(digits / "digits_models.toml", tmp_path / "out").regret.isel(t=-1).mean("seed").sel(epsilon=1.0)
    order = ["no privacy", "private HTINF", "private EXP3"]
    assert np.all(np.diff([float(final.sel(algorithm=label)) for label in order]) > 0)


@pytest.mark.dealt(8)
def test_typed_labels_hurt_an_average_and_not_a_robust_learner(own, monkeypatch, tmp_path):
    pytest.importorskip("sklearn")
    example = own("label_noise")
    monkeypatch.setattr(jb, "sweep", partial(jb.sweep, progress=False))
    algorithms = {label: example.ALGORITHMS[label] for label in ("UCB1", "Huber-UCB, robust")}
    ds = example.study(horizon=1138, seeds=24, algorithms=algorithms)
    assert ds["arm_name"].values.tolist() == ["benign", "malignant"]
    final = ds.regret.isel(t=-1).mean("seed").sel({"reward_adversary.kind": "fixed"})
    grown = final.sel({"reward_adversary.corruption": 0.2}) - final.sel({"reward_adversary.corruption": 0})
    assert float(grown.sel(algorithm="UCB1")) > 30 > 10 > float(grown.sel(algorithm="Huber-UCB, robust"))
    mistaken = ds.regret.isel(t=-1).mean("seed").sel({"reward_adversary.kind": "swapped"})
    assert float(mistaken.max()) < 80  # of 284 that the worse answer costs
    example.draw(ds, tmp_path)
    assert (tmp_path / "label_noise_swapped.png").exists() and (tmp_path / "label_noise_fixed.png").exists()


def test_privacy_of_answers_costs_more_where_nobody_is_trusted(own, monkeypatch, tmp_path):
    pytest.importorskip("sklearn")
    example = own("private_labels")
    monkeypatch.setattr(jb, "sweep", partial(jb.sweep, progress=False))
    ds = example.study(horizon=2845, seeds=12)
    right, half = example.right(ds)
    for algorithm in ("trusted server", "nobody trusted"):  # more privacy, fewer right answers; most without any
        curve = right.sel(algorithm=algorithm)
        assert float(curve.sel(epsilon=1)) < float(curve.sel(epsilon=10)) < float(right.sel(algorithm="no privacy")[0])
    server, nobody = (float(right.sel(algorithm=label, epsilon=1)) for label in ("trusted server", "nobody trusted"))
    assert 0.88 < server and 0.6 < nobody < server - 0.05 and float(half.max()) < 0.2
    example.draw(ds, tmp_path)
    assert (tmp_path / "private_labels.png").exists()


def test_a_table_of_rewards_says_when_to_look_again(own, monkeypatch, tmp_path):
    pytest.importorskip("sklearn")
    example = own("reward_table")
    monkeypatch.setattr(jb, "sweep", partial(jb.sweep, progress=False))
    ds = example.study(horizon=569, seeds=8)
    assert ds["arm_name"].values.tolist() == example.ANSWERS
    worth = ((ds.best_reward - ds.regret) / ds.t).isel(t=-1).mean("seed")
    assert float(worth.sel(algorithm="LinUCB")) > 0.9 > 0.8 > float(worth.sel(algorithm="UCB1, sees no biopsy"))
    example.draw(ds, tmp_path)
    assert (tmp_path / "reward_table.png").exists()


def test_a_log_is_checked_fitted_and_judges_policies(own, monkeypatch, tmp_path):
    example = own("click_log")
    monkeypatch.setattr(jb, "sweep", partial(jb.sweep, progress=False))
    example.write(tmp_path)
    train, test = example.read(tmp_path)
    assert train.arm_names == example.OFFERS and len(train.arm) == len(test.arm) == 4000
    assert np.abs(test.check()["mean_weight"] - 1).max() < 0.08
    world = jb.environments.fitted(log=train)
    assert world.facts["fit"].value < world.facts["fit"].constant - 0.03
    found = example.judge(world, test, horizon=1000, seeds=8)
    missed = (found["value"] - found["truth"]).abs() / found["standard_error"]
    assert missed.dropna().max() < 4 and len(missed.dropna()) == 6
    assert found.loc["no privacy", "low"] > found.loc["the shop's rule", "high"]


def test_the_best_of_many_policies_is_overrated(own):
    own, other, truth = own("best_of_many").main(logs=12)
    assert own - truth > 0.05 > abs(other - truth)


@pytest.mark.skipif(not shutil.which("bash"), reason="a shell script")
def test_the_job_array_runs_without_slurm(tmp_path):
    """Two tasks of examples/slurm.sh with the variables Slurm would set, then the merge."""
    file, out = tmp_path / "run.toml", tmp_path / "out"
    file.write_text(
        "horizon = 50\nseeds = 16\ncheckpoints = 4\n[environment]\nname = 'bernoulli_arms'\nmeans = [0.2, 0.8]\n"
        "[[algorithm]]\nname = 'ucb1'\n[[algorithm]]\nname = 'uniform'\n"
    )
    for task in ("0", "1"):
        environment = os.environ | {"SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_TASK_COUNT": "2"}
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        command = ["bash", str(EXAMPLES / "slurm.sh"), str(file), str(out)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert len(list((out / "chunks").glob("*/*.npz"))) == int(task) + 1
    ds = run(file, out, seeds=16)
    assert ds.sizes["algorithm"] == 2 and np.all(np.isfinite(ds.regret))
