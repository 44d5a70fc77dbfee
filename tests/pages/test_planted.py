"""The table of planted errors is what the tests declare."""

import os

import planting
import pytest


@pytest.mark.compiles(30)  # what the files that it collects compile when they are imported
def test_every_planted_error_is_in_the_table():
    """`make planted` writes it."""
    found = planting.declared()
    if os.environ.get("PLANTED") == "write":
        planting.FILE.write_text(found)
    assert planting.FILE.read_text() == found, "run `make planted`"
