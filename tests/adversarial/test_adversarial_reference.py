"""Adversarial algorithms against their literal transcriptions, on the same addressed draws.

Paths of float32 and float64 fork sooner or later (docs/formulas/private_adversarial.md#numerics), so paths are
compared over at most 150 updates, 12 for Tsallis-INF, and longer runs in distribution. Every comparison must notice
planted errors.
"""

import functools
import itertools
import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from against_reference import draw, fast_runs, forked
from dealt import dealt
from numpy_draws import NumpyDraws, to_laplace
from planting import errors, planted
from plays import silent, watched
from reference import adversarial

import jaxbandits as jb
from jaxbandits import algorithms, theory

T, K, N, SEEDS = 150, 3, 5, range(8)
RNG = np.random.default_rng(5)
LOSSES = 0.6 * RNG.random((T, K)) + [0.4, 0.0, 0.2]
ADVICE = RNG.dirichlet(np.ones(K), (T, N))


@functools.cache
def table(horizon):
    return jb.environments.loss_table(losses=LOSSES[:horizon])


@functools.cache
def experts():
    return jb.environments.rotating_experts(losses=table(T), advice=ADVICE)


class Pair(NamedTuple):
    """A fast algorithm and the same run of the reference."""

    algorithm: Any
    literal: Any  # (reference module, seed, whether noise is on) -> actions [T]
    environment: Any = None
    private: bool = False
    seeds: range = SEEDS
    forks: float = 0.0  # share of paths that may fork


def alone(make, horizon=T):
    """A base on the raw losses: conversion with window 1 and no noise, drawing at alg/act and alg/update."""

    def literal(ref, seed, noisy):
        base, plays = make(ref), np.arange(1, horizon + 1)
        return batches(ref, base, seed, LOSSES[:horizon], 1, 0.0, plays, "alg/act", "none", "alg/update")

    return literal


def batches(ref, base, seed, losses, window, scale, t, act, noise, update):
    """Algorithm 1 of the reference: a batch's arm drawn at its first play, its noise and update at its last."""
    first, last = t[::window], t[window - 1 :: window]
    if type(base).__name__ == "Ftpl":
        picks, updates = draw(seed, act, "laplace", first, (K,)), draw(seed, update, "uniform", last)
    else:
        picks, updates = draw(seed, act, "uniform", first), None
    laplace = draw(seed, noise, "laplace", last)
    return ref.private_batched(base, losses, picks, laplace, window=window, noise_scale=scale, update_draws=updates)[0]


def listed(make, window, horizon, act, noise, update, scale=0.0):
    """FTPL with the tries of its listing: [tries, K] draws a batch, at its last play."""

    def literal(ref, seed, noisy):
        base, plays = make(ref), np.arange(1, horizon + 1)
        last = plays[window - 1 :: window]
        position = np.arange(base.tries * K).reshape(base.tries, K)
        word = NumpyDraws(seed, update).at(last[:, None, None], position)
        return ref.private_batched(
            base, LOSSES[:horizon], draw(seed, act, "laplace", plays[::window], (K,)),
            draw(seed, noise, "laplace", last),
            window=window, noise_scale=noisy * scale, update_draws=to_laplace(word, np.float32).astype(np.float64),
        )[0]  # fmt: skip

    return literal


def converted(make, epsilon, window, horizon=T):
    """The private conversion; 1 / (window epsilon) is its noise."""

    def literal(ref, seed, noisy):
        scale, plays = noisy / (window * epsilon), np.arange(1, horizon + 1)
        losses = np.resize(LOSSES, (horizon, K))
        return batches(
            ref, make(ref), seed, losses, window, scale, plays, "alg/act/base", "alg/update", "alg/update/base"
        )

    return literal


def literal_exp3(mixing):
    def literal(ref, seed, noisy):
        uniforms = draw(seed, "alg/act", "uniform", np.arange(1, T + 1))
        return ref.exp3(LOSSES, uniforms, learning_rate=0.15, mixing=mixing)

    return literal


