"""PRM elimination, pull by pull: what a careful programmer gets from Numba on one core.

One lane after another, float32. The pulls of a block are drawn `LANES` at a time in vectors (`numba_vectors`): a word
for the reward, scale * exp(-log(u) / shape) of a Pareto law, and one for the coin of the contamination. A lane stops
drawing when one arm is left.
"""

import math
from functools import cache

import numba as nb
import numpy as np
from numba_loops import _INLINE, _LOOP, F32, U32, log
from numba_vectors import I32, LANES, exp, positive_uniform, seed_words, uniform, words


@nb.njit(**_INLINE)
def _laplace(state, word):
    words(state[:, :1], word[:1])
    magnitude = -math.log(positive_uniform(word[0]))
    return -magnitude if (word[0] & U32(256)) != U32(0) else magnitude


@cache
def _prm(central):
    @nb.njit(**_LOOP)
    def loop(scales, exponent, corruption, value, sizes, forced, clip, radius, noise_scale, bins, horizon, lanes, seed):
        count_scale, num_bins, first_edge, bin_width = bins
        arms, per_width = scales.shape[0], F32(1 / bin_width)
        pulls, drawn = np.zeros((lanes, arms), np.int64), np.zeros(lanes, np.int64)
        for lane in nb.prange(lanes):
            state, word, coin = np.empty((4, LANES), U32), np.empty(LANES, U32), np.empty(LANES, U32)
            seed_words(state, seed, lane)
            x, place, counts = np.empty(LANES, F32), np.empty(LANES, I32), np.zeros(num_bins + 1, np.int64)
            active, estimate = np.ones(arms, np.bool_), np.zeros(arms, F32)
            left, t, batch = arms, 0, 0
            while t < horizon and left > 1:
                size, bound = sizes[batch], clip[batch]
                exploring = batch < forced
                first, last = 0, arms
                if exploring:
                    words(state[:, :1], word[:1])
                    first = int(uniform(word[0]) * F32(arms))
                    last = first + 1
                for a in range(first, last):
                    if not (exploring or active[a]):
                        continue
                    plays = min(size, horizon - t)
                    total, scale, done, centre = 0.0, scales[a], 0, F32(0)
                    half = size // 2 if central else 0
                    counts[:] = 0
                    while done < plays:
                        searching = done < half
                        number = min(LANES, min(half, plays) - done if searching else plays - done)
                        words(state, word)
                        words(state, coin)
                        for i in range(LANES):
                            paid = scale * exp(log(positive_uniform(word[i])) * exponent)
                            x[i] = value if uniform(coin[i]) < corruption else paid
                        if searching:
                            for i in range(LANES):
                                where = (x[i] - first_edge) * per_width
                                inside = (where >= F32(0)) & (where < F32(num_bins))
                                where = where if inside else F32(num_bins)
                                place[i] = I32(where)
                            for i in range(number):
                                counts[place[i]] += 1
                        else:
                            part = F32(0)
                            for i in range(LANES):
                                away = x[i] - centre
                                part += away if (abs(away) <= bound) & (i < number) else F32(0)
                            total += part
                        done += number
                        if searching and done == half:
                            top = -math.inf
                            for j in range(num_bins):
                                share = counts[j] / half + count_scale[batch] * _laplace(state, word)
                                if share > top:
                                    top, centre = share, F32(first_edge + j * bin_width)
                    t += plays
                    pulls[lane, a] += plays
                    if plays == size:
                        noise = noise_scale[batch] * _laplace(state, word)
                        estimate[a] = centre + total / (size - half) + noise
                if t < horizon and not exploring:
                    top = F32(-np.inf)
                    for a in range(arms):
                        if active[a]:
                            top = max(top, estimate[a])
                    for a in range(arms):
                        if active[a] and top - estimate[a] > 2 * radius[batch]:
                            active[a] = False
                            left -= 1
                batch += 1
            drawn[lane] = t
            for a in range(arms):
                if active[a] and t < horizon:
                    pulls[lane, a] += horizon - t
        return pulls, drawn

    return loop


def prm_elimination(means, shape, corruption, value, params, horizon, lanes, seed, central=False):
    """Pulls [lanes, K] and drawn rewards [lanes] of `prm_elimination` with the numbers of its `params`."""
    scales = (np.asarray(means) * (shape - 1) / shape).astype(F32)
    tables = (np.asarray(x, F32) for x in (params.clip, params.radius, params.noise_scale))
    own = params.bins
    bins = (np.asarray(params.count_scale, float), int(own.num_bins), float(own.first_edge), float(own.width))
    if not central:
        bins = (np.zeros(1), 0, 0.0, 1.0)
    numbers = (
        F32(-1 / shape),
        F32(corruption),
        F32(value),
        np.asarray(params.sizes, np.int64),
        int(params.forced),
        *tables,
    )
    return _prm(central)(scales, *numbers, bins, horizon, lanes, seed)
