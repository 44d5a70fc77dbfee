"""Comparators in robust linear bandits: specification robust_linear, section 7, report by report.

Arms of a batch are pulled in ascending index. `reward(t, arm)` pays play t, `laplace(label, place)` and `normal(label, place)`
are standard draws with `Place` as in `robust_linear` (for the release of a whole batch per arm: the place of all its pulls),
`attack(report, place)` returns the report or what replaces it. Non-finite reports are dropped, n and M stay the full
batch's, as section 10 has it. Where the specification is silent the choice is an argument here.
"""

import math
from typing import NamedTuple

import numpy as np

from .linear import design
from .robust_linear import Place, Run, Setup, exploration, laplace_scale


class Phase(NamedTuple):
    design: object
    counts: np.ndarray  # [K]
    radius: float  # arms further behind than twice this are dropped
    estimate: np.ndarray  # [d]
    active: list  # after the phase


def guarded_ceil(x, relative_guard=0.0):
    return math.ceil(x * (1 - relative_guard) - 1e-9)


def least_squares(points, pulls, sums, kept):
    """M^-1 sum a r in rank coordinates, over what was kept times n over how many; None where nothing was."""
    moment = sum(n * np.outer(x, x) for n, x in zip(pulls, points, strict=True))
    if kept == 0:
        return None
    return np.linalg.solve(moment, points.T @ sums) * (sum(pulls) / kept)


def in_phases(actions, play_arm, counts_of, estimate_of, *, horizon, slack, ending="truncate", last=None):
    """Phases 0, 1, ... of a design on the active arms: counts_of(phase, design, active) -> [K], estimate_of(phase, design,
    pulls, received, active) -> (estimate or None, radius). ending "truncate": the last phase is truncated in index order and
    not estimated; "exploit": a phase that does not fit is not begun, nor one after `last` phases, and the best arm is played.
    """
    actions = np.asarray(actions, float)
    if not actions.any():
        raise ValueError("all actions are zero")
    arms, dim = actions.shape
    active, played, phases, phase, estimate = list(range(arms)), [], [], 0, np.zeros(dim)
    while len(played) < horizon:
        d = design(actions, [a in active for a in range(arms)], slack=slack)
        pulls, start = counts_of(phase, d, active) if d.rank else [0] * arms, len(played)
        if d.rank == 0 or phase == last or (ending == "exploit" and start + sum(pulls) > horizon):
            final = active[int(np.argmax([actions[a] @ estimate for a in active]))]
            played.extend([final] * (horizon - start))
            break
        received = {"start": start}
        for a in range(arms):
            room = horizon - len(played)
            n = min(int(pulls[a]), room)
            first = len(played) + 1
            played.extend([a] * n)
            received[a] = play_arm(phase, a, first, n, start)
            if n < pulls[a]:
                return Run(np.array(played), phases)
        estimate, radius = estimate_of(phase, d, pulls, received, active)
        if estimate is None:
            estimate = np.zeros(dim)
        else:
            values = {a: actions[a] @ estimate for a in active}
            active = [a for a in active if not max(values.values()) - values[a] > 2 * radius]
        phases.append(Phase(d, pulls, radius, estimate, list(active)))
        phase += 1
    return Run(np.array(played), phases)


def local_reports(reward, laplace, attack, scale):
    """Reports of one arm's pulls, each with its own noise."""

    def play_arm(phase, arm, first, n, start):
        reports = []
        for t in range(first, first + n):
            place = Place(phase + 1, t - start - 1, arm, t, t, start)
            noise = scale * laplace("report", place) if scale > 0 else 0.0
            reports.append(attack(reward(t, arm) + noise, place))
        return reports

    return play_arm


def finite_sums(num_arms, received):
    finite = {a: [r for r in received[a] if math.isfinite(r)] for a in range(num_arms)}
    return np.array([sum(finite.get(a, [])) for a in range(num_arms)]), sum(len(x) for x in finite.values())


def unchanged(report, place):
    return report


def phased_elimination(
    actions, reward, *, horizon, epsilon=math.inf, failure_prob=0.05, noise_scale=1.0, design_slack=1.0, textbook=False,
    laplace=None, attack=unchanged, mechanism_scale=1.0, relative_guard=0.0,
):  # fmt: skip
    """7.1: n_a = ceil(2 g pi(a) (sigma^2 + 2 b^2) / e^2 log(2 K l (l + 1) / delta)), e = 2^-l; out if behind by more than 2 e.

    textbook: g = rank, sigma^2 = 1 without noise's share, log(K l (l + 1) / delta).
    """
    actions = np.asarray(actions, float)
    arms, b = len(actions), laplace_scale(epsilon)

    def counts_of(phase, d, active):
        level = phase + 1
        e = 2.0**-level
        g = d.rank if textbook else d.max_leverage
        variance = 1.0 if textbook else noise_scale**2 + 2 * b**2
        log = math.log((1 if textbook else 2) * arms * level * (level + 1) / failure_prob)
        size = 2 * g * variance / e**2 * log
        return [guarded_ceil(size * w, relative_guard) if w > 0 else 0 for w in d.weights]

    def estimate_of(phase, d, pulls, received, active):
        theta = least_squares(actions @ d.basis, pulls, *finite_sums(arms, received))
        return None if theta is None else d.basis @ theta, 2.0 ** -(phase + 1)

    play_arm = local_reports(reward, laplace, attack, b * mechanism_scale)
    return in_phases(actions, play_arm, counts_of, estimate_of, horizon=horizon, slack=design_slack)


