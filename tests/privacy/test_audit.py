"""The audit proves tight claims nearly spent, never more than spent, and catches every mutant of the table."""

import importlib
import math
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from dealt import dealt
from scipy.stats import binom, norm
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits import catalogue
from jaxbandits.auditing import Edit, confidence_bounds, neighbours, scores, transcripts
from jaxbandits.auditing.differences import Differences
from jaxbandits.cli import main
from jaxbandits.commands import audit as table
from jaxbandits.mechanisms import compose, counter, gaussian_event, gaussian_scale
from jaxbandits.numerics.packed import pack
from jaxbandits.privacy import epsilon_or_nan
from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.random import Draws
from jaxbandits.reports import layout

a, e = jb.algorithms, jb.environments
RUNS = 20_000
FAMILY = 100  # audits that CI makes, at most: together they refute a true claim with probability 0.1%
CONFIDENCE = 1 - 1e-3 / FAMILY
ACTIONS = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]
SMALL = {"num_arms": 2, "horizon": 40}
USERS = SMALL | {"dim": 2}
ROWS = {"num_arms": 3, "dim": 2, "models": "per_arm", "delta": 0.2}
BATCHES = {"actions": ACTIONS, "horizon": 40, "num_batches": 2, "epsilon": 1.0}
CONCENTRATED = {"rho": 0.5 / gaussian_scale(1.0, 1.0, 0.1, "analytic") ** 2, "delta": 0.1}
TEAM = {"num_agents": 3, "num_arms": 2, "dim": 2, "window": 4, "epsilon": 1.0, "delta": 0.2}


@pytest.fixture(scope="module", autouse=True)
def _a_little_optimized():
    """An audit calls its program up to a hundred times, on thousands of runs: optimized a little, it is ten times as
    fast, and hardly dearer to compile. The rule of differences, a program more for each audit, has its own tests.
    """

    def find(algorithm, environment):
        assert isinstance(algorithm, Algorithm) and isinstance(environment, Environment)
        return Differences((), True, 0, 0, math.inf, 0.0, math.inf, "")

    function = transcripts._many.__wrapped__
    with pytest.MonkeyPatch.context() as patch:
        options = {"xla_backend_optimization_level": 1}
        patch.setattr(transcripts, "_many", jax.jit(function, static_argnums=0, compiler_options=options))
        patch.setattr(importlib.import_module("jaxbandits.auditing.audit"), "find_differences", find)
        yield


# one release for each private input, at epsilon 1: label -> what is audited and the runs its bound needs
TIGHT = {
    "ldp_exp3": (partial(a.ldp_exp3, **SMALL, epsilon=1.0, learning_rate=0.02, mixing=0.1), 2 * RUNS),
    "local_exp4": (
        partial(a.local_exp4, **SMALL, num_experts=3, epsilon=1.0, learning_rate=0.02, mixing=0.1), 2 * RUNS),
    "ldp_ucb": (partial(a.ldp_ucb, **SMALL, epsilon=1.0), 2 * RUNS),
    "ldp_ucb, flips": (partial(a.ldp_ucb, **SMALL, epsilon=1.0, mechanism="randomized_response"), 2 * RUNS),
    "private_batched": (partial(a.private_batched, **SMALL, epsilon=1.0, window=4), 2 * RUNS),
    "robust_elimination": (partial(a.robust_elimination, **BATCHES), 2 * RUNS),
    "robust_elimination, M2": (partial(a.robust_elimination, **BATCHES, model="M2"), 2 * RUNS),
    "phased_elimination": (partial(a.phased_elimination, actions=ACTIONS, horizon=40, epsilon=1.0), 2 * RUNS),
    # at the catalogue's epsilon = 8 no bound from this many runs could refute them
    "median_elimination": (partial(a.median_elimination, **BATCHES), 2 * RUNS),
    "trimmed_elimination": (partial(a.trimmed_elimination, **BATCHES), 2 * RUNS),
    "bandit_to_experts": (
        partial(a.bandit_to_experts, **SMALL, num_experts=3, base=partial(a.private_batched, epsilon=1.0, window=4)),
        2 * RUNS),
    "adap_ucb": (partial(a.adap_ucb, **SMALL, epsilon=1.0), 2 * RUNS),
    "adap_kl_ucb": (partial(a.adap_kl_ucb, **SMALL, epsilon=1.0), 2 * RUNS),
    # delta such that the best event is not rare
    "adac_ucb": (partial(a.adac_ucb, **SMALL, **CONCENTRATED), 2 * RUNS),
    "adac_gope": (
        partial(a.adac_gope, actions=ACTIONS, horizon=60, failure_prob=0.5, noise_scale=0.1, **CONCENTRATED), 4 * RUNS),
    "adac_oful": (partial(a.adac_oful, **USERS, **CONCENTRATED), 4 * RUNS),
    "dist_elimination": (partial(a.dist_elimination, num_arms=2, horizon=40, epsilon=1.0), 2 * RUNS),
    "dp_klucb": (partial(a.dp_klucb, **SMALL, epsilon=1.0), 2 * RUNS),
    "dp_imed": (partial(a.dp_imed, **SMALL, epsilon=1.0), 2 * RUNS),
    "lazy_dp_ts": (partial(a.lazy_dp_ts, **SMALL, epsilon=1.0), 2 * RUNS),
    # as many draws that depend on the first reward as the claim counts
    "dp_ts_ucb": (partial(a.dp_ts_ucb, num_arms=2, horizon=4, budget=2, epsilon=1.0, delta=0.1), 2 * RUNS),
    "gdp_thompson": (partial(a.gdp_thompson, num_arms=2, horizon=3, pre_pulls=1, epsilon=1.0, delta=0.1), 2 * RUNS),
    "dp_se": (partial(a.dp_se, num_arms=2, horizon=1000, epsilon=1.0, failure_prob=0.9), 2 * RUNS),
    "prm_elimination": (partial(a.prm_elimination, **SMALL, epsilon=1.0), 2 * RUNS),
    "prm_ucb": (partial(a.prm_ucb, **SMALL, epsilon=1.0), 2 * RUNS),
    "prm_thompson": (partial(a.prm_thompson, **SMALL, epsilon=1.0), 2 * RUNS),
    # a tree of one node: two episodes, one release
    "byzantine_ucb": (partial(a.byzantine_ucb, **TEAM, horizon=8, privacy="tree"), 4 * RUNS),
    "online_ucb": (partial(a.online_ucb, **USERS, epsilon=1.0, delta=0.2, learner="ogd"), 4 * RUNS),
    "online_ucb, reward": (
        partial(a.online_ucb, **USERS, epsilon=1.0, delta=0.2, learner="ogd", private_features=False), 4 * RUNS),
    "ldp_linucb": (partial(a.ldp_linucb, **USERS, delta=0.2, epsilon=1.0), 4 * RUNS),
    "epsilon_greedy": (partial(a.epsilon_greedy, **USERS, delta=0.2, statistics="ldp", epsilon=1.0), 4 * RUNS),
    "linear_thompson": (partial(a.linear_thompson, **USERS, delta=0.2, statistics="ldp", epsilon=1.0), 4 * RUNS),
    # a batch of one user: its sum is that user's message
    "shuffle_linucb, alone": (
        partial(a.shuffle_linucb, **USERS, delta=0.2, protocol="amplified", window=1, epsilon=1.0), 4 * RUNS),
    # three nodes of the tree, each released by itself: Gaussian noise composes exactly
    "jdp_linucb": (
        partial(a.jdp_linucb, num_arms=2, dim=2, horizon=7, delta=0.2, tree="binary", epsilon=1.0), 8 * RUNS),
    # all running sums are one Gaussian release of the first message, whose column is the longest
    "jdp_linucb, blt": (partial(a.jdp_linucb, num_arms=2, dim=2, horizon=7, delta=0.2, epsilon=1.0), 4 * RUNS),
    "byzantine_ucb, blt": (partial(a.byzantine_ucb, **TEAM, horizon=32, privacy="counter"), 4 * RUNS),
    "doubling": (
        partial(a.doubling, **USERS, base=partial(a.online_ucb, epsilon=1.0, delta=0.2, learner="ogd")), 4 * RUNS),
}  # fmt: skip


