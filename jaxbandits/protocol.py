"""Who sees what: the contract of every algorithm, environment and adversary. It imports nothing of the package.

::

    environment --context--> act --action--> environment --reward--> reward adversary (here a reward may be corrupted)
      --> encode --message--> message adversary (here a message may be corrupted) --> relay --> update
    recorder: sees the truth, folds it into O(1) memory, is never seen by the learner

`reward_adversary=` and `message_adversary=` of a run fill these two places: `jaxbandits.adversaries.huber` either,
`poison` and `budgeted` the first, `byzantine` the second.

Axes: [P] plays offered by a window, [A] arms, [d] features, [N] agents, [C] checkpoints, [K] arms of an instance,
[V] values.
Every function below is written for one lane (one seed, one parameter point); `vmap` is applied outside.
`t` is the 1-based play index, int32. `draws` are addressed random streams (`jaxbandits.random.Draws`).
"""

import functools
import html
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from jaxtyping import Array, Bool, Float, Int

if TYPE_CHECKING:
    from jaxbandits.random import Draws

# `mechanism_scale` of params multiplies all privacy noise
Params: TypeAlias = Any  # a NamedTuple of numbers and arrays; never strings or None
State: TypeAlias = Any  # what a part keeps from window to window: a tree of arrays
Message: TypeAlias = Any  # what a client sends: a tree of arrays
Note: TypeAlias = Any  # what `act` broadcasts to `encode` and `update` of the same window
Context: TypeAlias = Any  # what the environment shows before a play

MAX_BRIEF = 60  # characters of a list in a repr


# ---- the seven functions of an algorithm


class Init(Protocol):
    """The state before the first play."""

    def __call__(self, params: Params, draws: "Draws", /) -> State: ...


class Act(Protocol):
    """The arms of a window, chosen under one frozen policy.

    Returns `action` int32 [P] (or [P, N] for agents, or [1] where `Hints.one_arm` says that the window plays one arm),
    `used`, how many of the offered plays are used (None: all; else the length of a prefix), and a `note` for `encode`
    and `update`.
    """

    def __call__(
        self, params: Params, state: State, draws: "Draws", t: Int[Array, " P"], context: Context, /
    ) -> tuple[Int[Array, "P ..."], int | Int[Array, ""] | None, Note]: ...


class Encode(Protocol):
    """What the clients send of their rewards. Local noise is drawn here; the state is never seen here."""

    def __call__(
        self, params: Params, note: Note, draws: "Draws", t: Int[Array, " P"], context: Context,
        action: Int[Array, "P ..."], reward: Float[Array, "P ..."], play: Bool[Array, " P"], /,
    ) -> Message: ...  # fmt: skip


class Update(Protocol):
    """The server's new state, and what it releases (the audit reads that). Central noise is drawn here."""

    def __call__(
        self, params: Params, state: State, draws: "Draws", t_last: Int[Array, ""], note: Note, message: Message,
        used: int | Int[Array, ""], /,
    ) -> tuple[State, Any]: ...  # fmt: skip


class Relay(Protocol):
    """What a trusted third party, such as a shuffler, makes of the messages of a window."""

    def __call__(
        self, params: Params, draws: "Draws", t_last: Int[Array, ""], message: Message, play: Bool[Array, " P"], /
    ) -> Message: ...


class Close(Protocol):
    """The state after a span that has `close` set: costly work, done for all lanes at once."""

    def __call__(self, params: Params, state: State, draws: "Draws", t_last: Int[Array, ""], /) -> State: ...


class Diagnose(Protocol):
    """Numbers of the state at the horizon, by name: they become variables of the result."""

    def __call__(self, params: Params, state: State, /) -> Mapping[str, Any]: ...


class Rest(Protocol):
    """A hint: the arm that is played to the horizon whatever comes, or UNDECIDED, or SPAN_DONE."""

    def __call__(self, params: Params, state: State, /) -> Int[Array, ""]: ...


class View(Protocol):
    """Of what a window sends, releases and plays: what the theorem of a guarantee covers."""

    def __call__(self, message: Message, released: Any, action: Any, /) -> Any: ...
    def __hash__(self) -> int: ...


def _no_diagnostics(params: Params, state: State) -> Mapping[str, Any]:
    return {}


