"""Private adversarial bandits (Asi, Raman, Talwar, ICML 2025): docs/formulas/private_adversarial.md.

Arrays: `losses [T, K]` in [0, 1]; `advice [T, N, K]`; row t - 1 belongs to play t. A base is an object with
`act(j, draw) -> arm` and `update(x, draw=None)`; `j` counts base rounds from 1. `draw` is a uniform, except for Ftpl.
"""

import itertools
import math

import numpy as np
from scipy.integrate import quad


def sample(probabilities, u):
    """Inverse CDF: the lowest i with cumsum(p)[i] > u, capped at K - 1."""
    total = 0.0
    for i, p in enumerate(probabilities):
        total += p
        if total > u:
            return i
    return len(probabilities) - 1


def softmax(log_weights):
    w = np.exp(np.asarray(log_weights, float) - np.max(log_weights))
    return w / w.sum()


def regret(losses, actions):
    """docs/formulas/private_adversarial.md#model: sum_t l_t(I_t) - min_i sum_t l_t(i)."""
    return sum(losses[t][a] for t, a in enumerate(actions)) - np.sum(losses, axis=0).min()


def expert_regret(losses, advice, actions):
    """docs/formulas/private_adversarial.md#model: the same against the best fixed expert, min_j sum_t <mu_t^j, l_t>."""
    per_expert = np.zeros(advice.shape[1])
    for t in range(len(losses)):
        per_expert += advice[t] @ losses[t]
    return sum(losses[t][a] for t, a in enumerate(actions)) - per_expert.min()


# ---------------------------------------------------------------- tunings, literal formulas


def window(epsilon):
    """docs/formulas/private_adversarial.md#batch-length:
    ceil(1 / epsilon), rounded where 1 / epsilon is within 1e-6 / epsilon of an integer.
    """
    inverse = 1.0 / float(epsilon)
    if abs(inverse - round(inverse)) <= 1e-6 / epsilon:
        return round(inverse)
    return math.ceil(inverse)


def exp3_private_tuning(num_arms, horizon, epsilon):
    """docs/formulas/private_adversarial.md#exp3, Corollary E.1 with n = epsilon T: (learning_rate, mixing)."""
    n = epsilon * horizon
    log = math.log(num_arms * n)
    if log <= 0:
        raise ValueError("log(K epsilon T) must be positive")
    learning_rate = math.sqrt(math.log(num_arms) / (22 * n * num_arms * log**2))
    mixing = 4 * learning_rate * num_arms * log
    if mixing > 1:
        raise ValueError(f"mixing {mixing} > 1: horizon too small")
    return learning_rate, mixing


def exp3_general_tuning(num_arms, rounds, scale):
    """docs/formulas/private_adversarial.md#exp3, general Laplace scale lam over J base rounds:
    (learning_rate, mixing).
    """
    k, j, lam = num_arms, rounds, scale
    learning_rate = math.sqrt(math.log(k) / (2 * j * k * (1 + 10 * max(lam**2, lam) * math.log(k * j) ** 2)))
    mixing = 4 * learning_rate * lam * k * math.log(k * j)
    if mixing > 1:
        raise ValueError(f"mixing {mixing} > 1: too few rounds")
    return learning_rate, mixing


def exp3_ix_tuning(num_arms, horizon):
    """docs/formulas/private_adversarial.md#exp3-ix: eta = sqrt(2 log K / (K T)), g = eta / 2."""
    learning_rate = math.sqrt(2 * math.log(num_arms) / (num_arms * horizon))
    return learning_rate, learning_rate / 2


def ftpl_private_tuning(num_arms, horizon, epsilon):
    """docs/formulas/private_adversarial.md#ftpl, Corollary E.3 with n = epsilon T, L = log(K n):
    (learning_rate, tries).
    """
    n = epsilon * horizon
    log = math.log(num_arms * n)
    first = math.sqrt(math.log(num_arms) / (num_arms * n + 10 * num_arms * n * log**2))
    second = 1 / (math.sqrt(num_arms * n) * (1 + 4 * math.log(n)))
    return min(first, second), math.ceil(math.sqrt(epsilon * num_arms * horizon))