# Claims on code that another claim is audited on in every run: the same clients, statistics or noise.
KIN = [
    "robust_elimination, M2", "median_elimination", "trimmed_elimination", "adac_gope", "adap_kl_ucb", "dp_imed",
    "prm_elimination", "prm_thompson", "epsilon_greedy", "linear_thompson", "shuffle_linucb, alone", "doubling",
    "jdp_linucb, blt", "byzantine_ucb, blt", "online_ucb, reward", "ldp_ucb, flips", "bandit_to_experts", "adac_oful",
]  # fmt: skip


@pytest.mark.parametrize("label", dealt(TIGHT, 7, always=[label for label in TIGHT if label not in KIN]))
def test_a_tight_claim_is_nearly_proven_spent(label):
    factory, runs = TIGHT[label]
    found = jb.audit(factory(), runs=runs, confidence=0.95)
    assert found.claimed[0] == pytest.approx(1.0, abs=1e-6)
    assert found.epsilon_lower >= 0.85
    # the counts of the same runs at the confidence of the whole file
    counts = found.event.true_positives, found.event.false_positives, found.event.trials
    assert confidence_bounds.epsilon_lower(*counts, found.delta, CONFIDENCE) <= found.claimed[0]


PRIVATE = catalogue.private()
# algorithms whose claim is not audited above
ONLY_HERE = [name for name in PRIVATE if name not in {label.split(",")[0] for label in TIGHT} | {"bandit_combiner"}]


@pytest.mark.parametrize("name", dealt(PRIVATE, 7, always=ONLY_HERE))
def test_no_claim_of_the_catalogue_is_refuted(name):
    algorithm, environment = catalogue.case(name)
    found = jb.audit(algorithm, runs=RUNS, confidence=CONFIDENCE, environment=environment)
    print(found, f"ratio {found.ratio:.2f}")
    assert 0 <= found.claimed[0] < np.inf
    assert not found.refuted


class Mutant(NamedTuple):
    family: str
    mutate: Any  # algorithm -> algorithm
    runs: int = RUNS


def params_times(field, factor):
    """A leaf of the parameters changed behind the accountant's back."""

    def mutate(algorithm):
        changed = {field: factor * getattr(algorithm.params, field)}
        return algorithm._replace(params=algorithm.params._replace(**changed))

    return mutate


def program_with(**changes):
    """Functions of the program wrapped: name -> (original, program) -> function."""

    def mutate(algorithm):
        program = algorithm.program
        wrapped = {name: change(getattr(program, name), program) for name, change in changes.items()}
        return algorithm._replace(program=program._replace(**wrapped))

    mutate.changes_code = True
    return mutate


def silent(params):
    return params._replace(mechanism_scale=0.0)


def statistics_times(**factors):
    """Leaves of a linear bandit's statistics, of the same name or not, changed behind the accountant's back."""

    def mutate(algorithm):
        own = algorithm.params.statistics
        own = own._replace(**{field: factor * getattr(own, field) for field, factor in factors.items()})
        return algorithm._replace(params=algorithm.params._replace(statistics=own))

    return mutate


def noise_after(encode, program):
    """A client that sends the clean message."""
    return lambda params, *args: encode(silent(params), *args)


def late(kind, scale):
    """The server that adds the noise instead: a kind of draw times a leaf of the parameters."""

    def change(update, program):
        def noisy(params, state, draws, t, note, message, used):
            noise = getattr(params, scale) * getattr(draws.child("late"), kind)(t)
            return update(params, state, draws, t, note, jax.tree.map(lambda x: x + noise, message), used)

        return noisy

    return change


