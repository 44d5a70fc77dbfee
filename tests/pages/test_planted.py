"""The table of planted errors is what the tests declare, and none is planted beside it."""

import os

import planting
import pytest
from reference import stochastic


@pytest.mark.compiles(30)  # what the files that it collects compile when they are imported
def test_every_planted_error_is_in_the_table(pytestconfig):
    """`make planted` writes it."""
    found = planting.declared(pytestconfig)
    if os.environ.get("PLANTED") == "write":
        planting.FILE.write_text(found)
    assert planting.FILE.read_text() == found, "run `make planted`"


def test_an_error_that_is_not_in_the_table_is_refused():
    with pytest.raises(
        AssertionError, match=r"planted\.md has no such row.*\n.*`math.log\(t\)` -> `math.log\(2 \* t\)`"
    ):
        planting.planted(stochastic, "math.log(t)", "math.log(2 * t)")
