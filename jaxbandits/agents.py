"""`jb.agent`: a learner in a loop of one's own, which asks it for arms and tells it what they paid.

Axes: [P] plays of a window, [N] agents, [S] lanes.
"""

import functools
import hashlib
import os
import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import agent_file, spans
from jaxbandits.ask_tell import ask_window, behind_state, draws_of_learner, tell_window
from jaxbandits.contract import shape_text
from jaxbandits.formatting import show
from jaxbandits.numerics import SHORT
from jaxbandits.protocol import Algorithm, Context, Note, Program, State
from jaxbandits.sweeps import arguments, plan
from jaxbandits.sweeps.assumptions import privacy_spent
from jaxbandits.sweeps.compilation.compilation_cache import programs_on_disk
from jaxbandits.sweeps.compilation.program_digest import NoIdentity, fingerprint
from jaxbandits.sweeps.compilation.settings import check_flags
from jaxbandits.sweeps.part_checks import fields
from jaxbandits.sweeps.who_plays import what_is_read
from jaxbandits.typing import AlgorithmFactory, Array, Integer, Numeric
from jaxbandits.validation import declare, integer, numbers, path_of, same

DTYPE = "float32"
# What an algorithm reads -> the arguments that are the sizes of one play's context
CONTEXT_SIZES: dict[str, tuple[str, ...]] = {
    "row": ("dim",),
    "decision set": ("num_arms", "dim"),
    "advice": ("num_experts", "num_arms"),
    "agents": ("num_agents", "num_arms", "dim"),
}
# What an agent counts, and its file holds
COUNTED = ("horizon", "_plays", "_told", "_exceeds", "_span", "_start", "_window")


class AgentState(NamedTuple):
    """A learner between two plays: what `Agent.state` shows and `Agent.step` takes. A pytree of one lane."""

    seed: Numeric  # uint32
    plays: Numeric  # int32, how many were chosen
    learner: State  # the state of the algorithm
    context: Context  # of the play chosen last
    action: Array  # int32 [1] | [1, N], what was chosen
    note: Note
    waits: np.bool_ | Array  # whether that play waits for its reward


class Window(NamedTuple):
    """Plays that were chosen together and wait for their rewards; most algorithms choose one at a time."""

    first: int  # t of the first play
    used: int  # how many plays
    shown: Context  # contexts [P, ...], () where there are none
    action: Array  # int32 [P] | [P, N]
    note: Note


class _Functions(NamedTuple):
    """A program's functions for one lane, compiled; `slots` of a window are static."""

    begin: Callable[..., Any]  # (params, seed) -> learner
    ask: Callable[..., Any]  # (slots, params, seed, learner, t, shown) -> action, used, note
    tell: Callable[..., Any]  # (params, seed, learner, t, shown, note, action, reward, used) -> learner
    close: Callable[..., Any]  # (params, seed, learner, plays) -> learner
    step: Callable[..., Any]  # (params, state, reward, context) -> state, action


@functools.lru_cache(maxsize=256)
def _compile_program(program: Program, long: bool) -> _Functions:
    draws_of = functools.partial(draws_of_learner, dtype=DTYPE, long=long)

    def begin(params, seed):
        return program.init(params, draws_of(seed).child("init"))

    def ask(slots, params, seed, learner, t, shown):
        return ask_window(program, params, learner, draws_of(seed), t, shown, slots)

    def tell(params, seed, learner, t, shown, note, action, reward, used):
        return tell_window(program, params, learner, draws_of(seed), t, shown, note, action, reward, used)[0]

    def close(params, seed, learner, plays):
        return program.close(params, learner, draws_of(seed).child("close"), plays)

    def step(params, state, reward, context):
        told = (params, state.seed, state.learner, state.plays, state.context, state.note, state.action)
        after = tell(*told, jnp.broadcast_to(reward, state.action.shape), None)
        learner = jax.tree.map(lambda new, old: jnp.where(state.waits, new, old), after, state.learner)
        t, shown = state.plays + 1, jax.tree.map(lambda x: x[None], context)
        action, _, note = ask(1, params, state.seed, learner, t, shown)
        return AgentState(state.seed, t, learner, shown, action, note, jnp.bool_(True)), action[0]

    compiled = jax.jit(ask, static_argnums=0), jax.jit(tell), jax.jit(close), jax.jit(step)
    return _Functions(jax.jit(begin), *compiled)