late_laplace, late_normal = late("laplace", "noise_scale"), late("normal", "mechanism_scale")


def clean_release(update, program):
    """Noise for the learner only: what is released is clean."""

    def clean(params, *args):
        return update(params, *args)[0], update(silent(params), *args)[1]

    return clean


def one_address(function, program):
    """The draws of every play are those of play 1. Client and server take t at different places."""

    def encode(params, note, draws, t, *args):
        return function(params, note, draws, jnp.ones_like(t), *args)

    def update(params, state, draws, t, *args):
        return function(params, state, draws, jnp.ones_like(t), *args)

    return encode if function is program.encode else update


def sent_twice(encode, program):
    return lambda params, note, draws, *args: (
        encode(params, note, draws, *args), encode(params, note, draws.child("again"), *args),
    )  # fmt: skip


def first_used(update, program):
    return lambda params, state, draws, t, note, message, used: update(params, state, draws, t, note, message[0], used)


def released_twice(update, program):
    def twice(params, state, draws, *args):
        after, first = update(params, state, draws, *args)
        return after, (first, update(params, state, draws.child("again"), *args)[1])

    return twice


def unclipped_loss(encode, program):
    """The clients of `Loss` without their clip."""

    def raw(params, note, draws, t, context, action, reward, play):
        noise = encode(params, note, draws, t, context, action, jnp.ones_like(reward), play)  # loss 0
        return noise._replace(total=noise.total + jnp.sum(jnp.where(play, 1 - reward, 0)))

    return raw


def unclipped_reward(encode, program):
    def raw(params, note, draws, t, context, action, reward, play):
        return reward[0] + encode(params, note, draws, t, context, action, jnp.zeros_like(reward), play)

    return raw


def unclipped_response(encode, program):
    """The clients of `online_ucb` whose reward is sent whatever it is."""

    def raw(params, note, draws, t, context, action, reward, play):
        sent = encode(params, note, draws, t, context, action, jnp.zeros_like(reward), play)
        return sent._replace(response=sent.response + jnp.where(jnp.isfinite(reward[0]), reward[0], 0))

    return raw


def unclipped_pair(encode, program):
    """The clients of linear bandits whose reward is sent whatever it is: x y is linear in y."""

    def raw(params, note, draws, t, context, action, reward, play):
        zero, one = (encode(params, note, draws, t, context, action, jnp.full_like(reward, y), play) for y in (0, 1))
        paid = jnp.where(jnp.isfinite(reward), reward, 0)
        vector = tuple(u + paid * (v - u) for u, v in zip(zero.vector, one.vector, strict=True))
        return zero._replace(vector=vector)

    return raw


def unbounded_message(update, program):
    """The server of `byzantine_ucb` that adds messages of any norm."""

    def raw(params, state, draws, t, note, message, used):
        after, (gram, vector) = update(params, state, draws, t, note, jax.tree.map(jnp.zeros_like, message), used)
        own = pack(message.gram), message.vector
        after = after._replace(gram=after.gram + own[0], vector=after.vector + own[1])
        return after, (gram + own[0], vector + own[1])

    return raw


def never_forgotten(update, program):
    """The server of `private_batched` that keeps a batch's losses for the batches after it."""

    def kept(params, state, draws, t, note, message, used):
        after, released = update(params, state, draws, t, note, message, used)
        return after._replace(total=state.total + message.total), released

    return kept


def missing_answer(encode, program):
    """Clients that say so where they have no reward, or no feature."""

    def told(params, note, draws, t, context, action, reward, play):
        sent = encode(params, note, draws, t, context, action, reward, play)
        there = jnp.isfinite(reward[0]) & jnp.all(jnp.isfinite(context[0, action[0]]))
        return jax.tree.map(lambda x: jnp.where(there, x, jnp.nan), sent)

    return told


def one_block(noisy, clean, arm):
    """Of blocks with an axis of the arms at their end, the noisy one of an arm beside the clean ones of the others."""

    def choose(x, y):
        own = jnp.arange(x.shape[-1], dtype=arm.dtype) == arm
        return jnp.where(own.reshape((1,) * (x.ndim - 1) + own.shape), x, y)

    return jax.tree.map(choose, noisy, clean)


def noise_on_one_block(encode, program):
    """Clients with a model of every arm whose noise is on the block of their own arm alone."""

    def told(params, note, draws, t, context, action, *args):
        noisy, clean = (encode(p, note, draws, t, context, action, *args) for p in (params, silent(params)))
        return one_block(noisy, clean, action[0])

    return told


def noise_on_one_release(update, program):
    """A server with a model of every arm that adds noise to the sums of the played arm alone."""

    def told(params, state, draws, t, note, message, used):
        after, noisy = update(params, state, draws, t, note, message, used)
        _, clean = update(silent(params), state, draws, t, note, message, used)
        return after, one_block(noisy, clean, jnp.argmax(message.gram[0][0] + message.gram[2][0]))

    return told


