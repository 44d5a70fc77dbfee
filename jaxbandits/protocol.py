"""Who sees what: the contract of every algorithm, environment and adversary. Imports nothing of the package.

    environment --context--> act --action--> environment --reward--> reward adversary
      --> encode --message--> message adversary --> relay --> update
    recorder: sees the truth, folds it into O(1) memory, is never seen by the learner

Axes: [P] plays offered by a window, [A] arms, [d] features, [N] agents, [C] checkpoints, [K] arms of an instance.
Every function below is written for one lane (one seed, one parameter point); `vmap` is applied outside.
`t` is the 1-based play index, int32. `draws` are addressed random streams (`jaxbandits.random.Draws`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple


def _relay(params, draws, t, message, play):
    return message


def _close(params, state, draws, t):
    return state


def _diagnose(params, state):
    return {}


def _no_view(message, released, action):
    return ()


def _spend_infinite(params):
    return (float("inf"), 0.0)


def _no_events(params):
    return ()


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


class Program(NamedTuple):
    """An algorithm's functions. Made only by a `functools.cache`d builder of hashable static values: equality is identity."""

    init: Callable  # params, draws -> state
    act: Callable  # params, state, draws, t[P], context -> action[P | P,N | 1], used (None = all, else a prefix length), note
    encode: (
        Callable  # params, note, draws, t[P], context, action, reward, play[P] -> message     client; never sees state
    )
    update: Callable  # params, state, draws, t_last, note, message, used -> state, released       server
    relay: Callable = _relay  # params, draws, t_last, message, play -> message                     trusted third party
    close: Callable = _close  # params, state, draws, t_last -> state                               span end, all lanes
    diagnose: Callable = (
        _diagnose  # params, state -> {name: number}                               read once, at the horizon
    )
    # params, state -> the arm played to the horizon whatever comes, int32, or -1 while it is still open, or -2 where nothing is
    # played any more before the span is closed. Where regret follows from pull counts the former's plays are counted, not
    # made (`act` plays that arm wherever they have to be), and no window is offered to lanes that only wait.
    rest: Callable | None = None
    one_arm: bool = False  # every window plays one arm: `act` returns action[1], and is spared a look at each play
    # (with one_arm) rewards come as the values [V] that `World.law` names, `play` as how often each was paid, int32 [V]
    tally: bool = False
    kept: tuple = ()  # fields of the state that windows only write into and `close` reads: they need not fit a cache


class Guarantee(NamedTuple):
    """What an algorithm claims about privacy. `unit` is the pair of inputs the claim is about."""

    model: str = "none"  # "local" | "central" | "shuffle" | "federated" | "none"
    unit: str = "reward"  # "loss_vector" | "reward" | "user" | "message"
    spend: Callable = _spend_infinite  # params -> (epsilon, delta) truly spent
    view: Callable = _no_view  # message, released, action -> what the theorem covers
    scales: tuple = ()  # leaves of params that scale privacy noise
    bound: float = float("inf")  # spend holds for rewards in [-bound, bound]; inf: whatever the rewards are
    # params -> (Event, ...): the releases that one unit enters, which `spend` composes (`mechanisms.guarantee` does that)
    events: Callable = _no_events


class Rewards(NamedTuple):
    """The rewards that an algorithm's theory is about, and what it does with others. By default any reward."""

    low: float = float("-inf")
    high: float = float("inf")
    # "clip": counts as the nearer end; "zero": counts as 0; "accept": taken as it is, though the theory does not hold then.
    # About finite rewards: every algorithm has a rule of its own for those that are not
    outside: str = "accept"


class Algorithm(NamedTuple):
    """One algorithm with its numbers: what an algorithm factory returns."""

    program: Program
    schedule: tuple[Span, ...]
    params: Any  # NamedTuple of numbers and arrays; never strings or None
    guarantee: Guarantee
    version: tuple  # (name, number, static values): raise the number when results change; never used for equality
    config: dict  # the arguments as given: repr, provenance, grid
    rewards: Rewards | None = None  # those that it reads; None: not declared, and nothing is held against them


class Score(NamedTuple):
    """What the recorder keeps of a window. `regret` None: regret follows exactly from the pull counts and the means."""

    arm: Any = None  # [P] int32 in [0, World.num_arms): pulls to count, where arms are finite
    regret: Any = None  # float [P] | [P, N]: regret, or loss where `World.baseline` is subtracted


class World(NamedTuple):
    """An environment's functions, cached like Program."""

    init: Callable  # params, draws -> state                               what is fixed for a trial
    observe: Callable  # params, state, draws, t[P] -> context, state
    reward: Callable  # params, state, draws, t[P], context, action -> reward[P | P,N]
    score: Callable  # params, state, t[P], context, action -> Score
    truth: Callable  # params, state, t[P], context -> Truth: for adversaries only
    num_arms: int = 0  # how many arms are counted
    baseline: Callable | None = (
        None  # params, seed, times[C] -> [C] float64, host: best fixed arm's loss over plays 1..t
    )
    seeded: bool = False  # the baseline depends on the seed
    law: Callable | None = (
        None  # params, state -> values [V], probabilities [K, V] of every arm's reward, where they are few
    )


class Truth(NamedTuple):
    """What an omniscient adversary may read of the environment; None where there is no such thing."""

    means: Any = None  # [A] | [P, A] | [P, N, A]
    theta: Any = None  # [d]


class Environment(NamedTuple):
    """What an environment factory returns."""

    world: World
    params: Any
    # num_arms, dim, num_agents, num_experts, actions: what `sweep` fills in; means [K] for exact regret; reward_range (low, high)
    facts: dict
    remake: Callable | None  # the factory as a partial: grid keys `environment.x` call it again
    config: dict
    version: int = 1  # raise it when results change


class AdversaryView(NamedTuple):
    """An omniscient adversary's eyes."""

    t: Any
    context: Any
    action: Any
    play: Any
    truth: Truth
    params: Any
    state: Any
    note: Any
    sample: Callable  # action -> reward drawn on the contamination stream


class Attack(NamedTuple):
    """An adversary's functions, cached like Program. `hit` masks robust regret: [N] | [P, N] | False."""

    init: Callable  # params, draws -> state
    corrupt: Callable  # params, state, draws, t, payload, seen -> payload, hit, state
    law: Callable | None = None  # params, values [V], probabilities [K, V], truth -> the same of corrupted rewards


class Adversary(NamedTuple):
    """What an adversary factory returns."""

    attack: Attack
    params: Any
    remake: Callable | None
    config: dict
    version: int = 1


class Case(NamedTuple):
    """Everything that may carry a parameter axis."""

    environment: Any
    reward_adversary: Any
    message_adversary: Any
    algorithm: Any


class Report(NamedTuple):
    """A message of one report a play. Attacks on reports rely on these names."""

    value: Any  # [P]
    arm: Any  # [P]
    present: Any  # [P] bool


class Moments(NamedTuple):
    """A federated message: sums over a window. Attacks on messages rely on these names."""

    gram: Any  # [N, d, d]
    vector: Any  # [N, d]


class Loss(NamedTuple):
    """A window's summed loss."""

    total: Any  # []