class Agent:
    """A learner in a loop of one's own: `agent` makes it.

    One thread at a time is inside; others wait.
    """

    def __init__(self, algorithm: Algorithm, seed: int, horizon: int) -> None:
        self.algorithm, self.seed, self.horizon = algorithm, seed, horizon
        self.name = str(algorithm.version[0])
        params = jax.tree.map(functools.partial(plan.cast, dtype=DTYPE), algorithm.params)
        self._params, self._stream = jax.device_put((params, np.uint32(seed)))  # once, and not at every call
        self._schedule = plan.as_played(algorithm.schedule, algorithm.config["horizon"])
        self._functions = _compile_program(algorithm.program, algorithm.config["horizon"] > SHORT)
        self._sizes, self._lock = context_sizes(algorithm), threading.RLock()
        # one play a window, as most have it: then plays need not come back in order
        self._single = all(span.full and span.slots == 1 and not span.close for span in self._schedule)
        self._open: dict[Hashable, Window] = {}
        self._last: Any = None  # the event of the window asked last, and the window
        self._plays, self._told, self._exceeds = 0, False, False
        self._span, self._start, self._window = 0, 0, 0  # where the coming window is in the schedule
        with programs_on_disk():
            self._learner = self._functions.begin(self._params, self._stream)
            if None not in self._sizes:
                self._compile()

    def _compile(self) -> None:
        """Play one window of each kind on zeros, so that nothing is compiled later."""
        for slots in {span.slots for span in self._schedule if spans.windows_offered(span)}:
            shown, t = self._contexts_of_window(self._empty_context(), slots), np.int32(1)
            action, _, note = self._ask(slots, self._learner, t, shown)
            reward = np.zeros(action.shape, DTYPE)
            jax.block_until_ready(self._learn(self._learner, Window(1, slots, shown, action, note), reward))
        if any(span.close for span in self._schedule):
            self._close(self._learner, 1)

    # ---- asking

    def ask(self, context: Context = None, *, event: Hashable = None) -> Any:
        """The arm to play, or the arms of a window.

        Args:
            context: What the play shows: [d] of a row, [K, d] features of each arm, [E, K] the advice of experts, [N,
                K, d] for agents; before a window of P plays this for all of them, or [P, ...]. Nothing for algorithms
                of arms, which read none.
            event (str or int): Your name of the play, for rewards that come later, in another order,
                or never.

        Returns:
            int: The arm; int32 [P] of an algorithm that plays windows, with one axis [N] more for agents.

        Raises:
            ValueError: The context has another shape, all plays of the horizon are made, the event is open already, or
                the algorithm needs the reward of the last play first.
        """
        with self._lock:
            if event is not None and type(event) not in (str, int):
                raise TypeError(f"event = {show(event)} of type {type(event).__name__} must be a text or an integer")
            if event in self._open:
                raise ValueError(f"event = {show(event)} waits for its reward already: name each play otherwise")
            if self._open and (self.algorithm.program.lockstep or not self._single):
                why = "runs in lockstep with plays" if self._single else "plays windows of its own"
                remedy = "tell that first, forget() it where none comes, or take an algorithm that can wait, such as"
                raise ValueError(f"{self.name} {why} and the last play waits for its reward: {remedy} ucb1 or linucb")
            if self._plays >= self.horizon:
                remedy = f"make an agent with horizon={2 * self.horizon}, since tuning, memory and privacy are for one"
                raise ValueError(f"{self.name} has made all {self.horizon} plays of its horizon: {remedy}")
            given = self._check_context(context)
            while True:
                window = self._next_window(given)
                if window.used:
                    break
                self._learner = self._learn(self._learner, window, np.zeros(np.shape(window.action), DTYPE))
            self._plays += window.used
            self._last = (window.first,) if event is None else event, window
            self._open[self._last[0]] = window
            arms = np.asarray(window.action)
            if not self._single:
                return arms[: window.used]
            return int(arms[0]) if arms.ndim == 1 else arms[0]

    def _next_window(self, given: Context) -> Window:
        """The coming window of the schedule; spans that are over are closed."""
        before, left = self._plays, self.horizon - self._plays
        if self._single:
            action, _, note = self._ask(
                1, self._learner, np.int32(before + 1), shown := self._contexts_of_window(given, 1)
            )
            return Window(before + 1, 1, shown, action, note)
        while self._window >= spans.windows_offered(span := self._schedule[self._span]):
            if span.close:
                self._learner = self._close(self._learner, before)
            self._start = spans.next_start(span, self._start, self.horizon)
            self._span, self._window = self._span + 1, 0
        if span.full:
            length = spans.batch_length(span)
            _, of_batch = spans.place_of_window(self._window, self._start, length, span.slots)
            left = min(left, of_batch)
        shown = self._contexts_of_window(given, span.slots)
        action, used, note = self._ask(span.slots, self._learner, np.int32(before + 1), shown)
        self._window += 1
        return Window(before + 1, min(int(used), left), shown, action, note)

    # ---- telling

    def tell(self, reward: Any, *, event: Hashable = None) -> None:
        """What a play paid: the learner learns from it.

        Args:
            reward: A number; [N] for agents, [P] of a window. What is not finite is treated as the algorithm says.
            event (str or int): Which play was paid. The default: the one asked last.

        Raises:
            ValueError: No play of that name waits for a reward, or as many rewards were not asked for.
        """
        with self._lock:
            key, window = self._waiting(event)
            shape = np.shape(window.action)
            wanted = shape[1:] if self._single else (window.used, *shape[1:])
            given = np.asarray(reward if type(reward) in (float, int) else numbers("reward", reward), np.float64)
            if given.shape != wanted:
                raise ValueError(f"reward has shape {given.shape}; {self.name} asked for {wanted}: one number a play")
            padded = np.zeros(shape, DTYPE)
            with np.errstate(over="ignore"):
                padded[: window.used] = given
            self._learner = self._learn(self._learner, window, padded)
            self._told = True
            bound = self.algorithm.guarantee.bound
            self._exceeds = self._exceeds or (bound < float("inf") and not bool((abs(given) <= bound).all()))
            del self._open[key]

    def forget(self, *, event: Hashable = None) -> None:
        """Wait no longer for the reward of a play, which never comes; the default: of the one asked last.

        An algorithm in lockstep with plays then chooses that play again.
        """
        with self._lock:
            key, window = self._waiting(event)
            del self._open[key]
            if self.algorithm.program.lockstep or not self._single:
                self._plays -= window.used
                self._window -= not self._single

    def _waiting(self, event: Hashable) -> tuple[Hashable, Window]:
        """An event and its window."""
        if event is None:
            if self._last is None or self._last[0] not in self._open:
                waits = (
                    f"the play asked last does not, and these do: {show([*self._open])}" if self._open else "none does"
                )
                raise ValueError(f"no play waits for this reward ({waits}): ask first, or name the event of a play")
            event = self._last[0]
        if event not in self._open:
            named = [show(key) for key in self._open if not isinstance(key, tuple)]
            waiting = ", ".join(named[:5]) or "no event does"
            raise ValueError(f"event = {show(event)} waits for no reward, or was told already: {waiting}")
        return event, self._open[event]

    # ---- what is known

    @property
    def waiting(self) -> tuple[Any, ...]:
        """The events whose rewards have not come; None for a play without a name."""
        with self._lock:
            return tuple(None if isinstance(key, tuple) else key for key in self._open)

    @property
    def state(self) -> AgentState:
        """The learner as it is, with the play asked last: a pytree, for `step` and for `jb.agent(state=...)`."""
        with self._lock:
            window = self._blank_window() if self._last is None else self._last[1]
            waits = self._last is not None and self._last[0] in self._open
            lane = np.uint32(self.seed), np.int32(self._plays), self._learner
            return AgentState(*lane, window.shown, window.action, window.note, np.bool_(waits))

    def begin(self, seed: Numeric) -> AgentState:
        """The state before the first play in the lane of a seed, also under `jax.vmap`: for `step`."""
        blank = self._blank_window()
        learner = self._functions.begin(self._params, jnp.asarray(seed, jnp.uint32))
        lane = jnp.asarray(seed, jnp.uint32), jnp.int32(0), learner
        return AgentState(*lane, blank.shown, blank.action, blank.note, jnp.bool_(False))

    def spent(self) -> tuple[float, float]:
        """What of one unit's privacy is spent: (epsilon, delta).

        (0, 0) before the first reward, then what the guarantee says of a whole run; (inf, 0) where there is none, or
        where a reward lay beyond those that it is for.
        """
        if not self._told:
            return 0.0, 0.0
        found = privacy_spent(self.algorithm, None)
        return (float("inf"), 0.0) if self._exceeds else (found.epsilon, found.delta)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the agent into a file: what it learned, what it is built of, and which plays wait for rewards.

        Args:
            path (str or path): Where to, ending in `.npz`; an earlier file there is replaced at once.

        Returns:
            pathlib.Path: The path. `jb.load_agent` reads it.

        Raises:
            ValueError: The path has another ending.
            OSError: It cannot be written to the end, as on a full disk. What was there before is still there.

        Note:
            The file holds plain data, never a pickle: arrays, and of the algorithm its name and its arguments. Of an
            algorithm of your own, or one that was changed, nothing is written: it is given to `load_agent`.
        """
        path = path_of(path, "save: path")
        if path.suffix != ".npz":
            raise ValueError(f"path = {str(path)!r} does not end in .npz: an agent is one file, such as agent.npz")
        with self._lock:
            windows = list(self._open.values())
            if self._last is not None and self._last[0] not in self._open:
                windows.append(self._last[1])  # told already: `state` shows it
            described, arrays = agent_file.describe_algorithm(self.algorithm)
            about = {"algorithm": described, "name": self.name, "program": self._program_digest(), "seed": self.seed}
            about |= {name: getattr(self, name) for name in COUNTED}
            about["open"] = [None if isinstance(key, tuple) else key for key in self._open]
            about["windows"] = [(window.first, window.used, len(window.action)) for window in windows]
            about["last"] = None if self._last is None else [w.first for w in windows].index(self._last[1].first)
            leaves = jax.tree.leaves((self._learner, [(w.shown, w.action, w.note) for w in windows]))
            arrays |= {f"leaf_{i}": x for i, x in enumerate(leaves)}
            agent_file.write(path, about, arrays)  # inside, so that no older one replaces a newer one
        return path

    def _program_digest(self) -> str:
        """What it computes and with which numbers; empty where a user's functions have no stable description."""
        if None in self._sizes:
            return ""
        learner, shown = self._learner, self._contexts_of_window(self._empty_context(), 1)
        params, seed, t = self._params, np.uint32(0), np.int32(1)
        made = jax.make_jaxpr(functools.partial(self._functions.ask, 1), return_shape=True)
        asked, (action, _, note) = made(params, seed, learner, t, shown)
        given = params, seed, learner, t, shown, note, action, jax.ShapeDtypeStruct(action.shape, DTYPE), None
        try:
            programs = fingerprint([asked, jax.make_jaxpr(self._functions.tell)(*given)], [])
        except NoIdentity:
            return ""
        numbers = b"".join(np.asarray(x).tobytes() for x in jax.tree.leaves(params))
        return f"{programs} {hashlib.sha256(numbers).hexdigest()}"

    def step(self, state: AgentState, reward: Numeric, context: Context = None) -> tuple[AgentState, Array]:
        """One turn as a pure function, for `jax.jit`, `jax.vmap` and `jax.lax.scan`: tell, then ask.

        Args:
            state: `agent.state`, or what the last step returned. Other lanes begin with `begin(seed)`.
            reward: What the play chosen last paid. The first call ignores it.
            context: As of `ask`.

        Returns:
            tuple: The state after it, and the arm to play, int32 [] or [N]. Nothing stops at the horizon.

        Raises:
            ValueError: The algorithm plays windows, or the context has another shape.
        """
        if not self._single:
            raise ValueError(f"step is for algorithms of one play a window, and {self.name} has others: ask and tell")
        given = self._check_context(context, traced=True)
        return self._functions.step(self._params, state, jnp.asarray(reward, DTYPE), given)

    def __repr__(self) -> str:
        waits = f", {len(self._open)} wait for rewards" if self._open else ""
        return f"agent of {self.name}, seed {self.seed}: {self._plays:,} of {self.horizon:,} plays chosen{waits}"

    def __reduce__(self) -> Any:
        raise TypeError("an agent is not pickled: agent.save(path) writes it, jb.load_agent(path) reads it")

    # ---- the compiled functions, and what they are given

    def _ask(self, slots: int, learner: State, t: Numeric, shown: Context) -> tuple[Array, Array, Note]:
        return self._functions.ask(slots, self._params, self._stream, learner, t, shown)

    def _learn(self, learner: State, window: Window, reward: np.ndarray[Any, Any]) -> State:
        lane, used = (self._params, self._stream, learner), None if self._single else np.int32(window.used)
        first = np.int32(window.first)
        return self._functions.tell(*lane, first, window.shown, window.note, window.action, reward, used)

    def _close(self, learner: State, plays: int) -> State:
        return self._functions.close(self._params, self._stream, learner, np.int32(plays))

    def _empty_context(self) -> Context:
        return np.zeros([size or 1 for size in self._sizes], DTYPE) if self._sizes else ()

    def _blank_window(self, slots: int = 1) -> Window:
        """A window of plays that were never made, for its shapes."""
        shown = self._contexts_of_window(self._empty_context(), slots)
        made = jax.eval_shape(functools.partial(self._ask, slots), self._learner, np.int32(1), shown)
        action, _, note = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), made)
        return Window(0, 0, shown, action, note)

    def _check_context(self, context: Context, traced: bool = False) -> Context:
        """A context in the type of the program; () where none is read."""
        if not self._sizes:
            return ()
        if context is None:
            raise ValueError(f"{self.name} reads a context, [{self._words_of_sizes()}]: give it to ask")
        if traced:
            x = jnp.asarray(context, DTYPE)
        else:
            plain = type(context) is np.ndarray and context.dtype.kind == "f"
            x = np.array(context if plain else numbers("context", context), DTYPE)  # its owner may refill it
            if not np.isfinite(x).all():
                raise ValueError(
                    f"context holds what is not finite, and {self.name} would keep it: leave out that play"
                )
        sizes, axes = x.shape[-len(self._sizes) :], len(self._sizes)
        fits = sizes == self._sizes or (None in self._sizes and len(sizes) == axes)
        if not fits or x.ndim > axes + (not self._single):
            raise ValueError(f"context has shape {x.shape}; {self.name} reads [{self._words_of_sizes()}]")
        return x

    def _words_of_sizes(self) -> str:
        pairs = zip(CONTEXT_SIZES[kind_of_context(self.algorithm)], self._sizes, strict=True)
        return ", ".join(f"{name} {'any' if size is None else size}" for name, size in pairs)

    def _contexts_of_window(self, given: Context, slots: int) -> Context:
        """Contexts of a window [P, ...]."""
        if isinstance(given, tuple):
            return given
        if self._single:
            return given[None]
        if given.ndim > len(self._sizes) and len(given) != slots:
            raise ValueError(f"context has {len(given)} plays; the window of {self.name} has {slots}")
        return np.broadcast_to(given, (slots, *given.shape[-len(self._sizes) :]))


