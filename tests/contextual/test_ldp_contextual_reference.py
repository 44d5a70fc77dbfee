"""Locally private contextual bandits against the literal transcription: same draws in, same paths out, in float64."""

import functools
import inspect
import math
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
import pytest
from against_reference import exact_draw as draw
from against_reference import exact_world as world
from dealt import dealt
from planting import errors, planted
from plays import of_cases
from reference import optimizers
from reference.ldp_contextual import combiner, comparators, doubling, instance, maler, ogd, online_ucb
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits import algorithms, environments

K, D, T = 6, 3, 300
TIE = 1e-5  # relative: what the library calls a tie
SEEDS = range(3)
ADAM, MOMENTUM = optax.adam(0.05), optax.sgd(0.01, momentum=0.9)  # one object each: equal calls are unequal


# ---------------------------------------------------------------- cases


class Case(NamedTuple):
    """One fast algorithm, its world, and the transcription of both."""

    factory: Any
    settings: dict
    world: tuple  # settings of contextual_linear
    horizon: int
    literal: Any  # (settings, contexts, pay, horizon, seed, modules) -> actions
    feature_norm: float

    @property
    def dim(self):
        return dict(self.world)["dim"]


def case(factory, literal, *, contexts="redraw", features="unit", horizon=T, norm=None, dim=D, **settings):
    norm = norm or (math.sqrt(2) if features == "reference" else 1.0)
    world = (("contexts", contexts), ("dim", dim), ("features", features))
    return Case(factory, settings, world, horizon, literal, norm)


@functools.cache
def arms_of(settings):
    return functools.partial(environments.contextual_linear, num_arms=K, **dict(settings))


@functools.cache
def made(name):
    """The algorithm of a case and its environment."""
    c = CASES[name]
    environment = arms_of(c.world)()
    environment = environment._replace(facts=environment.facts | {"feature_norm": c.feature_norm})  # at most that
    return algorithm_of(c), environment


def algorithm_of(c):
    shape = {"num_arms": K, "dim": c.dim, "horizon": c.horizon, "feature_norm": c.feature_norm}
    if c.factory is algorithms.doubling:
        own = {name: c.settings[name] for name in ("power",) if name in c.settings}
        base = {name: value for name, value in c.settings.items() if name not in own}
        return algorithms.doubling(**shape, base=functools.partial(algorithms.online_ucb, **base), **own)
    if c.factory is algorithms.bandit_combiner:
        own = {name: c.settings[name] for name in ("epsilon", "bonus_scale") if name in c.settings}
        base = {name: value for name, value in c.settings.items() if name not in (*own, "growth")}
        algorithm = algorithms.bandit_combiner(**shape, base=functools.partial(algorithms.online_ucb, **base), **own)
        if "growth" in c.settings:  # no root in W(i, n), so that bases are dropped within a short run
            growth = np.full_like(algorithm.params.growth, c.settings["growth"])
            algorithm = algorithm._replace(params=algorithm.params._replace(growth=growth, log_term=-1e3))
        return algorithm
    if "contexts" in inspect.signature(c.factory).parameters:  # a form of the step for arms that stay
        shape["contexts"] = dict(c.world)["contexts"]
    return c.factory(**shape, **c.settings)


@functools.cache
def family(program, world):
    """All cases that share their functions, played in one program: seeds' lanes by name."""
    names = [name for name in CASES if (made(name)[0].program, made(name)[1].world) == (program, world)]
    return dict(zip(names, of_cases([made(name) for name in names], SEEDS), strict=True))


def fast(name, seed):
    algorithm, environment = made(name)
    return family(algorithm.program, environment.world)[name][seed]


MODULES = {
    "online_ucb": online_ucb, "ogd": ogd, "maler": maler, "comparators": comparators, "doubling": doubling,
    "combiner": combiner, "optimizers": optimizers,
}  # fmt: skip


def literal(c, seed, **modules):
    """Actions [T], or what `combined` returns."""
    x, rewards, _ = world(arms_of(c.world), seed, c.horizon)
    return c.literal(c, x, lambda t, arm: rewards[t - 1, arm], seed, MODULES | modules)


def actions_of(found):
    return found.actions if isinstance(found, Combined) else found


@functools.cache
def literal_actions(name, seed):
    return actions_of(literal(CASES[name], seed))


# ---------------------------------------------------------------- Algorithm 1 on the simulator's draws


def learner_of(ref, s, dim, horizon, bound, largest, curvature):
    if s.get("learner", "maler") == "ogd":
        step = {"step": s.get("step", "adanorm"), "strong_convexity": 2 * curvature}
        return ref["ogd"].OGD(dim, theta_bound=bound, gradient_bound=largest, **step)
    if s.get("learner") in (ADAM, MOMENTUM):
        mod = ref["optimizers"]
        step = mod.adam(0.05) if s["learner"] == ADAM else mod.momentum(0.01, 0.9)
        return mod.Projected(dim, step, theta_bound=bound)
    return ref["maler"].Maler(dim, horizon, theta_bound=bound, gradient_bound=largest)