half = params_times("mechanism_scale", 0.5)
HALVED = [
    "ldp_exp3", "local_exp4", "ldp_ucb", "ldp_ucb, flips", "robust_elimination", "robust_elimination, M2",
    "phased_elimination",
    "median_elimination", "trimmed_elimination", "private_batched", "adap_ucb", "adac_ucb", "lazy_dp_ts",
    "dist_elimination", "adac_gope", "adac_oful", "dp_klucb", "dp_imed",
    "dp_ts_ucb", "gdp_thompson",
    "byzantine_ucb", "online_ucb",
    "online_ucb, reward",
    "ldp_linucb", "linear_thompson", "jdp_linucb", "jdp_linucb, blt", "byzantine_ucb, blt", "doubling",
    "bandit_combiner",
]  # fmt: skip
MUTANTS = {
    **{f"half noise, {family}": Mutant(family, half) for family in HALVED},
    "missing clip, ldp_exp3": Mutant("ldp_exp3", program_with(encode=unclipped_loss)),
    "missing clip, ldp_ucb": Mutant("ldp_ucb", program_with(encode=unclipped_reward)),
    "missing clip, private_batched": Mutant("private_batched", program_with(encode=unclipped_loss)),
    "missing clip, byzantine_ucb": Mutant("byzantine_ucb", program_with(update=unbounded_message)),
    "reused address, ldp_exp3": Mutant("ldp_exp3", program_with(encode=one_address)),
    "reused address, phased_elimination": Mutant("phased_elimination", program_with(encode=one_address)),
    "reused address, private_batched": Mutant("private_batched", program_with(update=one_address)),
    "reused address, byzantine_ucb": Mutant("byzantine_ucb, long", program_with(update=one_address)),
    "sensitivity off by 2, robust_elimination": Mutant("robust_elimination", params_times("noise_scale", 0.5)),
    "sensitivity off by 2, phased_elimination": Mutant("phased_elimination", params_times("noise_scale", 0.5)),
    "sensitivity off by 2, private_batched": Mutant("private_batched", params_times("noise_scale", 0.5)),
    "sensitivity off by 2, byzantine_ucb": Mutant("byzantine_ucb", params_times("node_scale", 0.5)),
    # what one release needs, without the column norm
    "no column norm, byzantine_ucb": Mutant(
        "byzantine_ucb, blt", params_times("node_scale", 1 / counter(horizon=7, error="mean").column_norm), 4 * RUNS
    ),
    "no column norm, jdp_linucb": Mutant(
        "jdp_linucb, blt",
        statistics_times(**dict.fromkeys(("diagonal", "off_diagonal", "vector"), 1 / counter(horizon=7).column_norm)),
        4 * RUNS,
    ),
    "wrong side, ldp_exp3": Mutant("ldp_exp3", program_with(encode=noise_after, update=late_laplace)),
    "wrong side, ldp_ucb": Mutant("ldp_ucb", program_with(encode=noise_after, update=late_laplace)),
    "wrong side, private_batched": Mutant("private_batched", program_with(update=clean_release)),
    "wrong side, byzantine_ucb": Mutant("byzantine_ucb", program_with(update=clean_release)),
    "spent twice, ldp_exp3": Mutant("ldp_exp3", program_with(encode=sent_twice, update=first_used)),
    "spent twice, ldp_ucb": Mutant("ldp_ucb", program_with(encode=sent_twice, update=first_used)),
    "spent twice, private_batched": Mutant("private_batched", program_with(update=released_twice)),
    "spent twice, later batches, private_batched": Mutant("private_batched", program_with(update=never_forgotten)),
    "spent twice, adap_ucb": Mutant("adap_ucb", program_with(update=released_twice)),
    "spent twice, byzantine_ucb": Mutant("byzantine_ucb", program_with(update=released_twice), 4 * RUNS),
    # too little noise on the shares of the bins: released with the mean is the edge that they choose
    "quiet bins, prm_elimination": Mutant("prm_elimination, central", params_times("count_scale", 0.1)),
    "quiet bins, prm_ucb": Mutant("prm_ucb, central", params_times("count_scale", 0.1)),
    # users: pairs (x, y)
    "half noise, vector": Mutant("vector", half, 4 * RUNS),
    "half noise, amplified": Mutant("amplified", half, 4 * RUNS),
    "missing clip of features, online_ucb": Mutant("online_ucb", params_times("feature_norm", 1e6)),
    "missing clip of features, ldp_linucb": Mutant("ldp_linucb", statistics_times(feature_norm=1e6)),
    "missing clip of rewards, online_ucb": Mutant("online_ucb", program_with(encode=unclipped_response)),
    "missing clip of rewards, reward": Mutant("online_ucb, reward", program_with(encode=unclipped_response)),
    "missing clip of rewards, ldp_linucb": Mutant("ldp_linucb", program_with(encode=unclipped_pair)),
    "missing rewards told, online_ucb": Mutant("online_ucb", program_with(encode=missing_answer)),
    "missing rewards told, ldp_linucb": Mutant("ldp_linucb", program_with(encode=missing_answer)),
    "missing rewards told, instrument": Mutant("instrument", program_with(encode=missing_answer)),
    "wrong side, instrument": Mutant("instrument", program_with(encode=noise_after, update=late_normal)),
    "reused address, online_ucb": Mutant("online_ucb", program_with(encode=one_address)),
    "reused address, ldp_linucb": Mutant("ldp_linucb", program_with(encode=one_address)),
    "sensitivity off by 2, online_ucb": Mutant("online_ucb", params_times("feature_noise", 0.5)),
    "sensitivity off by 2, ldp_linucb": Mutant("ldp_linucb", statistics_times(vector=0.5)),
    "wrong side, online_ucb": Mutant("online_ucb", program_with(encode=noise_after, update=late_normal)),
    "wrong side, ldp_linucb": Mutant("ldp_linucb", program_with(encode=noise_after, update=late_normal)),
    "wrong side, jdp_linucb": Mutant("jdp_linucb", program_with(update=clean_release)),
    "wrong side, vector": Mutant("vector", program_with(encode=noise_after, update=late_normal)),
    "wrong side, amplified": Mutant("amplified", program_with(encode=noise_after, update=late_normal)),
    "spent twice, online_ucb": Mutant("online_ucb", program_with(encode=sent_twice, update=first_used), 4 * RUNS),
    "spent twice, ldp_linucb": Mutant("ldp_linucb", program_with(encode=sent_twice, update=first_used)),
    # the arm is told by where the noise is
    "noise on one block, ldp_linucb": Mutant("ldp_linucb, arms", program_with(encode=noise_on_one_block)),
    "noise on one block, jdp_linucb": Mutant("jdp_linucb, arms", program_with(update=noise_on_one_release)),
}
CENTRAL = SMALL | {"epsilon": 1.0, "moment": "central", "mean_bound": 30.0, "histogram_scale": 0.0}
BASE = partial(a.online_ucb, epsilon=1.0, delta=0.2, learner="ogd")
FAMILIES = {label: factory for label, (factory, _) in TIGHT.items()} | {
    "byzantine_ucb, long": partial(TIGHT["byzantine_ucb"][0], horizon=20),
    "vector": partial(a.shuffle_linucb, **USERS, protocol="vector", window=4, epsilon=1.0, delta=0.1),
    # with a block of every arm, of which the likeliest event is one of many numbers
    "ldp_linucb, arms": partial(a.ldp_linucb, **ROWS, horizon=40, epsilon=1.0),
    "jdp_linucb, arms": partial(a.jdp_linucb, **ROWS, horizon=7, tree="binary", epsilon=1.0),
    # whose claim is not tight at its first plays
    "instrument": partial(a.ldp_instrument_ucb, **USERS, epsilon=1.0, delta=0.2),
    "prm_elimination, central": partial(a.prm_elimination, **CENTRAL, threshold_scale=0.0),
    "prm_ucb, central": partial(a.prm_ucb, **CENTRAL),
    # two users hide each other less than half the noise shows
    "amplified": partial(a.shuffle_linucb, **USERS, protocol="amplified", window=2, epsilon=1.0, delta=0.1),
    "bandit_combiner": partial(
        a.bandit_combiner, **USERS, epsilon=1.0, bonus_scale=0.0, bases=[partial(a.doubling, base=BASE), BASE]
    ),
}


