"""The shuffle model's mechanisms: the vector code by hand, its noise, what both protocols spend."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from numpy_draws import NumpyDraws, to_normal
from scipy import special, stats
from uncompiled import uncompiled

from jaxbandits.mechanisms import (
    amplified_epsilon,
    gaussian_epsilon,
    shuffle,
    shuffle_epsilon,
    vector_code,
    vector_epsilon,
)
from jaxbandits.mechanisms.shuffle import VectorCode, batch_noise, decode, encode


def test_code_and_rounding_by_hand():
    """g = max(2 sqrt 20, 5, 4); b = floor(c 80 ln(50)^2 / (20 eps^2)): 61.2 / eps^2 at c = 1, tenfold at c = 10."""
    for epsilon, trials in ((0.2, 1530), (1.0, 612), (10.0, 6), (100.0, 0), (math.inf, 0)):
        code = vector_code(1.0, 20, 5, epsilon, 0.1)
        assert code.levels == pytest.approx(math.sqrt(80)) and code.trials == 20 * trials
    assert vector_code(1.0, 4, 3, 1.0, 0.1).levels == 4 and vector_code(1.0, 4, 7, 1.0, 0.1).levels == 7
    given = vector_code(3.0, 20, 5, 0.7, 0.1, constant=2.5, log=1.5)  # floor(2.5 80 1.5^2 / (20 0.49)) = floor(45.9)
    assert given == (3.0, math.sqrt(80), 20 * 45.0)
    assert vector_code(1.0, 20, 5, 0.99, 0.1).trials == 20 * math.floor(
        4 * math.log(50) ** 2 / 0.99**2
    )  # c = 1 below 1
    with pytest.raises(ValueError, match=r"^epsilon = 1e-07 needs 6.12e\+15 binomial trials a user: raise epsilon$"):
        vector_code(1.0, 20, 5, 1e-7, 0.1)
    # L = 2, g = 4: v = -2, 0.3, 2 is 0, 4.6, 8 in units of 1/2; 5 is cut to 2, and -5 to -2.
    value = np.float32([-2.0, 0.3, 2.0, 5.0, -5.0])
    rounded = uncompiled(partial(encode, VectorCode(2.0, 4.0, 0.0)))
    assert rounded(np.full(5, 0.55, np.float32), value).tolist() == [0, 5, 8, 8, 0]
    assert rounded(np.full(5, 0.65, np.float32), value).tolist() == [0, 4, 8, 8, 0]


def test_encoding_is_unbiased_and_decodes_within_a_step():
    code, value = vector_code(1.5, 20, 5, math.inf, 0.1), np.linspace(-1.5, 1.5, 41, dtype=np.float32)
    uniform = NumpyDraws(3, "x", np.float32).uniform(np.arange(20_000), (41,))
    there_and_back = uncompiled(lambda uniform, value: decode(code, encode(code, uniform, value), 1.0))
    decoded = there_and_back(uniform, np.broadcast_to(value, uniform.shape))
    step = 1.5 / code.levels
    assert np.abs(decoded - value).max() <= step * 1.0001
    np.testing.assert_allclose(decoded.mean(0), value, atol=5 * step / 2 / math.sqrt(20_000))


noise_of = uncompiled(lambda trials, bits: batch_noise(trials, bits, np.float32))


@pytest.mark.parametrize("trials", [20, 121, 12_240, 2**34])
def test_noise_has_the_binomial_law(trials):
    drawn = noise_of(np.float32(trials), NumpyDraws(1, "x").bits(np.arange(100_000)))
    scale = math.sqrt(trials * 3 / 16)
    assert drawn.mean() == pytest.approx(0, abs=5 * scale / math.sqrt(1e5))
    assert drawn.std() == pytest.approx(scale, rel=0.01 if trials > 20 else 0.015)  # rounding adds 1 / 12
    if trials < 1e6:
        whole = drawn + trials / 4
        np.testing.assert_array_equal(whole, np.round(whole))
        assert whole.min() >= 0
        cells = np.arange(math.floor(trials / 4 - 2 * scale), math.ceil(trials / 4 + 2 * scale))
        share = np.searchsorted(np.sort(whole), cells, side="right") / 1e5
        np.testing.assert_allclose(share, stats.binom.cdf(cells, trials, 0.25), atol=0.01)


def test_no_trials_no_noise():
    bits = NumpyDraws(1, "x").bits(1, (1000,))
    assert not np.any(noise_of(np.float32(0), bits))
    single = noise_of(np.float32(1), bits) + 0.25
    assert set(single.tolist()) == {0.0, 1.0} and single.mean() == pytest.approx(0.25, abs=0.07)


def exact_delta(code, law, one, other, epsilon):
    """The hockey-stick divergence between two users' coordinates [n] plus independent noise, over the product law."""

    def shifted(v):
        z = (v + code.bound) * code.levels / code.bound
        low, part = math.floor(z), z - math.floor(z)
        found = np.zeros(len(law) + 2 * math.ceil(code.levels) + 2)
        found[low : low + len(law)] += (1 - part) * law
        found[low + 1 : low + 1 + len(law)] += part * law
        return found

    p, q = (reduce_outer([shifted(v) for v in user]) for user in (one, other))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def reduce_outer(vectors):
    joint = vectors[0]
    for v in vectors[1:]:
        joint = np.multiply.outer(joint, v).reshape(-1)
    return joint


