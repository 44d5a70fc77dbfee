"""Late feedback: without delay bit for bit the base, with delays the literal queue; the hybrid of two entropies."""

import functools
import math
from functools import partial
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against_reference import exact_draw
from dealt import dealt
from planting import errors, planted
from plays import watched
from reference import delay as literal
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits import algorithms as a
from jaxbandits import catalogue, theory
from jaxbandits.algorithms.adversarial import message_ring
from jaxbandits.environments import bernoulli_arms, contextual_linear, loss_table
from jaxbandits.learners import tsallis
from jaxbandits.numerics import columns
from jaxbandits.privacy import ledger
from jaxbandits.protocol import Algorithm, Guarantee, Program, Span
from jaxbandits.sweeps.plan import plan
from jaxbandits.sweeps.simulate import algorithm_for
from jaxbandits.validation import factory

T, K = 60, 3
LOSSES = np.random.default_rng(3).random((T, K)) * [1.0, 0.6, 0.9]
REWARDS, TABLE = 1 - LOSSES, loss_table(losses=LOSSES)
W = partial(bernoulli_arms, means=[0.8, 0.6, 0.5, 0.3])


LOCKSTEP = {
    "successive_elimination", "gradient_bandit", "ftpl", "private_batched", "bandit_to_experts", "jdp_linucb",
    "doubling", "bandit_combiner", "dp_ts_ucb", "gdp_thompson", "delayed",
}  # fmt: skip
FURTHER = {
    "gradient_bandit without baseline": ("gradient_bandit", {"baseline": False}),
    "exp3 without mixing": ("exp3", {"mixing": 0.0}),
    "robust_ucb by medians": ("robust_ucb", {"estimator": "median_of_means"}),
}


def base_of(name):
    """A base by its name in the catalogue or in FURTHER, and its environment."""
    row, changes = FURTHER.get(name, (name, {}))
    example = catalogue.ALGORITHMS[row]
    return partial(example.algorithm, **changes), example.environment


def refusal(base, environment):
    try:
        algorithm_for(partial(a.delayed, base=base, horizon=24), environment())
    except ValueError as error:
        return str(error)
    return ""


REFUSED = {name: refusal(*base_of(name)) for name in catalogue.ALGORITHMS}
ACCEPTED = [name for name in catalogue.ALGORITHMS if not REFUSED[name]]


@pytest.mark.parametrize("name", dealt([*ACCEPTED, *FURTHER], 16, always=["linucb"]))
def test_no_delay_is_the_base_bit_for_bit(name):
    base, environment = base_of(name)
    environment = environment()
    alone, late, later = (
        algorithm_for(partial(x, horizon=24), environment)
        for x in (base, *(partial(a.delayed, base=base, delay=delay) for delay in (0, 10)))
    )
    runs = [[watched(x, environment, seed, "float32") for x in (alone, late, later)] for seed in range(4)]
    for own, same, other in runs:
        for found, want in ((same.history.action, own.history.action), (same.history.reward, own.history.reward)):
            np.testing.assert_array_equal(found, want)
        chex.assert_trees_all_equal(same.state.base, own.state)
        assert [int(x.diagnostics["outstanding"]) for x in (same, other)] == [0, 10]
        assert [int(x.diagnostics["lost"]) for x in (same, other)] == [0, 0]
    if name != "uniform":
        assert any((own.history.action != other.history.action).any() for own, _, other in runs)


@pytest.mark.parametrize("name", dealt(["ucb1", "tsallis_inf", "linucb", "exp4"], 8, always=["ucb1"]))
def test_no_delay_in_a_sweep_over_delays_is_the_base_bit_for_bit(name):
    base, environment = base_of(name)
    data = jb.sweep(
        {"alone": base, "late": partial(a.delayed, base=base)}, environment, horizon=24, seeds=16,
        grid={"delay": [0, 1, 10]}, checkpoints=range(1, 25), progress=False,
    )  # fmt: skip
    alone = data.sel(algorithm="alone")
    for variable in set(data.data_vars) - {"best_reward", "lost", "outstanding"}:
        found = data[variable].sel(algorithm="late")
        np.testing.assert_array_equal(found.sel(delay=0), alone[variable].sel(delay=0))
    if name != "uniform":
        assert (data.regret.sel(algorithm="late", delay=10) != alone.regret.sel(delay=0)).any()
    counts = data.sel(algorithm="late")
    assert counts.lost.values.max() == 0
    np.testing.assert_array_equal(counts.outstanding, np.broadcast_to([[0], [1], [10]], (3, 16)))


