"""Who plays where: every pair of the catalogue, `jb.plays`, and what a sweep says where a pair does not fit."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt

import jaxbandits as jb
from jaxbandits import catalogue, simulator
from jaxbandits.checking.subject import Subject
from jaxbandits.environments.arms import arms_world
from jaxbandits.protocol import Algorithm, Environment, Program, Span
from jaxbandits.recipe import recipe_of
from jaxbandits.sweeps.plan import build_algorithm, parts_in
from jaxbandits.sweeps.who_plays import READS, what_is_shown
from jaxbandits.validation import factory

a, e = jb.algorithms, jb.environments

# what an environment shows -> what an algorithm may read there
OFFERED = {
    "nothing": {"arms"}, "row": {"row", "arms"}, "decision set": {"set", "arms"},
    "fixed set": {"set", "actions", "arms"}, "advice": {"advice", "arms"}, "agents": {"agents"},
}  # fmt: skip
READ_IN_WING = {"contextual": "set", "linear": "actions", "federated": "agents"}
EXPERTS = ("exp4", "local_exp4", "batched_exp4", "bandit_to_experts")


# these have one model for each arm where that is asked for
PER_ARM = ("linucb", "linear_thompson", "epsilon_greedy", "ldp_linucb", "jdp_linucb")


def read_by(name):
    """What an algorithm may read, by where its file is."""
    wing = getattr(a, name).__module__.split(".")[2]
    kind = "advice" if name in EXPERTS else READ_IN_WING.get(wing, "arms")
    return {kind, "row"} if name in PER_ARM else {kind}


@cache
def world(name):
    return catalogue.ENVIRONMENTS[name].environment()


PAIRS = [(x, y) for x in catalogue.ALGORITHMS for y in catalogue.ENVIRONMENTS]
FITTING = [(x, y) for x, y in PAIRS if read_by(x) & OFFERED[what_is_shown(world(y))]]


def test_every_pair_is_answered_as_it_is_built():
    """Names alone answer; where the answer is no, a sweep says the same, and three algorithms that do play there."""
    for name, where in PAIRS:
        answer, environment = jb.plays(name, world(where)), world(where)
        assert answer.ok == bool(answer) == ((name, where) in FITTING), (name, where)
        case = catalogue.ALGORITHMS[name].algorithm
        if answer:
            assert answer.reason == ""
            continue
        with pytest.raises((TypeError, ValueError)) as error:
            build_algorithm(recipe_of(case), environment, 96, name)
        assert str(error.value) == answer.reason
        *_, who = answer.reason.removesuffix(" play there").split("; ")
        named = who.replace(" and", ",").split(", ")
        assert len(named) == 3 and all((one, where) in FITTING for one in named), answer.reason
        fitting = answer.reason.replace("classification with view='blocks'", "")
        fitting = [x for x in catalogue.ENVIRONMENTS if x in fitting and x != where]
        assert fitting and all((name, x) in FITTING for x in fitting), answer.reason


def test_the_named_environments_are_those_of_the_catalogue():
    for kind, (world_name, _) in catalogue.NATURAL.items():
        assert catalogue.WORLDS[world_name]().config["name"] in READS[kind][1]


@pytest.mark.parametrize(("name", "where"), dealt(FITTING, 16))
def test_a_window_of_a_pair_that_plays_is_traced(name, where):
    algorithm = catalogue.ALGORITHMS[name].algorithm
    if name == "epsilon_greedy" and what_is_shown(world(where)) == "row":
        algorithm = a.epsilon_greedy  # that of the catalogue is shuffled, which one model for each arm refuses
    subject = Subject(algorithm, world(where), horizon=96)
    parts = parts_in(subject.cell, "float32")
    jax.eval_shape(partial(simulator.begin, parts, checkpoints=1), subject.case(), np.uint32(0))


# One of each kind of algorithm on each kind of environment. Where both are the natural ones, every test of the
# catalogue plays them; `test_six_learners_of_one_linear_problem` plays two more.
PLAYED = [
    ("ucb1", catalogue.contexts), ("thompson", catalogue.experts), ("exp3", catalogue.rows),
    ("epsilon_greedy", catalogue.natural("row", {"num_arms": 4, "dim": 3})),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "where"), PLAYED, ids=["arms on decision sets", "arms on advice", "arms on rows", "rows on rows"]
)
def test_one_pair_of_each_kind_is_played(name, where):
    played = jb.sweep(name, where, horizon=16, seeds=2, checkpoints=2, progress=False)
    assert np.isfinite(played.regret).all()


def test_shuffled_statistics_are_of_one_model_for_all_arms():
    shuffled = partial(a.epsilon_greedy, statistics="shuffle", epsilon=2.0)
    assert jb.plays(shuffled, "linear_arms") and not jb.plays(shuffled, "classification")
    assert "epsilon_greedy reads dim features of each arm" in jb.plays(shuffled, "classification").reason


SIX = ["linucb", "cw_oful", partial(a.hvt_linucb, moment_scale=0.25), "linear_thompson", "phased_elimination"]
SIX += [partial(a.robust_elimination, num_batches=4)]


@pytest.mark.compiles(40)
def test_six_learners_of_one_linear_problem():
    """Decision sets and fixed sets in one sweep, on the same noise."""
    played = jb.sweep(SIX, catalogue.bounded, horizon=64, seeds=4, checkpoints=2, progress=False)
    assert played.pulls.sum("arm").values.tolist() == [[64] * 4] * 6
    best = catalogue.bounded().facts["means"].max()
    lost = 64 * best - (played.pulls * catalogue.bounded().facts["means"]).sum("arm")
    np.testing.assert_allclose(played.regret[..., -1], lost, atol=1e-9)


# ---- refusals


def test_an_algorithm_of_arms_for_agents_is_refused_everywhere():
    words = "ucb1 plays one arm at a time, and federated_linear has agents, of which each plays an arm: ucb1 plays on "
    agents = partial(e.federated_linear, num_agents=3, num_arms=4, dim=2)
    for call in (
        lambda: jb.sweep("ucb1", agents, horizon=9, seeds=1),
        lambda: jb.simulate(partial(a.ucb1, horizon=9), agents),
        lambda: jb.simulate(a.ucb1(num_arms=4, horizon=9), agents),
    ):
        with pytest.raises(ValueError, match=words + "bernoulli_arms; isolated_linucb, oracle_linucb and byz"):
            call()
    [finding] = jb.check("ucb1", lambda: agents()).findings
    assert finding.rule == "builds" and words in finding.message


def rows_shown(*, num_arms=3, dim=2):
    """A world whose every play shows one row for all arms: (1, t, 0, ...)."""
    plain = arms_world(num_arms, lambda params, draws, t, action: jnp.where(action == t % num_arms, 1.0, 0.0))

    def observe(params, state, draws, t):
        row = jnp.concatenate([jnp.ones((*t.shape, 1)), t[:, None].astype(draws.dtype)], -1)
        return jnp.pad(row, ((0, 0), (0, dim - 2))), state

    facts = {"num_arms": num_arms, "dim": dim, "shows": "row", "means": np.full(num_arms, 1 / num_arms)}
    return Environment(plain._replace(observe=observe), (), facts)


@cache
def follower(num_arms, dim, per_arm):
    """A program that plays arm t mod K, read from the features, and keeps what its messages hold."""

    def act(params, state, draws, t, context):
        expected = (1, dim) if per_arm else (1, num_arms, dim)
        if context.shape != expected:
            raise ValueError(f"contexts have shape {context.shape}")
        x = context[:, 1] if per_arm else context[:, 0, 1]
        return x.astype(jnp.int32) % num_arms, None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        return context[0] if per_arm else context[0, action[0]], reward[0]

    def update(params, state, draws, t_last, note, message, used):
        return state + message[1] * message[0], ()

    return Program(lambda params, draws: jnp.zeros(dim, draws.dtype), act, encode, update)


@factory(plays_on="decision set")
def reader(*, num_arms, dim, horizon, models="shared"):
    """A learner of linear rewards that names `models`."""
    per_arm = models == "per_arm"
    functions = follower(num_arms, dim, per_arm)
    return Algorithm(functions, (Span(1, horizon),), (), plays_on="row" if per_arm else None)


def test_models_are_filled_in_on_rows():
    """Through conversions too; the delayed one is told the shape of a row."""
    row = rows_shown()
    assert build_algorithm(recipe_of(reader), row, 9, "reader").config["models"] == "per_arm"
    sets = catalogue.contexts()
    assert build_algorithm(recipe_of(reader), sets, 9, "reader").config["models"] == "shared"
    bound = partial(reader, models="per_arm", horizon=9)
    assert jb.plays(bound, row) and jb.plays(bound, sets) and jb.plays(bound(num_arms=6, dim=3), sets)
    sums = []
    for delay in (0, 2):
        late = partial(a.delayed, base=reader, delay=delay, horizon=9)
        assert jb.plays(late, row) and jb.plays(partial(a.doubling, base=reader), row)
        run = jb.simulate(late, row, checkpoints=[9])
        assert run.pulls.tolist() == [3, 3, 3]
        sums.append(np.asarray(run.state.base).tolist())
    assert sums == [[9, 45], [7, 28]]  # sums of 1 and of t, over the plays whose message has come
    doubled = build_algorithm(recipe_of(partial(a.doubling, base=reader)), row, 9, "doubling")
    assert doubled.plays_on == "row" and doubled.config["models"] == "per_arm"


@pytest.mark.parametrize(
    "algorithm",
    [
        a.cw_oful, partial(reader, models="shared"), partial(a.delayed, base=partial(reader, models="shared")),
        partial(a.delayed, base=reader, models="shared"), partial(a.doubling, base=a.cw_oful), a.bandit_combiner,
    ],
    ids=["no models", "shared", "shared base", "shared by a conversion", "base without models", "bases without models"],
)  # fmt: skip
def test_a_shared_model_on_rows_is_refused_with_both_remedies(algorithm):
    with pytest.raises(ValueError, match=r"one model for all arms.*models='per_arm'.*view='blocks'.* play there"):
        jb.sweep(algorithm, rows_shown, horizon=9, seeds=1)
    assert not jb.plays(algorithm, rows_shown)


def test_built_learners_are_judged_by_what_they_are():
    row, sets = rows_shown(), catalogue.contexts(num_arms=3, dim=2)
    shared, per_arm = (reader(num_arms=3, dim=2, horizon=9, models=models) for models in ("shared", "per_arm"))
    assert jb.plays(per_arm, row) and jb.plays(per_arm, sets) and jb.plays(shared, sets)
    with pytest.raises(ValueError, match="models='per_arm'"):
        jb.simulate(shared, row)
    told = a.phased_elimination(actions=np.eye(3), horizon=9)  # it is given what it would read
    assert jb.plays(told, catalogue.arms) and jb.plays(partial(a.phased_elimination, actions=np.eye(3)), catalogue.arms)
    assert not jb.plays(told, catalogue.federated)


def test_users_own_parts_are_asked_by_names():
    """Only where they say nothing: an argument with a default asks for nothing; facts in their order."""

    def needs(*, num_arms, dim, horizon): ...
    def may_use(*, num_arms, horizon, dim=None, num_agents=None): ...
    def wraps(*, num_experts, base): ...

    assert not jb.plays(needs, catalogue.arms) and jb.plays(needs, catalogue.contexts)
    assert all(jb.plays(may_use, catalogue.WORLDS[name]) for name in ("arms", "contexts", "experts", "federated"))
    assert not jb.plays(partial(may_use, num_agents=3), catalogue.arms)
    assert jb.plays(partial(wraps, base=a.ucb1), catalogue.experts)
    assert not jb.plays(partial(wraps, base=a.ucb1), catalogue.arms)
    assert not jb.plays(needs, rows_shown) and jb.plays(factory(plays_on="row")(needs), rows_shown)
    facts = {"num_agents": 1, "num_experts": 2, "actions": np.eye(2), "dim": 2}
    for shown in ("agents", "advice", "fixed set", "decision set", "nothing"):
        assert what_is_shown(rows_shown()._replace(facts=dict(facts))) == shown
        facts.pop(next(iter(facts), ""), None)
    quiet = catalogue.contexts()._replace(facts={"num_arms": 6})
    assert "as its facts say, of which none is 'shows'" in jb.plays("linucb", quiet).reason


def test_wrong_words_are_named():
    with pytest.raises(ValueError, match=r"facts\['shows'\] = 'rows' must be one of .*'row'"):
        jb.plays("ucb1", catalogue.arms()._replace(facts={"num_arms": 3, "shows": "rows"}, remake=None))
    with pytest.raises(ValueError, match=r"plays_on = 'contexts' must be one of .*'decision set'"):
        factory(plays_on="contexts")
    with pytest.raises(ValueError, match=r"Algorithm.plays_on = 'contexts' must be one of .*'decision set'"):
        jb.simulate(a.ucb1(num_arms=3, horizon=9)._replace(plays_on="contexts"), catalogue.arms)
    with pytest.raises(ValueError, match="ucb1"):
        jb.plays("ucb", "bernoulli_arms")


def test_no_algorithm_is_built():
    assert jb.plays(partial(a.linucb, preset="a wrong value"), "contextual_linear")
