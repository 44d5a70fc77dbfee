"""What Algorithm 1 computes from a design: counts of plays, the filter's bound and the radius of elimination.

The paper is "Robust and private stochastic linear bandits" (ICML 2023, arXiv 2304.11741); the repaired formulas
are on `docs/formulas/robust_linear.md`. The functions take numbers or traced arrays. The design itself is
`estimators.g_optimal_design`, the filter `estimators.spectral_filter`.

Axes: [K] arms, [d] features. Model "M1": a client a reward; "M2": a client an action, whose report is the mean
of its n_a rewards. b is the Laplace scale of a reward's noise, 2 / epsilon, and 0 without privacy.
"""

from typing import Annotated, Any, Literal, TypeAlias

import jax.numpy as jnp
from jax import lax

from jaxbandits.declared import Doc, Kind
from jaxbandits.numerics import fixed_sum, matvec
from jaxbandits.typing import Array, Bool, Float, Int
from jaxbandits.validation import declare

ClientModel: TypeAlias = Literal["M1", "M2"]
"""Who is a client: of one reward, or of one action."""

FloatLike = Annotated[float | Array, Kind("float")]  # of the host, or traced
OfModel = Annotated[ClientModel, Doc("A client a reward, or a client an action.")]
Size = Annotated[FloatLike, Doc("The size m of the batch.")]
WeightFloor = Annotated[FloatLike, Doc("The least weight of an arm of the design in model M2.")]
Pulls = Annotated[Int[Array, " K"], Kind("int array [K]"), Doc("Plays of the batch, 0 where an arm is not played.")]
NoiseScale = Annotated[FloatLike, Doc("The rewards' sub-Gaussian scale sigma.")]
LaplaceScale = Annotated[FloatLike, Doc("b.")]
CorruptionBound = Annotated[FloatLike, Doc("The share alpha of corrupted reports that is believed in.")]
Gamma = Annotated[Float[Array, ""], Doc("The radius gamma.")]

ARMS_AT_ONCE = 16  # whose widths are computed side by side: no array has size K x K


@declare(check=False, source="`docs/formulas/robust_linear.md#reports`.")
def counts(
    weights: Annotated[Float[Array, " K"], Kind("array [K]"), Doc("The design's weights.")],
    size: Size,
    *,
    model: OfModel = "M1",
    weight_floor: WeightFloor = 0.1,
) -> Int[Array, " K"]:
    """Plays of every arm in a batch: ceil(m w), for M2 ceil(m max(w, weight_floor)), where the design has weight.

    Returns:
        int32 array [K]: Plays of each arm; 0 where the design has no weight.

    Note:
        Guarded against rounding: m w (1 - 2e-6) - 1e-9 is rounded up in float32, m w - 1e-9 in float64.

    >>> counts(jnp.array([0.0, 0.25, 0.75]), 10).tolist()
    [0, 3, 8]
    >>> counts(jnp.array([0.0, 0.05, 0.95]), 10, model="M2").tolist()
    [0, 1, 10]
    """
    weights = jnp.asarray(weights)
    wanted = jnp.maximum(weights, weight_floor) if model == "M2" else weights
    shade = 1.0 if weights.dtype == jnp.float64 else 1 - 2e-6
    return jnp.where(weights > 0, jnp.ceil(size * wanted * shade - 1e-9), 0).astype(jnp.int32)


def _own(pulls, model):
    """Rewards behind one report of each arm [K]: 1 or n_a; 1 for arms that are not played."""
    return jnp.maximum(pulls, 1) if model == "M2" else jnp.ones_like(pulls)


@declare(check=False, source="`docs/formulas/robust_linear.md#threshold`.")
def mean_square(
    pulls: Pulls, noise_scale: NoiseScale, laplace_scale: LaplaceScale, *, model: OfModel = "M1"
) -> Annotated[Float[Array, ""], Doc("rho^2.")]:
    """A bound rho^2 on the mean square of a clean report.

    M1: 1 + sigma^2 + 2 b^2. M2: 1 + sigma^2 / n + 2 (b / n)^2 with n = min n_a.

    >>> float(mean_square(jnp.array([4, 0, 8]), 1.0, 2.0, model="M2"))
    1.75
    """
    pulls = jnp.asarray(pulls)
    least = jnp.min(jnp.where(pulls > 0, _own(pulls, model), jnp.iinfo(jnp.int32).max)).astype(jnp.result_type(float))
    least = jnp.where(jnp.any(pulls > 0), least, 1)
    return 1 + noise_scale**2 / least + 2 * (laplace_scale / least) ** 2


@declare(check=False, source="`docs/formulas/robust_linear.md#threshold`.")
def lambda_value(
    square: FloatLike,
    num_reports: Annotated[Any, Kind("int"), Doc("Reports n of the batch.")],
    max_leverage: Annotated[FloatLike, Doc("The largest leverage mu of the active arms in M.")],
    *,
    clean: Annotated[Any, Kind("bool"), Doc('False: rho^2 / n, "tight". True: mu rho^2, "clean".')],
) -> Annotated[Float[Array, ""], Doc("lambda.")]:
    """The bound lambda of the filter, which stops below a top eigenvalue of 4 lambda.

    Args:
        square: rho^2 of `mean_square`. For the paper's printed value: the mean square of the observed reports.

    Note:
        The printed value, "observed", is mu times the mean square of the observed reports. No data can exceed four
        times that, so that its filter never removes anything.

    >>> float(lambda_value(2.0, 10, 0.5, clean=False)), float(lambda_value(2.0, 10, 0.5, clean=True))
    (0.20000000298023224, 1.0)
    """
    return square * jnp.where(clean, max_leverage, 1 / jnp.maximum(num_reports, 1))


