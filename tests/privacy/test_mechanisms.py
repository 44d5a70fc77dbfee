"""Scales of noise against root finding and docs/formulas/byzantine.md#calibrations; the tree against a literal one."""

import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm
from uncompiled import uncompiled

from jaxbandits import mechanisms as m
from jaxbandits.mechanisms import gaussian, pure
from jaxbandits.mechanisms.tree import node_scale

INF = math.inf


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


@pytest.mark.parametrize("ratio", [1e-4, 0.01, 0.49, 0.5, 0.51, 1.0, 3.0, 30.0])
def test_deltas_and_epsilons_of_every_size_of_noise(ratio):
    """On both sides of every case of the formula: losses below and above epsilon at the centre, ratios around 1/2."""
    for epsilon in (0.0, 1e-3 * ratio, ratio * ratio / 2, 0.7 * ratio + ratio * ratio / 2, 8 * ratio):
        delta = m.gaussian_delta(0.7 * ratio, 0.7, epsilon)
        assert delta == pytest.approx(least_delta(ratio, epsilon), rel=1e-8)
        found = m.gaussian_epsilon(0.7 * ratio, 0.7, min(delta, 1 - 1e-12))
        assert found == pytest.approx(epsilon, rel=1e-6, abs=1e-6 * ratio) or delta > 1 - 1e-12
    covers = math.erf(ratio / math.sqrt(8))  # delta at epsilon = 0
    if ratio < 3:
        assert m.gaussian_epsilon(ratio, 1.0, covers * (1 + 1e-9)) == 0 < m.gaussian_epsilon(ratio, 1.0, covers * 0.999)


ROOTS = [
    lambda x: x**3 - 2, lambda x: math.exp(x) - 5, lambda x: math.tanh(3 * (x - 0.3)), lambda x: (x - 0.7) ** 3,
    lambda x: 0.25 - x, lambda x: 2.0 - x, lambda x: x + 1,
    lambda x: math.atan(50 * (x + 0.4)) + 0.01 * x, lambda x: 1 / (x - 0.6) - 9,
    lambda x: (x - 0.1) * abs(x - 0.1) * math.exp(x),
    lambda x: 1e-30 * (math.exp(30 * x) - 2), lambda x: math.log(x + 1.001) + x**7, lambda x: x - 1e-14,
]  # fmt: skip


def test_roots_are_looked_for_where_scipy_looks():
    """Brent's method, point for point."""
    for function, (low, high), most in itertools.product(ROOTS, [(-1.0, 2.0), (0.61, 2.0)], [1e-15, 1e-300, 0.03]):
        if function(low) * function(high) > 0:
            continue
        points = [], []
        record = [lambda x, seen=seen, function=function: seen.append(x) or function(x) for seen in points]
        ours = gaussian._root(record[0], low, high, most)
        assert ours == brentq(record[1], low, high, xtol=most, rtol=1e-15, maxiter=999)
        assert points[0] == points[1]


def test_limits_of_the_gaussian():
    assert [m.gaussian_scale(1.0, INF, 1e-5, rule) for rule in ("classic", "analytic", "zcdp")] == [0, 0, 0]
    assert m.gaussian_epsilon(1.0, 0.0, 1e-5) == INF == m.zcdp_rho(INF, 1e-5)
    assert m.gaussian_epsilon(1.0, INF, 1e-5) == 0 == m.gaussian_epsilon(1.0, 1e6, 1e-5)  # delta alone covers it
    assert [m.gaussian_delta(3.0, scale, 1.0) for scale in (0.0, INF, 1e-60)] == [1.0, 0.0, 1.0]
    # so little noise that epsilon is half the ratio's square
    assert m.gaussian_epsilon(3.0, 1e-60, 1e-5) == pytest.approx(4.5e120)
    assert [m.gaussian_delta(3.0, 1e-60, epsilon) for epsilon in (4.4e120, 4.6e120)] == [1.0, 0.0]
    assert m.gaussian_delta(2.0**200, 1.0, 2.0**399) == 1.0  # at the edge one half: never said to be less
    assert m.gaussian_scale(3.0, 2e120, 1e-5, "analytic") == pytest.approx(1.5e-60)
    assert m.gaussian_scale(3.0, 2e90, 1e-5, "analytic") == pytest.approx(1.5e-45)
    assert m.gaussian_scale(3.0, 1e-300, 1e-5, "zcdp") == pytest.approx(3 * math.sqrt(2 * math.log(1e5)) * 1e300)
    assert m.gaussian_scale(3.0, 2.0, 1e-5, "zcdp") == pytest.approx(3 / math.sqrt(2 * m.zcdp_rho(2.0, 1e-5)))
    rho = m.zcdp_rho(2.0, 1e-6)
    assert rho + 2 * math.sqrt(rho * math.log(1e6)) == pytest.approx(2.0)  # Bun and Steinke's conversion back
    with pytest.raises(
        ValueError, match=r'epsilon = 1.01.*beyond 1 the classic rule is not proven: use rule="analytic'
    ):
        m.gaussian_scale(1.0, 1.01, 1e-5)
    claimed = [gaussian.default_delta(*given) for given in ((None, 100), (None, 20_000), (0.3, 9), (None, 9, 1e-5))]
    assert claimed == [1e-3, 5e-5, 0.3, 1e-5]


