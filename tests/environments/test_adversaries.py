"""Adversaries: literal definitions of every attack, rates, and that nothing happens at corruption 0."""

import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt
from numpy.testing import assert_allclose, assert_array_equal
from numpy_draws import NumpyDraws
from scipy import stats
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits.adversaries import budgeted, poison
from jaxbandits.adversaries.byzantine import byzantine
from jaxbandits.adversaries.huber import below_threshold, huber, mirror_arm
from jaxbandits.protocol import AdversaryView, Loss, Moments, Report, Truth
from jaxbandits.random import Draws

N, A = 4000, 5
MEANS = np.array([0.3, 0.9, 0.1, 0.9, 0.5], np.float32)
RNG = np.random.default_rng(0)
ACTION = RNG.integers(A, size=N).astype(np.int32)
REWARD = RNG.normal(size=N).astype(np.float32)


@functools.cache
def huber_run(attack, report):
    @uncompiled
    def run(params, draws, t, reward, action):
        play = jnp.ones(t.shape, bool)
        sample = lambda a: 100 + a.astype(jnp.float32)
        seen = AdversaryView(t, (), action, play, Truth(jnp.asarray(MEANS)), (), (), (), sample)
        payload = Report(reward, action, t % 2 == 0) if report else reward
        payload, hit, _ = attack.corrupt(params, (), draws, t, payload, seen)
        assert hit is False  # regret counts contaminated plays
        return payload.value if report else payload

    return run


def huber_on(adversary, report=False, start=0, stop=N, seed=1):
    params = jax.tree.map(np.float32, adversary.params)
    t = np.arange(start + 1, stop + 1, dtype=np.int32)
    run = huber_run(adversary.attack, report)
    return np.asarray(run(params, Draws(np.uint32(seed), "contamination"), t, REWARD[start:stop], ACTION[start:stop]))


MIRROR = {2: 3, 0: 1, 4: 4, 1: 0, 3: 2}  # ranks of MEANS: 2 < 0 < 4 < 1 = 3 (lower index first)
BEST = 1
LITERAL = {
    "fixed": (7.0, lambda r, a: 7.0),
    "swapped": (None, lambda r, a: 100.0 + MIRROR[a]),
    "sign_flip": (2.0, lambda r, a: -2 * r),
    "target": (-3.0, lambda r, a: -3.0 if a == BEST else 3.0),
}


@pytest.mark.parametrize("kind", LITERAL)
def test_huber_by_its_definition(kind):
    value, literal = LITERAL[kind]
    got = huber_on(huber(corruption=0.2, kind=kind, value=value))
    hit = got != REWARD
    assert abs(hit.mean() - 0.2) < 4 * np.sqrt(0.16 / N)
    want = np.array([literal(r, int(a)) for r, a in zip(REWARD, ACTION, strict=True)], np.float32)
    assert_array_equal(got[hit], want[hit])
    assert (got[~hit] == REWARD[~hit]).all()
    assert_array_equal(hit, huber_on(huber(corruption=0.2, value="inf")) == np.inf)  # one hit mask for all kinds


@pytest.mark.parametrize(
    ("kind", "law"), [("gaussian", stats.norm(2, 3)), ("cauchy", stats.cauchy(2, 3)), ("random_sign", None)]
)
def test_huber_laws(kind, law):
    got = huber_on(huber(corruption=1.0, kind=kind, value=2.0, scale=3.0)).astype(float)
    if law is None:
        assert set(np.unique(got)) == {-2.0, 2.0} and abs(got.mean()) < 8 / np.sqrt(N)
        return
    assert stats.kstest(got, law.cdf).pvalue > 1e-3
    assert stats.kstest(got, type(law)(law.dist, 2.3, 3).cdf).pvalue < 1e-3  # the test can fail
    assert abs(np.corrcoef(stats.rankdata(got), REWARD)[0, 1]) < 4 / np.sqrt(N)


