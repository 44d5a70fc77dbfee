"""Feedback that comes late, or never: any algorithm of one play a window, its messages delayed on their way.

After the models of Joulani, György and Szepesvári 2013, and of Zimmert and Seldin 2020.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.algorithms.adversarial import message_ring
from jaxbandits.algorithms.adversarial.delay_laws import Fixed, checked_law, delay_of
from jaxbandits.algorithms.contextual.doubling import names, scaled
from jaxbandits.mechanisms.composition import claimed_epsilon
from jaxbandits.numerics import tree_where
from jaxbandits.protocol import Algorithm, Guarantee, Program, Span
from jaxbandits.random import Draws
from jaxbandits.typing import AlgorithmFactory, Array, Int
from jaxbandits.validation import base_algorithm, factory, integer, unwrapped


class Params(NamedTuple):
    """The base's numbers, and those of the delay."""

    # Params of the base
    base: Any
    # the law of the delay, of `delay_laws`
    law: Any
    # multiplies the base's
    mechanism_scale: Any


class State(NamedTuple):
    """The base's state, and what is on its way to it."""

    base: Any
    # messages and notes of the last plays, every leaf [R, ...]
    ring: Any
    # which of them are due when; () for a fixed delay, of which that is known
    circles: Any
    # plays whose message is lost, and whose message is neither used nor lost
    lost: Int[Array, ""]
    outstanding: Int[Array, ""]


@cache
def program(base: Program, law: type, slots: int, context: tuple[int, ...] | None) -> Program:
    """The base's functions, its updates delayed.

    law: a class of `delay_laws`; slots: of the ring; context: the shape of a play's context, None where there is none.
    """

    def own(params):
        return scaled(params.base, params.mechanism_scale)

    def init(params, draws):
        shown = () if context is None else jnp.zeros((1, *context), draws.dtype)
        state = base.init(own(params), draws)
        zero = jnp.int32(0)
        entry = jax.eval_shape(lambda: _sent(base, own(params), state, draws, shown))
        circles = () if law is Fixed else message_ring.no_circles(slots)
        return State(state, message_ring.empty(entry, slots), circles, zero, zero)

    def act(params, state, draws, t, context):
        return base.act(own(params), state.base, draws, t, context)

    def encode(params, note, draws, t, context, action, reward, play):
        return base.encode(own(params), note, draws, t, context, action, reward, play)

    def relay(params, draws, t, message, play):
        return base.relay(own(params), draws, t, message, play)

    def one_arrives(params, state, ring, draws, t, delay, comes):
        """The base after play t, at which the message of play t - delay arrives, if there is one."""
        play = t - delay
        arrives = (play >= 1) & comes
        message, note = message_ring.read(ring, message_ring.slot_of(play, slots))
        after, released = base.update(own(params), state.base, draws, jnp.maximum(play, 1), note, message, 1)
        released = jax.tree.map(lambda x: jnp.where(arrives, x, _nothing(x))[None], released)
        return tree_where(arrives, after, state.base), (), arrives.astype(jnp.int32), released

    def all_arrive(params, state, ring, draws, t, delay, comes):
        """The base after play t and its arrivals, one after another in the order of their plays."""
        due = t + jnp.minimum(delay, slots - 1)
        circles = message_ring.sent(state.circles, t, due, comes & (delay < slots), slots)
        circles, first, latest = message_ring.arrivals(circles, t, slots)

        def updated(state, slot):
            message, note = message_ring.read(ring, slot)
            play = message_ring.play_of(slot, t, slots)
            return base.update(own(params), state, draws, play, note, message, 1)

        def one(carry):
            state, slot, number, shown = carry
            after, released = updated(state, slot)
            shown = jax.tree.map(lambda x, y: x.at[number].set(y), shown, released)
            slot = jnp.where(slot == latest, message_ring.NONE, circles.following[slot])
            return after, slot, number + 1, shown

        kinds = jax.eval_shape(updated, state.base, first)[1]
        shown = jax.tree.map(lambda x: jnp.full((slots, *x.shape), _nothing(x), x.dtype), kinds)
        start = (state.base, first, jnp.int32(0), shown)
        after, _, number, shown = lax.while_loop(lambda carry: carry[1] != message_ring.NONE, one, start)
        return after, circles, number, shown

    def update(params, state, draws, t, note, message, used):
        delay = delay_of(params.law, draws, t)
        comes = delay <= jnp.asarray(params.law.most).astype(jnp.int32)
        ring = message_ring.written(state.ring, message_ring.slot_of(t, slots), (message, note))
        arrive = one_arrives if law is Fixed else all_arrive
        after, circles, number, released = arrive(params, state, ring, draws, t, delay, comes)
        lost = 1 - comes.astype(jnp.int32)
        outstanding = state.outstanding + 1 - lost - number
        after = informed(after, state.base, outstanding)
        return State(after, ring, circles, state.lost + lost, outstanding), released

    def diagnose(params, state):
        return {
            **base.diagnose(own(params), state.base),
            "lost": state.lost,
            "outstanding": state.outstanding,
        }

    default = Program._field_defaults["relay"]  # kept where it is the base's: it says that nobody relays
    return Program(
        init=init,
        act=act,
        encode=encode,
        update=update,
        relay=default if base.relay is default else relay,
        diagnose=diagnose,
        lockstep=True,  # its clock is the plays
    )


