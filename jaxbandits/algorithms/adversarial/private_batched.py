"""A private algorithm from any bandit algorithm (Asi, Raman and Talwar 2025, Algorithm 1): batches and noisy means."""

import math
from functools import cache
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import theory
from jaxbandits.algorithms.adversarial.batch_tuning import Batches, tuning_of
from jaxbandits.algorithms.adversarial.htinf import htinf
from jaxbandits.declared import LATER, Base, Example, Ge, Gt, Horizon, Le, NumArms
from jaxbandits.formatting import show
from jaxbandits.learners.observed_loss import unit_loss
from jaxbandits.mechanisms.composition import guarantee, laplace_event, view_released
from jaxbandits.mechanisms.pure import laplace_scale
from jaxbandits.numerics import fixed_sum, materialize, tree_where
from jaxbandits.protocol import Algorithm, Loss, Program, Rewards, Span
from jaxbandits.random import Draws
from jaxbandits.recipe import unwrap
from jaxbandits.typing import Array, Float, Int, Numeric, Scalar
from jaxbandits.validation import base_algorithm, factory, integer


class Params(NamedTuple):
    base: Any
    window: Numeric  # tau: plays of a batch
    noise_scale: Numeric  # 1 / (tau epsilon), 0 without noise
    mechanism_scale: Numeric


class State(NamedTuple):
    """The state of the base, and of the running batch."""

    base: Any
    action: Int[Array, ""]  # the running batch's arm, and the base's note for it
    note: Any
    done: Int[Array, ""]  # plays done in the running batch, and their summed loss
    total: Float[Array, ""]


def _events(params):
    # A play lies in one batch, and its loss is clipped to [0, 1].
    scale = params.noise_scale * params.mechanism_scale
    return (laplace_event("mean loss of a batch", 1 / params.window, scale),)


GUARANTEE = guarantee("central", "loss_vector", _events, view_released)


@cache
def program(base: Program, waits: bool = False) -> Program:
    """The conversion's functions. `waits`: the base may sit out a window, busy with an update (literal FTPL)."""

    def init(params, draws):
        state, first = base.init(params.base, draws.child("base")), jnp.ones(1, jnp.int32)
        note = jax.eval_shape(lambda: base.act(params.base, state, draws.child("base"), first, ())[2])
        note = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), note)
        return State(state, jnp.int32(0), note, jnp.int32(0), jnp.zeros((), draws.dtype))

    def act(params, state, draws, t, context):
        def ask_base():
            action, ready, note = base.act(params.base, state.base, draws.child("base"), t[:1], ())
            return action[0], note, ready

        window: Any = jnp.asarray(params.window).astype(jnp.int32)
        if waits:
            action, note, ready = ask_base()
            action, note = tree_where(state.done == 0, (action, note), (state.action, state.note))
            used = jnp.where((state.done > 0) | (ready > 0), jnp.minimum(window - state.done, t.shape[0]), 0)
            return jnp.full(t.shape, action), used, (action, note, state.done)
        # The play alone says how much of the batch is done: the base is asked at its beginning only, for all lanes.
        done = (t[0] - 1) % window
        action, note = lax.cond(done == 0, lambda: ask_base()[:2], lambda: (state.action, state.note))
        return jnp.full(t.shape, action), None, (action, note, done)

    def encode(params, note, draws, t, context, action, reward, play):
        return Loss(fixed_sum(jnp.where(play, unit_loss(reward), 0)))

    def update(params, state, draws, t, note, message, used):
        action, base_note, before = note
        window = jnp.asarray(params.window)
        done, total = before + used, state.total + message.total
        full = done >= window.astype(jnp.int32)

        def learnt(plays):
            noise = params.mechanism_scale * params.noise_scale * draws.laplace(t)
            fed = materialize(total / window.astype(total.dtype) + noise)
            return *base.update(params.base, state.base, draws.child("base"), t, base_note, Loss(fed), plays)[:1], fed

        if waits:
            fresh, fed = learnt(full.astype(jnp.int32))
            learner, fed = tree_where(full | (done == 0), fresh, state.base), jnp.where(full, fed, jnp.nan)
        else:
            learner, fed = lax.cond(full, lambda: learnt(1), lambda: (state.base, jnp.full_like(total, jnp.nan)))
        done, total = jnp.where(full, 0, done), jnp.where(full, 0, total)
        return State(learner, action, base_note, done, total), fed

    def diagnose(params, state):
        return base.diagnose(params.base, state.base)

    return Program(init, act, encode, update, diagnose=diagnose, lockstep=True)


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


