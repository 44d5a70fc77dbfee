"""Robust and private linear bandits: docs/formulas/robust_linear.md, report by report.

`actions` [K, d]. A batch pulls the arms of its design in ascending index, n_a times in a row; a report belongs to one
pull (M1) or to all pulls of one arm (M2) and is told apart by its `Place`. Randomness is given: `reward(t, arm)` pays
play t (already contaminated where rewards are), `laplace(place)` is a standard Laplace draw, `attack(report, place)`
returns the report or what replaces it, `uniform(batch, last, s)` is the filter's s-th uniform (from 0), `last` the
batch's last play.
"""

import math
from typing import NamedTuple

import numpy as np

from .linear import Design, design


class Setup(NamedTuple):
    actions: np.ndarray  # [K, d]
    horizon: int
    num_batches: int  # B
    model: str = "M1"
    epsilon: float = math.inf
    corruption_bound: float = 0.0  # alpha
    variance_bound: str = "tight"  # lam_mode
    radius: str = "practical"
    sampling_scale: float | None = None  # c_stat
    corruption_scale: float | None = None  # c_corr
    bias_scale: float = 1.0  # c_lin
    weight_floor: float = 0.1  # nu
    design_slack: float = 1.0
    presieve: bool = False
    refit: bool = False
    failure_prob: float = 0.05  # delta
    noise_scale: float = 1.0  # sigma
    mechanism_scale: float = 1.0  # a test hook: multiplies the noise, and nothing else
    relative_guard: float = 0.0  # 2e-6 with float32 fast code


class Place(NamedTuple):
    batch: int  # from 1
    index: int  # of the report in its batch
    arm: int
    first: int  # its plays, 1-based
    last: int
    start: int  # plays before the batch
    end: int  # its last play
    hidden: float = (
        math.nan
    )  # 4 n lambda - rho^2, for adversaries who know the learner; nan where lambda follows from reports


class Filtered(NamedTuple):
    mean: np.ndarray  # [d]
    keep: np.ndarray  # [n] bool
    eigenvalues: list  # mu_1 at every look, the last one included
    num_removed: int
    capped: bool  # max_removals was reached


class Batch(NamedTuple):
    design: Design
    counts: np.ndarray  # [K]
    places: list
    reports: np.ndarray  # [n], as received
    keep: np.ndarray  # [n] survivors of finiteness, sieve and filter
    bound: float  # lambda
    radius: float  # gamma
    removed: int  # by the filter
    estimate: np.ndarray  # [d]
    active: list  # after the batch


class Run(NamedTuple):
    actions: np.ndarray  # [T]
    batches: list


# ---------------------------------------------------------------- the filter


def top_eigenpair(covariance):
    values, vectors = np.linalg.eigh(covariance)
    return values[-1], vectors[:, -1]


def spectral_filter(uniform, x, bound, *, max_removals=None):
    """Algorithm 2 on x [n, d]: uniform(s) of removal s = 0, 1, ...; bound = lambda. n = 0 gives a mean of zeros."""
    x = np.asarray(x, float)
    keep, eigenvalues, removed = np.ones(len(x), bool), [], 0
    while True:
        kept = [i for i in range(len(x)) if keep[i]]
        if not kept:
            return Filtered(np.zeros(x.shape[1]), keep, eigenvalues, removed, False)
        mean = sum(x[i] for i in kept) / len(kept)
        centred = x - mean
        covariance = centred[kept].T @ centred[kept] / len(kept)
        if np.trace(covariance) <= 0:
            top, v = 0.0, None
        else:
            top, v = top_eigenpair(covariance)
        eigenvalues.append(float(top))
        if top < 4 * bound or top <= 0 or len(kept) <= 1:
            return Filtered(mean, keep, eigenvalues, removed, False)
        if removed == max_removals:
            return Filtered(mean, keep, eigenvalues, removed, True)
        tau = np.where(keep, (centred @ v) ** 2, 0.0)
        cumulative = np.cumsum(tau)
        target, out = uniform(removed) * cumulative[-1], None
        for i in kept:
            if cumulative[i] > target:
                out = i
                break
        keep[out] = False
        removed += 1


# ---------------------------------------------------------------- reports, elimination and radius


def laplace_scale(epsilon):
    """b = 2 / epsilon."""
    return 0.0 if math.isinf(epsilon) else 2 / epsilon


def over(x, epsilon):
    return 0.0 if math.isinf(epsilon) else x / epsilon


def counts(weights, size, *, model="M1", weight_floor=0.1, relative_guard=0.0):
    """n_a = ceil(m pi(a)) or ceil(m max(pi(a), nu)) on the support."""
    pulls = []
    for weight in weights:
        share = max(weight, weight_floor) if model == "M2" else weight
        pulls.append(math.ceil(size * share * (1 - relative_guard) - 1e-9) if weight > 0 else 0)
    return np.array(pulls, int)


def second_moment_bound(pulls, *, model, noise_scale, epsilon):
    """rho^2."""
    b, least = laplace_scale(epsilon), min(n for n in pulls if n > 0)
    if model == "M1":
        return 1 + noise_scale**2 + 2 * b**2
    return 1 + noise_scale**2 / least + 2 * (b / least) ** 2


