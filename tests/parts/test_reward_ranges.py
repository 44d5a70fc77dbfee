"""The rewards that algorithms declare they read, the ranges that environments state, the warning where they part."""

import inspect
import json
import math
import warnings
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dealt import dealt
from uncompiled import uncompiled

import jaxbandits as jb
from jaxbandits import catalogue
from jaxbandits.cli import main
from jaxbandits.commands import listing
from jaxbandits.declared import NonNegative, NumArms, Range
from jaxbandits.protocol import Rewards
from jaxbandits.random import Draws
from jaxbandits.reports.citations import paper
from jaxbandits.sweeps import assumptions
from jaxbandits.validation import factory

SETTINGS = {"horizon": 20, "seeds": 2, "checkpoints": 2, "progress": False}
GAUSSIAN = jb.environments.gaussian_arms(means=[3.0, 5.0])
PLAYS = 4  # of a window; clients that aggregate are given all of them


def reader(algorithm, environment):
    """reward -> what becomes of a first window that pays it at every play: the message, and the state after it."""
    program, world, params = algorithm.program, environment.world, algorithm.params
    slots = min(algorithm.schedule[-1].slots, PLAYS)
    draws, t = Draws(np.uint32(3), "", jnp.float32), np.arange(1, slots + 1, dtype=np.int32)
    played = np.ones(slots, np.int32 if program.hints.tally else bool)

    def read(reward):
        context, _ = world.observe(environment.params, world.init(environment.params, draws), draws.child("context"), t)
        state = program.init(params, draws.child("init"))
        action, _, note = program.act(params, state, draws.child("act"), t, context)
        action = jnp.broadcast_to(action, (slots, *action.shape[1:]))
        rewards = jnp.full(action.shape, reward, jnp.float32)
        message = program.encode(params, note, draws.child("encode"), t, context, action, rewards, played)
        relayed = program.relay(params, draws.child("relay"), t[-1], message, played)
        return message, program.update(params, state, draws.child("update"), t[-1], note, relayed, jnp.int32(slots))[0]

    params = jax.tree.map(lambda x: np.asarray(x, np.float32) if np.asarray(x).dtype.kind == "f" else x, params)
    return uncompiled(jax.vmap(read))


def lanes_agree(tree, one: int, other: int) -> bool:
    """Whether two lanes hold the same bits."""
    return all(np.array_equal(x[one], x[other], equal_nan=True) for x in map(np.asarray, jax.tree.leaves(tree)))


def kept(algorithm, environment) -> bool:
    """Whether an algorithm does with rewards outside what it declares."""
    low, high, outside = algorithm.rewards
    everything = math.isinf(low) and math.isinf(high)
    low, high = (0.0 if math.isinf(low) else low), (1.0 if math.isinf(high) else high)
    message, state = reader(algorithm, environment)(np.array([low, high, low - 1, high + 1, 0.0], np.float32))

    def same(inside, beyond):  # to the server, or to its state where a trusted server cuts what it is sent
        by_server = lanes_agree(state, inside, beyond) and not lanes_agree(state, 0, 1)
        return lanes_agree(message, inside, beyond) or (by_server and not everything)  # truncation is no clipping

    told_apart = not lanes_agree(message, 0, 1)
    if outside == "clip":
        return told_apart and same(0, 2) and same(1, 3)
    if outside == "zero":
        return told_apart and same(4, 2) and same(4, 3)
    return told_apart and not same(0, 2) and not same(1, 3)


@pytest.mark.parametrize("name", dealt(catalogue.ALGORITHMS, 2))
def test_declarations_are_what_algorithms_do(name):
    algorithm, environment = catalogue.case(name)
    assert algorithm.rewards.low < algorithm.rewards.high and algorithm.rewards.outside in assumptions.FATES
    assert kept(algorithm, environment)