@pytest.mark.parametrize(("trials", "delta"), [(60, 0.1), (60, 0.02), (400, 1e-3)])
def test_vector_bound_holds_and_is_near(trials, delta):
    """d = 1: every pair of users (x x, x y) on a grid against the exact law of their two sums."""
    code = VectorCode(1.0, 2.5, float(trials))
    law = stats.binom.pmf(np.arange(trials + 1), trials, 0.25)
    bound = vector_epsilon(code, 2.0, 2, delta)  # (1, 1) against (1, -1) moves x y by 2, the most there is
    users = [(x * x, x * y) for x in np.linspace(-1, 1, 5) for y in (0.0, 0.63, 1.0)]
    pairs = list(itertools.product(users, users))
    assert max(exact_delta(code, law, a, b, bound) for a, b in pairs) <= delta
    assert max(exact_delta(code, law, a, b, bound / 3) for a, b in pairs) > delta


def test_vector_bound_nears_the_gaussian_limit_or_is_infinite():
    code = VectorCode(1.0, 9.0, 3e4)
    gaussian = gaussian_epsilon(2 * 9.0, math.sqrt(3e4 * 3 / 16), 1e-9)
    assert gaussian < vector_epsilon(code, 2.0, 20, 1e-9) < 1.3 * gaussian
    assert [vector_epsilon(VectorCode(1.0, 9.0, trials), 2.0, 20, 0.1) for trials in (0.0, 36.0)] == [math.inf] * 2
    assert vector_epsilon(VectorCode(1.0, 9.0, 40.0), 2.0, 20, 0.1) == math.inf
    assert vector_epsilon(VectorCode(1.0, 9.0, 120.0), 2.0, 20, 1e-6) == math.inf


def test_noise_by_hand():
    """round(s z + (z^2 - 1) / 12 + part) - part, kept within what trials can give."""
    bits = np.concatenate([NumpyDraws(2, "x").bits(np.arange(400)), np.uint32([0, 2**32 - 1])])
    z = to_normal(bits, np.float64)
    for trials in (1, 6, 100, 4001):
        part = trials / 4 % 1
        wanted = np.round(math.sqrt(trials * 3 / 16) * z + (z * z - 1) / 12 + part) - part
        assert trials > 6 or (wanted < -trials / 4).any() or (wanted > trials * 3 / 4).any()
        wanted = np.minimum(np.maximum(wanted, -trials / 4), trials * 3 / 4)
        assert np.mean(noise_of(np.float32(trials), bits) == np.float32(wanted)) > 0.99  # but for ties in float32


def moment(trials, low, high, shift, order):
    """log E[exp(order loss)] of binomial noise in a range, term by term; loss: of a shift up or, below 0, down."""
    k = np.arange(low, high + 1)
    loss = stats.binom.logpmf(k, trials, 0.25) - stats.binom.logpmf(k + shift, trials, 0.25)
    return special.logsumexp(stats.binom.logpmf(k, trials, 0.25) + order * loss)


def log_moments(*middle):
    return shuffle._log_moments(*shuffle._losses(*middle), shuffle.CHERNOFF_ORDERS)


@pytest.mark.parametrize(("trials", "low", "high", "most"), [(200, 30, 71, 1e-9), (40_000, 9700, 12_499, 0.01)])
def test_moments_of_shifts_are_those_of_the_law_or_a_little_more(trials, low, high, most):
    """The same where every integer is a block of its own."""
    found = log_moments(trials, low, high, 6)
    for side, at, shift in itertools.product((0, 1), (0, 40, 90), (0, 1, 5, 6)):
        exact = moment(trials, low, high, shift * (1 - 2 * side), shuffle.CHERNOFF_ORDERS[at])
        assert exact - 1e-9 <= found[side, at, shift] <= exact + most * max(1.0, exact)


def test_joint_moments_hold_for_every_split_and_are_near():
    moments = log_moments(200, 30, 71, 6)

    def split(side, at, length):
        """The largest sum of log moments of two real shifts, each a mixture of the integers around it, on a grid."""
        a = length * np.cos(np.linspace(0, np.pi / 2, 2001))
        r = np.stack([a, np.sqrt(np.maximum(length**2 - a**2, 0))])
        m = np.minimum(r.astype(int), 5)
        low, high = moments[side, at][m], moments[side, at][m + 1]
        return np.log((1 - r + m) * np.exp(low) + (r - m) * np.exp(high)).sum(0).max()

    for length in (0.7, 2.0, 3.3, 5.9):
        found = shuffle._joint_moment(moments, length, 2)
        for at, most in ((0, 0.0011), (20, 0.0012), (40, 0.0056), (60, 0.61)):
            exact = max(split(side, at, length) for side in (0, 1))
            assert exact <= found[at] + 1e-9 and found[at] <= exact + most