def server_of(ref, s, dim, horizon, failure_prob, norm, *, power=0.25):
    """Algorithm 1 as docs/formulas/ldp_contextual.md#onlineucb configures it:
    the server, sigma of the features and of the reward, and Delta.
    """
    one, epsilon, delta = ref["online_ucb"], s["epsilon"], s["delta"]
    private, bound = s.get("private_features", True), s.get("theta_bound", 1.0)
    sigma = one.sigma_of(epsilon, delta, s.get("calibration", "exact"), private, norm)
    least = s.get("min_eigenvalue")
    extra = one.extra_scale(least, horizon, power)
    kind = s.get("gradient_bound", "practical")
    if private:
        told = {"horizon": horizon, "failure_prob": failure_prob}
        largest = one.gradient_bound(sigma, theta_bound=bound, extra=extra, kind=kind, **told)
    else:
        assert kind == "practical" and extra == 0  # all that docs/formulas/ldp_contextual.md#clip-constant gives
        largest = one.gradient_bound_reward_only(sigma, theta_bound=bound)
    least = 1 / dim if least is None else least
    more = {"theta_bound": bound, "extra": extra, "scale": s.get("radius_scale", 1.0)}
    if s.get("width", "scaled") == "scaled":
        width = one.scaled_width(epsilon, delta, horizon, failure_prob, **more)
    else:
        more |= {"min_eigenvalue": least, "rounds": horizon}
        width = one.theory_width(epsilon, delta, horizon, failure_prob, largest, **more)
    learner = learner_of(ref, s, dim, horizon, bound, largest, least + extra**2)
    noise = sigma**2 if private else 0.0
    server = one.OnlineUCB(dim, learner, covariance=noise, gradient_bound=largest, width=width, tie_tolerance=TIE)
    return server, sigma if private else 0.0, sigma, extra


def online(c, contexts, pay, seed, ref):
    s, t = c.settings, np.arange(1, c.horizon + 1)
    failure = s.get("failure_prob", 1 / c.horizon)
    server, on_x, on_y, extra = server_of(ref, s, c.dim, c.horizon, failure, c.feature_norm)
    # the library draws zeta + eta_x at once: one normal of the variance of both
    eta_x = math.sqrt(on_x**2 + extra**2) * draw(seed, "alg/encode/feature", "normal", t, (c.dim,))
    eta_y = on_y * draw(seed, "alg/encode/reward", "normal", t)
    return ref["online_ucb"].online_ucb(
        contexts, pay, server, zeta=np.zeros_like(eta_x), eta_x=eta_x, eta_y=eta_y
    )[0]  # fmt: skip


def anytime(ref, s, failure_prob, norm, power):
    """Algorithm 7 as a server, and sigma of the features and of the reward."""
    mod = ref["doubling"]
    least = s.get("min_eigenvalue")
    settings = functools.partial(mod.epoch_settings, failure_prob=failure_prob, min_eigenvalue=least, power=power)
    epoch = lambda k: server_of(ref, s, D, *settings(k)[:2], norm, power=power)
    return mod.Doubling(lambda k: epoch(k)[0], lambda k: settings(k)[2]), *epoch(0)[1:3]


def epochs(c, contexts, pay, seed, ref):
    t = np.arange(1, c.horizon + 1)
    server, on_x, on_y = anytime(ref, c.settings, 1 / c.horizon, c.feature_norm, c.settings.get("power", 0.125))
    extra = np.array([server.extra_of(ref["doubling"].epoch_of(int(i))) for i in t])
    z, w = draw(seed, "alg/encode/base/feature", "normal", t, (D,)), draw(seed, "alg/encode/base/reward", "normal", t)
    eta_x = np.sqrt(on_x**2 + extra**2)[:, None] * z
    return ref["online_ucb"].online_ucb(contexts, pay, server, zeta=np.zeros_like(z), eta_x=eta_x, eta_y=on_y * w)[0]


class Combined(NamedTuple):
    actions: np.ndarray
    played: np.ndarray
    active: np.ndarray


def combined(c, contexts, pay, seed, ref):
    mod, s, t, failure = ref["combiner"], c.settings, np.arange(1, c.horizon + 1), 1 / c.horizon
    num = mod.num_bases(c.horizon)
    bases, extras = [], []
    for i in range(1, num + 1):
        own = {**s, "min_eigenvalue": mod.base_eigenvalue(i, c.horizon)}
        if i == 1:
            base, on_x, on_y = anytime(ref, own, failure, c.feature_norm, 0.125)
            extras.append(lambda base=base: base.extra)
        else:
            base, _, _, extra = server_of(ref, own, D, c.horizon, failure, c.feature_norm, power=0.125)
            extras.append(lambda extra=extra: extra)
        bases.append(base)
    z = draw(seed, "alg/encode/base/base/feature", "normal", t, (D,))
    w = draw(seed, "alg/encode/base/base/reward", "normal", t)
    noise = lambda t, i, x, y: (x + math.sqrt(on_x**2 + extras[i]() ** 2) * z[t - 1], y + on_y * w[t - 1])
    constants = mod.constants(num, c.horizon, D, s["epsilon"], failure, bonus_scale=s.get("bonus_scale", 1.0))
    if "growth" in s:
        constants, failure = constants._replace(C=np.full(num, s["growth"])), math.inf
    told = {"variance": on_y**2, "failure_prob": failure, "noise": noise}
    return Combined(*mod.combiner(contexts, pay, bases, constants, **told))


# ---------------------------------------------------------------- comparators on the simulator's draws

batch_noise = uncompiled(lambda trials, words: jb.mechanisms.shuffle.batch_noise(trials, words, np.float64))