@pytest.mark.parametrize("kind", ["fixed", "swapped", "gaussian", "cauchy", "sign_flip", "random_sign", "target"])
def test_huber_without_corruption_changes_no_bit_and_windows_do_not_matter(kind):
    assert_array_equal(huber_on(huber(corruption=0.0, kind=kind, value="nan" if kind == "fixed" else None)), REWARD)
    adversary = huber(corruption=0.3, kind=kind)
    whole = huber_on(adversary, stop=40)
    assert_array_equal(np.concatenate([huber_on(adversary, start=s, stop=s + 8) for s in range(0, 40, 8)]), whole)


def test_huber_on_reports_draws_once_a_report_and_leaves_absent_ones():
    got = huber_on(huber(corruption=1.0, kind="target", value=4.0), report=True)
    present = np.arange(1, N + 1) % 2 == 0
    assert_array_equal(got[~present], REWARD[~present])
    assert_array_equal(got[present], np.where(ACTION == BEST, -4.0, 4.0)[present])
    swapped = huber_on(huber(corruption=1.0, kind="swapped"), report=True)
    want = np.array([100 + MIRROR[int(a)] for a in ACTION])
    assert_array_equal(swapped, np.where(present, want, REWARD))


def test_mirrored_ranks_above_the_unrolled_size():
    means, rank = RNG.integers(10, size=50).astype(np.float32), uncompiled(mirror_arm)  # many ties
    for n in (50, 11):
        order, want = np.argsort(means[:n], kind="stable"), np.empty(n, np.int64)
        want[order] = order[::-1]
        assert_array_equal(rank(np.broadcast_to(means[:n], (n, n)), np.arange(n, dtype=np.int32)), want)


AGENTS, DIM, PLAYS = 10, 3, 7
X = RNG.normal(size=(AGENTS, 20, DIM))
GRAM, VECTOR = (X.transpose(0, 2, 1) @ X).astype(np.float32), RNG.normal(size=(AGENTS, DIM)).astype(np.float32)
THETA = np.array([0.5, -0.2, 0.1], np.float32)


@functools.cache
def byzantine_run(attack):
    def run(params, draws, first, gram, vector):
        t = first + jnp.arange(PLAYS + 2, dtype=jnp.int32)
        seen = AdversaryView(t, (), (), np.arange(PLAYS + 2) < PLAYS, Truth(theta=jnp.asarray(THETA)), (), (), (), None)
        return attack.corrupt(params, (), draws, t, Moments(gram, vector), seen)[:2]

    return uncompiled(jax.vmap(run, (None, None, 0, None, None)))


def byzantine_on(adversary, windows=1):
    """Grams, vectors and who attacked, in windows of `PLAYS` plays."""
    params, first = jax.tree.map(np.float32, adversary.params), 1 + PLAYS * np.arange(windows, dtype=np.int32)
    message, hit = byzantine_run(adversary.attack)(params, Draws(np.uint32(1), "attack"), first, GRAM, VECTOR)
    found = message.gram, message.vector, hit
    return found if windows > 1 else tuple(x[0] for x in found)


def literal_byzantine(kind, c, hit):
    """The table of docs/formulas/byzantine.md#attacks for one attacker: (U, u), None where its own message stays."""
    u_bar, g_bar = VECTOR[~hit].mean(0), GRAM[~hit].mean(0)
    spread = VECTOR[~hit].std(0)
    return {
        "constant": (c * PLAYS * np.eye(DIM), -c * PLAYS * np.ones(DIM)),
        "zero": (np.zeros((DIM, DIM)), np.zeros(DIM)),
        "nonfinite": (np.full((DIM, DIM), np.inf), np.full(DIM, np.nan)),
        "alie": (g_bar, u_bar - c * spread * np.sign(u_bar)),
        "inner_product": (g_bar, -c * u_bar),
        "target": (g_bar, g_bar @ (-c * THETA)),
    }[kind]