def kind_of_context(algorithm: Algorithm) -> str:
    """What a play shows an algorithm, a key of `CONTEXT_SIZES`, or another word where it reads nothing."""
    kind = what_is_read(algorithm)[0]
    return "row" if kind == "decision set" and algorithm.config.get("models") == "per_arm" else kind


def context_sizes(algorithm: Algorithm) -> tuple[int | None, ...]:
    """The shape of one play's context, None where a size is not known; () where none is read."""
    return tuple(algorithm.config.get(name) for name in CONTEXT_SIZES.get(kind_of_context(algorithm), ()))


@declare(check=False)
def agent(
    algorithm: "Algorithm | AlgorithmFactory | str",
    *,
    seed: int | np.integer[Any] | Integer[Array, ""] = 0,
    state: State | AgentState = None,
    plays: int | None = None,
    **given: Any,
) -> Agent:
    """A learner in a loop of your own: it is asked for an arm and told what that paid.

    Args:
        algorithm (Algorithm, factory or str): Who learns: a built algorithm, a factory or its name.
        seed (int): Of its random numbers, in [0, 2^32). The default: 0. A run of this seed in `simulate` that is shown
            the same contexts and paid the same rewards plays the same arms.
        state (optional): Where to go on from: `run.state` of `simulate`, a lane of `trained` (of `policy.state` the one
            of this seed), or `state` of another agent.
        plays (int, optional): How many plays `state` has behind it, where it was copied and does not know that itself.
        given: What an environment would fill in, as the factory calls it: horizon, num_arms, dim, num_experts,
            num_agents, actions, models. Of a built algorithm a horizon may be shorter, and everything else is checked.

    Returns:
        Agent: `ask(context)` and `tell(reward)`, `state`, `step`, `spent`, `save`.

    Raises:
        ValueError or TypeError: An argument is missing, unknown or wrong, a horizon is longer than the one that the
            algorithm was built for, or a state does not fit.

    Note:
        Everything is compiled when the agent is made, unless a size of its contexts is not among the arguments. It
        computes in float32. Its noise comes from a seed that you know: it protects nobody.

    >>> agent = jb.agent("ucb1", num_arms=2, horizon=100)
    >>> for _ in range(20):
    ...     arm = agent.ask()
    ...     agent.tell(float(arm == 1))
    >>> arm, agent
    (1, agent of ucb1, seed 0: 20 of 100 plays chosen)
    """
    check_flags()
    built = build_algorithm(algorithm, given)
    plain = seed.item() if np.ndim(seed) == 0 and hasattr(seed, "item") else seed
    made = Agent(built, integer("seed", plain, 0, 2**32 - 1), check_horizon(built, given))
    if state is not None:
        go_on_from(made, state, plays)
    elif plays is not None:
        raise ValueError(f"plays = {show(plays)} is about a state: give state, too")
    return made


