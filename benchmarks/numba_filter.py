"""The blocked spectral filter as a tuned Numba loop, one lane after another:
what a careful programmer gets from one core.

The form of `jaxbandits.estimators.spectral_filter`: block sums, an inverse distribution function over arms, the arm's
blocks, the block's reports; sums of what a removal touched recomputed; matrix squaring to the same accuracy; no solve
where the trace is below the threshold. float32 and fastmath; rows of matrices are filled up to whole vectors, from 24
features on they are not and squares are products of BLAS.
"""

import numba as nb
import numpy as np

F32 = np.float32
# NaN marks what is missing: everything is assumed of floats but that there are none
FAST = {"fastmath": {"nsz", "arcp", "contract", "afn", "reassoc", "ninf"}, "nogil": True, "error_model": "numpy"}


@nb.njit(**FAST)
def _top(matrix, power, square, d, pair, most):
    """Top eigenvector of matrix [d, wide] (zeros beyond d) as a column of its power; returns the column."""
    wide = matrix.shape[1]
    trace = F32(0)
    for i in range(d):
        trace += matrix[i, i]
    for i in range(d):
        for j in range(wide):
            power[i, j] = matrix[i, j] / trace
    for _ in range(most):
        if d >= 24:
            np.dot(power, power, square)
        else:
            for i in range(d):
                for j in range(wide):
                    square[i, j] = power[i, 0] * power[0, j]
                for k in range(1, d):
                    x = power[i, k]
                    for j in range(wide):
                        square[i, j] += x * power[k, j]
        trace = F32(0)
        for i in range(d):
            trace += square[i, i]
        scale = F32(1) / trace
        for i in range(d):
            for j in range(wide):
                power[i, j] = square[i, j] * scale
        if trace >= F32(1) - pair:
            break
    best = 0
    for i in range(1, d):
        if power[i, i] > power[best, best]:
            best = i
    return best


@nb.njit(**FAST)
def _filter(uniforms, values, block_arm, d, directions, threshold, limit):
    lanes, num_blocks, bs = values.shape
    num_arms, wide = directions.shape
    means, removals = np.zeros((lanes, d), F32), np.zeros(lanes, np.int64)
    matrix, power, square = np.zeros((d, wide), F32), np.zeros((d, wide), F32), np.zeros((d, wide), F32)
    size, mean, spread = np.zeros(num_blocks, F32), np.zeros(num_blocks, F32), np.zeros(num_blocks, F32)
    arm_size, arm_mean, arm_spread = np.zeros(num_arms, F32), np.zeros(num_arms, F32), np.zeros(num_arms, F32)
    along, tau, centre, v = np.zeros(num_arms, F32), np.zeros(num_arms, F32), np.zeros(wide, F32), np.zeros(wide, F32)
    first = np.searchsorted(block_arm, np.arange(num_arms + 1))
    norm = np.zeros(num_arms, F32)
    for a in range(num_arms):
        for i in range(d):
            norm[a] += directions[a, i] * directions[a, i]

    for lane in range(lanes):
        block = values[lane]
        for b in range(num_blocks):
            _sums(block[b], b, size, mean, spread)
        for a in range(num_arms):
            _pool(first[a], first[a + 1], a, size, mean, spread, arm_size, arm_mean, arm_spread)
        removed = 0
        while True:
            number, trace = F32(0), F32(0)
            for a in range(num_arms):
                number += arm_size[a]
                trace += norm[a] * (arm_spread[a] + arm_size[a] * arm_mean[a] * arm_mean[a])
            centre[:] = 0
            for a in range(num_arms):
                weight = arm_size[a] * arm_mean[a] / number
                for i in range(wide):
                    centre[i] += weight * directions[a, i]
            trace /= number
            for i in range(d):
                trace -= centre[i] * centre[i]
            if number <= 1 or trace < threshold or trace <= 0 or removed >= limit:
                break
            for i in range(d):
                for j in range(wide):
                    matrix[i, j] = -centre[i] * centre[j]
            for a in range(num_arms):
                weight = (arm_spread[a] + arm_size[a] * arm_mean[a] * arm_mean[a]) / number
                for i in range(d):
                    x = weight * directions[a, i]
                    for j in range(wide):
                        matrix[i, j] += x * directions[a, j]
            column = _top(matrix, power, square, d, F32(2 * 2.0**-11.5), 16)
            total = F32(0)
            for i in range(d):
                v[i] = power[column, i]
                total += v[i] * v[i]
            total = F32(1) / np.sqrt(total)
            middle = F32(0)
            for i in range(d):
                v[i] *= total
                middle += v[i] * centre[i]
            total = F32(0)
            for a in range(num_arms):
                c = F32(0)
                for i in range(wide):
                    c += directions[a, i] * v[i]
                off = c * arm_mean[a] - middle
                along[a] = c
                tau[a] = c * c * arm_spread[a] + arm_size[a] * off * off
                total += tau[a]
            if total < threshold * number or total <= 0:
                break

            left = uniforms[lane, removed] * total
            arm = num_arms - 1
            for a in range(num_arms):
                if tau[a] > left:
                    arm = a
                    break
                left -= tau[a]
            c, chosen = along[arm], first[arm + 1] - 1
            for b in range(first[arm], first[arm + 1]):
                off = c * mean[b] - middle
                score = c * c * spread[b] + size[b] * off * off
                if score > left:
                    chosen = b
                    break
                left -= score
            row, last = block[chosen], -1
            for i in range(bs):
                if not np.isnan(row[i]):
                    off = c * row[i] - middle
                    last = i
                    if off * off > left:
                        break
                    left -= off * off
            row[last] = np.nan
            removed += 1
            _sums(row, chosen, size, mean, spread)
            _pool(first[arm], first[arm + 1], arm, size, mean, spread, arm_size, arm_mean, arm_spread)
        means[lane], removals[lane] = centre[:d], removed
    return means, removals


@nb.njit(**FAST)
def _sums(row, b, size, mean, spread):
    number, total, squares = F32(0), F32(0), F32(0)
    for i in range(row.shape[0]):
        here = row[i] == row[i]
        number += F32(1) if here else F32(0)
        total += row[i] if here else F32(0)
    centre = total / max(number, F32(1))
    for i in range(row.shape[0]):
        apart = row[i] - centre if row[i] == row[i] else F32(0)
        squares += apart * apart
    size[b], mean[b], spread[b] = number, centre, squares


@nb.njit(**FAST)
def _pool(first, last, a, size, mean, spread, arm_size, arm_mean, arm_spread):
    number, total, squares = F32(0), F32(0), F32(0)
    for b in range(first, last):
        number += size[b]
        total += size[b] * mean[b]
    centre = total / max(number, F32(1))
    for b in range(first, last):
        apart = mean[b] - centre
        squares += spread[b] + size[b] * apart * apart
    arm_size[a], arm_mean[a], arm_spread[a] = number, centre, squares


def spectral_filter(uniforms, values, block_arm, directions, bound, limit):
    """Means [L, d] and removals [L]. values: [L, nb, bs], NaN: missing; directions: [K, d].

    What is removed becomes NaN in values.
    """
    d = directions.shape[1]
    wide = np.pad(directions, ((0, 0), (0, -d % 8 if d < 24 else 0)))
    return _filter(uniforms, values, block_arm, d, wide, F32(4 * bound), limit)
