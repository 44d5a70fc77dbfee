"""`jaxbandits offline FILE`: what it prints and writes, what the report shows of it, and what it refuses."""

import html

import numpy as np
import pandas as pd
import pytest
from reference.own_data import golden_log

import jaxbandits as jb
from jaxbandits.cli import main
from jaxbandits.reports.page.words import number_words

FILE = """
horizon = 40
seeds = 9
[environment]
name = "fitted"
[environment.log]
path = "clicks.csv"
arm = "arm"
reward = "click"
propensity = "chance"
[[algorithm]]
name = "ucb1"
[[algorithm]]
name = "ldp_ucb"
[grid]
epsilon = [1.0, 10.0]
[offline]
share = 0.5
seed = 1
clip = 9
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("clicks")
    pd.DataFrame(golden_log()[1]).to_csv(place / "clicks.csv", index=False)
    (place / "clicks.toml").write_text(FILE)
    return place


def test_a_file_is_trained_judged_and_reported(folder, capsys):
    out, file = folder / "out", str(folder / "clicks.toml")
    assert main(["offline", file, "--out", str(out), "--format", "png,svg", "--seeds", "4"]) == 0
    said = capsys.readouterr()
    assert "trained on 200 rows of the log, judged on 200 by dr" in said.out and "offline.csv, offline.png" in said.out
    frame = pd.read_csv(out / "offline.csv")
    assert {path.name for path in out.iterdir()} == {"offline.csv", "offline.png", "offline.svg"}
    labels = ["logged policy", "ucb1", "ldp_ucb, epsilon = 1.0", "ldp_ucb, epsilon = 10.0"]
    assert frame["policy"].tolist() == labels and all(label in said.out for label in labels)
    # the same from Python
    frame, log = (
        frame.set_index("policy"),
        jb.read_logged(folder / "clicks.csv", arm="arm", reward="click", propensity="chance"),
    )
    train, test = log.split(seed=1)
    assert frame.loc["logged policy", "value"] == pytest.approx(test.reward.mean())
    policy = jb.trained("ucb1", jb.environments.fitted(log=train), horizon=40, seeds=4)
    want = jb.offline([test, policy], test, clip=9)
    columns = ["value", "low", "high", "difference", "difference_low", "effective_size", "bias_bound"]
    np.testing.assert_allclose(frame.loc[labels[:2], columns], want[columns], rtol=1e-12)
    # beside a run that is not there, and in the page
    assert main(["report", str(out)]) == 0
    page = (out / "report.html").read_text()
    cells = [f">{html.escape(label)}<" for label in labels]
    assert "Judged on the log" in page and all(cell in page for cell in cells) and "data:image/png;base64," in page
    assert "Regret against plays" not in page and f"{frame.loc['ucb1', 'value']:.4g}" in page
    for low, high in (("low", "high"), ("difference_low", "difference_high")):
        ends = frame.loc["ucb1", [low, high]].map(number_words)
        assert f">{ends[low]} to {ends[high]}<" in page


def test_rows_in_order_and_another_estimator(folder, capsys):
    (folder / "order" / "offline.csv").mkdir(parents=True)  # what cannot be written takes no result with it
    text = FILE.replace("seed = 1", 'seed = "in order"\nestimator = "ips"').replace("share = 0.5", "share = 0.25")
    (folder / "order.toml").write_text(text)
    assert main(["offline", str(folder / "order.toml"), "--out", str(folder / "order"), "--seeds", "4"]) == 1
    said = capsys.readouterr()
    assert "trained on 100 rows of the log, judged on 300 by ips" in said.out and "cannot write" in said.err
    later = pd.read_csv(folder / "clicks.csv")["click"].iloc[100:].mean()
    (logged,) = (line for line in said.out.splitlines() if line.startswith("logged policy"))
    assert logged.split()[2] == f"{later:.4g}"


WRONG = {
    "environment must be 'fitted'": ('name = "fitted"\n[environment.log]\npath = "clicks.csv"\narm = "arm"\n'
        'reward = "click"\npropensity = "chance"', 'name = "bernoulli_arms"\nmeans = [0.1, 0.2]'),
    "offline has no key 'shares' (did you mean 'share'?)": ("share = 0.5", "shares = 0.5"),
    "offline = 3 must be a table": (FILE[FILE.index("[offline]") :], ""),
    "share = 2 must be a number in (0, 1)": ("share = 0.5", "share = 2"),
    "'replay' takes one arm a row": ("share = 0.5", "estimator = 'replay'"),
    "clip = -1 must be a number": ("clip = 9", "clip = -1"),
    "environment.log: read_logged() missing": ('arm = "arm"', ""),
}  # fmt: skip


@pytest.mark.parametrize("words", WRONG)
def test_bad_input_is_one_line(folder, capsys, words):
    text = FILE.replace(*WRONG[words])
    (folder / "wrong.toml").write_text("offline = 3\n" + text if words.startswith("offline = 3") else text)
    assert main(["offline", str(folder / "wrong.toml"), "--out", str(folder / "wrong")]) == 2
    said = capsys.readouterr().err
    assert words in said.splitlines()[-1] and "wrong.toml" in said.splitlines()[-1]