def build_algorithm(algorithm: "Algorithm | AlgorithmFactory | str", given: dict[str, Any]) -> Algorithm:
    """A built algorithm, or what a factory returns for what is given. It fits an agent, or an error says why not."""
    if isinstance(algorithm, Algorithm):
        fields.check_part(algorithm, Algorithm, None, "algorithm")
        built = algorithm
    else:
        recipe = arguments.factory_of(algorithm, "algorithm", "algorithm")
        if missing := [name for name in recipe.needed if name not in given]:
            remedy = f"jb.agent({recipe.name}, {', '.join(f'{name}=...' for name in missing)})"
            raise TypeError(f"{recipe.name} needs {', '.join(missing)}: {remedy}")
        own = {name: value for name, value in given.items() if name not in recipe.bound}
        built = arguments.call_factory(recipe.bind(own), "algorithm", place=recipe.name)
    name = str(built.version[0] if built.version else "algorithm")
    if "horizon" not in built.config:
        raise ValueError(
            f"{name}: its config holds no horizon: decorate the factory with jaxbandits.validation.factory"
        )
    if built.program.hints.tally:
        raise ValueError(
            f"{name}: shortcut=True draws counts of rewards, and an agent is told single ones: leave it out"
        )
    for key, value in given.items():
        if key not in built.config:
            raise TypeError(f"{name} has no argument {key!r}; it takes {', '.join(built.config.keys() - {'name'})}")
        if key != "horizon" and not same(value, built.config[key]):
            there = show(built.config[key])
            raise ValueError(f"{key} = {show(value)} is not what {name} was built with, {there}: leave it out")
    return built


