"""Comparators in robust linear bandits: docs/formulas/robust_linear.md#comparators, report by report.

Arms of a batch are pulled in ascending index. `reward(t, arm)` pays play t, `laplace(label, place)` and
`normal(label, place)` are standard draws with `Place` as in `robust_linear` (for the release of a whole batch per
arm: the place of all its pulls), `attack(report, place)` returns the report or what replaces it. Non-finite reports
are dropped, n and M stay the full batch's, as docs/formulas/robust_linear.md#edges has it. Where the page leaves a
choice open, it is an argument here.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np

from .linear import design
from .robust_linear import Place, Run, Setup, clamped, exploration, laplace_scale


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
    """Phases 0, 1, ... of a design on the active arms: counts_of(phase, design, active) -> [K], estimate_of(phase,
    design, pulls, received, active) -> (estimate or None, radius). ending "truncate": the last phase is truncated in
    index order and not estimated; "exploit": a phase that does not fit is not begun, nor one after `last` phases, and
    the best arm is played.
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
            received[a] = play_arm(phase, a, first, n, start, start + sum(pulls))
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


def local_reports(reward, laplace, attack, scale, limit=math.inf):
    """Reports of one arm's pulls, each with its own noise, finite ones cut at the limit."""

    def play_arm(phase, arm, first, n, start, end):
        reports = []
        for t in range(first, first + n):
            place = Place(phase + 1, t - start - 1, arm, t, t, start, end)
            noise = scale * laplace("report", place) if scale > 0 else 0.0
            report = attack(reward(t, arm) + noise, place)
            reports.append(min(max(report, -limit), limit) if math.isfinite(report) else report)
        return reports

    return play_arm


def largest(noise_scale, scale):
    """The clamp of docs/formulas/robust_linear.md#extreme-reports, here for every estimate:
    max(1e6, 100 (1 + sigma + b)), b the scale of what noise there is.
    """
    return max(1e6, 100 * (1 + noise_scale + scale))


def finite_sums(num_arms, received):
    finite = {a: [r for r in received[a] if math.isfinite(r)] for a in range(num_arms)}
    return np.array([sum(finite.get(a, [])) for a in range(num_arms)]), sum(len(x) for x in finite.values())


def unchanged(report, place):
    return report


def phased_elimination(
    actions, reward, *, horizon, epsilon=math.inf, failure_prob=0.05, noise_scale=1.0, design_slack=1.0, laplace=None,
    attack=unchanged, mechanism_scale=1.0, relative_guard=0.0,
):  # fmt: skip
    """docs/formulas/robust_linear.md#phased-elimination: n_a =
    ceil(2 g pi(a) (sigma^2 + 2 b^2) / e^2 log(2 K l (l + 1) / delta)), e = 2^-l; out if behind by more than 2 e.
    """
    actions = np.asarray(actions, float)
    arms, b = len(actions), laplace_scale(epsilon)

    def counts_of(phase, d, active):
        level = phase + 1
        e = 2.0**-level
        g, variance = d.max_leverage, noise_scale**2 + 2 * b**2
        log = math.log(2 * arms * level * (level + 1) / failure_prob)
        size = 2 * g * variance / e**2 * log
        return [guarded_ceil(size * w, relative_guard) if w > 0 else 0 for w in d.weights]

    def estimate_of(phase, d, pulls, received, active):
        theta = least_squares(actions @ d.basis, pulls, *finite_sums(arms, received))
        return None if theta is None else d.basis @ theta, 2.0 ** -(phase + 1)

    play_arm = local_reports(reward, laplace, attack, b * mechanism_scale, largest(noise_scale, b))
    return in_phases(actions, play_arm, counts_of, estimate_of, horizon=horizon, slack=design_slack)


def unknown_corruption(h, *, dim, horizon, last):
    """docs/formulas/robust_linear.md#robust-phased-elimination, decreasing schedule:
    min(sqrt T / log T, sqrt d 2^(H - h)).
    """
    return min(math.sqrt(horizon) / math.log(horizon), math.sqrt(dim) * 2.0 ** (last - h))