def ftpl_general_tuning(num_arms, rounds, scale):
    """docs/formulas/private_adversarial.md#ftpl, Lemma E.4's form with (lam, J): (learning_rate, tries)."""
    kj = num_arms * rounds
    first = math.sqrt(math.log(num_arms) / (kj * (1 + 10 * scale**2 * math.log(kj) ** 2)))
    second = 1 / (math.sqrt(kj) * (1 + 4 * scale * math.log(rounds)))
    return min(first, second), math.ceil(math.sqrt(kj))


def htinf_tail_scale(scale):
    """docs/formulas/private_adversarial.md#htinf: sqrt 6, or sqrt(2 + 4 lam^2) when lam > 1 + 1e-6."""
    return math.sqrt(2 + 4 * scale**2) if scale > 1 + 1e-6 else math.sqrt(6)


def exp4_tuning(num_arms, num_experts, horizon):
    """docs/formulas/private_adversarial.md#without-privacy, EXP4: (learning_rate, mixing)."""
    return math.sqrt(2 * math.log(num_experts) / (num_arms * horizon)), 0.0


def local_exp4_tuning(num_arms, num_experts, horizon, epsilon):
    """docs/formulas/private_adversarial.md#ldp-exp4, Algorithm 6 (Theorem 4.4): (learning_rate, mixing)."""
    log = math.log(num_arms * horizon)
    learning_rate = math.sqrt(math.log(num_experts) / (3 * horizon * num_arms * (1 + 10 * log**2 / epsilon**2)))
    mixing = 4 * learning_rate * num_arms * log / epsilon
    if mixing > 1:
        raise ValueError(f"mixing {mixing} > 1: horizon too small")
    return learning_rate, mixing


def batched_exp4_tuning(num_arms, num_experts, horizon, epsilon, delta, *, mixing_rule="repaired", check=True):
    """docs/formulas/private_adversarial.md#batched-exp4, Algorithm 2 (Theorem 4.5):
    (learning_rate, mixing, window, noise_scale), with the integer window.
    """
    if not 0 < delta <= 0.4:
        raise ValueError("0 < delta <= 0.4 required")
    k, n, t = num_arms, num_experts, horizon
    n_prime = n * math.log(1 / delta)
    log = math.log(n * t)
    learning_rate = (
        n_prime ** (1 / 6) * log ** (1 / 3) * math.log(n) ** (1 / 3) / (t ** (1 / 3) * k**0.5 * epsilon ** (1 / 3))
    )
    tau = math.ceil(n_prime ** (1 / 3) * log ** (2 / 3) * t ** (1 / 3) / (epsilon ** (2 / 3) * math.log(n) ** (1 / 3)))
    inner = n_prime if mixing_rule == "repaired" else n
    first = (learning_rate * inner) ** (1 / 3) * k ** (2 / 3) * log ** (2 / 3) / (epsilon * tau) ** (2 / 3)
    second = 12 * learning_rate * k * math.sqrt(n_prime) * log / (epsilon * tau)
    mixing = max(first, second)
    if check and (n < 2 or mixing > 1 or learning_rate >= 1 or tau > t):
        raise ValueError(f"horizon {t} too small: mixing {mixing}, learning_rate {learning_rate}, window {tau}")
    return learning_rate, mixing, tau, batched_exp4_noise_scale(k, n, epsilon, delta, mixing, tau)


def batched_exp4_noise_scale(num_arms, num_experts, epsilon, delta, mixing, tau):
    """docs/formulas/private_adversarial.md#batched-exp4:
    b = 3 K sqrt(N log(1 / delta)) / (g tau eps), with the mixing actually used.
    """
    return 3 * num_arms * math.sqrt(num_experts * math.log(1 / delta)) / (mixing * tau * epsilon)


# ---------------------------------------------------------------- bases