def check_horizon(built: Algorithm, given: dict[str, Any]) -> int:
    """How many plays an agent makes; ValueError for more than its algorithm was built for."""
    most = built.config["horizon"]
    horizon = integer("horizon", given.get("horizon", most), 1, 2**31 - 2)
    if horizon > most:
        why = "its tuning, memory and privacy are for those"
        remedy = f"build it with horizon={horizon}, or give the factory itself"
        raise ValueError(
            f"horizon = {horizon} is longer than the {most} that {built.version[0]} is for; {why}: {remedy}"
        )
    return horizon


def go_on_from(agent: Agent, state: State | AgentState, plays: int | None) -> None:
    """Put what an agent, a run or a lane has learned into a new agent. ValueError where it does not fit."""
    if not agent._single:
        remedy = "save that agent, jb.load_agent goes on with it"
        raise ValueError(f"state: {agent.name} plays windows, and a state does not say which comes next: {remedy}")
    if isinstance(state, AgentState):
        waits, window = bool(state.waits), Window(int(state.plays), 1, state.context, state.action, state.note)
        behind, learner = int(state.plays), state.learner
        if plays is not None and plays != behind:
            raise ValueError(f"plays = {show(plays)}, and the state says {behind}: leave plays out")
        agent._last = (window.first,), window
        agent._open = {(window.first,): window} if waits else {}
    else:
        known, learner = behind_state(state), state
        if known is None and plays is None:
            remedy = "give plays=, such as the horizon of the run"
            raise ValueError(f"state: a copy does not say how many plays it has behind it: {remedy}")
        behind = known.plays if plays is None and known is not None else integer("plays", plays, 0)
        if known is not None and known.seeds is not None:
            if agent.seed not in known.seeds:
                raise ValueError(f"seed = {agent.seed} is no lane of this state: its seeds are {known.seeds}")
            lane = known.seeds.index(agent.seed)
            learner = jax.tree.map(lambda x: x[lane], state)
    wanted, found = shape_text(agent._learner), shape_text(learner)
    if wanted != found:
        raise ValueError(f"state does not fit {agent.name}, which was built otherwise: {found} in place of {wanted}")
    if behind > agent.horizon:
        raise ValueError(f"state has {behind} plays behind it, more than horizon = {agent.horizon}: give a longer one")
    agent._learner, agent._plays = jax.tree.map(jnp.asarray, learner), behind
    agent._told = behind > len(agent._open)


