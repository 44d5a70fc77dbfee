"""Robust linear bandits against their literal transcriptions: the same draws in, the same paths out, in float64."""

import math

import jax
import numpy as np
import pytest
from reference import robust_linear as literal

from jaxbandits.estimators import spectral_filter

# ---------------------------------------------------------------- the filter


def contaminated(seed):
    """Reports sorted by arm, directions of any rank, a bound near what clean reports have."""
    rng = np.random.default_rng(seed)
    n, k, d = ((211, 5, 3), (40, 7, 1), (300, 6, 4))[seed % 3]  # few shapes: each is compiled
    u = rng.normal(size=(k, d))
    if seed % 5 == 0:
        u[:, -1] = 0
    arms = np.sort(rng.integers(k, size=n))
    reports = rng.normal(size=n) + u[arms] @ rng.normal(size=d)
    share, value = rng.choice([0.02, 0.1, 0.2]), rng.choice([8.0, 30.0, 1e6, -1e3, math.inf, math.nan])
    reports[rng.random(n) < share] = value
    square = np.linalg.eigvalsh(u.T @ (np.bincount(arms, minlength=k)[:, None] * u) / n)[-1]
    return rng.random(n + 1), reports, arms, u, rng.choice([0.2, 0.5, 2.0]) * square


@pytest.mark.parametrize("seed", range(40))
def test_the_filter_removes_the_same_reports(seed):
    uniforms, reports, arms, u, bound = contaminated(seed)
    finite = np.isfinite(reports)
    x = u[arms] * np.where(finite, np.clip(reports, -1e6, 1e6), 0.0)[:, None]
    for most in (None,) if seed % 4 else (None, 3):
        want = literal.spectral_filter(lambda s: uniforms[s], x[finite], bound, max_removals=most)
        with jax.enable_x64(True):
            got = spectral_filter(uniforms, reports, arms, u, bound, max_removals=most)
        assert int(got.num_removed) == want.num_removed and int(got.num_dropped) == (~finite).sum()
        np.testing.assert_array_equal(np.asarray(got.keep)[finite], want.keep)
        np.testing.assert_allclose(got.mean, want.mean, rtol=1e-8, atol=1e-9)
        seen = np.asarray(got.eigenvalues)[: want.num_removed + 1]
        np.testing.assert_allclose(seen, want.eigenvalues[: len(seen)], rtol=1e-5, atol=1e-7)
        assert bool(got.exhausted) == want.capped
