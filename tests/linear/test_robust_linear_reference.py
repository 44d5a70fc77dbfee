"""Robust elimination and its filter against literal transcriptions: same draws in, same paths out, in float64."""

import functools
import math

import jax
import numpy as np
import pytest
from dealt import dealt
from planting import errors, planted
from reference import robust_linear as literal
from robust_linear_world import ACTIONS, MEETINGS, OTHERS, THETA, World, at_play, compared, number, plays_of_arms
from uncompiled import uncompiled

from jaxbandits import algorithms
from jaxbandits.algorithms.linear import formulas
from jaxbandits.estimators import g_optimal_design, spectral_filter

# Gaussian rewards on purpose: epsilon is data here
pytestmark = pytest.mark.filterwarnings("ignore:.*its guarantee does not hold")

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


def literal_filter(seed, ref=literal):
    """Of `contaminated` reports, with as many removals as it takes."""
    uniforms, reports, arms, u, bound = contaminated(seed)
    finite = np.isfinite(reports)
    x = u[arms] * np.where(finite, np.clip(reports, -1e6, 1e6), 0.0)[:, None]
    return ref.spectral_filter(lambda s: uniforms[s], x[finite], bound).keep


@pytest.mark.parametrize("error", errors([
    ("uniform(removed)", "uniform(removed + 1)"), ("4 * bound", "bound"),
], literal))  # fmt: skip
def test_a_planted_error_removes_other_reports(error):
    wrong = planted(*error)
    assert any(not np.array_equal(literal_filter(seed), literal_filter(seed, wrong)) for seed in range(40))


@functools.cache
def filtered(most):
    return jax.jit(functools.partial(spectral_filter, max_removals=most))


@pytest.mark.parametrize("seed", range(40))
def test_the_filter_removes_the_same_reports(seed):
    uniforms, reports, arms, u, bound = contaminated(seed)
    finite = np.isfinite(reports)
    x = u[arms] * np.where(finite, np.clip(reports, -1e6, 1e6), 0.0)[:, None]
    for most in (None, 3) if seed % 12 == 0 else (None,):
        want = literal.spectral_filter(lambda s: uniforms[s], x[finite], bound, max_removals=most)
        with jax.enable_x64(True):
            got = filtered(most)(uniforms, reports, arms, u, bound)
        assert int(got.num_removed) == want.num_removed and int(got.num_dropped) == (~finite).sum()
        np.testing.assert_array_equal(np.asarray(got.keep)[finite], want.keep)
        np.testing.assert_allclose(got.mean, want.mean, rtol=1e-8, atol=1e-9)
        seen = np.asarray(got.eigenvalues)[: want.num_removed + 1]
        np.testing.assert_allclose(seen, want.eigenvalues[: len(seen)], rtol=1e-5, atol=1e-7)
        assert bool(got.exhausted) == want.capped


# ---------------------------------------------------------------- radii, counts and thresholds


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-9)


def literal_formulas(model, seed, ref=literal):
    """Forty arms in five dimensions, or in four of them, a few still active: what is given, and the numbers."""
    rng = np.random.default_rng(seed)
    actions = rng.normal(size=(40, 5)) * [1, 1, 1, 1, seed % 2]
    active = np.sort(rng.permutation(40)[:30])
    epsilon, alpha, size = (math.inf, 0.7, 3.0)[seed % 3], (0.0, 0.02)[seed % 2], 30.0 * (seed + 1)
    s = ref.Setup(
        actions, 10_000, 4, model=model, epsilon=epsilon, corruption_bound=alpha, noise_scale=0.6, failure_prob=0.2,
        weight_floor=0.15, sampling_scale=0.9, corruption_scale=0.3,
    )  # fmt: skip
    d = ref.design(actions, [a in active for a in range(40)])
    pulls = ref.counts(d.weights, size, model=model, weight_floor=0.15)
    reports, points = (np.minimum(pulls, 1) if model == "M2" else pulls), actions @ d.basis
    moment = sum(n * np.outer(x, x) for n, x in zip(reports, points, strict=True))
    inverse = np.linalg.inv(moment)
    square = ref.second_moment_bound(pulls, model=model, noise_scale=0.6, epsilon=epsilon)
    top = max(points[a] @ inverse @ points[a] for a in active)
    told = {"num_reports": reports.sum(), "max_norm": top, "mean_square": 0.0, "clean_square": square}
    bounds = [ref.lambda_value(mode, **told) for mode in ("tight", "clean")]
    practical = ref.gamma_practical(s, pulls, active, d.basis, moment)
    paper = ref.gamma_paper(s, size, d.rank, np.count_nonzero(pulls))
    return (s, d, active, size, reports.sum(), d.basis @ inverse @ d.basis.T, top), (
        pulls, square, *bounds, practical, paper)  # fmt: skip


