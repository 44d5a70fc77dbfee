"""Robust and private stochastic linear bandits (ICML 2023, arXiv 2304.11741): counts, filter thresholds, radii and order lines.

What Algorithm 1 computes from a design, as plain functions: `counts`, `mean_square`, `lambda_value`, `gamma_practical` and
`gamma_paper` (the design itself is `estimators.g_optimal_design`, the filter `estimators.spectral_filter`). They take numbers or
traced arrays. Model "M1": a client a reward; "M2": a client an action, whose report is the mean of its n_a rewards.
Axes: [K] arms, [d] features. b is the Laplace scale of a reward's noise, 2 / epsilon, and 0 without privacy.
"""

import math

import jax.numpy as jnp
from jax import lax

from jaxbandits.numerics import fixed_sum, matvec
from jaxbandits.validation import integer, number

CHUNK = 16  # arms whose widths are made side by side: K x K numbers never are


def counts(weights, size, *, model="M1", weight_floor=0.1):
    """Plays of every arm of a batch, int32 [K]: ceil(m w), for M2 ceil(m max(w, weight_floor)), where the design has weight.

    weights [K]: a design's. size: m. Guarded against rounding: m w (1 - 2e-6) - 1e-9 is rounded up in float32, m w - 1e-9 in float64.

    >>> counts(jnp.array([0.0, 0.25, 0.75]), 10).tolist(), counts(jnp.array([0.0, 0.05, 0.95]), 10, model="M2").tolist()
    ([0, 3, 8], [0, 1, 10])
    """
    weights = jnp.asarray(weights)
    wanted = jnp.maximum(weights, weight_floor) if model == "M2" else weights
    shade = 1.0 if weights.dtype == jnp.float64 else 1 - 2e-6
    return jnp.where(weights > 0, jnp.ceil(size * wanted * shade - 1e-9), 0).astype(jnp.int32)


def _own(pulls, model):
    """Rewards behind one report of each arm [K]: 1 or n_a; 1 for arms that are not played."""
    return jnp.maximum(pulls, 1) if model == "M2" else jnp.ones_like(pulls)


def mean_square(pulls, noise_scale, laplace_scale, *, model="M1"):
    """rho^2, a bound on the mean square of a clean report: M1 1 + sigma^2 + 2 b^2, M2 1 + sigma^2 / n + 2 (b / n)^2, n = min n_a.

    pulls [K]: plays of the batch, 0 where an arm is not played.

    >>> float(mean_square(jnp.array([4, 0, 8]), 1.0, 2.0, model="M2"))
    1.75
    """
    pulls = jnp.asarray(pulls)
    least = jnp.min(jnp.where(pulls > 0, _own(pulls, model), jnp.iinfo(jnp.int32).max)).astype(jnp.result_type(float))
    least = jnp.where(jnp.any(pulls > 0), least, 1)
    return 1 + noise_scale**2 / least + 2 * (laplace_scale / least) ** 2


def lambda_value(square, num_reports, max_leverage, *, clean):
    """lambda of the filter, which stops below a top eigenvalue of 4 lambda.

    "tight" (clean False): rho^2 / n; "clean" (True): mu rho^2, square = rho^2, mu = max_leverage of the active arms in M. The paper's
    printed value, "observed", is mu times the mean square of the observed reports (clean True, square = mean(r^2)): no data
    can exceed four times that, so that its filter never removes anything. num_reports: n.

    >>> float(lambda_value(2.0, 10, 0.5, clean=False)), float(lambda_value(2.0, 10, 0.5, clean=True))
    (0.20000000298023224, 1.0)
    """
    return square * jnp.where(clean, max_leverage, 1 / jnp.maximum(num_reports, 1))


