"""A run's directory that release 0.1.0 wrote (`tests/old_run`): it is read as before and gone on with beside its chunks."""

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
    with pytest.warns(UserWarning, match="under keys that could be stale: .* computed anew beside them"):
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