@pytest.mark.parametrize("name", dealt(["ucb1", "exp3 without mixing", "linucb", "lazy_dp_ts"], 6))
def test_zeros_in_an_array_and_laws_of_mean_zero_are_no_delay(name):
    base, environment = base_of(name)
    arguments = {"horizon": 24, "seeds": 16, "checkpoints": range(1, 25), "progress": False}
    late = {f"late{i}": partial(a.delayed, base=base, delay=law) for i, law in enumerate(ZERO_LAWS)}
    data = jb.sweep({"alone": base, **late}, environment, **arguments)
    for label in late:
        np.testing.assert_array_equal(data.regret.sel(algorithm=label), data.regret.sel(algorithm="alone"))


ZERO_LAWS = ([0] * 24, ("geometric", 0.0), ("uniform", 0, 0))


def test_fixed_delays_share_a_program_and_so_do_laws():
    laws = [0, 1, 10, 3], [("geometric", 2.0), ("uniform", 1, 4), ("geometric", 0.5)]
    for delays, most in ((laws[0], None), ({str(law): law for law in laws[1]}, 12)):
        maker = partial(a.delayed, base=a.ucb1, max_delay=most)
        planned = plan(maker, W, horizon=50, seeds=8, grid={"delay": delays})
        assert len(planned.cells) == len(delays) and len(planned.groups) == 1
    grid = {"base.epsilon": [0.5, 1.0, 2.0]}
    nested = plan(partial(a.delayed, base=a.ldp_ucb, delay=3), W, horizon=50, seeds=8, grid=grid)
    assert len(nested.cells) == 3 and len(nested.groups) == 1


def test_which_bases_are_refused():
    lockstep = {name for name, error in REFUSED.items() if "lockstep" in error}
    assert lockstep == LOCKSTEP
    for name, error in REFUSED.items():
        if error:
            assert error.startswith(f"delayed: base = {name} ")
        if error and name not in LOCKSTEP:
            assert "plays windows or spans of its own" in error
    assert set(ACCEPTED) >= {"ucb1", "tsallis_inf", "exp3", "exp3_ix", "htinf", "linucb", "ldp_linucb", "exp4"}


def test_fixed_contexts_are_played_with_a_base_for_redrawn_ones():
    environment = contextual_linear(num_arms=4, dim=2, contexts="fixed")
    assert algorithm_for(partial(a.delayed, base=a.linucb, delay=2, horizon=24), environment).params.base.ridge == 1e-4


class Seen(NamedTuple):
    """How many updates there were, and a number that tells their order."""

    updates: Any
    order: Any
    outstanding: Any
    outstanding_sum: Any


@functools.cache
def witness_program():
    def init(params, draws):
        zero = jnp.int32(0)
        return Seen(zero, zero, zero, zero)

    def act(params, state, draws, t, context):
        # what the base is told, and what it learned, shows in its actions
        told = state.updates + state.order + 7 * state.outstanding + 13 * state.outstanding_sum
        return jnp.full(t.shape, told % jnp.int32(K)), None, t[0]

    def encode(params, note, draws, t, context, action, reward, play):
        return note.astype(draws.dtype)

    def update(params, state, draws, t, note, message, used):
        order = (31 * state.order + t + note) % jnp.int32(9973)
        return state._replace(updates=state.updates + 1, order=order), {"t": message, "note": note}

    return Program(init, act, encode, update)


class NoParams(NamedTuple):
    unused: Any


@factory
def witness(*, num_arms: int, horizon: int) -> Algorithm:
    """A base that releases whose message it was given."""
    return Algorithm(witness_program(), (Span(1, horizon),), NoParams(1.0), Guarantee(), ("witness", 1, ()), config={})


def delays_of(law, seed):
    """The delays of plays 1..T."""
    if isinstance(law, int):
        return [law] * T
    if isinstance(law, list):
        return law
    uniforms = exact_draw(seed, "delay", "uniform", np.arange(1, T + 1))
    of = literal.geometric_delay if law[0] == "geometric" else literal.uniform_delay
    return [of(u, *law[1:]) for u in uniforms]


BATCHES = [4 - t % 5 for t in range(T)]
LAWS = [
    (3, None), (7, 5), (("geometric", 6.0), None), (("geometric", 6.0), 8), (("uniform", 0, 30), 20), (BATCHES, None),
    ([(37 * t) % 23 for t in range(T)], 18),
]  # fmt: skip


