"""`jb.simulate`: one lane, for teaching, debugging and use inside a user's own `jit` or `vmap`."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import simulator
from jaxbandits.numerics import fixed_sum
from jaxbandits.protocol import Adversary, Algorithm, Case, Environment
from jaxbandits.simulator import Parts
from jaxbandits.sweeps import beliefs
from jaxbandits.sweeps.disk_cache import programs_on_disk
from jaxbandits.sweeps.plan import FILLED, Cell, built, checkpoint_times, fitting_in, host_case, part_factory, stacked
from jaxbandits.sweeps.unread import without_unread
from jaxbandits.validation import integer


class History(NamedTuple):
    """What happened, play by play (nothing traced: exactly the plays made; otherwise every slot, with `play`)."""

    t: Any  # [T]
    action: Any  # [T] | [T, N]
    reward: Any  # [T] | [T, N], after contamination
    message: Any  # one entry a window
    released: Any  # one entry a window
    play: Any  # [T] bool


class Run(NamedTuple):
    """One simulated lane."""

    regret: Any  # [C]
    t: Any  # [C]
    pulls: Any  # [K] int32 | None
    state: Any
    diagnostics: dict
    history: History | None = None


def simulate(
    algorithm, environment, *, reward_adversary=None, message_adversary=None, seed=0, checkpoints=200, history=False,
    dtype="float32",
) -> Run:  # fmt: skip
    """Play one lane. Pure: `seed` and the algorithm's params may be traced, so it works inside `jit` and `vmap`.

    algorithm: a built algorithm, or a factory with its horizon bound (what the environment fixes is filled in).
    environment, adversaries: called parts or factories. checkpoints: a count or times. history: keep every play.
    Warns where the environment's moments exceed what the algorithm declares.
    Lane `seed` is the same, bit for bit, as in a `sweep`; where something is traced, regret is summed on the device in `dtype`.

    >>> import jaxbandits as jb
    >>> arms = jb.environments.bernoulli_arms(means=[0.2, 0.8])
    >>> run = jb.simulate(jb.algorithms.ucb1(num_arms=2, horizon=50), arms, history=True)
    >>> int(run.pulls.sum()), run.history.action.shape
    (50, (50,))
    """
    environment = environment if isinstance(environment, Environment) else environment()
    makers = [part_factory(a, Adversary) for a in (reward_adversary, message_adversary)]
    first, second = (None if maker is None else maker() for maker in makers)
    algorithm = algorithm_for(algorithm, environment)
    horizon = integer("horizon", algorithm.config["horizon"], 1, 2**31 - 2)
    if horizon > environment.facts.get("max_horizon", horizon):
        raise ValueError(
            f"horizon = {horizon} is longer than the environment's {environment.facts['max_horizon']} plays"
        )
    if _traced((environment.params, first and first.params, second and second.params)):
        raise ValueError(
            "the environment and the adversaries need numbers: only seed and the algorithm's params may be traced"
        )
    if not _traced(algorithm.params):
        beliefs.warn([(algorithm.version[0], algorithm, environment)], stacklevel=2)
    if history and algorithm.program.tally:
        raise ValueError("history=True shows single rewards, shortcut=True draws none: leave one of them out")
    times = checkpoint_times(horizon, checkpoints)
    cell = Cell(algorithm.version[0], algorithm, environment, first, second, horizon, ())
    parts = simulator.parts_of(algorithm, environment, first, second, dtype)
    case, _ = stacked([host_case(cell)], dtype)
    with jax.enable_x64(dtype == "float64"), programs_on_disk():
        record, state, diagnostics, kept = _play(parts, algorithm.schedule, history, case, jnp.uint32(seed), times)
    traced = _traced((seed, algorithm.params))
    if _traced(seed) and parts.world.seeded:
        raise ValueError(
            "the best arm of this environment depends on the seed: call simulate with a number, or use sweep"
        )
    regret = _regret(record, environment, parts, seed, times, traced)
    pulls = None if isinstance(record.pulls, tuple) else record.pulls
    if history:
        kept = _flat(kept, traced)
    if not traced:
        pulls, diagnostics = jax.tree.map(np.asarray, (pulls, diagnostics))
    return Run(regret, times, pulls, state, diagnostics, kept if history else None)


def algorithm_for(algorithm, environment: Environment) -> Algorithm:
    """A built algorithm as it is; a factory with its horizon bound, called with what the environment fixes. ValueError where they do not fit."""
    if not isinstance(algorithm, Algorithm):
        keywords: dict = {}
        outer = algorithm
        while isinstance(outer, partial):
            keywords, outer = {**outer.keywords, **keywords}, outer.func
        name = getattr(outer, "__name__", "algorithm")
        if "horizon" not in keywords:
            raise ValueError(f"{name} needs a horizon: bind it, functools.partial(factory, horizon=1000)")
        facts = {k: v for k, v in environment.facts.items() if k in FILLED}
        algorithm = built(algorithm, {}, facts, keywords["horizon"], name)
    return fitting_in(algorithm, environment.facts, algorithm.version[0])


def built_parts(algorithm, environment) -> tuple[Algorithm, Environment | None]:
    """Both, called where they are factories; environment None: the algorithm's factory binds all it needs. ValueError where they do not fit."""
    for name, part in (("algorithm", algorithm), ("environment", environment)):
        if not isinstance(part, Algorithm | Environment | None) and not callable(part):
            raise ValueError(f"{name} = {part!r} must be a factory of jb.{name}s, a partial of one, or what it returns")
    if environment is None:
        return algorithm if isinstance(algorithm, Algorithm) else algorithm(), None
    environment = environment if isinstance(environment, Environment) else environment()
    return algorithm_for(algorithm, environment), environment


