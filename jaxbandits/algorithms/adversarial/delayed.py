"""Feedback that comes late, or never: any algorithm of one play a window, its messages delayed on their way."""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.adversarial import message_ring
from jaxbandits.algorithms.adversarial.delay_laws import Fixed, check_law, delay_of
from jaxbandits.declared import LATER, STATIC, Base, BaseModels, Example, Ge, Horizon, NumArms, Remedy
from jaxbandits.mechanisms.composition import claimed_epsilon, scale_mechanism, sums_anew
from jaxbandits.protocol import Algorithm, Guarantee, Hints, Program, Span
from jaxbandits.random import Draws
from jaxbandits.typing import Array, Int, Numeric, Scalar, UInt32
from jaxbandits.validation import base_algorithm, base_arguments, factory

ForBase = Annotated[int, STATIC, LATER] | None  # an argument that the base checks, if it has it
Shape = tuple[int, ...] | None  # of a play's context


class Params(NamedTuple):
    """The base's numbers, and those of the delay."""

    base: Any
    law: Any  # the law of the delay, of `delay_laws`
    mechanism_scale: Numeric


class Counts(NamedTuple):
    """Of the plays so far, those whose message is lost, and those whose message is neither used nor lost."""

    lost: Int[Array, ""]
    outstanding: Int[Array, ""]


class State(NamedTuple):
    """The base's state, and what is on its way to it."""

    base: Any
    ring: UInt32[Array, "R W"]  # messages and notes of the last plays, packed into words
    circles: Any  # `message_ring.Circles`, which of them are due when; () for a fixed delay, of which that is known
    counts: Any  # Counts; () for a fixed delay


@cache
def program(base: Program, law: type, slots: int, context: Shape) -> Program:
    """The base's functions, its updates delayed.

    law: a class of `delay_laws`; slots: of the ring; context: the shape of a play's context, None where there is none.
    """
    fixed = law is Fixed

    def base_params(params):
        return scale_mechanism(params.base, params.mechanism_scale)

    def comes(params, delay):
        return delay <= jnp.asarray(params.law.most).astype(jnp.int32)

    def init(params, draws):
        state = base.init(base_params(params), draws)
        sent = jax.eval_shape(lambda: _sample_message(base, base_params(params), state, draws, context))
        zero = jnp.int32(0)
        circles, counts = ((), ()) if fixed else (message_ring.no_circles(slots), Counts(zero, zero))
        return State(state, message_ring.empty_ring(sent, slots), circles, counts)

    def act(params, state, draws, t, context):
        return base.act(base_params(params), state.base, draws, t, context)

    def encode(params, note, draws, t, context, action, reward, play):
        return base.encode(base_params(params), note, draws, t, context, action, reward, play)

    def relay(params, draws, t, message, play):
        return base.relay(base_params(params), draws, t, message, play)

    def one_arrives(params, state, ring, draws, t, delay, sent):
        """A fixed delay: at the end of play t comes the message of play t - delay, if there is one."""
        play, arriving = t - delay, comes(params, delay)
        message, note = message_ring.read_message(ring, message_ring.slot_of(jnp.maximum(play, 0), slots), sent)

        def update_base():
            return base.update(base_params(params), state.base, draws, jnp.maximum(play, 1), note, message, 1)

        nothing = jax.tree.map(_nothing, jax.eval_shape(update_base)[1])
        # one delay for all lanes, which is what a run has: nothing is chosen lane by lane
        after, released = lax.cond((play >= 1) & arriving, update_base, lambda: (state.base, nothing))
        outstanding = jnp.where(arriving, jnp.minimum(delay, t), 0)
        return after, (), (), outstanding, jax.tree.map(lambda x: x[None], released)

    def all_arrive(params, state, ring, draws, t, delay, sent):
        """Any delays: at the end of play t its arrivals are used one after another, in the order of their plays."""
        arriving = comes(params, delay)
        due = t + jnp.minimum(delay, slots - 1)
        circles = message_ring.link_message(state.circles, t, due, arriving & (delay < slots), slots)
        circles, first, latest = message_ring.arrivals(circles, t, slots)

        def update_from_slot(before, slot):
            message, note = message_ring.read_message(ring, slot, sent)
            play = message_ring.play_of(slot, t, slots)
            return base.update(base_params(params), before, draws, play, note, message, 1)

        def next_one(carry):
            before, slot, used, released = carry
            after, shown = update_from_slot(before, slot)
            released = jax.tree.map(lambda x, y: x.at[used].set(y), released, shown)
            return after, jnp.where(slot == latest, message_ring.NONE, circles.following[slot]), used + 1, released

        kinds = jax.eval_shape(update_from_slot, state.base, first)[1]
        released = jax.tree.map(lambda x: jnp.broadcast_to(_nothing(x), (slots, *x.shape)), kinds)
        start = (state.base, first, jnp.int32(0), released)
        after, _, used, released = lax.while_loop(lambda carry: carry[1] != message_ring.NONE, next_one, start)
        lost = 1 - arriving.astype(jnp.int32)
        counts = Counts(state.counts.lost + lost, state.counts.outstanding + 1 - lost - used)
        return after, circles, counts, counts.outstanding, released

    def update(params, state, draws, t, note, message, used):
        delay, sent = delay_of(params.law, draws, t), (message, note)
        ring = message_ring.write_message(state.ring, message_ring.slot_of(t, slots), sent)
        arrive = one_arrives if fixed else all_arrive
        after, circles, counts, outstanding, released = arrive(params, state, ring, draws, t, delay, sent)
        return State(tell_outstanding(after, state.base, outstanding), ring, circles, counts), released

    def diagnose(params, state):
        if fixed:
            delay, horizon = (jnp.asarray(x).astype(jnp.int32) for x in (params.law.delay, params.law.horizon))
            lost = jnp.where(comes(params, delay), 0, horizon)
            counts = Counts(lost, jnp.minimum(delay, horizon - lost))
        else:
            counts = state.counts
        return {**base.diagnose(base_params(params), state.base), **counts._asdict()}

    default = Program._field_defaults["relay"]  # kept where it is the base's: it says that nobody relays
    own = default if base.relay is default else relay
    hints, plays = Hints(kept=("ring", "circles")), base.float32_plays
    # in lockstep: delays are counted in plays
    return Program(init, act, encode, update, own, diagnose=diagnose, hints=hints, lockstep=True, float32_plays=plays)