def witnessed(law, most, seed, ref):
    """The literal queue around the witness: actions, arrivals, counts."""
    delays = delays_of(law, seed)
    due, lost, outstanding = ref.arrivals(delays, math.inf if most is None else most)
    counts = ref.waiting(delays, math.inf if most is None else most)
    updates = order = 0
    actions = []
    for t in range(1, T + 1):
        actions.append((updates + order + 7 * counts[t - 1] + 13 * sum(counts[:t])) % K)
        for s in due[t - 1]:
            updates, order = updates + 1, (31 * order + 2 * s) % 9973
    return actions, due, lost, outstanding, updates


@pytest.mark.parametrize("law, most", dealt(LAWS, 4, always=[LAWS[i] for i in (1, 3, 4, 6)]))
def test_messages_arrive_when_and_in_the_order_they_should(law, most):
    algorithm = a.delayed(num_arms=K, horizon=T, base=witness, delay=law, max_delay=most)
    for seed in range(3):
        run = watched(algorithm, TABLE, seed)
        actions, due, lost, outstanding, used = witnessed(law, most, seed, literal)
        np.testing.assert_array_equal(run.history.action, actions)
        shown = run.history.released
        for t in range(T):  # released when it arrives, and nothing else
            message, note = shown["t"][t], shown["note"][t]
            there = ~np.isnan(message)
            assert message[there].tolist() == note[note > 0].tolist() == due[t]
            assert there[: len(due[t])].all()
        assert int(run.diagnostics["lost"]) == lost and int(run.diagnostics["outstanding"]) == outstanding
        assert T == used + lost + outstanding == int(run.state.base.updates) + lost + outstanding


def test_the_bits_of_a_message_are_kept():
    with jax.enable_x64(True):
        tree = (
            np.array([1.5, -0.0, np.nan], np.float32), np.float64(np.pi), np.int32(-7), np.array([True, False]),
            np.array([1.5, -0.3], np.float16), np.array([-7, 5], np.int8),
            {"x": np.arange(4, dtype=np.int32).reshape(2, 2)},
        )  # fmt: skip

        @jax.jit
        def kept(tree):
            ring = message_ring.write_message(message_ring.empty_ring(tree, 5), jnp.int32(3), tree)
            return ring, message_ring.read_message(ring, jnp.int32(3), tree)

        ring, found = kept(tree)
        assert ring.shape == (5, 3 + 2 + 1 + 2 + 2 + 2 + 4)
        for x, y in zip(jax.tree.leaves(tree), jax.tree.leaves(found), strict=True):
            assert x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind == "f")


def test_rings_have_room_for_the_longest_delay_and_delayed_ucb1_learns():
    sizes = {
        law: a.delayed(num_arms=2, horizon=T, base=a.ucb1, delay=d, max_delay=most).version[2][2]
        for law, d, most in (("0", 0, None), ("16", 16, None), ("17", 17, None), ("T", 10**6, None), ("most", 3, 40))
    }
    assert sizes == {"0": 17, "16": 17, "17": 33, "T": 65, "most": 49}
    # docs/formulas: d + 1 plays of every arm before the next, K (d + 1) before all are seen.
    table = loss_table(losses=[[0.0, 1.0]] * 12)
    late, never = (watched(a.delayed(num_arms=2, horizon=12, base=a.ucb1, delay=d), table) for d in (3, 6))
    assert late.history.action.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0]
    assert np.bincount(never.history.action).tolist() == [7, 5]
    for given, counts in (({"delay": 20}, (0, 12)), ({"delay": 3, "max_delay": 0}, (12, 0))):
        told = watched(a.delayed(num_arms=2, horizon=12, base=a.ucb1, **given), table).diagnostics
        assert (int(told["lost"]), int(told["outstanding"])) == counts
    sure = a.hybrid_tsallis_inf(num_arms=4, horizon=9, tuning="best_of_both", delay_bound=0)
    assert sure.params == (0.0, 0.0, 1.0)


@pytest.mark.parametrize("law, most", dealt(LAWS[1:5], 4, always=[LAWS[3]]))
def test_ucb1_and_the_hybrid_are_the_literal_ones(law, most):
    for tuning, bound in (("simple", None), ("best_of_both", 0.5))[: 2 if most == 8 else 1]:
        base = partial(a.hybrid_tsallis_inf, tuning=tuning, delay_bound=bound)
        pairs = [(base, lambda ref, u, n=tuning, d=bound: ref.Hybrid(K, u, n, d))]
        if tuning == "simple":
            pairs.append((a.ucb1, lambda ref, u: ref.Ucb1(K)))
        for fast, learner in pairs:
            horizon = T if fast is a.ucb1 else T // 3
            of_law = law[:horizon] if isinstance(law, list) else law
            algorithm = a.delayed(num_arms=K, horizon=horizon, base=fast, delay=of_law, max_delay=most)
            for seed in range(2):
                run = watched(algorithm, TABLE, seed)
                uniforms, delays = exact_draw(seed, "alg/act", "uniform", np.arange(1, T + 1)), delays_of(law, seed)
                delays = delays[:horizon]
                found = literal.run(learner(literal, uniforms), REWARDS, delays, math.inf if most is None else most)
                np.testing.assert_array_equal(run.history.action, found)


