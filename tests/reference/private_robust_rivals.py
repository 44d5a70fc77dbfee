"""Private comparators in epochs and episodes: docs/formulas/private_robust_mab.md#comparators, play by play.

`rewards(t, arm)` pays play t (1-based, may be inf or NaN); `laplace(t)` is a standard Laplace draw, t the last play
of the block or episode released. `epsilon` may be inf where it says nothing else: then no noise is drawn.
"""

import math

import numpy as np

from .private_robust_estimators import first_max, truncated_mean


def clipped(reward):
    """To [0, 1]; NaN counts as 0."""
    return 0.0 if math.isnan(reward) else min(max(float(reward), 0.0), 1.0)


def zeroed(reward):
    """Policy `zero` of the unclipped comparators."""
    return float(reward) if math.isfinite(reward) else 0.0


def scaled(numerator, epsilon):
    return 0.0 if math.isinf(epsilon) else numerator / epsilon


def noise(scale, draw):
    """Select, never multiply: no draw is taken where the scale is zero."""
    return scale * draw() if scale > 0 else 0.0


class Plays:
    """Plays one by one up to the horizon; `receive` is the rule for non-finite rewards."""

    def __init__(self, rewards, horizon, receive):
        self.rewards, self.horizon, self.receive = rewards, horizon, receive
        self.actions, self.released = [], []

    def done(self):
        return len(self.actions) == self.horizon

    def block(self, arm, size):
        """What `size` plays of one arm paid, or None where the horizon cut them."""
        x = []
        for _ in range(size):
            if self.done():
                return None
            t = len(self.actions) + 1
            x.append(self.receive(self.rewards(t, arm)))
            self.actions.append(arm)
        return x

    def result(self):
        """Actions [T] and the released values (t, arm, value)."""
        return np.array(self.actions, int), self.released


def private_elimination(plays, num_arms, laplace, epoch):
    """Epochs e = 1, 2, ...: epoch(e, n) -> (pulls per arm, estimate, noise scale, how far behind is out)."""
    active, e = list(range(num_arms)), 0
    while not plays.done():
        if len(active) == 1:
            plays.block(active[0], 1)
            continue
        e += 1
        pulls, estimate, scale, width = epoch(e, len(active))
        values = {}
        for arm in active:
            x = plays.block(arm, pulls)
            if x is None:
                return plays.result()
            t = len(plays.actions)
            values[arm] = estimate(x) + noise(scale, lambda t=t: laplace(t))
            plays.released.append((t, arm, values[arm]))
        best = max(values.values())
        active = [arm for arm in active if not best - values[arm] > width]
    return plays.result()


def dp_se_epoch(e, n, epsilon, b):
    """DP-SE: pulls R per arm, h and c."""
    gap = 2.0**-e
    R = math.ceil(
        max(32 * math.log(8 * n * e**2 / b) / gap**2, scaled(8 * math.log(4 * n * e**2 / b) / gap, epsilon)) + 1
    )
    return R, math.sqrt(math.log(8 * n * e**2 / b) / (2 * R)), scaled(math.log(4 * n * e**2 / b) / R, epsilon)


def dp_se(rewards, laplace, *, num_arms, horizon, epsilon, failure_prob=None, mechanism_scale=1.0):
    b = 1 / horizon if failure_prob is None else failure_prob

    def epoch(e, n):
        R, h, c = dp_se_epoch(e, n, epsilon, b)
        return R, lambda x: sum(x) / len(x), mechanism_scale * scaled(1 / R, epsilon), 2 * h + 2 * c

    return private_elimination(Plays(rewards, horizon, clipped), num_arms, laplace, epoch)


def dprse_epoch(e, n, epsilon, b, v, u):
    """DPRSE: pulls R per arm, clip B and err."""
    gap, log = 2.0**-e, math.log(4 * n * e**2 / b)
    R = math.ceil(u ** (1 / v) * 24 ** ((1 + v) / v) * log / (epsilon * gap ** ((1 + v) / v)) + 1)
    return R, (u * R * epsilon / log) ** (1 / (1 + v)), u ** (1 / (1 + v)) * (log / (R * epsilon)) ** (v / (1 + v))


def low_moment(moment_order, moment_bound):
    """(1 + v, u) with 1 + v = min(k, 2): Jensen's u^(2/k) for k > 2."""
    return (moment_order, moment_bound) if moment_order <= 2 else (2.0, moment_bound ** (2 / moment_order))


