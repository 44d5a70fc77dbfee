"""docs/formulas/ldp_contextual.md#doubling: Algorithm 7, Algorithm 1 restarted in epochs that double."""

from .online_ucb import extra_scale


def epoch_of(t):
    """0-based epoch of play t >= 1: epoch k has the plays 2^k .. 2^(k+1) - 1."""
    k = 0
    while 2 ** (k + 1) <= t:
        k += 1
    return k


def epoch_settings(k, failure_prob, min_eigenvalue, power):
    """T_k, beta_k and Delta of epoch k."""
    horizon = 2**k
    return horizon, failure_prob / ((k + 1) * (k + 2)), extra_scale(min_eigenvalue, horizon, power)


class Doubling:
    """fresh(k) is the server of epoch k, with choose and learn; extra(k) its Delta."""

    def __init__(self, fresh, extra):
        self.fresh, self.extra_of, self.t = fresh, extra, 1
        self.server, self.epoch = fresh(0), 0

    @property
    def extra(self):
        """Delta of the play that comes next."""
        return self.extra_of(epoch_of(self.t))

    def choose(self, decision_set):
        if epoch_of(self.t) != self.epoch:
            self.epoch = epoch_of(self.t)
            self.server = self.fresh(self.epoch)
        return self.server.choose(decision_set)

    @property
    def prediction(self):
        return self.server.prediction

    @property
    def gradient(self):
        return self.server.gradient

    def learn(self, x, y):
        self.server.learn(x, y)
        self.t += 1