@pytest.mark.parametrize("part", ["both", "matrix", "vector"])
@pytest.mark.parametrize("kind", ["constant", "zero", "nonfinite", "alie", "inner_product", "target"])
def test_byzantine_by_its_definition(kind, part):
    gram, vector, hit = byzantine_on(byzantine(corruption=0.25, kind=kind, scale=1.5, part=part))
    assert hit.tolist() == [True] * 3 + [False] * 7  # floor(2.5 + 1/2)
    want_gram, want_vector = literal_byzantine(kind, 1.5, hit)
    for i in range(AGENTS):
        assert_allclose(gram[i], want_gram if hit[i] and part != "vector" else GRAM[i], rtol=2e-5, atol=1e-5)
        assert_allclose(vector[i], want_vector if hit[i] and part != "matrix" else VECTOR[i], rtol=2e-5, atol=1e-5)


def test_byzantine_sign_flip_and_none():
    gram, vector, hit = byzantine_on(byzantine(corruption=0.2, kind="sign_flip", scale=3.0))
    assert_array_equal(gram, GRAM)
    assert_allclose(vector, np.where(hit[:, None], -3 * VECTOR, VECTOR))
    gram, vector, hit = byzantine_on(byzantine(kind="none"))
    assert not hit.any() and (gram == GRAM).all() and (vector == VECTOR).all()


def test_byzantine_noise_is_symmetric_with_the_stated_scale():
    gram, vector, _ = byzantine_on(byzantine(corruption=0.4, kind="noise", scale=0.5), windows=700)
    gram = gram[:, :4].reshape(-1, DIM, DIM) / (0.5 * PLAYS)
    vector = vector[:, :4].reshape(-1, DIM) / (0.5 * PLAYS)
    assert_array_equal(gram, gram.transpose(0, 2, 1))
    assert len(np.unique(gram[:4])) == 4 * 6  # every agent and every pair of coordinates has a draw of its own
    assert stats.kstest(gram[:, 0, 1], "norm").pvalue > 1e-3 and stats.kstest(vector[:, 0], "norm").pvalue > 1e-3
    assert stats.kstest(gram[:, 1, 1], stats.norm(0, np.sqrt(2)).cdf).pvalue > 1e-3
    assert stats.kstest(gram[:, 1, 1], "norm").pvalue < 1e-3


@pytest.mark.parametrize("corruption", [0.0, 0.05, 0.15, 0.25, 0.35, 0.449, 0.45])
def test_number_of_byzantine_agents(corruption):
    hit = byzantine_on(byzantine(corruption=corruption, kind="zero"))[2]
    want = int(np.floor(round(corruption * AGENTS, 9) + 0.5))
    assert hit.tolist() == [i < want for i in range(AGENTS)]


def test_byzantine_agents_attack_with_the_given_chance_in_each_window():
    adversary = byzantine(corruption=0.4, kind="inner_product", prob=0.3)
    _, vectors, hit = byzantine_on(adversary, windows=400)
    assert not hit[:, 4:].any() and abs(hit[:, :4].mean() - 0.3) < 4 * np.sqrt(0.21 / 1600)
    some = int(np.flatnonzero((hit.sum(1) > 0) & (hit.sum(1) < 4))[0])  # honest that day: agents of the four included
    vector, h = vectors[some], hit[some]
    assert_allclose(vector[h], np.broadcast_to(-VECTOR[~h].mean(0), vector[h].shape), rtol=1e-4, atol=1e-6)


def test_attacks_refuse_what_they_do_not_know():
    with pytest.raises(ValueError, match="Moments"):
        byzantine().attack.corrupt(byzantine().params, (), Draws(np.uint32(0)), jnp.arange(1), jnp.zeros(1), None)
    with pytest.raises(ValueError, match="rewards or reports"):
        huber().attack.corrupt(huber().params, (), Draws(np.uint32(0)), jnp.arange(1), Moments(0, 0), None)


