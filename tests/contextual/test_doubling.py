"""Doubling: epochs laid out by eye, each of them a fresh base, its noise that of the true play."""

from functools import partial
from typing import Any, NamedTuple

import chex
import jax
import numpy as np
import pytest
from against_reference import on_tape
from dealt import others
from numpy.testing import assert_allclose, assert_array_equal
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.algorithms import bandit_combiner, delayed, doubling, ldp_linucb, linucb, online_ucb, ucb1
from jaxbandits.environments import bernoulli_arms, contextual_linear
from jaxbandits.protocol import Guarantee
from jaxbandits.random import Draws
from jaxbandits.sweeps.plan import plan

A, D = 6, 3


def tape(plays, seed=0):
    """Unit features [plays, A, D] and rewards [plays, A]."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(plays, A, D))
    x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return np.float32(x), np.float32(rng.uniform(size=(plays, A)) < 0.5 + 0.4 * x[..., 0])


private = partial(online_ucb, epsilon=1.0, learner="ogd", min_eigenvalue=0.1)


def made(horizon, base=private, **arguments):
    return doubling(num_arms=A, dim=D, horizon=horizon, base=base, **arguments)


def test_epochs():
    epochs = {1: [0], 2: [0, 1], 3: [0, 1], 4: [0, 1, 3], 100: [0, 1, 3, 7, 15, 31, 63]}
    assert {horizon: made(horizon).params.starts.tolist() for horizon in epochs} == epochs


def test_an_epoch_is_tuned_for_its_length():
    """linucb's width: log(T_k (1 + T_k)); online_ucb's failure probability, and its perturbation T_k^(-power / 2)."""
    offset = made(9, linucb).params.base.offset
    assert_allclose(offset, np.log([1 * 2, 2 * 3, 4 * 5, 8 * 9]))
    found = made(9, private, failure_prob=0.06, power=0.5).params.base
    assert_allclose(found.perturbation, [1, 2**-0.25, 4**-0.25, 8**-0.25])
    for k, share in enumerate([0.03, 0.01, 0.005, 0.003]):
        alone = private(num_arms=A, dim=D, horizon=2**k, failure_prob=share, power=0.5).params
        assert_allclose([x[k] for x in found], alone)
    own = made(9, partial(private, failure_prob=0.2)).params.base  # what a partial binds wins
    assert_allclose(own.width[3], private(num_arms=A, dim=D, horizon=8, failure_prob=0.2, power=0.125).params.width)


def test_conversions_hand_the_norm_on():
    assert_array_equal(made(9, feature_norm=2.0).params.base.feature_norm, [2.0] * 4)
    bases = [partial(doubling, base=private), private]
    both = bandit_combiner(num_arms=A, dim=D, horizon=9, epsilon=1.0, bases=bases, feature_norm=2.0)
    assert np.all(both.params.bases.base.feature_norm == 2.0)
    late = delayed(num_arms=A, dim=D, horizon=9, base=partial(ldp_linucb, epsilon=1.0), feature_norm=2.0)
    assert late.params.base.statistics.feature_norm == 2.0


def test_least_eigenvalues_above_the_threshold_perturb_late_epochs_no_more():
    """0.6 > T_k^(-1/2) from 4 plays on."""
    found = made(9, partial(private, min_eigenvalue=0.6), power=0.5).params.base
    assert (found.perturbation > 0).tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    "base",
    [linucb, private, *others([partial(private, epsilon=float("inf")), partial(private, learner="maler")])],
    ids=["linucb", "private", "inf", "maler"],
)
def test_an_epoch_is_a_fresh_base(base):
    """Plays 4 to 7, 8 to 15 and the cut epoch 16 to 28, against bases of 4, 8 and 16 plays on the same draws."""
    contexts, rewards = tape(28)
    whole = made(28, base, failure_prob=0.1)
    actions, messages, state = on_tape(whole, contexts, rewards)
    for k, plays in ((2, 4), (3, 8), (4, 13)):
        start, extra = 2**k - 1, {} if base is linucb else {"failure_prob": 0.1 / (k + 1) / (k + 2), "power": 0.125}
        alone = base(num_arms=A, dim=D, horizon=2**k, **extra)
        part, longer = slice(start, start + plays), slice(start, start + 13)  # of one length, for one program
        root = _Under(Draws(np.uint32(5), "alg").shifted(np.int32(start)))
        expected, sent, last = on_tape(alone, contexts[longer], rewards[longer], root)
        assert_array_equal(actions[part], expected[:plays])
        whole_and_alone = (jax.tree.map(lambda x, p=p: x[p], m) for m, p in ((messages, part), (sent, slice(plays))))
        chex.assert_trees_all_close(*whole_and_alone, rtol=1e-5, atol=1e-6)
    for part in ("inverse", "theta"):  # a learner may keep experts it does not use yet
        for got, want in zip(*(jax.tree.leaves(getattr(x, part)) for x in (state, last)), strict=True):
            assert_allclose(got[-1], want[-1], rtol=1e-4, atol=1e-5)


class _Under(NamedTuple):
    """Streams as a conversion hands them on."""

    draws: Any

    def child(self, name):
        return self.draws.child(name).child("base")


def test_no_two_epochs_share_noise():
    contexts, _ = tape(28)
    _, messages, _ = on_tape(made(28), 0 * contexts, np.zeros((28, A)))
    assert len(np.unique(messages.response)) == 28 and len(np.unique(messages.feature)) == 28 * D


def test_the_past_does_not_depend_on_the_horizon():
    """One of five epochs against one of six."""
    contexts, rewards = tape(28)
    actions, sent, _ = on_tape(made(28, failure_prob=0.1), contexts, rewards)
    of_longer, early, _ = on_tape(made(40, failure_prob=0.1), contexts, rewards)
    assert_array_equal(actions, of_longer)
    assert_allclose(sent.response, early.response, rtol=1e-6)


def test_the_last_state_is_not_thrown_away():
    """After 7 plays no epoch follows; after 8 of 8 the one of 8 plays has begun."""
    contexts, rewards = tape(8)
    last = jax.tree.map(lambda x: np.asarray(x)[-1], made(8).params.base)
    init = private(num_arms=A, dim=D, horizon=8).program.init
    fresh = uncompiled(lambda params: init(params, Draws(np.uint32(0))))(jax.tree.map(np.float32, last))
    _, _, state = on_tape(made(7), contexts[:7], rewards[:7])
    assert float(state.inverse[0][-1]) < float(fresh.inverse[0])
    _, _, state = on_tape(made(8), contexts[:7], rewards[:7])
    assert float(state.inverse[0][-1]) == float(fresh.inverse[0])


def test_draws_of_a_clock_of_its_own():
    draws = Draws(np.uint32(3), "a")

    def both(t, plays):
        late, later = draws.shifted(plays), draws.shifted(plays).shifted(2)
        keys = late.key(t[0]), draws.key(t[0] + plays)
        return (
            (late.uniform(t), draws.uniform(t + plays)),
            (later.child("b").normal(t, (3,)), draws.child("b").normal(t + plays + 2, (3,))),
            (late.at(t, t), draws.at(t + plays, t)),
            tuple(jax.random.key_data(key) for key in keys),
        )

    for late, early in uncompiled(both)(np.arange(1, 4, dtype=np.int32), np.int32(5)):
        assert_array_equal(late, early)


def test_a_base_without_features():
    """Three arms: each of UCB1's epochs begins with the arms in order."""
    found = doubling(num_arms=3, horizon=20, base=ucb1)
    actions, _, _ = on_tape(found, np.zeros((20, 1)), np.tile([0.1, 0.2, 0.3], (20, 1)))
    assert actions[[3, 4, 5, 7, 8, 9, 15, 16, 17]].tolist() == [0, 1, 2] * 3


