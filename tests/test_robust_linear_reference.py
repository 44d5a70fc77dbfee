"""Robust linear bandits against their literal transcriptions: the same draws in, the same paths out, in float64.

Rewards, contamination and noise are made here from the simulator's addressed draws. Windows are cut at checkpoints on the way,
which must change nothing.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import robust_linear as literal
from reference import robust_linear_rivals as rivals

import jaxbandits as jb
from jaxbandits import algorithms
from jaxbandits.estimators import spectral_filter
from jaxbandits.random import Draws, to_laplace, to_uniform

ACTIONS = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.6, 0.2], [0.1, 0.5, -0.7], [-0.5, 0.5, 0.5]])
THETA = np.array([0.7, 0.1, -0.3])
K = len(ACTIONS)

# ---------------------------------------------------------------- the simulator's draws


@functools.partial(jax.jit, static_argnums=(0, 2, 3))
def _draw(path, seed, kind, shape, t):
    draws = Draws(seed, path, jnp.float64)
    if kind.startswith("positions"):  # from the first word at each position
        convert = to_laplace if kind.endswith("laplace") else to_uniform
        return convert(draws.at(t[:, None], jnp.arange(*shape, dtype=jnp.int32)), jnp.float64)
    return getattr(draws, kind)(t, shape)


@functools.lru_cache(maxsize=200)
def table(seed, path, kind, horizon, shape=()):
    """Draws of plays 0 .. horizon + 1 under a path, float64 [horizon + 2, *shape]."""
    with jax.enable_x64(True):
        return np.asarray(_draw(path, jnp.uint32(seed), kind, shape, jnp.arange(horizon + 2, dtype=jnp.int32)))


class World:
    """What one seed meets: the rewards of `linear_arms`, `huber` on rewards or reports, and private noise."""

    def __init__(self, seed, horizon, *, noise="gaussian", share=0.0, value=10.0, kind="fixed", on="report"):
        self.draws = lambda path, what, shape=(): table(seed, path, what, horizon, shape)
        self.noise, self.share, self.value, self.kind, self.on = noise, share, value, kind, on
        self.means = ACTIONS @ THETA

    def corrupted(self, path, x, arm, t):
        """Section 8, one draw a reward or report, at play t."""
        if not self.draws(f"{path}/hit", "uniform")[t] < self.share:
            return x
        if self.kind == "target":
            return -abs(self.value) if arm == np.argmax(self.means) else abs(self.value)
        if self.kind == "random_sign":
            return -self.value if self.draws(f"{path}/value", "uniform")[t] < 0.5 else self.value
        return {"fixed": self.value, "sign_flip": -self.value * x}[self.kind]

    def reward(self, t, arm):
        if self.noise == "rademacher":
            x = 1.0 if 2 * self.draws("environment/reward", "uniform")[t] < 1 + self.means[arm] else -1.0
        else:
            x = self.means[arm] + self.draws("environment/reward", "normal")[t]
        return self.corrupted("contamination", x, arm, t) if self.on == "reward" else x

    def attack(self, report, place):
        return self.corrupted("attack", report, place.arm, place.last) if self.on == "report" else report

    def adversaries(self):
        """For `simulate`."""
        hand = jb.adversaries.huber(corruption=self.share, value=self.value, kind=self.kind)
        return {"reward_adversary" if self.on == "reward" else "message_adversary": hand}

    def environment(self):
        return jb.environments.linear_arms(actions=ACTIONS, theta=THETA, noise=self.noise)


# ---------------------------------------------------------------- the filter


def contaminated(seed):
    """Reports sorted by arm, directions of any rank, a bound near what clean reports have."""
    rng = np.random.default_rng(seed)
    n, k, d = ((211, 5, 3), (40, 7, 1), (300, 6, 4))[seed % 3]  # few shapes: each is compiled
    u = rng.normal(size=(k, d))
    if seed % 5 == 0:
        u[:, -1] = 0
    arms = np.sort(rng.integers(k, size=n))
    reports = rng.normal(size=n) + u[arms] @ rng.normal(size=d)
    share, value = rng.choice([0.02, 0.1, 0.2]), rng.choice([8.0, 30.0, 1e6, -1e3, math.inf, math.nan])
    reports[rng.random(n) < share] = value
    square = np.linalg.eigvalsh(u.T @ (np.bincount(arms, minlength=k)[:, None] * u) / n)[-1]
    return rng.random(n + 1), reports, arms, u, rng.choice([0.2, 0.5, 2.0]) * square


@pytest.mark.parametrize("seed", range(40))
def test_the_filter_removes_the_same_reports(seed):
    uniforms, reports, arms, u, bound = contaminated(seed)
    finite = np.isfinite(reports)
    x = u[arms] * np.where(finite, np.clip(reports, -1e6, 1e6), 0.0)[:, None]
    for most in (None,) if seed % 4 else (None, 3):
        want = literal.spectral_filter(lambda s: uniforms[s], x[finite], bound, max_removals=most)
        with jax.enable_x64(True):
            got = spectral_filter(uniforms, reports, arms, u, bound, max_removals=most)
        assert int(got.num_removed) == want.num_removed and int(got.num_dropped) == (~finite).sum()
        np.testing.assert_array_equal(np.asarray(got.keep)[finite], want.keep)
        np.testing.assert_allclose(got.mean, want.mean, rtol=1e-8, atol=1e-9)
        seen = np.asarray(got.eigenvalues)[: want.num_removed + 1]
        np.testing.assert_allclose(seen, want.eigenvalues[: len(seen)], rtol=1e-5, atol=1e-7)
        assert bool(got.exhausted) == want.capped


# ---------------------------------------------------------------- comparators


def compared(made, run_literal, world, seed, *, noisy=True, dtype="float64"):
    """The fast path of a lane against the literal run; returns both."""
    if not noisy:
        made = made._replace(params=made.params._replace(mechanism_scale=0.0))
    run = jb.simulate(
        made, world.environment(), seed=seed, history=True, checkpoints=9, dtype=dtype, **world.adversaries()
    )
    want = run_literal(0.0 if not noisy else 1.0)
    np.testing.assert_array_equal(run.history.action, want.actions)
    np.testing.assert_array_equal(run.pulls, np.bincount(want.actions, minlength=K))
    assert int(run.diagnostics["active_arms"]) == len(want.batches[-1].active if want.batches else range(K))
    return run, want


def phased(world, horizon, **settings):
    made = algorithms.phased_elimination(actions=ACTIONS, horizon=horizon, **settings)
    laplace = lambda label, place: world.draws("alg/encode/noise", "laplace")[place.last]

    def run(multiplier):
        return rivals.phased_elimination(
            ACTIONS, world.reward, horizon=horizon, laplace=laplace, attack=world.attack, mechanism_scale=multiplier,
            **settings,
        )  # fmt: skip

    return made, run


def bogunovic(world, horizon, *, corruption_budget=None, weight_floor=None, **settings):
    made = algorithms.bogunovic_elimination(
        actions=ACTIONS, horizon=horizon, corruption_budget=corruption_budget, weight_floor=weight_floor, **settings
    )
    dim = ACTIONS.shape[1]
    first = 4 * dim * (math.log(math.log(dim)) + 18)
    last = next(h for h in range(40) if first * (2 ** (h + 1) - 1) >= horizon)  # the last batch that can begin

    def run(multiplier):
        schedule = functools.partial(rivals.unknown_corruption, dim=dim, horizon=horizon, last=last)
        return rivals.bogunovic_elimination(
            ACTIONS, world.reward, horizon=horizon, attack=world.attack, corruption=corruption_budget,
            schedule=schedule if corruption_budget is None else None,
            weight_floor=1 / first if weight_floor is None else weight_floor, **settings,
        )  # fmt: skip

    return made, run


def central(
    world, horizon, *, mechanism, num_batches=None, failure_prob=0.05, sampling_scale=None, delta=None, **settings
):
    given = {"mechanism": mechanism, "failure_prob": failure_prob, "sampling_scale": sampling_scale, **settings}
    given |= {"num_batches": num_batches} if mechanism == "laplace" else {"delta": delta}
    made = algorithms.private_elimination(actions=ACTIONS, horizon=horizon, **given)
    if mechanism == "laplace":
        more = {"size_of": lambda phase: horizon ** ((phase + 1) / num_batches), "last": num_batches - 1}
        count, scale = num_batches, 0.5
    else:
        more = {"size_of": lambda phase: 2.0 ** (phase + 1), "ending": "truncate", "delta": delta or 1e-3}
        count, scale = next(h for h in range(40) if 2 ** (h + 1) - 2 >= horizon), 1.0

    def run(multiplier):
        return rivals.private_elimination(
            ACTIONS, world.reward, horizon=horizon, mechanism=mechanism, attack=world.attack,
            log=math.log(2 * K * count / failure_prob), sampling_scale=scale if sampling_scale is None else sampling_scale,
            laplace=lambda label, place: world.draws("alg/close/sums", "laplace", (K,))[place.end, place.arm],
            normal=lambda label, place: world.draws("alg/close/means", "normal", (K,))[place.end, place.arm],
            mechanism_scale=multiplier, **more, **settings,
        )  # fmt: skip

    return made, run


def located(name, **options):
    """median_elimination and trimmed_elimination: `options` are (fast, literal) pairs of arguments."""

    def pair(world, horizon, *, num_batches, **settings):
        fast = {key: values[0] for key, values in options.items()}
        made = getattr(algorithms, name)(actions=ACTIONS, horizon=horizon, num_batches=num_batches, **fast, **settings)
        laplace = lambda place: world.draws("alg/encode/noise", "laplace")[place.last]

        def run(multiplier):
            setup = literal.Setup(ACTIONS, horizon, num_batches, mechanism_scale=multiplier, **settings)
            slow = dict(values[1] for values in options.values())
            return getattr(rivals, name)(setup, world.reward, laplace=laplace, attack=world.attack, **slow)

        return made, run

    return pair


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
    "coins": {"noise": "rademacher", "share": 0.1, "value": "nan", "on": "reward"},
}
BATCHES = {"num_batches": 3}
RIVALS = {
    "phased": (phased, 2500, [{}, {"epsilon": 2.0, "failure_prob": 0.5}, {"noise_scale": 0.3, "design_slack": 0.1}]),
    "bogunovic": (bogunovic, 3000, [
        {"corruption_budget": 0.0}, {"corruption_budget": 3.0, "weight_floor": 0.2}, {}, {"noise_scale": 0.3, "failure_prob": 0.4}]),
    "laplace": (functools.partial(central, mechanism="laplace", **BATCHES), 2000, [
        {"epsilon": math.inf}, {"epsilon": 1.0, "privacy_scale": 0.1}, {"epsilon": 4.0, "privacy_scale": 0.3, "sampling_scale": 0.2}]),
    "gaussian": (functools.partial(central, mechanism="gaussian"), 2000, [
        {"epsilon": math.inf}, {"epsilon": 1.0, "delta": 0.01, "sampling_scale": 0.1}, {"epsilon": 4.0, "privacy_scale": 0.3}]),
    "buckets": (located("median_elimination"), 2000, [
        BATCHES, {"epsilon": 2.0, "corruption_bound": 0.1, "sampling_scale": 0.2, **BATCHES},
        {"corruption_bound": 0.05, "corruption_scale": 0.1, **BATCHES}]),
    "raw median": (located("median_elimination", points=("reports", ("raw", True))), 2000, [BATCHES]),
    "trimmed": (located("trimmed_elimination"), 2000, [
        BATCHES, {"epsilon": 2.0, "corruption_bound": 0.1, "sampling_scale": 0.2, **BATCHES},
        {"corruption_bound": 0.05, "corruption_scale": 0.1, "bias_scale": 0.5, **BATCHES}]),
    "median": (located("trimmed_elimination", estimator=("median", ("estimator", "median"))), 2000, [
        BATCHES, {"corruption_bound": 0.1, "sampling_scale": 0.3, **BATCHES}]),
}  # fmt: skip


def number(settings):
    """The literal's value of huber's strings."""
    return {**settings, "value": float(settings.get("value", 10.0))}


@pytest.mark.parametrize("name", RIVALS)
def test_paths_of_comparators_are_those_of_the_transcription(name):
    pair, horizon, all_settings = RIVALS[name]
    dropped = 0
    for i, settings in enumerate(all_settings):
        for j, meeting in enumerate(MEETINGS.values()):
            seed = 10 * i + j
            world = World(seed, horizon, **number(meeting))
            made, run = pair(world, horizon, **settings)
            _, want = compared(made, run, world, seed)
            dropped += K - len(want.batches[-1].active)
            if j == 0 and settings.get("epsilon", math.inf) < math.inf:
                compared(made, run, world, seed, noisy=False)
    assert dropped > 2 * len(all_settings)


@pytest.mark.parametrize(("name", "meeting"), [
    ("phased", "coins"), ("trimmed", "target"), ("buckets", "flip"), ("laplace", "sign, rewards"), ("gaussian", "coins"),
])  # fmt: skip
def test_paths_of_comparators_under_other_attacks(name, meeting):
    pair, horizon, all_settings = RIVALS[name]
    for i, settings in enumerate(all_settings):
        world = World(i, horizon, **number(OTHERS[meeting]))
        compared(*pair(world, horizon, **settings), world, i)