def entries(dim):
    """Of a packed pair."""
    return dim * (dim + 1) // 2 + dim


def unpacked(z, dim, on_diagonal, above, on_vector):
    """Standard normals [n] of the packed pair as a symmetric matrix [d, d] and a vector [d]."""
    matrix = np.zeros((dim, dim))
    for k, (i, j) in enumerate(zip(*np.triu_indices(dim), strict=True)):
        matrix[i, j] = matrix[j, i] = z[k] * (on_diagonal if i == j else above)
    return matrix, on_vector * z[-dim:]


def halves(s):
    """(Z + Z') / 2 has scale s on its diagonal and s / sqrt 2 off it; vectors have s."""
    return s, s / math.sqrt(2), s


def statistics_of(c, kind, seed, ref):
    """The statistics, the ridge (of t) and the width (of t)."""
    mod, s, horizon, dim = ref["comparators"], c.settings, c.horizon, c.dim
    epsilon, delta, window = s.get("epsilon", math.inf), s.get("delta"), s.get("window")
    preset, t = s.get("preset", "reference"), np.arange(1, c.horizon + 1)
    if preset == "reference" or math.isinf(epsilon):
        scale = mod.entry_noise(kind, epsilon, delta, horizon=horizon, dim=dim, window=window)
        gamma, ridge = mod.gamma_and_ridge(kind, scale, horizon=horizon, dim=dim)
        width = mod.reference_width(gamma, horizon=horizon, dim=dim, feature_norm=c.feature_norm)
        ridge_of, width_of, scales = lambda t: ridge, lambda t: width, halves(scale)
    elif kind in ("ldp", "amplified"):
        told = functools.partial(mod.theory_ldp, epsilon=epsilon, delta=delta, horizon=horizon, dim=dim)
        assert kind == "ldp"  # docs/formulas/ldp_contextual.md#comparators has no ridge for theory amplified
        ridge_of, width_of = lambda t: told(t)[1], lambda t: told(t)[2]
        scales = (told(1)[0],) * 3
    else:
        sizes = {"horizon": horizon, "dim": dim, "feature_norm": c.feature_norm}
        told = functools.partial(mod.theory_jdp, epsilon=epsilon, delta=delta, **sizes)
        scale, shift, _ = told(1)
        ridge_of, width_of = lambda t: shift, lambda t: told(t)[2]

    if kind == "none" or (math.isinf(epsilon) and kind in ("ldp", "jdp")):
        return mod.Plain(dim), ridge_of, width_of
    if kind in ("ldp", "amplified"):
        z = draw(seed, "alg/encode/noise", "normal", t, (entries(dim),))
        plain = mod.Plain(dim, lambda t: unpacked(z[t - 1], dim, *scales))
        return (plain if kind == "ldp" else mod.Batched(plain, window)), ridge_of, width_of
    if kind == "jdp" and s.get("tree", "simplified" if preset == "reference" else "binary") == "simplified":
        count = math.floor(math.log(horizon)) + 1
        z = draw(seed, "alg/init/noise", "normal", np.arange(count), (entries(dim),))
        matrices, vectors = zip(*(unpacked(row, dim, *scales) for row in z), strict=True)
        return mod.Central(dim, mod.simplified_tree(np.array(matrices), np.array(vectors), horizon)), ridge_of, width_of
    if kind == "jdp":
        z = draw(seed, "alg/update/noise", "normal", t, (entries(dim),))
        if preset == "theory":

            def node(
                level, index
            ):  # a node is drawn at its last play; Z symmetric, so that (Z + Z') / sqrt 2 = sqrt 2 Z
                Z = np.zeros((dim + 1, dim + 1))
                row = z[((index + 1) << level) - 1]
                Z[:dim, :dim], Z[:dim, dim] = unpacked(row, dim, 1.0, math.sqrt(0.5), math.sqrt(0.5))
                Z[dim, :dim] = Z[:dim, dim]
                return Z

            return mod.Central(dim, mod.binary_tree(node, scale, dim)), ridge_of, width_of

        def total(t):
            parts = [unpacked(z[((index + 1) << level) - 1], dim, *scales) for level, index in mod.dyadic_nodes(t)]
            return sum((a for a, _ in parts), np.zeros((dim, dim))), sum((b for _, b in parts), np.zeros(dim))

        return mod.Central(dim, total), ridge_of, width_of
    batches = np.arange(window, horizon + 1, window)
    bits = mod.vector_bits(dim, epsilon, delta, window)
    ones = None
    if bits:
        words = draw(seed, "alg/encode/noise", "bits", batches, (entries(dim),))
        with jax.enable_x64(True):
            noise = batch_noise(np.float64(bits * window), words)
        ones = noise + bits * window / 4  # the library draws the sum less its mean
        np.testing.assert_allclose(ones, np.round(ones), atol=1e-6)
    statistics = mod.VectorShuffle(
        dim, epsilon, delta, window=window, uniforms=draw(seed, "alg/encode/rounding", "uniform", t, (entries(dim),)),
        ones=None if ones is None else lambda j: ones[j], feature_norm=c.feature_norm,
    )  # fmt: skip
    return statistics, ridge_of, width_of


def kind_of(c):
    names = {"ldp_linucb": "ldp", "jdp_linucb": "jdp", "shuffle_linucb": "shuffle"}
    name = names.get(c.factory.__name__, c.settings.get("statistics", "none"))
    return c.settings.get("protocol", "amplified") if name == "shuffle" else name