def attacked_message(kind, payload, action=BEST, value=3.0, encode=None, plays=4, made=3, state=(), batch=1):
    adversary = huber(corruption=1.0, kind=kind, value=value, batch=batch)

    @uncompiled
    def corrupted(params, payload):
        t = jnp.arange(1, plays + 1, dtype=jnp.int32)
        seen = AdversaryView(
            t, (), jnp.full(plays, action), t <= made, Truth(jnp.asarray(MEANS)), (), state, (),
            lambda a: jnp.full(plays, 0.25), encode,
        )  # fmt: skip
        return adversary.attack.corrupt(params, (), Draws(np.uint32(1), "attack"), t, payload, seen)[0]

    return corrupted(jax.tree.map(np.float32, adversary.params), payload)


def test_huber_on_losses_makes_a_good_arm_look_worse():
    loss = Loss(np.float32(0.4))
    assert float(attacked_message("fixed", loss).total) == 3
    assert float(attacked_message("sign_flip", loss, value=2.0).total) == pytest.approx(-0.8)
    assert float(attacked_message("target", loss).total) == 3
    assert float(attacked_message("target", loss, action=0).total) == -3
    assert float(attacked_message("swapped", loss).total) == pytest.approx(3 * 0.75)  # of the three plays made


def test_nothing_that_was_not_made_is_hit():
    message = {"gram": np.ones((2, 2), np.float32)}
    assert float(attacked_message("fixed", Loss(np.float32(0.5)), made=0).total) == 0.5
    assert (np.asarray(attacked_message("fixed", message, made=0)["gram"]) == 1).all()
    assert (np.asarray(attacked_message("fixed", message, made=1)["gram"]) == 3).all()


@pytest.mark.parametrize(("kind", "wanted"), [("target", [-3.0, 3.0, 3.0]), ("swapped", [0.0, 0.0, 2.0])])
def test_arms_rank_by_the_means_of_their_own_play(kind, wanted):
    """One window of three plays of arm 1, which is best, worst and worst."""
    means = np.float32([[0.1, 0.9, 0.5], [0.9, 0.1, 0.5], [0.5, 0.1, 0.9]])
    adversary = huber(corruption=1.0, kind=kind, value=3.0)

    @uncompiled
    def corrupted(params, means, t, action, reward):
        sample = lambda arm: arm.astype(jnp.float32)
        seen = AdversaryView(t, (), action, t > 0, Truth(means), (), (), (), sample)
        return adversary.attack.corrupt(params, (), Draws(np.uint32(1), "attack"), t, reward, seen)[0]

    t, arm = np.arange(1, 4, dtype=np.int32), np.ones(3, np.int32)
    params = jax.tree.map(np.float32, adversary.params)
    assert corrupted(params, means, t, arm, np.zeros(3, np.float32)).tolist() == wanted


def test_huber_hides_below_a_threshold_and_waits_for_a_batch():
    """value sqrt((4 n lambda - rho^2) / corruption), below 0 for the best arm; a burst hits one batch."""
    state = SimpleNamespace(threshold=np.float32(9.0), mean_square=np.float32(2.0), batch=np.int32(0))
    rewards = np.zeros(4, np.float32)
    for action, sign in ((BEST, -1), (0, 1)):
        found = attacked_message("subthreshold", rewards, action, value=0.5, state=state)
        assert_allclose(found, sign * 0.5 * np.sqrt(7.0), rtol=1e-6)
    quarter = uncompiled(functools.partial(below_threshold, state))(np.float32(0.25))
    assert float(quarter) == pytest.approx(2 * np.sqrt(7), rel=1e-6)
    below = SimpleNamespace(threshold=np.float32(1.0), mean_square=np.float32(2.0))
    assert_array_equal(attacked_message("subthreshold", rewards, state=below), rewards)
    assert_array_equal(attacked_message("burst", rewards, state=state), np.full(4, 3.0))
    for closed, hit in ((0, False), (1, True), (2, False)):
        found = attacked_message("burst", rewards, state=SimpleNamespace(batch=np.int32(closed)), batch=2)
        assert_array_equal(found, np.full(4, 3.0 * hit))
    needs = {"subthreshold": "hides below the threshold of a learner's filter", "burst": "waits for a batch"}
    for kind, told in needs.items():
        with pytest.raises(ValueError, match=rf"^huber\(kind='{kind}'\) {told}: use it with "):
            attacked_message(kind, rewards)


