"""Corruption budgets, play by play: docs/formulas/robust_frontier.md#robust-frontier-budgets."""

import math


def clip(x, low, high):
    return max(low, min(high, x))


class Budgeted:
    """One run of the attack. `deliver` is given a play and says what the learner sees; `charges` is the account."""

    def __init__(
        self, means, total, kind="lower_best", strength="strong", schedule="early", size=1.0, low=0.0, high=1.0,
        margin=0.1, horizon=None,
    ):  # fmt: skip
        self.means, self.total, self.kind, self.strength, self.schedule = means, total, kind, strength, schedule
        self.size, self.low, self.high, self.margin, self.horizon = size, low, high, margin, horizon
        self.start, self.stop = 0, math.inf
        if schedule == "late":
            self.start = math.floor(horizon / 2)
        if schedule == "burst":
            self.start = math.floor(horizon / 4)
            self.stop = self.start + math.ceil(horizon / 16)
        arms = range(len(means))
        self.best = max(arms, key=lambda a: (means[a], -a))
        self.worst = min(arms, key=lambda a: (means[a], a))
        self.ranked = sorted(arms, key=lambda a: (means[a], a))
        self.charges, self.corrupted_regret = [], 0.0
        self.counts, self.sums = [0 for _ in arms], [0.0 for _ in arms]

    def mirror(self, arm):
        """The arm of mirrored rank."""
        return self.ranked[len(self.means) - 1 - self.ranked.index(arm)]

    def cap(self, t):
        spent = math.fsum(self.charges)
        cap = min(self.size, self.total - spent)
        if self.schedule == "uniform":
            cap = min(cap, self.total * t / self.horizon - spent)
        if not self.start < t <= self.stop:
            cap = 0.0
        cap = max(cap, 0.0)
        if self.kind == "empirical_best" and self.strength == "weak":
            n, lead = self.counts[self.best], self.lead()
            cap = cap if lead is not None and n > 0 and self.sums[self.best] / n > lead else 0.0
        return cap

    def lead(self):
        others = [self.sums[b] / self.counts[b] for b in range(len(self.means)) if b != self.best and self.counts[b]]
        return max(others) - self.margin if others else None

    def moved(self, arm, x, cap, fresh):
        """What the attack makes of x, a reward of the arm."""
        if self.kind == "swap":
            return x + clip(fresh - x, -cap, cap)
        if self.kind == "raise_worst":
            return max(x, min(self.high, x + cap)) if arm == self.worst else x
        return min(x, max(self.low, x - cap)) if arm == self.best else x

    def deliver(self, t, arm, x, fresh=None):
        cap = self.cap(t)
        if self.strength == "weak":
            change = [self.moved(a, m, cap, self.means[self.mirror(a)]) for a, m in enumerate(self.means)]
            self.corrupted_regret += change[self.best] - change[arm]
        elif self.kind == "empirical_best":
            lead, n = self.lead(), self.counts[self.best]
            cap = 0.0 if lead is None else clip((self.sums[self.best] + x) - (n + 1) * lead, 0.0, cap)
        new = self.moved(arm, x, cap, fresh) if math.isfinite(x) else x
        if self.strength == "weak":
            self.charges.append(cap)
        else:
            self.charges.append(abs(new - x) if math.isfinite(x) else 0.0)
        if math.isfinite(new):
            self.counts[arm] += 1
            self.sums[arm] += new
        return new