class Exp3:
    """docs/formulas/private_adversarial.md#exp3, Algorithm 3: P = (1 - g) softmax(logw) + g / K;
    logw[I] -= eta x / P[I].
    """

    def __init__(self, num_arms, *, learning_rate, mixing=0.0):
        self.num_arms, self.learning_rate, self.mixing = num_arms, learning_rate, mixing
        self.log_weights = np.zeros(num_arms)

    def probabilities(self):
        return (1 - self.mixing) * softmax(self.log_weights) + self.mixing / self.num_arms

    def act(self, j, draw):
        p = self.probabilities()
        self.arm = sample(p, draw)
        self.p = p[self.arm]
        return self.arm

    def update(self, x, draw=None):
        self.log_weights[self.arm] -= self.learning_rate * x / self.p


class Exp3IX:
    """docs/formulas/private_adversarial.md#exp3-ix: p = softmax(-eta Lhat); Lhat[I] += x / (p[I] + g)."""

    def __init__(self, num_arms, *, learning_rate, mixing):
        self.learning_rate, self.mixing = learning_rate, mixing
        self.total = np.zeros(num_arms)

    def probabilities(self):
        return softmax(-self.learning_rate * self.total)

    def act(self, j, draw):
        p = self.probabilities()
        self.arm = sample(p, draw)
        self.p = p[self.arm]
        return self.arm

    def update(self, x, draw=None):
        self.total[self.arm] += x / (self.p + self.mixing)


def skip_constant(alpha):
    """docs/formulas/private_adversarial.md#htinf:
    Theta_alpha = min{1 - 2^(-(alpha-1)/(2 alpha-1)), (2 - 2/alpha)^(1/(2-alpha))}; limit e^-1/2 at 2.
    """
    second = math.exp(-0.5) if alpha == 2 else (2 - 2 / alpha) ** (1 / (2 - alpha))
    return min(1 - 2 ** (-(alpha - 1) / (2 * alpha - 1)), second)


def tsallis_probabilities(total, step, alpha=2.0):
    """docs/formulas/private_adversarial.md#htinf: x_i = (s / (Lhat_i - c))^q with q = alpha / (alpha - 1);
    c by bisection on v = (min Lhat - c) / s.
    """
    q = alpha / (alpha - 1)
    gaps = (np.asarray(total, float) - np.min(total)) / step
    low, high = 1.0, len(gaps) ** (1 / q)
    for _ in range(64):  # past float64 resolution
        middle = 0.5 * (low + high)
        if np.sum((gaps + middle) ** -q) > 1:
            low = middle
        else:
            high = middle
    return (gaps + 0.5 * (low + high)) ** -q


class Htinf:
    """docs/formulas/private_adversarial.md#htinf: s = sigma t^(1/alpha);
    |x| > r_t = Theta s x_{t,I}^(1/alpha) is skipped; t always advances.
    """

    def __init__(self, num_arms, *, tail_scale=6**0.5, tail_index=2.0, skip=True):
        self.tail_scale, self.tail_index, self.skip = tail_scale, tail_index, skip
        self.total = np.zeros(num_arms)
        self.t = 1
        self.num_skipped = 0

    def step(self):
        return self.tail_scale * self.t ** (1 / self.tail_index)

    def probabilities(self):
        return tsallis_probabilities(self.total, self.step(), self.tail_index)

    def threshold(self, p):
        return skip_constant(self.tail_index) * self.step() * p ** (1 / self.tail_index)

    def act(self, j, draw):
        assert j == self.t
        p = self.probabilities()
        self.arm = sample(p, draw)
        self.p = p[self.arm]
        return self.arm

    def update(self, x, draw=None):
        if self.skip and abs(x) > self.threshold(self.p):
            self.num_skipped += 1
        else:
            self.total[self.arm] += x / self.p
        self.t += 1


class TsallisInf(Htinf):
    """docs/formulas/private_adversarial.md#tsallis-inf:
    the same regulariser with sigma = 1 and no skip (importance weighted, non-private).
    """

    def __init__(self, num_arms):
        super().__init__(num_arms, tail_scale=1.0, skip=False)