def test_what_an_attack_is_built_with():
    values = dict.fromkeys(("fixed", "random_sign", "target", "burst"), 10)
    values |= {"sign_flip": 1, "in_range": 1, "subthreshold": 0.99}
    for kind in ("swapped", "gaussian", "cauchy", *values):
        assert huber(kind=kind).params == (0.1, values.get(kind, 0), 1.0, 1)
    for value, want in (("inf", np.inf), ("-inf", -np.inf), (np.inf, np.inf), (-2.5, -2.5), (0, 0)):
        assert huber(value=value).params.value == want
    assert np.isnan(huber(value="nan").params.value) and np.isnan(huber(value=np.nan).params.value)
    assert huber(kind="burst", batch=3).params.batch == 3
    for given, told in (
        ({"batch": 2}, r"^batch = 2 needs kind='burst', not 'fixed': no other kind waits for a batch$"),
        ({"value": "one"}, r"^value = 'one' must be a number, 'inf', '-inf' or 'nan'$"),
        ({"value": [1]}, "value = .1."),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=told):
            huber(**given)
    with pytest.raises(ValueError, match=r"^part = 'matrix' changes nothing with kind='sign_flip': use 'both' or 'vec"):
        byzantine(kind="sign_flip", part="matrix")
    assert byzantine(kind="sign_flip", part="vector").params == byzantine(kind="zero", part="matrix").params
    budget = functools.partial(budgeted, total=7.0, horizon=101)
    last = 2**31 - 1
    for schedule, want in (
        ("early", (0, last, np.inf)), ("late", (50, last, np.inf)), ("burst", (25, 32, np.inf)),
        ("uniform", (0, last, 7 / 101)),
    ):  # fmt: skip
        assert budget(schedule=schedule).params == (7.0, 1.0, 0.0, 1.0, 0.1, *want)
    with pytest.raises(
        ValueError, match=r"^schedule = 'late' needs horizon, the plays of a run: give it, or leave the "
    ):
        budgeted(total=1.0, schedule="late")
    for low, high in ((1.0, 1.0), (2.0, 1.0)):
        with pytest.raises(ValueError, match=f"^low = {low} must be below high = {high}: no reward lies between them$"):
            budget(low=low, high=high)


def test_ranges_after_an_attack():
    """Ends of the rewards -0.5 to 2 when some may have been replaced."""
    for adversary, want in (
        (huber(value=5.0), (-5.0, 5.0)), (huber(value=-5.0), (-5.0, 5.0)), (huber(value=1.0), (-1.0, 2.0)),
        (huber(value=0.25), (-0.5, 2.0)), (huber(value=5.0, corruption=0.0), (-0.5, 2.0)),
        (huber(value="nan"), (-np.inf, np.inf)), (huber(kind="swapped", value=9.0), (-0.5, 2.0)),
        (huber(kind="sign_flip", value=3.0), (-6.0, 6.0)), (huber(kind="gaussian"), (-np.inf, np.inf)),
        (huber(kind="cauchy"), (-np.inf, np.inf)), (huber(kind="subthreshold"), (-np.inf, np.inf)),
        (huber(kind="target", value=3.0), (-3.0, 3.0)), (huber(kind="random_sign", value=3.0), (-3.0, 3.0)),
        (huber(kind="burst", value=5.0), (-5.0, 5.0)), (huber(kind="in_range", value=5.0), (-5.0, 5.0)),
        (poison(), (-2.0, 2.0)),
        (budgeted(total=9.0, size=0.75, low=-9.0), (-1.25, 2.0)),
        (budgeted(total=0.5, size=0.75, low=-9.0), (-1.0, 2.0)),
        (budgeted(total=9.0, low=-0.75), (-0.75, 2.0)), (budgeted(total=9.0, low=0.0), (-0.5, 2.0)),
        (budgeted(total=9.0, kind="empirical_best", low=-9.0), (-1.5, 2.0)),
        (budgeted(total=9.0, kind="swap", low=-9.0, high=9.0), (-0.5, 2.0)),
        (budgeted(total=9.0, kind="raise_worst", size=0.75, high=9.0), (-0.5, 2.75)),
        (budgeted(total=9.0, kind="raise_worst", high=2.25), (-0.5, 2.25)),
        (budgeted(total=9.0, kind="raise_worst", high=1.0), (-0.5, 2.0)),
    ):  # fmt: skip
        assert adversary.reward_range(adversary.params, -0.5, 2.0) == want
    assert poison().reward_range(poison().params, 0.25, 2.0) == (-2.0, 2.0)
    assert poison().reward_range(poison().params, -3.0, 1.0) == (-3.0, 3.0)
    flipped = huber(kind="sign_flip", value=3.0)
    assert flipped.reward_range(flipped.params, -2.0, 0.5) == (-6.0, 6.0)
    with pytest.raises(ValueError, match="poison corrupts the rewards of agents: use it as reward_adversary"):
        view = AdversaryView((), (), (), (), Truth(jnp.ones(3)), (), (), (), None)
        poison().attack.corrupt(poison().params, (), Draws(jnp.uint32(0)), jnp.arange(1), jnp.zeros((1, 2)), view)


