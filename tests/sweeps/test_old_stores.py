"""A run's directory of release 0.1.0 (`tests/sweeps/old_run`) is read as before and gone on with beside its chunks."""

import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.cli import main

OLD = Path(__file__).with_name("old_run")


@pytest.fixture
def old(tmp_path):
    return Path(shutil.copytree(OLD, tmp_path / "run"))


def chunks(directory):
    return {path.name for path in directory.rglob("chunks/??/*.npz")}


def test_its_results_load_and_plot(old):
    ds = jb.load(old)
    assert dict(ds.sizes) == {"algorithm": 1, "seed": 8, "t": 4, "arm": 2}
    assert np.isfinite(jb.summary(ds)["mean"]).all()
    assert main(["plot", str(old)]) == 0 and (old / "regret.png").exists()


def test_it_is_computed_anew_beside_its_chunks_and_says_so_once(old):
    before, regret = chunks(old), jb.load(old).regret.values
    with pytest.warns(UserWarning, match="which named them otherwise: .* computed anew beside them"):
        assert main(["run", str(old / "config.toml"), "--out", str(old), "--quiet"]) == 0
    after = chunks(old)
    assert before < after and len(after) == 2 * len(before)
    np.testing.assert_array_equal(jb.load(old).regret, regret)  # UCB1 computes what it did
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(["run", str(old / "config.toml"), "--out", str(old), "--quiet"]) == 0
    assert chunks(old) == after


def test_another_run_is_refused_as_before(old):
    text = (old / "config.toml").read_text().replace("horizon = 50", "horizon = 60")
    (old / "config.toml").write_text(text)
    assert main(["run", str(old / "config.toml"), "--out", str(old), "--quiet"]) == 2


def test_an_argument_that_a_later_release_adds_is_no_other_run(tmp_path):
    """What is at its default is no part of what a directory's runs have in common."""
    arms = jb.environments.bernoulli_arms
    settings = {"horizon": 20, "seeds": 8, "checkpoints": 2, "progress": False, "store": tmp_path}
    environment = arms(means=[0.2, 0.8])
    before = jb.sweep("ucb1", environment, **settings)
    config = type(environment.config)({**environment.config, "tilt": 0.0})
    config.home, config.built = environment.config.home, environment.config.built
    config.defaults = {**environment.config.defaults, "tilt": 0.0}
    later = environment._replace(config=config, remake=None)
    again = jb.sweep("ucb1", later, **settings)
    np.testing.assert_array_equal(again.regret, before.regret)
    assert len(chunks(tmp_path)) == 1
    with pytest.raises(ValueError, match="environment differ"):
        jb.sweep("ucb1", environment._replace(version=2), **settings)