def bogunovic_elimination(
    actions, reward, *, horizon, corruption=0.0, weight_floor=0.1, failure_prob=0.05, noise_scale=1.0, design_slack=1.0,
    attack=unchanged, schedule=None, relative_guard=0.0,
):  # fmt: skip
    """docs/formulas/robust_linear.md#robust-phased-elimination: m_h = 2^h m_0, m_0 = 4 d (log log max(d, 2) + 18);
    ceil(m_h max(pi(a), nu)) pulls on the support.

    corruption: C; schedule(h) replaces it where C is unknown. Out if behind by more than
    2 sigma sqrt(4 d / m_h log(1 / delta)) + 2 C / (m_h nu) sqrt(4 d (1 + nu m_0)).
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
        gap = 2 * noise_scale * math.sqrt(4 * dim / m * math.log(1 / failure_prob))
        gap += 2 * c / (m * weight_floor) * math.sqrt(4 * dim * (1 + weight_floor * m_0))
        return None if theta is None else d.basis @ theta, gap / 2

    play_arm = local_reports(reward, None, attack, 0.0, largest(noise_scale, 0.0))
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
    """docs/formulas/robust_linear.md#laplace-elimination, central ("laplace"): an arm's sum + Lap(2 / epsilon);
    docs/formulas/robust_linear.md#gaussian-elimination ("gaussian"): an arm's mean + N(0, s^2), s = 2 sqrt(2 ln(1.25
    / delta)) / (n_a epsilon). The attack meets the raw rewards on their way to the server.

    size_of(phase): m of phase 0, 1, ...; log: L of the radius; last: phases at most. Radius of "laplace":
    sampling_scale sqrt(2 sigma^2 sum n_a w_a^2 L) + privacy_scale k r L / (m epsilon); of "gaussian":
    sampling_scale sqrt(2 V L), V = sum (n_a w_a)^2 (sigma^2 / n_a + privacy_scale^2 s_a^2).
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
        sums = sums * (sum(pulls) / kept) if kept else sums  # noise is not scaled up for what was lost
        done = start
        for index, a in enumerate(np.flatnonzero(pulls)):
            place = Place(phase + 1, index, int(a), done + 1, done + pulls[a], start, start + sum(pulls))
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
            noise = np.array([privacy_scale * scale_of(k) if k else 0.0 for k in pulls])
            radius = sampling_scale * widest(
                points, active, moment, lambda w: np.sum(w**2 * (noise_scale**2 * n + noise**2)), log
            )
        theta = least_squares(points, pulls, sums, sum(pulls)) if kept else None
        return None if theta is None else d.basis @ theta, radius

    play_arm = local_reports(reward, None, attack, 0.0, largest(noise_scale, scale_of(1)))
    return in_phases(
        actions, play_arm, counts_of, estimate_of, horizon=horizon, slack=design_slack, ending=ending, last=last
    )


def bucketed(reports, num_buckets):
    """Runs of an arm's reports in order of play, the first ones longer by one."""
    size, longer = divmod(len(reports), num_buckets)
    edges = [g * size + min(g, longer) for g in range(num_buckets + 1)]
    return [reports[i:j] for i, j in itertools.pairwise(edges)]


def weiszfeld(points):
    """Fifty steps z <- sum z_g / |z_g - z| over sum 1 / |z_g - z|, from the mean."""
    points = np.asarray(points, float)
    z = points.mean(axis=0)
    for _ in range(50):
        w = np.array([1 / max(np.linalg.norm(p - z), 1e-8) for p in points])
        z = (w[:, None] * points).sum(axis=0) / w.sum()
    return z


def buckets_needed(corruption_bound, pulls):
    """ceil(2 alpha n) + 5, but no more than the fewest pulls of an arm in the design."""
    return min(math.ceil(2 * corruption_bound * sum(pulls) * (1 - 1e-6)) + 5, min(n for n in pulls if n > 0))