def literal_ldp_exp3(ref, seed, noisy):
    plays = np.arange(1, T + 1)
    rate, mixing = adversarial.exp3_general_tuning(K, T, 1 / 0.9)
    base = ref.Exp3(K, learning_rate=rate * 20, mixing=mixing)
    return batches(ref, base, seed, LOSSES, 1, noisy / 0.9, plays, "alg/act/base", "alg/encode", "none")


def literal_exp4(ref, seed, noisy):
    plays = np.arange(1, T + 1)
    uniforms, laplace = draw(seed, "alg/act", "uniform", plays), draw(seed, "alg/encode", "laplace", plays)
    return ref.exp4(ADVICE, LOSSES, uniforms, learning_rate=0.1, mixing=0.3, laplace=laplace, noise_scale=noisy / 0.8)


def literal_local_exp4(ref, seed, noisy):
    """With the tuning of Theorem 4.4, which is cautious: paths seldom depend on it."""
    plays = np.arange(1, T + 1)
    uniforms, laplace = draw(seed, "alg/act", "uniform", plays), draw(seed, "alg/encode", "laplace", plays)
    return ref.local_exp4(ADVICE, LOSSES, uniforms, laplace if noisy else 0 * laplace, epsilon=0.8)


def literal_plain_exp4(ref, seed, noisy):
    rate, mixing = adversarial.exp4_tuning(K, N, T)
    uniforms = draw(seed, "alg/act", "uniform", np.arange(1, T + 1))
    return ref.exp4(ADVICE, LOSSES, uniforms, learning_rate=4 * rate, mixing=mixing)


def batched(window, horizon=T):
    """Batched EXP4 with the noise of its formula at epsilon 6, delta 0.1: N draws a batch, at its last play."""

    def literal(ref, seed, noisy):
        plays = np.arange(1, horizon + 1)
        scale = noisy * adversarial.batched_exp4_noise_scale(K, N, 6.0, 0.1, 0.3, window)
        uniforms = draw(seed, "alg/act", "uniform", plays)
        laplace = draw(seed, "alg/update", "laplace", plays[window - 1 :: window], (N,))
        settings = {"window": window, "learning_rate": 0.4, "mixing": 0.3, "noise_scale": scale}
        return ref.batched_exp4(ADVICE[:horizon], LOSSES[:horizon], uniforms, laplace, **settings)

    return literal


def literal_experts(ref, seed, noisy):
    epsilon, window, plays = 0.25, 4, np.arange(1, T + 1)
    rate, mixing = adversarial.exp3_private_tuning(N, T, epsilon)
    choices = draw(seed, "alg/act/base/base", "uniform", plays[::window])
    picks = draw(seed, "alg/act/action", "uniform", plays)
    laplace = draw(seed, "alg/update/base", "laplace", plays[window - 1 :: window])
    base = ref.Exp3(N, learning_rate=rate * 30, mixing=mixing)
    told = {"window": window, "noise_scale": noisy / (window * epsilon)}
    return ref.bandit_to_experts(base, ADVICE, LOSSES, choices, picks, laplace, **told)[1]


def private_exp3(ref):
    rate, mixing = adversarial.exp3_private_tuning(K, T, 0.15)
    return ref.Exp3(K, learning_rate=rate * 20, mixing=mixing)


def private_ftpl(ref):
    rate, tries = adversarial.ftpl_private_tuning(K, T, 0.15)
    return ref.Ftpl(K, learning_rate=rate * 20, tries=tries)


