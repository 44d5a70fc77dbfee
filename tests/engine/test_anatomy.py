"""Functions between an argument and its use are no more than benchmarks/anatomy.toml has."""

import json
import sys
from pathlib import Path

import fresh_process
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="other versions of Python count other frames")
def test_no_more_functions_stand_between_an_argument_and_its_use():
    script = "import json, anatomy; print(json.dumps([anatomy.frames(), anatomy.allowed()]))"
    run = fresh_process.run(script, env=fresh_process.environment(PYTHONPATH=str(BENCHMARKS)))
    assert run.returncode == 0, run.stderr
    counted, most = json.loads(run.stdout)
    assert {name: count for name, count in counted.items() if count > most[name]} == {}