# ---- built parts to other processes


def _reduce(part: Any) -> tuple[Any, ...]:
    """Of a built part, for pickle: its factory and the arguments it was called with, since functions have no names."""
    rebuild_of: Any = getattr(part.config, "rebuild_of", None)
    if rebuild_of is None:  # built by no factory: its fields one by one
        return type(part), tuple(part)
    if (again := rebuild_of(part)) is None:
        why = f"{part.config['name']} cannot be pickled, it was changed by _replace after its factory built it"
        raise TypeError(f"{why}: send the factory and its arguments, and change it there")
    return again, ()


# ---- algorithms


class Span(NamedTuple):
    """A run of equal windows. Host data: `slots` and the flags are static, the numbers are traced.

    A *full* span plays what the schedule says: `repeats` batches of `length` plays (0: `slots`), each cut into
    windows of `slots` plays, the last one shorter. Its play indices come from the loop index, so draws that depend
    on the seed alone stay shared between parameter points. Otherwise `act` says how many plays a window uses.
    """

    slots: int  # P, static
    repeats: int  # full: batches; otherwise windows offered
    full: bool = True
    whole: bool = False  # the client aggregates over this window: a checkpoint must not cut it
    close: bool = False  # run Program.close after the span
    length: int = 0  # full spans: plays of a batch

    @property
    def kind(self) -> tuple[int, bool, bool]:
        """What code that plays its windows is compiled for."""
        return self.slots, self.full, self.whole


# What `Hints.rest` says instead of an arm:
UNDECIDED = -1  # the arms of the coming plays are still open
SPAN_DONE = -2  # the lane plays nothing more before the span is closed


class Hints(NamedTuple):
    """What a program may say about itself so that it runs faster. Leaving all of it out changes no law."""

    # Where regret follows from pull counts, the plays of a decided lane are counted and not made (`act` plays that arm
    # wherever they have to be made), and lanes that only wait are offered no window.
    rest: Rest | None = None
    # Every window plays one arm: `act` returns action [1], and is spared a look at each play.
    one_arm: bool = False
    # With one_arm: rewards come as the values [V] that `World.law` names, `play` as how often each was paid, int32 [V].
    tally: bool = False
    # Names of large fields of the state of which a window touches little, such as stored reports that it only writes
    # into and `close` reads: they need not fit a cache.
    kept: tuple[str, ...] = ()


class Program(NamedTuple):
    """An algorithm's seven functions.

    Made only by a builder of hashable static values under `functools.cache`: equality is identity.
    """

    init: Init
    act: Act
    encode: Encode  # at the client
    update: Update  # at the server
    relay: Relay = lambda params, draws, t_last, message, play: message  # at a trusted third party
    close: Close = lambda params, state, draws, t_last: state  # at the end of a span, for all lanes
    diagnose: Diagnose = _no_diagnostics  # once, at the horizon
    hints: Hints = Hints()
    # Whether its state runs in lockstep with plays, so that a message which comes late would break it silently: `act`
    # reads a choice that `update` made ready, the note carries state, or `update` reads more than its own message's t.
    # `delayed` refuses such a base.
    lockstep: bool = False
    # So many plays its float32 sums can hold: what later ones add is rounded away. A longer run in float32 warns.
    # None: as many as there are (docs/determinism.md)
    float32_plays: int | None = None


Model: TypeAlias = Literal["none", "local", "central", "shuffle", "federated"]
Unit: TypeAlias = Literal["loss_vector", "reward", "user", "message"]


class Guarantee(NamedTuple):
    """What an algorithm claims about privacy. `unit` is the pair of inputs the claim is about."""

    model: Model = "none"
    unit: Unit = "reward"
    # params -> (epsilon, delta) truly spent
    spend: Callable[[Params], tuple[float, float]] = lambda params: (float("inf"), 0.0)
    view: View = lambda message, released, action: ()
    scales: tuple[str, ...] = ()  # leaves of params that scale privacy noise
    bound: float = float("inf")  # spend holds for rewards in [-bound, bound]; inf: whatever the rewards are
    # params -> the releases that one unit enters, which `spend` composes (`mechanisms.guarantee` does that)
    events: Callable[[Params], tuple[Any, ...]] = lambda params: ()
    # the epsilon asked for, where the factory has no argument `epsilon` of its own: that of the algorithm it wraps
    claimed: float | None = None
    # the algorithm -> the size of its privacy noise at the horizon, as a share of the information gathered by then.
    # Above one half a run warns that noise swamps the data
    noise_share: Callable[["Algorithm"], float] = lambda algorithm: 0.0


