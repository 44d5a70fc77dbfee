"""Planted bugs in own parts: a wrong algorithm does not look perfect, and what is said names it."""

import re
import sys
import types
import warnings
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import catalogue, cli, contract, simulator
from jaxbandits.protocol import (
    Adversary,
    Algorithm,
    Attack,
    Environment,
    Guarantee,
    Hints,
    Program,
    Rewards,
    Score,
    Span,
    Truth,
    World,
)  # fmt: skip
from jaxbandits.sweeps.compilation.program_digest import first_difference
from jaxbandits.sweeps.engines import calls
from jaxbandits.sweeps.part_checks import examination, fields
from jaxbandits.sweeps.simulate import algorithm_for
from jaxbandits.sweeps.sweep import prepared
from jaxbandits.validation import factory

HORIZON, SEEDS = 20, 4
HERE = "test_guards.py"
ARMS = jb.environments.bernoulli_arms(means=[0.2, 0.5, 0.8])
SWEEP = {"horizon": HORIZON, "seeds": SEEDS, "checkpoints": 3, "progress": False}


class Params(NamedTuple):
    scale: Any


class State(NamedTuple):
    mean: Any
    pulls: Any


def init(params, draws):
    return State(jnp.zeros(3, draws.dtype), jnp.zeros(3, jnp.int32))


def act(params, state, draws, t, context):
    return t % 3, None, t[0] % 3


def encode(params, note, draws, t, context, action, reward, play):
    return reward[0]


def update(params, state, draws, t, note, message, used):
    return State(state.mean.at[note].add(message), state.pulls.at[note].add(1)), ()


SOUND = Program(init, act, encode, update)


def own(name="own", schedule=None, params=None, guarantee=None, version=None, config=None, rewards=None, **functions):
    """A factory of an algorithm that is sound but for the given fields."""

    program = SOUND._replace(**functions)

    def make(*, num_arms, horizon, scale=1.0):
        return Algorithm(
            program=program, schedule=(Span(1, horizon),) if schedule is None else schedule,
            params=Params(scale) if params is None else params, guarantee=guarantee or Guarantee(),
            version=version or (name, 1, (num_arms,)), config={}, rewards=rewards,
        )  # fmt: skip

    make.__name__ = name
    return factory(make)


def plays(chosen):
    """`act` of a player whose arm at play t is chosen(t)."""

    def act(params, state, draws, t, context):
        return jnp.broadcast_to(jnp.asarray(chosen(t), jnp.int32), t.shape), None, t[0] % 3

    return act


def simulate(maker, environment=ARMS, **settings):
    return jb.simulate(partial(maker, horizon=HORIZON), environment, checkpoints=3, **settings)


def error_of(function):
    """The one line of the ValueError that a call raises."""
    with pytest.raises(ValueError) as caught:
        function()
    said = str(caught.value)
    assert "\n" not in said
    return said


# ---------------------------------------------------------------------------- actions outside the arms


def listed(params, state, draws, t, context):
    """`act` of a player whose arms are its parameters: one program for all of them."""
    return params.scale[t - 1], None, t[0] % 3


TIMES = np.arange(1, HORIZON + 1)
OUTSIDE = {
    "counted from one": ((TIMES - 1) % 3 + 1, 3, 3),
    "minus one": (np.full(HORIZON, -1), -1, 1),
    "far away": (5 + TIMES % 3, 6, 1),
    "a million": (np.where(TIMES == 7, 1_000_000, 0), 1_000_000, 7),
    "at the last play": (np.where(TIMES == HORIZON, 3, 2), 3, HORIZON),
}


@pytest.mark.planted("a user's algorithm")
@pytest.mark.parametrize("name", OUTSIDE)
def test_an_action_outside_the_arms_is_named(name):
    arms, arm, play = OUTSIDE[name]
    with pytest.raises(jb.ContractError, match=rf"own played arm {arm} at play {play}; arms are 0\.\.2"):
        simulate(own(act=listed, params=Params(arms.astype(np.int32))))


def test_the_lowest_integer_is_outside():  # which no parameter may be
    with pytest.raises(jb.ContractError, match="own played arm -2147483648 at play 2"):
        simulate(own(act=plays(lambda t: jnp.where(t >= 2, -(2**31), 0))))


def test_nan_turned_into_an_integer_is_outside():
    def chosen(t):
        return jnp.where(t == 5, jnp.nan, 1.0).astype(jnp.int32)

    if not 0 <= int(chosen(jnp.int32(5))) < 3:  # processors differ in what they make of it
        with pytest.raises(jb.ContractError, match="at play 5"):
            simulate(own(act=plays(chosen)))


def test_a_sound_player_is_kept():
    run = simulate(own())
    assert run.pulls.sum() == HORIZON and np.isfinite(run.regret).all()


