"""Learners and logs: a learner as it stands after a run, as a policy (`trained`), and one that learns from a log.

Axes: [n] rows of a log, [m] other rows, [d] features of a row, [S] lanes, [B] stretches of a log, [K] arms.
"""

import functools
import math
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from annotated_doc import Doc

from jaxbandits.ask_tell import Behind, ask, draws_of_learner, note_behind, tell
from jaxbandits.declared import plays_on_by_names
from jaxbandits.environments.data import facts_of_rows
from jaxbandits.environments.logs import Log
from jaxbandits.environments.rows import Rows, make_rows
from jaxbandits.forks import refuse_fork
from jaxbandits.numerics import SHORT
from jaxbandits.protocol import Algorithm, Environment, Program, Span, World
from jaxbandits.random import Draws
from jaxbandits.simulator import arms_of
from jaxbandits.sweeps import arguments, assumptions, plan
from jaxbandits.sweeps.compilation.compilation_cache import programs_on_disk
from jaxbandits.sweeps.engines import contract_faults
from jaxbandits.sweeps.engines.one_lane import play_lane
from jaxbandits.sweeps.simulate import environment_of
from jaxbandits.sweeps.sweep import Seeds
from jaxbandits.typing import AlgorithmFactory, Array, EnvironmentFactory, Matrix
from jaxbandits.validation import array, declare, integer
from jaxbandits.window import Parts

DTYPE = "float32"
TRANSFORM: dict[str, Any] = {"dim": None, "standardise": True, "bias": True, "norm": "unit"}  # of a log's features
ROWS_AT_ONCE = 256  # for which a policy computes arms together


def _cast(algorithm: Algorithm) -> Any:
    return jax.tree.map(functools.partial(plan.cast, dtype=DTYPE), algorithm.params)


def _numbers(seeds: range) -> np.ndarray[Any, Any]:
    return np.arange(seeds.start, seeds.stop, dtype=np.uint32)


# ---- a learner as a policy


class Policy(NamedTuple):
    """A learner as it stands after a run, in many lanes: a randomised policy that draws one of them.

    Its probabilities are shares of lanes. What ips and dr estimate of them is the mean of the lanes' own estimates.
    """

    algorithm: Algorithm
    environment: Environment  # where it was trained
    seeds: range  # of the lanes [S]
    horizon: int  # plays it was trained for
    state: Any  # leaves [S, ...], after the last play

    @property
    def rows(self) -> Rows | None:
        """How features become what the learner sees; None where it sees nothing."""
        return self.environment.facts.get("rows")

    @property
    def log(self) -> Log | None:
        """The log that its environment was fitted to, if it was."""
        log = self.environment.config.get("log")
        return log if isinstance(log, Log) else None

    def arms(self, features: Matrix) -> np.ndarray[Any, Any]:
        """What each lane would play next on rows of features: int32 [m, S]. Its draws are those of its next play.

        Of a learner that plays windows, the first arm of its next window.
        """
        rows = array("features", features, 2)[:, :0] if self.rows is None else self.rows.apply(features)
        static = self.algorithm.program, self.algorithm.schedule[-1].slots, self.horizon > SHORT
        lanes, t = (_numbers(self.seeds), self.state), np.int32(self.horizon + 1)
        with programs_on_disk():
            return np.asarray(_next_arms(*static, _cast(self.algorithm), lanes, rows.astype(DTYPE), t)).T

    def probabilities(self, features: Matrix) -> np.ndarray[Any, Any]:
        """The share of lanes that would play each arm: [m, K]."""
        played, num_arms = self.arms(features), arms_of(self.environment) or 0
        return np.stack([(played == arm).mean(axis=1) for arm in range(num_arms)], axis=1)

    def __repr__(self) -> str:
        name = self.algorithm.version[0]
        return f"{name} after {self.horizon:,} plays in {len(self.seeds)} lanes, a policy of rows of features"


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _next_arms(program: Program, slots: int, long: bool, params: Any, lanes: Any, rows: Array, t: Array) -> Array:
    """What lanes would play at t on each row: [S, m]."""

    def arms_of_lane(lane):
        seed, state = lane
        draws = draws_of_learner(seed, rows.dtype, long=long)
        arm = lambda row: ask(program, params, state, draws, t, row, slots)[0][0]
        return jax.lax.map(arm, rows, batch_size=ROWS_AT_ONCE)

    return jax.lax.map(arms_of_lane, lanes)