@functools.cache
def fast_formulas(model):
    @uncompiled
    def numbers(weights, size, pulls, b, square, reports, top, actions, active, inverse, rank, support, alpha):
        shared = {
            "model": model, "laplace_scale": b, "sampling_scale": 0.9, "corruption_bound": alpha,
            "corruption_scale": 0.3}  # fmt: skip
        return (
            plays_of_arms(weights, size, model=model, weight_floor=0.15),
            formulas.mean_square(pulls, 0.6, b, model=model),
            formulas.lambda_value(square, reports, top, clean=False),
            formulas.lambda_value(square, reports, top, clean=True),
            formulas.gamma_practical(
                actions, active, inverse, pulls, log_term=math.log(2 * 40 * 4 / 0.2), square=square, noise_scale=0.6,
                **shared),
            formulas.gamma_paper(
                rank, size, support, log_term=math.log(40 * 10_000**2 / 0.2), weight_floor=0.15, **shared),
        )  # fmt: skip

    return numbers


@pytest.mark.parametrize("model", ["M1", "M2"])
def test_formulas_are_those_of_the_transcription(model):
    for seed in range(6):
        (s, d, active, size, reports, inverse, top), want = literal_formulas(model, seed)
        pulls, square, b = want[0], want[1], literal.laplace_scale(s.epsilon)
        with jax.enable_x64(True):
            counts, *found = fast_formulas(model)(
                d.weights, size, pulls, b, square, reports, top, s.actions, np.isin(np.arange(40), active), inverse,
                float(d.rank), float(np.count_nonzero(pulls)), s.corruption_bound,
            )  # fmt: skip
        np.testing.assert_array_equal(counts, pulls)
        for got, right in zip(found, want[1:], strict=True):
            close(got, right)


@pytest.mark.parametrize(("model", "error"), errors([
    ("M1", "c_stat * statistical", "2 * c_stat * statistical"),
    ("M2", "1 + noise_scale**2 / least + 2 * (b / least) ** 2", "1 + noise_scale**2 / least"),
], literal))  # fmt: skip
def test_a_planted_error_changes_a_formula(model, error):
    right, wrong = literal_formulas(model, 2)[1], literal_formulas(model, 2, planted(*error))[1]
    assert not all(np.allclose(x, y, rtol=1e-6) for x, y in zip(right, wrong, strict=True))


@pytest.mark.parametrize("model", ["M1", "M2"])
def test_errors_of_the_estimate_have_the_variance_of_the_radius(model):
    """300 seeds: <x, estimate - theta>^2 over V is 1 within 4 standard errors, and neither 2/3 nor 3/2 of it is."""
    ratios, means = [], ACTIONS @ THETA
    setup = literal.Setup(ACTIONS, 400, 2, model=model, epsilon=1.0, sampling_scale=1.0, variance_bound="observed")
    for seed in range(300):
        rng = np.random.default_rng(seed)
        noise, laplace = rng.normal(size=402), rng.laplace(size=402)
        batch = literal.robust_elimination(
            setup, lambda t, a: means[a] + noise[t], laplace=lambda place: laplace[place.last]  # noqa: B023
        ).batches[0]  # fmt: skip
        n = batch.counts
        moment = ACTIONS.T @ ((n if model == "M1" else n > 0)[:, None] * ACTIONS)
        w = ACTIONS[0] @ np.linalg.inv(moment) @ ACTIONS.T
        if model == "M1":
            variance = (1 + 2 * 4) * np.sum(n * w**2)
        else:
            variance = sum(w[a] ** 2 * (1 / n[a] + 2 * (2 / n[a]) ** 2) for a in np.flatnonzero(n))
        ratios.append((ACTIONS[0] @ (batch.estimate - THETA)) ** 2 / variance)
    error = np.std(ratios) / math.sqrt(300)
    assert abs(np.mean(ratios) - 1) < 4 * error
    assert abs(np.mean(ratios) * 1.5 - 1) > 2 * error and abs(np.mean(ratios) / 1.5 - 1) > 2 * error