def test_a_sweep_finishes_the_other_labels_first(tmp_path):
    algorithms = {"bad": own(act=plays(lambda t: jnp.where(t == 7, 3, 0))), "good": own()}
    with (
        pytest.warns(RuntimeWarning, match="'bad' broke the contract"),
        pytest.raises(jb.ContractError, match=r"bad played arm 3 at play 7; arms are 0\.\.2 \(seed 0, the first of 4"),
    ):
        jb.sweep(algorithms, ARMS, store=tmp_path, **SWEEP)
    assert not (tmp_path / "results.nc").exists()
    del algorithms["bad"]
    job = prepared(algorithms, ARMS, {k: v for k, v in SWEEP.items() if k != "progress"}, store=tmp_path,
                                 progress=False)  # fmt: skip
    ds = job.dataset()
    assert job.computed == 0 and (ds.pulls.sum("arm") == HORIZON).all()


def test_one_bad_lane_of_a_cell_is_enough_and_nothing_of_the_call_is_stored(tmp_path):
    def act(params, state, draws, t, context):
        broken = (draws.uniform(t) < 0.01).astype(jnp.int32)
        return t % 3 + 3 * broken, None, t[0] % 3

    maker = own(act=act)
    with pytest.raises(jb.ContractError, match=r"own played arm \d at play \d+; arms are 0\.\.2") as caught:
        jb.sweep(maker, ARMS, store=tmp_path, **SWEEP | {"seeds": 8})
    assert not list((tmp_path / "chunks").rglob("*.npz"))
    seed = int(str(caught.value).split("seed ")[1].split(",")[0].split(";")[0])
    with pytest.raises(jb.ContractError, match=f"seed {seed};"):  # the lane that is named, alone
        simulate(maker, seed=seed)
    others = [s for s in range(8) if s != seed]
    assert any(np.isfinite(simulate(maker, seed=s).regret).all() for s in others if _plays_well(maker, s))


def _plays_well(maker, seed):
    try:
        simulate(maker, seed=seed)
    except jb.ContractError:
        return False
    return True


def test_labels_of_one_program_do_not_fall_together():
    class Where(NamedTuple):
        arm: Any

    def act(params, state, draws, t, context):
        return jnp.full(t.shape, params.arm), None, t[0] % 3

    shared = SOUND._replace(act=act)

    @factory
    def fixed(*, num_arms, horizon, arm) -> Algorithm:
        return Algorithm(shared, (Span(1, horizon),), Where(arm), Guarantee(), ("fixed", 1, ()), {})

    both = {"inside": partial(fixed, arm=2), "outside": partial(fixed, arm=3)}
    with pytest.raises(jb.ContractError, match="outside played arm 3 at play 1"):
        jb.sweep(both, ARMS, **SWEEP)


def act_of_team(params, state, draws, t, context):
    action = jnp.zeros((*t.shape, 3), jnp.int32)
    return action.at[:, 2].set(jnp.where(t == 4, params.scale, 1)), None, ()


TEAM = Program(
    lambda params, draws: jnp.zeros((), draws.dtype), act_of_team,
    lambda params, note, draws, t, context, action, reward, play: reward.sum(),
    lambda params, state, draws, t, note, message, used: (state + message, ()),
)  # fmt: skip


@pytest.mark.parametrize("arm", [7, -1, 1_000_000])
def test_agents_are_looked_at_one_by_one(arm):
    environment = jb.environments.federated_linear(num_agents=3, num_arms=4, dim=2)

    @factory
    def team(*, num_agents, num_arms, dim, horizon) -> Algorithm:
        return Algorithm(TEAM, (Span(1, horizon),), Params(np.int32(arm)), Guarantee(), ("team", 1, ()), {})

    with pytest.raises(jb.ContractError, match=rf"team played arm {arm} at play 4; arms are 0\.\.3"):
        simulate(team, environment)


def test_only_plays_that_are_used_count():
    def act(params, state, draws, t, context):
        return jnp.where(jnp.arange(len(t), dtype=jnp.int32) == params.scale, 9, 1), jnp.int32(3), ()

    def update(params, state, draws, t, note, message, used):
        return state, ()

    def window(bad):
        return own(schedule=(Span(4, 10, full=False),), params=Params(np.int32(bad)), act=act, update=update)

    assert simulate(window(3)).pulls.tolist() == [0, HORIZON, 0]
    with pytest.raises(jb.ContractError, match="arm 9 at play 4;"):
        simulate(window(2))  # the checkpoints at 1 and 4 cut the windows: its third slot is play 4