@factory(
    plays_on="arms",
    example=Example({"base": "htinf", "epsilon": 0.2}, "losses"),
    source="""Asi, Raman and Talwar 2025, Algorithm 1, Theorem 3.1, Lemma 3.3;
        `docs/formulas/private_adversarial.md#conversion`. How the base is tuned:
        `docs/formulas/private_adversarial.md#tuning-of-the-base`.""",
)
def private_batched(
    *,
    num_arms: NumArms,
    horizon: Horizon,
    epsilon: Annotated[Scalar, Gt(0), Le(math.inf)],
    base: Base = htinf,
    window: Annotated[int, Ge(1), LATER] | None = None,
) -> Algorithm:
    """Any bandit algorithm made private: it plays in batches and learns only each batch's mean loss plus Laplace noise.

    The base chooses one arm for a batch of `window` plays. At its end the base is fed the batch's mean loss plus
    Lap(1 / (window epsilon)), a loss being 1 - reward clipped to [0, 1].

    Args:
        horizon: Number of plays T; `base` gets the number of full batches, floor(T / window).
        epsilon: Privacy budget: where `window` is not given, in [1/T, 1], where the theorem holds. At inf there is no
            noise and the base has its own tuning.
        base (factory or functools.partial of one, default htinf): An algorithm that learns from `Loss` messages:
            `exp3`, `exp3_ix`, `htinf`, `tsallis_inf` or `ftpl`. It is given the paper's tuning (`exp3`: Corollary E.1,
            `ftpl`: Corollary E.3, `htinf`: Corollary 3.2; with a given `window` the general forms of
            `jaxbandits.theory`); `exp3_ix` and `tsallis_inf` keep their own defaults. A base of your own is told of the
            noise where it asks for it: as `feedback_scale` it is given the scale of the noise, as `tail_scale` the
            value sqrt(2 + 4 scale^2) that HTINF needs under noise of scale above 1. What the partial binds wins.
        window: Plays of a batch, at most T. It is data: it can be swept. The default: `theory.window(epsilon)`, about 1
            / epsilon; 1 at epsilon inf.

    Returns:
        epsilon-private in the central model for loss tables that differ in one play, whatever the window. Its
        diagnostics are those of `base`.

    Raises:
        ValueError: For an argument outside its range, for a `base` that does not learn from losses, and for what `base`
            refuses.

    Note:
        Rewards of any size are accepted, and a non-finite one counts as loss 1. A partial last batch is played and
        never fed back.

    >>> jb.algorithms.private_batched(num_arms=3, horizon=1000, epsilon=0.1).schedule[0].length
    10
    """
    if not callable(base):
        raise ValueError(
            f"base = {show(base)} must be a factory of algorithms or a partial of one: for instance algorithms.htinf"
        )
    chosen = window is not None
    if chosen:
        window = integer("window", window, 1, horizon, remedy="a batch fits in the horizon")
    elif math.isinf(epsilon):
        window = 1
    else:
        # the rounding guard of `theory.window` may exceed T
        window = min(theory.window(theory.check_epsilon(epsilon, horizon)), horizon)
    batches = Batches(num_arms, horizon, float(epsilon), window=window, chosen=chosen, bound=unwrap(base).bound)
    inner = base_algorithm(base, num_arms=num_arms, horizon=horizon // window, **tuning_of(base, batches))
    if inner.version[0] == "delayed":
        raise ValueError("base = delayed counts its delays in plays, and a batch is many: give the base without them")
    if not _learns_from_losses(inner.program, *_shapes(inner.params)):
        raise ValueError(
            f"base = {inner.version[0]} does not learn from losses: use exp3, exp3_ix, htinf, tsallis_inf or ftpl"
        )
    inner_span = inner.schedule[0]
    # Windows of one play: all lengths of batches share one program, which is no slower than longer windows.
    span = Span(1, -(-horizon // window), full=True, length=window)
    if not inner_span.full:  # windows for the plays, and more for those that the base may sit out
        span = Span(1, min(horizon + inner_span.repeats, 2**30), full=False)
    functions = program(inner.program, not inner_span.full)
    params = Params(inner.params, window, laplace_scale(1 / window, epsilon), mechanism_scale=1.0)
    version, rewards = ("private_batched", 2, (num_arms, inner.version)), Rewards(0.0, 1.0, "clip")
    return Algorithm(functions, (span,), params, GUARANTEE, version, rewards=rewards)