def tell_outstanding(after: Any, before: Any, outstanding: Int[Array, ""]) -> Any:
    """A base's state, told before the next play how many messages are outstanding, if it wants to know."""
    fields = getattr(after, "_fields", ())
    if "outstanding" in fields:
        after = after._replace(outstanding=outstanding.astype(before.outstanding.dtype))
    if "outstanding_sum" in fields:
        total = before.outstanding_sum + outstanding.astype(before.outstanding_sum.dtype)
        after = after._replace(outstanding_sum=total)
    return after


def _nothing(x: Any) -> Any:
    """What stands for a release that was not made."""
    return jnp.full(x.shape, jnp.nan if jnp.issubdtype(x.dtype, jnp.inexact) else 0, x.dtype)


def _sample_message(base: Program, params: Any, state: Any, draws: Draws, shape: Shape) -> tuple[Any, Any]:
    """A message and a note of the base, for their shapes and types."""
    t, play = jnp.ones(1, jnp.int32), jnp.ones(1, bool)
    context = () if shape is None else jnp.zeros((1, *shape), draws.dtype)
    action, _, note = base.act(params, state, draws, t, context)
    reward = jnp.zeros(action.shape, draws.dtype)
    message = base.encode(params, note, draws, t, context, action, reward, play)
    return base.relay(params, draws, t[0], message, play), note


def build_base(base: Callable[..., Any], arguments: dict[str, Any]) -> tuple[Algorithm, Shape]:
    """A base, called with what it names of the arguments that are not None, and the shape of a play's context.

    ValueError where delays would break the base.
    """
    known, bound = base_arguments(base)
    given = {k: v for k, v in arguments.items() if k in known and v is not None}
    algorithm = base_algorithm(base, **{k: v for k, v in given.items() if k not in bound})
    name = algorithm.version[0]
    if algorithm.program.lockstep:
        raise ValueError(
            f"base = {name} runs in lockstep with plays: feedback that comes late would break it silently. Use another "
            "base, such as ucb1, tsallis_inf, exp3, linucb with contexts='redraw' or gradient_bandit with "
            "baseline=False"
        )
    if algorithm.schedule != (Span(1, arguments["horizon"]),):
        raise ValueError(
            f"base = {name} plays windows or spans of its own; only a base of one play a window takes feedback that "
            "comes late: for instance ucb1, tsallis_inf or linucb"
        )
    given |= bound
    if "num_experts" in given:
        return algorithm, (given["num_experts"], given["num_arms"])
    if arguments["models"] == "per_arm" and "dim" in given:
        return algorithm, (given["dim"],)  # a row
    return algorithm, ((given["num_arms"], given["dim"]) if "dim" in given else None)


def guarantee_from_params(base: Guarantee) -> Guarantee:
    """The base's guarantee, read from the conversion's params: a message enters one update, late or never."""
    if base.model == "none":
        return base
    return base._replace(
        spend=lambda params: base.spend(scale_mechanism(params.base, params.mechanism_scale)),
        events=lambda params: sums_anew(base.events(scale_mechanism(params.base, params.mechanism_scale))),
        scales=("mechanism_scale",) if base.scales else (),
    )