def unknown_corruption(h, *, dim, horizon, last):
    """7.2's decreasing schedule: min(sqrt T / log T, sqrt d 2^(H - h))."""
    return min(math.sqrt(horizon) / math.log(horizon), math.sqrt(dim) * 2.0 ** (last - h))


def bogunovic_elimination(
    actions, reward, *, horizon, corruption=0.0, weight_floor=0.1, failure_prob=0.05, design_slack=1.0, attack=unchanged,
    schedule=None, relative_guard=0.0,
):  # fmt: skip
    """7.2: m_h = 2^h m_0, m_0 = 4 d (log log max(d, 2) + 18); ceil(m_h max(pi(a), nu)) pulls on the support.

    corruption: C; schedule(h) replaces it where C is unknown. Out if behind by more than
    2 sqrt(4 d / m_h log(1 / delta)) + 2 C / (m_h nu) sqrt(4 d (1 + nu m_0)).
    """
    actions = np.asarray(actions, float)
    arms, dim = actions.shape
    m_0 = 4 * dim * (math.log(math.log(max(dim, 2))) + 18)

    def counts_of(h, d, active):
        size = 2**h * m_0
        return [guarded_ceil(size * max(w, weight_floor), relative_guard) if w > 0 else 0 for w in d.weights]

    def estimate_of(h, d, pulls, received, active):
        theta = least_squares(actions @ d.basis, pulls, *finite_sums(arms, received))
        m, c = 2**h * m_0, corruption if schedule is None else schedule(h)
        gap = 2 * math.sqrt(4 * dim / m * math.log(1 / failure_prob))
        gap += 2 * c / (m * weight_floor) * math.sqrt(4 * dim * (1 + weight_floor * m_0))
        return None if theta is None else d.basis @ theta, gap / 2

    play_arm = local_reports(reward, None, attack, 0.0)
    return in_phases(actions, play_arm, counts_of, estimate_of, horizon=horizon, slack=design_slack)


def widest(points, active, moment, variance_of, log):
    """max over active arms of sqrt(2 V L), V of the weights w_a(x) = <x, M^-1 a>."""
    inverse = np.linalg.inv(moment)
    return max(math.sqrt(2 * variance_of(np.array([points[x] @ inverse @ p for p in points])) * log) for x in active)


def private_elimination(
    actions, reward, *, horizon, mechanism, epsilon, size_of, log, delta=None, noise_scale=1.0, design_slack=1.0,
    sampling_scale=0.5, privacy_scale=1.0, laplace=None, normal=None, attack=unchanged, mechanism_scale=1.0,
    ending="exploit", last=None, relative_guard=0.0,
):  # fmt: skip
    """7.3 central ("laplace"): an arm's sum + Lap(2 / epsilon); 7.4 ("gaussian"): an arm's mean + N(0, s^2),
    s = 2 sqrt(2 ln(1.25 / delta)) / (n_a epsilon). The attack meets the raw rewards on their way to the server.

    size_of(phase): m of phase 0, 1, ...; log: L of the radius; last: phases at most. Radius of "laplace":
    sampling_scale sqrt(2 sigma^2 sum n_a w_a^2 L) + privacy_scale k r L / (m epsilon); of "gaussian":
    sampling_scale sqrt(2 V L), V = sum (n_a w_a)^2 (sigma^2 / n_a + s_a^2).
    """
    actions = np.asarray(actions, float)
    arms = len(actions)

    def counts_of(phase, d, active):
        return [guarded_ceil(size_of(phase) * w, relative_guard) if w > 0 else 0 for w in d.weights]

    def scale_of(n):
        """Of the noise on an arm's sum."""
        if math.isinf(epsilon):
            return 0.0
        return 2 / epsilon if mechanism == "laplace" else 2 * math.sqrt(2 * math.log(1.25 / delta)) / epsilon

    def estimate_of(phase, d, pulls, received, active):
        points, start = actions @ d.basis, received["start"]
        sums, kept = finite_sums(arms, received)
        done = start
        for index, a in enumerate(np.flatnonzero(pulls)):
            place = Place(phase + 1, index, int(a), done + 1, done + pulls[a], start)
            done += pulls[a]
            draw = laplace if mechanism == "laplace" else normal
            if scale_of(pulls[a]) * mechanism_scale > 0:
                sums[a] += scale_of(pulls[a]) * mechanism_scale * draw("sum", place)
        n = np.array(pulls)
        moment = sum(k * np.outer(x, x) for k, x in zip(pulls, points, strict=True))
        if mechanism == "laplace":
            radius = sampling_scale * widest(points, active, moment, lambda w: noise_scale**2 * np.sum(n * w**2), log)
            if not math.isinf(epsilon):
                k = np.count_nonzero(d.weights)
                radius += privacy_scale * k * d.rank * log / (size_of(phase) * epsilon)
        else:
            noise = np.array([scale_of(k) if k else 0.0 for k in pulls])
            radius = sampling_scale * widest(
                points, active, moment, lambda w: np.sum(w**2 * (noise_scale**2 * n + noise**2)), log
            )
        theta = least_squares(points, pulls, sums, kept)
        return None if theta is None else d.basis @ theta, radius

    play_arm = local_reports(reward, None, attack, 0.0)
    return in_phases(
        actions, play_arm, counts_of, estimate_of, horizon=horizon, slack=design_slack, ending=ending, last=last
    )