# the papers' learning rates hardly move in 150 plays: most cases take a larger one, and test the tunings apart
EXP3_RATE = adversarial.exp3_private_tuning(K, T, 0.15)[0] * 20
FTPL_RATE = adversarial.ftpl_private_tuning(K, T, 0.15)[0] * 20
LDP_RATE = adversarial.exp3_general_tuning(K, T, 1 / 0.9)[0] * 20
EXPERTS_RATE = adversarial.exp3_private_tuning(N, T, 0.25)[0] * 30
SIZES = {"num_arms": K, "horizon": T}
PAIRS = {
    "exp3": Pair(algorithms.exp3(**SIZES, learning_rate=0.15, mixing=0.0), literal_exp3(0.0)),
    "exp3 mixed": Pair(algorithms.exp3(**SIZES, learning_rate=0.15, mixing=0.2), literal_exp3(0.2)),
    "exp3_ix": Pair(
        algorithms.exp3_ix(**SIZES), alone(lambda ref: ref.Exp3IX(K, **dict(zip(
            ("learning_rate", "mixing"), adversarial.exp3_ix_tuning(K, T), strict=True)))),
    ),
    "tsallis_inf": Pair(
        algorithms.tsallis_inf(num_arms=K, horizon=12), alone(lambda ref: ref.TsallisInf(K), 12), table(12),
        seeds=range(40),
    ),
    "htinf": Pair(algorithms.htinf(**SIZES, tail_scale=1.0), alone(lambda ref: ref.Htinf(K, tail_scale=1.0))),
    "htinf 1.5": Pair(algorithms.htinf(**SIZES, tail_index=1.5), alone(lambda ref: ref.Htinf(K, tail_index=1.5))),
    "ftpl": Pair(
        algorithms.ftpl(num_arms=K, horizon=40, learning_rate=0.2, tries=11),
        alone(lambda ref: ref.Ftpl(K, learning_rate=0.2, tries=11), 40), table(40), forks=0.13,
    ),
    **{
        f"ftpl literal {on_fail}": Pair(
            algorithms.ftpl(num_arms=K, horizon=40, learning_rate=0.2, tries=11, on_fail=on_fail, resampling="literal"),
            listed(partial(lambda ref, on_fail: ref.Ftpl(K, learning_rate=0.2, tries=11, on_fail=on_fail),
                           on_fail=on_fail),
                   1, 40, "alg/act", "none", "alg/update/tries"),
            table(40),
        )
        for on_fail in ("cap", "zero")
    },
    "private ftpl literal": Pair(
        algorithms.private_batched(
            **SIZES, epsilon=0.15, base=partial(algorithms.ftpl, learning_rate=FTPL_RATE, resampling="literal")),
        listed(private_ftpl, 7, T, "alg/act/base", "alg/update", "alg/update/base/tries", 1 / (7 * 0.15)), private=True,
    ),
    "private htinf": Pair(
        algorithms.private_batched(**SIZES, epsilon=0.07, window=7),
        converted(lambda ref: ref.Htinf(K, tail_scale=ref.htinf_tail_scale(1 / 0.49)), 0.07, 7), private=True,
    ),
    "private exp3": Pair(
        algorithms.private_batched(**SIZES, epsilon=0.15, base=partial(algorithms.exp3, learning_rate=EXP3_RATE)),
        converted(private_exp3, 0.15, 7), private=True,
    ),
    "private ftpl": Pair(
        algorithms.private_batched(**SIZES, epsilon=0.15, base=partial(algorithms.ftpl, learning_rate=FTPL_RATE)),
        converted(private_ftpl, 0.15, 7), private=True, forks=0.13,
    ),
    "private exp3, batches of several windows": Pair(
        algorithms.private_batched(
            num_arms=K, horizon=4000, epsilon=0.01, window=300,
            base=partial(algorithms.exp3, learning_rate=0.4, mixing=0.1),
        ),
        converted(lambda ref: ref.Exp3(K, learning_rate=0.4, mixing=0.1), 0.01, 300, 4000),
        jb.environments.loss_table(losses=np.resize(LOSSES, (4000, K))), private=True,
    ),
    "ldp_exp3": Pair(algorithms.ldp_exp3(**SIZES, epsilon=0.9, learning_rate=LDP_RATE), literal_ldp_exp3, private=True),
    "local_exp4": Pair(
        algorithms.local_exp4(**SIZES, num_experts=N, epsilon=0.8, learning_rate=0.1, mixing=0.3), literal_exp4,
        experts(), private=True,
    ),
    "local_exp4 tuned": Pair(
        algorithms.local_exp4(**SIZES, num_experts=N, epsilon=0.8), literal_local_exp4, experts(), private=True
    ),
    "exp4": Pair(
        algorithms.exp4(**SIZES, num_experts=N, learning_rate=4 * adversarial.exp4_tuning(K, N, T)[0]),
        literal_plain_exp4, experts(),
    ),
    **{
        f"batched_exp4 {window}": Pair(
            algorithms.batched_exp4(
                **SIZES, num_experts=N, epsilon=6.0, delta=0.1, window=window, learning_rate=0.4, mixing=0.3),
            batched(window), experts(), private=True,
        )
        for window in (1, 7, 20)
    },
    "experts": Pair(
        algorithms.bandit_to_experts(
            **SIZES, num_experts=N, base=partial(
                algorithms.private_batched, epsilon=0.25, base=partial(algorithms.exp3, learning_rate=EXPERTS_RATE)),
        ),
        literal_experts, experts(), private=True,
    ),
}  # fmt: skip


