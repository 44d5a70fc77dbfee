"""One runnable case for every public factory: it drives the contract tests, the documentation and the audit.

A public factory without a case here fails a test.
"""

from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import optax

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import declared
from jaxbandits import environments as e
from jaxbandits.environments.logs import Log
from jaxbandits.formatting import nearest
from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.sweeps.simulate import algorithm_for
from jaxbandits.typing import AdversaryFactory, AlgorithmFactory, EnvironmentFactory, Vector
from jaxbandits.validation import plays_on


class SmallSweep(NamedTuple):
    """Arguments of a small `sweep`."""

    algorithm: AlgorithmFactory
    environment: EnvironmentFactory
    reward_adversary: "AdversaryFactory | None" = None
    message_adversary: "AdversaryFactory | None" = None
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


def experts(num_experts: int = 6, means: Vector = (0.2, 0.5, 0.7)) -> Environment:
    """Experts over Bernoulli losses."""
    return e.rotating_experts(losses=e.bernoulli_losses(means=means), num_experts=num_experts, rotation=20)


def table_of_rewards() -> Environment:
    """Thirty rows with the rewards of three arms."""
    features = np.sin(np.arange(30)[:, None] * [1.0, 2.3, 3.1])
    return e.contextual_table(features=features, rewards=0.5 + 0.4 * np.roll(features, 1, axis=1))


def model_of_a_log() -> Environment:
    """A model of sixty choices among three arms."""
    features, arm = np.sin(np.arange(60)[:, None] * [1.0, 2.3]), np.arange(60, dtype=np.int32) % 3
    paid = (features[:, 0] + arm > 1).astype(float)
    return e.fitted(log=Log(features, arm, paid, None, ("0", "1", "2"), ("first", "second")))


def rows(num_arms: int = 3, dim: int = 5) -> Environment:
    """Ten rows of each class, of dim - 1 features."""
    labels = np.arange(10 * num_arms) % num_arms
    features = np.random.default_rng(5).normal(size=(len(labels), dim - 1)) + labels[:, None]
    return e.classification(features=features, labels=labels)


# What an algorithm plays on in its case, unless its example names another world.
WORLDS: dict[str, Any] = {
    "arms": arms, "losses": losses, "linear": linear, "bounded": bounded, "contexts": contexts, "federated": federated,
    "experts": experts, "rows": rows,
}  # fmt: skip
# Of each kind the world, and what of an algorithm's arguments that world must have, too.
NATURAL = {
    "arms": ("arms", ("num_arms",)),
    "row": ("rows", ("num_arms", "dim")),
    "decision set": ("contexts", ("num_arms", "dim")),
    "fixed set": ("bounded", ("actions",)),
    "advice": ("experts", ("num_arms", "num_experts")),
    "agents": ("federated", ("num_agents", "num_arms", "dim")),
}


def natural(kind: str, arguments: Mapping[str, Any]) -> EnvironmentFactory:
    """A small environment of a kind that algorithms play on, with the sizes among an algorithm's arguments."""
    world, needed = NATURAL[kind]
    environment: Any = WORLDS[world]
    sizes = {name: arguments[name] for name in needed if arguments.get(name) is not None}
    if kind in ("arms", "advice") and "num_arms" in sizes:
        many = sizes.pop("num_arms")
        sizes |= {"means": np.linspace(0.2, 0.8, many)} if isinstance(many, int) and many > 1 else {}
    return partial(environment, **sizes) if sizes else environment


def _resolve_factory(given: Any, module: ModuleType) -> Any:
    """A factory of a module: given by its name, or as {"name": ..., arguments}, or a list of such."""
    if isinstance(given, list):
        return [_resolve_factory(one, module) for one in given]
    if isinstance(given, str):
        return getattr(module, given)
    name, keywords = given["name"], {key: value for key, value in given.items() if key != "name"}
    return partial(getattr(module, name), **_arguments(keywords))


def _arguments(given: dict[str, Any]) -> dict[str, Any]:
    """Arguments with the algorithms among them by themselves, not by name."""
    return {key: _resolve_factory(value, a) if key in ("base", "bases") else value for key, value in given.items()}


def _case_of_factory(name: str) -> SmallSweep:
    """The case that an algorithm's factory declares."""
    factory: Any = getattr(a, name)
    small = factory.example or declared.Example()
    world = small.world or NATURAL[plays_on(factory)][0]
    named, changes = (world, {}) if isinstance(world, str) else world
    environment: Any = WORLDS.get(named) or getattr(e, named)
    algorithm = partial(factory, **_arguments(small.arguments)) if small.arguments else factory
    environment = partial(environment, **changes) if changes else environment
    attacks = (small.reward_adversary, small.message_adversary)
    reward, message = (None if attack is None else _resolve_factory(attack, v) for attack in attacks)
    return SmallSweep(algorithm, environment, reward, message, small.horizon)


ALGORITHMS: dict[str, SmallSweep] = {name: _case_of_factory(name) for name in a.__all__}

