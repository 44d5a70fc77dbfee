"""What the beginning of a run and its releases do not show: arms that follow raw data, sums that are not reset, missing
clips. Learners that are wrong so fail their audits and `jb.check`; every honest one passes the rule of differences.
"""

from functools import cache, partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import pytest
from dealt import dealt

import jaxbandits as jb
from jaxbandits import catalogue
from jaxbandits.auditing.differences import RELEASES, find_differences
from jaxbandits.auditing.transcripts import default_environment
from jaxbandits.checking import rules
from jaxbandits.checking.check import findings_of
from jaxbandits.checking.subject import Subject
from jaxbandits.declared import Dim, Epsilon, Horizon, NumArms
from jaxbandits.mechanisms import compose, gaussian_event, gaussian_scale, guarantee, laplace_event
from jaxbandits.mechanisms.composition import view_released
from jaxbandits.protocol import Algorithm, Program, Span
from jaxbandits.validation import factory

PHASE = 16  # plays after which sums are released


class Params(NamedTuple):
    noise_scale: Any
    mechanism_scale: Any = 1.0


def clip(x, top=1.0):
    return jnp.clip(jnp.where(jnp.isfinite(x), x, 0), 0, top)


@cache
def arms_program(num_arms, acts_on, resets, top):
    """Greedy phases; sums of rewards in [0, top] are reset once in `resets` phases.

    acts_on: "released" sums, or "raw" ones while a decoy is released.
    """

    def init(params, draws):
        zero = jnp.zeros(num_arms, draws.dtype)
        return zero, zero

    def act(params, state, draws, t, context):
        best = jnp.argmax(state[1] if acts_on == "released" else state[0])
        arm = jnp.where(t[0] <= 2 * num_arms, t[0] % num_arms, best).astype(jnp.int32)
        return jnp.full(t.shape, arm), None, arm

    def encode(params, note, draws, t, context, action, reward, play):
        return clip(reward[0], top)

    def update(params, state, draws, t, note, message, used):
        total, ends = state[0].at[note].add(message), t % PHASE == 0
        noise = params.mechanism_scale * params.noise_scale * draws.laplace(t, (num_arms,))
        shown = jnp.where(ends, total + noise, jnp.nan)
        kept = jnp.where(t % (PHASE * resets) == 0, jnp.zeros_like(total), total)
        return (kept, jnp.where(ends, total + noise, state[1])), shown

    return Program(init, act, encode, update)


@factory
def phases(
    *, num_arms: NumArms, horizon: Horizon, epsilon: Epsilon, acts_on: str = "released", resets: int = 1,
    top: float = 1.0,
) -> Algorithm:  # fmt: skip
    """Greedy phases whose noisy sums are released."""

    def events(params):
        return (laplace_event("sum of a phase's rewards in [0, 1]", 1.0, params.noise_scale * params.mechanism_scale),)

    claim = guarantee("central", "reward", events, view_released)
    return Algorithm(arms_program(num_arms, acts_on, resets, top), (Span(1, horizon),), Params(1 / epsilon), claim)


@cache
def users_program(dim, raw):
    """Greedy least squares. raw: on the pairs of users, of which noisy products are released as a decoy."""

    def init(params, draws):
        return jnp.eye(dim, dtype=draws.dtype), jnp.zeros(dim, draws.dtype), jnp.zeros(dim, draws.dtype)

    def act(params, state, draws, t, context):
        theta = jnp.linalg.solve(state[0], state[1]) if raw else state[2]
        arm = jnp.argmax(context[0] @ theta).astype(jnp.int32)
        return jnp.full(t.shape, arm), None, context[0][arm]

    def encode(params, note, draws, t, context, action, reward, play):
        x = jnp.where(jnp.isfinite(note), note, 0)
        x = x / jnp.maximum(jnp.linalg.norm(x), 1)
        return x, x * clip(reward[0])

    def update(params, state, draws, t, note, message, used):
        x, product = message
        shown = product + params.mechanism_scale * params.noise_scale * draws.normal(t, (dim,))
        return (state[0] + jnp.outer(x, x), state[1] + product, state[2] + shown), shown

    return Program(init, act, encode, update)


@factory
def greedy_users(
    *, num_arms: NumArms, dim: Dim, horizon: Horizon, epsilon: Epsilon, delta: float = 1e-3, raw: bool = False
) -> Algorithm:
    """Greedy arms from noisy products of users."""

    def events(params):
        return (gaussian_event("x r of a user, r in [0, 1]", 2.0, params.noise_scale * params.mechanism_scale),)

    claim = guarantee("central", "user", events, view_released, delta=lambda params: delta)
    params = Params(gaussian_scale(2.0, epsilon, delta, "analytic"))
    return Algorithm(users_program(dim, raw), (Span(1, horizon),), params, claim)


