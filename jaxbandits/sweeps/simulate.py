"""`jb.simulate`: one lane, for teaching, debugging and use inside a user's own `jit` or `vmap`."""

import html
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.ask_tell import Behind, note_behind
from jaxbandits.numerics import fixed_sum
from jaxbandits.protocol import Adversary, Algorithm, Environment
from jaxbandits.recorder import Record
from jaxbandits.regret import regret_of_counts
from jaxbandits.sweeps import arguments, assumptions, plan
from jaxbandits.sweeps.compilation.compilation_cache import programs_on_disk
from jaxbandits.sweeps.compilation.executables import code_name
from jaxbandits.sweeps.compilation.settings import check_flags
from jaxbandits.sweeps.engines import contract_faults
from jaxbandits.sweeps.engines.one_lane import play_lane
from jaxbandits.sweeps.identity import digest_of_group
from jaxbandits.sweeps.part_checks import examination, fields
from jaxbandits.traced_once import Traces
from jaxbandits.typing import AdversaryFactory, AlgorithmFactory, Array, DType, EnvironmentFactory, Integer, Vector
from jaxbandits.validation import declare, integer
from jaxbandits.window import Parts, Window


class History(NamedTuple):
    """What happened, play by play.

    It holds exactly the plays of the run; where something is traced, every slot of the windows, and `play` marks the
    plays.
    """

    t: np.ndarray[Any, Any] | Array  # [T]
    action: np.ndarray[Any, Any] | Array  # [T] | [T, N]
    reward: np.ndarray[Any, Any] | Array  # [T] | [T, N], after contamination
    message: Any  # one entry a window
    released: Any  # one entry a window
    play: np.ndarray[Any, Any] | Array  # [T] bool


class Run(NamedTuple):
    """One simulated lane."""

    regret: np.ndarray[Any, Any] | Array  # [C], cumulative; float64 where nothing is traced
    t: np.ndarray[Any, Any] | Array  # [C], plays at the checkpoints
    pulls: np.ndarray[Any, Any] | Array | None  # [K] int32 | None where arms are not finite
    state: Any  # the algorithm's, at the horizon
    diagnostics: dict[str, Any]
    history: History | None = None

    def __repr__(self) -> str:
        """Plays, regret, pulls and diagnostics, a line each; where something is traced, shapes."""
        return "\n".join(["Run", *(f"  {title:12} {text}" for title, text in self._overview().items())])

    def _repr_html_(self) -> str:
        rows = (f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in self._overview().items())
        return f"<table>{''.join(rows)}</table>"

    def _overview(self) -> dict[str, str]:
        every = "t, action, reward, message and released of every play"
        return {
            "plays": _brief(self.t, last=True),
            "regret": f"{_brief(self.regret, last=True)} at the horizon, {np.shape(self.regret)[-1]:,} checkpoints",
            **({} if self.pulls is None else {"pulls": _brief(self.pulls)}),
            **{str(name): _brief(value) for name, value in self.diagnostics.items()},
            "history": "not kept: simulate(..., history=True)" if self.history is None else every,
        }


def _brief(x: Any, last: bool = False) -> str:
    """Numbers as text: one, few, or a shape. last: the last one of a run's numbers."""
    if isinstance(x, jax.core.Tracer) or (last and np.ndim(x) != 1) or np.ndim(x) > 1:
        return f"array of shape {np.shape(x)}"
    values = np.asarray(x)[-1:] if last else np.ravel(x)
    if values.size > 10:
        return f"{values.size:,} values"
    return ", ".join(f"{v:,.6g}" if isinstance(v, float) else f"{v:,}" for v in values.tolist())


