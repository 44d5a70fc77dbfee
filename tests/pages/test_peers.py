"""The benchmark beside other libraries, and the table of what they have: without any of them."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import comparison
import measure
import numpy as np
import peer_worlds
import peers
import pytest

import jaxbandits as jb

ROOT = Path(__file__).parents[2]


def as_good(horizon, runs, seed):
    """Regrets of a library that plays UCB1 on ten arms for thirty plays: about 11.5."""
    return np.random.default_rng(seed).normal(11.5, 1, runs)


def worse(horizon, runs, seed):
    return as_good(horizon, runs, seed) + 5


def broken(horizon, runs, seed):
    raise RuntimeError("no arm\nthe rest of a long message")


@pytest.fixture
def fakes(monkeypatch):
    """Libraries that are always there, and one that never is."""
    monkeypatch.setattr(measure, "one_core", lambda: None)  # it would pin the process of the tests
    plays = {"Good": as_good, "Bad": worse, "Broken": broken, "Absent": as_good}
    known = {name: ("json", "pytest") for name in plays} | {"Absent": ("no_such_library", "no-such-library")}
    monkeypatch.setattr(peers, "PLAYS", {"UCB1": plays})
    monkeypatch.setattr(peers, "LIBRARIES", known)


SMALL = ["--turns", "2", "--seconds", "0", "--horizon", "30", "--lanes", "64"]


def test_the_table_has_ratios_regrets_and_what_does_not_run(fakes, tmp_path, capsys):
    page = tmp_path / "page.md"
    names = ("peers", "peers-short", "other")
    page.write_text("".join(f"<!-- {name}: begin -->\n<!-- {name}: end -->\n" for name in names))
    assert peers.main([*SMALL, "--out", str(tmp_path), "--write", str(page)]) == 0
    printed, written = capsys.readouterr().out, page.read_text()
    (skipped,) = [line for line in printed.splitlines() if line.startswith("Absent")]
    assert skipped == "Absent: not installed, left out: pip install '.[bench-peers]'"
    assert "Absent" not in written
    good, bad, failed = json.loads((tmp_path / "peers.json").read_text())
    assert good["ratio"] > 0 and good["low"] <= good["ratio"] <= good["high"]
    assert good["runs"] == 2 * peers.LEAST_RUNS and good["lanes"] == 64
    assert peers.agree(good) and not peers.agree(bad)
    assert failed["error"] == "RuntimeError: no arm"
    lines = {line.split("|")[2].split()[0]: line for line in written.splitlines() if line.startswith("| UCB1 |")}
    assert "| yes |" in lines["Good"] and "| no |" in lines["Bad"]
    assert "does not run: `RuntimeError: no arm`" in lines["Broken"]
    assert "(regrets differ)" in written.split("<!-- peers-short: begin -->")[1]
    assert (tmp_path / "performance-peers.png").stat().st_size > 5_000


def test_rows_are_chosen_by_problem_or_library(fakes, tmp_path, capsys):
    file = tmp_path / "rows.json"
    assert peers.main([*SMALL, "--json", str(file), "Bad"]) == 0
    assert [row["library"] for row in json.loads(file.read_text())] == ["Bad"]
    assert "Absent" not in capsys.readouterr().out
    assert peers.main(["UCB2"]) == 2
    assert "no problem or library 'UCB2'" in capsys.readouterr().err


def test_ratios_have_an_interval_and_every_problem_both_sides():
    ratio, low, high = peers.geometric_mean([2.0, 8.0, 4.0])
    assert ratio == pytest.approx(4) and low * high == pytest.approx(16) and low < 2
    assert np.isnan(peers.geometric_mean([3.0])[1])
    assert [peers.short(x) for x in (12_345, 1_979.6, 27.34, 0.3404)] == ["12,300", "1,980", "27.3", "0.340"]
    assert list(peers.problems()) == list(peers.PLAYS)
    assert {library for plays in peers.PLAYS.values() for library in plays} == set(peers.LIBRARIES)


@pytest.mark.parametrize("library", ["PyMAB", "SMPyBandits", "MABWiser", "river", "GOBRec"])
def test_a_library_that_is_here_plays(library):
    if importlib.util.find_spec(peers.LIBRARIES[library][0]) is None:
        pytest.skip(f"{library} is not installed")
    for name, plays in peers.PLAYS.items():
        if library in plays:
            regrets = plays[library](50, 2, 1)
            assert regrets.shape == (2,) and (regrets > 0).all() and (regrets < 200).all(), name


def _best_choices(actions, rewards, features, width) -> bool:
    """Whether every play had the largest index of LinUCB with a regression for each of three arms, ridge 1."""
    a, b = np.stack([np.eye(2)] * 3), np.zeros((3, 2))
    for action, reward, feature in zip(actions, rewards, features, strict=True):
        blocks = feature.reshape(3, 2)
        assert (np.delete(blocks, action, axis=0) == 0).all()
        x = blocks[action]  # the context that all arms see
        inverse = np.linalg.inv(a)
        bonus = width * np.sqrt(np.einsum("i,kij,j->k", x, inverse, x))
        index = np.einsum("kij,kj,i->k", inverse, b, x) + bonus
        if index[action] < index.max() - 1e-4:
            return False
        a[action] += np.outer(x, x)
        b[action] += reward * x
    return True


def test_our_linucb_on_blocks_plays_a_model_for_each_arm():
    """The choices of `plain_linucb` are those of LinUCB with one ridge regression an arm."""
    theta, horizon = np.random.default_rng(3).normal(size=(3, 2)), 60
    world = peer_worlds.linear_models(theta, 0.5, shared=True)
    algorithm = peer_worlds.plain_linucb(num_arms=3, dim=6, horizon=horizon)
    history = jb.simulate(algorithm, world, history=True, dtype="float64").history
    features, rewards = (np.asarray(part) for part in history.message)
    actions = np.asarray(history.action)
    assert len(set(actions)) == 3 and rewards.std() > 0.3
    assert _best_choices(actions, rewards, features, width=1.0)
    assert not _best_choices(actions, rewards, features, width=2.0)


def test_gains_are_losses_of_arms_that_pay_one_more():
    algorithm = jb.algorithms.exp3(num_arms=2, horizon=50, mixing=0.1, learning_rate=0.1)
    gains, arms = peer_worlds.bernoulli_gains(np.array([0.0, 1.0])), jb.environments.bernoulli_arms(means=[0, 1])
    for world, more in ((gains, 1), (arms, 0)):
        run = jb.simulate(algorithm, world, history=True)
        assert (np.asarray(run.history.reward) == np.asarray(run.history.action) + more).all()
        assert 0 < run.regret[-1] < 50


def test_the_rows_of_the_pages_are_whole():
    rows = json.loads((ROOT / "docs" / "figures" / "peers.json").read_text())
    assert {row["problem"] for row in rows} == set(peers.PLAYS)
    assert min(row["turns"] for row in rows if "error" not in row) >= 5
    said = [row for row in rows if row["problem"] == "UCB1" and row["library"] in ("PyMAB", "SMPyBandits", "Numba")]
    assert len(said) == 3 and all(peers.agree(row) for row in said)  # "at equal regret"


def test_the_extra_has_the_versions_that_were_measured():
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["bench-peers"]
    pinned = dict(one.split("==") for one in extra if "==" in one)
    rows = json.loads((ROOT / "docs" / "figures" / "peers.json").read_text())
    measured = {peers.LIBRARIES[row["library"]][1]: row["version"] for row in rows}
    assert {name: measured[name] for name in pinned} == pinned


def test_every_cell_of_ours_is_a_public_name_or_a_page():
    assert [line for row in comparison.rows() for line in comparison.wrong(row, {})] == []
    lost = "docs/" + "no_page.md"
    wrong = comparison.wrong({"feature": "x", "ours": f"yes algorithms.ucb2 {lost} algorithms.ucb1"}, {})
    assert wrong == ["x: ours: algorithms.ucb2", f"x: ours: {lost}"]


def test_every_no_says_what_was_searched():
    for row in comparison.rows():
        cells = {name: comparison.cell(row[name]) for name in ("ours", *comparison.LIBRARIES)}
        if "no" in {cells[name].answer for name in comparison.LIBRARIES}:
            assert ("searched" in row) != ("absent" in row), row["feature"]
        partly = [one for one in cells.values() if one.answer == "partly"]
        assert all(one.remark for one in partly), row["feature"]
    for text in ("maybe x", "no x", "yes"):
        with pytest.raises(ValueError, match="a cell is"):
            comparison.cell(text)


def test_cells_of_a_library_are_looked_up(tmp_path):
    (tmp_path / "arms.py").write_text("class  UCB(Policy):\n    'A page on Privacy.'\n")
    row = {"feature": "x", "ours": "no", "searched": "privacy"}
    assert comparison.wrong(row | {"pymab": "yes arms.py:class_UCB"}, {"pymab": tmp_path}) == []
    (lost,) = comparison.wrong(row | {"pymab": "yes arms.py:class_UCB2"}, {"pymab": tmp_path})
    assert lost.endswith("arms.py:class_UCB2")
    (there,) = comparison.wrong(row | {"pymab": "no"}, {"pymab": tmp_path})
    assert there == "x: PyMAB 2.0.1: 'privacy' is in arms.py"


def test_the_short_table_and_sentences_say_what_the_table_says():
    lines = comparison.short_table(comparison.rows()).splitlines()
    assert len(lines) == 14  # twelve rows: first those that nobody else has, last those that are not here
    rows = [re.findall(r"\b(?:yes|partly|no)\b(?= \|)", line) for line in lines[2:]]
    assert rows[0] == ["yes", "no", "no", "no", "no"] and rows[0] == rows[3] != rows[4]
    ours = [row[0] for row in rows]
    assert ours == ["yes"] * ours.count("yes") + ["no"] * 3
    answers = comparison.answers()
    assert [line for one in comparison.rows("sentence") for line in comparison.wrong_of_sentence(one, answers)] == []
    assert all(one["cells"] for one in comparison.rows("sentence"))
    sentence = {"text": "Take obp. Or not.", "cells": {"EXP3": {"obp": "yes"}, "no row": {"ours": "no"}}}
    wrong = comparison.wrong_of_sentence(sentence, answers)
    assert wrong == ["Take obp: EXP3: obp is no, not yes", "Take obp: no row: ours is None, not no"]


def test_libraries_without_a_column_are_looked_up(tmp_path):
    assert [one["library"] for one in comparison.rows("other")] == list(comparison.OTHERS)
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs" / "arms.py").write_text("class Testbed:\n    'draws rewards'\n")
    other = {"library": "river", "has": ["envs/arms.py:class_Testbed"], "lacks": "privacy"}
    assert comparison.wrong_of_other(other, tmp_path) == []
    for changes, wrong in (
        ({"has": ["envs/arms.py:class_Arms"]}, "envs/arms.py:class_Arms"),
        ({"lacks": "rewards"}, "'rewards' is in envs/arms.py"),
        ({"within": "agents"}, f"no Python files in {tmp_path / 'agents'}"),
    ):
        assert comparison.wrong_of_other(other | changes, tmp_path) == [f"river 0.26.1: {wrong}"]


def test_sources_may_be_given_several_times(tmp_path, monkeypatch, capsys):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text("")
    seen = []
    monkeypatch.setattr(comparison, "folders", lambda given: seen.extend(given) or {})
    given = ["--source", f"river={tmp_path / 'one'}", "--source", f"gobrec={tmp_path / 'two'}"]
    assert comparison.main(["--check", *given]) == 0
    assert seen == given[1::2] and "0 wrong" in capsys.readouterr().out