def laplace_argmin_probability(arm, total, learning_rate):
    """P(argmin_i (Lhat_i + Lap(1 / eta)) = arm) by adaptive quadrature, split at every cusp."""
    centres = learning_rate * (np.asarray(total, float) - np.min(total))

    def integrand(y):
        value = 0.5 * math.exp(-abs(y - centres[arm]))
        for i, c in enumerate(centres):
            if i != arm:
                z = y - c
                value *= 0.5 * math.exp(-z) if z >= 0 else 1 - 0.5 * math.exp(z)
        return value

    edges = [-40.0, *sorted(set(centres)), centres.max() + 40.0]
    parts = [quad(integrand, a, b, epsabs=0, epsrel=1e-10, limit=200)[0] for a, b in itertools.pairwise(edges)]
    return math.fsum(parts)


def geometric_tries(p, u, tries, on_fail="cap"):
    """docs/formulas/private_adversarial.md#ftpl: the number of resamples until a match of probability p;
    after `tries` misses M ("cap") or 0 ("zero").
    """
    failed = tries if on_fail == "cap" else 0
    p = min(max(p, 0.0), 1.0)
    if p < 1e-12:
        return failed
    if p >= 1:
        return 1
    count = 1 + math.floor(math.log(u) / math.log1p(-p))
    return count if count <= tries else failed


class Ftpl:
    """docs/formulas/private_adversarial.md#ftpl, Algorithm 4: I = argmin_i (Lhat_i + Lap(1 / eta)); Lhat[I] += x M_t.

    `act(j, draw)`: draw [K] standard Laplace. `update(x, draw)`: draw a uniform in (0, 1) (M_t through the exact
    probability) or an array [tries, K] of standard Laplace draws (M_t is the first row whose argmin is I).
    """

    def __init__(self, num_arms, *, learning_rate, tries, on_fail="cap"):
        self.learning_rate, self.tries, self.on_fail = learning_rate, tries, on_fail
        self.total = np.zeros(num_arms)

    def leader(self, noise):
        return int(np.argmin(self.total + np.asarray(noise) / self.learning_rate))

    def act(self, j, draw):
        self.arm = self.leader(draw)
        return self.arm

    def update(self, x, draw=None):
        if np.ndim(draw) == 2:
            count = self.tries if self.on_fail == "cap" else 0
            for m in range(self.tries):
                if self.leader(draw[m]) == self.arm:
                    count = m + 1
                    break
        else:
            p = laplace_argmin_probability(self.arm, self.total, self.learning_rate)
            count = geometric_tries(p, draw, self.tries, self.on_fail)
        self.total[self.arm] += x * count


# ---------------------------------------------------------------- algorithms


def exp3(losses, uniforms, *, learning_rate, mixing=0.0):
    """docs/formulas/private_adversarial.md#without-privacy, EXP3 on the raw losses: actions [T]."""
    base = Exp3(losses.shape[1], learning_rate=learning_rate, mixing=mixing)
    actions = []
    for t in range(1, len(losses) + 1):
        actions.append(base.act(t, uniforms[t - 1]))
        base.update(losses[t - 1][actions[-1]])
    return np.array(actions)


def private_batched(base, losses, choices, laplace, *, window, noise_scale, update_draws=None):
    """docs/formulas/private_adversarial.md#conversion, Algorithm 1: (actions [T], fed [J]).

    choices[j - 1] goes to the j-th `act` (ceil(T / window) of them), laplace[j - 1] (standard, J = floor(T / window))
    into the j-th fed loss, update_draws[j - 1] to the j-th `update`. noise_scale is 1 / (window epsilon), 0 for none.
    A partial last batch acts and plays but never updates.
    """
    horizon = len(losses)
    actions, fed, arm, total = [], [], None, 0.0
    for t in range(1, horizon + 1):
        j = (t - 1) // window + 1
        if t == (j - 1) * window + 1:
            arm, total = base.act(j, choices[j - 1]), 0.0
        actions.append(arm)
        total += losses[t - 1][arm]
        if t == j * window:
            fed.append(total / window + (noise_scale * laplace[j - 1] if noise_scale > 0 else 0.0))
            base.update(fed[-1], None if update_draws is None else update_draws[j - 1])
    return np.array(actions), np.array(fed)