def optimistic(c, contexts, pay, seed, ref):
    mod, scale = ref["comparators"], c.settings.get("radius_scale", 1.0)
    statistics, ridge, width = statistics_of(c, kind_of(c), seed, ref)
    if kind_of(c) == "none" and c.settings.get("preset") == "theory":
        ridge = lambda t: 1.0
        told = {"dim": c.dim, "failure_prob": 1 / c.horizon, "feature_norm": c.feature_norm}
        width = functools.partial(mod.theory_linucb_width, **told)
    select = lambda t, x, P, estimate: mod.ucb(x, P, estimate, scale * width(t), TIE)
    return mod.play(contexts, pay, statistics, select, ridge=ridge)


def thompson(c, contexts, pay, seed, ref):
    mod = ref["comparators"]
    statistics, ridge, _ = statistics_of(c, kind_of(c), seed, ref)
    v = mod.thompson_scale(c.horizon, c.dim, 1 / c.horizon, c.settings.get("posterior_scale", 0.3))
    z = draw(seed, "alg/act/posterior", "normal", np.arange(1, c.horizon + 1), (c.dim,))
    select = lambda t, x, P, estimate: mod.thompson(x, P, estimate, v, z[t - 1], TIE)
    return mod.play(contexts, pay, statistics, select, ridge=ridge)


def greedy(c, contexts, pay, seed, ref):
    mod, t = ref["comparators"], np.arange(1, c.horizon + 1)
    statistics, ridge, _ = statistics_of(c, kind_of(c), seed, ref)
    explore, arm = draw(seed, "alg/act/explore", "uniform", t), draw(seed, "alg/act/arm", "uniform", t)

    def select(t, x, P, estimate):
        if mod.explores(t, K, explore[t - 1], c.settings.get("exploration", 0.1)):
            return int(arm[t - 1] * K)
        return mod.greedy(x, estimate, TIE)

    return mod.play(contexts, pay, statistics, select, ridge=ridge)


