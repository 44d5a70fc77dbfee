"""What Maler's predictions converge to, and how large its gradients are.

Lemma 3.5 bounds the sum of the squared errors of OnlineUCB's learner by a logarithm where the loss is strongly convex
in expectation. Where Algorithm 1 perturbs features, theta is not the minimizer of that expectation.
"""

import math
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import learners, theory
from jaxbandits.auditing.confidence_bounds import clopper_pearson
from jaxbandits.formatting import brackets
from jaxbandits.papers.ldp_contextual.instance import DELTA, HORIZON
from jaxbandits.papers.shared import Curve, draw_curves, ratio_interval, series
from jaxbandits.papers.study import Claim, Claims, Interval, Results, Study, nothing
from jaxbandits.reports import plot

EPSILON, THETA = 10.0, np.array([1.0, 1.0]) / math.sqrt(2)
# the features played: one direction alone, or two at even odds
SPREADS = {"perturbed, λ_min = 0": 0.0, "not perturbed, λ_min = 0.5": 0.5}
AWAY = THETA[1] ** 2  # squared error of the minimizer of E l_t where the second direction is never played
HORIZONS = {True: [4_000, 16_000, 64_000, 256_000], False: [500, 2_000]}
DIMS = {True: [5, 50, 500, 1_000, 4_000], False: [5, 50]}


def feature_deviation(horizon: int, least: float) -> float:
    """Delta: the root of T^(-1/4) where the least eigenvalue is at most that, otherwise 0."""
    return horizon**-0.125 if least <= horizon**-0.25 else 0.0


@cache
def sum_of_errors(horizon: int, least: float, seeds: int) -> np.ndarray:
    """The sum of |theta_t - theta|^2 [seed] of Maler on the messages of OnlineUCB with the printed noise."""
    sigma, extra = theory.online_ucb_noise(EPSILON, DELTA, calibration="paper"), feature_deviation(horizon, least)
    bound = theory.online_ucb_gradient_bound(sigma, sigma, perturbation=extra)
    learner, truth = learners.maler(2, horizon, 1.0, bound), jnp.asarray(THETA, jnp.float32)

    def one_round(carry, key):
        state, total = carry
        side, paid, noise = jax.random.split(key, 3)
        x = jnp.where(jax.random.uniform(side) < least, jnp.array([0.0, 1.0]), jnp.array([1.0, 0.0]))
        y = jnp.where(jax.random.uniform(paid) < (1 + x @ truth) / 2, 1.0, -1.0)  # rewards in [-1, 1]
        z = jax.random.normal(noise, (5,))
        x, y = x + sigma * z[:2] + extra * z[2:4], y + sigma * z[4]
        theta = learner.predict(state)
        gradient = 2 * x * (x @ theta - y) - 2 * sigma * sigma * theta
        clip = jnp.minimum(1, bound / jnp.maximum(jnp.sqrt(gradient @ gradient), 1e-30))
        return (learner.update(state, clip * gradient), total + jnp.sum((theta - truth) ** 2)), ()

    def sum_over_plays(key):
        return jax.lax.scan(one_round, (learner.init(), jnp.float32(0)), jax.random.split(key, horizon))[0][1]

    return np.asarray(jax.jit(jax.vmap(sum_over_plays))(jax.random.split(jax.random.key(0), seeds)))


def gradient_norms(dim: int, draws: int) -> tuple[np.ndarray, float]:
    """Norms of gradients at epsilon = 1 at predictions of norm 1, and the printed G."""
    rng, sigma = np.random.default_rng(dim), theory.online_ucb_noise(1.0, DELTA, calibration="paper")
    norms = np.empty(draws)
    for i in range(draws):  # one at a time: dim is large
        x, theta = (vector / np.linalg.norm(vector) for vector in rng.normal(size=(2, dim)))
        x, y = x + sigma * rng.normal(size=dim), rng.uniform(-1, 1) + sigma * rng.normal()
        norms[i] = np.linalg.norm(2 * x * (x @ theta - y) - 2 * sigma * sigma * theta)
    return norms, theory.online_ucb_gradient_bound(sigma, sigma, log=math.log(2 * HORIZON**2))