def _traced(tree) -> bool:
    return any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(tree))


def _windows(span, checkpoints: int) -> int:
    if not span.full:
        return span.repeats + (0 if span.whole else checkpoints)
    return span.repeats * -(-(span.length or span.slots) // span.slots)


def _piece(function, static: tuple[int, ...]):
    """Compiled by itself: an algorithm of many spans repeats few kinds of window. Under a caller's jit it is inlined."""
    return jax.jit(without_unread(function, static), static_argnums=static)


_begin = _piece(simulator.begin, (0, 3))
_advance = _piece(simulator.advance, (0, 1))
_close = _piece(simulator.close, (0,))
_finish = _piece(simulator.finish, (0,))


def _play(parts: Parts, schedule: tuple, history: bool, case: Case, seed, times):
    lane = watched = _begin(parts, case, seed, len(times))  # watched: makes every play that a lane at rest only counts
    start, kept, horizon, times = 0, [], int(times[-1]), jnp.asarray(times, jnp.int32)
    for span in schedule:
        kind, length, windows = (
            (span.slots, span.full, span.whole),
            span.length or span.slots,
            _windows(span, len(times)),
        )
        where = (times, jnp.int32(start), jnp.int32(length))
        if history:
            watched, seen = _watch(parts, kind, windows, case, seed, watched, *where)
            kept.append(seen)
        lane = _advance(parts, kind, case, seed, lane, *where, jnp.int32(0), jnp.int32(windows))
        if span.close:
            lane = _close(parts, case, seed, lane)
            watched = _close(parts, case, seed, watched) if history else watched
        start = min(start + span.repeats * length, horizon) if span.full else start
    record, diagnostics = _finish(parts, case, lane)
    return record, lane.algorithm, diagnostics, kept


@partial(_piece, static=(0, 1, 2))
def _watch(parts, kind, windows, case, seed, lane, times, start, length):
    """The same windows again, kept. Spans that are not full are bounded by their windows, full ones by the horizon."""
    slots, full, _ = kind

    def one(lane, w):
        if not full:
            return simulator.one_counted(parts, kind, case, seed, lane, times, rests=False)
        per_batch = (length + slots - 1) // slots
        before = start + (w // per_batch) * length + (w % per_batch) * slots
        limit = jnp.clip(length - (w % per_batch) * slots, 0, jnp.maximum(times[-1] - before, 0))
        lane, window = simulator._offer(parts, case, seed, slots, lane, before, limit)
        return lane, window

    return lax.scan(one, lane, jnp.arange(windows, dtype=jnp.int32))


def _flat(kept, traced: bool) -> History:
    parts = []
    for window in kept:
        w, p = window.play.shape

        def rows(x, w=w, p=p):
            return x.reshape(w * p, *x.shape[2:])

        t, play = rows(window.t), rows(window.play)
        action, reward = rows(window.action), rows(window.reward)
        used = window.play.any(axis=1)
        message, released = window.message, window.released
        if not traced:
            t, action, reward, message, released = jax.tree.map(np.asarray, (t, action, reward, message, released))
            keep, used = np.asarray(play), np.asarray(used)
            t, action, reward, play = t[keep], action[keep], reward[keep], keep[keep]
            message, released = jax.tree.map(lambda x, used=used: x[used], (message, released))
        parts.append(History(t, action, reward, message, released, play))
    if len(parts) == 1:
        return parts[0]
    join = np.concatenate if not traced else jnp.concatenate
    return jax.tree.map(lambda *xs: join(xs), *parts)


def _regret(record, environment, parts, seed, times, traced):
    if record.regret_at:
        high, low = record.regret_at
        regret = high + low if traced else np.asarray(high, np.float64) + np.asarray(low, np.float64)
    else:
        means = np.asarray(environment.facts["means"], np.float64)
        gaps = means.max() - means
        if traced:
            regret = fixed_sum(record.pulls_at.astype(parts.dtype) * jnp.asarray(gaps, parts.dtype))
        else:
            regret = np.zeros(len(times))
            for arm, gap in enumerate(gaps):
                regret += np.asarray(record.pulls_at)[:, arm] * gap
    if parts.world.baseline is not None:
        regret = regret - parts.world.baseline(environment.params, 0 if _traced(seed) else int(seed), times)
    return regret