def test_windows_of_one_arm_and_several_plays():
    def act(params, state, draws, t, context):
        return jnp.where(t[:1] > 10, 4, 0), None, ()

    def update(params, state, draws, t, note, message, used):
        return state, ()

    maker = own(schedule=(Span(5, 4),), act=act, update=update, hints=Hints(one_arm=True))
    with pytest.raises(jb.ContractError, match="arm 4 at play 11;"):
        simulate(maker)


def test_an_arm_at_rest_that_is_not_there_loses_its_plays():
    def rest(params, state):
        return jnp.where(state.pulls.sum() >= 6, 5, -1).astype(jnp.int32)

    def act(params, state, draws, t, context):
        return t % 3, jnp.int32(1), t[0] % 3

    maker = own(schedule=(Span(1, HORIZON, full=False),), act=act, hints=Hints(rest=rest))
    with pytest.raises(jb.ContractError, match=r"own's pulls do not add up to its 20 plays: .*`rest`"):
        simulate(maker)


def test_an_environment_that_does_not_say_its_arms_is_not_looked_at():
    plain = ARMS._replace(facts={"means": ARMS.facts["means"]}, world=ARMS.world._replace(num_arms=3))
    assert simulator.arms_of(plain) == 3
    unknown = jb.environments.contextual_linear(num_arms=3, dim=2)
    assert simulator.arms_of(unknown) == 3
    assert simulator.arms_of(unknown._replace(facts={"dim": 2})) is None


@pytest.mark.parametrize("name", catalogue.ENVIRONMENTS)
def test_every_environment_says_how_many_arms_it_has(name):
    environment = catalogue.ENVIRONMENTS[name].environment
    environment = environment if isinstance(environment, Environment) else environment()
    assert simulator.arms_of(environment) >= 2


@pytest.mark.compiles(16)  # a simulation within vmap
def test_where_something_is_traced_nothing_is_looked_at():
    maker = own(act=plays(lambda t: 3))(num_arms=3, horizon=HORIZON)
    runs = jax.vmap(lambda seed: jb.simulate(maker, ARMS, seed=seed, checkpoints=3).t)(np.arange(2))
    assert runs.shape == (2, 3)


def test_exit_codes(tmp_path, monkeypatch, capsys):
    module = types.ModuleType("guards_makers")
    module.outside = own("outside", act=plays(lambda t: 3))
    module.crooked = own("crooked", act=lambda params, state, draws, t, context: (t % 3, None))
    monkeypatch.setitem(sys.modules, "guards_makers", module)
    for name, code, words in (
        ("outside", 1, "outside played arm 3 at play 1"),
        ("crooked", 2, "Program.act must return"),
    ):
        file = tmp_path / f"{name}.toml"
        file.write_text(
            "horizon = 20\nseeds = 4\ncheckpoints = 3\n"
            '[environment]\nname = "bernoulli_arms"\nmeans = [0.2, 0.5, 0.8]\n'
            f'[[algorithm]]\nname = "guards_makers:{name}"\n'
        )
        assert cli.main(["run", str(file), "--out", str(tmp_path / name), "--quiet"]) == code
        said = capsys.readouterr().err
        assert words in said and len(said.strip().splitlines()) == 1
        assert not (tmp_path / name / "results.nc").exists()


# ---------------------------------------------------------------------------- regret and pulls


def world_of(**changes) -> Environment:
    """Three arms that pay their index / 4 and give their own regret."""

    def reward(params, state, draws, t, context, action):
        return action.astype(draws.dtype) / 4

    def score(params, state, t, context, action):
        return Score(arm=action, regret=0.5 - action.astype(jnp.float32) / 4)

    def observe(params, state, draws, t):
        return (), state

    functions = {
        "init": lambda params, draws: (), "observe": observe, "reward": reward, "score": score,
        "truth": lambda params, state, t, context: Truth(), "num_arms": 3,
    }  # fmt: skip
    return Environment(World(**functions | changes), (), {"num_arms": 3}, None, {})


def test_regret_that_is_not_finite_is_named():
    def score(params, state, t, context, action):
        return Score(arm=action, regret=jnp.where(t == 5, jnp.nan, 0.25))

    with pytest.raises(jb.ContractError, match="own's regret is not finite at play 5, where it played arm 2"):
        simulate(own(), world_of(score=score))
    with pytest.raises(jb.ContractError, match="own's regret is not finite at play 5, where it played arm 2"):
        jb.sweep(own(), lambda: world_of(score=score), **SWEEP)


def test_a_score_that_counts_another_arm_is_named():
    def score(params, state, t, context, action):
        return Score(arm=jnp.where(t == 6, 3, action), regret=jnp.zeros(t.shape))

    with pytest.raises(
        jb.ContractError, match=r"own's pulls do not add up .* counted arm 3 at play 6; arms are 0\.\.2"
    ):
        simulate(own(), world_of(score=score))