def compute_errors_and_norms(full: bool) -> dict[str, Any]:
    seeds, draws = (16, 4_000) if full else (4, 200)
    errors = {label: [sum_of_errors(T, x, seeds) for T in HORIZONS[full]] for label, x in SPREADS.items()}
    norms = {dim: gradient_norms(dim, draws) for dim in DIMS[full]}
    return {"horizons": HORIZONS[full], "errors": errors, "norms": norms}


def draw_errors(results: Results) -> plot.Plot:
    ends = results["horizons"]
    lines: list[Curve] = [(label, ends, sums) for label, sums in results["errors"].items()]
    lines.append(("T times the minimizer's squared error", ends, [AWAY * T for T in ends]))
    first = float(np.mean(lines[0][2][0]))
    lines.append(("√T, through the first point", ends, [first * math.sqrt(T / ends[0]) for T in ends]))
    words = {"horizon": "plays T", "errors": "sum of squared errors"}
    caption = f"Maler under Algorithm 1, ε = {EPSILON:g}, δ = {DELTA:g}, two dimensions, printed noise"
    return draw_curves("horizon", "errors", lines, names=words, caption=caption, width=6.5)


def draw_norms(results: Results) -> plot.Plot:
    dims = list(results["norms"])
    shares = [("median", 0.5), ("90%", 0.9), ("10%", 0.1)]
    lines: list[Curve] = [(word, dims, [np.quantile(x, q) for x, _ in results["norms"].values()]) for word, q in shares]
    lines.append(("printed G", dims, [bound for _, bound in results["norms"].values()]))
    words = {"dim": "dimension d", "norm": "norm of a gradient"}
    caption = f"gradients of OnlineUCB's loss, ε = 1, δ = {DELTA:g}, printed noise; predictions of norm 1"
    return draw_curves("dim", "norm", lines, names=words, caption=caption, width=6.0)


def claims(results: Results) -> Claims:
    ends, said = results["horizons"], "of order √T with logarithms (Lemma 3.5)"
    for label, sums in results["errors"].items():
        shares = [float(x.mean()) / T for x, T in zip(sums, ends, strict=True)]
        ratio, low, high = ratio_interval(sums[-1] / ends[-1], sums[0] / ends[0])
        measured = f"{series(ends, shares, '{y:.3g} at {x:,}')}; {ratio:.3g} {brackets(low, high)} of it is left"
        perturbed = label == next(iter(SPREADS))
        yield Claim(
            f"sum of squared errors over T: {label}", said if perturbed else "logarithmic (Lemma 3.5)", measured
        )
    for label, sums in results["errors"].items():
        yield Claim(f"sum of squared errors: {label}", "", series(ends, [x.mean() for x in sums], "{y:,.0f} at {x:,}"))
    dims, norms = list(results["norms"]), results["norms"].values()
    above = [int((x > bound).sum()) for x, bound in norms]
    measured = series(dims, [k / len(x) for k, (x, _) in zip(above, norms, strict=True)], "{y:.1%} at d = {x:,}")
    low, high = clopper_pearson(above[-1], len(results["norms"][dims[-1]][0]), 0.025)
    evidence = Interval(f"share at d = {dims[-1]:,}", low, high, at_most=1 / HORIZON)
    yield Claim("gradients clipped, ε = 1", "all of a run are at most G, but for one run in T", measured, evidence)
    yield Claim("gradients, median norm", "", series(dims, [np.median(x) for x, _ in norms], "{y:,.0f} at d = {x:,}"))


PICTURES = {"errors": draw_errors, "gradients": draw_norms}
STUDY = Study(__doc__, "Lemma 3.5; Section 3.2", nothing, PICTURES, claims, compute_errors_and_norms)