@pytest.mark.parametrize(
    ("trials", "coordinates", "delta", "moved"),
    # the last has several orders that are better than those beside them
    [(400, 2, 1e-3, 3.0), (4000, 20, 0.02, 3.0), (60, 2, 0.3, 3.0), (90, 5, 0.1, 3.0), (200, 2, 1e-6, 0.1)],
)
def test_noise_outside_of_the_middle_is_charged_to_delta(trials, coordinates, delta, moved):
    """The least over five middles, cut at each end by a share of delta for each coordinate, and over all orders."""
    code, orders = VectorCode(2.0, 2.5, float(trials)), shuffle.CHERNOFF_ORDERS
    # the largest (1 - e^-x) e^(-order x), where e^x = 1 + 1 / order
    constant = np.log(1 / (1 + orders) * (orders / (1 + orders)) ** orders)
    law, found = stats.binom.pmf(np.arange(trials + 1), trials, 0.25), []
    below, above = np.cumsum(law), np.append(np.cumsum(law[:0:-1])[::-1], 0.0)
    for part in (1e-9, 1e-4, 1e-2, 0.2, 0.7):
        tail = part * delta / (2 * coordinates)
        low, high = max(int(np.argmax(below >= tail)), 5), min(int(np.argmax(above <= tail)), trials - 5)
        left = delta - coordinates * (below[low - 1] + above[high])
        if low < high and left > 0:
            moments = shuffle._joint_moment(log_moments(trials, low, high, 5), moved * 2.5 / 2.0, coordinates)
            found.append(min((moments + constant - math.log(left)) / orders))
    assert vector_epsilon(code, moved, coordinates, delta) == pytest.approx(max(min(found), 0.0), rel=1e-6)


def least_amplified(sensitivity, scale, users, coordinates, delta):
    """The least epsilon over a fine grid of q, by the docstrings' formulas."""
    q = delta / users * np.geomspace(1e-12, 0.5, 4000)
    radius = sensitivity / math.sqrt(2) + scale * np.sqrt(stats.chi2(coordinates).isf(q))
    e0 = sensitivity * (radius + sensitivity / 2) / scale**2 - np.log(1 - q)
    log = math.log(8 / delta)  # of delta / 2
    root = 8 * np.sqrt(np.exp(e0) * log / users) + 8 * np.exp(e0) / users
    spent = np.log(1 + (np.exp(e0) - 1) / (np.exp(e0) + 1) * root)
    holds = (e0 <= math.log(users / (16 * log))) & ((1 + np.exp(spent)) * users * q <= delta / 2)
    return spent[holds].min()


def test_amplification():
    """Locally private messages of huge budget are not amplified; wide noise is, the more the more users there are."""
    assert shuffle_epsilon(5.0, 20, 0.1) == 5.0
    limit = math.log(3200 / (16 * math.log(40)))  # of the theorem, for 3200 users at delta = 0.1
    below, above = (shuffle_epsilon(limit * x, 3200, 0.1) for x in (1 - 1e-9, 1 + 1e-9))
    assert below < 0.9 * limit < limit < above and shuffle_epsilon(0.0, 10**5, 0.1) == 0
    by_hand = math.log(1 + math.tanh(0.5) * (8 * math.sqrt(math.e * math.log(4e6) / 1e5) + 8 * math.e / 1e5))
    assert shuffle_epsilon(1.0, 10**5, 1e-6) == pytest.approx(by_hand)
    local = gaussian_epsilon(2.0, 14.0, 1e-6)
    assert amplified_epsilon(2.0, 14.0, 20, 20, 1e-6) == local
    found = [amplified_epsilon(2.0, 14.0, n, 20, 1e-6) for n in (10**5, 10**6)]
    assert local > found[0] > found[1]
    for given in ((2.0, 14.0, 10**5, 20, 1e-6), (0.7, 9.0, 10**4, 3, 1e-4), (8.0, 9.0, 10**9, 2, 1e-5)):
        least = least_amplified(*given)
        assert (
            least * (1 - 1e-9)
            <= amplified_epsilon(*given)
            < 1.05 * least
            < 0.9 * gaussian_epsilon(*given[:2], given[4])
        )
    # what the sum alone would give a server: less than the permuted messages
    assert found[0] > gaussian_epsilon(2.0 / math.sqrt(1e5), 14.0, 1e-6)
    assert amplified_epsilon(2.0, 0.0, 20, 20, 0.1) == math.inf
