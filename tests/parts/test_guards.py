"""Planted bugs in own parts: a wrong algorithm does not look perfect, and what is said names it."""

import sys
import types
import warnings
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from wrong_parts import normal, said_by_sweep, with_function, wrong_parts

import jaxbandits as jb
from jaxbandits import catalogue, cli, contract, simulator
from jaxbandits.protocol import (
    Adversary,
    Algorithm,
    Environment,
    Guarantee,
    Hints,
    Program,
    Score,
    Span,
    Truth,
    World,
)  # fmt: skip
from jaxbandits.sweeps.compilation.program_digest import first_difference
from jaxbandits.sweeps.engines import calls
from jaxbandits.sweeps.execution import SweepRun
from jaxbandits.sweeps.part_checks import examination, fields
from jaxbandits.sweeps.simulate import algorithm_for
from jaxbandits.sweeps.sweep import prepare_sweep
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


def test_the_lowest_integer_and_nan_turned_into_one_are_outside():
    with pytest.raises(jb.ContractError, match="own played arm -2147483648 at play 2"):
        simulate(own(act=plays(lambda t: jnp.where(t >= 2, -(2**31), 0))))

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
    settings = {k: v for k, v in SWEEP.items() if k != "progress"}
    job = SweepRun(prepare_sweep(algorithms, ARMS, settings, store=tmp_path, progress=False))
    ds = job.dataset()
    assert job.computed == 0 and (ds.pulls.sum("arm") == HORIZON).all()


def test_one_bad_lane_of_a_cell_is_enough_and_nothing_of_the_call_is_stored(tmp_path):
    def act(params, state, draws, t, context):
        return t % 3 + 3 * (draws.uniform(t) < 0.01).astype(jnp.int32), None, t[0] % 3

    maker = own(act=act)
    with pytest.raises(jb.ContractError, match=r"own played arm \d at play \d+; arms are 0\.\.2") as caught:
        jb.sweep(maker, ARMS, store=tmp_path, **SWEEP | {"seeds": 8})
    assert not list((tmp_path / "chunks").rglob("*.npz"))
    seed = int(str(caught.value).split("seed ")[1].split(",")[0].split(";")[0])
    with pytest.raises(jb.ContractError, match=f"seed {seed};"):  # the lane that is named, alone
        simulate(maker, seed=seed)
    others = [s for s in range(8) if s != seed]
    assert any(np.isfinite(simulate(maker, seed=s).regret).all() for s in others if _plays_well(maker, s))


def test_a_fault_of_a_later_call_names_its_seed(monkeypatch):
    def act(params, state, draws, t, context):
        return jnp.where(draws.seed >= np.uint32(20), 3, t % 3), None, t[0] % 3

    monkeypatch.setattr(calls, "CPU_LANES", 16)
    with pytest.raises(jb.ContractError, match=r"own played arm 3 at play 1; .*\(seed 20, the first of 12 lanes"):
        jb.sweep(own(act=act), ARMS, **SWEEP | {"seeds": 32})


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
    return jnp.zeros((*t.shape, 3), jnp.int32).at[:, 2].set(jnp.where(t == 4, params.scale, 1)), None, ()


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
    said_of = {"outside": (1, "outside played arm 3 at play 1"), "crooked": (2, "Program.act must return")}
    for name, (code, words) in said_of.items():
        file = tmp_path / f"{name}.toml"
        arms = 'environment = {name = "bernoulli_arms", means = [0.2, 0.5, 0.8]}'
        algorithm = f'algorithm = "guards_makers:{name}"'
        file.write_text(f"horizon = 20\nseeds = 4\ncheckpoints = 3\n{arms}\n{algorithm}\n")
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

    words = r"own's pulls do not add up .* counted arm 3 at play 6; arms are 0\.\.2"
    with pytest.raises(jb.ContractError, match=words):
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


def test_a_message_of_no_play_is_not_read():
    """Lanes end after different numbers of windows: those that are done send the mean of nothing."""

    def act(params, state, draws, t, context):
        return t % 3, 1 + (draws.uniform(t[0]) * 3).astype(jnp.int32), t[0] % 3

    def encode(params, note, draws, t, context, action, reward, play):
        return jnp.where(play, reward, 0).sum() / play.sum(dtype=jnp.int32).astype(reward.dtype)

    def update(params, state, draws, t, note, message, used):
        return state, ()

    maker = own(schedule=(Span(4, HORIZON, full=False),), act=act, encode=encode, update=update)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "own: ")
        jb.sweep(maker, ARMS, **SWEEP | {"seeds": 16})


def centred(params, state, draws, t, note, message, used):
    """NaN in the window of an infinite message."""
    return state._replace(mean=state.mean.at[note].add(message - message)), ()


def running_mean(params, state, draws, t, note, message, used):
    """NaN with the next message after an infinite one."""
    pulls = state.pulls.at[note].add(1)
    step = (message - state.mean[note]) / pulls[note].astype(message.dtype)
    return State(state.mean.at[note].add(step), pulls), ()


@pytest.mark.parametrize(
    ("update", "whose"), [(centred, "reward"), (running_mean, "reward"), (centred, "message")]
)  # fmt: skip
def test_what_follows_from_infinite_rewards_is_no_fault(update, whose):
    infinite = {f"{whose}_adversary": partial(jb.adversaries.huber, corruption=0.3, kind="fixed", value="inf")}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "own: ")
        jb.sweep(own(update=update), ARMS, **infinite, **SWEEP | {"seeds": 16})