@pytest.mark.parametrize("slack", [1.0, 0.1])
def test_designs_are_those_of_the_transcription(slack):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        actions = rng.normal(size=(24, 4)) * [1, 1, 1, seed % 2]
        active = rng.random(24) < 0.8
        want = literal.design(actions, active, slack=slack)
        with jax.enable_x64(True):
            got = g_optimal_design(actions, active=active, slack=slack)
        close(got.max_leverage, want.max_leverage)
        np.testing.assert_allclose(got.weights, want.weights, atol=1e-9)
        assert int(got.rank) == want.rank


# ---------------------------------------------------------------- Algorithm 1

HORIZON = 2000


@functools.lru_cache(maxsize=64)
def uniforms(seed, last):
    """The filter's uniforms of the batch that ends with play `last`."""
    return at_play(seed, "alg/close/filter", last, HORIZON)


def elimination(world, *, num_batches=3, **settings):
    """The fast algorithm and the literal run with a multiplier of the noise."""
    made = algorithms.robust_elimination(actions=world.actions, horizon=HORIZON, num_batches=num_batches, **settings)

    def run(multiplier, module=literal):
        setup = module.Setup(world.actions, HORIZON, num_batches, mechanism_scale=multiplier, **settings)
        world.answers_of(setup)
        return module.robust_elimination(
            setup, world.reward, laplace=lambda place: world.draws("alg/encode/noise", "laplace")[place.last],
            uniform=lambda batch, last, s: uniforms(world.seed, last)[s], attack=world.attack,
        )  # fmt: skip

    return made, run


M1 = {
    "defaults": {},
    "private": {"epsilon": 2.0, "sampling_scale": 0.3},
    "contaminated": {"corruption_bound": 0.1, "corruption_scale": 0.2, "bias_scale": 0.5},
    "clean": {"variance_bound": "clean", "corruption_bound": 0.05, "corruption_scale": 0.1, "failure_prob": 0.3},
    "sieve": {
        "presieve": True,
        "corruption_bound": 0.1,
        "epsilon": 3.0,
        "corruption_scale": 0.1,
        "sampling_scale": 0.3,
    },
    "paper": {
        "radius": "paper",
        "sampling_scale": 0.2,
        "corruption_bound": 0.01,
        "corruption_scale": 0.02,
        "epsilon": 5.0,
    },
    "fine": {"noise_scale": 0.8, "design_slack": 0.05, "epsilon": 8.0, "presieve": True, "variance_bound": "clean"},
}
M2 = {name: {**settings, "model": "M2"} for name, settings in M1.items()}
M2["paper"] = {**M2["paper"], "weight_floor": 0.4, "corruption_scale": 0.002}
M2["private"] = {**M2["private"], "weight_floor": 0.4}
PROGRAMS = {  # settings of one program each
    "M1": list(M1.values()),
    "M2": list(M2.values()),
    "M1, refit": [{**M1[name], "refit": True} for name in ("defaults", "contaminated", "sieve")],
    "M2, refit": [{**M2[name], "refit": True} for name in ("defaults", "contaminated", "sieve")],
    "M1, observed": [{**M1[name], "variance_bound": "observed"} for name in ("defaults", "private", "paper")],
    "M2, observed": [{**M2[name], "variance_bound": "observed"} for name in ("defaults", "private", "paper")],
    "M1, observed and sieved": [{**M1["sieve"], "variance_bound": "observed"}],
    "M1, five batches": [{**M1[name], "num_batches": 5} for name in ("contaminated", "private")],
    "M2, five batches": [{**M2[name], "num_batches": 5} for name in ("contaminated", "private")],
}  # fmt: skip


def compare(cases, wants, **options):
    """Fast runs of (world, settings, noisy) against literal ones."""
    lanes = [(elimination(world, **settings)[0], world, noisy) for world, settings, noisy in cases]
    for run, want in zip(compared(lanes, wants, **options), wants, strict=True):
        assert int(run.diagnostics["batches"]) == len(want.batches)
        assert int(run.diagnostics["removals"]) == sum(batch.removed for batch in want.batches)
        lost = sum(int(np.sum(~np.isfinite(batch.reports))) for batch in want.batches)
        assert int(run.diagnostics["nonfinite_reports"]) == lost


def run_literal(world, settings, noisy, module=literal):
    return elimination(world, **settings)[1](float(noisy), module)


