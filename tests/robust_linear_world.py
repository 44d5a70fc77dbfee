"""What comparisons of linear algorithms with their transcriptions share: rewards, contamination and noise from the
simulator's addressed draws, and the comparison of two paths. Windows are cut at checkpoints on the way, which must
change nothing.
"""

import functools
import math
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
from numpy_draws import NumpyDraws, to_uniform
from plays import Lane, played

import jaxbandits as jb
from jaxbandits.algorithms.linear import batches
from jaxbandits.algorithms.linear.robust_elimination import Shape, filter_rules

ACTIONS = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.6, 0.2], [0.1, 0.5, -0.7], [-0.5, 0.5, 0.5]])
THETA = np.array([0.7, 0.1, -0.3])
K = len(ACTIONS)

# ---------------------------------------------------------------- the simulator's draws


@functools.lru_cache(maxsize=200)
def table(seed, path, kind, horizon, shape=()):
    """Draws of plays 0 .. horizon + 1 under a path, float64 [horizon + 2, *shape]."""
    return getattr(NumpyDraws(seed, path), kind)(np.arange(horizon + 2), shape)


def at_play(seed, path, t, number):
    """Uniforms of one play at positions 0, 1, ..."""
    return to_uniform(NumpyDraws(seed, path).at(t, np.arange(number)))


class World:
    """What one seed meets: the rewards of `linear_arms`, `huber` on rewards or reports, and private noise."""

    def __init__(
        self, seed, horizon, *, noise="gaussian", share=0.0, value=10.0, kind="fixed", on="report", batch=1,
        actions=ACTIONS, theta=THETA,
    ):  # fmt: skip
        self.seed, self.horizon, self.model = seed, horizon, "M1"
        self.draws = lambda path, what, shape=(): table(seed, path, what, horizon, shape)
        self.noise, self.share, self.value, self.kind, self.on, self.batch = noise, share, value, kind, on, batch
        self.actions, self.theta, self.means = actions, theta, actions @ theta

    def answers_of(self, setup):
        """Before a run: M2's windows take as many whole arms as fit, and an attack draws at a window's first play."""
        self.model, growth = setup.model, setup.horizon ** (1 / setup.num_batches)
        self.offered = [min(setup.horizon, math.ceil(growth**i * (1 + 1e-4)) + 1) for i in range(setup.num_batches)]
        self.start = self.window = None

    def corrupted(self, path, x, arm, t, shape=()):
        """docs/formulas/robust_linear.md#adversaries: one draw a reward or report, at play t;
        one of K draws where a window has K reports.
        """
        drawn = lambda what: self.draws(f"{path}/{what}", "uniform", shape)[(t, arm) if shape else t]
        if not drawn("hit") < self.share:
            return x
        if self.kind in ("target", "subthreshold"):
            size = self.value * (1 if self.kind == "target" else math.sqrt(max(self.hidden, 0) / self.share))
            return -abs(size) if arm == np.argmax(self.means) else abs(size)
        if self.kind == "random_sign":
            return -self.value if drawn("value") < 0.5 else self.value
        return {"fixed": self.value, "burst": self.value, "sign_flip": -self.value * x}[self.kind]

    def reward(self, t, arm):
        if self.noise == "rademacher":
            x = 1.0 if 2 * self.draws("environment/reward", "uniform")[t] < 1 + self.means[arm] else -1.0
        else:
            x = self.means[arm] + self.draws("environment/reward", "normal")[t]
        return self.corrupted("contamination", x, arm, t) if self.on == "reward" else x

    def attack(self, report, place):
        if self.on != "report" or (self.kind == "burst" and place.batch != self.batch):
            return report
        self.hidden = place.hidden
        if self.model == "M1":
            return self.corrupted("attack", report, place.arm, place.last)
        if self.start != place.start:
            self.start = self.window = place.start
        if place.last - self.window > self.offered[place.batch]:
            self.window = place.first - 1
        return self.corrupted("attack", report, place.arm, self.window + 1, (K,))

    def parts(self):
        """Environment and adversaries of the fast run."""
        environment = jb.environments.linear_arms(actions=self.actions, theta=self.theta, noise=self.noise)
        hand = jb.adversaries.huber(corruption=self.share, value=self.value, kind=self.kind, batch=self.batch)
        return environment, *((hand, None) if self.on == "reward" else (None, hand))


def compared(lanes, wants, **options):
    """The fast paths of (algorithm, world, noisy) against literal runs; returns the fast runs."""
    made = []
    for algorithm, world, noisy in lanes:
        if not noisy:
            algorithm = algorithm._replace(params=algorithm.params._replace(mechanism_scale=0.0))
        made.append(Lane(world.seed, algorithm, *world.parts()))
    runs = played(made, **{"compiled": False} | options)
    for run, want, (_, world, _) in zip(runs, wants, lanes, strict=True):
        np.testing.assert_array_equal(run.history.action, want.actions)
        if run.pulls is not None:
            plays = np.cumsum(np.eye(K)[want.actions], axis=0)
            np.testing.assert_array_equal(run.pulls, plays[-1])
            np.testing.assert_allclose(run.regret, (plays @ (world.means.max() - world.means))[run.t - 1], atol=1e-9)
        assert int(run.diagnostics["active_arms"]) == len(want.batches[-1].active if want.batches else range(K))
    return runs


def plays_of_arms(weights, size, *, model="M1", weight_floor=0.1):
    """[K] plays of a batch of m = size along a design of these weights, as `batches` counts them."""
    own = SimpleNamespace(sizes=jnp.asarray(size)[None], weight_floor=weight_floor)
    params = SimpleNamespace(actions=weights[:, None], horizon=10**9, own=own)
    design, first = SimpleNamespace(weights=weights), SimpleNamespace(batch=0)
    wanted = filter_rules(Shape(model, largest=0, filtered=False, refit=False)).counts(params, first, design)
    return batches.whole_counts(params, wanted, design, jnp.int32(0))[0]


MEETINGS = {  # one program: numbers are data
    "nothing": {},
    "1e6": {"share": 0.05, "value": 1e6},
    "inf": {"share": 0.05, "value": "inf"},
    "nan": {"share": 0.1, "value": "nan"},
    "30": {"share": 0.1, "value": 30.0},
}
OTHERS = {
    "target": {"share": 0.1, "value": 15.0, "kind": "target"},
    "flip": {"share": 0.2, "value": 3.0, "kind": "sign_flip"},
    "sign, rewards": {"share": 0.1, "value": 40.0, "kind": "random_sign", "on": "reward"},
    "burst": {"share": 0.2, "value": -20.0, "kind": "burst", "batch": 2},
    "subthreshold": {"share": 0.1, "value": 0.9, "kind": "subthreshold"},
    "coins": {"noise": "rademacher", "share": 0.1, "value": "nan", "on": "reward"},
}


def number(settings):
    """The literal's value of huber's strings."""
    return {**settings, "value": float(settings.get("value", 10.0))}