# Mutants of parameters run the program of their family's claim, and with it in every run. Those of code compile their
# own: of every kind of change one runs always.
OF_PARAMETERS = [
    label for label, mutant in MUTANTS.items()
    if not hasattr(mutant.mutate, "changes_code")
    and mutant.family not in (*KIN, "bandit_combiner", "prm_elimination, central")
]  # fmt: skip
OF_EVERY_KIND = [
    "missing clip, ldp_ucb", "missing clip, byzantine_ucb", "missing clip of rewards, online_ucb",
    "missing rewards told, online_ucb", "reused address, ldp_exp3", "reused address, private_batched",
    "wrong side, ldp_ucb", "wrong side, private_batched", "spent twice, ldp_exp3", "spent twice, private_batched",
    "spent twice, later batches, private_batched", "noise on one block, ldp_linucb",
]  # fmt: skip


@pytest.mark.planted("an algorithm behind its claim")
@pytest.mark.parametrize("label", dealt(MUTANTS, 7, always=[*OF_PARAMETERS, *OF_EVERY_KIND]))
def test_a_mutant_is_caught(label):
    mutant = MUTANTS[label]
    original = FAMILIES[mutant.family]()
    claim = original.guarantee.spend(original.params)
    changed = mutant.mutate(original)
    changed = changed._replace(guarantee=original.guarantee._replace(spend=lambda params: claim))
    found = jb.audit(changed, runs=mutant.runs, confidence=CONFIDENCE)
    assert found.claimed == claim
    assert found.refuted, found


@pytest.mark.parametrize("label", ["ldp_linucb, arms", "jdp_linucb, arms"])
def test_which_arm_is_shown_costs_no_more_than_is_claimed(label):
    """Of users with the same feature and answer: their messages are 2 apart, of sqrt(4.5) that are claimed."""
    edit = Edit(play=1, reward=1.0, feature=[1.0, 0.0])
    pairs = [(edit._replace(arm=0), edit._replace(arm=2))]
    found = jb.audit(FAMILIES[label](), runs=4 * RUNS, confidence=CONFIDENCE, pairs=pairs)
    assert {side.arm for side in found.event.pair} == {0, 2}
    assert 0.6 < found.epsilon_lower < 0.95 and not found.refuted


def test_an_audit_is_repeatable_and_takes_a_seed_and_a_pair():
    made = a.ldp_ucb(**SMALL, epsilon=1.0)
    first, again, other = (jb.audit(made, runs=4000, seed=seed) for seed in (0, 0, 1))
    assert repr(first).startswith("ldp_ucb: epsilon >= 0.8") and "does not refute the claim (1, 0)" in repr(first)
    assert first.event == again.event and first.epsilon_lower == again.epsilon_lower
    assert first.event != other.event
    made = a.ldp_ucb(**SMALL, epsilon=1.0)
    found = jb.audit(made, runs=RUNS, pairs=[(Edit(play=1, reward=0.0), Edit(play=1, reward=0.5))])
    assert sorted(edit.reward for edit in found.event.pair) == [0.0, 0.5]
    assert 0.3 < found.epsilon_lower <= 0.5  # half the sensitivity, half the budget
    pair = Edit(play=2, reward=1.0, feature=[1.0, 0.0]), Edit(play=2, reward=0.0, feature=(-1.0, 0.0))
    assert jb.audit(FAMILIES["online_ucb"](), runs=2 * RUNS, pairs=[pair]).ratio > 0.7


def test_delta_is_the_claims_or_larger():
    made = FAMILIES["byzantine_ucb"]()
    assert jb.audit(made, runs=RUNS).delta == 0.2
    assert jb.audit(made, runs=RUNS, delta=0.3).delta == 0.3


def test_several_deltas_share_the_runs():
    made = a.adac_ucb(**SMALL, rho=0.5 / gaussian_scale(1.0, 1.0, 0.05, "analytic") ** 2, delta=0.05)
    one = jb.audit(made, runs=40_000, delta=0.1)
    found = jb.audit(made, runs=40_000, delta=[0.0, 0.1, 0.3, 0.05])
    assert [bound.delta for bound in found.bounds] == [0.05, 0.1, 0.3] and found.delta == 0.05
    delivered, _ = compose(made.guarantee.events(made.params), 0.1)
    assert [round(bound.claimed, 3) for bound in found.bounds][:2] == [1.0, round(delivered, 3)]
    assert found.bounds[0].event is found.event and found.bounds[0].epsilon_lower == found.epsilon_lower
    for bound in found.bounds:
        assert 0.6 * bound.claimed < bound.epsilon_lower <= bound.claimed or bound.claimed == 0
    # the price of three at once is small, and no bound is better than it would be alone
    assert 0.85 * one.epsilon_lower < found.bounds[1].epsilon_lower <= one.epsilon_lower * 1.05
    assert not found.refuted and "at delta = 0.3" in repr(found)