# delta, batches and presets are those of the paper and of the published code
PAPER = functools.partial(functools.partial, case, delta=0.1)
PUBLISHED = functools.partial(PAPER, preset="reference")
MALER = PAPER(algorithms.online_ucb, online)
DOUBLING = PAPER(algorithms.doubling, epochs)
COMBINER = PAPER(algorithms.bandit_combiner, combined)
OGD = PAPER(algorithms.online_ucb, online, learner="ogd")
LDP = PUBLISHED(algorithms.ldp_linucb, optimistic)
JDP = PUBLISHED(algorithms.jdp_linucb, optimistic)
SHUFFLE = PUBLISHED(algorithms.shuffle_linucb, optimistic, window=20)
LINUCB = functools.partial(case, algorithms.linucb, optimistic)
THOMPSON = PUBLISHED(algorithms.linear_thompson, thompson, window=20)
GREEDY = PUBLISHED(algorithms.epsilon_greedy, greedy)
CASES = {
    "maler": MALER(epsilon=10.0, radius_scale=0.1),
    "maler, reference": MALER(epsilon=10.0, calibration="reference", radius_scale=0.1, theta_bound=0.6),
    "maler, theory": MALER(
        epsilon=10.0, calibration="reference", width="theory", gradient_bound="theory", radius_scale=1e-3,
        min_eigenvalue=0.1
    ),
    "maler, rewards only": MALER(epsilon=1.0, private_features=False, radius_scale=0.1),
    "maler, no noise": MALER(epsilon=math.inf, radius_scale=0.1),
    "ogd, paper": OGD(epsilon=10.0, calibration="paper"),
    "ogd, reference": OGD(epsilon=10.0, calibration="reference", radius_scale=0.3),
    "ogd, exact": OGD(epsilon=2.0, delta=0.02, failure_prob=0.1, theta_bound=0.7, radius_scale=0.1),
    "ogd, no noise": OGD(epsilon=math.inf, radius_scale=0.1),
    "ogd, rewards only": OGD(epsilon=1.0, private_features=False, calibration="paper", radius_scale=0.2),
    "ogd, rewards only, exact": OGD(epsilon=5.0, private_features=False, radius_scale=0.1),
    "ogd, perturbed": OGD(epsilon=10.0, calibration="reference", min_eigenvalue=0.1, radius_scale=0.1),
    "ogd, well spread": OGD(epsilon=10.0, calibration="reference", min_eigenvalue=0.9, radius_scale=0.1),
    "ogd, theory": OGD(
        epsilon=10.0, calibration="reference", width="theory", gradient_bound="theory", radius_scale=1e-3
    ),
    "ogd, theory, perturbed": OGD(
        epsilon=10.0, min_eigenvalue=0.1, width="theory", gradient_bound="theory", radius_scale=1e-3
    ),
    "ogd, sqrt": OGD(epsilon=10.0, calibration="reference", step="sqrt", radius_scale=0.1),
    "ogd, strong": OGD(epsilon=10.0, calibration="reference", step="strong", radius_scale=0.1),
    "ogd, strong, perturbed": OGD(epsilon=20.0, step="strong", min_eigenvalue=0.2, radius_scale=0.1),
    "ogd, reference features": OGD(epsilon=10.0, features="reference", contexts="fixed", radius_scale=0.3),
    "adam": MALER(epsilon=10.0, radius_scale=0.1, learner=ADAM),
    "adam, no noise": MALER(epsilon=math.inf, radius_scale=0.1, theta_bound=0.6, learner=ADAM),
    "momentum": MALER(epsilon=2.0, radius_scale=0.1, learner=MOMENTUM),
    "doubling, momentum": DOUBLING(epsilon=10.0, learner=MOMENTUM, radius_scale=0.1),
    "combiner, adam": COMBINER(epsilon=10.0, learner=ADAM, radius_scale=0.1, bonus_scale=1e-5),
    "doubling": DOUBLING(epsilon=10.0, learner="ogd", radius_scale=0.1),
    "doubling, perturbed": DOUBLING(epsilon=20.0, learner="ogd", min_eigenvalue=0.7, radius_scale=0.1),
    "doubling, perturbed, power": DOUBLING(
        epsilon=20.0, learner="ogd", min_eigenvalue=0.1, power=0.4, radius_scale=0.1, theta_bound=0.6
    ),
    "doubling, maler": DOUBLING(epsilon=10.0, min_eigenvalue=0.1, radius_scale=0.1),
    "combiner": COMBINER(epsilon=10.0, learner="ogd", radius_scale=0.1),
    "combiner, small": COMBINER(epsilon=10.0, learner="ogd", radius_scale=0.1, bonus_scale=1e-5),
    "combiner, turns": COMBINER(epsilon=100.0, learner="ogd", radius_scale=0.1, bonus_scale=1e-5, growth=1.0),
    "combiner, drops": COMBINER(epsilon=10.0, learner="ogd", radius_scale=0.1, bonus_scale=1e-5, growth=0.15),
    "linucb": LINUCB(radius_scale=0.2),
    "linucb, fixed": LINUCB(radius_scale=0.2, contexts="fixed"),
    "linucb, theory": LINUCB(preset="theory", radius_scale=0.2),
    "linucb, theory, norm 2": LINUCB(preset="theory", radius_scale=0.2, norm=2.0),
    "ldp": LDP(epsilon=10.0, radius_scale=0.2),
    "ldp, norm 2": LDP(epsilon=10.0, norm=2.0, radius_scale=0.2),
    "ldp, indefinite": LDP(epsilon=0.2, delta=0.01, radius_scale=0.01),
    "ldp, theory": LDP(epsilon=10.0, preset="theory", radius_scale=1e-3),
    "ldp, no noise": LDP(epsilon=math.inf, radius_scale=0.2),
    "jdp": JDP(epsilon=10.0, radius_scale=0.2),
    "jdp, no noise": JDP(epsilon=math.inf, radius_scale=0.2),
    "jdp, binary": JDP(epsilon=10.0, tree="binary", radius_scale=0.2),
    "jdp, theory": JDP(epsilon=100.0, preset="theory", radius_scale=1e-3),
    "jdp, theory, norm 2": JDP(epsilon=100.0, norm=2.0, preset="theory", radius_scale=1e-3),
    "amplified": SHUFFLE(epsilon=5.0, radius_scale=0.2, window=7),
    **{
        f"vector, {epsilon}": SHUFFLE(epsilon=epsilon, protocol="vector", radius_scale=0.1)
        for epsilon in (0.5, 1.0, 10.0, math.inf)
    },
    "vector, norm 2": SHUFFLE(epsilon=10.0, norm=2.0, protocol="vector", radius_scale=0.1),
    "thompson": THOMPSON(),
    "thompson, ldp": THOMPSON(statistics="ldp", epsilon=20.0),
    "thompson, shuffle": THOMPSON(statistics="shuffle", epsilon=20.0, protocol="vector"),
    "greedy": GREEDY(exploration=1.0),
    "greedy, jdp": GREEDY(statistics="jdp", epsilon=10.0),
    # matrices as arrays
    "linucb, 12 features": LINUCB(radius_scale=0.2, dim=12),
    "linucb, 9 fixed features": LINUCB(radius_scale=0.2, contexts="fixed", dim=9),
    "ldp, 9 features": LDP(epsilon=10.0, radius_scale=0.2, dim=9),
    "jdp, 9 features": JDP(epsilon=10.0, radius_scale=0.2, dim=9),
    "jdp, binary, 12 features": JDP(epsilon=10.0, tree="binary", radius_scale=0.2, dim=12),
    "amplified, 9 features": SHUFFLE(epsilon=5.0, radius_scale=0.2, window=7, dim=9),
    "vector, 9 features": SHUFFLE(epsilon=10.0, protocol="vector", radius_scale=0.1, dim=9),
    "ogd, 9 features": OGD(epsilon=10.0, calibration="reference", radius_scale=0.1, dim=9),
    "maler, 9 features": MALER(epsilon=10.0, radius_scale=0.1, dim=9),
    "thompson, 12 features": THOMPSON(dim=12),
    "greedy, 12 features": GREEDY(exploration=1.0, dim=12),
}  # fmt: skip
pytestmark = [
    pytest.mark.filterwarnings("ignore:calibration = "),
    pytest.mark.filterwarnings("ignore:horizon = .*least eigenvalue"),
]  # fmt: skip


# ---------------------------------------------------------------- paths