SMALL = {"num_arms": 2, "horizon": 96}
ARMS = partial(phases, **SMALL, epsilon=0.5)
USERS = partial(greedy_users, num_arms=4, dim=3, horizon=60, epsilon=0.1)
WRONG = {  # label -> the learner, and what one unit changes beyond its events
    "arms from raw rewards": (partial(ARMS, acts_on="raw", epsilon=0.1), ""),
    "arms from users' raw pairs": (partial(USERS, raw=True), ""),
    "sums that are not reset": (partial(ARMS, resets=9), "one reward changes 6 of 6 releases"),
    "sums that are reset once in two phases": (partial(ARMS, resets=2), "one reward changes 2 of 6 releases"),
    "rewards that are not clipped": (partial(ARMS, top=1e4), "one reward changes a release by 1024"),
    "rewards that are clipped a little late": (partial(ARMS, top=1.01), "one reward changes a release by 1.01"),
}


@pytest.mark.planted("a user's algorithm, before `jb.audit`", "arms that follow raw data, sums kept, no clip")
@pytest.mark.parametrize("label", WRONG)
def test_a_wrong_learner_is_refuted(label):
    make, fault = WRONG[label]
    found = jb.audit(make(), runs=4000, confidence=0.999)
    assert found.refuted and "REFUTES" in repr(found)
    assert found.epsilon_lower > found.claimed[0] or fault
    assert found.differences.fault.startswith(fault) and bool(found.differences.fault) == bool(fault)


def test_their_honest_siblings_are_not():
    for make in (ARMS, partial(USERS, epsilon=1.0)):
        found = jb.audit(make(), runs=4000, confidence=0.999)
        assert not found.refuted and found.differences.fault == ""
    assert "looked at plays 1 to 60, 60 of 60 releases; differences: 1 of 60 releases, by" in repr(found)


def test_check_has_the_rule():
    wrong = Subject(partial(phases, epsilon=0.5, resets=9), catalogue.arms, horizon=96, audit=True)
    (finding,) = findings_of(rules.differences, wrong)
    assert rules.differences in rules.RULES and "events allow 1: is a sum not reset" in finding.message


# What the rule does not look at, or not wholly, in the catalogue.
SIZES = {"local_robust_elimination", "shuffle_linucb", "prm_elimination", "prm_thompson"}  # bits, counts, edges of bins
FEW = {"dp_se"}  # releases of the catalogue's run


@pytest.mark.parametrize("name", dealt(catalogue.private(), 8, always=["jdp_linucb", "adap_ucb", "batched_exp4"]))
def test_every_honest_algorithm_passes(name):
    algorithm, _ = catalogue.case(name)
    found = find_differences(algorithm, default_environment(algorithm))
    assert found.fault == "" and found.allowed < float("inf") and max(found.releases) <= algorithm.config["horizon"]
    assert ("sizes not looked at" in str(found)) == (name in SIZES)
    assert (found.compared < RELEASES) == (name in FEW)


def test_running_sums_that_begin_again_are_no_fault():
    """A reward leaves the sum when an epoch ends: no second change of what it has entered."""
    base = partial(jb.algorithms.adac_oful, rho=0.5)
    for horizon in (60, 100):
        algorithm = jb.algorithms.doubling(num_arms=10, dim=5, horizon=horizon, base=base)
        found = find_differences(algorithm, default_environment(algorithm))
        assert found.fault == "" and found.changed == 1 and found.size > 0.1


def test_a_claim_without_events_is_the_claim_at_every_delta():
    claim = ARMS().guarantee
    whole = ARMS()._replace(guarantee=claim._replace(events=lambda params: ()))
    for delta in (0.0, 0.01):
        (bound,) = jb.audit(whole, runs=4000, delta=delta).bounds
        assert bound.claimed == claim.spend(whole.params)[0] == 0.5


def test_what_cannot_be_looked_at_is_said():
    claim = ARMS().guarantee._replace(events=lambda params: ())
    found = find_differences(ARMS()._replace(guarantee=claim), default_environment(ARMS()))
    assert str(found) == "differences: not looked at, its events state no releases" and not found.fault


def test_the_largest_sensitivity_of_a_table_is_kept():
    event = laplace_event("mean of a block", [1.0, 0.5], [4.0, 1.0])
    assert (event.sensitivity, event.scale, event.largest) == (0.5, 1.0, 1.0)
    assert compose([event]) == (0.5, 0.0)