@declare(check=False, source="`docs/formulas/robust_linear.md#practical-radius`.")
def gamma_practical(
    actions: Annotated[Float[Array, "K d"], Kind("array [K, d]"), Doc("Feature vectors.")],
    active: Annotated[Bool[Array, " K"], Kind("bool array [K]"), Doc("The arms that are still played.")],
    inverse: Annotated[Float[Array, "d d"], Kind("array [d, d]"), Doc("M^-1 on the span of the active arms.")],
    pulls: Pulls,
    *,
    log_term: Annotated[FloatLike, Doc("L = log(2 K B / failure_prob).")],
    square: Annotated[FloatLike, Doc("rho^2 of `mean_square`.")],
    noise_scale: NoiseScale,
    laplace_scale: LaplaceScale,
    model: OfModel = "M1",
    sampling_scale: Annotated[FloatLike, Doc("Multiplies the width of the noise.")] = 0.5,
    corruption_bound: CorruptionBound = 0.0,
    corruption_scale: Annotated[FloatLike, Doc("Multiplies the first term of corruption.")] = 0.5,
    bias_scale: Annotated[FloatLike, Doc("Multiplies the second term of corruption.")] = 1.0,
) -> Gamma:
    """Half of the gap at which an arm is dropped: a Bernstein half-width of the noise, plus the bias of corruption.

    The noise is Gaussian and Laplace. The width is sampling_scale max_x [sqrt(2 V L) + c L] over active x, with
    w_a = <x, M^-1 a>. M1: V = (sigma^2 + 2 b^2) sum n_a w_a^2 and c = b max_a `|w_a|`. M2:
    V = sum w_a^2 (sigma^2 / n_a + 2 (b / n_a)^2) and c = max_a `|w_a|` b / n_a. Under corruption
    corruption_scale sqrt(rho^2 alpha) + bias_scale alpha is added.

    >>> x, both = jnp.eye(2), jnp.ones(2, bool)
    >>> scales = {"log_term": 4.0, "square": 2.0, "noise_scale": 1.0, "laplace_scale": 0.0}
    >>> float(gamma_practical(x, both, x / 8, jnp.array([8, 8]), **scales))
    0.5
    """
    reports = jnp.where(pulls > 0, 1 if model == "M2" else pulls, 0).astype(actions.dtype)
    own = _own(pulls, model).astype(actions.dtype)
    variance = reports * (noise_scale**2 / own + 2 * (laplace_scale / own) ** 2)
    tail = jnp.where(pulls > 0, laplace_scale / own, 0)
    num_arms, dim = actions.shape
    rows = -(-num_arms // ARMS_AT_ONCE)
    pad = rows * ARMS_AT_ONCE - num_arms

    def widest(largest, chunk):
        x, here = chunk
        w = fixed_sum(matvec(inverse, x)[:, None, :] * actions[None])
        width = jnp.sqrt(2 * log_term * fixed_sum(w * w * variance[None]))
        width = width + log_term * jnp.max(jnp.abs(w) * tail[None], axis=-1)
        return jnp.maximum(largest, jnp.max(jnp.where(here, width, 0))), None

    features = jnp.pad(actions, ((0, pad), (0, 0))).reshape(rows, ARMS_AT_ONCE, dim)
    chunks = features, jnp.pad(active, (0, pad)).reshape(rows, -1)
    largest = lax.scan(widest, jnp.zeros((), actions.dtype), chunks)[0]
    bias = corruption_scale * jnp.sqrt(square * corruption_bound) + bias_scale * corruption_bound
    return sampling_scale * largest + jnp.where(corruption_bound > 0, bias, 0)


@declare(check=False, source="`docs/formulas/robust_linear.md#paper-radius`.")
def gamma_paper(
    rank: Annotated[FloatLike, Doc("The dimension that the active arms span.")],
    size: Size,
    support: Annotated[FloatLike, Doc("Arms in the design.")],
    *,
    log_term: Annotated[FloatLike, Doc("L = log(1 / delta'), delta' = failure_prob / (K T^2).")],
    laplace_scale: Annotated[FloatLike, Doc("2 / epsilon.")],
    model: OfModel = "M1",
    weight_floor: WeightFloor = 0.1,
    sampling_scale: Annotated[FloatLike, Doc("The hidden constant of the first term.")] = 1.0,
    corruption_bound: CorruptionBound = 0.0,
    corruption_scale: Annotated[FloatLike, Doc("The hidden constant of the second term.")] = 1.0,
    bias_scale: Annotated[FloatLike, Doc("The hidden constant of the third term.")] = 1.0,
) -> Gamma:
    """The paper's radius with its hidden constants as scales.

    The rank r stands for d, m is the size and alpha the corruption bound. M1, with Y = 1 + sqrt(log(m /
    delta')) + log(m / delta') / epsilon: sampling_scale sqrt(2 r / m) (sqrt(L) + L / epsilon) +
    corruption_scale [2 r (sqrt(alpha) + sqrt(alpha L / m)) + sqrt(2 r) alpha] Y + bias_scale alpha. M2, with k
    the support, n = weight_floor m, L_k = log(k / delta') and Y = 1 + sqrt(L_k / n) + L_k / (n epsilon):
    sampling_scale sqrt(2 r) (sqrt(L / n) + L / (n epsilon)) + corruption_scale [2 r (k sqrt(alpha) + sqrt(k
    alpha L)) + sqrt(2 r k) alpha] Y + bias_scale alpha.

    Note:
        Beyond alpha of about 1e-3 it exceeds every gap and nothing is eliminated.
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
