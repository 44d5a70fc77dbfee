"""A run ends well wherever its words go: streams in another encoding, and none at all."""

import io
import sys
from pathlib import Path

import fresh_process
import pytest

import jaxbandits as jb
from jaxbandits.cli import main

RUN = """
horizon = 20
seeds = 8
checkpoints = 2
environment = {name = "bernoulli_arms", means = [0.2, 0.8]}
algorithm = [{name = "ucb1", label = "ε"}]
"""
RUNS = [("ascii", "run x.toml"), ("latin-1", "run x.toml"), ("ascii", "report runs/x")]


@pytest.mark.parametrize(("encoding", "typed"), [*RUNS, ("ascii", "list algorithms"), ("cp1252", "list ucb1")])
def test_no_character_ends_a_command(encoding, typed, tmp_path, monkeypatch):
    words = typed.split()
    monkeypatch.chdir(tmp_path)
    Path("x.toml").write_text(RUN, encoding="utf-8")
    if words[0] == "report":
        assert main(["run", "x.toml", "--quiet"]) == 0
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert main(words) == 0
    sys.stdout.flush()
    said = sys.stdout.buffer.getvalue().decode(encoding)
    assert sys.stdout.errors == "strict"  # as it was
    if words[0] == "run":
        plus = "+-" if encoding == "ascii" else "±"
        label = "ε" if encoding == "utf-8" else "\\u03b5"
        assert f"| {label} | 3.00 {plus} 0.97 |" in said


def test_what_a_user_has_chosen_for_a_stream_stays(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="ignore"))
    assert main(["list", "algorithms"]) == 0 and sys.stdout.errors == "ignore"


CLOSED = """
import os, sys
for number, name in enumerate(("stdin", "stdout", "stderr")):
    if name in sys.argv[1]:
        os.close(number)
        setattr(sys, name, None)
import jaxbandits as jb
from jaxbandits.cli import main
done = main(["run", "x.toml", "--out", "out"])
arms = jb.environments.bernoulli_arms(means=[0.2, 0.8])
jb.sweep("ucb1", arms, horizon=20, seeds=8, checkpoints=2)
os._exit(done)
"""


@pytest.mark.parametrize("closed", ["stderr", "stdout", "stdin stdout stderr"])
def test_closed_streams_stop_nothing(closed, tmp_path):
    (tmp_path / "x.toml").write_text(RUN, encoding="utf-8")
    assert fresh_process.run(CLOSED, closed, cwd=tmp_path).returncode == 0
    assert jb.load(tmp_path / "out").sizes["seed"] == 8


def test_a_library_call_without_streams(tmp_path):
    script = CLOSED.replace('done = main(["run", "x.toml", "--out", "out"])', "done = 0")
    assert fresh_process.run(script, "stdin stdout stderr", cwd=tmp_path).returncode == 0
