"""`benchmarks/families.py` at tiny sizes: it runs, both sides agree, and a name that it does not know is refused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "families.py"


def run(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)], capture_output=True, text=True, timeout=300
    )


@pytest.mark.slow
def test_both_sides_of_a_row_agree(tmp_path):
    file = tmp_path / "rows.json"
    done = run("--turns", 1, "--lanes", 128, "--json", file, "ucb1-lane-by-lane")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(file.read_text())
    assert row["name"] == "ucb1-lane-by-lane"
    assert row["ratio"] == pytest.approx(row["ours"] / row["numba"])
    # 375 is UCB1's mean regret on these arms; both means have a standard error of about 2.5
    for side in ("ours", "numba"):
        assert abs(row[f"regret_{side}"] - 375) < 5 * row[f"regret_{side}_se"] < 25
    assert not any(line.endswith("!") for line in done.stdout.splitlines())


def test_an_unknown_row_is_refused_in_one_line():
    done = run("ucb2")
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "'ucb2'" in line and "kl_ucb" in line