@declare(check=False)
def simulate(
    algorithm: "Algorithm | AlgorithmFactory | str",
    environment: "Environment | EnvironmentFactory | str",
    *,
    reward_adversary: "Adversary | AdversaryFactory | str | None" = None,
    message_adversary: "Adversary | AdversaryFactory | str | None" = None,
    seed: int | np.integer[Any] | Integer[Array, ""] = 0,
    checkpoints: int | Vector = 200,
    history: bool = False,
    dtype: DType = "float32",
) -> Run:
    """Play one run, for teaching, debugging and use inside `jax.jit` or `jax.vmap`.

    Args:
        algorithm (Algorithm, factory or str): Who plays: a built algorithm, or a factory whose horizon is bound. What
            the environment fixes is filled in.
        environment (Environment, factory or str): Where it plays: a called environment, a factory or its name.
        reward_adversary, message_adversary (Adversary, factory or str, optional): Who corrupts rewards, and what
            clients send. The default: nobody.
        seed (int or traced integer): The seed, in [0, 2^32). The default: 0. The run is the same, bit for bit, as that
            of the seed in a `sweep`.
        checkpoints (int or sequence of int): When regret is recorded: how many times, spaced evenly in the logarithm,
            or the times themselves, to which the horizon is added. The default: 200.
        history (bool): Keep every play. The default: False.
        dtype (str or dtype): "float32", which is the default, or "float64".

    Returns:
        Run: Regret at the checkpoints, their times, pulls where arms are finite, the last state, diagnostics and the
            history.

    Raises:
        ValueError or TypeError: An argument is wrong, or a part does not keep to the protocol.
        ContractError: Actions leave the arms, pulls are not the plays, or regret is not finite; unless something is
            traced.

    Warns:
        UserWarning: The environment's rewards or their moments exceed what the algorithm declares, or NaN turns up in a
            user's part.

    Note:
        The function is pure. `seed` and the params of a built algorithm may be traced, nothing else. A traced seed is
        one number of an integer type; whether it is in range cannot be seen. Where something is traced, regret is
        summed on the device in `dtype`, and on the host in float64 otherwise.

    >>> import jaxbandits as jb
    >>> arms = jb.environments.bernoulli_arms(means=[0.2, 0.8])
    >>> run = jb.simulate(jb.algorithms.ucb1(num_arms=2, horizon=50), arms, history=True)
    >>> int(run.pulls.sum()), run.history.action.shape
    (50, (50,))
    """
    check_flags()
    dtype, seed = arguments.floating(dtype), _seed(seed)
    environment = environment_of(environment)
    attackers = {"reward_adversary": reward_adversary, "message_adversary": message_adversary}
    makers = {slot: arguments.part_factory(a, slot) for slot, a in attackers.items()}
    algorithm = algorithm_for(algorithm, environment)
    if "horizon" not in algorithm.config:
        remedy = "decorate the factory with jaxbandits.validation.factory"
        raise ValueError(f"{algorithm.version[0]}: its config holds no horizon: {remedy}")
    horizon = integer("horizon", algorithm.config["horizon"], 1, 2**31 - 2)
    call, bind = arguments.call_factory, plan.with_horizon
    first, second = (maker and call(bind(maker, horizon, slot), slot) for slot, maker in makers.items())
    if horizon > environment.facts.get("max_horizon", horizon):
        most = environment.facts["max_horizon"]
        raise ValueError(f"horizon = {horizon} is longer than the environment's {most} plays")
    if _is_traced((environment.params, first and first.params, second and second.params)):
        why = "only seed and the algorithm's params may be traced"
        raise ValueError(f"the environment and the adversaries need numbers: {why}")
    label = algorithm.version[0]
    cell = plan.Cell(label, algorithm, environment, first, second, horizon, place=())
    if not _is_traced(algorithm.params):
        assumptions.warn([cell], dtype, stacklevel=2)
        plan.check_range(label, plan.host_case(cell), dtype, {})
    if history and algorithm.program.hints.tally:
        raise ValueError("history=True shows single rewards, shortcut=True draws none: leave one of them out")
    times = arguments.checkpoint_times(horizon, checkpoints)
    parts, (case, _) = plan.parts_in(cell, dtype), plan.stack_cases([plan.host_case(cell)], dtype)
    with jax.enable_x64(dtype == "float64"):
        examination.warn(examination.doubts_of(cell, parts, case), stacklevel=2)
    if code_name(parts) is None and not _is_traced((seed, algorithm.params)):
        # a user's function may read a value that has changed since the function was compiled
        group = plan.Group(parts._replace(traces=Traces()), algorithm.schedule, times, [0], case)
        parts = group.parts._replace(traced=digest_of_group(group, cell, dtype, lasting=False, batch=False))
    with jax.enable_x64(dtype == "float64"), programs_on_disk():
        played = play_lane(parts, algorithm.schedule, history, case, jnp.uint32(seed), times)
    record, lane, diagnostics, windows = played
    traced = _is_traced((seed, algorithm.params))
    if _is_traced(seed) and parts.world.seeded:
        remedy = "call simulate with a number, or use sweep"
        raise ValueError(f"the best arm of this environment depends on the seed: {remedy}")
    regret = _regret(record, environment, parts, seed, times, traced)
    pulls = None if isinstance(record.pulls, tuple) else record.pulls
    plays = history_of_windows(windows, traced) if history else None
    if not traced:
        pulls, diagnostics = jax.tree.map(np.asarray, (pulls, diagnostics))
        note_behind(lane.algorithm, Behind(horizon, None))
        watched = jax.tree.map(lambda x: np.reshape(x, (1, 1)), lane.faults)
        counted = None if pulls is None else pulls[None, None]
        faults = contract_faults.find_faults((0,), int(seed), watched, np.asarray(regret)[None, None], counted, times)
        error = contract_faults.verdict([cell], {horizon: times}, dtype, faults, stacklevel=2)
        if error is not None:
            raise error
    return Run(regret=regret, t=times, pulls=pulls, state=lane.algorithm, diagnostics=diagnostics, history=plays)