def dprse(
    rewards, laplace, *, num_arms, horizon, epsilon, moment_order=2.0, moment_bound=1.0, failure_prob=None,
    mechanism_scale=1.0,
):  # fmt: skip
    """Truncation rejects inf and NaN. Finite epsilon."""
    b, (order, u) = 1 / horizon if failure_prob is None else failure_prob, low_moment(moment_order, moment_bound)

    def epoch(e, n):
        R, B, err = dprse_epoch(e, n, epsilon, b, order - 1, u)
        return R, lambda x: truncated_mean(x, B), mechanism_scale * 2 * B / (R * epsilon), 12 * err

    return private_elimination(Plays(rewards, horizon, float), num_arms, laplace, epoch)


def adap_index(mean, n, t, epsilon, index_scale):
    """AdaP-UCB, before play t."""
    return mean + math.sqrt(index_scale * math.log(t) / (2 * n)) + scaled(index_scale * math.log(t) / n, epsilon)


def divergence(p, y):
    """d(p, q) of Bernoulli laws at q = 1 - e^-y, p < 1: on this scale indices near 1 stay apart."""
    q = -math.expm1(-y)
    return (p * math.log(p / q) if p > 0 else 0.0) + (1 - p) * (math.log1p(-p) + y)


def kl_upper(p, bound):
    """-ln(1 - q) for the largest q in [p, 1] with d(p, q) <= bound: inf where p = 1."""
    if p == 1:
        return math.inf
    low = -math.log1p(-p)
    high = low + 1
    while divergence(p, high) <= bound:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        if middle > 0 and divergence(p, middle) <= bound:
            low = middle
        else:
            high = middle
    return low


def adap_kl_index(mean, n, t, epsilon, index_scale):
    """AdaP-KLUCB, before play t, as kl_upper."""
    p = clipped(mean + scaled(index_scale * math.log(t) / n, epsilon))
    return kl_upper(p, index_scale * math.log(t) / n)


def adap(rewards, laplace, index, *, num_arms, horizon, epsilon, index_scale=3.1, mechanism_scale=1.0):
    """Every arm once, then episodes that double an arm's pulls; its mean is that of the latest episode alone."""
    plays = Plays(rewards, horizon, clipped)
    mean, behind, total = [0.0] * num_arms, [0] * num_arms, [0] * num_arms

    def episode(arm, length):
        x = plays.block(arm, length)
        if x is not None:
            t = len(plays.actions)
            scale = mechanism_scale * scaled(1 / length, epsilon)
            mean[arm] = sum(x) / length + noise(scale, lambda: laplace(t))
            behind[arm], total[arm] = length, total[arm] + length
            plays.released.append((t, arm, mean[arm]))

    for arm in range(num_arms):
        episode(arm, 1)
    while not plays.done():
        t = len(plays.actions) + 1
        arm = first_max([index(mean[a], behind[a], t, epsilon, index_scale) for a in range(num_arms)])
        episode(arm, total[arm])
    return plays.result()


def adap_ucb(rewards, laplace, **settings):
    return adap(rewards, laplace, adap_index, **settings)


def adap_kl_ucb(rewards, laplace, **settings):
    return adap(rewards, laplace, adap_kl_index, **settings)


def adac_index(mean, n, t, rho, index_scale):
    """AdaC-UCB, before play t."""
    return mean + math.sqrt((1 / (2 * n) + scaled(1 / n**2, rho)) * index_scale * math.log(t))


def adac_ucb(rewards, normal, *, num_arms, horizon, rho, index_scale=3.1, mechanism_scale=1.0):
    """AdaP-UCB's episodes; the sum of an episode carries a normal draw of variance 1 / (2 rho)."""
    plays = Plays(rewards, horizon, clipped)
    mean, behind, total = [0.0] * num_arms, [0] * num_arms, [0] * num_arms
    arm, length = 0, 1
    while (x := plays.block(arm, length)) is not None:
        t = len(plays.actions)
        deviation = mechanism_scale * math.sqrt(scaled(1 / 2, rho))
        mean[arm] = (sum(x) + noise(deviation, lambda t=t: normal(t))) / length
        behind[arm], total[arm] = length, total[arm] + length
        plays.released.append((t, arm, mean[arm]))
        if 0 in total:
            arm, length = total.index(0), 1
            continue
        arm = first_max([adac_index(mean[a], behind[a], t + 1, rho, index_scale) for a in range(num_arms)])
        length = total[arm]
    return plays.result()


def local_level(n, c, order, unit, before, after, log):
    """M of a block of n reports."""
    if math.isinf(order):
        return unit
    parts = [(n / (c * c * log)) ** (1 / (2 * order))]
    if before > 0:
        parts.append(before ** (-1 / order))
    if after > 0:
        parts.append((c * after) ** (-1 / order))
    return unit * min(parts)