def algorithm_of(name, noisy):
    pair = PAIRS[name]
    return silent(pair.algorithm) if pair.private and not noisy else pair.algorithm


@functools.cache
def fast(name, noisy):
    """Actions [S, T]."""
    pair, algorithm = PAIRS[name], algorithm_of(name, noisy)
    runs = [watched(algorithm, pair.environment or table(T), seed, "float32") for seed in pair.seeds]
    return np.array([run.history.action for run in runs])


def disagreement(name, ref, noisy):
    pair = PAIRS[name]
    return forked(fast(name, noisy), [pair.literal(ref, seed, noisy) for seed in pair.seeds])


# one of each kind is compared in every run
DEALT = {
    "exp3", "htinf 1.5", "ftpl", "ftpl literal zero", "private exp3", "private ftpl", "local_exp4 tuned",
    "batched_exp4 1", "batched_exp4 20",
}  # fmt: skip


def in_turn(rows):
    """Rows that begin with a name: those of `DEALT` run in one of six commits."""
    return dealt(rows, 6, always=[row for row in rows if row[0] not in DEALT])


def dealt_too(cases):
    """Planted errors: those in oracles of `DEALT` run when these do."""
    turn = pytest.mark.dealt(6)
    return [pytest.param(*c.values, id=c.id, marks=[*c.marks, turn]) if c.values[0] in DEALT else c for c in cases]


CASES = [(name, noisy) for name, pair in PAIRS.items() for noisy in ((False, True) if pair.private else (False,))]


@pytest.mark.parametrize(("name", "noisy"), in_turn(CASES))
def test_paths_are_those_of_the_reference(name, noisy):
    assert disagreement(name, adversarial, noisy) <= PAIRS[name].forks
    assert len(np.unique(fast(name, noisy))) == K  # a path that says something


RECORDED = ["exp3 mixed", "batched_exp4 7", "private exp3, batches of several windows"]


@pytest.mark.parametrize("name", dealt(PAIRS, 16, always=RECORDED))
def test_regrets_are_those_of_the_paths(name):
    """A history is played apart from the run that counts regret: both must be one path."""
    pair = PAIRS[name]
    _, regrets = fast_runs(pair.algorithm, pair.environment or table(T), pair.seeds[:4])
    for path, regret in zip(fast(name, pair.private), regrets, strict=False):
        losses = np.resize(LOSSES, (len(path), K))
        advised = pair.environment is experts()
        expected = adversarial.expert_regret(losses, ADVICE, path) if advised else adversarial.regret(losses, path)
        assert regret == pytest.approx(expected, rel=1e-5, abs=1e-4)