@functools.cache
def met(name):
    """(world, settings, noisy) of a program's cases, and their literal runs."""
    cases, named = [], {**MEETINGS}
    if "M2" in name:  # few reports a batch; three equal outliers on orthogonal arms have no single top eigenvector
        named["often"] = {"share": 0.2, "value": 30.0}
    for i, settings in enumerate(PROGRAMS[name]):
        for j, meeting in enumerate(named.values()):
            cases.append((World(10 * i + j, HORIZON, **number(meeting)), settings, True))
        if "epsilon" in settings:
            cases.append((World(10 * i, HORIZON, **number(MEETINGS["30"])), settings, False))
    return cases, [run_literal(*case) for case in cases]


FLAT = np.array([[0.0, 0, 0], [1, 0, 0], [0, 0.7, 0.7], [0.6, 0.3, 0.3], [-0.5, -0.5, -0.5], [0, 0, 0]])


def flat(model):
    """Cases where arms span a plane, a line or nothing, and their literal runs. Arms have rank 2, two are zero. NaN is
    left out: M2's lost report makes exact ties with a zero arm.
    """
    cases = [
        (World(5, HORIZON, **number(MEETINGS[meeting]), actions=FLAT, theta=theta), {**settings, "model": model}, True)
        for theta in (THETA, np.full(3, -0.5)) for settings in (M1["defaults"], {**M1["contaminated"], "epsilon": 3.0})
        for meeting in ("nothing", "30")
    ]  # fmt: skip
    return cases, [run_literal(*case) for case in cases]


@pytest.mark.parametrize("name", dealt(PROGRAMS, 4, always=["M1", "M2"]))
def test_paths_are_those_of_the_transcription(name):
    cases, wants = met(name)
    if name in ("M1", "M2"):
        more, flat_wants = flat(name)
        # what is played once all is decided is counted, as sweeps do it, by the same rule in both models
        compare(cases + more, wants + flat_wants, counted=name == "M1")
        assert {batch.design.rank for want in flat_wants for batch in want.batches} == {1, 2}
    else:
        compare(cases, wants)
    batches = [batch for want in wants for batch in want.batches]
    assert sum(len(batch.active) < len(ACTIONS) for batch in batches) > len(wants) / 2  # paths that say something
    if "observed" in name:
        assert sum(batch.removed for batch in batches) == 0
    else:
        assert sum(batch.removed for batch in batches) > (20 if "M1" in name else 0)


PLANTED = [
    ("M1", "2 * radius", "4 * radius"),
    ("M1", "4 * bound", "bound"),
    ("M1", "growth**i, model", "growth ** (i - 1), model"),
    ("M1", "reward(len(played), a)", "reward(len(played) - 1, a)"),
    ("M1", "1 + noise_scale**2 + 2 * b**2", "(1 + noise_scale**2 + 2 * b**2) / 4"),
    ("M1", "theta = n * root", "theta = len(kept) * root"),
    ("M1", "clean_square / num_reports", "clean_square"),
    ("M1", "return 0.0 if math.isinf(epsilon) else 2 / epsilon", "return 0.0 if math.isinf(epsilon) else 1 / epsilon"),
    ("M2", "max(weight, weight_floor)", "weight"),
    ("M1", "math.log(2 * arms * s.num_batches", "math.log(4 * arms * s.horizon"),
    ("M1", "h, b = math.log(", "h, b = 40 * math.log("),
    ("M1, refit", "survivors, r[keep]", "survivors, r[keep] * 1.3"),
]


def told(run):
    """What a comparison looks at: the actions, and how many reports were removed."""
    return [*run.actions, sum(batch.removed for batch in run.batches)]


@pytest.mark.parametrize(("name", "error"), errors(PLANTED, literal))
def test_a_planted_error_forks_a_path(name, error):
    """Of plays or of what the filter removes."""
    wrong = planted(*error)

    def seen(run):
        return [*run.actions, *(batch.removed for batch in run.batches)]

    assert any(seen(right) != seen(run_literal(*case, wrong)) for case, right in zip(*met(name), strict=True))


ATTACKS = [*((model, meeting) for model in ("M1", "M2") for meeting in ("target", "sign, rewards")),
           *(("M1", meeting) for meeting in ("flip", "burst", "coins", "subthreshold"))]  # fmt: skip


@pytest.mark.parametrize(("model", "meeting"), dealt(ATTACKS, 6, always=[("M1", "target")]))
def test_paths_under_other_attacks(model, meeting):
    all_settings = [(M1 if model == "M1" else M2)[name] for name in ("defaults", "contaminated", "sieve")]
    cases = [(World(i, HORIZON, **number(OTHERS[meeting])), settings, True) for i, settings in enumerate(all_settings)]
    compare(cases, [run_literal(*case) for case in cases])