@declare(check=False)
def trained(
    algorithm: "AlgorithmFactory | str",
    environment: "Environment | EnvironmentFactory | str",
    *,
    horizon: Annotated[int, Doc("Plays of training, at least 1.")],
    seeds: Seeds = 32,
) -> Policy:
    """Play a learner in an environment of rows, and keep what it has learned as a policy.

    Args:
        algorithm (factory or str): Who learns, as in `sweep`. What the environment fixes is filled in.
        environment (Environment, factory or str): Where it plays: `fitted`, `contextual_table` or `classification`.
        seeds (int, range or sequence of int, default 32): The lanes, as in `sweep`. For the estimator snips 32 or more.

    Returns:
        Policy: `policy.arms(features)` [m, S] is what each lane would play at its next play, `policy.probabilities(
            features)` [m, K] the shares of lanes. `policy.state` has leaves [S, ...], and `policy.rows` makes rows of
            features as the environment does. `jb.offline` takes it.

    Raises:
        ValueError or TypeError: An argument is wrong, the algorithm does not play there, or it reads contexts that are
            no rows.
        ContractError: An algorithm of your own plays what is no arm.
        RuntimeError: This process was forked after JAX was used: start it by ``spawn``.

    Note:
        A lane keeps its draws of play horizon + 1, so that it always answers a row with the same arm. A policy trained
        on a log must not be judged on it: `Log.split` divides one.

    >>> environment = jb.environments.classification(features=[[0.0], [1.0], [2.0]], labels=[0, 1, 1])
    >>> policy = jb.trained(jb.algorithms.ucb1, environment, horizon=50, seeds=4)
    >>> policy.probabilities([[0.0], [2.0]]).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    refuse_fork()
    environment, horizon = environment_of(environment), integer("horizon", horizon, 1, 2**31 - 2)
    recipe = plan.with_horizon(arguments.factory_of(algorithm, "algorithm", "algorithm"), horizon, "algorithm")
    built = plan.build_algorithm(recipe, environment, horizon, recipe.name)
    return train(plan.Cell(recipe.name, built, environment, None, None, horizon, ()), arguments.seed_range(seeds))


def train(cell: plan.Cell, seeds: range) -> Policy:
    """Play a cell's learner and keep its state."""
    environment, horizon = cell.environment, cell.horizon
    most = environment.facts.get("max_horizon", horizon)
    if horizon > most:
        raise ValueError(f"horizon = {horizon} is longer than the environment's {most} plays: lower it")
    sees = cell.algorithm.plays_on or plays_on_by_names(cell.algorithm.config)
    if arms_of(environment) is None or (sees != "arms" and "rows" not in environment.facts):
        remedy = "take fitted, contextual_table or classification with view='row'"
        raise ValueError(f"{cell.label}: a policy needs an environment of arms and rows of features: {remedy}")
    assumptions.warn([cell], DTYPE, stacklevel=3)
    plan.check_range(cell.label, plan.host_case(cell), DTYPE, {})
    case, times = plan.stack_cases([plan.host_case(cell)], DTYPE)[0], np.array([horizon])
    parts, schedule = plan.parts_in(cell, DTYPE), plan.as_played(cell.algorithm.schedule, horizon)
    with programs_on_disk():
        state, watched = _states_at_horizon(parts, schedule, horizon, case, _numbers(seeds))
    watched = jax.tree.map(lambda x: np.asarray(x)[:, None], watched)
    faults = contract_faults.find_faults((0,), seeds.start, watched, np.zeros((len(seeds), 1, 1)), None, times)
    error = contract_faults.verdict([cell], {horizon: times}, DTYPE, faults, stacklevel=3)
    if error is not None:
        raise error
    state = jax.tree.map(np.asarray, state)
    note_behind(state, Behind(horizon, seeds))
    return Policy(cell.algorithm, environment, seeds, horizon, state)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _states_at_horizon(parts: Parts, schedule: Any, horizon: int, case: Any, seeds: Array) -> tuple[Any, Any]:
    """The learner's state [S, ...] and the faults of lanes after the last play."""

    def play_to_horizon(seed):
        lane = play_lane(parts, schedule, False, case, seed, np.array([horizon]))[1]
        return lane.algorithm, lane.faults

    return jax.vmap(play_to_horizon)(seeds)