# ---------------------------------------------------------------------------- NaN


class Begins(NamedTuple):
    """The plays where something turns NaN, 0 where nothing does: one program for all kinds."""

    reward: Any = 0
    message: Any = 0
    state: Any = 0


def nan_at(play, x, t):
    return jnp.where(t == play, jnp.nan, x)


def reward_nan(params, state, draws, t, context, action):
    return nan_at(params.reward, action.astype(draws.dtype) / 4, t)


def encode_nan(params, note, draws, t, context, action, reward, play):
    return nan_at(params.message, reward[0], t[0])


def update_nan(params, state, draws, t, note, message, used):
    return State(state.mean.at[note].add(nan_at(params.state, message, t)), state.pulls.at[note].add(1)), ()


NAN = {
    "reward": (Begins(reward=9), "own: the environment pays NaN from play 9 on"),
    "message": (Begins(message=8), "own: a message holds NaN from play 8 on"),
    "state": (Begins(state=7), "own: the algorithm's state turns NaN from play 7 on"),
}
NAN_WORLD = world_of(reward=reward_nan)


@pytest.mark.planted("a user's algorithm or environment")
@pytest.mark.parametrize("kind", NAN)
def test_nan_is_said_once_with_the_play_where_it_began(kind):
    begins, words = NAN[kind]
    maker = own(encode=encode_nan, update=update_nan, params=begins)
    environment = NAN_WORLD._replace(params=begins)
    with pytest.warns(UserWarning, match=words) as caught:
        jb.sweep(maker, lambda: environment, **SWEEP)
    said = [str(w.message) for w in caught]
    assert len(said) == 1 and f"{SEEDS} lanes in all" in said[0] and HERE in said[0]
    with pytest.warns(UserWarning, match=words):
        simulate(maker, environment)