def informed(after: Any, before: Any, outstanding: Int[Array, ""]) -> Any:
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
    return jnp.asarray(jnp.nan if jnp.issubdtype(x.dtype, jnp.inexact) else 0).astype(x.dtype)


def _sent(base: Program, params: Any, state: Any, draws: Draws, context: Any) -> tuple[Any, Any]:
    """A message and a note of the base, for their shapes."""
    t, play = jnp.ones(1, jnp.int32), jnp.ones(1, bool)
    action, _, note = base.act(params, state, draws, t, context)
    reward = jnp.zeros(action.shape, draws.dtype)
    message = base.encode(params, note, draws, t, context, action, reward, play)
    return base.relay(params, draws, t[0], message, play), note


def called(base: Callable[..., Any], arguments: dict[str, Any]) -> tuple[Algorithm, tuple[int, ...] | None]:
    """A base, called with what it names of the arguments that are not None, and the shape of a play's context.

    ValueError where delays would break the base.
    """
    known, _ = names(base)
    bound = unwrapped(base).bound
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
    return algorithm, ((given["num_arms"], given["dim"]) if "dim" in given else None)


def wrapped(base: Guarantee) -> Guarantee:
    """The base's guarantee, read from the conversion's params: a message enters one update, late or never."""
    if base.model == "none":
        return base
    return base._replace(
        spend=lambda params: base.spend(scaled(params.base, params.mechanism_scale)),
        events=lambda params: base.events(scaled(params.base, params.mechanism_scale)),
        scales=("mechanism_scale",) if base.scales else (),
    )


@factory
def delayed(
    *,
    horizon: int,
    base: AlgorithmFactory,
    delay: Any = 0,
    max_delay: int | None = None,
    num_arms: int | None = None,
    dim: int | None = None,
    num_experts: int | None = None,
    num_agents: int | None = None,
    actions: Any = None,
    feature_norm: float | None = None,
) -> Algorithm:
    """Delay."""
    horizon = integer("horizon", horizon, 1)
    checked = checked_law(delay, max_delay, horizon)
    facts = {
        "horizon": horizon,
        "num_arms": num_arms,
        "dim": dim,
        "num_experts": num_experts,
        "num_agents": num_agents,
        "actions": actions,
        "feature_norm": feature_norm,
    }
    algorithm, context = called(base, facts)
    kind = type(checked.law)
    return Algorithm(
        program=program(algorithm.program, kind, checked.slots, context),
        schedule=(Span(1, horizon),),
        params=Params(algorithm.params, checked.law, 1.0),
        guarantee=wrapped(algorithm.guarantee)._replace(claimed=claimed_epsilon(algorithm)),
        version=("delayed", 1, (algorithm.version, kind.__name__.lower(), checked.slots, context)),
        config={},
        rewards=algorithm.rewards,
    )