class Rewards(NamedTuple):
    """The rewards that an algorithm's theory is about, and what it does with others. By default any reward."""

    low: float = float("-inf")
    high: float = float("inf")
    # "clip": counts as the nearer end; "zero": counts as 0; "accept": taken as it is, though the theory does not hold.
    # About finite rewards: every algorithm has a rule of its own for those that are not
    outside: Literal["clip", "zero", "accept"] = "accept"


class Tails(NamedTuple):
    """What an algorithm's theory assumes of the tails of rewards X: a bound on a moment of every arm."""

    order: Any
    bound: Any  # of E|X|^order, or of what `of` says in place of X
    of: Literal["X", "X - mean", "1 - X"] = "X"
    mean_bound: Any = None  # the largest absolute mean; None: no bound on it is assumed
    declared_by: tuple[str, str] = ("moment_bound", "moment_order")  # the arguments to change where it does not hold


class Algorithm(NamedTuple):
    """One algorithm with its numbers: what an algorithm factory returns."""

    program: Program
    schedule: tuple[Span, ...]
    params: Params
    guarantee: Guarantee = Guarantee()
    # (name, number, static values) of one's own algorithm: raise the number when results change in a way that no trace
    # shows; never used for equality. `validation.factory` fills it in
    version: tuple[Any, ...] = ()
    config: dict[str, Any] = {}  # noqa: RUF012 (never written into). The arguments as given: repr, provenance, grid
    rewards: Rewards | None = None  # those that it reads; None: not declared, and nothing is held against them
    # "arms", "row", "decision set", "fixed set", "advice" or "agents"; None: what its arguments' names say
    plays_on: str | None = None
    tails: Tails | None = None  # those that it assumes; None: not declared, and nothing is held against them

    def __reduce__(self) -> tuple[Any, ...]:
        return _reduce(self)

    def __copy__(self) -> "Algorithm":
        return self  # nothing in it is written into

    def __deepcopy__(self, memo: Any) -> "Algorithm":
        return self

    def __repr__(self) -> str:
        """The call that built it, its numbers, and what it claims and spends, a line each."""
        return _as_text(*self._call_and_facts())

    def _repr_html_(self) -> str:
        return _as_html(*self._call_and_facts())

    def _call_and_facts(self) -> tuple[str, dict[str, str]]:
        """The call that built it, and what there is to say under titles: nothing where a text is empty."""
        import jax

        call = _call(self.config, self.version[0] if self.version else "algorithm")
        leaves = jax.tree_util.tree_flatten_with_path(self.params)[0]
        named = {jax.tree_util.keystr(path, simple=True, separator="."): x for path, x in leaves}
        facts = {"params": ", ".join(f"{key}={_brief(x)}" for key, x in named.items()), "privacy": "none"}
        claim, reads = self.guarantee, self.rewards
        if claim.model != "none":
            facts["privacy"] = f"{claim.model} model, neighbours differ in one {claim.unit.replace('_', ' ')}"
            try:
                epsilon, delta = map(float, claim.spend(self.params))
                facts["spends"] = f"epsilon = {epsilon:.6g}, delta = {delta:.3g}"
            except Exception:  # a repr never fails
                facts["spends"] = "what its params say, which are traced or have an axis"
        if reads is not None:
            fate = {"clip": "are clipped", "zero": "count as 0", "accept": "are taken as they are"}[reads.outside]
            bounded = (reads.low, reads.high) != (float("-inf"), float("inf"))
            facts["rewards"] = f"in [{reads.low:g}, {reads.high:g}], others {fate}" if bounded else "any"
        return call, facts


def _call(config: Mapping[str, Any], name: str) -> str:
    """The call that built a part; name: of one that no factory built."""
    given = {key: value for key, value in config.items() if key != "name" and value is not None}
    return f"{config.get('name') or name}({', '.join(f'{key}={_brief(value)}' for key, value in given.items())})"