def paths_of(ref):
    """Literal paths that are compared above: of the witness and of the hybrid under one law."""
    (law, most), t = LAWS[3], np.arange(1, T + 1)
    hybrid = ref.Hybrid(K, exact_draw(0, "alg/act", "uniform", t))
    return witnessed(law, most, 0, ref)[0], ref.run(hybrid, REWARDS, delays_of(law, 0)[: T // 2], most)


@pytest.mark.parametrize("error", errors([
    ("due[t + d].append(t)", "due[min(t + d + 1, horizon)].append(t)"),  # feedback a play late
    ("r + delays[r - 1] >= t", "r + delays[r - 1] > t"),  # outstanding for a play less
    ("(1 - reward) / x", "2 * (1 - reward) / x"), ("math.sqrt(2 * told[1] / log)", "math.sqrt(8 * told[1] / log)"),
], literal))  # fmt: skip
def test_planted_errors_fork_a_path(error):
    assert paths_of(planted(*error)) != paths_of(literal)


@pytest.mark.dealt(4)
def test_batches_by_an_array_are_a_run_in_batches():
    """ldp_linucb in windows of 5 plays, with a ridge that does not grow within them."""
    horizon, base = 30, partial(a.ldp_linucb, epsilon=8.0, radius_scale=0.2)
    environment = contextual_linear(num_arms=3, dim=2)
    alone = algorithm_for(partial(base, horizon=horizon), environment)
    flat = alone.params._replace(statistics=alone.params.statistics._replace(ridge_root=0.0))
    in_windows = alone._replace(params=flat, schedule=(Span(5, 1, length=horizon),))
    late = algorithm_for(partial(a.delayed, base=base, delay=BATCHES[:horizon], horizon=horizon), environment)
    late = late._replace(params=late.params._replace(base=flat))
    runs = [watched(x, environment, 1) for x in (in_windows, late)]
    np.testing.assert_array_equal(runs[0].history.action, runs[1].history.action)


@pytest.mark.parametrize("base", dealt(["ldp_ucb", "lazy_dp_ts"], 6, always=["ldp_ucb"]))
def test_the_claim_and_its_ledger_are_the_base_s_and_no_audit_refutes_it(base):
    base, horizon = partial(getattr(a, base), epsilon=1.0), 8
    alone = base(num_arms=2, horizon=horizon)
    for law in (2, ("uniform", 0, 3)):
        late = a.delayed(num_arms=2, horizon=horizon, base=base, delay=law, max_delay=3)
        claim, own = late.guarantee, alone.guarantee
        assert (claim.model, claim.unit, claim.bound, claim.scales) == (own.model, own.unit, own.bound, own.scales)
        assert claim.spend(late.params) == own.spend(alone.params)
        assert claim.events(late.params) == own.events(alone.params)
        assert ledger(late).epsilon == ledger(alone).epsilon
        half = claim.spend(late.params._replace(mechanism_scale=0.5))[0]
        assert half == pytest.approx(2 * own.spend(alone.params)[0])
    found = jb.audit(late, runs=20_000, confidence=0.99)
    assert not found.refuted and found.epsilon_lower > 0.1


def test_without_privacy_nothing_is_claimed():
    assert a.delayed(num_arms=2, horizon=9, base=a.ucb1, delay=2).guarantee == Guarantee()


def test_weights():
    x = literal.hybrid_weights([0.0, 1.0, 3.0], math.sqrt(10), 2.0)
    np.testing.assert_allclose(x, [0.4272175477, 0.3430373273, 0.229745125], atol=1e-9)
    rng = np.random.default_rng(1)
    found = uncompiled(lambda x, *scales: columns.together(tsallis.hybrid_weights(columns.from_array(x), *scales)))
    with jax.enable_x64(True):
        for number in (2, 3, 10):
            for _ in range(5):
                root, entropy = 10 ** rng.uniform(0, 3), rng.integers(0, 2) * 10 ** rng.uniform(-2, 4)
                losses = rng.exponential(size=number) * root
                want = literal.hybrid_weights(list(losses), root, entropy)
                got = found(losses - losses.min(), np.float64(root), np.float64(entropy))
                np.testing.assert_allclose(got, want, rtol=1e-9)


def test_without_delay_the_hybrid_is_tsallis_inf():
    runs = [watched(x(num_arms=K, horizon=T), TABLE) for x in (a.hybrid_tsallis_inf, a.tsallis_inf)]
    np.testing.assert_array_equal(runs[0].history.action, runs[1].history.action)


@pytest.mark.dealt(8)
def test_regret_under_delay_is_the_reference_value_s():
    """T = 2000, delay 50: 322.6 +- 1.2 with the hybrid and 61.8 +- 1.5 with Tsallis-INF."""
    data = jb.sweep(
        {"hybrid": partial(a.delayed, base=a.hybrid_tsallis_inf), "plain": partial(a.delayed, base=a.tsallis_inf)},
        W, horizon=2000, seeds=400, grid={"delay": [50]}, checkpoints=1, progress=False,
    )  # fmt: skip
    for label, value, error in (("hybrid", 322.6, 1.2), ("plain", 61.8, 1.5)):
        regret = data.regret.sel(algorithm=label).values.ravel()
        own = np.std(regret, ddof=1) / math.sqrt(len(regret))
        assert abs(regret.mean() - value) < 4 * math.hypot(own, error)


@pytest.mark.dealt(3)
def test_delayed_ucb1_s_regret():
    """T = 10^4: 139.4 +- 0.6 without delay and 260.7 +- 0.7 at delay 200."""
    data = jb.sweep(
        partial(a.delayed, base=a.ucb1, max_delay=200), W, horizon=10_000, seeds=256, grid={"delay": [0, 200]},
        checkpoints=1, progress=False,
    )  # fmt: skip
    for d, value in ((0, 139.4), (200, 260.7)):
        regret = data.regret.sel(delay=d).values.ravel()
        assert abs(regret.mean() - value) < 4 * math.hypot(regret.std(ddof=1) / 16, 0.7)
    bound = theory.delayed_ucb_bound([0.0, 0.2, 0.3, 0.5], 10_000, 200)
    assert 260.7 < bound == pytest.approx(theory.delayed_ucb_bound([0.2, 0.3, 0.5], 10_000, 0) + 200)


def test_values_of_theory():
    assert theory.geometric_bound(50, 10_000) == 1511 and theory.geometric_bound(0, 10) == 0
    for mean, horizon in ((0.1, 10), (3.0, 1000), (50, 10_000)):
        p, most = mean / (1 + mean), theory.geometric_bound(mean, horizon)
        assert horizon * p ** (most + 1) <= 1e-9 * (1 + 1e-9) and horizon * p**most > 1e-9
    assert [literal.geometric_delay(u, 50) for u in (0.5, 0.01)] == [35, 232]
    first, second = theory.hybrid_tuning(4, 50)
    assert (first, second) == (pytest.approx(1016.244892, abs=5e-7), pytest.approx(5030269.767, abs=5e-4))
    # the additive term of the published bound
    assert math.sqrt(second * math.log(4)) == pytest.approx(24 * 50 * 4 ** (1 / 3) * math.log(4))
    params = a.hybrid_tsallis_inf(num_arms=4, horizon=9, tuning="best_of_both", delay_bound=50).params
    assert (params.first, params.second, params.share) == (first, second, 1.0)
    assert theory.delayed_order(4, 2000, 0) == pytest.approx(math.sqrt(8000))


def test_the_claim_of_late_messages_is_at_its_scale_and_says_what_was_asked_for():
    """rho = 1/2 is noise of deviation 1; late sums come in another order, so that the first alone is looked at."""
    late = a.delayed(num_arms=2, dim=2, horizon=9, base=partial(a.adac_oful, rho=0.5), delay=("uniform", 0, 3))
    (event,) = late.guarantee.events(late.params._replace(mechanism_scale=2.0))
    assert (event.mechanism, event.sensitivity, event.scale, event.running) == ("gaussian", 1.0, 2.0, None)
    assert a.delayed(num_arms=2, horizon=9, base=partial(a.ldp_ucb, epsilon=1.5), delay=2).guarantee.claimed == 1.5


def test_late_sums_hold_as_many_plays_as_the_base_s():
    late = a.delayed(num_arms=3, dim=3, horizon=9, base=partial(a.online_ucb, epsilon=1.0), delay=2)
    assert late.program.float32_plays == 2**22
