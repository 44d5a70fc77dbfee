"""What several releases cost together, counted by the distribution of their privacy loss: on the host, rounded up.

The privacy loss of a release x is log P(x) / Q(x), P and Q its laws under neighbouring inputs. Losses of
independent releases add up, so that their laws are convolved; delta at epsilon is E_P[(1 - e^(epsilon -
loss))_+]. The law of one release is put on a grid such that P's and Q's masses between two grid points stay
what they are: that dominates the release, and errs by the square of the grid's step. Sources: Koskela, Jälkö
and Honkela 2020 (Fourier accountant); Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022 (the grid); Kairouz,
Oh and Viswanath 2015 (randomised response dominates whatever is (epsilon, delta)-private).
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

GRID_POINTS = 1 << 17  # of the grid
MAX_LOSS = 600.0  # a float still holds its exponential
FOURIER_ERROR = 1e-12  # added to delta: more than what a Fourier transform of that many points gets wrong
LEAST_DELTA = 1e-9  # below this, `FOURIER_ERROR` would show


class Release(NamedTuple):
    """A kind of release, by the pair of laws that dominates it."""

    kind: str  # "laplace" | "gaussian" (one at most, once) | "pure": any other
    delta: float  # of one "pure" release
    size: float  # sensitivity / scale; of a "pure" release its epsilon
    times: int


@lru_cache(maxsize=4096)
def compose_losses(releases: tuple[Release, ...], delta: float) -> float:
    """An epsilon at which releases together are (epsilon, delta)-private, at most a percent or so above the least.

    It is 0.0 where delta alone covers the releases, inf where this does not reach (delta below 1e-9, losses beyond
    600). Sizes are finite.
    """
    tail = 1e-4 * delta  # mass of losses beyond the grid: once for the sum, once for a Gaussian release
    never = -math.expm1(sum(x.times * math.log1p(-x.delta) for x in releases))  # mass of infinite loss
    left = delta - never - 2 * tail - FOURIER_ERROR
    if delta < LEAST_DELTA or left <= 0:
        return math.inf
    mean, reach = sum(x.times * _mean(x) for x in releases), _reach(releases, 0.0, tail)
    if mean + reach > MAX_LOSS:
        return math.inf
    step = 2.2 * reach / GRID_POINTS  # a tenth to spare: losses on the grid may be a step larger
    pure = [x.size for x in releases if x.kind != "gaussian"]
    if pure and max(pure) > step:  # its largest loss on a grid point
        step = max(pure) / math.floor(max(pure) / step)
    first = math.floor((mean - 1.1 * reach) / step)
    index = np.fft.fftfreq(GRID_POINTS, 1 / GRID_POINTS)
    law, mean = np.ones(GRID_POINTS // 2 + 1, complex), 0.0
    for release in releases:
        grid = _on_grid(release, step, tail)
        law *= np.fft.rfft(grid) ** release.times
        mean += release.times * step * float(grid @ index)
    if mean + _reach(releases, step, tail) > step * (first + GRID_POINTS - 1):
        return math.inf
    # losses beyond the grid come back at its other end: high ones are at most `tail`, low ones only count as higher
    mass = np.maximum(np.roll(np.fft.irfft(law, GRID_POINTS), -first), 0)
    return _epsilon(mass, step * (first + np.arange(GRID_POINTS)), left)


def _reach(releases: tuple[Release, ...], step: float, tail: float) -> float:
    """How far above its mean the sum of losses lies with probability at most `tail`; losses may be off by `step`.

    A loss within [-size, size] is sub-Gaussian with variance size^2 (Hoeffding), as the Gaussian's is.
    """
    return math.sqrt(2 * sum(x.times * (x.size + step) ** 2 for x in releases) * math.log(1 / tail))


def _mean(release: Release) -> float:
    """The expected loss, or more."""
    if release.kind == "gaussian":
        return release.size**2 / 2
    if release.kind == "laplace":
        return release.size + math.expm1(-release.size)
    return release.size * math.tanh(release.size / 2)


def _on_grid(release: Release, step: float, tail: float) -> np.ndarray:
    """The law of one release's loss, given that it is finite: masses at multiples of `step`; index -1 is loss -step."""
    from scipy.special import ndtr

    grid, r = np.zeros(GRID_POINTS), release.size
    if release.kind == "gaussian":  # of which there is one, times 1: rounded up to the next point
        reach = r * math.sqrt(2 * math.log(1 / tail))
        low, high = math.floor((r * r / 2 - reach) / step), math.ceil((r * r / 2 + reach) / step)
        below = ndtr((np.arange(low, high + 1) * step - r * r / 2) / r)
        below[0], mass = 0.0, np.zeros(high - low + 1)
        mass[1:] = np.diff(below)
        np.add.at(grid, np.arange(low, high + 1) % GRID_POINTS, mass)
        return grid
    if release.kind == "laplace":
        # the loss is r with probability 1/2, -r with e^-r / 2, and between the two has density e^(-(r - loss)/2) / 4
        last = math.ceil(r / step)
        edges = np.unique(np.clip(np.arange(-last, last + 1) * step, -r, r))
        low, high = edges[:-1], edges[1:]
        mass = -0.5 * np.exp(-(r - high) / 2) * np.expm1(-(high - low) / 2)
        losses = np.concatenate([[-r, r], (low + high) / 2])  # log of P's mass over Q's
        mass = np.concatenate([[0.5 * math.exp(-r), 0.5], mass])
    else:
        losses, mass = np.array([-r, r]), 1 / (1 + np.exp([r, -r]))
    # each mass is shared by the two points around it so that both P's and Q's add up to what they were
    below = np.floor(losses / step + 1e-9)
    above = np.clip(np.expm1(below * step - losses) / math.expm1(-step), 0, 1) * mass
    np.add.at(grid, below.astype(int) % GRID_POINTS, mass - above)
    np.add.at(grid, (below.astype(int) + 1) % GRID_POINTS, above)
    return grid


def _epsilon(mass: np.ndarray, losses: np.ndarray, delta: float) -> float:
    """The least epsilon >= 0 at which E[(1 - e^(epsilon - loss))_+] <= delta."""
    p = np.cumsum(mass[::-1])[::-1]  # of losses from here on, under P
    q = np.cumsum((mass * np.exp(-losses))[::-1])[::-1]  # and under Q
    deltas = p - np.exp(losses) * q  # at epsilon = each point
    start = int(np.searchsorted(losses, 0.0))
    over = np.flatnonzero(deltas[start:] > delta)
    i = start + (int(over[-1]) + 1 if len(over) else 0)  # the first point from which delta suffices
    # between two points p and q are constant
    return max(0.0, math.log((p[i] - delta) / q[i])) if p[i] > delta else 0.0