# ---- a learner that learns from a log


def replay(learner: Any, log: Log, *, seeds: range, blocks: int, shuffle: bool) -> list[list[np.ndarray[Any, Any]]]:
    """The rows from which a learner learns in each lane and stretch, in its order.

    An event whose arm it would have played is accepted with probability min p / p_i; otherwise nothing changes, its
    clock and draws included. Li, Chu, Langford and Wang 2011; Dudík, Erhan, Langford and Li 2012.
    """
    rows, transform = make_rows(log.features, log.feature_names, **TRANSFORM)
    recipe = arguments.factory_of(learner, "algorithm", "policy")
    propensity = np.ones(1) if log.propensity is None else log.propensity
    n, expected = len(rows), len(rows) * propensity.min() / blocks
    bound = recipe.bound.get("horizon")
    horizon = math.ceil(expected + 4 * math.sqrt(expected)) if bound is None else integer("horizon", bound, 1)
    nothing: Any = None
    paid = float(log.reward.min()), float(log.reward.max())
    facts = facts_of_rows(transform, rows) | {"num_arms": len(log.arm_names), "reward_range": paid}
    # what a log offers a learner: the facts of an environment, and no functions
    environment = Environment(
        World(nothing, nothing, nothing, nothing, nothing, num_arms=len(log.arm_names)), (), facts
    )
    algorithm = plan.build_algorithm(recipe, environment, horizon, recipe.name)
    if algorithm.schedule != (Span(1, horizon),):
        raise ValueError(
            f"policy = {recipe.name} plays windows or spans of its own; only a learner of one play a window can be "
            "replayed: for instance linucb, ucb1 or epsilon_greedy"
        )
    assumptions.warn([plan.Cell(recipe.name, algorithm, environment, None, None, horizon, ())], DTYPE, stacklevel=6)
    # a bound horizon tunes the learner; only what was filled in, or what a guarantee covers, ends the run
    last = horizon if bound is None or algorithm.guarantee.model != "none" else n
    events = [np.random.default_rng(seed).permutation(n) if shuffle else np.arange(n) for seed in seeds]
    width, stretches = math.ceil(n / blocks), [np.array_split(order, blocks) for order in events]
    order = np.array([[np.pad(x, (0, width - len(x)), constant_values=-1) for x in lane] for lane in stretches])
    table = rows.astype(DTYPE), log.arm.astype(np.int32), log.reward.astype(DTYPE)
    chance = np.broadcast_to(propensity.min() / propensity, n).astype(DTYPE)
    with programs_on_disk():
        hits = np.asarray(_accept_events(
            algorithm.program, horizon > SHORT, _cast(algorithm), _numbers(seeds), order.astype(np.int32),
            (*table, chance), np.int32(last),
        ))  # fmt: skip
    return [[x[hit] for x, hit in zip(*lane, strict=True)] for lane in zip(order, hits, strict=True)]


@functools.partial(jax.jit, static_argnums=(0, 1))
def _accept_events(
    program: Program, long: bool, params: Any, seeds: Array, order: Array, table: Any, last: Array
) -> Array:
    """Whether each event [S, B, n / B] is accepted."""

    def play_stretch(seed, events):
        draws = draws_of_learner(seed, table[0].dtype, long=long)
        coin = Draws(seed, "offline/accept", table[0].dtype)

        def show_event(carry, row):
            state, t = carry
            features, arm, reward, chance = (x[row] for x in table)
            action, note = ask(program, params, state, draws, t, features)
            hit = (row >= 0) & (action[0] == arm) & (coin.uniform(row + 1) < chance) & (t <= last)
            after, _, _ = tell(program, params, state, draws, t, features, note, action, reward[None])
            kept = jax.tree.map(lambda new, old: jnp.where(hit, new, old), after, state)
            return (kept, t + hit.astype(jnp.int32)), hit

        state = program.init(params, draws.child("init"))
        return jax.lax.scan(show_event, (state, jnp.int32(1)), events)[1]

    return jax.vmap(jax.vmap(play_stretch, (None, 0)))(seeds, order)