@pytest.mark.dealt(8)
def test_a_base_without_features_in_a_sweep():
    doubled = partial(doubling, base=ucb1)
    ds = jb.sweep(doubled, bernoulli_arms(means=[0.2, 0.8]), horizon=50, seeds=8, progress=False)
    assert ds.regret.notnull().all()


def test_one_program_for_a_grid():
    maker = partial(doubling, base=partial(online_ucb, learner="ogd"))
    grid = {"base.epsilon": [0.2, 1.0, float("inf")], "power": [0.1, 0.2]}
    laid_out = plan(maker, contextual_linear(num_arms=A, dim=D), horizon=50, seeds=8, grid=grid)
    assert len(laid_out.cells) == 6 and len(laid_out.groups) == 1


def test_guarantee_is_the_base_s():
    base = partial(online_ucb, epsilon=1.0, delta=0.05, learner="ogd")
    found = made(100, base)
    claim = found.guarantee
    assert (claim.model, claim.unit) == ("local", "user")
    assert claim.spend(found.params) == pytest.approx((1.0, 0.05), abs=1e-6)
    alone = base(num_arms=A, dim=D, horizon=50)
    half = claim.spend(found.params._replace(mechanism_scale=0.5))
    assert half == pytest.approx(alone.guarantee.spend(alone.params._replace(mechanism_scale=0.5)))
    assert claim.spend(found.params._replace(mechanism_scale=0.0))[0] == float("inf")
    assert made(100, linucb).guarantee == Guarantee()


