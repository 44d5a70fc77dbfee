"""From any bandit algorithm to a private one (Asi, Raman and Talwar 2025, Algorithm 1): play in batches, feed back noisy means."""

import math
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import theory
from jaxbandits.algorithms.adversarial.exp3 import exp3
from jaxbandits.algorithms.adversarial.ftpl import ftpl
from jaxbandits.algorithms.adversarial.htinf import htinf
from jaxbandits.mechanisms.composition import guarantee, laplace_event, view_released
from jaxbandits.mechanisms.laplace import laplace_scale
from jaxbandits.numerics import fixed_sum, materialize
from jaxbandits.protocol import Algorithm, Loss, Program, Rewards, Span
from jaxbandits.random import Draws
from jaxbandits.validation import base_algorithm, factory, integer, number, shown

LONGEST = 256  # most plays of one window: longer batches are split evenly


class Params(NamedTuple):
    base: Any
    window: Any  # plays of a batch, tau
    noise_scale: Any  # 1 / (tau epsilon)
    mechanism_scale: Any


class State(NamedTuple):
    base: Any
    action: Any  # int32: the running batch's arm
    note: Any  # the base's note for it
    done: Any  # int32: plays done in the running batch
    total: Any  # their summed loss


def _events(params):
    # a play lies in one batch, and its loss is clipped to [0, 1]
    scale = params.noise_scale * params.mechanism_scale
    return (laplace_event("mean loss of a batch", 1 / params.window, scale),)


GUARANTEE = guarantee("central", "loss_vector", _events, view_released)


def client_loss(reward):
    """1 - reward clipped to [0, 1]; a non-finite reward counts as loss 1. Neighbouring losses then differ by at most 1."""
    return jnp.where(jnp.isfinite(reward), jnp.clip(1 - reward, 0, 1), 1)


def _choose(condition, new, old):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)


@cache
def program(base: Program, waits: bool = False) -> Program:
    """`waits`: the base may use no play of a window because it is still busy with its last update (literal FTPL)."""

    def init(params, draws):
        state, first = base.init(params.base, draws.child("base")), jnp.ones(1, jnp.int32)
        note = jax.eval_shape(lambda: base.act(params.base, state, draws.child("base"), first, ())[2])
        note = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), note)
        return State(state, jnp.int32(0), note, jnp.int32(0), jnp.zeros((), draws.dtype))

    def act(params, state, draws, t, context):
        ready: Any
        action, ready, note = base.act(params.base, state.base, draws.child("base"), t[:1], ())
        action, note = _choose(state.done == 0, (action[0], note), (state.action, state.note))
        used: Any = None
        if waits:
            left: Any = jnp.asarray(params.window).astype(jnp.int32) - state.done
            used = jnp.where((state.done > 0) | (ready > 0), jnp.minimum(left, t.shape[0]), 0)
        return jnp.full(t.shape, action), used, (action, note)

    def encode(params, note, draws, t, context, action, reward, play):
        return Loss(fixed_sum(jnp.where(play, client_loss(reward), 0)))

    def update(params, state, draws, t, note, message, used):
        action, base_note = note
        window = jnp.asarray(params.window)
        done, total = state.done + used, state.total + message.total
        full = done >= window.astype(jnp.int32)
        noise = params.mechanism_scale * params.noise_scale * draws.laplace(t)
        fed = materialize(total / window.astype(total.dtype) + noise)
        fed_plays: Any = full.astype(jnp.int32) if waits else 1
        fresh, _ = base.update(params.base, state.base, draws.child("base"), t, base_note, Loss(fed), fed_plays)
        moves = full | (done == 0) if waits else full
        done, total = jnp.where(full, 0, done), jnp.where(full, 0, total)
        return State(_choose(moves, fresh, state.base), action, base_note, done, total), jnp.where(full, fed, jnp.nan)

    def diagnose(params, state):
        return base.diagnose(params.base, state.base)

    return Program(init, act, encode, update, diagnose=diagnose)