def test_a_wrong_declaration_is_found():
    for name, bad in (("ucb1", "clip"), ("ucb1", "zero"), ("kl_ucb", "accept"), ("dp_se", "accept"), ("exp3", "clip")):
        algorithm, environment = catalogue.case(name)
        assert not kept(algorithm._replace(rewards=Rewards(0.0, 1.0, bad)), environment)


def test_declarations_follow_arguments():
    a, linear = jb.algorithms, {"actions": [[1.0, 0.0], [0.0, 1.0]], "horizon": 100, "num_batches": 2}
    users = {"num_arms": 3, "dim": 2, "horizon": 50}
    anything, clipped = Rewards(), Rewards(0.0, 1.0, "clip")
    assert anything == (-math.inf, math.inf, "accept")
    assert a.thompson(num_arms=2, horizon=9, posterior="gaussian").rewards == anything
    assert a.robust_elimination(**linear).rewards == anything
    assert a.robust_elimination(**linear, epsilon=1.0).rewards == (-1, 1, "accept")
    assert a.byzantine_ucb(num_agents=2, num_arms=2, dim=2, horizon=20).rewards == anything
    for statistics, read in (("none", anything), ("ldp", clipped)):
        assert a.linear_thompson(**users, statistics=statistics).rewards == read
    online = partial(a.online_ucb, epsilon=1.0)
    for base, own, combined in ((a.linucb, anything, (0, 1, "accept")), (online, clipped, clipped)):
        assert a.doubling(**users, base=base).rewards == own
        assert a.bandit_combiner(**users, bases=[base, base]).rewards == combined
    assert a.private_batched(num_arms=2, horizon=9, epsilon=0.5, base=a.htinf).rewards == clipped
    assert a.bandit_to_experts(num_arms=2, num_experts=3, horizon=9, base=a.htinf).rewards == anything


@pytest.mark.parametrize("name", catalogue.ENVIRONMENTS)
def test_environments_pay_what_they_say(name):
    environment = catalogue.ENVIRONMENTS[name].environment()
    low, high = environment.facts["reward_range"]
    world, params = environment.world, environment.params
    draws, t = Draws(np.uint32(1), "environment", jnp.float32), np.arange(1, 65, dtype=np.int32)

    @uncompiled
    def paid(params, arm):
        state = world.init(params, draws.child("instance"))
        context, state = world.observe(params, state, draws.child("context"), t)
        agents = (environment.facts["num_agents"],) if "num_agents" in environment.facts else ()
        action = jnp.full((len(t), *agents), arm, jnp.int32)
        return world.reward(params, state, draws.child("reward"), t, context, action)

    rewards = np.concatenate([np.ravel(paid(params, np.int32(k))) for k in range(environment.facts["num_arms"])])
    assert low - 1e-6 <= rewards.min() and rewards.max() <= high + 1e-6
    assert rewards.max() > 1 or not math.isinf(high)  # infinity is not said out of caution


def test_ranges_are_exact():
    e = jb.environments
    ranges = {
        e.gaussian_arms: [({"means": [3.0, 5.0], "scale": 0.0}, (3, 5)),
            ({"means": [3.0, 5.0]}, (-math.inf, math.inf))],
        e.student_arms: [({"means": [-1.0, 5.0], "scale": 0.0}, (-1, 5))],
        e.pareto_arms: [({"means": [0.9, 0.5], "shape": 2.0}, (0.25, math.inf))],
        e.lognormal_arms: [({"means": [0.9, 0.5]}, (0, math.inf)), ({"means": [0.9, 0.5], "sigma": 0.0}, (0.5, 0.9))],
    }  # fmt: skip
    for make, rows in ranges.items():
        for given, wanted in rows:
            assert make(**given).facts["reward_range"] == wanted
    assert catalogue.linear(noise_scale=0.0).facts["reward_range"] == (-0.8, 1.0)
    assert catalogue.bounded().facts["reward_range"] == (-1, 1)
    assert catalogue.contexts(reward="gaussian", noise_scale=0.0).facts["reward_range"] == (0, 1)
    federated = partial(catalogue.federated, theta_norm=0.5, noise_scale=0.25)
    assert federated(reward="bounded").facts["reward_range"] == (-0.75, 0.75)
    assert federated(noise_scale=0.0).facts["reward_range"] == (-0.5, 0.5)
    two = {"actions": [[1.0, 0.0], [0.0, 1.0]], "theta": [0.25, 0.5], "noise_scale": 0.5}
    for law, given, low, high in (
        ("pareto", {"shape": 4.0}, 0.125, math.inf), ("lognormal", {}, -0.25, math.inf),
        ("lognormal", {"sigma": 0.0}, 0.25, 0.5), ("student", {}, -math.inf, math.inf),
    ):  # fmt: skip
        assert e.linear_arms(noise=law, **two, **given).facts["reward_range"] == (low, high)
    users = partial(e.contextual_linear, num_arms=2, dim=2, noise_scale=0.5, shape=4.0)
    assert [users(reward=x).facts["reward_range"][0] for x in ("pareto", "lognormal")] == [-0.125, -0.5]


