"""`make test` has no time for all tests of a kind: a part is dealt to it, and `make exhaustive` runs the others."""

import pytest


def others(names) -> list:
    """Parameters of tests that only `make exhaustive` runs."""
    rows = [name if isinstance(name, tuple) else (name,) for name in names]
    return [pytest.param(*row, marks=pytest.mark.exhaustive) for row in rows]


def dealt(names, one_in: int, always=()) -> list:
    """Every so many of `names` for `make test`, and `always`; the others are for `make exhaustive`."""
    names = list(names)
    assert all(name in names for name in always)
    return [name if i % one_in == 0 or name in always else others([name])[0] for i, name in enumerate(names)]
