"""Functions of parts that are traced once, and that no garbage is collected meanwhile."""

import gc
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.garbage import pause_collection
from jaxbandits.traced_once import Traces, shapes, trace_once

X = np.arange(6, dtype=np.float32)


def counted():
    """A function that is traced once, and the labels with which it was called."""
    labels = []

    @trace_once
    def function(parts, x, label):
        labels.append((label, gc.isenabled()))
        return {"head": x[:2], "label": label}, jnp.sum(x)

    return function, labels


@pytest.mark.parametrize("kept", [True, False])
def test_shapes_are_those_of_what_it_returns(kept):
    function, labels = counted()
    parts = SimpleNamespace(traces=Traces() if kept else None)
    for label in ("a", "a", "b"):
        named, total = shapes(function, parts, X, label)
        assert named == {"head": jax.ShapeDtypeStruct((2,), np.float32), "label": label}
        assert (total.shape, total.dtype) == ((), np.float32)
    found, total = function(parts, X, "a")
    assert total == 15 and found["label"] == "a" and (found["head"] == X[:2]).all()
    # without traces every use asks the function again
    assert [label for label, _ in labels] == (["a", "b"] if kept else ["a", "a", "b", "a"])
    assert not labels[0][1]
    assert str(parts.traces) == ("<2 traces>" if kept else "None")


@pytest.mark.parametrize("before", [True, False])
def test_collections_are_afterwards_what_they_were(before):
    was = gc.isenabled()
    try:
        (gc.enable if before else gc.disable)()
        with pytest.raises(KeyError), pause_collection():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() == before
    finally:
        (gc.enable if was else gc.disable)()