STEP = {  # the same update with its step size doubled
    "exp3": ("self.learning_rate * x / self.p", "2 * self.learning_rate * x / self.p"),
    "exp3_ix": ("softmax(-self.learning_rate", "softmax(-2 * self.learning_rate"),
    "htinf": ("return self.tail_scale * self.t", "return 0.5 * self.tail_scale * self.t"),
    "ftpl": ("+= x * count", "+= 2 * x * count"),
    "exp4": ("-= learning_rate * advice[t - 1][:, arm] * x", "-= 2 * learning_rate * advice[t - 1][:, arm] * x"),
    "batched_exp4": ("-= learning_rate * (accumulated", "-= 2 * learning_rate * (accumulated"),
}
CLOCK = {  # the same with an index of time one off
    "exp3": ("base.update(losses[t - 1][actions[-1]])", "base.update(losses[t - 2][actions[-1]])"),
    "htinf": ("self.t ** (1 / self.tail_index)", "(self.t + 1) ** (1 / self.tail_index)"),
    "batched": ("total += losses[t - 1][arm]", "total += losses[t - 2][arm]"),
    "tries": ("count = m + 1", "count = m + 2"),
    "noise": ("noise_scale * laplace[j - 1]", "noise_scale * laplace[j - 2]"),
    "exp4": ("x = losses[t - 1][arm]", "x = losses[t - 2][arm]"),
    "batched_exp4": ("losses[t - 1][arm] / q[arm]", "losses[t - 2][arm] / q[arm]"),
    "batched_exp4 noise": ("laplace[t // window - 1]", "laplace[t // window - 2]"),
    "batched_exp4 frozen": ("if t % window == 0:", "if t % window == 1:"),
}
PLANTED = [
    ("exp3", STEP["exp3"]), ("exp3", CLOCK["exp3"]), ("exp3 mixed", STEP["exp3"]), ("exp3 mixed", CLOCK["exp3"]),
    ("exp3_ix", STEP["exp3_ix"]), ("exp3_ix", CLOCK["batched"]),
    ("tsallis_inf", STEP["htinf"]), ("tsallis_inf", CLOCK["htinf"]),
    ("htinf", STEP["htinf"]), ("htinf", CLOCK["htinf"]), ("htinf 1.5", STEP["htinf"]), ("htinf 1.5", CLOCK["htinf"]),
    ("ftpl", STEP["ftpl"]), ("ftpl", CLOCK["batched"]),
    ("ftpl literal cap", STEP["ftpl"]), ("ftpl literal cap", CLOCK["batched"]), ("ftpl literal cap", CLOCK["tries"]),
    ("ftpl literal zero", STEP["ftpl"]), ("private ftpl literal", STEP["ftpl"]),
    ("private ftpl literal", CLOCK["tries"]),
    ("private htinf", STEP["htinf"]), ("private htinf", CLOCK["htinf"]),
    ("private exp3", STEP["exp3"]), ("private exp3", CLOCK["noise"]),
    ("private ftpl", STEP["ftpl"]), ("private ftpl", CLOCK["noise"]),
    ("private exp3, batches of several windows", STEP["exp3"]),
    ("private exp3, batches of several windows", CLOCK["noise"]),
    ("ldp_exp3", STEP["exp3"]), ("ldp_exp3", CLOCK["batched"]),
    ("local_exp4", STEP["exp4"]), ("local_exp4", CLOCK["exp4"]),
    ("exp4", STEP["exp4"]), ("exp4", CLOCK["exp4"]),
    ("batched_exp4 1", STEP["batched_exp4"]), ("batched_exp4 1", CLOCK["batched_exp4 noise"]),
    ("batched_exp4 7", STEP["batched_exp4"]), ("batched_exp4 7", CLOCK["batched_exp4"]),
    ("batched_exp4 7", CLOCK["batched_exp4 noise"]), ("batched_exp4 7", CLOCK["batched_exp4 frozen"]),
    ("batched_exp4 20", STEP["batched_exp4"]), ("batched_exp4 20", CLOCK["batched_exp4"]),
    ("experts", STEP["exp3"]), ("experts", CLOCK["noise"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "error"), dealt_too(errors([(name, *change) for name, change in PLANTED], adversarial))
)
def test_a_planted_error_forks_the_paths(name, error):
    assert disagreement(name, planted(*error), PAIRS[name].private) > PAIRS[name].forks + 0.1


# ---------------------------------------------------------------- tunings


def both(fast, literal):
    """Values of both, or None where they refuse."""

    def value(f):
        try:
            return f()
        except ValueError:
            return None

    return value(fast), value(literal)


GRID = list(itertools.product((2, 3, 10, 50), (30, 100, 1000, 100_000), (0.003, 0.05, 0.1, 1 / 3, 0.7, 1.0)))


@pytest.mark.parametrize(("fast", "literal", "names"), [
    (theory.exp3_tuning, adversarial.exp3_private_tuning, ("learning_rate", "mixing")),
    (theory.ftpl_tuning, adversarial.ftpl_private_tuning, ("learning_rate", "tries")),
])  # fmt: skip
def test_tunings_of_the_corollaries(fast, literal, names):
    agreed = 0
    for k, horizon, epsilon in GRID:
        if epsilon * horizon < 1 or (literal is adversarial.ftpl_private_tuning and k * epsilon * horizon <= 1):
            continue
        made, expected = both(lambda: fast(k, horizon, epsilon), lambda: literal(k, horizon, epsilon))  # noqa: B023
        assert (made is None) == (expected is None), (k, horizon, epsilon)
        if made is not None:
            root = math.sqrt(k * epsilon * horizon)
            if "tries" in names and abs(root - round(root)) < 1e-9:  # a whole root, whichever way it was rounded
                expected = (expected[0], round(root))
            assert [made[name] for name in names] == pytest.approx(expected, rel=1e-12)
            assert made["window"] == adversarial.window(epsilon)
            assert made["noise_scale"] == pytest.approx(1 / (made["window"] * epsilon))
            agreed += 1
    assert agreed > 30


@pytest.mark.parametrize(("fast", "literal", "names"), [
    (theory.exp3_noisy_tuning, adversarial.exp3_general_tuning, ("learning_rate", "mixing")),
    (theory.ftpl_noisy_tuning, adversarial.ftpl_general_tuning, ("learning_rate", "tries")),
])  # fmt: skip
def test_tunings_of_the_general_forms(fast, literal, names):
    agreed = 0
    for k, rounds, scale in itertools.product((2, 3, 10, 50), (30, 100, 1000, 100_000), (0.0, 0.2, 0.9, 1.0, 3.0)):
        made, expected = both(lambda: fast(k, rounds, scale), lambda: literal(k, rounds, scale))  # noqa: B023
        assert (made is None) == (expected is None), (k, rounds, scale)
        if made is not None:
            assert [made[name] for name in names] == pytest.approx(expected, rel=1e-12)
            agreed += 1
    assert agreed > 60


def test_tunings_over_experts():
    agreed = 0
    for k, horizon, epsilon in GRID:
        for n in (2, 8):
            made, expected = both(
                lambda: theory.local_exp4_tuning(k, n, horizon, epsilon),  # noqa: B023
                lambda: adversarial.local_exp4_tuning(k, n, horizon, epsilon),  # noqa: B023
            )
            assert (made is None) == (expected is None), (k, n, horizon, epsilon)
            if made is not None:
                assert [made["learning_rate"], made["mixing"]] == pytest.approx(expected, rel=1e-12)
                agreed += 1
            for rule in ("repaired", "printed"):
                made, expected = both(
                    lambda: theory.batched_exp4_tuning(k, n, horizon, epsilon, 0.1, mixing_rule=rule),  # noqa: B023
                    lambda: adversarial.batched_exp4_tuning(k, n, horizon, epsilon, 0.1, mixing_rule=rule),  # noqa: B023
                )
                assert (made is None) == (expected is None), (k, n, horizon, epsilon, rule)
                if made is not None:
                    names = ("learning_rate", "mixing", "window", "noise_scale")
                    assert [made[name] for name in names] == pytest.approx(expected, rel=1e-12)
                    agreed += 1
    assert agreed > 150


@pytest.mark.parametrize("window", [1, 4])
@pytest.mark.parametrize("epsilon", [0.05, 0.2, 2.0])
def test_the_base_gets_the_tail_scale_of_the_reference(window, epsilon):
    made = algorithms.private_batched(num_arms=3, horizon=100, epsilon=epsilon, window=window)
    expected = adversarial.htinf_tail_scale(1 / (window * epsilon))
    assert made.params.base.tail_scale == pytest.approx(expected, rel=1e-12)