def test_the_worst_epoch_is_what_is_spent():
    """Where features are perturbed beyond privacy, an epoch spends the less the shorter it is."""
    found = made(100)
    spent = [
        private(num_arms=A, dim=D, horizon=2**k, power=0.125).guarantee.spend(
            private(num_arms=A, dim=D, horizon=2**k, power=0.125).params
        )[0]
        for k in range(7)
    ]
    assert spent == sorted(spent) and found.guarantee.spend(found.params)[0] == pytest.approx(spent[-1])


def test_an_epoch_that_spends_less_at_a_larger_delta_is_covered():
    def base(*, num_arms, dim, horizon, longest):
        settings = {"epsilon": 1 + horizon / 100, "delta": 0.4 / horizon, "learner": "ogd", "longest": longest}
        return online_ucb(num_arms=num_arms, dim=dim, horizon=horizon, **settings)

    found = made(63, base)
    assert found.guarantee.spend(found.params) == pytest.approx((1.32, 0.4), abs=1e-6)


def test_what_was_asked_for_is_of_the_epoch_that_spends_most():
    """The first epoch, of one play, spends nothing of it."""
    doubled = jb.algorithms.doubling(num_arms=3, horizon=100, base=jb.algorithms.gdp_thompson)
    longest = jb.algorithms.gdp_thompson(num_arms=3, horizon=64, delta=doubled.params.base.delta[-1])
    assert doubled.guarantee.claimed == pytest.approx(longest.guarantee.claimed) and doubled.guarantee.claimed > 10
    arms = jb.environments.bernoulli_arms(means=[0.2, 0.5, 0.8])
    ds = jb.sweep(partial(jb.algorithms.doubling, base=jb.algorithms.gdp_thompson), arms, horizon=100, seeds=2,
                  progress=False)  # fmt: skip
    assert float(ds.epsilon_asked.squeeze()) == pytest.approx(float(ds.epsilon_spent.squeeze()))


def test_without_noise():
    """mechanism_scale 0 sends what epsilon = inf sends."""
    contexts, rewards = tape(28)
    silent = made(28, partial(online_ucb, learner="ogd", epsilon=1.0))
    silent = silent._replace(params=silent.params._replace(mechanism_scale=0.0))
    actions, messages, _ = on_tape(silent, contexts, rewards)
    assert_allclose(messages.response, rewards[np.arange(28), actions])
    assert_allclose(messages.feature, contexts[np.arange(28), actions], rtol=1e-6)


def test_the_epoch_that_spends_most_need_not_be_the_last():
    """The epoch of 8 plays is given 2, all others 1."""

    def base(*, num_arms, dim, horizon, longest):
        settings = {"epsilon": 2.0 if horizon == 8 else 1.0, "delta": 0.1, "learner": "ogd", "longest": longest}
        return online_ucb(num_arms=num_arms, dim=dim, horizon=horizon, **settings)

    found = made(63, base)
    assert jb.mechanisms.compose(found.guarantee.events(found.params), 0.1) == pytest.approx((2.0, 0.1), abs=1e-6)
    assert found.guarantee.claimed == 2.0
