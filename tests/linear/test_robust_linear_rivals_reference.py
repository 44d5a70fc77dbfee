"""Comparators of robust linear bandits against literal transcriptions: same draws in, same paths out, in float64."""

import functools
import math

import numpy as np
import pytest
from dealt import dealt
from planting import errors, planted
from reference import robust_linear as literal
from reference import robust_linear_rivals as rivals
from robust_linear_world import ACTIONS, MEETINGS, OTHERS, K, World, compared, number

from jaxbandits import algorithms

# Gaussian rewards on purpose: epsilon is data here
pytestmark = pytest.mark.filterwarnings("ignore:.*its guarantee does not hold")


def phased(world, horizon, **settings):
    made = algorithms.phased_elimination(actions=ACTIONS, horizon=horizon, **settings)
    laplace = lambda label, place: world.draws("alg/encode/noise", "laplace")[place.last]

    def run(multiplier, ref=rivals):
        return ref.phased_elimination(
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

    def run(multiplier, ref=rivals):
        schedule = functools.partial(ref.unknown_corruption, dim=dim, horizon=horizon, last=last)
        return ref.bogunovic_elimination(
            ACTIONS, world.reward, horizon=horizon, attack=world.attack, corruption=corruption_budget,
            schedule=schedule if corruption_budget is None else None,
            weight_floor=1 / first if weight_floor is None else weight_floor, **settings,
        )  # fmt: skip

    return made, run


def central(
    world, horizon, *, mechanism, num_batches=None, failure_prob=0.05, sampling_scale=None, delta=None, **settings
):
    given = {"mechanism": mechanism, "failure_prob": failure_prob, "sampling_scale": sampling_scale, **settings}
    given |= {"num_batches": num_batches} if mechanism == "laplace" else {"delta": delta, "calibration": "paper"}
    made = algorithms.private_elimination(actions=ACTIONS, horizon=horizon, **given)
    if mechanism == "laplace":
        more = {"size_of": lambda phase: horizon ** ((phase + 1) / num_batches), "last": num_batches - 1}
        count, scale = num_batches, 0.5
    else:
        more = {"size_of": lambda phase: 2.0 ** (phase + 1), "ending": "truncate", "delta": delta or 1e-3}
        count, scale = next(h for h in range(40) if 2 ** (h + 1) - 2 >= horizon), 1.0

    def run(multiplier, ref=rivals):
        return ref.private_elimination(
            ACTIONS, world.reward, horizon=horizon, mechanism=mechanism, attack=world.attack,
            log=math.log(2 * K * count / failure_prob),
            sampling_scale=scale if sampling_scale is None else sampling_scale,
            laplace=lambda label, place: world.draws("alg/close/sums", "laplace", (K,))[place.end, place.arm],
            normal=lambda label, place: world.draws("alg/close/means", "normal", (K,))[place.end, place.arm],
            mechanism_scale=multiplier, **more, **settings,
        )  # fmt: skip

    return made, run


def concentrated(world, horizon, **settings):
    made = algorithms.adac_gope(actions=ACTIONS, horizon=horizon, **settings)
    normal = lambda label, place: world.draws("alg/close/sums", "normal", (K,))[place.end, place.arm]

    def run(multiplier, ref=rivals):
        return ref.adac_gope(
            ACTIONS, world.reward, horizon=horizon, attack=world.attack, normal=normal, mechanism_scale=multiplier,
            **settings,
        )  # fmt: skip

    return made, run


def located(name, **options):
    """median_elimination and trimmed_elimination: `options` are (fast, literal) pairs of arguments."""

    def pair(world, horizon, *, num_batches, **settings):
        fast = {key: values[0] for key, values in options.items()}
        made = getattr(algorithms, name)(actions=ACTIONS, horizon=horizon, num_batches=num_batches, **fast, **settings)
        laplace = lambda place: world.draws("alg/encode/noise", "laplace")[place.last]

        def run(multiplier, ref=rivals):
            setup = literal.Setup(ACTIONS, horizon, num_batches, mechanism_scale=multiplier, **settings)
            slow = dict(values[1] for values in options.values())
            return getattr(ref, name)(setup, world.reward, laplace=laplace, attack=world.attack, **slow)

        return made, run

    return pair


BATCHES = {"num_batches": 3}
RIVALS = {
    "phased": (phased, 1200, [{}, {"epsilon": 4.0, "failure_prob": 0.5, "noise_scale": 0.3, "design_slack": 0.1}]),
    "bogunovic": (bogunovic, 3000, [
        {"corruption_budget": 0.0}, {"corruption_budget": 3.0, "weight_floor": 0.2}, {},
        {"noise_scale": 0.3, "failure_prob": 0.4}]),
    "laplace": (functools.partial(central, mechanism="laplace", **BATCHES), 2000, [
        {"epsilon": math.inf}, {"epsilon": 1.0, "privacy_scale": 0.1},
        {"epsilon": 4.0, "privacy_scale": 0.3, "sampling_scale": 0.2}]),
    "gaussian": (functools.partial(central, mechanism="gaussian"), 500, [
        {"epsilon": math.inf}, {"epsilon": 1.0, "delta": 0.01, "sampling_scale": 0.1},
        {"epsilon": 4.0, "privacy_scale": 0.3}]),
    "concentrated": (concentrated, 2500, [
        {"rho": math.inf, "failure_prob": 0.3, "noise_scale": 0.3},
        {"rho": 1.0, "failure_prob": 0.9, "noise_scale": 0.2},
        {"rho": 4.0, "failure_prob": 0.5, "noise_scale": 0.3, "design_slack": 0.1}]),
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


@functools.cache
def met(name):
    """(settings, world, noisy) of a comparator's cases, and their literal runs."""
    _, horizon, all_settings = RIVALS[name]
    cases = [(settings, World(10 * i + j, horizon, **number(meeting)), True)
             for i, settings in enumerate(all_settings) for j, meeting in enumerate(MEETINGS.values())]  # fmt: skip
    cases += [(settings, World(10 * i, horizon, **number(MEETINGS["nothing"])), False)
              for i, settings in enumerate(all_settings) if settings.get("epsilon", math.inf) < math.inf]  # fmt: skip
    return cases, [literal_run(name, *case) for case in cases]


def literal_run(name, settings, world, noisy, *module):
    pair, horizon, _ = RIVALS[name]
    return pair(world, horizon, **settings)[1](float(noisy), *module)


def compare(name, cases, wants):
    """Fast runs against literal ones."""
    pair, horizon, _ = RIVALS[name]
    lanes = [(pair(world, horizon, **settings)[0], world, noisy) for settings, world, noisy in cases]
    compared(lanes, wants, compiled=name in ("phased", "bogunovic", "concentrated"))  # they have many windows


# Settings with the schedule of one program; those that are left out here have other schedules.
ONE_PROGRAM = {"phased": [0], "bogunovic": [0, 2, 3], "concentrated": [1]}
CASES = [(n, part) for n in RIVALS for part in ("one program", "others") if part != "others" or n in ONE_PROGRAM]
# "raw median" and "median" are other estimators of algorithms that are here
ALGORITHMS = ["phased", "bogunovic", "laplace", "gaussian", "concentrated", "buckets", "trimmed"]


@pytest.mark.parametrize(("name", "part"), dealt(CASES, 4, always=[(name, "one program") for name in ALGORITHMS]))
def test_paths_of_comparators_are_those_of_the_transcription(name, part):
    (cases, wants), all_settings = met(name), RIVALS[name][2]
    together = [all_settings[i] for i in ONE_PROGRAM.get(name, range(len(all_settings)))]
    kept = [i for i, case in enumerate(cases) if (case[0] in together) == (part == "one program")]
    compare(name, [cases[i] for i in kept], [wants[i] for i in kept])
    dropped = sum(K - len(want.batches[-1].active) for want, case in zip(wants, cases, strict=True) if case[-1])
    assert dropped > 2 * len(all_settings)


PLANTED = [
    ("phased", "2 * g * variance / e**2", "4 * g * variance / e**2"),
    ("phased", "arms * level * (level + 1)", "arms * (level + 1) * (level + 2)"),
    ("bogunovic", "gap / 2", "gap"),
    ("bogunovic", "size = 2**h * m_0", "size = 2 ** (h + 1) * m_0"),
    ("bogunovic", "2 * c / (m", "4 * c / (m"),
    ("laplace", "2 / epsilon if mechanism", "1 / epsilon if mechanism"),
    ("laplace", "noise_scale**2 * np.sum(n", "2 * noise_scale**2 * np.sum(n"),
    ("gaussian", "math.log(1.25 / delta)", "4 * math.log(1.25 / delta)"),
    ("gaussian", "noise_scale**2 * n + noise**2", "noise_scale**2 * n"),
    ("concentrated", "2 / math.sqrt(2 * rho)", "1 / math.sqrt(2 * rho)"),
    ("concentrated", "(phase + 1) * (phase + 2)", "(phase + 2) * (phase + 3)"),
    ("buckets", "2 * corruption_bound * sum", "corruption_bound * sum"),
    ("buckets", "min(g, longer)", "0"),
    ("raw median", "max(np.linalg.norm(p - z), 1e-8)", "1"),  # the mean
    ("trimmed", "share = 2 * s.corruption_bound", "share = s.corruption_bound"),
    ("median", "float(np.median(x))", "float(np.mean(x))"),
]


@pytest.mark.parametrize(("name", "error"), errors(PLANTED, rivals))
def test_a_planted_error_forks_a_path(name, error):
    wrong = planted(*error)
    assert any(not np.array_equal(right.actions, literal_run(name, *case, wrong).actions)
               for case, right in zip(*met(name), strict=True))  # fmt: skip


ATTACKS = [("phased", "coins"), ("trimmed", "target"), ("buckets", "flip"), ("laplace", "sign, rewards")]


@pytest.mark.parametrize(("name", "meeting"), dealt(ATTACKS, 4))
def test_paths_of_comparators_under_other_attacks(name, meeting):
    _, horizon, all_settings = RIVALS[name]
    cases = [(settings, World(i, horizon, **number(OTHERS[meeting])), True) for i, settings in enumerate(all_settings)]
    compare(name, cases, [literal_run(name, *case) for case in cases])
