"""Buffered linear Toeplitz noise: Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024 (arXiv 2404.16706).

The noise of t messages is a weighted sum of d + 1 sums of the same draws, each with its own decay; one does not decay.
The parameters, on the host, are tables for four buffers and an optimiser for everything else: decays theta_1 > zeta_1 >
theta_2 > ... > zeta_d in (0, 1], kept as gaps 1 - theta and 1 - zeta, which lose no digits near 1.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.mechanisms.counters.form import Form, rows_of_zeros
from jaxbandits.typing import Array, Numeric, Tensor

# Four gaps 1 - theta_i, then four 1 - zeta_i, of the least error at 2^k releases, a row for every k from the first on:
# computed anew for the form of Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024. Between rows logarithms are
# linear in log2 n, to 2e-8 of the least error.
LEAST_MAX_ERROR = dict(enumerate(start=4, iterable=[
    (2.096411e-02, 1.848059e-01, 4.867852e-01, 8.327202e-01, 8.322873e-02, 3.218063e-01, 6.653818e-01, 9.548578e-01),
    (1.295944e-02, 1.229524e-01, 3.764682e-01, 7.670105e-01, 5.284962e-02, 2.289252e-01, 5.635259e-01, 9.340852e-01),
    (7.594920e-03, 7.734100e-02, 2.786014e-01, 6.945822e-01, 3.175438e-02, 1.544762e-01, 4.625687e-01, 9.092967e-01),
    (4.406058e-03, 4.824993e-02, 2.039837e-01, 6.238716e-01, 1.890413e-02, 1.033122e-01, 3.755026e-01, 8.826533e-01),
    (2.523641e-03, 3.009449e-02, 1.498838e-01, 5.589250e-01, 1.116548e-02, 6.941209e-02, 3.047276e-01, 8.556071e-01),
    (1.408224e-03, 1.843275e-02, 1.089729e-01, 4.967597e-01, 6.439865e-03, 4.604651e-02, 2.447957e-01, 8.268640e-01),
    (7.706807e-04, 1.109903e-02, 7.816392e-02, 4.372041e-01, 3.644061e-03, 3.010162e-02, 1.941621e-01, 7.960700e-01),
    (4.174968e-04, 6.627848e-03, 5.563037e-02, 3.818134e-01, 2.042319e-03, 1.953295e-02, 1.526750e-01, 7.638435e-01),
    (2.251592e-04, 3.950284e-03, 3.948424e-02, 3.315975e-01, 1.140895e-03, 1.265501e-02, 1.194877e-01, 7.308438e-01),
    (1.213030e-04, 2.359321e-03, 2.803930e-02, 2.868974e-01, 6.377929e-04, 8.215902e-03, 9.333459e-02, 6.976041e-01),
    (6.543037e-05, 1.415841e-03, 1.996568e-02, 2.476316e-01, 3.577930e-04, 5.357581e-03, 7.291093e-02, 6.645551e-01),
    (3.539329e-05, 8.554772e-04, 1.427808e-02, 2.134859e-01, 2.018631e-04, 3.515233e-03, 5.704892e-02, 6.320551e-01),
    (1.922088e-05, 5.212980e-04, 1.026723e-02, 1.840176e-01, 1.147405e-04, 2.323737e-03, 4.476493e-02, 6.003941e-01),
    (1.048317e-05, 3.206935e-04, 7.429498e-03, 1.587148e-01, 6.577472e-05, 1.548843e-03, 3.525518e-02, 5.697850e-01),
    (5.737818e-06, 1.991159e-04, 5.409052e-03, 1.370195e-01, 3.801372e-05, 1.040595e-03, 2.787079e-02, 5.403187e-01),
    (3.145540e-06, 1.245383e-04, 3.957183e-03, 1.183691e-01, 2.210437e-05, 7.035327e-04, 2.209952e-02, 5.119578e-01),
    (1.723035e-06, 7.822705e-05, 2.903102e-03, 1.022534e-01, 1.289220e-05, 4.773951e-04, 1.755152e-02, 4.845855e-01),
]))  # fmt: skip
LEAST_MEAN_ERROR = dict(enumerate(start=9, iterable=[
    (5.436423e-03, 5.076685e-02, 2.187894e-01, 6.430159e-01, 2.094485e-02, 1.114199e-01, 3.971172e-01, 8.904847e-01),
    (2.734271e-03, 2.712320e-02, 1.410311e-01, 5.474190e-01, 1.072978e-02, 6.428570e-02, 2.932720e-01, 8.506706e-01),
    (1.381250e-03, 1.496138e-02, 9.471185e-02, 4.712235e-01, 5.582427e-03, 3.871167e-02, 2.224980e-01, 8.141980e-01),
    (7.017629e-04, 8.476195e-03, 6.509281e-02, 4.068672e-01, 2.951486e-03, 2.399609e-02, 1.709157e-01, 7.789767e-01),
    (3.586968e-04, 4.900734e-03, 4.537451e-02, 3.514283e-01, 1.582841e-03, 1.516664e-02, 1.321743e-01, 7.444164e-01),
    (1.844019e-04, 2.876911e-03, 3.192868e-02, 3.033443e-01, 8.589688e-04, 9.716788e-03, 1.026318e-01, 7.103533e-01),
    (9.529605e-05, 1.708315e-03, 2.261832e-02, 2.615680e-01, 4.706611e-04, 6.286726e-03, 7.991106e-02, 6.767809e-01),
    (4.947563e-05, 1.023323e-03, 1.610332e-02, 2.252882e-01, 2.599165e-04, 4.097620e-03, 6.234439e-02, 6.437576e-01),
    (2.579036e-05, 6.171825e-04, 1.150962e-02, 1.938241e-01, 1.444504e-04, 2.686073e-03, 4.871448e-02, 6.113666e-01),
    (1.349082e-05, 3.742368e-04, 8.251930e-03, 1.665826e-01, 8.069725e-05, 1.768737e-03, 3.811215e-02, 5.796982e-01),
    (7.078458e-06, 2.279077e-04, 5.931377e-03, 1.430375e-01, 4.527620e-05, 1.168953e-03, 2.984886e-02, 5.488392e-01),
    (3.723853e-06, 1.392860e-04, 4.272474e-03, 1.227210e-01, 2.549482e-05, 7.748871e-04, 2.339876e-02, 5.188668e-01),
]))  # fmt: skip
TABLES = {"max": LEAST_MAX_ERROR, "mean": LEAST_MEAN_ERROR}
TABLE_BUFFERS = 4
FLAT = 1e-8  # a decay that loses less over all releases is taken for none: rounding would eat what it loses


class Gaps(NamedTuple):
    """1 - theta_i and 1 - zeta_i, both rising [d]."""

    theta: np.ndarray
    zeta: np.ndarray


def powers_summed(log_ratio: np.ndarray, number: np.ndarray | float) -> np.ndarray:
    """1 + q + ... + q^(number - 1), where log q = log_ratio <= 0."""
    flat = log_ratio == 0
    safe = np.where(flat, -1.0, log_ratio)
    return np.where(flat, number, np.expm1(number * safe) / np.expm1(safe))


def weights(gaps: Gaps) -> np.ndarray:
    """beta [d + 1]: the noise is the sum of beta_i times a sum of draws that decays by zeta_i, zeta_0 = 1."""
    theta, zeta = gaps
    parts = [math.exp(math.fsum(np.log(theta)) - math.fsum(np.log(zeta))) if (theta > 0).all() else 0.0]
    for i, own in enumerate(zeta):
        others = np.delete(np.arange(len(zeta)), i)
        parts.append((own - theta[i]) / own * np.prod((theta[others] - own) / (zeta[others] - own)))
    return np.array(parts)


def strengths(gaps: Gaps) -> np.ndarray:
    """omega [d]: column coefficients are 1 and the sum of omega_i theta_i^(k - 1)."""
    theta, zeta = gaps
    return np.array([np.prod(zeta - own) / np.prod(np.delete(theta, i) - own) for i, own in enumerate(theta)])


def column_norm_squared(gaps: Gaps, releases: float) -> float:
    """The squared norm of the first column, 1 + sum_ij omega_i omega_j (1 + theta_i theta_j + ...)."""
    log = np.log1p(-gaps.theta)
    strong = strengths(gaps)
    return float(1 + strong @ powers_summed(log[:, None] + log, releases - 1) @ strong)


def release_variance(gaps: Gaps, releases: np.ndarray | float) -> np.ndarray:
    """The variance of the noise of a release, at unit noise [...]."""
    log, beta = np.log1p(-np.concatenate([[0.0], gaps.zeta])), weights(gaps)
    at = np.asarray(releases, float)[..., None, None]
    return np.einsum("i,...ij,j->...", beta, powers_summed(log[:, None] + log, at), beta)


def mean_squared_deviation(gaps: Gaps, releases: float) -> float:
    """The mean over all releases of that variance."""
    log, beta = np.log1p(-np.concatenate([[0.0], gaps.zeta])), weights(gaps)
    ratio = log[:, None] + log
    flat = releases * np.abs(ratio) < FLAT
    safe = np.where(flat, -1.0, ratio)
    mean = (releases - np.exp(safe) * powers_summed(safe, releases)) / (releases * -np.expm1(safe))
    return float(beta @ np.where(flat, (releases + 1) / 2, mean) @ beta)


def coefficients(gaps: Gaps, releases: int) -> np.ndarray:
    """The first column [releases]."""
    decay = np.exp(np.log1p(-gaps.theta) * np.arange(releases - 1)[:, None])
    return np.concatenate([[1.0], decay @ strengths(gaps)])


def column_norm(coefficient: np.ndarray, participations: int, separation: int) -> float:
    """The norm of the sum of columns 0, b, 2 b, ..., the worst pattern of coefficients that do not rise."""
    n = len(coefficient)
    total = np.zeros(n)
    for start in range(0, min(participations * separation, n), separation):
        total[start:] += coefficient[: n - start]
    return math.sqrt(float(total @ total))


def loss(gaps: Gaps, releases: int, error: str, participations: int = 1, separation: int = 1) -> float:
    """The noise at equal privacy: column norm times the largest, or the root mean square, deviation."""
    if participations == 1:
        squared = column_norm_squared(gaps, releases)
    else:
        squared = column_norm(coefficients(gaps, releases), participations, separation) ** 2
    variance = release_variance(gaps, releases) if error == "max" else mean_squared_deviation(gaps, releases)
    return math.sqrt(squared * float(variance))


def _from_free(free: np.ndarray) -> Gaps:
    """Gaps from 2 d free numbers: u falls along theta_1, zeta_1, theta_2, ..., and a gap is e^-u."""
    gaps = np.exp(-np.cumsum(np.exp(free[::-1]))[::-1])
    return Gaps(gaps[0::2], gaps[1::2])


@cache
def optimize_gaps(releases: int, buffers: int, error: str, participations: int, separation: int) -> Gaps:
    """The gaps of least error, by BFGS."""
    from scipy.optimize import minimize  # takes as long to import as JAX

    if buffers == 0:
        return Gaps(np.zeros(0), np.zeros(0))

    def objective(free):
        with np.errstate(all="ignore"):
            value = math.log(loss(_from_free(free), releases, error, participations, separation))
        return value if math.isfinite(value) else 1e3

    u = np.linspace(math.log(max(releases, 3)), 0.5 if releases > 4 else 0.3, 2 * buffers)
    start = np.log(-np.diff(np.append(u, 0.0)))
    found = minimize(objective, start, method="BFGS", options={"gtol": 1e-7})
    return _from_free(found.x if found.fun <= objective(start) else start)


def interpolate_gaps(releases: float, error: str) -> Gaps:
    """The gaps of four buffers, between the rows of the table and beyond its last."""
    table = TABLES[error]
    first, last = min(table), max(table)
    at = max(math.log2(releases), first)
    low = min(int(at), last - 1)
    share = at - low
    logs = [np.log(np.array(table[k])) for k in (low, low + 1)]
    theta, zeta = np.exp((1 - share) * logs[0] + share * logs[1]).reshape(2, TABLE_BUFFERS)
    return Gaps(theta, zeta)


def gaps_of(releases: int, buffers: int, error: str, participations: int = 1, separation: int = 1) -> Gaps:
    """The gaps to use: tabled ones where there are, otherwise optimised ones."""
    used = min(buffers, releases - 1)
    participations = min(participations, -(-releases // separation))
    known = used == TABLE_BUFFERS and participations == 1
    if known and (error == "max" or releases >= 2 ** min(TABLES["mean"])):
        return interpolate_gaps(releases, error)
    return optimize_gaps(releases, used, error, participations, separation if participations > 1 else 1)


# ---- the form


class Params(NamedTuple):
    """One row for each decaying sum."""

    gap: Numeric  # 1 - decay [d + 1]; the first is 0
    weight: Numeric  # [d + 1]


def column(values: Tensor, like: Array) -> Array:
    """Numbers [n] as an array [n, 1, ...] beside `like` [n, ...], of its type."""
    return jnp.asarray(values, like.dtype).reshape((-1,) + (1,) * (like.ndim - 1))


def sum_rows(rows: Array) -> Array:
    """The sum over the first axis, in its order."""
    total = rows[0]
    for i in range(1, rows.shape[0]):
        total = total + rows[i]
    return total


@cache
def blt_functions(buffers: int) -> tuple[Any, Any, Any]:
    """begin, move and noise of so many decaying sums."""

    def move(params, state, draws, t, shape):
        return state - column(params.gap, state) * state + draws.normal(t, shape)[None]

    def noise(params, state, t):
        return sum_rows(column(params.weight, state) * state)

    return rows_of_zeros(buffers + 1), move, noise


def blt(releases: int, error: str, buffers: int, participations: int, separation: int) -> Form:
    """The form with parameters for a known number of releases."""
    gaps = gaps_of(releases, buffers, error, participations, separation)
    used = min(participations, -(-releases // separation))
    if used == 1:
        norm = math.sqrt(column_norm_squared(gaps, releases))
    else:
        norm = column_norm(coefficients(gaps, releases), used, separation)
    params, functions = Params(np.concatenate([[0.0], gaps.zeta]), weights(gaps)), blt_functions(len(gaps.zeta))
    size = len(gaps.zeta) + 1
    return Form(params, *functions, lambda t: np.sqrt(release_variance(gaps, t)), column_norm=norm, size=size)