def bandit_to_experts(base, advice, losses, choices, action_uniforms, laplace, *, window, noise_scale):
    """docs/formulas/private_adversarial.md#experts-as-arms, Algorithm 5 inside Algorithm 1: base over N meta-arms:
    (experts [ceil(T / window)], actions [T], fed [J]).

    Each play samples its action from the chosen expert's advice with action_uniforms[t - 1].
    """
    experts, actions, fed, total = [], [], [], 0.0
    for t in range(1, len(losses) + 1):
        j = (t - 1) // window + 1
        if t == (j - 1) * window + 1:
            experts.append(base.act(j, choices[j - 1]))
            total = 0.0
        actions.append(sample(advice[t - 1][experts[-1]], action_uniforms[t - 1]))
        total += losses[t - 1][actions[-1]]
        if t == j * window:
            fed.append(total / window + (noise_scale * laplace[j - 1] if noise_scale > 0 else 0.0))
            base.update(fed[-1])
    return np.array(experts), np.array(actions), np.array(fed)


def exp4(advice, losses, uniforms, *, learning_rate, mixing=0.0, laplace=None, noise_scale=0.0):
    """docs/formulas/private_adversarial.md#ldp-exp4, Algorithm 6 with any noise scale (0: plain EXP4): actions [T]."""
    horizon, num_experts, num_arms = advice.shape
    log_weights = np.zeros(num_experts)
    actions = []
    for t in range(1, horizon + 1):
        q = (1 - mixing) * (softmax(log_weights) @ advice[t - 1]) + mixing / num_arms
        arm = sample(q, uniforms[t - 1])
        actions.append(arm)
        x = losses[t - 1][arm]
        if noise_scale > 0:
            x += noise_scale * laplace[t - 1]
        log_weights -= learning_rate * advice[t - 1][:, arm] * x / q[arm]
    return np.array(actions)


def local_exp4(advice, losses, uniforms, laplace, *, epsilon, learning_rate=None, mixing=None):
    """docs/formulas/private_adversarial.md#ldp-exp4, Algorithm 6:
    one Lap(1 / epsilon) a play, Theorem 4.4's tuning unless given: actions [T].
    """
    horizon, num_experts, num_arms = advice.shape
    if learning_rate is None or mixing is None:
        tuned = local_exp4_tuning(num_arms, num_experts, horizon, epsilon)
        learning_rate = tuned[0] if learning_rate is None else learning_rate
        mixing = tuned[1] if mixing is None else mixing
    scale = 0.0 if math.isinf(epsilon) else 1 / epsilon
    return exp4(
        advice, losses, uniforms, learning_rate=learning_rate, mixing=mixing, laplace=laplace, noise_scale=scale
    )


def batched_exp4(advice, losses, uniforms, laplace, *, window, learning_rate, mixing, noise_scale):
    """docs/formulas/private_adversarial.md#batched-exp4, Algorithm 2:
    P frozen in a batch, an action drawn every play: actions [T].

    laplace [J, N] standard draws; a partial last batch never updates.
    """
    horizon, num_experts, num_arms = advice.shape
    log_weights = np.zeros(num_experts)
    accumulated = np.zeros(num_experts)
    actions = []
    for t in range(1, horizon + 1):
        q = (1 - mixing) * (softmax(log_weights) @ advice[t - 1]) + mixing / num_arms
        arm = sample(q, uniforms[t - 1])
        actions.append(arm)
        accumulated += advice[t - 1][:, arm] * losses[t - 1][arm] / q[arm]
        if t % window == 0:
            noise = noise_scale * np.asarray(laplace[t // window - 1]) if noise_scale > 0 else 0.0
            log_weights -= learning_rate * (accumulated / window + noise)
            accumulated = np.zeros(num_experts)
    return np.array(actions)