def lambda_value(mode, *, num_reports, max_norm, mean_square, clean_square):
    """max_norm: mu; mean_square: of the clamped finite reports; clean_square: rho^2."""
    if mode == "observed":
        return max_norm * mean_square
    if mode == "clean":
        return max_norm * clean_square
    if mode == "tight":
        return clean_square / num_reports
    raise ValueError(mode)


def gamma_paper(s: Setup, size, rank, support):
    """size: m = q^i; support: k."""
    arms, _ = np.shape(s.actions)
    alpha, nu, m, d, k = s.corruption_bound, s.weight_floor, size, rank, support
    prob = s.failure_prob / (arms * s.horizon**2)
    log, log_k = math.log(1 / prob), math.log(k / prob)
    c_stat = 1.0 if s.sampling_scale is None else s.sampling_scale
    c_corr = 1.0 if s.corruption_scale is None else s.corruption_scale
    sqrt = math.sqrt
    if s.model == "M1":
        y = 1 + sqrt(math.log(m / prob)) + over(math.log(m / prob), s.epsilon)
        statistical = sqrt(2 * d / m) * (sqrt(log) + over(log, s.epsilon))
        corrupted = (2 * d * (sqrt(alpha) + sqrt(alpha * log / m)) + sqrt(2 * d) * alpha) * y
    else:
        y = 1 + sqrt(log_k / (nu * m)) + over(log_k / (nu * m), s.epsilon)
        statistical = sqrt(2 * d) * (sqrt(log / (nu * m)) + over(log / (nu * m), s.epsilon))
        corrupted = (2 * d * (k * sqrt(alpha) + sqrt(k * alpha * log)) + sqrt(2 * d * k) * alpha) * y
    return c_stat * statistical + c_corr * corrupted + s.bias_scale * alpha


def gamma_practical(s: Setup, pulls, active, basis, moment):
    """basis [d, r]; moment: M [r, r] in its coordinates."""
    arms, _ = np.shape(s.actions)
    points, b, alpha = np.asarray(s.actions, float) @ basis, laplace_scale(s.epsilon), s.corruption_bound
    log = math.log(2 * arms * s.num_batches / s.failure_prob)
    inverse = np.linalg.inv(moment)
    widest = 0.0
    for x in active:
        variance, largest = 0.0, 0.0
        for a, n in enumerate(pulls):
            if n == 0:
                continue
            w = points[x] @ inverse @ points[a]
            if s.model == "M1":
                variance += (s.noise_scale**2 + 2 * b**2) * n * w**2
                largest = max(largest, b * abs(w))
            else:
                variance += w**2 * (s.noise_scale**2 / n + 2 * (b / n) ** 2)
                largest = max(largest, abs(w) * b / n)
        widest = max(widest, math.sqrt(2 * variance * log) + largest * log)
    radius = (0.5 if s.sampling_scale is None else s.sampling_scale) * widest
    if alpha > 0:
        square = second_moment_bound(pulls, model=s.model, noise_scale=s.noise_scale, epsilon=s.epsilon)
        radius += (0.5 if s.corruption_scale is None else s.corruption_scale) * math.sqrt(square * alpha)
        radius += s.bias_scale * alpha
    return radius


def clamped(reports, s: Setup):
    """Finite reports brought within max(1e6, 100 (1 + sigma + b)); others as they are."""
    limit = max(1e6, 100 * (1 + s.noise_scale + laplace_scale(s.epsilon)))
    return np.array([min(max(r, -limit), limit) if math.isfinite(r) else r for r in reports])


def sieved(reports, places, keep, pulls, s: Setup):
    """Presieve: |r| <= 1 + sigma sqrt(2 h / n_a) + b h / n_a with h = log(2 n / delta);
    all finite ones if none stays.
    """
    h, b = math.log(2 * len(reports) / s.failure_prob), laplace_scale(s.epsilon)
    new = keep.copy()
    for j, place in enumerate(places):
        n = 1 if s.model == "M1" else pulls[place.arm]
        if keep[j] and abs(reports[j]) > 1 + s.noise_scale * math.sqrt(2 * h / n) + b * h / n:
            new[j] = False
    return new if new.any() else keep


def filtered_estimate(s: Setup, batch, reports, places, pulls, active, basis, moment, uniform):
    """Lines 6 to 9 of Algorithm 1: (estimate [d] or None, survivors [n], lambda, removals of the filter)."""
    points, n = np.asarray(s.actions, float) @ basis, len(reports)
    inverse = np.linalg.inv(moment)
    values, vectors = np.linalg.eigh(moment)
    root = vectors @ np.diag(1 / np.sqrt(values)) @ vectors.T
    keep = np.array([math.isfinite(r) for r in reports])
    r = np.where(keep, clamped(reports, s), 0.0)
    bound = lambda_value(
        s.variance_bound, num_reports=n, max_norm=max(points[a] @ inverse @ points[a] for a in active),
        mean_square=np.mean(r[keep] ** 2) if keep.any() else 0.0,
        clean_square=second_moment_bound(pulls, model=s.model, noise_scale=s.noise_scale, epsilon=s.epsilon),
    )  # fmt: skip
    if not keep.any():
        return None, keep, bound, 0
    if s.presieve:
        keep = sieved(r, places, keep, pulls, s)
    kept = np.flatnonzero(keep)
    x = np.array([root @ points[places[j].arm] * r[j] for j in kept])
    result = spectral_filter(lambda u: uniform(batch, places[-1].last, u), x, bound)
    keep = keep.copy()
    keep[kept[~result.keep]] = False
    theta = n * root @ result.mean
    if s.refit:
        survivors = np.array([points[places[j].arm] for j in np.flatnonzero(keep)])
        if np.linalg.matrix_rank(survivors, tol=1e-6) == points.shape[1]:
            theta = np.linalg.lstsq(survivors, r[keep], rcond=None)[0]
    return basis @ theta, keep, bound, result.num_removed