def test_what_is_no_fault_is_not_said():
    def init_marked(params, draws):
        return State(jnp.full(3, jnp.nan, draws.dtype), jnp.zeros(3, jnp.int32))

    def encode_infinite(params, note, draws, t, context, action, reward, play):
        return jnp.where(t[0] == 3, jnp.inf, reward[0])

    poison = partial(jb.adversaries.huber, corruption=0.5, kind="fixed", value=float("nan"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate(own(init=init_marked), world_of())  # NaN marks what was not played yet
        simulate(own(encode=encode_infinite), world_of())
        simulate(own(), world_of(), reward_adversary=poison)  # contaminated rewards are data


@pytest.mark.parametrize("name", catalogue.EVERYTHING)
def test_nothing_of_this_package_is_a_users(name):
    example = catalogue.EVERYTHING[name]
    environment = malformed_free(example.environment)
    algorithm = algorithm_for(partial(example.algorithm, horizon=example.horizon), environment)
    assert not contract.runs_own_code(algorithm.program) and not contract.runs_own_code(environment.world)
    for adversary in (example.reward_adversary, example.message_adversary):
        assert adversary is None or not contract.runs_own_code(malformed_free(adversary).attack)


def malformed_free(part):
    """A called part that the checks accept."""
    called = part if isinstance(part, Environment | Adversary) else part()
    fields.check_part(called, type(called), part)
    return called


def test_a_users_function_inside_this_packages_is_a_users():
    wrapped = jb.algorithms.doubling(num_arms=3, horizon=50, base=own())
    assert wrapped.program.act.__module__.startswith("jaxbandits") and contract.runs_own_code(wrapped.program)


# ---------------------------------------------------------------------------- numbers that do not belong to the lane


def init_numpy(params, draws):
    return State(jnp.zeros(3, draws.dtype) + np.random.rand(), jnp.zeros(3, jnp.int32))


def act_constant_key(params, state, draws, t, context):
    return jax.random.randint(jax.random.PRNGKey(0), t.shape, 0, 3), None, jnp.int32(0)


def act_key_in_a_loop(params, state, draws, t, context):
    def body(i, x):
        return x + jax.random.uniform(jax.random.fold_in(jax.random.key(3), i))

    total = jax.lax.fori_loop(0, 3, body, jnp.zeros((), draws.dtype))
    return jnp.full(t.shape, (total * 7).astype(jnp.int32) % 3), None, jnp.int32(0)


def act_addressed(params, state, draws, t, context):
    first = jax.random.randint(draws.key(t[0]), (), 0, 3)
    second = jax.random.randint(jax.random.fold_in(jax.random.key(0), t[0]), (), 0, 3)
    return jnp.full(t.shape, (first + second) % 3), None, jnp.int32(0)


IMPURE = {
    "np.random in init": ({"init": init_numpy}, "Program.init is another program every time", 1),
    "a constant key in act": ({"act": act_constant_key}, "Program.act draws with a key", 1),
    "a constant key in a loop": ({"act": act_key_in_a_loop}, "Program.act draws with a key", 4),
}


@pytest.mark.planted("a user's algorithm")
@pytest.mark.parametrize("name", IMPURE)
def test_numbers_that_are_not_the_lanes_are_said_before_the_run(name):
    functions, words, line = IMPURE[name]
    with pytest.warns(UserWarning, match=words) as caught:
        calls.check_parts(planned(own(**functions)))
    said = [str(w.message) for w in caught]
    assert len(said) == 1 and contract.REMEDY in said[0]
    (function,) = functions.values()  # the line of the draw in it
    assert said[0].endswith(f"{HERE}:{function.__code__.co_firstlineno + line})")


def test_a_sweep_says_so_once_at_its_callers_line():
    with pytest.warns(UserWarning, match="Program.init is another program every time") as caught:
        jb.sweep(own(init=init_numpy), ARMS, **SWEEP)
    assert len(caught) == 1 and caught[0].filename.endswith(HERE)


def test_draws_with_an_address_are_not_said():
    def init_fixed(params, draws):
        return jax.random.normal(jax.random.key(0), (3,), draws.dtype)

    def observe(params, state, draws, t):
        return (), state

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calls.check_parts(planned(own(act=act_addressed)))
        # one instance for all lanes is a choice
        calls.check_parts(planned(own(), environment=lambda: world_of(init=init_fixed, observe=observe)))


def test_an_uncached_builder_is_named():
    @factory
    def fresh(*, num_arms, horizon, scale=1.0) -> Algorithm:
        def act(params, state, draws, t, context):
            return t % 3, None, t[0] % 3

        return Algorithm(SOUND._replace(act=act), (Span(1, horizon),), Params(scale), Guarantee(), ("fresh", 1, ()), {})

    with pytest.warns(UserWarning, match=r"fresh: 3 programs .* decorate the builder with functools.cache"):
        calls.check_parts(planned(fresh, {"scale": [1.0, 2.0, 3.0]}))
    cached = own()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calls.check_parts(planned(cached, {"scale": [1.0, 2.0, 3.0]}))


def planned(maker, grid=None, environment=ARMS, **settings):
    settings = {"reward_adversary": None, "message_adversary": None, "dtype": "float32"} | settings
    return jb.sweeps.plan.plan(
        maker, environment, horizon=HORIZON, seeds=SEEDS, grid=grid, points=None, checkpoints=3, **settings
    )


def test_two_traces_are_compared_by_what_they_compute():
    def trace(function, *args):
        return jax.make_jaxpr(lambda *xs: function(*xs))(*args)

    def loop(x, y):
        return jax.lax.scan(lambda c, i: (c + i * x, c), y, jnp.arange(3.0))

    table = np.arange(3.0)
    assert first_difference(trace(loop, 1.0, 2.0), trace(loop, 1.0, 2.0)) is None
    assert first_difference(trace(loop, 1.0, 2.0), trace(lambda x, y: loop(y, x), 1.0, 2.0)) is not None
    assert first_difference(trace(lambda x: x + table, 1.0), trace(lambda x: x + table[::-1], 1.0)) is not None
    assert first_difference(trace(lambda x: x + 1.0, 1.0), trace(lambda x: x + 2.0, 1.0)) is not None
    assert first_difference(trace(lambda x: x * 2.0, 1.0), trace(lambda x: x + 2.0, 1.0)) is not None
    relu = trace(lambda x: jax.nn.relu(x), 1.0)
    assert first_difference(relu, trace(lambda x: jax.nn.relu(x), 1.0)) is None
    assert first_difference(trace(lambda x: x + np.nan, 1.0), trace(lambda x: x + np.nan, 1.0)) is None


# ---------------------------------------------------------------------------- malformed parts


def act_of(*returned):
    def act(params, state, draws, t, context):
        return tuple(x(t) if callable(x) else x for x in returned)

    return act


def update_alone(params, state, draws, t, note, message, used):
    return state


def update_of(change):
    def update(params, state, draws, t, note, message, used):
        return change(state), ()

    return update


def raising(params, note, draws, t, context, action, reward, play):
    return note.nothing


ALGORITHMS = {
    # what act returns
    "two values": ({"act": act_of(lambda t: t % 3, None)}, r"must return \(action, used, note\), it returns 2 values"),
    "an action alone": (
        {"act": lambda params, state, draws, t, context: t % 3},
        r"must return \(action, used, note\), it returns an array int32\[1\]",
    ),
    "a float action": (
        {"act": act_of(lambda t: t.astype(jnp.float32), None, 0)},
        "must return arms as integers, it returns actions of float32",
    ),
    "a boolean action": ({"act": act_of(lambda t: t > 3, None, 0)}, "arms as integers, it returns actions of bool"),
    "a scalar action": ({"act": act_of(lambda t: t[0], None, 0)}, r"actions of shape \[P\] \(here 1\).*int32\[\]"),
    "an action too long": ({"act": act_of(lambda t: jnp.zeros(5, jnp.int32), None, 0)}, r"it returns int32\[5\]"),
    "no action": ({"act": act_of(None, None, 0)}, "actions of shape .* it returns None"),
    "used a mask": ({"act": act_of(lambda t: t % 3, lambda t: t > 0, 0)}, r"`used` None or how many plays.*bool\[1\]"),
    "used a float": ({"act": act_of(lambda t: t % 3, 1.0, 0)}, r"`used` None or how many plays .*1.0 \(float\)"),
    "too few arguments": (
        {"act": lambda params, state, t, context: (t % 3, None, 0)},
        r"Program.act must take \(params, state, draws, t, context\), it takes \(params, state, t, context\)",
    ),
    # the others
    "update alone": ({"update": update_alone},
        r"Program.update must return \(state, released\), it returns a State alone"),
    "encode raises": ({"encode": raising},
        r"'own' cannot be traced: AttributeError.*in Program.encode, .*test_guards.py"),
    "encode returns text": (
        {"encode": lambda params, note, draws, t, context, action, reward, play: "hello"},
        "Program.encode must return numbers and arrays, it returns 'hello'",
    ),
    "a type that drifts": (
        {"update": update_of(lambda s: s._replace(pulls=s.pulls.astype(jnp.float32)))},
        r"State.pulls is int32 from init and float32 from update: return pulls.astype\(state.pulls.dtype\)",
    ),
    "a shape that drifts": (
        {"update": update_of(lambda s: s._replace(mean=s.mean[:, None]))},
        r"State.mean is float32\[3\] from init and float32\[3,1\] from update",
    ),
    "a field that is lost": ({"update": update_of(tuple)},
        r"must return a state of the fields that init returns: State\("),
    "close drifts": (
        {"close": lambda params, state, draws, t: state._replace(mean=state.mean[:1])},
        r"Program.close must keep the state's shapes: State.mean",
    ),
    "diagnose": ({"diagnose": lambda params, state: {"counts": state.pulls}}, r"its entry 'counts' is int32\[3\]"),
    "diagnose under a taken name": ({"diagnose": lambda params, state: {"regret": 1.0}},
        "a result cannot hold under that name"),
    "actions for agents that are not there": (
        {"act": lambda params, state, draws, t, context: (jnp.zeros((1, 1), jnp.int32), None, t[0])},
        r"Program.act returns actions int32\[1,1\], and this environment has no agents",
    ),
    "a field that is not there": ({"hints": Hints(kept=("men",))},
        r"Hints.kept names 'men', but the state that init returns is State\("),
    "hints that are none": ({"hints": {"rest": None}}, "Program.hints must be a Hints, not"),
    "diagnose no dict": ({"diagnose": lambda params, state: 3.0}, "must return a dict of numbers"),
    "rest": ({"hints": Hints(rest=lambda params, state: state.pulls)},
        r"Hints.rest must return one arm, int32, it returns int32\[3\]"),
    "no function": ({"encode": "reward"}, "Program.encode must be a function, not 'reward'"),
    # params, schedule, version
    "text among params": ({"params": Params("fast")}, "Algorithm.params.scale = 'fast' must be a number or an array"),
    "None among params": ({"params": Params(None)}, "Algorithm.params.scale = None must be a number or an array"),
    "a schedule of numbers": ({"schedule": (20,)}, "schedule must be a tuple of Span"),
    "a schedule in a list": ({"schedule": [Span(1, 20)]}, "schedule must be a tuple of Span"),
    "one span": ({"schedule": Span(1, 20)}, "schedule must be a tuple of Span"),
    "no plays in a window": ({"schedule": (Span(0, 20),)}, "Span.slots = 0 must be an integer of at least 1"),
    "half a play": ({"schedule": (Span(1, 2.5),)}, "Span.repeats = 2.5 must be an integer"),
    "too few plays": ({"schedule": (Span(1, HORIZON - 1),)},
        f"schedule offers {HORIZON - 1} plays, and the horizon is {HORIZON}"),
    "rewards in a tuple": ({"rewards": (0, 1)}, r"Algorithm.rewards must be a Rewards, such as .* not \(0, 1\)"),
    "rewards upside down": ({"rewards": Rewards(1.0, 0.0, "clip")},
        "Rewards.low = 1.0 must be a number below Rewards.high = 0.0"),
    "rewards of another fate": ({"rewards": Rewards(0.0, 1.0, "cut")},
        "Rewards.outside = 'cut' must be one of 'clip', 'zero', 'accept'"),
    "a version of text": ({"version": "own"}, "Algorithm.version must be a tuple"),
    # the guarantee
    "model": ({"guarantee": Guarantee("locall")},
        r"Guarantee.model = 'locall' must be one of .*did you mean 'local'\?"),
    "unit": ({"guarantee": Guarantee("local", "rewards")}, r"Guarantee.unit = 'rewards' .*did you mean 'reward'\?"),
    "a string": ({"guarantee": "local"}, "Algorithm.guarantee must be a Guarantee"),
    "view": ({"guarantee": Guarantee("local", view="message")},
        r"Guarantee.view must be a function of \(message, released"),
    "events": ({"guarantee": Guarantee("local", events=())},
        r"Guarantee.events must be a function of \(params\), not \(\)"),
    "events of numbers": (
        {"guarantee": Guarantee("local", events=lambda params: (1.0,))}, "Guarantee.events must return a tuple of Event"
    ),
    "spend": ({"guarantee": Guarantee("local", spend=1.0)},
        r"Guarantee.spend must be a function of \(params\), not 1.0"),
    "spend one number": ({"guarantee": Guarantee("local", spend=lambda params: 1.0)}, "Guarantee.spend"),
    "spend three": ({"guarantee": Guarantee("local", spend=lambda params: (1, 0, 0))}, r"return \(epsilon, delta\)"),
    "scales": ({"guarantee": Guarantee("local", scales=("sale",))},
        r"scales names 'sale' \(did you mean 'scale'\?\), but"),
    "scales of text": ({"guarantee": Guarantee("local", scales="scale")}, "Guarantee.scales must be a tuple of names"),
    "bound": ({"guarantee": Guarantee("local", bound=-1.0)}, "Guarantee.bound = -1.0 must be a positive number"),
    "a view that fails": (
        {"guarantee": Guarantee("local", view=lambda message, released, action: message.nothing)},
        "cannot be traced: AttributeError.*in Guarantee.view",
    ),
}  # fmt: skip


@pytest.mark.planted("a user's algorithm")
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_malformed_algorithm_is_named_at_its_authors_line(name):
    changes, words = ALGORITHMS[name]
    for call in (lambda: calls.check_parts(planned(own(**changes))), lambda: simulate(own(**changes))):
        said = error_of(call)
        assert re.search(words, said) and "simulator.py" not in said
        assert HERE in said


WORLDS = {
    "reward too long": ({"reward": lambda params, state, draws, t, context, action: jnp.zeros(7)},
        r"World.reward .*\[7\]"),
    "reward of every arm": (
        {"reward": lambda params, state, draws, t, context, action: jnp.zeros((1, 3))}, r"World.reward .*float32\[1,3\]"
    ),
    "observe one value": (
        {"observe": lambda params, state, draws, t: ()},
        r"World.observe must return \(context, state\), it returns 0 values"
    ),
    "observe drifts": (
        {"observe": lambda params, state, draws, t: ((), 1.0)}, "World.observe must return a state of the fields"
    ),
    "score no Score": ({"score": lambda params, state, t, context, action: action}, "World.score must return a Score"),
    "score empty": ({"score": lambda params, state, t, context, action: Score()}, "must give arm, regret or both"),
    "score of another shape": (
        {"score": lambda params, state, t, context, action: Score(arm=action, regret=jnp.zeros(()))},
        r"must give regret of shape \[P\]",
    ),
    "score of a float arm": (
        {"score": lambda params, state, t, context, action: Score(arm=action / 2)}, r"must give arm of shape \[P\]"
    ),
    "arms that nobody counts": ({"num_arms": 0}, "World.num_arms is 0: say how many arms there are"),
    "arguments": ({"reward": lambda params, state, t, action: action}, "World.reward must take"),
    "no function": ({"truth": None}, "World.truth must be a function, not None"),
    "arms disagree": ({"num_arms": 4}, r"facts\['num_arms'\] = 3 disagrees with World.num_arms = 4"),
}  # fmt: skip


@pytest.mark.planted("a user's environment")
@pytest.mark.parametrize("name", WORLDS)
def test_a_malformed_environment_is_named(name):
    changes, words = WORLDS[name]
    for call in (
        lambda: calls.check_parts(planned(own(), environment=lambda: world_of(**changes))),
        lambda: simulate(own(), world_of(**changes)),
    ):
        said = error_of(call)
        assert re.search(words, said) and HERE in said, said


def test_what_stays_inside_a_window_may_be_anything():
    """A note is read by `encode` and `update` of the same window: numbers in it may be shapes, and text is text."""

    def act(params, state, draws, t, context):
        return t % 3, None, (t[0] % 3, 2, "mean")

    def encode(params, note, draws, t, context, action, reward, play):
        return jnp.zeros(note[1]).at[0].set(reward[0]) if note[2] == "mean" else None

    def update(params, state, draws, t, note, message, used):
        return State(state.mean.at[note[0]].add(message[0]), state.pulls), ()

    assert simulate(own(act=act, encode=encode, update=update)).pulls.sum() == HORIZON


def test_one_action_where_there_are_agents_is_laid_to_the_algorithm():
    environment = jb.environments.federated_linear(num_agents=2, num_arms=3, dim=2)
    said = error_of(lambda: simulate(own(), environment))
    assert re.search(r"Program.act returns actions int32\[1\], .* one action for each of them", said) and HERE in said


def test_facts_and_what_is_no_environment():
    plain = world_of()
    for environment, words in (
        (plain._replace(facts=None), "Environment.facts must be a dict"),
        (plain._replace(facts={"num_arms": 2.5}), r"facts\['num_arms'\] = 2.5 must be an integer of at least 1"),
        (
            plain._replace(facts={"num_arms": 3, "means": [0.1, 0.2]}),
            r"facts\['means'\] = .* must be 3 finite numbers, one an arm",
        ),
        (plain._replace(facts={"num_arms": 3, "means": [[0.1], [0.2], [0.3]]}), "must be 3 finite numbers"),
        (
            plain._replace(facts={"num_arms": 3, "max_horizon": "10"}),
            r"facts\['max_horizon'\] = '10' must be an integer",
        ),
        (
            plain._replace(facts={"num_arms": 3, "reward_range": 1.0}),
            r"facts\['reward_range'\] = 1.0 must be two numbers",
        ),
        (plain._replace(facts={"num_arms": 3, "reward_range": (1, 0)}), "low <= high"),
        (plain._replace(params=Params("a")), "Environment.params.scale = 'a' must be a number"),
        (plain._replace(world=3), "Environment.world must be a World"),
        (7, "must return an Environment, it returned 7"),
        (own()(num_arms=3, horizon=HORIZON), "must return an Environment, it returned an Algorithm alone"),
    ):
        assert re.search(
            words, error_of(lambda environment=environment: planned(own(), environment=lambda: environment))
        )

    def nothing(*, num_arms, horizon):
        return None

    assert "its factory must return an Algorithm, it returned None" in error_of(lambda: planned(nothing))
    without = plain._replace(facts={})
    assert planned(own(), environment=lambda: without).cells[0].algorithm.config["num_arms"] == 3
    nowhere = jb.environments.contextual_linear(num_arms=3, dim=2)._replace(facts={"dim": 2}, remake=None)
    assert "own needs num_arms, and the environment's facts do not hold it" in error_of(
        lambda: planned(own(), environment=lambda: nowhere)
    )


def corrupt(params, state, draws, t, payload, seen):
    return payload, False, state


ATTACKS = {
    "two values": (
        lambda params, state, draws, t, payload, seen: (payload, False),
        r"Attack.corrupt must return \(payload, hit, state\), it returns 2 values",
    ),
    "another shape": (
        lambda params, state, draws, t, payload, seen: (payload[:, None], False, state),
        r"must return rewards as it receives them, float32\[1\], it returns float32\[1,1\]",
    ),
    "hit a number": (
        lambda params, state, draws, t, payload, seen: (payload, 0, state), "`hit` False or a mask of agents, booleans"
    ),
    "a state that drifts": (
        lambda params, state, draws, t, payload, seen: (payload, False, state.astype(jnp.float32)),
        "the state is int32 from init"
    ),
}  # fmt: skip


@pytest.mark.planted("a user's adversary")
@pytest.mark.parametrize("name", ATTACKS)
def test_a_malformed_adversary_is_named(name):
    corrupt, words = ATTACKS[name]
    attack = Attack(lambda params, draws: jnp.int32(0), corrupt)
    said = error_of(lambda: simulate(own(), reward_adversary=Adversary(attack, (), None, {})))
    assert re.search(words, said) and HERE in said, said


def test_what_is_no_adversary():
    for adversary, words in (
        (lambda: 3, "must return an Adversary, it returned 3"),
        (lambda: Adversary(corrupt, (), None, {}), "Adversary.attack must be an Attack"),
        (lambda: Adversary(Attack(None, corrupt), (), None, {}), "Attack.init must be a function"),
    ):
        said = error_of(lambda adversary=adversary: planned(own(), reward_adversary=adversary))
        assert words in said


def test_parts_of_this_package_are_not_traced_twice(monkeypatch):
    monkeypatch.setattr(examination, "Examination", None)
    calls.check_parts(planned(jb.algorithms.ucb1))