@declare(check=False)
def load_agent(path: str | os.PathLike[str], *, algorithm: "Algorithm | AlgorithmFactory | str | None" = None) -> Agent:
    """An agent as it was saved: it plays on as if it had never been, bit for bit on the same machine and versions.

    Args:
        path (str or path): What `Agent.save` wrote.
        algorithm (Algorithm, factory or str, optional): Who learned, where the file cannot say: an algorithm of your
            own with all its arguments, or one that was changed after it was built.

    Returns:
        Agent: Plays that waited for rewards still wait.

    Raises:
        ValueError: It is no such file, one of another release, or the algorithm computes something else now.

    Note:
        To read a file runs nobody's code: it holds no pickle.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = jb.agent("ucb1", num_arms=2, horizon=100).save(f"{directory}/agent.npz")
    ...     jb.load_agent(path)
    agent of ucb1, seed 0: 0 of 100 plays chosen
    """
    check_flags()
    path = path_of(path, "load_agent: path")
    about, arrays = agent_file.read(path)
    name = about["name"]
    if algorithm is None and about["algorithm"] is None:
        remedy = "give it, jb.load_agent(path, algorithm=...)"
        raise ValueError(f"{path} holds an agent of {name}, an algorithm of your own or a changed one: {remedy}")
    rebuilt = agent_file.rebuild_algorithm(about["algorithm"], arrays) if algorithm is None else algorithm
    made = Agent(build_algorithm(rebuilt, {}), about["seed"], about["horizon"])
    if made.name != name or made._program_digest() != about["program"]:
        versions = f"the file is from jax {about['jax']}, and this is {jax.__version__}"
        what = versions if about["jax"] != jax.__version__ else "its functions or its numbers are others"
        raise ValueError(f"{path} holds an agent of {name} that computes something else than {made.name} here: {what}")
    leaves = [arrays[f"leaf_{i}"] for i in range(sum(key.startswith("leaf_") for key in arrays))]
    blank = [made._blank_window(slots) for _, _, slots in about["windows"]]
    form = made._learner, [(w.shown, w.action, w.note) for w in blank]
    learner, shown = jax.tree.unflatten(jax.tree.structure(form), leaves)
    windows = [Window(first, used, *x) for (first, used, _), x in zip(about["windows"], shown, strict=True)]
    made._learner = jax.tree.map(jnp.asarray, learner)
    for field in COUNTED:
        setattr(made, field, about[field])
    events = [(w.first,) if event is None else event for event, w in zip(about["open"], windows, strict=False)]
    made._open = dict(zip(events, windows, strict=False))
    if about["last"] is not None:
        window = windows[about["last"]]
        made._last = next((key for key, w in made._open.items() if w is window), (window.first,)), window
    return made