def slack_of_the_filter(s: Setup, pulls, points, active):
    """4 n lambda - rho^2 of a batch yet to be played (docs/formulas/robust_linear.md#adversaries)."""
    if s.variance_bound == "observed":
        return math.nan
    weights = pulls if s.model == "M1" else np.minimum(pulls, 1)
    inverse = np.linalg.inv(sum(n * np.outer(x, x) for n, x in zip(weights, points, strict=True)))
    square = second_moment_bound(pulls, model=s.model, noise_scale=s.noise_scale, epsilon=s.epsilon)
    bound = lambda_value(
        s.variance_bound, num_reports=weights.sum(), max_norm=max(points[a] @ inverse @ points[a] for a in active),
        mean_square=math.nan, clean_square=square,
    )  # fmt: skip
    return 4 * weights.sum() * bound - square


def exploration(s: Setup, reward, laplace, attack, estimate_of) -> Run:
    """Algorithm 1 with any estimate_of(batch, reports, places, pulls, active, basis, moment)."""
    actions = np.asarray(s.actions, float)
    arms, dim = actions.shape
    growth = s.horizon ** (1 / s.num_batches)
    if not actions.any():
        raise ValueError("all actions are zero")
    if growth <= 2:
        raise ValueError("horizon ** (1 / num_batches) must exceed 2")
    if not s.corruption_bound < 0.25:
        raise ValueError("corruption_bound must be below 1/4")
    scale = laplace_scale(s.epsilon) * s.mechanism_scale
    active, played, batches, estimate = list(range(arms)), [], [], None
    for i in range(1, s.num_batches):
        d = design(actions, [a in active for a in range(arms)], slack=s.design_slack)
        if d.rank == 0:
            break
        pulls = counts(
            d.weights, growth**i, model=s.model, weight_floor=s.weight_floor, relative_guard=s.relative_guard
        )
        start = len(played)
        if start + pulls.sum() > s.horizon:
            break
        points, moment = actions @ d.basis, np.zeros((d.rank, d.rank))
        hidden = slack_of_the_filter(s, pulls, points, active)
        reports, places = [], []
        for a in range(arms):
            raws = []
            for _ in range(pulls[a]):
                played.append(a)
                raws.append(reward(len(played), a))
                if s.model == "M1":
                    places.append(
                        Place(i, len(places), a, len(played), len(played), start, start + pulls.sum(), hidden)
                    )
                    noise = scale * laplace(places[-1]) if scale > 0 else 0.0
                    reports.append(attack(raws[-1] + noise, places[-1]))
                    moment += np.outer(points[a], points[a])
            if s.model == "M2" and raws:
                places.append(
                    Place(
                        i, len(places), a, len(played) - len(raws) + 1, len(played), start, start + pulls.sum(), hidden
                    )
                )
                noise = scale / len(raws) * laplace(places[-1]) if scale > 0 else 0.0
                reports.append(attack(sum(raws) / len(raws) + noise, places[-1]))
                moment += np.outer(points[a], points[a])
        reports = np.array(reports)
        if s.radius == "paper":
            radius = gamma_paper(s, growth**i, d.rank, int(np.sum(d.weights > 0)))
        else:
            radius = gamma_practical(s, pulls, active, d.basis, moment)
        estimate, keep, bound, removed = estimate_of(i, reports, places, pulls, active, d.basis, moment)
        if estimate is None:
            estimate = np.zeros(dim)
        else:
            values = {a: actions[a] @ estimate for a in active}
            active = [a for a in active if values[a] >= max(values.values()) - 2 * radius]
        batches.append(Batch(d, pulls, places, reports, keep, bound, radius, removed, estimate, list(active)))
    final = active[0] if estimate is None else active[int(np.argmax([actions[a] @ estimate for a in active]))]
    played.extend([final] * (s.horizon - len(played)))
    return Run(np.array(played), batches)


def robust_elimination(s: Setup, reward, *, laplace=None, uniform=None, attack=None) -> Run:
    """Algorithm 1, M1 and M2."""

    def estimate_of(batch, reports, places, pulls, active, basis, moment):
        return filtered_estimate(s, batch, reports, places, pulls, active, basis, moment, uniform)

    return exploration(s, reward, laplace, attack or (lambda report, place: report), estimate_of)