def test_laws_of_point_masses():
    """Values and probabilities of two arms' rewards 0 and 2 when a fifth of them is replaced."""
    values, means = np.float32([0.0, 2.0]), np.float32([1.4, 0.2, 1.0])
    p = np.float32([[0.3, 0.7], [0.9, 0.1], [0.5, 0.5]])
    clean = 0.8 * p
    for kind, value, added, weights in (
        ("fixed", -3.0, [-3.0], [[0.2]] * 3), ("random_sign", -3.0, [-3.0, 3.0], [[0.1, 0.1]] * 3),
        ("target", -3.0, [-3.0, 3.0], [[0.2, 0.0], [0.0, 0.2], [0.0, 0.2]]), ("sign_flip", 1.5, [0.0, -3.0], 0.2 * p),
        ("swapped", None, [], np.zeros((3, 0))),
    ):  # fmt: skip
        attack = huber(corruption=0.2, kind=kind, value=value)
        found = uncompiled(attack.attack.law)(attack.params, values, p, Truth(means))
        assert_allclose(found[0], [*values, *added], rtol=1e-6)
        masses = clean + 0.2 * p[[1, 0, 2]] if kind == "swapped" else clean
        assert_allclose(found[1], np.concatenate([masses, weights], -1), rtol=1e-6)
    assert huber(kind="gaussian").attack.law is None is huber(kind="burst").attack.law


def test_huber_on_messages_of_several_numbers_replaces_them_all():
    message = {"gram": np.ones((2, 2), np.float32), "vector": np.arange(3, dtype=np.float32), "count": np.int32(7)}
    got = attacked_message("fixed", message)
    assert (np.asarray(got["gram"]) == 3).all() and (np.asarray(got["vector"]) == 3).all() and int(got["count"]) == 7
    normal = attacked_message("gaussian", message)
    assert len(np.unique(np.concatenate([np.ravel(normal["gram"]), normal["vector"]]))) == 7
    with pytest.raises(ValueError, match="kind='target'"):
        attacked_message("target", message)


def test_an_attacker_in_range_sends_what_an_honest_client_could_have_sent():
    def encode(draws, rewards):  # one bit a play, of size 2
        t = jnp.arange(1, rewards.shape[0] + 1)
        sent = jnp.where(draws.uniform(t) < 0.5 + rewards / 20, 2.0, -2.0)
        return Report(sent, None, None) if rewards.shape[0] == 4 else Loss(-sent[0])

    calls = []

    def listed(draws, rewards):
        calls.append(draws)
        return encode(draws, rewards)

    plain = Report(np.zeros(4, np.float32), np.full(4, BEST, np.int32), np.ones(4, bool))
    # by the value's size, whatever its sign
    assert_array_equal(attacked_message("in_range", plain, value=-3.0, encode=listed).value, -2.0)
    assert len(calls) == 16
    told = attacked_message("in_range", plain, value=-3.0, encode=lambda draws, rewards: Report(rewards, None, None))
    assert_array_equal(told.value, -3.0)
    assert_array_equal(attacked_message("in_range", plain, encode=encode).value, -2.0)
    other = plain._replace(arm=np.zeros(4, np.int32))
    assert_array_equal(attacked_message("in_range", other, action=0, encode=encode).value, 2.0)
    assert float(attacked_message("in_range", Loss(np.float32(0)), encode=encode, plays=1).total) == 2
    with pytest.raises(ValueError, match="message_adversary"):
        attacked_message("in_range", np.zeros(4, np.float32))