def algorithm_for(algorithm: "Algorithm | AlgorithmFactory | str", environment: Environment) -> Algorithm:
    """A built algorithm, or what a factory with its horizon bound returns; ValueError where it does not fit."""
    if not isinstance(algorithm, Algorithm):
        recipe = arguments.factory_of(algorithm, "algorithm", "algorithm")
        if "horizon" not in recipe.bound:
            bind = f"functools.partial({arguments.public_name(recipe.function)}, horizon=1000)"
            raise ValueError(f"{recipe.name} needs a horizon: bind it, {bind}")
        algorithm = plan.build_algorithm(recipe, environment, recipe.bound["horizon"], recipe.name)
    else:
        fields.check_part(algorithm, Algorithm, None, "algorithm")
        plan.check_pair(algorithm, environment, algorithm.version[0])
    return plan.fitting_in(algorithm, environment.facts, algorithm.version[0])


def environment_of(given: "Environment | EnvironmentFactory | str") -> Environment:
    """A called environment as it is, or what a factory or the factory of that name returns."""
    if not isinstance(given, Environment):
        return arguments.call_factory(arguments.part_factory(given, "environment"), "environment")
    fields.check_part(given, Environment, given)
    return given


def _seed(seed: Any) -> Any:
    if _is_traced(seed):
        if not jnp.issubdtype(seed.dtype, jnp.integer) or seed.shape:
            remedy = "it must be one integer a run, such as those of jnp.arange(8) under jax.vmap"
            raise ValueError(f"seed, which is traced, has dtype {seed.dtype} and shape {seed.shape}: {remedy}")
        return seed
    plain = seed.item() if np.ndim(seed) == 0 and hasattr(seed, "item") else seed
    return integer("seed", plain, 0, 2**32 - 1, remedy="give one number; sweep runs many")


def build_parts(
    algorithm: "Algorithm | AlgorithmFactory | str", environment: "Environment | EnvironmentFactory | str | None"
) -> tuple[Algorithm, Environment | None]:
    """An algorithm and an environment, built and fitting. None: the factory has all it needs bound to it."""
    if environment is None:
        if isinstance(algorithm, Algorithm):
            return algorithm, None
        return arguments.call_factory(arguments.factory_of(algorithm, "algorithm", "algorithm"), "algorithm"), None
    environment = environment_of(environment)
    return algorithm_for(algorithm, environment), environment


def _is_traced(tree: object) -> bool:
    return any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(tree))


def history_of_windows(windows: Sequence[Window], traced: bool) -> History:
    """Stacked windows of every span as one history; where nothing is traced, without slots that were not played."""
    parts = []
    for window in windows:
        plays, sent = (window.t, window.action, window.reward, window.play), (window.message, window.released)
        if traced:
            plays = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), plays)
        else:  # on the host: outside of a compiled function every operation would be compiled by itself
            made = np.asarray(window.play)
            plays, sent = _rows(plays, made), _rows(sent, made.any(axis=1))
        (t, action, reward, play), (message, released) = plays, sent
        parts.append(History(t, action, reward, message, released, play))
    join = jnp.concatenate if traced else np.concatenate
    return parts[0] if len(parts) == 1 else jax.tree.map(lambda *xs: join(xs), *parts)


def _rows(tree: object, marked: Any) -> Any:
    return jax.tree.map(lambda x: np.asarray(x)[marked], tree)


def _regret(record: Record, environment: Environment, parts: Parts, seed: Any, times: Any, traced: bool) -> Any:
    """Regret at the checkpoints: from pull counts where it follows from them, otherwise the recorded sums."""
    if record.regret_at:
        high, low = record.regret_at
        regret = high + low if traced else np.asarray(high, np.float64) + np.asarray(low, np.float64)
    else:
        fields.check_means(environment)
        means = np.asarray(environment.facts["means"], np.float64)
        if traced:
            gaps = jnp.asarray(means.max() - means, parts.dtype)
            regret = fixed_sum(record.pulls_at.astype(parts.dtype) * gaps[None])
        else:
            regret = regret_of_counts(record.pulls_at, means)
    if parts.world.baseline is not None:
        regret = regret - parts.world.baseline(environment.params, 0 if _is_traced(seed) else int(seed), times)
    return regret