def trimmed_mean(x, share):
    """Mean without the ceil(share n) lowest and highest; the median where nothing would be left."""
    x = sorted(x)
    cut = min(math.ceil(share * len(x) * (1 - 1e-6)), (len(x) - 1) // 2)
    return float(np.mean(x[cut : len(x) - cut]))


def median_elimination(s: Setup, reward, *, raw=False, laplace=None, attack=unchanged) -> Run:
    """docs/formulas/robust_linear.md#median-elimination, on M1's batches: the geometric median of the least squares
    of every arm's reports in `buckets_needed` buckets, those without a finite report of some arm dropped; raw: of Z_j
    = n M^-1 a_j r_j instead. Radius as in `robust_linear`.
    """

    def estimate_of(batch, reports, places, pulls, active, basis, moment):
        points, n = np.asarray(s.actions, float) @ basis, len(reports)
        keep = np.isfinite(reports)
        r = clamped(reports, s)
        if raw:
            z = [n * np.linalg.solve(moment, points[places[j].arm]) * r[j] for j in range(n) if keep[j]]
        else:
            many, z = buckets_needed(s.corruption_bound, pulls), []
            held = {a: bucketed([j for j, p in enumerate(places) if p.arm == a], many) for a in np.flatnonzero(pulls)}
            for g in range(many):
                inside = {a: [j for j in held[a][g] if keep[j]] for a in held}
                if all(inside.values()):
                    rows = [j for a in held for j in inside[a]]
                    x = np.array([points[places[j].arm] for j in rows])
                    z.append(np.linalg.lstsq(x, r[rows], rcond=None)[0])
        if not z:
            return None, keep, math.nan, 0
        return basis @ weiszfeld(z), keep, math.nan, 0

    return exploration(s, reward, laplace, attack, estimate_of)


def trimmed_elimination(s: Setup, reward, *, estimator="trimmed", laplace=None, attack=unchanged) -> Run:
    """docs/formulas/robust_linear.md#trimmed-elimination, on M1's batches: a location of every arm's finite reports,
    then least squares weighted by pulls. Nothing goes where an arm has none. Trimmed at each end: 2 corruption_bound.
    """
    share = 2 * s.corruption_bound
    locate = (lambda x: trimmed_mean(x, share)) if estimator == "trimmed" else (lambda x: float(np.median(x)))

    def estimate_of(batch, reports, places, pulls, active, basis, moment):
        keep, values = np.isfinite(reports), np.zeros(len(pulls))
        r = clamped(reports, s)
        for a in np.flatnonzero(pulls):
            held = [r[j] for j, place in enumerate(places) if place.arm == a and keep[j]]
            if not held:
                return None, keep, math.nan, 0
            values[a] = locate(held)
        theta = np.linalg.solve(moment, (np.asarray(s.actions, float) @ basis).T @ (pulls * values))
        return basis @ theta, keep, math.nan, 0

    return exploration(s, reward, laplace, attack, estimate_of)


def gope_plays(g, h, eta, s, std, log):
    """The least n whose half-width is eta."""
    a, b = 2 * log * s**2 * g, 2 * log * std**2 * h
    return (a + math.sqrt(a * a + 4 * b * eta * eta)) / (2 * eta * eta)


def adac_gope(
    actions, reward, *, horizon, rho, failure_prob, noise_scale=1.0, design_slack=1.0, normal=None, attack=unchanged,
    mechanism_scale=1.0, relative_guard=0.0, last=None,
):  # fmt: skip
    """docs/formulas/private_frontier.md#adac-gope: batch l reaches a half-width of 2^-l by design, then drops arms by
    the half-width of the plays made.
    """
    actions = np.asarray(actions, float)
    arms, std = len(actions), 2 / math.sqrt(2 * rho)

    def log_of(phase):
        return math.log(2 * arms * (phase + 1) * (phase + 2) / failure_prob)

    def reach(points, weights, active):
        """The largest b' V^-1 b and the largest sum of (b' V^-1 a)^2 over arms that are played."""
        inverse = np.linalg.inv(sum(w * np.outer(x, x) for w, x in zip(weights, points, strict=True)))
        played = [a for a in range(arms) if weights[a] > 0]
        g = [points[b] @ inverse @ points[b] for b in active]
        h = [sum((points[b] @ inverse @ points[a]) ** 2 for a in played) for b in active]
        return np.array(g), np.array(h)

    def counts_of(phase, d, active):
        g, h = reach(actions @ d.basis, d.weights, active)
        n = guarded_ceil(
            gope_plays(max(g), max(h), 2.0 ** -(phase + 1), noise_scale, std, log_of(phase)), relative_guard
        )
        return [guarded_ceil(n * w, relative_guard) if w > 0 else 0 for w in d.weights]

    def estimate_of(phase, d, pulls, received, active):
        points, done = actions @ d.basis, received["start"]
        sums, kept = finite_sums(arms, received)
        sums = sums * (sum(pulls) / kept) if kept else sums
        end = done + sum(pulls)
        for index, a in enumerate(np.flatnonzero(pulls)):
            place = Place(phase + 1, index, int(a), done + 1, done + pulls[a], received["start"], end)
            done += pulls[a]
            if std * mechanism_scale > 0:
                sums[a] += std * mechanism_scale * normal("sum", place)
        g, h = reach(points, pulls, active)
        half = np.sqrt(2 * log_of(phase) * (noise_scale**2 * g + std**2 * h)).max()
        theta = least_squares(points, pulls, sums, sum(pulls)) if kept else None
        return None if theta is None else d.basis @ theta, half

    play_arm = local_reports(reward, None, attack, 0.0, largest(noise_scale, std))
    return in_phases(
        actions, play_arm, counts_of, estimate_of, horizon=horizon, slack=design_slack, ending="truncate", last=last
    )
