"""Statistics of users behind a shuffler: the server sees a batch of B users at once.

Formulas: docs/formulas/ldp_contextual.md#shuffle-model. A batch that the horizon cuts short is not relayed: no
play would use it.

Axes: [P] plays of a window, [d] features, [n] = d (d + 1) / 2 + d entries of (x x', x y): the upper triangle by
rows, then x y.

Draws: encode/noise, [n] normals at a user's t (amplified) or [n] words at the batch's last t (vector);
encode/rounding, [n] at t (vector).
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.algorithms.contextual import arguments
from jaxbandits.algorithms.contextual.selection import Params
from jaxbandits.algorithms.contextual.statistics import Statistics, Sums, add_total, clip_pair, local, pair_products
from jaxbandits.mechanisms.composition import Event, guarantee, other_event, view_message
from jaxbandits.mechanisms.shuffle import VectorCode, amplified_epsilon, batch_noise, decode, encode, vector_epsilon
from jaxbandits.numerics import fixed_sum, materialize
from jaxbandits.numerics.packed import join_matrix_vector, number_of_entries, split_matrix_vector
from jaxbandits.theory.exact_presets import batch_of, exact_local, exact_scale, exact_vector
from jaxbandits.theory.linear_widths import amplified_tuning, moment_sensitivity, vector_tuning
from jaxbandits.typing import Array, Float, Numeric
from jaxbandits.validation import choice, integer


class VectorParams(NamedTuple):
    """Numbers of the vector protocol, and ridge rho_t = ridge + ridge_root sqrt(t)."""

    code: VectorCode
    feature_norm: Numeric  # L: the client scales down features above it
    gram_unit: Numeric  # what one unit of the code stands for, in x x' and in x y
    vector_unit: Numeric
    ridge: Numeric
    ridge_root: Numeric
    delta: Numeric  # of the guarantee; no function here reads it


class Integers(NamedTuple):
    """What users send: a message's integers, and their binomial noise.

    The noise is drawn for the whole batch at once, which has the same law of the sum.
    """

    value: Float[Array, "P n"]
    noise: Float[Array, " n"]  # less its mean b B / 4, which everybody knows


class Total(NamedTuple):
    """What the shuffler relays."""

    total: Float[Array, " n"]  # sum of integers and noise
    users: Array  # B, or 0: nothing was relayed


@cache
def shuffle_local_noise(dim: int) -> Statistics:
    """Local noise on every user's (x x', x y), as in `local`; the shuffler hides whose message is whose.

    Params are `PrivateParams`. The server needs no more of permuted messages than their sum, so the sum stands for
    them.
    """
    single = local(dim)

    def relay(params, scale, draws, t, message, play):
        whole = jnp.all(play)
        return jax.tree.map(lambda x: jnp.where(whole, fixed_sum(x, axis=0), 0), message)

    def update(params, scale, state, draws, t, message, used):
        return add_total(state, message), ()

    return single._replace(relay=relay, update=update, estimate=estimate_with_inverse(single))


@cache
def vector(dim: int) -> Statistics:
    """Every user's (x x', x y) as integers with binomial noise, of which the shuffler relays the sums.

    Params are `VectorParams`.
    """
    single, entries = local(dim), number_of_entries(dim)

    def encode_users(params, scale, draws, t, feature, reward, play):
        values = pair_products(*clip_pair(feature, reward, params.feature_norm))
        gram = jax.tree.map(lambda v: v / params.gram_unit, values.gram)
        coded = join_matrix_vector(gram, jax.tree.map(lambda u: u / params.vector_unit, values.vector))
        uniform = draws.child("rounding").uniform(t, (entries,))
        integers = encode(params.code, uniform, coded)
        trials = jnp.floor(jnp.asarray(scale * scale * params.code.trials, draws.dtype))
        return Integers(integers, batch_noise(trials, draws.child("noise").bits(t[-1], (entries,)), draws.dtype))

    def relay(params, scale, draws, t, message, play):
        whole = jnp.all(play)
        total = fixed_sum(message.value, axis=0) + message.noise
        return Total(materialize(jnp.where(whole, total, 0)), jnp.where(whole, len(play), 0))

    def update(params, scale, state, draws, t, message, used):
        sums = decode(params.code, message.total, message.users.astype(message.total.dtype))
        gram, moved = split_matrix_vector(sums, dim)
        gram = jax.tree.map(lambda v: v * params.gram_unit, gram)
        return add_total(state, Sums(gram, jax.tree.map(lambda u: u * params.vector_unit, moved))), ()

    return single._replace(encode=encode_users, update=update, relay=relay, estimate=estimate_with_inverse(single))


def estimate_with_inverse(single: Statistics) -> Callable[..., Any]:
    """Its estimate with the inverse, which is less work where a batch has many arms."""
    return lambda *args: single.estimate(*args).to_estimate()


# ---- host side: numbers and guarantee, for batches of `window` users


def batch(window: int | None, s: arguments.LinearSetting) -> int:
    """A checked number of users of a batch. None: 20, and with the preset "exact" as many as there are batches."""
    if window is None:
        return batch_of(s.horizon) if s.preset == "exact" else min(20, s.horizon)
    return integer("window", window, 1, s.horizon, remedy="a batch of users fits in the horizon")


def events_by_amplification(dim: int, window: int, params: Params) -> tuple[Event, ...]:
    """A user whose message is one of a permuted batch: local, unless an amplification theorem gives less."""
    p = params.statistics
    scale, delta = float(p.diagonal) * float(params.mechanism_scale), float(p.delta)
    if scale == 0:
        return (other_event("gaussian, shuffled", "a user's x x' and x y", math.inf),)
    moved = arguments.change(p)
    epsilon = amplified_epsilon(moved, scale, window, number_of_entries(dim), delta)
    return (other_event("gaussian, shuffled", "a user's x x' and x y", epsilon, delta, sensitivity=moved, scale=scale),)


def vector_events(dim: int, params: Params) -> tuple[Event, ...]:
    """A user whose integers enter one batch's sums."""
    p = params.statistics
    trials = math.floor(float(params.mechanism_scale) ** 2 * float(p.code.trials))
    moved = moment_sensitivity(float(p.code.bound))  # cutting coordinates at L moves them no further apart
    epsilon = vector_epsilon(p.code._replace(trials=trials), moved, number_of_entries(dim), float(p.delta))
    return (other_event("binomial", "sums of a batch's x x' and x y", epsilon, float(p.delta), sensitivity=moved),)