def test_a_baseline_of_nan_is_a_breach_where_regret_follows_from_counts():
    world = ARMS.world._replace(baseline=lambda params, seed, times: np.full(len(times), np.nan))
    with pytest.raises(jb.ContractError, match="ucb1's regret is not finite at checkpoint"):
        jb.sweep("ucb1", ARMS._replace(world=world), **SWEEP)


def test_nan_at_the_end_of_a_span_after_infinite_rewards_is_no_fault():
    def close(params, state, draws, t):
        return state._replace(mean=state.mean - state.mean)

    maker = own(schedule=(Span(1, HORIZON, close=True),), close=close)
    infinite = partial(jb.adversaries.huber, corruption=0.3, kind="fixed", value="inf")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "own: ")
        jb.sweep(maker, ARMS, reward_adversary=infinite, **SWEEP | {"seeds": 16})


def test_nan_made_at_the_end_of_a_span_is_said():
    def close(params, state, draws, t):
        return state._replace(mean=state.mean * jnp.nan)

    maker = own(schedule=(Span(1, HORIZON, close=True),), close=close)
    with pytest.warns(UserWarning, match="own: the algorithm's state turns NaN from play 20 on"):
        jb.sweep(maker, ARMS, **SWEEP)


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


class Player:
    def act(self, params, state, draws, t, context):
        return t % 3, None, ()

    def __call__(self, *given):
        return self.act(*given)


def test_a_users_function_is_found_wherever_it_is_held():
    ours = jb.algorithms.ucb1(num_arms=3, horizon=9).program
    assert not contract.runs_own_code(ours)
    for held in (Player().act, Player(), partial(ours.update, act), partial(ours.update, note=act)):
        assert contract.runs_own_code(ours._replace(act=held)), held


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
    assert len(said) == 1 and examination.DRAWS_REMEDY in said[0]
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
    settings |= {"horizon": HORIZON, "seeds": SEEDS, "checkpoints": 3}
    return jb.sweeps.plan.plan(maker, environment, grid=grid, **settings)


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


@pytest.mark.parametrize(
    "name", ["Program.act returns text", "Program.update state: half precision", "World.reward takes 1",
             "Attack.corrupt one result too few", "Guarantee.view attribute"],
)  # fmt: skip
def test_one_lane_is_told_what_a_sweep_is_told(name):
    """All texts: `wrong_parts.json`."""
    wrong = wrong_parts()[name]
    said = error_of(lambda: jb.simulate(partial(wrong.algorithm, horizon=HORIZON), wrong.environment, **wrong.others))
    assert said_by_sweep(wrong) == [normal(f"ValueError: {said}")] and "simulator.py" not in said


def test_what_stays_inside_a_window_may_be_anything():
    """A note is read by `encode` and `update` of the same window: numbers in it may be shapes, and text is text."""

    def act(params, state, draws, t, context):
        return t % 3, None, (t[0] % 3, 2, "mean")

    def encode(params, note, draws, t, context, action, reward, play):
        return jnp.zeros(note[1]).at[0].set(reward[0]) if note[2] == "mean" else None

    def update(params, state, draws, t, note, message, used):
        return State(state.mean.at[note[0]].add(message[0]), state.pulls), ()

    assert simulate(own(act=act, encode=encode, update=update)).pulls.sum() == HORIZON


def test_facts_that_an_environment_leaves_out():
    without = world_of()._replace(facts={})
    assert planned(own(), environment=lambda: without).cells[0].algorithm.config["num_arms"] == 3
    nowhere = jb.environments.contextual_linear(num_arms=3, dim=2)._replace(facts={"dim": 2}, remake=None)
    said = error_of(lambda: planned(own(), environment=lambda: nowhere))
    assert "own needs num_arms, and the environment's facts do not hold it" in said


def test_parts_of_this_package_are_not_traced_twice(monkeypatch):
    monkeypatch.setattr(examination, "Examination", None)
    calls.check_parts(planned(jb.algorithms.ucb1))


def test_no_diagnostic_is_called_as_what_every_result_holds():
    sound = with_function("Program.diagnose", lambda params, state: {"best": state.mean.max()})
    ds = jb.sweep(sound.algorithm, sound.environment, horizon=20, seeds=2, progress=False)
    assert {"epsilon_spent", "regret", "arm"} < set(ds.variables)
    for name in set(ds.variables) - {"best"}:
        wrong = with_function("Program.diagnose", lambda params, state, name=name: {name: state.mean.max()})
        assert "which a result cannot hold" in said_by_sweep(wrong)[-1], name


def test_no_diagnostic_is_called_as_what_is_varied():
    def own(*, num_arms, horizon, bonus_scale=1.0):
        built = jb.algorithms.ucb1(num_arms=num_arms, horizon=horizon, bonus_scale=bonus_scale)
        program = built.program._replace(diagnose=lambda params, state: {"bonus_scale": params.bonus_scale})
        return built._replace(program=program)

    arms = partial(jb.environments.bernoulli_arms, means=[0.2, 0.8])
    with pytest.raises(ValueError, match=r"own: diagnose gives 'bonus_scale', which this sweep varies"):
        jb.sweep({"own": own}, arms, horizon=9, seeds=2, grid={"bonus_scale": [0.5, 1.0]}, progress=False)