ECHOES = 12


def told_after_echoes(algorithm):
    """Releases without noise once the rewards have repeated so many of the arms played before."""
    program = algorithm.program

    def init(params, draws):
        return program.init(params, draws), jnp.int32(0), jnp.int32(0)

    def act(params, state, draws, t, context):
        action, used, note = program.act(params, state[0], draws, t, context)
        return action, used, (note, action[-1])

    def encode(params, note, draws, t, context, action, reward, play):
        return program.encode(params, note[0], draws, t, context, action, reward, play), reward[-1] > 0

    def update(params, state, draws, t, note, message, used):
        own, last, echoes = state
        after, released = program.update(params, own, draws, t, note[0], message[0], used)
        clean = program.update(silent(params), own, draws, t, note[0], message[0], used)[1]
        echoes_now = jnp.where(message[1] == (last > 0), echoes + 1, 0)
        return (after, note[1], echoes_now), jnp.where(echoes >= ECHOES, clean, released)

    return algorithm._replace(program=program._replace(init=init, act=act, encode=encode, update=update))


ECHO = "releases without noise where rewards echo arms, `private_batched`"


@pytest.mark.planted("an algorithm behind its claim", ECHO)
def test_inputs_that_react_show_what_fixed_ones_do_not():
    made = a.private_batched(**SMALL, epsilon=1.0, window=1)
    leak = told_after_echoes(made)
    assert not jb.audit(leak, runs=RUNS, confidence=CONFIDENCE, whole=True).refuted
    found = jb.audit(leak, runs=RUNS, confidence=CONFIDENCE, adaptive=True)
    assert found.refuted and found.epsilon_lower > 3 and found.event.pair[0].rule == "echo"
    assert found.event.pair[0].play > ECHOES and "react to the arms played" in repr(found)
    honest = jb.audit(made, runs=RUNS, confidence=CONFIDENCE, adaptive=True)
    assert 0.7 < honest.epsilon_lower <= 1.0 and not honest.refuted and honest.adaptive


@pytest.mark.parametrize("name", ["ldp_exp3", "local_exp4", "batched_exp4", "bandit_to_experts", "private_batched"])
def test_no_claim_about_losses_is_refuted_by_inputs_that_react(name):
    algorithm, environment = catalogue.case(name)
    found = jb.audit(algorithm, runs=4000, confidence=CONFIDENCE, environment=environment, adaptive=True)
    assert not found.refuted, found


def test_what_a_reacting_input_pays():
    """By hand: arms 1 1 0 and 2 0 in two windows, the second of which leaves its last play unmade."""
    attack = neighbours.reacting(0.5)

    @jax.jit
    def paid(edit, state, t, arms, play):
        nothing = dict.fromkeys(("context", "params", "state", "note"), ()) | dict.fromkeys(
            ("truth", "sample", "encode")
        )
        view = jb.protocol.AdversaryView(t=t, action=arms, play=play, **nothing)
        rewards, _, state = attack.corrupt(edit, state, None, t, jnp.zeros(3), view)
        return rewards, state

    def seen(private, rule):
        number = np.int32(neighbours.REACTION_RULES.index(rule))
        edit = Edit(np.int32(private), np.float32(9), otherwise=np.float32(-9), rule=number)
        first, last = paid(edit, np.int32(0), np.arange(1, 4), np.array([1, 1, 0]), np.ones(3, bool))
        second, last = paid(edit, last, np.arange(4, 7), np.array([2, 0, 0]), np.array([True, True, False]))
        assert int(last) == 0
        return [*np.asarray(first).tolist(), *np.asarray(second)[:2].tolist()]

    # the arms before the five plays: 0 1 1 0 2
    assert seen(4, "zero") == [0, 0, 0, 9, 0]
    assert seen(4, "echo") == [0, 0.5, 0.5, 9, 0.5]
    assert seen(4, "chase") == [0.5, 0, 0.5, 9, 0.5]
    assert seen(2, "zero") == [0, -9, 0, 0, 0]


@pytest.mark.planted("an algorithm behind its claim", "messages without noise after play 25, `ldp_ucb`")
def test_a_whole_run_shows_what_leaks_late():
    made = a.ldp_ucb(**SMALL, epsilon=1.0)
    encode = made.program.encode

    def late(params, note, draws, t, context, action, reward, play):
        return jnp.where(t[0] > 25, reward[0], encode(params, note, draws, t, context, action, reward, play))

    leak = made._replace(program=made.program._replace(encode=late))
    assert not jb.audit(leak, runs=20_000).refuted
    found = jb.audit(leak, runs=20_000, whole=True)
    assert found.refuted and found.event.pair[0].play > 25
    assert not jb.audit(made, runs=20_000, whole=True).refuted
    with pytest.raises(ValueError, match=r"whole = True.*5000 windows.*shorter horizon"):
        jb.audit(a.ldp_ucb(num_arms=2, horizon=5000, epsilon=1.0), runs=20_000, whole=True)


def test_numbers_that_differ_most_are_kept(monkeypatch):
    monkeypatch.setattr(transcripts, "MAX_COLUMNS", 8)
    assert 0.7 < jb.audit(a.adap_ucb(**SMALL, epsilon=1.0), runs=20_000, whole=True).epsilon_lower <= 1


OWN_SWEEP = """
horizon = 24
seeds = 3
environment = {name = "bernoulli_arms", means = [0.2, 0.6]}
algorithm = ["ucb1", {name = "bits_and_pieces:own", label = "mine"}, "dp_klucb"]
grid = {epsilon = [0.5, 1.0]}
"""