def _as_text(call: str, facts: Mapping[str, str]) -> str:
    width = max([8, *map(len, facts)])
    return "\n".join([call, *(f"  {title:{width}} {text}" for title, text in facts.items() if text)])


def _as_html(call: str, facts: Mapping[str, str]) -> str:
    shown = {title: html.escape(text) for title, text in facts.items() if text}
    rows = "".join(f"<tr><th>{title}</th><td>{text}</td></tr>" for title, text in shown.items())
    return f"<code>{html.escape(call)}</code><table>{rows}</table>"


def _brief(value: Any) -> str:
    """A value in a few characters: a function by its name, an array by its shape."""
    if isinstance(value, functools.partial):
        return f"partial({', '.join([_brief(value.func), *(f'{k}={_brief(v)}' for k, v in value.keywords.items())])})"
    if getattr(value, "shape", ()) != ():
        return f"[{' '.join(map(str, value.shape))}]"
    if isinstance(value, bool | int | str):
        return repr(value)
    if hasattr(value, "_fields") and "__str__" in vars(type(value)):
        return str(value)
    if type(value) in (list, tuple) and len(text := repr(value)) <= MAX_BRIEF:
        return text
    try:
        return f"{float(value):.6g}"
    except Exception:  # traced, or no number
        return getattr(value, "__name__", None) or type(value).__name__


# ---- environments


class Score(NamedTuple):
    """What the recorder keeps of a window. `regret` None: regret follows exactly from the pull counts and the means."""

    arm: Array | None = None  # int32 [P] in [0, World.num_arms): pulls to count, where arms are finite
    regret: Array | None = None  # float [P] | [P, N]: regret, or loss where `World.baseline` is subtracted


class Truth(NamedTuple):
    """What an omniscient adversary may read of the environment; None where there is no such thing."""

    means: Any = None  # [A] | [P, A] | [P, N, A]
    theta: Array | None = None  # [d]


class WorldInit(Protocol):
    """What is fixed for a trial."""

    def __call__(self, params: Params, draws: "Draws", /) -> State: ...


class Observe(Protocol):
    """The contexts of the plays `t`, and the new state."""

    def __call__(
        self, params: Params, state: State, draws: "Draws", t: Int[Array, " P"], /
    ) -> tuple[Context, State]: ...


class Reward(Protocol):
    """The rewards [P] (or [P, N]) of the actions. Draws do not depend on the action: every arm's reward is defined."""

    def __call__(
        self, params: Params, state: State, draws: "Draws", t: Int[Array, " P"], context: Context,
        action: Int[Array, "P ..."], /,
    ) -> Float[Array, "P ..."]: ...  # fmt: skip


class Scores(Protocol):
    """What the actions of a window count for."""

    def __call__(
        self, params: Params, state: State, t: Int[Array, " P"], context: Context, action: Int[Array, "P ..."], /
    ) -> Score: ...


class Truths(Protocol):
    """The truth, for adversaries only."""

    def __call__(self, params: Params, state: State, t: Int[Array, " P"], context: Context, /) -> Truth: ...


class World(NamedTuple):
    """An environment's functions, cached like Program."""

    init: WorldInit
    observe: Observe
    reward: Reward
    score: Scores
    truth: Truths
    num_arms: int = 0  # how many arms are counted
    # params, seed, times [C] -> float64 [C], on the host: the loss over plays 1..t of the arm that is best over them
    baseline: Callable[..., Any] | None = None
    seeded: bool = False  # the baseline depends on the seed
    # params, state -> values [V], probabilities [K, V] of every arm's reward, where they are few
    law: Callable[[Params, State], tuple[Array, Array]] | None = None