@pytest.mark.parametrize(
    "name", dealt(["exp3", "ldp_exp3", "private_batched", "htinf"], 4, always=["ldp_exp3", "private_batched"])
)
def test_losses_under_attack_cost_regret(name):
    a = jb.algorithms
    made = {
        "exp3": a.exp3, "htinf": a.htinf, "ldp_exp3": functools.partial(a.ldp_exp3, epsilon=4.0),
        "private_batched": functools.partial(a.private_batched, epsilon=1.0, base=a.exp3),
    }[name]  # fmt: skip
    losses = functools.partial(jb.environments.bernoulli_losses, means=[0.1, 0.9])
    settings = {"horizon": 1000, "seeds": 8, "checkpoints": 1, "progress": False}
    clean = jb.sweep(made, losses, **settings)
    grid = {"message_adversary.corruption": [0.0, 0.4]}
    attack = functools.partial(huber, kind="target", value=5.0)
    found = jb.sweep(made, losses, message_adversary=attack, grid=grid, **settings)
    regret = found.regret.squeeze().transpose("message_adversary.corruption", "seed").values
    assert_array_equal(regret[0], clean.regret.squeeze().values)
    assert regret[1].mean() > 1.3 * regret[0].mean()


def test_an_attack_in_range_is_the_strongest_that_a_clipping_server_lets_through():
    arms = functools.partial(jb.environments.bernoulli_arms, means=[0.8, 0.2])
    local = functools.partial(jb.algorithms.local_robust_elimination, epsilon=1.0, moment_order=np.inf)
    settings = {"horizon": 20_000, "seeds": 16, "checkpoints": 1, "progress": False}
    attacks = {
        "infinite": {"message_adversary": functools.partial(huber, corruption=0.1, kind="target", value="inf")},
        "in range": {"message_adversary": functools.partial(huber, corruption=0.1, kind="in_range")},
        "before": {
            "reward_adversary": functools.partial(huber, kind="target", value=1.0),
            "grid": {"reward_adversary.corruption": [0.0, 0.1]},
        },
    }
    regret = {k: jb.sweep(local, arms, **x, **settings).regret.mean("seed").values.ravel() for k, x in attacks.items()}
    assert regret["in range"] == pytest.approx(regret["infinite"], rel=0.02)
    none, before = regret["before"]
    assert regret["in range"] > before > none


def test_a_message_of_several_numbers_is_hit_as_a_whole_in_its_window():
    message = {"gram": np.ones((2, 2), np.float32), "vector": np.ones(3, np.float32)}
    adversary = huber(corruption=0.5, value=3.0)

    @uncompiled
    def corrupted(params, t, message):
        seen = AdversaryView(t, (), jnp.zeros(1, jnp.int32), t > 0, Truth(jnp.asarray(MEANS)), (), (), (), None)
        return adversary.attack.corrupt(params, (), Draws(np.uint32(1), "attack"), t, message, seen)[0]

    hit = NumpyDraws(1, "attack/hit", np.float32).uniform(np.arange(1, 41)) < 0.5
    params = jax.tree.map(np.float32, adversary.params)
    for t, one in enumerate(hit, start=1):
        for x in corrupted(params, np.array([t], np.int32), message).values():
            assert_array_equal(x, np.full(x.shape, 3.0 if one else 1.0))
    assert 10 < hit.sum() < 30
