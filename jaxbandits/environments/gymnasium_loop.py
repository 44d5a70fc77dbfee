"""An environment as one of gymnasium, for other people's loops and learners."""

from functools import cache, partial
from typing import Annotated, Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from annotated_doc import Doc

from jaxbandits.declared import Ge
from jaxbandits.formatting import show
from jaxbandits.protocol import Context, Environment, Params, Score, State, World
from jaxbandits.random import Draws
from jaxbandits.typing import Array, EnvironmentFactory, Int
from jaxbandits.validation import declare, integer

MAX_SEED = 2**31 - 1
Shown: TypeAlias = tuple[Context, State]  # what a play shows, [1, ...], and the state then
Seed: TypeAlias = Int[Array, ""]
Time: TypeAlias = Int[Array, ""]
Observation: TypeAlias = np.ndarray[Any, Any] | np.int64


@declare
def as_gymnasium(
    environment: "Environment | EnvironmentFactory",
    *,
    horizon: Annotated[int, Ge(1)] | None = None,
) -> Annotated[Any, Doc("A `gymnasium.Env`.")]:
    """Make a gymnasium environment of one of ours: an action is an arm, a step is a play.

    `reset(seed=s)` begins run s of `simulate`: contexts and rewards are those that a learner of the package meets
    there, whoever plays. An observation is what the next play shows: a row of features [d], a decision set [K, d],
    the advice of experts [N, K]; where it shows nothing it is 0. `info` has the number of the play, `t`, and the
    expected `regret` of its arm, where that does not depend on the plays to come. It needs the extra `gym`.

    Args:
        environment (Environment or factory): Called, or a partial that needs no further arguments.
        horizon: Plays after which an episode is truncated, no more than the environment has. The default: as many as
            it has, such as the rows of a table; else an episode never ends.

    >>> loop = jb.environments.as_gymnasium(jb.environments.bernoulli_arms(means=[0.2, 0.8]), horizon=100)
    >>> _, _ = loop.reset(seed=3)
    >>> _, reward, _, truncated, info = loop.step(0)
    >>> reward, truncated, round(info["regret"], 2)
    (1.0, False, 0.6)
    """
    given = environment() if callable(environment) else environment
    if given.facts.get("num_agents"):
        raise ValueError("environment has agents, each with an arm and a reward, and gymnasium has one reward a step")
    most = given.facts.get("max_horizon")
    plays = most if horizon is None else integer("horizon", horizon, 1)
    if most is not None and plays > most:
        raise ValueError(f"horizon = {plays} is longer than the environment's {most} plays: lower it")
    return loop_class()(given, plays)


@partial(jax.jit, static_argnums=0)
def begin_run(world: World, params: Params, seed: Seed) -> Shown:
    """What the first play shows, and the state."""
    draws = Draws(seed, "environment", jnp.float32)
    state = world.init(params, draws.child("instance"))
    return world.observe(params, state, draws.child("context"), jnp.ones(1, jnp.int32))


@partial(jax.jit, static_argnums=0)
def play_arm(world: World, params: Params, shown: Shown, seed: Seed, t: Time, arm: Time) -> tuple[Array, Score, Shown]:
    """The reward of an arm at play t and what it counts for; what the next play shows, and the state."""
    draws, (context, state) = Draws(seed, "environment", jnp.float32), shown
    reward = world.reward(params, state, draws.child("reward"), t[None], context, arm[None])
    score = world.score(params, state, t[None], context, arm[None])
    return reward, score, world.observe(params, state, draws.child("context"), t[None] + 1)


@cache
def loop_class() -> type:
    """The class, made when it is first asked for: gymnasium may not be installed."""
    try:
        import gymnasium
    except ImportError:
        raise ImportError("as_gymnasium needs gymnasium: pip install 'jaxbandits[gym]'") from None
    from gymnasium import spaces

    class BanditLoop(gymnasium.Env):
        """A bandit as an episode, one play a step."""

        def __init__(self, environment: Environment, horizon: int | None) -> None:
            self.environment, self.horizon = environment, horizon
            self.shown: Shown | None = None
            as_float = lambda x: jnp.asarray(x, jnp.float32 if jnp.issubdtype(np.result_type(x), np.floating) else None)
            self.given = environment.world, jax.tree.map(as_float, environment.params)
            self.num_arms = int(environment.world.num_arms or environment.facts["num_arms"])
            self.action_space = spaces.Discrete(self.num_arms)
            context, _ = jax.eval_shape(partial(begin_run, self.given[0]), self.given[1], np.uint32(0))
            shape = getattr(context, "shape", ())[1:]
            self.observation_space = spaces.Box(-np.inf, np.inf, shape, np.float32) if shape else spaces.Discrete(1)

        def reset(self, *, seed: int | None = None, options: object = None) -> tuple[Observation, dict[str, int]]:
            super().reset(seed=seed)
            run = self.np_random.integers(MAX_SEED) if seed is None else integer("seed", seed, 0, MAX_SEED)
            self.seed, self.t = np.uint32(run), 0
            self.shown = begin_run(*self.given, self.seed)
            return self.observation(), {"t": 0}

        def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, float]]:
            if not self.action_space.contains(action):
                raise ValueError(f"action = {show(action)} must be the number of an arm, 0 to {self.num_arms - 1}")
            if self.shown is None:
                raise ValueError("step: no run has begun: call reset(seed=...) first")
            self.t += 1
            reward, score, self.shown = play_arm(*self.given, self.shown, self.seed, np.int32(self.t), np.int32(action))
            info: dict[str, float] = {"t": self.t}
            if self.environment.world.baseline is None:  # that is known at the end alone
                means = np.asarray(self.environment.facts.get("means", 0.0))
                info["regret"] = float(means.max() - means[action] if score.regret is None else score.regret[0])
            ended = self.horizon is not None and self.t >= self.horizon
            return self.observation(), float(reward[0]), False, ended, info

        def observation(self) -> Observation:
            """What the next play shows."""
            if self.shown is None or not isinstance(self.observation_space, spaces.Box):
                return np.int64(0)
            return np.asarray(self.shown[0][0], np.float32)

    return BanditLoop
