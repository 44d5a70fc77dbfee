"""Noise on running sums whose number is not known: epochs that double (Chan, Shi and Song 2011), normalised.

Epoch j holds messages 2^j to 2^(j + 1) - 1. Its last release adds a total with noise of variance 1 / share for the
whole epoch; before that a fresh counter of 2^j - 1 releases runs. A message enters one total and one counter, so the
column norm is 1 for ever.
"""

import math
from functools import cache, partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax, tree

from jaxbandits.mechanisms.counters import blt, nodes
from jaxbandits.mechanisms.counters.form import Form, GivenDraw
from jaxbandits.typing import Array, Numeric, Scalar

EPOCHS = 31  # the messages that an int32 can count


class Params(NamedTuple):
    """What the counter of every epoch and the totals are multiplied by."""

    total_scale: Numeric  # 1 / sqrt(share)
    counter_scale: Numeric  # column norm of an epoch's counter over sqrt(1 - share) [EPOCHS]
    counters: Any  # the counters' own params, epoch by epoch


@cache
def epoch_functions(inside: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """begin, move and noise with begin, move and noise of the counters."""
    start, step, heard = inside

    def epoch_and_number(t):
        """The epoch of message t, and the message's number in it."""
        epoch = lax.population_count(_fill_lower_bits(t)) - 1
        return epoch, t - (jnp.int32(1) << epoch) + 1

    def params_of_epoch(params, epoch):
        return tree.map(lambda x: jnp.asarray(x)[epoch], params.counters)

    def begin(shape, dtype):
        return jnp.zeros(shape, dtype), start(shape, dtype)

    def move(params, state, draws, t, shape):
        totals, counter = state
        epoch, i = epoch_and_number(t)
        last = i == jnp.int32(1) << epoch
        fresh = draws.normal(t, shape)
        # a new epoch's counter begins with nothing; the last message of an epoch does not enter it
        counter = jnp.where(i == 1, 0, counter)
        after = step(params_of_epoch(params, epoch), counter, GivenDraw(fresh), i, shape)
        scale = jnp.asarray(params.total_scale, fresh.dtype)
        return jnp.where(last, totals + scale * fresh, totals), jnp.where(last, 0, after)

    def noise(params, state, t):
        totals, counter = state
        epoch, i = epoch_and_number(jnp.maximum(t, 1))
        running = (i < jnp.int32(1) << epoch) & (t > 0)
        scale = jnp.asarray(params.counter_scale, totals.dtype)[epoch]
        return totals + jnp.where(running, scale * heard(params_of_epoch(params, epoch), counter, i), 0)

    return begin, move, noise


def _fill_lower_bits(t: Array) -> Array:
    """All bits up to the highest one of t."""
    for shift in (1, 2, 4, 8, 16):
        t = t | (t >> shift)
    return t


def unknown_horizon(form: str, error: str, buffers: int, share: Scalar) -> Form:
    """The form with counters of one form inside."""
    blt_form = partial(blt.blt, error=error, buffers=buffers)
    inner: Any = {"tree": nodes.tree_form, "honaker": nodes.honaker, "blt": blt_form}
    made = [inner[form](_releases_before_last(2**epoch), participations=1, separation=1) for epoch in range(EPOCHS)]
    if form == "blt":
        rows = max(len(np.asarray(one.params.gap)) for one in made)
        padded = [[np.pad(x, (0, rows - len(x))) for x in one.params] for one in made]
        # an epoch with fewer buffers has weights of 0
        counters: Any = blt.Params(*map(np.stack, zip(*padded, strict=True)))
        inside = blt.blt_functions(rows - 1)
    else:
        counters = ()
        inside = (nodes.tree_functions if form == "tree" else nodes.honaker_functions)(EPOCHS)
    scale = np.array([one.column_norm for one in made]) / math.sqrt(1 - share)

    def deviation(t):
        t = np.asarray(t, np.int64)
        epoch = np.floor(np.log2(t)).astype(int)
        i = t - 2**epoch + 1
        reached = sorted({int(j) for j in np.ravel(epoch)})
        own = [made[j].deviation(np.minimum(i, _releases_before_last(2**j))) for j in reached]
        running = np.sqrt(epoch / share + (scale[epoch] * np.select([epoch == j for j in reached], own)) ** 2)
        return np.where(i == 2**epoch, np.sqrt((epoch + 1) / share), running)

    params = Params(1 / math.sqrt(share), scale, counters)
    return Form(params, *epoch_functions(inside), deviation=deviation, column_norm=1.0, size=made[-1].size + 1)


def _releases_before_last(messages: int) -> int:
    """How many releases of an epoch its counter makes: all but the last."""
    return max(messages - 1, 1)
