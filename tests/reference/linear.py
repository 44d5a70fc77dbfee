"""Linear bandits: docs/formulas/ldp_contextual.md#linucb (theory preset) and docs/formulas/robust_linear.md (M1)."""

import math
from typing import NamedTuple

import numpy as np


def first_argmax(values, tolerance=0.0):
    """The lowest index whose value is within a relative `tolerance` of the largest."""
    values = np.asarray(values, float)
    top = values.max()
    for i, value in enumerate(values):
        if value >= top - tolerance * abs(top):
            return i
    raise ValueError("no finite value")


def linucb_width(t, dim, *, failure_prob, noise_scale=0.5, theta_bound=1.0, feature_bound=1.0, ridge=1.0):
    """sqrt(lambda) D + R sqrt(d log((1 + t L^2 / lambda) / beta))."""
    inside = dim * math.log((1 + t * feature_bound**2 / ridge) / failure_prob)
    return math.sqrt(ridge) * theta_bound + noise_scale * math.sqrt(inside)


def linucb_theory(
    contexts, reward_of, *, ridge=1.0, failure_prob=None, radius_scale=1.0, first=1, tie_tolerance=1e-9, **bounds
):
    """docs/formulas/ldp_contextual.md#linucb, theory preset:
    play argmax <x, th> + w_t sqrt(x' P x), P = (V + lambda I)^-1.

    contexts [T, K, d]; reward_of(t, arm); failure_prob=None is 1 / T (docs/formulas/ldp_contextual.md#onlineucb);
    bounds: more of linucb_width.
    Which t enters the width of play t: the page indexes w_t by the round and counts rounds from 1, so the default
    `first=1` uses the current play index (w_1 has t = 1). The confidence theorem needs only the number of
    observations so far; that is `first=0`. The width grows with t, so `first=1` is valid too. Ties: lowest index
    within a relative tie_tolerance (unit vectors tie at the first play up to rounding). The inverse is recomputed
    each play. Returns actions [T].
    """
    horizon, _, dim = contexts.shape
    if failure_prob is None:
        failure_prob = 1.0 / horizon
    gram, moment, actions = np.zeros((dim, dim)), np.zeros(dim), []
    for t in range(1, horizon + 1):
        inverse = np.linalg.inv(gram + ridge * np.eye(dim))
        estimate = inverse @ moment
        width = radius_scale * linucb_width(t - 1 + first, dim, failure_prob=failure_prob, ridge=ridge, **bounds)
        scores = [x @ estimate + width * math.sqrt(x @ inverse @ x) for x in contexts[t - 1]]
        arm = first_argmax(scores, tie_tolerance)
        x, reward = contexts[t - 1][arm], reward_of(t, arm)
        gram = gram + np.outer(x, x)
        moment = moment + reward * x
        actions.append(arm)
    return np.array(actions)


class Design(NamedTuple):
    weights: np.ndarray  # [K], zero outside the active arms
    max_leverage: float
    rank: int
    basis: np.ndarray  # [d, r] orthonormal
    num_steps: int


def design(actions, active=None, *, slack=1.0, max_steps=None):
    """docs/formulas/robust_linear.md#design:
    Kumar-Yildirim start, then Fedorov-Wynn on the active arms, in r = rank coordinates.

    max_steps=None is 20 r. Ties: lowest index within relative 1e-6, on squared residual norms and on leverages.
    """
    actions = np.asarray(actions, float)
    num_arms, dim = actions.shape
    active = list(range(num_arms)) if active is None else [a for a in range(num_arms) if active[a]]

    residuals = actions[active].copy()
    initial = max(np.linalg.norm(x) for x in residuals)
    picks, basis = [], []
    while initial > 0 and len(picks) < dim:
        squared = [x @ x for x in residuals]
        if math.sqrt(max(squared)) <= 1e-9 * initial:
            break
        i = first_argmax(squared, 1e-6)
        direction = residuals[i] / np.linalg.norm(residuals[i])
        for previous in basis:  # second pass: keeps the basis orthonormal to rounding
            direction = direction - (direction @ previous) * previous
        direction = direction / np.linalg.norm(direction)
        picks.append(i)
        basis.append(direction)
        residuals = np.array([x - (x @ direction) * direction for x in residuals])
    rank = len(picks)
    weights = np.zeros(num_arms)
    if rank == 0:
        return Design(weights, 0.0, 0, np.zeros((dim, 0)), 0)

    q = np.array(basis).T
    points = actions[active] @ q
    pi = np.zeros(len(active))
    pi[picks] = 1.0 / rank
    limit = 20 * rank if max_steps is None else max_steps
    steps = 0
    while True:
        moment = sum(p * np.outer(x, x) for p, x in zip(pi, points, strict=True))
        leverages = np.array([x @ np.linalg.solve(moment, x) for x in points])
        if leverages.max() <= (1 + slack) * rank * (1 + 1e-9) or rank == 1 or steps == limit:
            break
        j = first_argmax(leverages, 1e-6)
        g = leverages[j]
        s = (g / rank - 1) / (g - 1)
        pi = (1 - s) * pi
        pi[j] += s
        steps += 1
    weights[active] = pi
    return Design(weights, float(leverages.max()), rank, q, steps)