def shuffle_part(protocol: str | None, window: int, s: arguments.LinearSetting) -> arguments.Part:
    """Users add noise, the shuffler hides who sent what. protocol None: "vector" with "exact", else "amplified"."""
    protocol = protocol or ("vector" if s.preset == "exact" else "amplified")
    numbers, norm = (s.preset, s.horizon, s.dim, s.epsilon, s.delta, window, s.feature_norm), s.feature_norm
    if protocol == "amplified":
        if s.preset == "exact":
            scale = exact_scale("amplified", s.dim, s.epsilon, s.delta, norm, window)
            tuning = exact_local(scale, s.horizon, s.dim, norm, s.theta_bound)
        else:
            tuning = amplified_tuning(*numbers)
        statistics, params = shuffle_local_noise(s.dim), arguments.private_params(tuning, s)
        events: Any = partial(events_by_amplification, s.dim, window)
    else:
        if s.preset == "exact":
            tuning, code = exact_vector(*numbers[1:5], norm, s.theta_bound, window)
            units = norm**2, norm
        else:
            (tuning, code), units = vector_tuning(*numbers), (1.0, 1.0)
        statistics, events = vector(s.dim), partial(vector_events, s.dim)
        params = VectorParams(code, norm, *units, tuning.ridge, tuning.ridge_root, s.delta)
    claim = guarantee("shuffle", "user", events, view_message, delta=arguments.delta_of_claim)
    return arguments.Part(statistics, params, tuning, claim)


def choose_part(
    num_arms: int, dim: int, horizon: int, *, statistics: str, preset: str | None, protocol: str | None, window: Any,
    tree: str | None, models: str, **given: Any,
) -> tuple[arguments.Part, arguments.LinearSetting, int]:  # fmt: skip
    """What `Learnt` chooses: statistics with noise and ridge, the setting, and the plays of a window."""
    known = ("exact", "reference", "theory")[statistics == "none" :]
    if models == "shared":
        preset = choice("preset", known[0] if preset is None else preset, known)
    elif statistics == "shuffle":
        raise ValueError("statistics = 'shuffle' with models = 'per_arm': give 'ldp' or 'jdp', or models='shared'")
    given |= {"models": models, "private": statistics != "none"}
    s = arguments.setting(num_arms, dim, horizon, preset=preset, **given)
    if statistics == "none":
        if s.epsilon < float("inf"):
            raise ValueError(
                f"epsilon = {s.epsilon!r} with statistics = 'none', which adds no noise: choose 'ldp', 'jdp' "
                "or 'shuffle', or bind epsilon=float('inf'), which a sweep's grid then leaves alone"
            )
        return arguments.none_part(s), s, 1
    if statistics == "shuffle":
        plays = batch(window, s)
        return shuffle_part(protocol, plays, s), s, plays
    return arguments.local_part(s) if statistics == "ldp" else arguments.joint_part(tree, s), s, 1