def bucketed(reports, num_buckets):
    """The j-th report of an arm goes to bucket j mod num_buckets."""
    return [reports[g::num_buckets] for g in range(num_buckets)]


def weiszfeld(points, *, iterations=50, floor=1e-8, start=None):
    """z <- sum z_g / |z_g - z| over sum 1 / |z_g - z|, from the mean."""
    points = np.asarray(points, float)
    z = points.mean(axis=0) if start is None else start
    for _ in range(iterations):
        w = np.array([1 / max(np.linalg.norm(p - z), floor) for p in points])
        z = (w[:, None] * points).sum(axis=0) / w.sum()
    return z


def buckets_needed(corruption_bound, n):
    """2 alpha n + 5."""
    return math.ceil(2 * corruption_bound * n) + 5


def trimmed_mean(x, share):
    """Mean without the `share` lowest and highest."""
    x = sorted(x)
    cut = math.floor(share * len(x))
    return float(np.mean(x[cut : len(x) - cut]))


def median_elimination(
    s: Setup, reward, *, num_buckets=None, iterations=50, floor=1e-8, raw=False, laplace=None, attack=unchanged
) -> Run:
    """7.6 on M1's batches: the geometric median of the least squares of num_buckets(batch, n) buckets of every arm's reports,
    buckets that do not span dropped; raw: of Z_j = n M^-1 a_j r_j instead. Radius as in `robust_linear`.
    """

    def estimate_of(batch, reports, places, pulls, active, basis, moment):
        points, n = np.asarray(s.actions, float) @ basis, len(reports)
        keep = np.isfinite(reports)
        if not keep.any():
            return None, keep, math.nan, 0
        if raw:
            z = [
                n * np.linalg.solve(moment, points[p.arm]) * r
                for r, p, k in zip(reports, places, keep, strict=True)
                if k
            ]
            return basis @ weiszfeld(z, iterations=iterations, floor=floor), keep, math.nan, 0
        many = buckets_needed(s.corruption_bound, n) if num_buckets is None else num_buckets(batch, pulls)
        held = {a: [j for j, p in enumerate(places) if p.arm == a] for a in range(len(pulls))}
        z = []
        for g in range(many):
            inside = [j for a in held for j in bucketed(held[a], many)[g] if keep[j]]
            x = np.array([points[places[j].arm] for j in inside]).reshape(-1, basis.shape[1])
            if len(inside) and np.linalg.matrix_rank(x, tol=1e-6) == basis.shape[1]:
                z.append(np.linalg.lstsq(x, np.array([reports[j] for j in inside]), rcond=None)[0])
        if not z:
            return None, keep, math.nan, 0
        return basis @ weiszfeld(z, iterations=iterations, floor=floor), keep, math.nan, 0

    return exploration(s, reward, laplace, attack, estimate_of)


def per_arm(s: Setup, reward, location, *, laplace=None, attack=unchanged) -> Run:
    """7.7: location(finite reports of an arm) and least squares weighted by pulls; arms without a finite report drop out."""

    def estimate_of(batch, reports, places, pulls, active, basis, moment):
        points = np.asarray(s.actions, float) @ basis
        held = {a: [] for a in range(len(pulls))}
        for r, place in zip(reports, places, strict=True):
            if math.isfinite(r):
                held[place.arm].append(r)
        keep = np.isfinite(reports)
        if not keep.any():
            return None, keep, math.nan, 0
        values = np.array([location(held[a]) if held[a] else 0.0 for a in held])
        theta = np.linalg.solve(moment, points.T @ (pulls * values))
        return basis @ theta, keep, math.nan, 0

    return exploration(s, reward, laplace, attack, estimate_of)


def trimmed_elimination(s: Setup, reward, *, estimator="trimmed", share=None, laplace=None, attack=unchanged) -> Run:
    share = s.corruption_bound if share is None else share
    locate = (lambda x: trimmed_mean(x, share)) if estimator == "trimmed" else (lambda x: float(np.median(x)))
    return per_arm(s, reward, locate, laplace=laplace, attack=attack)
