"""Every case computes what it did; `make pins` writes down programs that were refactored (tests/pins.py)."""

import itertools
import os

import jax
import pins
import pytest

from jaxbandits import catalogue
from jaxbandits.sweeps.storage.store import KEYS

_written: dict = {}


@pytest.mark.parametrize("name", catalogue.EVERYTHING)
def test_results_are_pinned(subject, name, unless_pinned):
    now = pins.pin(subject)
    if os.environ.get("PINS") == "write":
        _written[name] = now
    elif name not in pins.pinned()["cases"]:
        pytest.skip("not pinned yet: a maintainer runs `make pins`")
    else:
        fault = pins.fault(name, now, pins.pinned())
        assert not fault, fault


def test_what_is_pinned_is_in_the_catalogue():
    if os.environ.get("PINS") == "write":
        pins.write(_written, os.environ.get("CHANGED", "").split(","))
    cases = pins.pinned()["cases"]
    assert set(cases) <= set(catalogue.EVERYTHING)
    same = [(x, y) for x, y in itertools.combinations(cases, 2) if cases[x]["key"] == cases[y]["key"]]
    assert sorted(same) == [("bernoulli_arms", "ucb1"), ("bernoulli_losses", "exp3_ix")]  # the same sweep twice


def test_other_results_under_the_same_keys_are_a_fault(monkeypatch, tmp_path):
    """Such as after an edit of the host's regret. The number of keys mends it."""
    then = {"key": "a", "program": "b", "pulls": [[1, 2]], "regret": [0.5]}
    before = {"jax": jax.__version__, "keys": KEYS, "cases": {"x": then}}
    other = then | {"regret": [0.25]}
    assert pins.fault("x", then, before) == "" and "raise KEYS" in pins.fault("x", other, before)
    assert "raise KEYS" in pins.fault("x", then | {"pulls": [[2, 1]], "program": "c"}, before)
    for now, pinned in ((other, before | {"keys": KEYS - 1}), (other | {"key": "c"}, before)):
        fault = pins.fault("x", now, pinned)
        assert "other results" in fault and "raise KEYS" not in fault
    for other_name in ({"program": "c"}, {"key": "c"}):
        assert "another program or key" in pins.fault("x", then | other_name, before)
        assert pins.fault("x", then | other_name, before | {"jax": "0.0.0"}) == ""
    monkeypatch.setattr(pins, "FILE", tmp_path / "pinned.json")
    pins.write({"x": then}, [])
    for now, changed in ((other, ["x"]), (other | {"key": "c"}, ["y"])):
        with pytest.raises(AssertionError, match="gives other results"):
            pins.write({"x": now}, changed)
    pins.write({"x": other | {"key": "c"}}, ["x"])
    assert pins.pinned()["cases"]["x"]["regret"] == [0.25]