def test_the_command_audits_a_sweep_of_a_file(tmp_path, capsys, monkeypatch):
    (tmp_path / "bits_and_pieces.py").write_text(
        "import jaxbandits as jb\n\n\n"
        "def own(*, num_arms, horizon, epsilon):\n"
        "    return jb.algorithms.ldp_ucb(num_arms=num_arms, horizon=horizon, epsilon=epsilon)\n"
    )
    (tmp_path / "sweep.toml").write_text(OWN_SWEEP)
    monkeypatch.chdir(tmp_path)
    assert main(["audit", "sweep.toml", "--runs", "2000", "--whole", "--out", "out"]) == 0
    rows = pd.read_csv(tmp_path / "out" / "audit.csv")
    labels = [f"{label}, epsilon = {x}" for label in ("mine", "dp_klucb") for x in (0.5, 1.0)]
    assert list(rows["algorithm"]) == labels and list(rows["spent"]) == [0.5, 1.0] * 2
    assert (tmp_path / "out" / "mine-epsilon-0.5.png").exists()
    (tmp_path / "plain.toml").write_text(OWN_SWEEP.split("algorithm")[0] + 'algorithm = "ucb1"\n')
    assert main(["audit", "plain.toml", "--out", "new"]) == 2
    assert "no algorithm of this sweep has a guarantee" in capsys.readouterr().err
    assert main(["audit", "none.toml", "--out", "new"]) == 2 and not (tmp_path / "new").exists()


@pytest.mark.planted("an algorithm behind its claim", "too little noise for a larger delta, `adac_ucb`")
def test_a_leak_at_a_larger_delta_alone_is_found():
    # claims little at 0.3, and what the noise delivers there is more
    made = a.adac_ucb(**SMALL, rho=2.0, delta=0.05)
    claim = made.guarantee._replace(spend=lambda _: (20.0, 0.05), events=lambda _: (gaussian_event("a sum", 1.0, 2.0),))
    liar = made._replace(guarantee=claim)
    assert not jb.audit(liar, runs=20_000).refuted
    assert jb.audit(liar, runs=20_000, delta=[0.05, 0.1]).refuted


def test_the_trade_off_of_two_normals_is_the_gaussian_one():
    rng = np.random.default_rng(1)
    curve = confidence_bounds.trade_off(rng.normal(size=200_000), rng.normal(size=200_000) + 1, 0.95)
    inside = (curve.false_positive > 0.01) & (curve.false_positive < 0.99)
    exact = norm.cdf(norm.ppf(1 - curve.false_positive[inside]) - 1)
    np.testing.assert_allclose(curve.false_negative[inside], exact, atol=0.01)
    assert (curve.false_negative_high >= curve.false_negative).all()


def test_an_exact_gaussian_claim_lies_on_its_curve():
    """The analytic Gaussian's trade-off curve touches the claimed one and is nowhere below it."""
    alpha = np.linspace(1e-6, 1 - 1e-6, 100_001)
    exact = norm.cdf(norm.ppf(1 - alpha) - 1 / gaussian_scale(1.0, 1.0, 0.01, "analytic"))
    gap = exact - confidence_bounds.claimed_curve(1.0, 0.01, alpha)
    assert gap.min() > -1e-6 and gap.min() < 1e-4


def test_the_gaussian_score_uses_noise_that_cancels():
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(2, 4000, 1))
    negative, positive = np.concatenate([noise, noise], axis=2)
    positive = positive + np.array([0.0, 0.01])
    names = {score.kind: score for score in scores.fit_scores(negative, positive)}
    best = scores.choose_score(list(names.values()), negative, positive, 0.0, 0.95)
    assert best.expected > 5 and len(best.score.columns) == 2


def test_contexts_are_the_same_in_all_runs_and_a_user_shows_one_feature_everywhere():
    environment = e.contextual_linear(num_arms=3, dim=2)
    world = neighbours.world_of(environment.world, True)
    edit = Edit(2, 0.5, np.array([0.6, 0.8], np.float32))
    params = neighbours.Input(environment.params, edit)

    @uncompiled
    def contexts(params, seed, t):
        draws = Draws(seed, "environment")
        return world.observe(params, world.init(params, draws), draws, t)[0]

    seen = [contexts(params, np.uint32(seed), np.arange(1, 4, dtype=np.int32)) for seed in (3, 4)]
    np.testing.assert_array_equal(seen[0], seen[1])
    np.testing.assert_allclose(seen[0][1], [[0.6, 0.8]] * 3, rtol=1e-6)
    np.testing.assert_allclose(seen[0][0], [[0.0, 1.0]] * 3)


def test_the_picture_fits_and_shows_the_claim(tmp_path):
    found = jb.audit(a.ldp_ucb(**SMALL, epsilon=1.0), runs=4000)
    drawn = jb.plot.trade_off(found, caption="one reward", path=tmp_path / "curve.png")
    assert layout.overlaps(drawn.figure) == []
    assert (tmp_path / "curve.png").stat().st_size > 10_000
    assert (drawn.data["claimed"] <= drawn.data["false_negative"] + 0.1).all()


