"""PRM elimination, pull by pull: what a careful programmer gets from Numba
on one core (private robust bandits, raw moments).

One lane after another, float32, one step of xoroshiro128+ a pull (its upper half is the reward, its lower half the
coin of the contamination), Pareto rewards as scale * exp(-log(u) / shape). A lane stops drawing when one arm is left.
"""

import math

import numba as nb
import numpy as np
from numba_loops import _LOOP, F32, U64, _advanced, _seeded


@nb.njit(**_LOOP)
def _prm(scales, exponent, corruption, value, sizes, forced, clip, radius, noise_scale, horizon, lanes, seed):
    arms = scales.shape[0]
    pulls, drawn = np.zeros((lanes, arms), np.int64), np.zeros(lanes, np.int64)
    for lane in nb.prange(lanes):
        s0, s1 = _seeded(seed, lane)
        active, estimate = np.ones(arms, np.bool_), np.zeros(arms, F32)
        left, t, batch, plays = arms, 0, 0, 0
        while t < horizon and left > 1:
            size, bound = sizes[batch], clip[batch]
            exploring = batch < forced
            first, last = 0, arms
            if exploring:
                first = int(F32((s0 + s1) >> U64(40)) * F32(2.0**-24) * arms)
                s0, s1 = _advanced(s0, s1)
                last = first + 1
            for a in range(first, last):
                if not (exploring or active[a]):
                    continue
                plays = min(size, horizon - t)
                total, scale = 0.0, scales[a]
                for _ in range(plays):
                    word = s0 + s1
                    s0, s1 = _advanced(s0, s1)
                    u = F32((word >> U64(41)) | U64(1)) * F32(2.0**-23)
                    x = scale * math.exp(math.log(u) * exponent)
                    coin = F32(np.uint32(word >> U64(8)) >> np.uint32(8)) * F32(2.0**-24)
                    x = value if coin < corruption else x
                    total += x if abs(x) <= bound else F32(0)
                t += plays
                pulls[lane, a] += plays
                if plays == size:
                    word = s0 + s1
                    s0, s1 = _advanced(s0, s1)
                    noise = -math.log((float(word >> U64(12)) + 0.5) * 2.0**-52)
                    estimate[a] = total / size + noise_scale[batch] * (noise if word & U64(1) else -noise)
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


def prm_elimination(means, shape, corruption, value, params, horizon, lanes, seed):
    """Pulls [lanes, K] and drawn rewards [lanes] of raw `prm_elimination` with the numbers of its `params`."""
    scales = (np.asarray(means) * (shape - 1) / shape).astype(F32)
    tables = (np.asarray(x, F32) for x in (params.clip, params.radius, params.noise_scale))
    sizes = np.asarray(params.sizes, np.int64)
    numbers = (F32(-1 / shape), F32(corruption), F32(value), sizes, int(params.forced), *tables)
    return _prm(scales, *numbers, horizon, lanes, seed)
