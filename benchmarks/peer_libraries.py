"""How `peers.py` plays its problems with other libraries.

Every function takes horizon, number of runs and a seed, and returns the final regrets [runs], in means. A library that
has a harness for repeated runs is used through it (PyMAB's `Experiment`, SMPyBandits' `Evaluator`); the others are
called play by play on rewards that were drawn before. Imports are inside, so that a library may be absent.
"""

import contextlib
import io
import math
import random
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np

MEANS = np.linspace(0.1, 0.9, 10)
GAMMA = 0.05  # of EXP3: mixing, and K times the learning rate
# linear models of five arms with three features; the reward's noise; LinUCB's width and ridge
THETA = np.random.default_rng(3).normal(size=(5, 3))
NOISE_SCALE = 0.5
WIDTH = RIDGE = 1.0

Play = Callable[[int, int, int], np.ndarray]


def play_by_play(policy: Callable[[int], tuple[Callable, Callable]], horizon: int, runs: int, seed: int) -> np.ndarray:
    """Bernoulli arms. policy: from a seed, the functions that choose an arm and that learn a reward."""
    numbers, regrets = np.random.default_rng(seed), []
    for run in range(runs):
        rewards = (numbers.random((horizon, len(MEANS))) < MEANS).astype(float)
        choose, learn = policy(1_000 * seed + run)
        counts = [0] * len(MEANS)
        for reward in rewards:
            arm = choose()
            learn(arm, reward[arm])
            counts[arm] += 1
        regrets.append(np.array(counts) @ (MEANS.max() - MEANS))
    return np.array(regrets)


def linear_play_by_play(policy: Callable[[int], tuple[Callable, Callable]], horizon: int, runs: int, seed: int):
    """Linear models, one context for all arms. policy: its functions take the context [1, d] too."""
    numbers, regrets = np.random.default_rng(seed), []
    for run in range(runs):
        contexts = numbers.normal(size=(horizon, 1, THETA.shape[1])) / math.sqrt(THETA.shape[1])
        means = contexts[:, 0] @ THETA.T
        rewards = means + NOISE_SCALE * numbers.normal(size=(horizon, 1))
        choose, learn = policy(1_000 * seed + run)
        arms = []
        for context, reward in zip(contexts, rewards, strict=True):
            arm = choose(context)
            learn(context, arm, reward[arm])
            arms.append(arm)
        regrets.append((means.max(axis=1) - means[np.arange(horizon), arms]).sum())
    return np.array(regrets)


# ---- PyMAB


def pymab(policy: str, arguments: dict, horizon: int, runs: int, seed: int) -> np.ndarray:
    """PyMAB's own experiment in Rust: an error where it would fall back to Python."""
    import pymab
    from pymab import policies
    from pymab.environments import GaussianContextProvider, LinearContextualEnvironment

    if policy == "LinUCBPolicy":
        provider = GaussianContextProvider(*THETA.shape, 0.0, 1 / math.sqrt(THETA.shape[1]))
        world = LinearContextualEnvironment(THETA, provider, pymab.GaussianReward(NOISE_SCALE))
    else:
        world = pymab.BanditEnvironment(means=MEANS, reward_model=pymab.BernoulliReward())
    config = pymab.ExperimentConfig(horizon=horizon, n_replicates=runs, seed=seed, backend="rust")
    done = pymab.Experiment(environment=world, policies={"p": getattr(policies, policy)(**arguments)}, config=config)
    result = done.run()
    means, actions = result.arm_means, result.actions[:, :, 0]  # [runs, T, K], [runs, T]
    played = np.take_along_axis(means, actions[:, :, None], axis=2)[:, :, 0]
    return (means.max(axis=2) - played).sum(axis=1)


# ---- SMPyBandits


def smpybandits(policy: str, arguments: dict, horizon: int, runs: int, seed: int) -> np.ndarray:
    """SMPyBandits' own evaluator, in one process: its parallel mode fails on Python 3.11."""
    silent = io.StringIO()
    with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # divisions by the pulls of arms that were not played yet
        import matplotlib

        matplotlib.use("Agg")
        from scipy import special

        special.btdtri = special.betaincinv  # of the same arguments; SciPy has dropped the name that it imports
        from SMPyBandits import Policies
        from SMPyBandits.Arms import Bernoulli
        from SMPyBandits.Environment import Evaluator

        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002, the generator that it draws from
        config = {
            "horizon": horizon, "repetitions": runs, "n_jobs": 1, "verbosity": 0, "showplot": False,
            "environment": [{"arm_type": Bernoulli, "params": list(MEANS)}],
            "policies": [{"archtype": getattr(Policies, policy), "params": arguments}],
        }  # fmt: skip
        evaluator = Evaluator(config)
        evaluator.startOneEnv(0, evaluator.envs[0])
    return (MEANS.max() - MEANS) @ evaluator.lastPulls[0][0]  # [K, runs]


# ---- MABWiser, river, GOBRec


def _mabwiser(policy: str, arguments: dict, arms: int, seed: int):
    """A model that `fit` has to be called on once."""
    from mabwiser.mab import MAB, LearningPolicy

    return MAB(list(range(arms)), getattr(LearningPolicy, policy)(**arguments), seed=seed)