# each of these has a program of its own, of parts that the other cases have; of matrices as arrays three run always
APART = {
    "ogd, sqrt", "ogd, strong", "ogd, strong, perturbed", "ogd, reference features", "adam", "adam, no noise",
    "momentum", "doubling, momentum", "doubling, maler", "combiner, adam", "thompson, ldp",
    "thompson, shuffle", "greedy, jdp", "vector, 0.5", "vector, 10.0", "vector, norm 2", "jdp, binary, 12 features",
    "jdp, 9 features", "amplified, 9 features", "vector, 9 features", "maler, 9 features", "thompson, 12 features",
    "greedy, 12 features", "linucb, 9 fixed features",
}  # fmt: skip


@pytest.mark.parametrize("name", dealt(CASES, 4, always=CASES.keys() - APART))
def test_paths_are_those_of_the_transcription(name):
    c = CASES[name]
    for seed in SEEDS:
        run, found = fast(name, seed), literal(c, seed)
        want = actions_of(found)
        np.testing.assert_array_equal(run.history.action, want)
        x, _, theta = world(arms_of(c.world), seed, c.horizon)
        regret = instance.pseudo_regret(x, theta, want)
        np.testing.assert_allclose(run.regret[-1], regret[-1], rtol=1e-9, atol=1e-12)
        if isinstance(found, Combined):
            assert run.diagnostics["active_bases"] == found.active[-1].sum()
            counts = [run.diagnostics[f"plays_base_{i + 1}"] for i in range(found.active.shape[1])]
            np.testing.assert_array_equal(counts, np.bincount(found.played, minlength=len(counts)))


def test_bases_take_turns_and_are_dropped():
    """What the cases above compare is not trivial."""
    for seed in SEEDS:
        played = literal(CASES["combiner, turns"], seed).played
        assert set(played) == {0, 1, 2} and np.count_nonzero(np.diff(played)) >= 4
    assert any(not literal(CASES["combiner, drops"], seed).active[-1].all() for seed in SEEDS)


# ---------------------------------------------------------------- learners on given gradients

G, ROUNDS = 3.0, 200