def test_the_command_writes_its_table(tmp_path, capsys):
    options = ["--set", "epsilon=2", "--confidence", "0.999", "--seed", "3", "--runs", "4000"]
    assert main(["audit", "ldp_ucb", *options, "--out", str(tmp_path)]) == 0
    assert "claim (2, 0)" in capsys.readouterr().out
    assert "lower bounds of confidence 0.999; seed 3." in (tmp_path / "audit.md").read_text()
    assert main(["audit", "ldp_ucb", "--runs", "4000", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"audit.csv", "audit.md", "ldp_ucb.png"}
    told = (tmp_path / "audit.md").read_text()
    assert "| `ldp_ucb` | local | reward | 1 | 1 | 0 | 0." in told and "Mironov" in told  # noise in floating point
    assert "react" not in told
    assert main(["audit", "ldp_exp3", "--adaptive", "--runs", "4000", "--out", str(tmp_path)]) == 0
    assert "Inputs react to the arms that were played." in (tmp_path / "audit.md").read_text()
    assert main(["audit", "ucb1", "--out", str(tmp_path)]) == 2
    assert main(["audit", "--out", str(tmp_path)]) == 2
    capsys.readouterr()
    assert main(["audit", "ldp_ubc", "--out", str(tmp_path / "new")]) == 2
    said = capsys.readouterr().err
    assert "no algorithm is called 'ldp_ubc' (did you mean 'ldp_ucb'?)" in said and "private_batched" not in said
    assert not (tmp_path / "new").exists()


def test_the_command_sees_what_it_cannot_write_before_it_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(table, "audit", lambda *args, **kwargs: pytest.fail("an audit ran"))
    (tmp_path / "file").write_text("not a directory")
    for where in (tmp_path / "file", tmp_path / "file" / "below"):
        assert main(["audit", "ldp_ucb", "--out", str(where)]) == 2
        assert f"--out {where}: cannot write there" in capsys.readouterr().err


def test_every_private_algorithm_is_in_the_table_with_the_budget_of_what_is_wrapped():
    algorithm, environment = catalogue.case("bandit_to_experts")
    report = jb.audit(algorithm, runs=2000, environment=environment)
    assert table.audit_row(report, epsilon_or_nan(algorithm))["claimed"] == 0.2
    for name, epsilon in (("doubling", 4.0), ("bandit_combiner", 4.0)):
        assert epsilon_or_nan(catalogue.case(name)[0]) == epsilon
    combined = FAMILIES["bandit_combiner"].func(**{**FAMILIES["bandit_combiner"].keywords, "epsilon": None})
    assert epsilon_or_nan(combined) == 1.0
    assert set(PRIVATE) >= {"ldp_exp3", "private_batched", "byzantine_ucb", "prm_ucb", "robust_elimination"}
    assert set(PRIVATE) >= {"online_ucb", "doubling", "bandit_combiner", "ldp_linucb", "jdp_linucb", "shuffle_linucb"}
    assert len(TIGHT) + len(PRIVATE) <= FAMILY


def false_alarms(monkeypatch, honest, seeds=40):
    """Audits of identical inputs that claim to have proven anything; not `honest`: counted on the runs that chose."""
    made, runs, edit = a.private_batched(**SMALL, epsilon=1.0, window=4), 4000, Edit(1)
    real, seen, alarms = scores.choose_score, {}, 0

    def spying(candidates, negative, positive, delta, confidence):
        seen.update(negative=negative, positive=positive)
        # undoes the caution of the choice
        return seen.setdefault("choice", real(candidates, negative, positive, delta, 1 - 100 * (1 - confidence)))

    for seed in range(seeds):
        if honest:
            alarms += jb.audit(made, runs=runs, seed=seed, pairs=[(edit, edit)]).epsilon_lower > 0
            continue
        seen.clear()
        with monkeypatch.context() as patched:
            patched.setattr(scores, "choose_score", spying)
            jb.audit(made, runs=runs, seed=seed, pairs=[(edit, edit)])
        choice = seen["choice"]
        told = [choice.sign * choice.score(seen[name]) for name in ("negative", "positive")]
        fp, tp = (int(np.sum(x >= choice.threshold)) for x in told[:: choice.sign])
        alarms += confidence_bounds.epsilon_lower(tp, fp, len(told[0]), 0.0, 0.95) > 0
    return alarms


@pytest.mark.planted("the auditor", "it counts on the runs that chose the event")
def test_identical_inputs_raise_no_alarm_beyond_the_confidence(monkeypatch):
    """`benchmarks/audit.py` measures more; an auditor that counts on the runs it chose on fails the same test."""
    most = next(k for k in range(41) if binom.sf(k, 40, 0.05) < 1e-6)  # 12: by chance once in a million
    assert false_alarms(monkeypatch, honest=True) <= most < false_alarms(monkeypatch, honest=False)


def test_the_command_hands_all_that_it_is_told_to_the_audit(tmp_path, monkeypatch):
    told = []

    def note(algorithm, **given):
        told.append((algorithm, given))
        raise ValueError("seen")

    monkeypatch.setattr(table, "audit", note)
    monkeypatch.setattr(table, "_theirs", lambda name, settings: (name, settings))
    words = "--runs 77 --confidence 0.9 --seed 5 --horizon 12 --whole --adaptive --out".split()
    common = {"runs": 77, "confidence": 0.9, "seed": 5, "whole": True, "adaptive": True}
    assert main(["audit", "ldp_ucb", *words, str(tmp_path)]) == 2
    algorithm, given = told.pop()
    assert algorithm.config["horizon"] == 12 and given.pop("environment").facts["num_arms"] == 3 and given == common
    # whole runs of the catalogue's are as long as three releases need: one, two, four in so many horizons
    usual = catalogue.case("ldp_ucb")[0].config["horizon"]
    released = lambda algorithm, _: SimpleNamespace(releases=range(algorithm.config["horizon"] // usual))
    monkeypatch.setattr(table, "find_differences", released)
    assert main(["audit", "ldp_ucb", "--whole", "--out", str(tmp_path)]) == 2
    assert told.pop()[0].config["horizon"] == 4 * usual
    more = "--epsilon 2 --delta 0.1 --unit user --model local --environment linear_arms --set scale=3".split()
    assert main(["audit", "their:Learner", *words, str(tmp_path), *more]) == 2
    claim = {"epsilon": 2.0, "delta": 0.1, "unit": "user", "model": "local", "horizon": 12}
    claim |= {"environment": "linear_arms"}
    assert told.pop() == (("their:Learner", {"scale": 3}), common | claim)