def test_functions_of_numbers_take_arrays():
    """Entry by entry, with the shapes of NumPy's broadcasting; of none nothing."""
    epsilons = np.array([0.5, 1.0, INF])
    np.testing.assert_array_equal(m.laplace_scale(2.0, epsilons), [4.0, 2.0, 0.0])
    found = m.gaussian_delta(np.array([[1.0], [2.0]]), 1.0, jnp.array([0.5, 1.0]))
    each = [[m.gaussian_delta(x, 1.0, y) for y in (0.5, 1.0)] for x in (1.0, 2.0)]
    np.testing.assert_array_equal(found, each)
    assert m.laplace_scale(1.0, epsilons[:0]).shape == (0,) and type(m.laplace_scale(1.0, np.array(0.5))) is float


def test_pure_mechanisms_by_hand():
    assert [m.laplace_scale(3.0, 0.5), m.laplace_scale(3.0, INF)] == [6.0, 0.0]
    assert pure.response_bound(0.7) == pytest.approx((math.exp(0.7) + 1) / (math.exp(0.7) - 1))
    assert pure.response_bound(INF) == 1.0
    respond = uncompiled(m.randomized_response)
    scale = np.float32([0.5, 2.0, 0.0, 1e-35])
    for value in (0.0, 0.3, 1.0):
        flip = np.array([1 / (1 + math.exp(2)), 1 / (1 + math.exp(0.5)), 0, 0])
        edge = flip + (1 - 2 * flip) * value  # the probability of a bit
        one, none = (1 - flip) / (1 - 2 * flip), -flip / (1 - 2 * flip)
        np.testing.assert_allclose(edge * one + (1 - edge) * none, value, atol=1e-12)  # no bias
        for uniform, told in ((edge - 1e-5, one), (edge + 1e-5, none)):
            np.testing.assert_allclose(
                respond(np.float32(uniform), np.full(4, value, np.float32), scale), told, rtol=1e-5
            )


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


def test_trees_by_hand():
    numbers = (0, 1, 2, 3, 4, 5, 8, 9)
    assert [m.tree_levels(n) for n in numbers] == [0, 1, 2, 2, 3, 3, 4, 4]  # nodes that a message lies in
    assert [m.tree_levels(n, "zcdp") for n in numbers] == [0, 1, 2, 2, 3, 3, 4, 4]
    assert [m.tree_levels(n, "paper") for n in numbers] == [0] + [1 + math.ceil(math.log2(n)) for n in numbers[1:]]
    assert node_scale(2.5, 1.5, 0.02) == m.gaussian_scale(6**0.5 * 2.5, 1.5, 0.02, "analytic")
    assert node_scale(2.5, 1.5, 0.02, "zcdp") == m.gaussian_scale(6**0.5 * 2.5, 1.5, 0.02, "zcdp")
    assert node_scale(2.5, 1.5, 0.02, "paper") == pytest.approx(8 * 2.5 * math.log(200) / 1.5)
    assert node_scale(2.5, INF, 0.02, "paper") == 0
    for form, releases, nodes in [("tree", 5, 3), ("tree", 0, 0), ("increment", 5, 1), ("increment", 0, 0)]:
        event, running = m.tree_event(2.5, releases, 1.7, form=form), form == "tree"
        what = "node of a binary tree" if running else "message"
        assert event == m.gaussian_event(what, 6**0.5 * 2.5, 1.7, nodes, running=running)
        spent = m.gaussian_epsilon(6**0.5 * 2.5, 1.7 / math.sqrt(nodes), 0.02) if nodes else 0.0
        assert m.tree_epsilon(2.5, releases, 1.7, 0.02, form=form) == pytest.approx(spent)
    for form, shapes in (("tree", [(2, 3), (2, 3), (3, 3), (4, 3)]), ("increment", [(3,)] * 4)):
        trees = [m.tree(n, (3,), form) for n in (0, 1, 2, 7)]
        assert [uncompiled(lambda tree=tree: tree.init(jnp.float32))().shape for tree in trees] == shapes
    assert trees[0].noise("any state", 3) == "any state"


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


def test_how_much_more_a_tree_s_other_calibrations_take():
    """What the docstring says, at the ends of its range: epsilon 0.1 and 10, delta 0.001 and less."""
    scale = lambda epsilon, delta, calibration: m.tree_scale(1.0, 1000, epsilon, delta, calibration=calibration)
    found = {
        way: [scale(e, d, way) / scale(e, d, "exact") for e in (0.1, 1.0, 10.0) for d in (1e-3, 1e-6)]
        for way in ("zcdp", "paper")
    }
    assert 1.1 < min(found["zcdp"]) < 1.15 and 2.1 < max(found["zcdp"]) < 2.2
    assert 6.9 < min(found["paper"]) < 7.1 and 16 < max(found["paper"]) < 17