class Environment(NamedTuple):
    """What an environment factory returns."""

    world: World
    params: Params
    # num_arms, dim, num_agents, num_experts, actions: what `sweep` fills in; means [K] for exact regret; reward_range
    # (low, high); num_rows of data that are played again and again; shows: "nothing", "row" [P, d], "decision set"
    # [P, K, d], "fixed set" (one that never changes, which `actions` holds), "advice" or "agents"; without it by
    # num_agents, num_experts, actions, dim (a decision set)
    facts: dict[str, Any]
    # the factory as a partial: grid keys `environment.x` call it again. `validation.factory` fills in both
    remake: Callable[..., "Environment"] | None = None
    config: dict[str, Any] = {}  # noqa: RUF012
    version: int = 1  # a user raises it when results change and no trace of a lane shows it

    def __reduce__(self) -> tuple[Any, ...]:
        return _reduce(self)

    def __copy__(self) -> "Environment":
        return self  # nothing in it is written into

    def __deepcopy__(self, memo: Any) -> "Environment":
        return self

    def __repr__(self) -> str:
        """The call that built it, and its facts, a line each."""
        return _as_text(*self._call_and_facts())

    def _repr_html_(self) -> str:
        return _as_html(*self._call_and_facts())

    def _call_and_facts(self) -> tuple[str, dict[str, str]]:
        shown = {key: value for key, value in self.facts.items() if not callable(value)}
        facts = {key: value if isinstance(value, str) else _brief(value) for key, value in shown.items()}
        return _call(self.config, "environment"), facts


# ---- adversaries


class AdversaryView(NamedTuple):
    """What an omniscient adversary sees."""

    t: Array
    context: Any
    action: Array
    play: Array
    truth: Truth
    params: Any
    state: Any
    note: Any
    sample: Callable[[Any], Any]  # action -> reward drawn on the contamination stream
    # draws, rewards [P] -> what honest clients would send of these rewards; None where rewards are attacked
    encode: Callable[[Any, Any], Any] | None = None


class AttackInit(Protocol):
    """The attack's state before the first play."""

    def __call__(self, params: Params, draws: "Draws", /) -> State: ...


class Corrupt(Protocol):
    """The payload after the attack, whom it hit (a mask of robust regret: [N] | [P, N] | False), and the new state."""

    def __call__(
        self, params: Params, state: State, draws: "Draws", t: Int[Array, " P"], payload: Any, view: AdversaryView, /
    ) -> tuple[Any, Any, State]: ...


class PerArm(Protocol):
    """The state of an attack that keeps something of each arm; it follows `init`."""

    def __call__(self, state: State, arms: int, /) -> State: ...


class Attack(NamedTuple):
    """An adversary's functions, cached like Program."""

    init: AttackInit
    corrupt: Corrupt
    # params, values [V], probabilities [K, V], truth -> values and probabilities of corrupted rewards
    law: Callable[[Params, Array, Array, Truth], tuple[Array, Array]] | None = None
    # once, at the horizon. Where an attack has it, plays that an algorithm has decided are made and not only counted
    diagnose: Diagnose = _no_diagnostics
    per_arm: PerArm | None = None


class Adversary(NamedTuple):
    """What an adversary factory returns."""

    attack: Attack
    params: Params
    remake: Callable[..., "Adversary"] | None = None
    config: dict[str, Any] = {}  # noqa: RUF012
    version: int = 1
    # params, and the least and the largest reward that it is given -> those that it sends, as `reward_adversary`; None:
    # not stated, and what is claimed of bounded rewards may not hold
    reward_range: Callable[[Params, float, float], tuple[float, float]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _reduce(self)

    def __copy__(self) -> "Adversary":
        return self  # nothing in it is written into

    def __deepcopy__(self, memo: Any) -> "Adversary":
        return self


# ---- a lane, and messages


class Case(NamedTuple):
    """The params of the parts that meet in a lane: everything that may carry a parameter axis."""

    environment: Params
    reward_adversary: Params
    message_adversary: Params
    algorithm: Params


class Report(NamedTuple):
    """A message of one report a play. Attacks on reports rely on these names."""

    value: Array  # [P]
    arm: Array  # [P]
    present: Array  # [P] bool


class Moments(NamedTuple):
    """A federated message: sums over a window. Attacks on messages rely on these names."""

    gram: Array  # [N, d, d]
    vector: Array  # [N, d]


class Loss(NamedTuple):
    """A window's summed loss."""

    total: Array  # []


# ---- names of 0.1


def __getattr__(name: str) -> object:
    if name == "Seen":
        raise ImportError("jaxbandits.protocol.Seen is called AdversaryView since 0.2.0")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
