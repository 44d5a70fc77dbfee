"""One runnable case for every public factory: it drives the contract tests, the documentation and the audit.

A public factory without a case here fails a test.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import optax

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.sweeps.simulate import algorithm_for
from jaxbandits.validation import nearest


class Example(NamedTuple):
    """Arguments of a small `sweep`."""

    algorithm: Any
    environment: Any
    reward_adversary: Any = None
    message_adversary: Any = None
    horizon: int = 96


_THETA = np.array([0.6, 0.0, -0.8])
_ACTIONS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0, -0.8], [0.6, 0.64, -0.48], [0, -0.6, 0.8]])
_TABLE = 0.5 + 0.4 * np.sin(np.arange(1, 97)[:, None] / 17.0 + np.arange(3))

arms = partial(e.bernoulli_arms, means=[0.2, 0.5, 0.8])
losses = partial(e.bernoulli_losses, means=[0.3, 0.5, 0.5, 0.6])
linear = partial(e.linear_arms, actions=_ACTIONS, theta=_THETA)
bounded = partial(linear, noise="rademacher")
contexts = partial(e.contextual_linear, num_arms=6, dim=3)
federated = partial(e.federated_linear, num_agents=5, num_arms=4, dim=3)


def experts() -> Environment:
    """Six experts over three Bernoulli losses."""
    return e.rotating_experts(losses=e.bernoulli_losses(means=[0.2, 0.5, 0.7]), num_experts=6, rotation=20)


def labelled() -> Environment:
    """Thirty labelled rows of three classes."""
    rng = np.random.default_rng(5)
    labels = np.arange(30) % 3
    return e.classification(features=rng.normal(size=(30, 4)) + labels[:, None], labels=labels, dim=6)


ALGORITHMS: dict[str, Example] = {
    "uniform": Example(a.uniform, arms),
    "ucb1": Example(a.ucb1, arms),
    "thompson": Example(a.thompson, arms),
    "gradient_bandit": Example(partial(a.gradient_bandit, learning_rate=0.4), arms),
    "kl_ucb": Example(a.kl_ucb, arms),
    "moss": Example(a.moss, arms),
    "ldp_ucb": Example(partial(a.ldp_ucb, epsilon=1.0), arms),
    "successive_elimination": Example(partial(a.successive_elimination, noise_scale=0.2), arms),
    "exp3": Example(partial(a.exp3, learning_rate=0.05, mixing=0.1), losses),
    "exp3_ix": Example(a.exp3_ix, losses),
    "tsallis_inf": Example(a.tsallis_inf, losses),
    "htinf": Example(a.htinf, losses),
    "ftpl": Example(a.ftpl, losses),
    "private_batched": Example(partial(a.private_batched, base=a.htinf, epsilon=0.2), losses),
    "hybrid_tsallis_inf": Example(a.hybrid_tsallis_inf, losses),
    "delayed": Example(partial(a.delayed, base=a.tsallis_inf, delay=("uniform", 0, 6), max_delay=5), losses),
    "ldp_exp3": Example(partial(a.ldp_exp3, epsilon=0.5, learning_rate=0.02, mixing=0.1), losses),
    "bandit_to_experts": Example(
        partial(
            a.bandit_to_experts,
            base=partial(a.private_batched, epsilon=0.2, base=partial(a.exp3, learning_rate=0.05, mixing=0.1)),
        ),
        experts,
    ),
    "exp4": Example(a.exp4, experts),
    "local_exp4": Example(partial(a.local_exp4, epsilon=1.0, learning_rate=0.02, mixing=0.1), experts),
    "batched_exp4": Example(
        partial(a.batched_exp4, epsilon=4.0, delta=0.01, window=12, learning_rate=0.2, mixing=0.5), experts
    ),
    "linucb": Example(partial(a.linucb, preset="theory", radius_scale=0.2), contexts),
    "ldp_linucb": Example(partial(a.ldp_linucb, epsilon=1.0, radius_scale=0.2), contexts),
    "jdp_linucb": Example(partial(a.jdp_linucb, epsilon=2.0, tree="binary", radius_scale=0.2), contexts),
    "cw_oful": Example(partial(a.cw_oful, corruption_budget=10.0, radius_scale=0.2), contexts),
    "hvt_linucb": Example(
        partial(a.hvt_linucb, moment_scale=0.8, moment_order=1.5, radius_scale=1e-4),
        partial(contexts, reward="student", df=1.8, noise_scale=0.3),
    ),
    "robust_oful": Example(
        partial(a.robust_oful, moment_scale=0.5, corruption_budget=5.0, radius_scale=1e-4), contexts,
        reward_adversary=partial(v.huber, corruption=0.05, value="inf"),
    ),
    "adac_oful": Example(partial(a.adac_oful, rho=2.0, delta=0.01, radius_scale=0.2), contexts),
    "shuffle_linucb": Example(
        partial(a.shuffle_linucb, protocol="vector", window=7, epsilon=2.0, radius_scale=0.2), contexts
    ),
    "linear_thompson": Example(partial(a.linear_thompson, statistics="ldp", epsilon=1.0), contexts),
    "epsilon_greedy": Example(
        partial(a.epsilon_greedy, statistics="shuffle", protocol="amplified", window=5, epsilon=0.8), contexts
    ),
    "online_ucb": Example(partial(a.online_ucb, epsilon=4.0, min_eigenvalue=0.1), contexts),
    "doubling": Example(
        partial(a.doubling, base=partial(a.online_ucb, epsilon=4.0, min_eigenvalue=0.1, learner="ogd")), contexts
    ),
    "bandit_combiner": Example(
        partial(
            a.bandit_combiner, epsilon=4.0, bonus_scale=0.0, bases=[
                partial(a.doubling, base=partial(a.online_ucb, epsilon=4.0, learner="ogd")),
                partial(a.online_ucb, epsilon=4.0, learner="ogd"),
            ],
        ),
        contexts,
    ),
    "robust_elimination": Example(
        partial(a.robust_elimination, num_batches=3, epsilon=4.0, corruption_bound=0.1),
        bounded,
        message_adversary=partial(v.huber, corruption=0.1, kind="subthreshold", value=1.5), horizon=600,
    ),
    "phased_elimination": Example(partial(a.phased_elimination, epsilon=8.0, noise_scale=0.3), bounded, horizon=600),
    "bogunovic_elimination": Example(partial(a.bogunovic_elimination, corruption_budget=0.0), linear, horizon=900),
    "private_elimination": Example(
        partial(
            a.private_elimination, mechanism="gaussian", epsilon=1.0, delta=0.05, sampling_scale=0.2, noise_scale=0.3
        ),
        bounded, horizon=1000,
    ),
    "adac_gope": Example(
        partial(a.adac_gope, rho=0.5, delta=0.01, failure_prob=0.3, noise_scale=0.3), bounded, horizon=1000
    ),
    "median_elimination": Example(
        partial(a.median_elimination, num_batches=3, epsilon=8.0, corruption_bound=0.02, sampling_scale=0.2), bounded,
        reward_adversary=partial(v.huber, corruption=0.05, value="nan"), horizon=600,
    ),
    "trimmed_elimination": Example(
        partial(a.trimmed_elimination, num_batches=3, epsilon=8.0, corruption_bound=0.02, sampling_scale=0.2), bounded,
        reward_adversary=partial(v.huber, corruption=0.05, value="inf"), horizon=600,
    ),
    "prm_elimination": Example(
        partial(
            a.prm_elimination, moment="central", epsilon=1.0, mean_bound=3.5, moment_bound=0.25, histogram_scale=4.0
        ),
        arms, horizon=400,
    ),
    "isolated_linucb": Example(partial(a.isolated_linucb, window=8), federated),
    "oracle_linucb": Example(
        partial(a.oracle_linucb, window=8, corruption_bound=0.2, width="abbasi_yadkori"), federated,
        message_adversary=partial(v.byzantine, corruption=0.2, kind="nonfinite"),
    ),
    "byzantine_ucb": Example(
        partial(a.byzantine_ucb, window=8, privacy="tree", epsilon=4.0),
        partial(federated, reward="bounded", theta_norm=0.6, noise_scale=0.4),
        message_adversary=partial(v.byzantine, corruption=0.2, kind="target"), horizon=100,
    ),
    "dp_se": Example(partial(a.dp_se, epsilon=1.0), partial(arms, means=[0.48, 0.6]), horizon=3500),
    "adap_ucb": Example(partial(a.adap_ucb, epsilon=1.0), arms, horizon=600),
    "adap_kl_ucb": Example(partial(a.adap_kl_ucb, epsilon=1.0), arms, horizon=600),
    "dp_klucb": Example(partial(a.dp_klucb, epsilon=1.0), arms, horizon=600),
    "dp_imed": Example(partial(a.dp_imed, epsilon=1.0, batch_ratio=1.5, first_batch=4), arms, horizon=600),
    "lazy_dp_ts": Example(partial(a.lazy_dp_ts, epsilon=1.0), arms, horizon=600),
    "dp_ts_ucb": Example(partial(a.dp_ts_ucb, epsilon=4.0, budget=8, delta=0.01), arms, horizon=600),
    "gdp_thompson": Example(partial(a.gdp_thompson, pre_pulls=10, epsilon=4.0, delta=0.01), arms, horizon=200),
    "adac_ucb": Example(partial(a.adac_ucb, rho=0.5, delta=0.01), arms, horizon=600),
    "dist_elimination": Example(partial(a.dist_elimination, epsilon=1.0, radius_scale=0.3), arms, horizon=600),
    "stopping_elimination": Example(
        partial(a.stopping_elimination, noise_scale=0.1, failure_prob=0.2),
        partial(e.gaussian_arms, means=[0.0, 0.34, 0.7], scale=0.3), horizon=600,
    ),
    "local_robust_elimination": Example(
        partial(a.local_robust_elimination, epsilon=2.0, moment_order=math.inf, corruption_after=0.02), arms,
        message_adversary=partial(v.huber, corruption=0.02, kind="target", value="inf"), horizon=600,
    ),
    "dprse": Example(partial(a.dprse, epsilon=1.0, moment_bound=0.02), partial(arms, means=[0.48, 0.6]), horizon=6000),
    "prm_ucb": Example(partial(a.prm_ucb, epsilon=1.0), arms, horizon=600),
    "prm_thompson": Example(
        partial(a.prm_thompson, epsilon=1.0, moment="central", mean_bound=10.0, histogram_scale=1.0),
        partial(e.gaussian_arms, means=[0.0, 0.5, -0.5]),
        horizon=600,
    ),
    "robust_ucb": Example(
        partial(a.robust_ucb, moment_bound=0.2), partial(e.gaussian_arms, means=[0.0, 0.3, 0.6], scale=0.3),
        reward_adversary=partial(v.huber, corruption=0.1, value=3.0),
    ),
    "huber_ucb": Example(
        partial(a.huber_ucb, noise_scale=0.3, min_pulls_scale=0.5),
        partial(e.gaussian_arms, means=[0.0, 0.3, 0.6], scale=0.3),
    ),
    "multilayer_elimination": Example(partial(a.multilayer_elimination, width_scale=0.1), arms, horizon=600),
    "barbar": Example(partial(a.barbar, length_scale=1 / 2048), arms, horizon=600),
    "cr_ucb": Example(partial(a.cr_ucb, noise_scale=0.3, corruption_bound=0.1), arms),
    "crimed": Example(
        partial(a.crimed, noise_scale=0.3), partial(e.gaussian_arms, means=[0.0, 0.3, 0.6], scale=0.3),
        reward_adversary=partial(v.huber, corruption=0.05, value="inf"),
    ),
}  # fmt: skip

# Further cases of algorithms that take an optax transformation. One object each: two equal calls of optax are unequal.
OPTIMIZED: dict[str, Example] = {
    "gradient_bandit by adam": Example(partial(a.gradient_bandit, optimizer=optax.adam(0.1)), arms),
    "online_ucb by adam": Example(
        partial(a.online_ucb, epsilon=4.0, min_eigenvalue=0.1, learner=optax.adam(0.1)), contexts
    ),
    "doubling by momentum": Example(
        partial(a.doubling, base=partial(a.online_ucb, epsilon=4.0, learner=optax.sgd(0.01, momentum=0.9))), contexts
    ),
}

ENVIRONMENTS: dict[str, Example] = {
    "bernoulli_arms": Example(a.ucb1, arms),
    "gaussian_arms": Example(a.ucb1, partial(e.gaussian_arms, means=[0.0, 0.5])),
    "student_arms": Example(a.ucb1, partial(e.student_arms, means=[0.0, 0.5], scale=0.5)),
    "pareto_arms": Example(a.ucb1, partial(e.pareto_arms, means=[0.9, 0.5, 0.1])),
    "lognormal_arms": Example(a.ucb1, partial(e.lognormal_arms, means=[0.9, 0.5, 0.1])),
    "linear_arms": Example(a.ucb1, partial(linear, noise="rademacher")),
    "contextual_linear": Example(
        a.linucb, partial(contexts, contexts="fixed", features="reference", reward="gaussian")
    ),
    "federated_linear": Example(partial(a.isolated_linucb, window=8), partial(federated, reward="bounded")),
    "loss_table": Example(a.exp3_ix, partial(e.loss_table, losses=_TABLE)),
    "fixed_gap_losses": Example(a.exp3_ix, partial(e.fixed_gap_losses, num_arms=3, best=1)),
    "switching_losses": Example(a.exp3_ix, partial(e.switching_losses, num_arms=3, cuts=[0, 40, 70], arms=[0, 2, 1])),
    "sinusoid_losses": Example(
        partial(a.private_batched, epsilon=0.1), partial(e.sinusoid_losses, num_arms=3, period=30)
    ),
    "bernoulli_losses": Example(a.exp3_ix, losses),
    "lemma51_losses": Example(a.exp3_ix, partial(e.lemma51_losses, change=40, primed=True)),
    "rotating_experts": Example(partial(a.bandit_to_experts, base=a.exp3), experts),
    "classification": Example(a.exp3, labelled),
}

ADVERSARIES: dict[str, Example] = {
    "huber": Example(a.ucb1, arms, reward_adversary=partial(v.huber, corruption=0.2, kind="fixed", value="inf")),
    "byzantine": Example(
        partial(a.byzantine_ucb, window=8, aggregate="krum", corruption_bound=0.2), federated,
        message_adversary=partial(v.byzantine, corruption=0.4, kind="noise", scale=2.0, prob=0.5),
    ),
    "poison": Example(
        partial(a.byzantine_ucb, window=8, aggregate="median_of_means", corruption_bound=0.2), federated,
        reward_adversary=partial(v.poison, corruption=0.2, prob=0.5),
    ),
    "budgeted": Example(a.ucb1, arms, reward_adversary=partial(v.budgeted, total=4.0, size=0.5)),
}  # fmt: skip

EVERYTHING: dict[str, Example] = {**ALGORITHMS, **OPTIMIZED, **ENVIRONMENTS, **ADVERSARIES}


def case(name: str, **changes: Any) -> tuple[Algorithm, Environment]:
    """An algorithm of the catalogue and its environment.

    Parameters
    ----------
    name : str
        The algorithm's name.
    **changes
        Arguments of its factory that replace the catalogue's.

    Raises
    ------
    ValueError
        For an unknown name.

    Examples
    --------
    >>> case("ldp_ucb")[0].guarantee.model
    'local'
    """
    if name not in ALGORITHMS:
        hint = nearest(name, ALGORITHMS)
        raise ValueError(f"no algorithm is called {name!r}{hint}: `jaxbandits list algorithms` names them")
    row = ALGORITHMS[name]
    environment = row.environment()
    return algorithm_for(partial(row.algorithm, horizon=row.horizon, **changes), environment), environment


def private() -> list[str]:
    """The algorithms with a guarantee."""
    return [name for name in ALGORITHMS if case(name)[0].guarantee.model != "none"]
