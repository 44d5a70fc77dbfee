"""The table of planted errors is what the tests declare, and none is planted beside it."""

import os

import planting
import pytest
from reference import stochastic


@pytest.mark.compiles(100)  # what the files that it collects compile when they are imported
def test_every_error_in_the_table_is_declared(pytestconfig):
    """`make planted` writes it; what was declared since is not in it yet."""
    found = planting.declared(pytestconfig)
    if os.environ.get("PLANTED") == "write":
        planting.FILE.write_text(found)
    stale = set(planting.FILE.read_text().splitlines()) - set(found.splitlines())
    assert not stale, f"run `make planted`: {stale}"


def test_an_error_that_is_not_declared_is_refused():
    with pytest.raises(AssertionError, match=r"declare the error.*\n.*`math.log\(t\)` -> `math.log\(2 \* t\)`"):
        planting.planted(stochastic, "math.log(t)", "math.log(2 * t)")