def local_radius(n, level, c, order, unit, before, after, failure, radius, truncation):
    """Beta of a block of n reports."""
    if radius == "order":
        power = 1 if math.isinf(order) else 1 - 1 / order
        private = 0.75 * (c * math.sqrt(math.log(1 / failure) / n)) ** power
        return unit * (private + 0.5 * (before**power + (c * after) ** power))
    tail = 0.0
    if not math.isinf(order):
        q = 1.0 if truncation == "zero" else (order - 1) ** (order - 1) / order**order
        tail = q * unit**order * level ** (1 - order)
    noise = c * level * math.sqrt(2 * math.log(2 / failure) / n)
    client = (1 - before) * tail + before * (level + unit)
    return noise + (1 - after) * client + after * (c * level + unit)


def local_report(x, uniform, level, c, truncation):
    """One bit of c M, as a reward of size M or less asks for."""
    if truncation == "zero":
        x = x if abs(x) <= level else 0.0
    else:
        x = 0.0 if math.isnan(x) else max(-level, min(level, x))
    return c * level if uniform < 1 / 2 + x / (2 * c * level) else -c * level


def local_robust_elimination(
    rewards, uniform, *, num_arms, horizon, epsilon, order=2.0, bound=1.0, before=0.0, after=0.0, radius="order",
    truncation="zero",
):  # fmt: skip
    """Batches of 2, 4, 8, ... plays of every active arm in index order; a client reports one bit a play."""
    plays = Plays(rewards, horizon, lambda x: x)
    c = 1.0 if math.isinf(epsilon) else (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)
    unit = bound if math.isinf(order) else bound ** (1 / order)
    active, n = list(range(num_arms)), 1
    while len(active) > 1:
        n, means = 2 * n, {}
        level = local_level(n, c, order, unit, before, after, math.log(horizon))
        beta = local_radius(n, level, c, order, unit, before, after, 1 / horizon, radius, truncation)
        for arm in active:
            if (x := plays.block(arm, n)) is None:
                return plays.result()
            last = len(plays.actions)
            reports = [local_report(x[i], uniform(last - n + 1 + i), level, c, truncation) for i in range(n)]
            means[arm] = sum(reports) / n
            plays.released.append((last, arm, means[arm]))
        active = [a for a in active if max(means.values()) - means[a] <= 2 * beta]
    plays.block(active[0], horizon + 1)
    return plays.result()


def modular_sum(integers, noise, n, g, tau):
    """What the server makes of a block's integers: their sum with noise, modulo n g + 2 tau + 1, back to a number."""
    m = n * g + 2 * tau + 1
    y = (sum(integers) + noise) % m
    return (y - m) / g if y > n * g + tau else y / g


def modular_numbers(n, epsilon, noise, failure, s=10.0):
    """Levels g and margin tau of a block of n plays."""
    if noise == "laplace":
        g = math.ceil(epsilon * math.sqrt(n))
        return g, math.ceil(g / epsilon * math.log(2 / failure))
    g = math.ceil(s * epsilon * math.sqrt(n))
    return g, math.ceil(2 * g / epsilon * math.sqrt(math.log(2 / failure)) + math.sqrt(2) * math.log(2 / failure))


def modular_radius(n, b, k, epsilon, noise, failure, s=10.0):
    """Of the mean of a block of batch b with k arms left."""
    v, h = (math.sqrt(2) / epsilon, 1 / epsilon)
    if noise == "skellam":
        v, h = 2 / epsilon + math.sqrt(2) / (s * epsilon), 1 / (s * epsilon)
    log = math.log(2 * k * b * b / failure)
    return math.sqrt(math.log(4 * k * b * b / failure) / (2 * n)) + (v * math.sqrt(log) + h * log) / n


def dist_elimination(
    rewards, uniform, drawn, *, num_arms, horizon, epsilon, noise="laplace", s=10.0, radius_scale=1.0, failure=None
):
    """Batches of 2, 4, ... plays of every active arm; `drawn(t, spread)`: the noise of a block that ends at play t."""
    plays = Plays(rewards, horizon, lambda x: min(max(x, 0.0), 1.0))
    failure = 1 / horizon if failure is None else failure
    active, n, b = list(range(num_arms)), 1, 0
    while len(active) > 1:
        n, b, means = 2 * n, b + 1, {}
        g, tau = modular_numbers(n, epsilon, noise, failure, s)
        beta = radius_scale * modular_radius(n, b, len(active), epsilon, noise, failure, s)
        for arm in active:
            if (x := plays.block(arm, n)) is None:
                return plays.result()
            last = len(plays.actions)
            z = [math.floor(y * g) + (uniform(last - n + 1 + i) < y * g - math.floor(y * g)) for i, y in enumerate(x)]
            means[arm] = modular_sum(z, drawn(last, g / epsilon), n, g, tau) / n
            plays.released.append((last, arm, means[arm]))
        active = [a for a in active if means[a] + beta >= max(means.values()) - beta]
    plays.block(active[0], horizon + 1)
    return plays.result()