def mabwiser(policy: str, arguments: dict, horizon: int, runs: int, seed: int) -> np.ndarray:
    """`predict` and `partial_fit` play by play, every arm once first for UCB1."""

    def one(seed):
        model = _mabwiser(policy, arguments, len(MEANS), seed)
        first = iter(range(len(MEANS) if policy == "UCB1" else 1))
        fit = iter([model.fit])

        def choose():
            arm = next(first, None)
            return model.predict() if arm is None else arm

        return choose, lambda arm, reward: next(fit, model.partial_fit)([arm], [reward])

    return play_by_play(one, horizon, runs, seed)


def mabwiser_linucb(horizon: int, runs: int, seed: int) -> np.ndarray:
    """The same with contexts."""

    def one(seed):
        model = _mabwiser("LinUCB", {"alpha": WIDTH, "l2_lambda": RIDGE}, len(THETA), seed)
        first, fit = iter([0]), iter([model.fit])

        def choose(context):
            arm = next(first, None)
            return model.predict(context) if arm is None else arm

        return choose, lambda context, arm, reward: next(fit, model.partial_fit)([arm], [reward], context)

    return linear_play_by_play(one, horizon, runs, seed)


def river(policy: str, arguments: dict, horizon: int, runs: int, seed: int) -> np.ndarray:
    """`pull` and `update` play by play."""
    from river import bandit, proba, stats

    rewards = {"UCB": stats.Mean, "ThompsonSampling": proba.Beta}

    def one(seed):
        given = {"reward_obj": rewards[policy]()} if policy in rewards else {}
        model, arms = getattr(bandit, policy)(**arguments, **given, seed=seed), list(range(len(MEANS)))
        return lambda: model.pull(arms), model.update

    return play_by_play(one, horizon, runs, seed)


def gobrec_linucb(horizon: int, runs: int, seed: int) -> np.ndarray:
    """`predict` and `fit` play by play, on one thread of the CPU."""
    import torch
    from gobrec.mabs.lin_mabs import LinUCB

    torch.set_num_threads(1)

    def one(seed):
        model = LinUCB(seed=seed, alpha=WIDTH, l2_lambda=RIDGE)
        arms = len(THETA)
        model.fit(np.zeros((arms, THETA.shape[1])), np.arange(arms), np.zeros(arms))  # names the arms, no more
        return (
            lambda context: int(model.predict(context).argmax()),
            lambda context, arm, reward: model.fit(context, np.array([arm]), np.array([reward])),
        )

    return linear_play_by_play(one, horizon, runs, seed)


# ---- our Numba loops


def numba_loop(module: str, name: str, horizon: int, runs: int, seed: int) -> np.ndarray:
    """A loop of `numba_*.py`, hand-written for this algorithm alone."""
    import importlib

    import jaxbandits as jb

    loop = getattr(importlib.import_module(module), name)
    if name == "exp3":
        given = {"learning_rate": GAMMA / len(MEANS), "mixing": GAMMA}
        params = jb.algorithms.exp3(num_arms=len(MEANS), horizon=horizon, **given).params
        return loop(MEANS, params, horizon, runs, seed)
    return loop(MEANS, horizon, runs, seed)


ARMS = {"n_arms": len(MEANS)}
# problem -> library -> how it is played
PLAYS: dict[str, dict[str, Play]] = {
    "UCB1": {
        "PyMAB": partial(pymab, "UCBPolicy", ARMS | {"c": 2.0}),
        "SMPyBandits": partial(smpybandits, "UCB", {}),
        "MABWiser": partial(mabwiser, "UCB1", {"alpha": 1.0}),
        "river": partial(river, "UCB", {"delta": 1.0}),
        "Numba": partial(numba_loop, "numba_stochastic", "ucb1"),
        "Numba (lane by lane)": partial(numba_loop, "numba_loops", "ucb1"),
    },
    "KL-UCB": {
        "PyMAB": partial(pymab, "KLUCBPolicy", ARMS | {"c": 1e-9}),
        "SMPyBandits": partial(smpybandits, "klUCB", {}),
        "Numba": partial(numba_loop, "numba_stochastic", "kl_ucb"),
    },
    "Thompson": {
        "PyMAB": partial(pymab, "BernoulliThompsonSamplingPolicy", ARMS),
        "SMPyBandits": partial(smpybandits, "Thompson", {}),
        "MABWiser": partial(mabwiser, "ThompsonSampling", {}),
        "river": partial(river, "ThompsonSampling", {}),
        "Numba": partial(numba_loop, "numba_stochastic", "thompson"),
    },
    "EXP3, gains": {
        "PyMAB": partial(pymab, "EXP3Policy", ARMS | {"gamma": GAMMA}),
        "SMPyBandits": partial(smpybandits, "Exp3", {"gamma": GAMMA}),
        "river": partial(river, "Exp3", {"gamma": GAMMA}),
    },
    "EXP3, losses": {"Numba": partial(numba_loop, "numba_adversarial", "exp3")},
    "LinUCB, a context an arm": {
        "PyMAB": partial(
            pymab,
            "LinUCBPolicy",
            {"n_arms": len(THETA), "n_features": THETA.shape[1], "alpha": WIDTH, "l2": RIDGE},
        ),
    },
    "LinUCB, one context": {"MABWiser": mabwiser_linucb, "GOBRec": gobrec_linucb},
}
# library -> (module, distribution)
LIBRARIES = {
    "PyMAB": ("pymab", "pymab"),
    "SMPyBandits": ("SMPyBandits", "SMPyBandits"),
    "MABWiser": ("mabwiser", "mabwiser"),
    "river": ("river", "river"),
    "GOBRec": ("gobrec", "gobrec"),
    "Numba": ("numba", "numba"),
    "Numba (lane by lane)": ("numba", "numba"),
}