def gradients(kind, learner):
    """Clipped gradients of three kinds, the fourth an answer to the prediction: a quadratic's."""
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(ROUNDS, D))
    for t in range(ROUNDS):
        if kind == "quadratic":
            g = 4 * (learner.predict() - np.array([0.3, -0.2, 0.4])) + 0.1 * noise[t]
        elif kind == "line":  # of one direction and changing size: only online Newton's matrix sees the others
            g = np.array([1.0, 0.5, 0]) * (2 * noise[t, 0] - 1.5) + 0.1 * noise[t]
        else:
            g = np.array([G, 0, 0]) * (1 if t < ROUNDS // 2 else -1) + noise[t]
        yield online_ucb.clip(g, G)


def literal_predictions(learner, kind):
    found, given = [], []
    for g in gradients(kind, learner):
        found.append(learner.predict())
        given.append(g)
        learner.update(g)
    return np.array(found), np.array(given)


def test_maler_predicts_as_the_transcription():
    """Eight Newton steps against bisection: 4e-6 of the radius where experts leave the ball."""
    learners = {k: maler.Maler(D, ROUNDS, theta_bound=0.7, gradient_bound=G) for k in ("quadratic", "line", "turn")}
    want, given = zip(*(literal_predictions(learner, kind) for kind, learner in learners.items()), strict=True)
    with jax.enable_x64(True):
        learner = jb.learners.maler(D, ROUNDS, 0.7, G)
        step = lambda state, g: (learner.update(state, g), learner.predict(state))
        found = jax.jit(jax.vmap(lambda g: jax.lax.scan(step, learner.init(), g)[1]))(np.array(given))
    np.testing.assert_allclose(found, want, atol=1e-6)
    for (kind, learner), path in zip(learners.items(), want, strict=True):
        assert np.abs(path).max() > 0.2 and (learner.outside > 0) == (kind != "quadratic")


def test_maler_has_as_many_scales_as_the_transcription():
    for horizon in (1, 16, 17, 20_000):
        with jax.enable_x64(True):
            state = uncompiled(jb.learners.maler(2, horizon, 1.0, 1.0).init)()
        want = maler.priors(maler.num_scales(horizon))
        np.testing.assert_allclose(np.exp(state.log_weights), want, rtol=1e-12)


def test_ellipsoids_are_projected_on_as_by_bisection():
    rng = np.random.default_rng(6)
    with jax.enable_x64(True):
        project = jax.jit(jb.learners.project_ellipsoid)
        for _ in range(100):
            Q = np.linalg.qr(rng.normal(size=(D, D)))[0]
            A = Q @ np.diag(10 ** rng.uniform(-1, 2, D)) @ Q.T
            y, radius = rng.normal(size=D), rng.uniform(0.2, 2)
            A = (A + A.T) / 2
            np.testing.assert_allclose(project(y, A, radius), maler.project_ellipsoid(y, A, radius), atol=1e-9 * radius)


# ---------------------------------------------------------------- planted errors

PLANTED = [
    ("ogd, sqrt", "ogd", "a = 2 * self.D", "a = 4 * self.D"),  # a doubled step
    ("ogd, sqrt", "ogd", "math.sqrt(self.t)", "math.sqrt(self.t + 1)"),  # a clock that is one late
    ("ogd, strong", "ogd", "1 / (self.mu * self.t)", "2 / (self.mu * self.t)"),
    ("ogd, strong", "ogd", "1 / (self.mu * self.t)", "1 / (self.mu * (self.t + 1))"),
    ("ogd, exact", "ogd", "math.sqrt(2) * self.D", "2 * math.sqrt(2) * self.D"),
    ("ogd, exact", "ogd", "project_ball(self.theta - a * g, self.D)", "self.theta - a * g"),
    ("ogd, paper", "online_ucb", "2 * self.covariance * theta", "self.covariance * theta"),
    ("ogd, paper", "online_ucb", "(theta @ x) * x", "y * x"),
    ("maler", "online_ucb", "first + 2 * second", "first + second"),
    ("ogd, perturbed", "online_ucb", "return math.sqrt(floor) if", "return floor if"),
    ("maler, theory", "online_ucb", "math.log(2 * horizon / failure_prob)", "math.log(horizon / failure_prob)"),
    ("ogd, theory", "online_ucb", "2 * lam", "lam"),
    ("ogd, theory, perturbed", "online_ucb", "(math.log(1 / delta) / epsilon**2 + extra**2)",
        "(math.log(1 / delta) / epsilon**2)"),
    ("maler, rewards only", "online_ucb", "2 * sigma_y + 2", "sigma_y + 2"),
    ("maler, theory", "maler", "self.diam / (G * math", "2 * self.diam / (G * math"),
    ("maler", "maler", "self.t = 1", "self.t = 2"),
    ("maler", "maler", " * self.rates\n", "\n"),  # no tilt
    ("maler", "maler", "slope) / self.b", "slope)"),
    ("adam", "optimizers", "- self.step(g", "- 2 * self.step(g"),
    ("adam, no noise", "optimizers", "np.zeros(dim), 1", "np.zeros(dim), 2"),
    ("momentum", "optimizers", "- self.step(g", "- 2 * self.step(g"),
    ("doubling, momentum", "optimizers", "decay * memory[0] + g", "memory[0] + g"),
    ("combiner, adam", "optimizers", "np.zeros(dim), 1", "np.zeros(dim), 2"),
    ("doubling", "doubling", "<= t", "< t"),
    ("doubling", "doubling", "((k + 1) * (k + 2))", "(k + 1)"),
    ("doubling, perturbed, power", "doubling", "horizon, power)", "horizon, 0.125)"),
    ("combiner, small", "combiner", "mean[i] + bonus", "bonus"),
    ("combiner, drops", "combiner", "c.C[i] * n **", "c.C[i] * (n - 1) **"),
    ("combiner, drops", "combiner", "deficit[i] += mean[i] - y", "deficit[i] += y - mean[i]"),
    ("ldp", "comparators", "return gamma, 2 * gamma", "return gamma, gamma"),
    ("ldp, theory", "comparators", "math.sqrt(3 * upsilon)", "math.sqrt(upsilon)"),
    ("linucb, theory", "comparators", "noise_scale=0.5", "noise_scale=1.0"),
    ("jdp", "comparators", "math.log(1 + t)", "math.log(2 + t)"),
    ("jdp, theory", "comparators", "s, 2 * upsilon", "s, upsilon"),
    ("amplified", "comparators", "self.t % self.window == 0", "self.t % self.window == 1"),
    ("vector, 1.0", "comparators", "self.b * self.B / 4", "(self.b + 0.5) * self.B / 4"),
    ("vector, 1.0", "comparators", "10 if epsilon >= 1", "10 if epsilon > 1"),
    ("vector, norm 2", "comparators", "- self.B * self.L", "- self.B"),
    ("thompson", "comparators", "9 * dim", "8 * dim"),
    ("greedy", "comparators", "num_arms / t)", "num_arms / (t + 1))"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "error"), errors([(name, MODULES[module], *change) for name, module, *change in PLANTED])
)
def test_a_planted_error_forks_a_path(name, error):
    wrong = {error.oracle.__name__.rpartition(".")[2]: planted(*error)}
    others = ((seed, actions_of(literal(CASES[name], seed, **wrong))) for seed in SEEDS)
    assert any(not np.array_equal(literal_actions(name, seed), actions) for seed, actions in others)


@pytest.mark.parametrize(
    "error",
    errors([
        ("self.t = 1", "self.t = 2"),
        ("2 * eta**2 * G**2 * self.t)", "eta**2 * G**2 * self.t)"),
        ("losses[e] = -eta * r + eta**2 * r**2", "losses[e] = -eta * r"),
        ("new[e] = project_ellipsoid(step, self.A[i], self.D)", "new[e] = project_ball(step, self.D)"),
        ("self.D, self.G, self.diam = theta_bound, gradient_bound, 2 * theta_bound",
            "self.D, self.G, self.diam = (theta_bound, gradient_bound, theta_bound)"),
    ], maler),
)  # fmt: skip
def test_a_planted_error_moves_malers_predictions(error):
    learner = planted(*error).Maler(D, ROUNDS, theta_bound=0.7, gradient_bound=G)
    want, given = literal_predictions(maler.Maler(D, ROUNDS, theta_bound=0.7, gradient_bound=G), "line")
    found = []
    for g in given:
        found.append(learner.predict())
        learner.update(g)
    assert np.abs(np.array(found) - want).max() > 1e-4


# ---------------------------------------------------------------- what is computed on the host


def test_noise_bounds_and_widths_are_those_of_the_transcription():
    theory = jb.theory
    for epsilon in (0.2, 1.0, 10.0):
        for delta, kind, private, norm in (
            (0.1, "paper", True, 1.0), (1e-3, "exact", True, 1.4), (0.02, "reference", False, 1.0),
            (0.1, "exact", False, 2.0), (1e-6, "paper", False, 1.0),
        ):  # fmt: skip
            told = {"calibration": kind, "private_features": private, "feature_norm": norm}
            sigma = theory.online_ucb_noise(epsilon, delta, **told)
            want = online_ucb.sigma_of(epsilon, delta, kind, private, norm)
            assert sigma == pytest.approx(want, rel=1e-6)
            true = online_ucb.delivered_delta(want, epsilon, math.sqrt(4 * norm**2 + 1) if private else 1.0)
            assert kind != "exact" or true == pytest.approx(delta, rel=1e-6)
        for extra in (0.0, 0.3):
            sigma, told = 0.7 / epsilon, {"theta_bound": 1.3}
            log = math.log(2 * 777 / 0.05)
            large = theory.online_ucb_gradient_bound(sigma, sigma, perturbation=extra, log=log, **told)
            small = theory.online_ucb_gradient_bound(sigma, sigma, perturbation=extra, **told)
            settings = {"kind": "theory", "horizon": 777, "failure_prob": 0.05}
            assert large == pytest.approx(online_ucb.gradient_bound(sigma, extra=extra, **settings, **told), rel=1e-12)
            assert small == pytest.approx(online_ucb.gradient_bound(sigma, extra=extra, **told), rel=1e-12)
            plain = theory.online_ucb_gradient_bound(0.0, sigma, **told)
            assert plain == pytest.approx(online_ucb.gradient_bound_reward_only(sigma, **told), rel=1e-12)
            more = {"epsilon": epsilon, "delta": 0.01, "perturbation": extra, "theta_bound": 1.3}
            width = theory.online_ucb_width("theory", 777, 0.05, gradient_bound=large, curvature=0.2 + extra**2, **more)
            told |= {"min_eigenvalue": 0.2, "rounds": 777, "extra": extra}
            want = online_ucb.theory_width(epsilon, 0.01, 777, 0.05, large, **told)
            assert width == pytest.approx(want, rel=1e-12)


def test_what_is_claimed_is_what_the_noise_delivers():
    """`paper` and `reference` spend other than asked for; the pair (x, y) at sensitivity sqrt 5, y alone at 1."""
    for settings in (
        {"epsilon": 0.2, "calibration": "paper"}, {"epsilon": 10.0, "calibration": "reference"}, {"epsilon": 1.0},
        {"epsilon": 1.0, "private_features": False, "calibration": "reference"},
    ):  # fmt: skip
        algorithm = algorithms.online_ucb(num_arms=K, dim=D, horizon=T, learner="ogd", delta=0.1, **settings)
        spent, delta = algorithm.guarantee.spend(algorithm.params)
        private = settings.get("private_features", True)
        sigma = online_ucb.sigma_of(settings["epsilon"], 0.1, settings.get("calibration", "exact"), private)
        true = online_ucb.delivered_delta(sigma, spent, math.sqrt(5) if private else 1.0)
        assert delta == 0.1 and (true == pytest.approx(0.1, rel=1e-4) or (spent == 0 and true < 0.1))


def test_combiner_constants_are_those_of_the_transcription():
    for horizon, dim, epsilon, failure in ((300, 4, 10.0, 0.1), (20_000, 5, 1.0, 1 / 20_000), (10**6, 3, 0.2, 1e-6)):
        num = combiner.num_bases(horizon)
        with pytest.warns(UserWarning):
            made = algorithms.bandit_combiner(
                num_arms=K, dim=dim, horizon=horizon, epsilon=epsilon, failure_prob=failure,
                base=functools.partial(algorithms.online_ucb, learner="ogd"),
            )  # fmt: skip
        want = combiner.constants(num, horizon, dim, epsilon, failure)
        np.testing.assert_allclose(made.params.growth, want.C, rtol=1e-10)
        np.testing.assert_allclose(made.params.exponent, want.alpha, rtol=1e-10)
        np.testing.assert_allclose(made.params.penalty, want.R / horizon, rtol=1e-10)


@pytest.mark.parametrize("features", ["unit", "reference"])
def test_the_world_is_that_of_figure_1(features):
    """Norms, means and the first arms; directions are uniform: second moments over arms within four standard errors."""
    x, rewards, theta = world(arms_of((("contexts", "redraw"), ("dim", D), ("features", features))), 0, 2000)
    plain = x[:, D:] if features == "reference" else x
    scale = 1.0 if features == "reference" else math.sqrt(0.5)
    normals = plain[..., :-1] / scale  # already on the sphere
    arms = np.concatenate([np.zeros((2000, x.shape[1] - plain.shape[1], D - 1)) + 1, normals], axis=1)
    want, truth = instance.figure_1(arms, theta[:-1], features=features)
    np.testing.assert_allclose(x, want, atol=1e-7)
    np.testing.assert_allclose(theta, truth, atol=1e-7)
    u = normals.reshape(-1, D - 1)
    assert np.all(np.abs((u**2).mean(0) - 1 / (D - 1)) < 4 * np.sqrt(np.var(u**2, axis=0) / len(u)))
    means = x @ theta
    assert means.min() >= 0 and means.max() <= 1
    assert np.all(np.abs((rewards - means).mean(0) / np.sqrt((means * (1 - means)).sum(0)) * len(means)) < 4)
