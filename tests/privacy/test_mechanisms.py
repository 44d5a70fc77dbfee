"""Scales of noise against root finding and docs/formulas/byzantine.md#calibrations; the tree against a literal one."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from uncompiled import uncompiled

from jaxbandits import mechanisms as m


def least_delta(ratio, epsilon):
    """The least delta by integrating the excess of one density over the other."""
    edge = epsilon / ratio - ratio / 2  # beyond it the privacy loss exceeds epsilon
    excess = lambda y: norm.pdf(y) - math.exp(epsilon) * norm.pdf(y + ratio)
    return quad(excess, edge, edge + 40, epsabs=0, epsrel=1e-12)[0]


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 1e-3, 0.3])
def test_analytic_scale_is_the_root(epsilon, delta):
    scale = m.gaussian_scale(3.0, epsilon, delta, "analytic")
    # delta grows at least as fast as the ratio, so that the scale is as near to the root
    assert least_delta(3.0 / scale, epsilon) == pytest.approx(delta, rel=1e-9)
    assert m.gaussian_epsilon(3.0, scale, delta) == pytest.approx(epsilon, rel=1e-11)
    assert m.gaussian_epsilon(3.0, 1.1 * scale, delta) < epsilon < m.gaussian_epsilon(3.0, scale / 1.1, delta)
    assert m.gaussian_scale(3.0, epsilon, delta, "zcdp") >= scale
    if epsilon <= 1:
        assert m.gaussian_scale(3.0, epsilon, delta) == 3 * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def test_limits_of_the_gaussian():
    assert [m.gaussian_scale(1.0, math.inf, 1e-5, rule) for rule in ("classic", "analytic", "zcdp")] == [0, 0, 0]
    assert m.gaussian_epsilon(1.0, 0.0, 1e-5) == math.inf
    assert m.gaussian_epsilon(1.0, math.inf, 1e-5) == 0 == m.gaussian_epsilon(1.0, 1e6, 1e-5)  # delta alone covers it
    assert m.gaussian_scale(1.0, 1e-300, 1e-5, "zcdp") == pytest.approx(math.sqrt(2 * math.log(1e5)) * 1e300)
    rho = m.zcdp_rho(2.0, 1e-6)
    assert rho + 2 * math.sqrt(rho * math.log(1e6)) == pytest.approx(2.0)  # Bun and Steinke's conversion back


def test_figures_of_the_calibrations():
    for epsilon, delta, wanted in [(4, 1e-3, 2.0161), (1, 1e-3, 6.3066), (0.5, 1e-5, 17.2244)]:
        assert round(m.tree_scale(7.0, 100, epsilon, delta) / (7 * math.sqrt(7)), 4) == wanted
    scales = {c: m.tree_scale(1.0, 64, 4.0, 1e-3, calibration=c) for c in ("exact", "zcdp", "paper")}
    spent = {c: m.tree_epsilon(1.0, 64, scale, 1e-3) for c, scale in scales.items()}
    assert {c: round(e, 2) for c, e in spent.items()} == {"exact": 4.0, "zcdp": 2.96, "paper": 0.32}
    for epsilon, wanted in [(4.0, 6.5), (1.0, 7.0)]:
        paper, zcdp = (m.tree_scale(1.0, 64, epsilon, 1e-3, calibration=c) for c in ("paper", "zcdp"))
        assert round(paper / zcdp, 1) == wanted
    assert m.tree_scale(2.0, 9, 4.0, 1e-3, calibration="paper") == pytest.approx(8 * 5**0.5 * 2 * math.log(4000) / 4)
    wanted = 2 * (3 * 4 / m.zcdp_rho(4.0, 1e-3)) ** 0.5
    assert m.tree_scale(2.0, 9, 4.0, 1e-3, calibration="zcdp") == pytest.approx(wanted)
    increments = m.tree_scale(2.0, 9, 4.0, 1e-3, form="increment")
    assert increments == m.tree_scale(2.0, 1, 4.0, 1e-3)
    assert m.tree_epsilon(2.0, 9, increments, 1e-3, form="increment") == pytest.approx(4.0)
    # average variance over a run, tree to increments: closed form of docs/formulas/byzantine.md#increments for K a
    # power of two
    for K, wanted in [(8, 1.29), (16, 1.07), (64, 0.57), (512, 0.16)]:
        tree, increment = m.tree_scale(1.0, K - 1, 1.0, 1e-3), m.tree_scale(1.0, K - 1, 1.0, 1e-3, form="increment")
        bits = sum(n.bit_count() for n in range(K))
        assert round(tree**2 * bits / (increment**2 * K * (K - 1) / 2), 2) == wanted


def test_nothing_released_and_no_noise():
    assert m.tree_scale(1.0, 0, 1.0, 1e-3) == 0 == m.tree_scale(1.0, 8, math.inf, 1e-3, calibration="paper")
    assert m.tree_epsilon(1.0, 0, 0.0, 1e-3) == 0 and m.tree_epsilon(1.0, 3, 0.0, 1e-3) == math.inf


@pytest.mark.parametrize("last", [1, 2, 5, 64])
def test_the_state_is_the_literal_tree(last):
    fresh = (
        np.random.default_rng(0).integers(-1000, 1000, (last + 1, 2)).astype(np.float32)
    )  # sums of integers are exact
    nodes = {(j, n): fresh[n] for n in range(1, last + 1) for j in range(7) if n % 2**j == 0 and (n >> j) % 2 == 1}
    init, release, again = m.tree(last, (2,))
    state, release, again = uncompiled(lambda: init(jnp.float32))(), uncompiled(release), uncompiled(again)
    assert state.shape == (last.bit_length() + 1, 2)
    assert again(state, np.int32(0)).tolist() == [0, 0]
    for n in range(1, last + 1):
        state, noise = release(state, np.int32(n), fresh[n])
        end, wanted, used = n, np.zeros(2), 0
        while end:  # dyadic intervals from the right: the one that ends at `end` is as long as its lowest bit
            j = (end & -end).bit_length() - 1
            wanted, end, used = wanted + nodes[j, end], end - 2**j, used + 1
        assert used == n.bit_count()
        assert noise.tolist() == again(state, np.int32(n)).tolist() == wanted.tolist()


def test_variances_of_the_noise():
    fresh = np.random.default_rng(1).normal(size=(16, 20_000)).astype(np.float32)
    for form, variance in [("tree", int.bit_count), ("increment", lambda n: n)]:
        init, release, _ = m.tree(15, (20_000,), form)
        state, release = uncompiled(lambda init=init: init(jnp.float32))(), uncompiled(release)
        for n in range(1, 16):
            state, noise = release(state, np.int32(n), fresh[n])
            # four standard errors of a variance are 4 sqrt(2 / 20000) = 4 percent
            assert np.var(noise) == pytest.approx(variance(n), rel=0.04)