@factory(
    example=Example({"base": "tsallis_inf", "delay": ("uniform", 0, 6), "max_delay": 5}, "losses"),
    source="""Joulani, György and Szepesvári 2013; Zimmert and Seldin 2020;
        docs/formulas/robust_frontier.md#robust-frontier-delay""",
)
def delayed(
    *,
    horizon: Horizon,
    base: Base,
    delay: Annotated[Any, STATIC] = 0,
    max_delay: Annotated[int, Ge(0), STATIC, Remedy("None loses nothing")] | None = None,
    num_arms: NumArms | None = None,
    dim: ForBase = None,
    num_experts: ForBase = None,
    num_agents: ForBase = None,
    actions: Any = None,
    feature_norm: Scalar | None = None,
    models: BaseModels = None,
) -> Algorithm:
    """Feedback that comes late, or never: any algorithm of one play a window learns from it when it arrives.

    The message of play t reaches the base at the end of play t + d_t, before play t + d_t + 1 is chosen; d_t = 0 is no
    delay. Messages that arrive at once are used in the order of their plays. Clients send at once, so that
    what they draw, what a message adversary does and what is relayed belong to play t; the base's update is told t, the
    note and the message of that play.

    Args:
        base (factory or functools.partial of one): The algorithm that learns. It must play one play a window, and its
            state must not run in lockstep with plays (`protocol.Program.lockstep`). It is called with those of this
            factory's other arguments that it names; what a partial binds wins. `contexts` is not among them: it is
            called for contexts that are redrawn, which is right for fixed ones too.
        delay (int, tuple or array_like, default 0): How many plays late feedback is: a number d of at least 0;
            ``("geometric", mean)``, P(d = k) = (1 - p) p^k with p = mean / (1 + mean); ``("uniform", low, high)``,
            integers, both ends included; or an array [T] of integers. Feedback in batches of B plays is the array B - 1
            - (t - 1) mod B. Numbers share a program, and so do laws, if their rings are as long; arrays are another
            program. Static are the kind, and how long the ring is.
        max_delay: Feedback that is later is lost and never used. Where it is given, the ring of messages has room for
            this delay whatever `delay` is, so that the settings of a sweep share a program. The default: nothing is
            lost, except geometric delays above `theory.geometric_bound`.
        dim: Features of an arm, for the base. This and the following are filled in from the environment.
        num_experts: Experts, for the base.
        num_agents: Agents, for the base. No federated algorithm is accepted so far: the error names it.
        actions (array_like, optional): Fixed arms, for the base.
        feature_norm (float, optional): The largest norm of a feature, for the base.

    Returns:
        Algorithm: Its guarantee is the base's: a reward enters one message and one update, late or never. Diagnostics
            are those of the base and ``lost`` and ``outstanding``, how many plays' feedback was lost, and was neither
            used nor lost at the horizon: T = used + lost + outstanding. What is released at a play is a stack of what
            its arrivals release, NaN, or 0 for integers, where nothing arrives.

    Raises:
        ValueError: For an argument outside its range, and for a base that plays windows or spans of its own or runs in
            lockstep with plays; the error names it.

    Note:
        Delays are drawn at (seed, "delay", play) and do not depend on rewards, so that the base's draws stay where they
        are. A base whose state has fields ``outstanding`` and ``outstanding_sum`` is told, before every play, how many
        messages were sent and are neither used nor lost, and the sum of that number over the plays so far, the coming
        one included. Lost feedback counts as lost from its own play on. A lane's state holds the messages and notes of
        the last plays, as many as the longest delay has, rounded up to a multiple of 16, and one. A fixed delay takes
        constant time a play; other laws loop over arrivals. Estimates that depend on t, as `robust_ucb` has, are of
        their message's t.

    >>> late = jb.algorithms.delayed(num_arms=2, horizon=12, base=jb.algorithms.ucb1, delay=3)
    >>> run = jb.simulate(late, jb.environments.loss_table(losses=[[0.0, 1.0]] * 12), history=True)
    >>> run.history.action.tolist(), int(run.diagnostics["outstanding"])
    ([0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0], 3)
    """
    law, slots = check_law(delay, max_delay, horizon)
    facts = dict[str, Any](horizon=horizon, num_arms=num_arms, dim=dim, num_experts=num_experts, num_agents=num_agents)
    facts |= {"actions": actions, "feature_norm": feature_norm, "models": models}
    algorithm, context = build_base(base, facts)
    kind: Any = type(law)
    functions = program(algorithm.program, kind, slots, context)
    params = Params(algorithm.params, law, mechanism_scale=1.0)
    claim = guarantee_from_params(algorithm.guarantee)._replace(claimed=claimed_epsilon(algorithm))
    version = ("delayed", 1, (algorithm.version, kind.__name__.lower(), slots, context))
    return algorithm._replace(program=functions, params=params, guarantee=claim, version=version, tails=None)
