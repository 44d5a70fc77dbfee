"""The same version numbers, the same results; `make pins` writes down programs that were refactored (tests/pins.py)."""

import os

import pins
import pytest

from jaxbandits import catalogue
from jaxbandits.sweeps.identity import pinned_code

_written: dict = {}


@pytest.mark.parametrize("name", catalogue.EVERYTHING)
def test_results_are_pinned(subject, name):
    now, before = pins.pin(subject), pins.pinned()
    if os.environ.get("PINS") == "write":
        _written[name] = now
    else:
        fault = pins.fault(name, now, before["cases"].get(name), before["jax"])
        assert not fault, fault


def test_the_code_is_what_is_pinned():
    if os.environ.get("PINS") == "write":
        pins.write(_written)
        pinned_code.record()
    assert set(pins.pinned()["cases"]) == set(catalogue.EVERYTHING)
    assert pinned_code.unchanged(), "the package's code is not what is pinned: run `make pins`"