# Further cases of algorithms that take an optax transformation. One object each: two equal calls of optax are unequal.
_BY_ADAM = partial(a.online_ucb, epsilon=4.0, min_eigenvalue=0.1, learner=optax.adam(0.1))
_BY_MOMENTUM = partial(a.online_ucb, epsilon=4.0, learner=optax.sgd(0.01, momentum=0.9))
OPTIMIZED: dict[str, SmallSweep] = {
    "gradient_bandit by adam": SmallSweep(partial(a.gradient_bandit, optimizer=optax.adam(0.1)), arms),
    "online_ucb by adam": SmallSweep(_BY_ADAM, contexts),
    "doubling by momentum": SmallSweep(partial(a.doubling, base=_BY_MOMENTUM), contexts),
}

# Further cases of algorithms that have a model of every arm where plays show rows.
PER_ARM: dict[str, SmallSweep] = {
    "linucb per arm": SmallSweep(a.linucb, rows),
    "linear_thompson per arm": SmallSweep(a.linear_thompson, rows),
    "ldp_linucb per arm": SmallSweep(partial(a.ldp_linucb, epsilon=10.0), rows),
    "jdp_linucb per arm": SmallSweep(partial(a.jdp_linucb, epsilon=10.0, tree="binary"), rows),
}

_REFERENCE = partial(contexts, contexts="fixed", features="reference", reward="gaussian")
_SWITCHING = partial(e.switching_losses, num_arms=3, cuts=[0, 40, 70], arms=[0, 2, 1])
_SINUSOID = partial(e.sinusoid_losses, num_arms=3, period=30)
ENVIRONMENTS: dict[str, SmallSweep] = {
    "bernoulli_arms": SmallSweep(a.ucb1, arms),
    "gaussian_arms": SmallSweep(a.ucb1, partial(e.gaussian_arms, means=[0.0, 0.5])),
    "student_arms": SmallSweep(a.ucb1, partial(e.student_arms, means=[0.0, 0.5], scale=0.5)),
    "pareto_arms": SmallSweep(a.ucb1, partial(e.pareto_arms, means=[0.9, 0.5, 0.1])),
    "lognormal_arms": SmallSweep(a.ucb1, partial(e.lognormal_arms, means=[0.9, 0.5, 0.1])),
    "linear_arms": SmallSweep(a.ucb1, partial(linear, noise="rademacher")),
    "contextual_linear": SmallSweep(a.linucb, _REFERENCE),
    "federated_linear": SmallSweep(partial(a.isolated_linucb, window=8), partial(federated, reward="bounded")),
    "loss_table": SmallSweep(a.exp3_ix, partial(e.loss_table, losses=_TABLE)),
    "fixed_gap_losses": SmallSweep(a.exp3_ix, partial(e.fixed_gap_losses, num_arms=3, best=1)),
    "switching_losses": SmallSweep(a.exp3_ix, _SWITCHING),
    "sinusoid_losses": SmallSweep(partial(a.private_batched, epsilon=0.1), _SINUSOID),
    "bernoulli_losses": SmallSweep(a.exp3_ix, losses),
    "lemma51_losses": SmallSweep(a.exp3_ix, partial(e.lemma51_losses, change=40, primed=True)),
    "rotating_experts": SmallSweep(partial(a.bandit_to_experts, base=a.exp3), experts),
    "classification": SmallSweep(a.exp3, rows),
    "contextual_table": SmallSweep(a.ucb1, table_of_rewards),
    "fitted": SmallSweep(a.ucb1, model_of_a_log),
}

_AGENTS = partial(a.byzantine_ucb, window=8, corruption_bound=0.2)
_NOISY_AGENTS = partial(v.byzantine, corruption=0.4, kind="noise", scale=2.0, prob=0.5)
_POISON = partial(v.poison, corruption=0.2, prob=0.5)
ADVERSARIES: dict[str, SmallSweep] = {
    "huber": SmallSweep(a.ucb1, arms, reward_adversary=partial(v.huber, corruption=0.2, kind="fixed", value="inf")),
    "byzantine": SmallSweep(partial(_AGENTS, aggregate="krum"), federated, message_adversary=_NOISY_AGENTS),
    "poison": SmallSweep(partial(_AGENTS, aggregate="median_of_means"), federated, reward_adversary=_POISON),
    "budgeted": SmallSweep(a.ucb1, arms, reward_adversary=partial(v.budgeted, total=4.0, size=0.5)),
}

EVERYTHING: dict[str, SmallSweep] = {**ALGORITHMS, **OPTIMIZED, **PER_ARM, **ENVIRONMENTS, **ADVERSARIES}


def case(name: str, **changes: object) -> tuple[Algorithm, Environment]:
    """An algorithm of the catalogue and its environment; changes: of its arguments. ValueError for an unknown name.

    >>> case("ldp_ucb")[0].guarantee.model
    'local'
    """
    if name not in ALGORITHMS:
        hint = nearest(name, ALGORITHMS)
        raise ValueError(f"no algorithm is called {name!r}{hint}: `jaxbandits list algorithms` names them")
    row = ALGORITHMS[name]
    environment = row.environment()
    return algorithm_for(partial(row.algorithm, **{"horizon": row.horizon} | changes), environment), environment


def private() -> list[str]:
    """The algorithms with a guarantee."""
    return [name for name in ALGORITHMS if case(name)[0].guarantee.model != "none"]
