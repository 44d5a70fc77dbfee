"""What a type checker says of a user's own code: misspelt, positional and wrong arguments are found before it runs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mypy import api

import jaxbandits

RIGHT = """
from functools import partial

import numpy as np

import jaxbandits as jb
from jaxbandits.protocol import Algorithm

arms = jb.environments.bernoulli_arms(means=[0.2, 0.8])
more = jb.environments.bernoulli_arms(means=np.array([0.2, 0.8]))
algorithm: Algorithm = jb.algorithms.ucb1(num_arms=2, horizon=100)
private = partial(jb.algorithms.private_batched, base=jb.algorithms.exp3)
attack = jb.adversaries.huber(corruption=np.float64(0.1), kind="swapped")
ds = jb.sweep({"UCB1": jb.algorithms.ucb1, "private": private}, arms, horizon=100, seeds=8,
              grid={"epsilon": [0.5, 1.0]}, reward_adversary=attack, progress=False)
ds = jb.sweep("ucb1", "bernoulli_arms", horizon=[100, 200], seeds=range(8),
              grid={"environment.means": {"easy": [0.1, 0.9]}})
run = jb.simulate(algorithm, arms, seed=3, history=True)
bound: float = jb.theory.htinf_bound(10, 1_000, 0.5)
"""
WRONG = {
    "jb.algorithms.ucb1(num_armz=3, horizon=100)":
        'Unexpected keyword argument "num_armz" for "ucb1"; did you mean "num_arms"?',
    "jb.algorithms.ucb1(3, 100)": 'Too many positional arguments for "ucb1"',
    'jb.algorithms.ucb1(num_arms="three", horizon=100)': 'Argument "num_arms" to "ucb1" has incompatible type "str"',
    'jb.algorithms.ldp_exp3(num_arms=3, horizon=100, epsilon="1")':
        'Argument "epsilon" to "ldp_exp3" has incompatible type "str"',
    "jb.algorithms.ucb2(num_arms=3, horizon=100)": 'Module has no attribute "ucb2"',
    "jb.environments.bernoulli_arms(means=0.5)": 'Argument "means" to "bernoulli_arms" has incompatible type "float"',
    "jb.environments.bernoulli_arms()": 'Missing named argument "means" for "bernoulli_arms"',
    'jb.adversaries.huber(corruption=0.1, kind="swaped")': 'Argument "kind" to "huber" has incompatible type',
    'jb.sweep("ucb1", "bernoulli_arms", horizon=100, seed=8)': 'Unexpected keyword argument "seed" for "sweep"',
    'jb.sweep("ucb1", "bernoulli_arms", horizon=100, seeds="8")':
        'Argument "seeds" to "sweep" has incompatible type "str"',
    "jb.swep": 'Module has no attribute "swep"',
}  # fmt: skip


def said(tmp_path, code: str) -> str:
    path = tmp_path / "mine.py"
    path.write_text(code)
    settings = Path(__file__).parents[2] / "pyproject.toml"  # the cache is that of `make types`
    out, errors, _ = api.run([f"--config-file={settings}", str(path)])
    return out + errors


def test_right_calls_pass_and_wrong_ones_are_found(tmp_path):
    assert said(tmp_path, RIGHT).startswith("Success")
    answers = said(tmp_path, "import jaxbandits as jb\n" + "\n".join(WRONG) + "\n").splitlines()
    for line, (call, expected) in enumerate(WRONG.items(), 2):
        here = [answer for answer in answers if f"mine.py:{line}:" in answer]
        assert any(expected in answer for answer in here), (call, here)


@pytest.mark.pages
def test_nine_in_ten_public_symbols_have_known_types():
    checker = shutil.which("basedpyright", path=str(Path(sys.executable).parent))
    assert checker, "basedpyright is among the development tools"
    place = Path(sys.executable).parent
    path = f"{place}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"VIRTUAL_ENV": str(place.parent), "PATH": path}
    command = [checker, "--verifytypes", jaxbandits.__name__, "--ignoreexternal", "--outputjson"]
    done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)["typeCompleteness"]
    unknown = [s["name"] for s in report["symbols"] if s["isExported"] and not s["isTypeKnown"]]
    assert report["completenessScore"] >= 0.9, unknown[:50]