def said(algorithm, environment, **arguments):
    """The warnings about rewards."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = algorithm(num_arms=2, horizon=20, **arguments)
        assumptions.warn([("label", made, environment, None)], "float32", stacklevel=1)
    return [str(warning.message) for warning in caught]


def test_who_cannot_read_gaussian_rewards_says_so():
    a = jb.algorithms
    private = {"epsilon": 1.0}
    for algorithm in (a.kl_ucb, a.thompson, *(partial(x, **private) for x in (a.dp_se, a.ldp_ucb, a.adap_ucb))):
        (text,) = said(algorithm, GAUSSIAN)
        assert text.startswith("label: reads rewards in [0, 1] and clips others, and rewards here lie in (-inf, inf); ")
        assert "use an environment that pays inside" in text and "jaxbandits list algorithms" in text
    for algorithm in (a.exp3, a.tsallis_inf, a.ftpl):
        assert "takes others as they are" in said(algorithm, GAUSSIAN)[0]
    for algorithm in (a.ucb1, a.moss, a.huber_ucb, a.uniform):
        assert said(algorithm, GAUSSIAN) == []
    assert "lie in [0, 1.25]" in said(a.kl_ucb, jb.environments.gaussian_arms(means=[0.0, 1.25], scale=0.0))[0]
    assert said(a.kl_ucb, jb.environments.gaussian_arms(means=[0.0, 1.0 + 1e-12], scale=0.0)) == []


def test_htinf_reads_losses_of_a_size():
    htinf, mild = jb.algorithms.htinf, jb.environments.gaussian_arms(means=[0.0, 0.5])
    (text,) = said(htinf, GAUSSIAN)  # whose losses are -2 and -4: worse than uniform play
    assert "E|1 - X|^2 of arm 1 is at least 4.099^2, above that of tail_scale = 2.449: declare at least 4.1;" in text
    assert said(htinf, mild) == said(htinf, GAUSSIAN, tail_scale=4.1) == []
    (text,) = said(htinf, jb.environments.gaussian_arms(means=[0.0, -3.0]))  # |1 + 3| = 4, and sqrt(10) - 1 is less
    assert "E|1 - X|^2 of arm 1 is at least 4^2, above that of tail_scale = 2.449: declare at least 4;" in text
    heavy = jb.environments.student_arms(means=[0.0, 0.5], df=1.9)
    assert "lower tail_index" in said(htinf, heavy)[0] and said(htinf, heavy, tail_index=1.2) == []
    assert said(htinf, catalogue.arms()) == said(htinf, catalogue.losses()) == []
    with pytest.warns(UserWarning, match="the worst of 1 among 2 points"):
        jb.sweep(htinf, GAUSSIAN, grid={"tail_scale": [2.0, 5.0]}, **SETTINGS)


def test_half_lines_and_zeros():
    def reads(low, high, outside="accept"):
        return lambda **sizes: jb.algorithms.ucb1(**sizes)._replace(rewards=Rewards(low, high, outside))

    positive, negative = (GAUSSIAN._replace(facts={"reward_range": r}) for r in ((0.0, math.inf), (-math.inf, 0.0)))
    assert said(reads(0.0, math.inf), positive) == said(reads(-math.inf, 0.0), negative) == []
    assert "counts others as 0" in said(reads(0.0, math.inf, "zero"), negative)[0]
    assert said(reads(0.0, math.inf), negative) and said(reads(-math.inf, 0.0), positive)


def test_nothing_declared_or_stated_means_no_warning():
    ucb1 = jb.algorithms.ucb1
    assert said(lambda **sizes: ucb1(**sizes)._replace(rewards=None), GAUSSIAN) == []
    assert said(jb.algorithms.kl_ucb, GAUSSIAN._replace(facts={"means": GAUSSIAN.facts["means"]})) == []
    # the largest size alone says both signs
    assert "lie in [-1, 1]" in said(jb.algorithms.kl_ucb, GAUSSIAN._replace(facts={"reward_bound": 1.0}))[0]
    assert assumptions.range_of_rewards(GAUSSIAN._replace(facts={"reward_bound": 1, "reward_range": [0, 1]})) == (0, 1)


def test_one_warning_where_epsilon_is_for_bounded_rewards():
    algorithm, _ = catalogue.case("private_elimination")
    with pytest.warns(UserWarning) as caught:
        assumptions.warn([("label", algorithm, catalogue.linear(), None)], "float32", stacklevel=1)
    (message,) = (text for warning in caught if "1 / horizon" not in (text := str(warning.message)))
    assert "epsilon = " in message and "it is infinite" in message


@pytest.mark.parametrize("name", catalogue.EVERYTHING)
def test_the_catalogue_reads_what_it_is_paid(name):
    row = catalogue.EVERYTHING[name]
    environment = row.environment()
    algorithm = catalogue.algorithm_for(partial(row.algorithm, horizon=row.horizon), environment)
    assert list(assumptions.doubts_of_range(algorithm, environment)) == []


@factory
def shifted(*, num_arms, horizon, high=1.0):
    """UCB1 that declares what it reads."""
    return jb.algorithms.ucb1(num_arms=num_arms, horizon=horizon)._replace(rewards=Rewards(0.0, high, "zero"))


def test_a_sweep_warns_once_a_label_before_it_runs_and_not_of_corruption():
    arms = jb.environments.gaussian_arms(means=[0.0, 3.0], scale=0.0)
    with pytest.warns(UserWarning) as caught:
        jb.sweep({"one": shifted, "plain": jb.algorithms.ucb1}, arms, grid={"high": [1.0, 2.0, 3.0]}, **SETTINGS)
    (warning,) = caught
    assert warning.filename == __file__
    what = "one: reads rewards in [0, 1] and counts others as 0, and rewards here lie in [0, 3]"
    assert str(warning.message).startswith(f"{what} (the worst of 2 among 3 points)")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):  # the plan is refused as it stands, not after hours
            jb.sweep(jb.algorithms.kl_ucb, arms, **SETTINGS | {"horizon": 10**9, "seeds": 10**6})
        with pytest.raises(UserWarning, match="kl_ucb: reads rewards in"):
            jb.simulate(jb.algorithms.kl_ucb(num_arms=2, horizon=20), arms)
        attack = partial(jb.adversaries.huber, corruption=0.5, value=9.0)
        jb.sweep(jb.algorithms.ucb1, catalogue.arms, reward_adversary=attack, **SETTINGS)
        assumptions.warn([("kl_ucb", *_case(jb.algorithms.kl_ucb, catalogue.arms), None)], "float32", stacklevel=1)


def _case(algorithm, environment):
    environment = environment()
    return catalogue.algorithm_for(partial(algorithm, horizon=20), environment), environment


PARTS = [name for kind in listing.LISTED_KINDS for name in listing.names(kind)]


def listed_arguments(name):
    """The arguments of a part of the catalogue."""
    return list(listing.factory_of(name).arguments.values())


def outside(asked) -> list:
    """Values just outside of a range."""
    if asked.kind == "choice":
        return ["neither"]
    values = []
    if math.isfinite(asked.low):
        values.append(asked.low if asked.open_low else asked.low - 1)
    if math.isfinite(asked.high):
        values.append(asked.high if asked.open_high else asked.high + 1)
    return [] if asked.kind == "array" else values


@pytest.mark.parametrize("name", PARTS)
def test_listed_ranges_are_what_factories_refuse(name):
    part, make = listing.example(name), listing.factory_of(name)
    given = {key: value for key, value in part.config.items() if key != "name"}
    rows = listed_arguments(name)
    assert [row.name for row in rows] == list(inspect.signature(make).parameters)
    for row in rows:
        for value in outside(row.range) if row.range and row.checked else []:
            with pytest.raises(ValueError, match=rf"\b{row.name} = "):
                make(**given | {row.name: value})


def test_ranges_of_arguments_that_the_catalogue_leaves_open():
    def ranges(name):
        return {row.name: row.range for row in listed_arguments(name)}

    assert ranges("exp3_ix")["learning_rate"] == Range("number", 0.0, math.inf, open_low=True)
    assert ranges("kl_ucb")["num_arms"] == Range("integer", 2, math.inf)
    assert ranges("ldp_ucb")["mechanism"].values == ("laplace", "randomized_response")
    assert ranges("private_batched")["base"] is None


def test_static_arguments():
    static = {x: listing.record(x)["static"] for x in ("kl_ucb", "thompson", "ftpl", "byzantine_ucb", "linucb")}
    assert static == {
        "kl_ucb": ["num_arms"], "thompson": ["num_arms", "posterior"], "ftpl": ["num_arms", "resampling"],
        "byzantine_ucb": [
            "num_agents", "num_arms", "dim", "horizon", "window", "aggregate", "privacy", "counter", "buffers",
            "schedule", "iterations",
        ],
        "linucb": ["num_arms", "dim", "contexts", "models"],
    }  # fmt: skip
    assert listing.record("private_batched")["static"] == ["num_arms", "base"]  # its window is data
    assert "learner" in listing.record("online_ucb")["static"] and "step" in listing.record("online_ucb")["static"]


def test_the_list_of_algorithms_for_machines(capsys):
    assert main(["list", "algorithms", "--json"]) == 0

    def refuse(text):
        raise AssertionError(f"{text} is no JSON")

    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out, parse_constant=refuse)}
    assert list(rows) == jb.algorithms.__all__
    for row in rows.values():
        assert {"name", "arguments", "model", "unit", "rewards", "structure", "paper", "static"} <= set(row)
        assert all({"name", "default", "range", "static", "required"} <= set(a) for a in row["arguments"])
        assert row["static"] == [a["name"] for a in row["arguments"] if a["static"]]
        assert row["paper"] or row["name"] == "uniform"
    assert rows["kl_ucb"]["rewards"] == {"low": 0.0, "high": 1.0, "outside": "clip"}
    assert rows["ucb1"]["rewards"] == {"low": "-inf", "high": "inf", "outside": "accept"}
    assert (rows["ldp_exp3"]["model"], rows["ldp_exp3"]["unit"], rows["ucb1"]["unit"]) == ("local", "loss_vector", None)
    epsilon = next(a for a in rows["dp_se"]["arguments"] if a["name"] == "epsilon")
    assert epsilon["required"] and not epsilon["static"] and epsilon["default"] is None
    asked = {"kind": "number", "low": 0.0, "high": "inf", "open_low": True, "open_high": False}
    assert epsilon["range"] == asked
    kinds = {"moss": "arms", "htinf": "losses", "exp4": "experts", "doubling": "contextual"}
    kinds |= {"median_elimination": "linear", "oracle_linucb": "federated"}
    assert {name: rows[name]["structure"] for name in kinds} == kinds
    assert "Garivier and Cappe 2011" in rows["kl_ucb"]["paper"] and "ICML 2023" in rows["robust_elimination"]["paper"]


@pytest.mark.parametrize("name", PARTS)
def test_a_page_names_every_argument_with_its_default(name):
    page = listing.listing_text(name)
    assert page.startswith(f"{name}: ") and max(map(len, page.splitlines())) <= 120
    for row in listed_arguments(name):
        (line,) = [line for line in page.splitlines() if line.startswith(f"  {row.name}: ")]
        given = listing._value_text(row.default)
        assert row.required or f"default {given}" in " ".join(page.split()), line


def test_pages_say_what_arguments_do(capsys):
    assert main(["list", "byzantine_ucb"]) == 0
    page = capsys.readouterr().out
    assert "federated, neighbours differ in one message" in page
    assert "noise_scale: default 0.5, >= 0" in page
    texts = {row.name: listing.join_lines(row.about) for row in listed_arguments("byzantine_ucb")}
    plain = " ".join(page.split())
    assert all(texts.values()) and all(text in plain for text in texts.values())


def test_what_a_factory_declares_is_listed_checked_and_written_into_its_docstring():
    @factory
    def own(*, num_arms: NumArms, low: NonNegative | None = None, twist: Literal["left", "right"] = "left"):
        """One sentence.

        Args:
            low: The lower end,
                as it is.
            twist: The way.

        References:
            Nobody 2020, Theorem 1. The default is ours.
        """
        assert isinstance(num_arms, int)
        return jb.algorithms.uniform(num_arms=num_arms, horizon=9)

    rows = own.arguments
    assert [listing.join_lines(row.about) for row in rows.values()] == [
        "Number of arms K. Filled in from the environment. At least 2. [static]",
        "The lower end, as it is. At least 0.",
        "The way. [static]",
    ]
    assert [name for name, row in rows.items() if row.static] == ["num_arms", "twist"]
    assert (listing.first_paragraph(own), paper(own)) == ("One sentence.", "Nobody 2020, Theorem 1")
    assert "low : float, optional\n    The lower end, as it is. At least 0.\n" in own.__doc__
    assert 'twist : {"left", "right"}, default "left"\n' in own.__doc__ and "Raises\n------\nValueError" in own.__doc__
    assert own(num_arms=3.0).config == {"name": "own", "num_arms": 3.0, "low": None, "twist": "left"}
    for wrong, text in (
        ({"num_arms": 1}, "num_arms = 1 must be an integer of at least 2"),
        ({"num_arms": 2, "low": -1}, r"low = -1 must be a number in \[0, inf\)"),
        ({"num_arms": 2, "twist": "up"}, "twist = 'up' must be one of 'left', 'right'"),
    ):
        with pytest.raises(ValueError, match=text):
            own(**wrong)


def test_the_table_says_which_rewards_are_read(capsys):
    assert main(["list"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "[0, 1], clipped" in lines["kl_ucb"] and " any " in lines["ucb1"] and "[-1, 1]  " in lines["byzantine_ucb"]
    assert {"algorithms;", "environments:", "adversaries:", "papers:", "huber", "loss_table"} <= set(lines)
    assert main(["list", "papers"]) == main(["list", "private-adversarial/exp3-leak"]) == 0
    assert listing.reading(None) == "not declared" and listing.reading(Rewards(0.0, 2.0, "zero")) == "[0, 2], else 0"


def test_an_unknown_name_is_one_line_with_the_nearest(capsys):
    assert main(["list", "klucb"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "'klucb'" in line and "'kl_ucb'" in line and "`jaxbandits list`" in line
    assert main(["list", "--json"]) == main(["list", "papers", "--json"]) == 2