def gamma_practical(
    actions, active, inverse, pulls, *, log_term, square, noise_scale, laplace_scale, model="M1", sampling_scale=0.5,
    corruption_bound=0.0, corruption_scale=0.5, bias_scale=1.0,
):  # fmt: skip
    """Half of the gap at which an arm is dropped: a Bernstein half-width for Gaussian and Laplace noise, plus the corruption's bias.

    sampling_scale max_x [sqrt(2 V L) + c L] over active x, with w_a = <x, M^-1 a>; M1: V = (sigma^2 + 2 b^2) sum n_a w_a^2,
    c = b max_a |w_a|; M2: V = sum w_a^2 (sigma^2 / n_a + 2 (b / n_a)^2), c = max_a |w_a| b / n_a. Under corruption
    + corruption_scale sqrt(rho^2 alpha) + bias_scale alpha. actions [K, d]; active [K] bool; inverse [d, d]: M^-1 on the span; pulls
    [K] int32; log_term: L = log(2 K B / failure_prob); square: rho^2.

    >>> x = jnp.eye(2)
    >>> float(gamma_practical(x, jnp.ones(2, bool), x / 8, jnp.array([8, 8]), log_term=4.0, square=2.0, noise_scale=1.0, laplace_scale=0.0))
    0.5
    """
    reports = jnp.where(pulls > 0, 1 if model == "M2" else pulls, 0).astype(actions.dtype)
    own = _own(pulls, model).astype(actions.dtype)
    variance = reports * (noise_scale**2 / own + 2 * (laplace_scale / own) ** 2)
    tail = jnp.where(pulls > 0, laplace_scale / own, 0)
    num_arms, dim = actions.shape
    rows = -(-num_arms // CHUNK)
    pad = rows * CHUNK - num_arms

    def widest(largest, chunk):
        x, here = chunk
        w = fixed_sum(matvec(inverse, x)[:, None, :] * actions)
        width = jnp.sqrt(2 * log_term * fixed_sum(w * w * variance)) + log_term * jnp.max(jnp.abs(w) * tail, axis=-1)
        return jnp.maximum(largest, jnp.max(jnp.where(here, width, 0))), None

    chunks = jnp.pad(actions, ((0, pad), (0, 0))).reshape(rows, CHUNK, dim), jnp.pad(active, (0, pad)).reshape(rows, -1)
    largest = lax.scan(widest, jnp.zeros((), actions.dtype), chunks)[0]
    bias = corruption_scale * jnp.sqrt(square * corruption_bound) + bias_scale * corruption_bound
    return sampling_scale * largest + jnp.where(corruption_bound > 0, bias, 0)


def gamma_paper(
    rank, size, support, *, log_term, laplace_scale, model="M1", weight_floor=0.1, sampling_scale=1.0,
    corruption_bound=0.0, corruption_scale=1.0, bias_scale=1.0,
):  # fmt: skip
    """The paper's radius with its hidden constants as scales; rank r stands for d, size is m = q^i, alpha = corruption_bound.

    log_term: L = log(1 / delta'), delta' = failure_prob / (K T^2). M1, Y = 1 + sqrt(log(m / delta')) + log(m / delta') / epsilon:
    sampling_scale sqrt(2 r / m) (sqrt(L) + L / epsilon) + corruption_scale [2 r (sqrt(alpha) + sqrt(alpha L / m)) + sqrt(2 r) alpha] Y
    + bias_scale alpha. M2, k = support, n = weight_floor m, L_k = log(k / delta'), Y = 1 + sqrt(L_k / n) + L_k / (n epsilon):
    sampling_scale sqrt(2 r) (sqrt(L / n) + L / (n epsilon)) + corruption_scale [2 r (k sqrt(alpha) + sqrt(k alpha L)) + sqrt(2 r k) alpha] Y
    + bias_scale alpha. Beyond alpha of about 1e-3 it exceeds every gap and nothing is eliminated.
    """
    private = laplace_scale / 2  # 1 / epsilon
    alpha = corruption_bound
    if model == "M1":
        log_all = jnp.log(size) + log_term
        spread = 1 + jnp.sqrt(log_all) + log_all * private
        sampling = jnp.sqrt(2 * rank / size) * (jnp.sqrt(log_term) + log_term * private)
        corrupted = 2 * rank * (jnp.sqrt(alpha) + jnp.sqrt(alpha * log_term / size)) + jnp.sqrt(2 * rank) * alpha
    else:
        n, log_all = weight_floor * size, jnp.log(support) + log_term
        spread = 1 + jnp.sqrt(log_all / n) + log_all / n * private
        sampling = jnp.sqrt(2 * rank) * (jnp.sqrt(log_term / n) + log_term / n * private)
        corrupted = 2 * rank * (support * jnp.sqrt(alpha) + jnp.sqrt(support * alpha * log_term))
        corrupted = corrupted + jnp.sqrt(2 * rank * support) * alpha
    return sampling_scale * sampling + corruption_scale * corrupted * spread + bias_scale * alpha


def robust_linear_reward_bound(dim, horizon, epsilon=math.inf, *, corruption=0.0, max_gap=None) -> float:
    """Order of the regret in model M1, a client a reward (Theorem 1.3, logarithms and constants dropped).

    (sqrt(d T) + T max{sqrt(alpha d), alpha d}) (1 + 1 / epsilon), alpha = corruption in [0, 1/4). The theorem's max lost its radicals in
    our copy; the remark on alpha < 1/d fixes them, while the proof's own radius gives T d sqrt(alpha). max_gap: clip at max_gap T.

    >>> robust_linear_reward_bound(4, 10_000), robust_linear_reward_bound(4, 10_000, 1.0, corruption=0.01)
    (200.0, 4400.0)
    """
    dim, horizon, epsilon = _checked(dim, horizon, epsilon)
    share = number("corruption", corruption, 0.0, 0.25, open_high=True) * dim
    return _clipped(
        (math.sqrt(dim * horizon) + horizon * max(math.sqrt(share), share)) * (1 + 1 / epsilon), horizon, max_gap
    )


def robust_linear_action_bound(dim, horizon, epsilon=math.inf, *, max_gap=None) -> float:
    """Order of the regret in model M2, a client an action, without corruption and at weight_floor of about 1 / d (equation 58).

    d sqrt(T) + d^(3/2) ln(T) / epsilon; other logarithms and constants dropped. max_gap: clip at max_gap T.

    >>> robust_linear_action_bound(4, 10_000)
    400.0
    """
    dim, horizon, epsilon = _checked(dim, horizon, epsilon)
    return _clipped(dim * math.sqrt(horizon) + dim**1.5 * math.log(horizon) / epsilon, horizon, max_gap)


def _checked(dim, horizon, epsilon) -> tuple[int, float, float]:
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False)
    return integer("dim", dim, 1), number("horizon", horizon, 1), epsilon


def _clipped(bound: float, horizon, max_gap) -> float:
    return bound if max_gap is None else min(bound, number("max_gap", max_gap, 0.0) * horizon)