def slots(window: int, longest: int = LONGEST) -> int:
    """Plays offered at once: the batch, split evenly above `longest`, rounded up to three significant bits (few shapes)."""
    size = -(-window // -(-window // longest))
    unit = 1 << max(size.bit_length() - 3, 0)
    return -(-size // unit) * unit


def _tuning(base, num_arms, horizon, epsilon, window, chosen) -> dict:
    """What the conversion passes to its base. `chosen`: the user gave the window."""
    if math.isinf(epsilon):
        return {}
    maker, given = (base.func, base.keywords) if isinstance(base, partial) else (base, {})
    given = {key for key, value in given.items() if value is not None}
    scale = 1 / (window * epsilon)
    if maker is htinf:
        tuning = {"tail_scale": math.sqrt(2 + 4 * scale**2)} if scale > 1 + 1e-6 else {}
    elif maker not in (exp3, ftpl) or "feedback_scale" in given:
        tuning = {}
    elif chosen and maker is ftpl:
        tuning = {"feedback_scale": scale}
    elif maker is ftpl:
        tuning = theory.ftpl_tuning(num_arms, horizon, epsilon)
    elif {"learning_rate", "mixing"} <= given:
        tuning = {}
    else:
        mixing = base.keywords["mixing"] if "mixing" in given else None
        if chosen:
            tuning = theory.exp3_noisy_tuning(num_arms, horizon // window, scale, mixing=mixing, window=window)
        else:
            tuning = theory.exp3_tuning(num_arms, horizon, epsilon, mixing=mixing)
    return {key: value for key, value in tuning.items() if key not in given and key not in ("window", "noise_scale")}


def _shapes(params) -> tuple:
    leaves, treedef = jax.tree.flatten(params)
    return treedef, tuple(np.shape(x) for x in leaves)


@cache
def _learns_from_losses(base: Program, treedef, shapes: tuple) -> bool:
    """Whether the base's clients send `Loss` messages."""
    t, play = jnp.ones(1, jnp.int32), jnp.ones(1, bool)

    def message(params):
        draws = Draws(jnp.uint32(0), "alg")
        action, _, note = base.act(params, base.init(params, draws), draws, t, ())
        return base.encode(params, note, draws, t, (), action, jnp.zeros(1), play)

    return isinstance(jax.eval_shape(message, treedef.unflatten([jnp.zeros(shape) for shape in shapes])), Loss)


@factory
def private_batched(*, num_arms, horizon, epsilon, base=htinf, window=None) -> Algorithm:
    """A base algorithm played in batches of `window` plays, fed each batch's mean loss plus Lap(1 / (window epsilon)).

    epsilon-private in the central model for loss tables that differ in one play, for every window; a play's reward of any size counts
    as its loss clipped to [0, 1], a non-finite one as loss 1. A partial last batch is played and never fed back.
    base: a factory, or a partial of one, of an algorithm that learns from `Loss` messages; called with num_arms,
    horizon = floor(T / window) and the paper's tuning (exp3: Corollary E.1, ftpl: E.3, htinf: Corollary 3.2; for a given window the
    general forms in theory.py; any other: its own defaults). What the partial binds wins.
    epsilon in [1/T, 1], or inf (no noise, the base's own tuning). window in [1, T], data: None is `theory.window(epsilon)`
    (1 at epsilon inf); given, any epsilon > 0 is accepted. Raises ValueError outside. Diagnostics: the base's.
    Source: Asi, Raman and Talwar 2025, Algorithm 1, Theorem 3.1, Lemma 3.3.

    >>> import jaxbandits as jb
    >>> jb.algorithms.private_batched(num_arms=3, horizon=1000, epsilon=0.1).schedule[0].length
    10
    """
    num_arms = integer("num_arms", num_arms, 2)
    horizon = integer("horizon", horizon, 1)
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False)
    if not callable(base):
        raise ValueError(
            f"base = {shown(base)} must be a factory of algorithms or a partial of one: for instance algorithms.htinf"
        )
    chosen = window is not None
    if chosen:
        window = integer("window", window, 1, horizon, remedy="a batch fits in the horizon")
    elif math.isinf(epsilon):
        window = 1
    else:
        window = min(
            theory.window(theory.check_epsilon(epsilon, horizon)), horizon
        )  # the guard may exceed T by rounding
    tuning = _tuning(base, num_arms, horizon, epsilon, window, chosen)
    made = base_algorithm(base, num_arms=num_arms, horizon=horizon // window, **tuning)
    if not _learns_from_losses(made.program, *_shapes(made.params)):
        raise ValueError(
            f"base = {made.version[0]} does not learn from losses: use exp3, exp3_ix, htinf, tsallis_inf or ftpl"
        )
    params = Params(made.params, window, laplace_scale(1 / window, epsilon), 1.0)
    batches, inner = -(-horizon // window), made.schedule[0]
    span = Span(slots(window), batches, full=True, length=window)
    if (
        not inner.full
    ):  # windows for the plays, and those the base may sit out; whole, so that sums do not depend on checkpoints
        span = Span(span.slots, min(batches * -(-window // span.slots) + inner.repeats, 2**30), full=False, whole=True)
    version = ("private_batched", 1, (num_arms, made.version))
    return Algorithm(
        program(made.program, not inner.full),
        (span,),
        params,
        GUARANTEE,
        version,
        {},
        rewards=Rewards(0.0, 1.0, "clip"),
    )