def counts(weights, size, *, relative_guard=0.0):
    """docs/formulas/robust_linear.md#reports, M1: n_a = ceil(m pi(a) - 1e-9) on the support;
    relative_guard=2e-6 is the float32 rule.
    """
    return np.array([math.ceil(size * w * (1 - relative_guard) - 1e-9) if w > 0 else 0 for w in weights], dtype=int)


class Elimination(NamedTuple):
    actions: np.ndarray  # [T]
    designs: list  # one Design a batch
    counts: list  # one int [K] a batch
    radii: list  # one gamma_i a batch
    estimates: list  # one [d] a batch
    active: list  # sorted active arms after each batch


def practical_radius(
    num_batches, pulls, actions, active, basis, *, noise_scale=1.0, failure_prob=0.05, sampling_scale=0.5
):
    """docs/formulas/robust_linear.md#practical-radius, M1 at epsilon = inf, alpha = 0:
    c_stat max_x sqrt(2 sigma^2 sum n_a w_a^2 L).
    """
    log = math.log(2 * len(actions) * num_batches / failure_prob)
    points = actions @ basis
    moment = sum(n * np.outer(x, x) for n, x in zip(pulls, points, strict=True))
    widest = 0.0
    for x in active:
        solved = np.linalg.solve(moment, points[x])
        variance = noise_scale**2 * sum(n * (solved @ points[a]) ** 2 for a, n in enumerate(pulls))
        widest = max(widest, math.sqrt(2 * variance * log))
    return sampling_scale * widest


def robust_elimination_m1(
    actions, reward_of, *, horizon, num_batches, design_slack=1.0, relative_guard=0.0, **constants
):
    """docs/formulas/robust_linear.md#elimination, Algorithm 1, M1 with epsilon = inf,
    corruption_bound = 0 and no filter.

    actions [K, d]; reward_of(t, arm). In a batch the arms are pulled in ascending index, n_a times in a row. A
    non-finite report is dropped, n and M stay those of the full batch (docs/formulas/robust_linear.md#edges).
    """
    actions = np.asarray(actions, float)
    num_arms, dim = actions.shape
    if not np.any(actions):
        raise ValueError("all actions are zero")
    growth = horizon ** (1 / num_batches)
    if growth <= 2:
        raise ValueError("horizon ** (1 / num_batches) must exceed 2")
    active = list(range(num_arms))
    played, designs, all_counts, radii, estimates, history = [], [], [], [], [], []
    estimate = None
    for i in range(1, num_batches):
        d = design(actions, [a in active for a in range(num_arms)], slack=design_slack)
        if d.rank == 0:
            break
        pulls = counts(d.weights, growth**i, relative_guard=relative_guard)
        if len(played) + pulls.sum() > horizon:
            break
        points = actions @ d.basis
        moment, cross, kept = np.zeros((d.rank, d.rank)), np.zeros(d.rank), 0
        for a in range(num_arms):
            for _ in range(pulls[a]):
                played.append(a)
                reward = reward_of(len(played), a)
                moment += np.outer(points[a], points[a])
                if math.isfinite(reward):
                    cross += reward * points[a]
                    kept += 1
        radius = practical_radius(num_batches, pulls, actions, active, d.basis, **constants)
        if kept == 0:
            estimate = np.zeros(dim)
        else:
            estimate = d.basis @ np.linalg.solve(moment, cross * (pulls.sum() / kept))
            values = {a: actions[a] @ estimate for a in active}
            top = max(values.values())
            active = [a for a in active if values[a] >= top - 2 * radius]
        designs.append(d)
        all_counts.append(pulls)
        radii.append(radius)
        estimates.append(estimate)
        history.append(list(active))
    if estimate is None:
        final = active[0]
    else:
        final = active[int(np.argmax([actions[a] @ estimate for a in active]))]
    played.extend([final] * (horizon - len(played)))
    return Elimination(np.array(played), designs, all_counts, radii, estimates, history)
