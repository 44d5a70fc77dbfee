"""Private running sums, `mechanisms.counter`: one interface for every form of noise."""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.declared import Doc, Ge, Inside
from jaxbandits.mechanisms.counters import toeplitz
from jaxbandits.mechanisms.counters.blt import blt
from jaxbandits.mechanisms.counters.form import Form
from jaxbandits.mechanisms.counters.k_ary import k_ary
from jaxbandits.mechanisms.counters.nodes import honaker, tree_form
from jaxbandits.mechanisms.counters.unknown_horizon import unknown_horizon
from jaxbandits.typing import Array, Float, Int, Numeric, Scalar
from jaxbandits.validation import declare, integer

OF_ANY_HORIZON = ("blt", "honaker", "tree")
MOST_MESSAGES = 2**30


class Params(NamedTuple):
    horizon: Numeric  # messages after which nothing is added
    form: Any  # the form's own


class State(NamedTuple):
    """The exact sum, the noise of one form, and how many messages they hold."""

    sum: Float[Array, "..."]
    noise: Any
    messages: Int[Array, ""]


@declare(check=False)
class Counter(NamedTuple):
    """Private running sums of messages that arrive one at a time, for one lane.

    Args:
        params (NamedTuple of arrays): The form's numbers: leaves that become part of an algorithm's params. Counters of
            one shape have the same functions, so that two horizons share a program.
        init (callable): shape, dtype -> state, before the first message.
        add (callable): params, state, value `[*shape]`, draws, t -> state. t = 1, 2, ... in turn, int32; fresh noise is
            addressed by it. Beyond the horizon the state stays as it is.
        release (callable): params, state, scale=1.0 -> the sum plus `scale` times the noise `[*shape]`; `scale`
            broadcasts against the message, and 0 gives the exact sum.
        deviation (callable): t (int or array in [1, horizon]) -> standard deviation of the noise at scale 1, float64 on
            the host.
        column_norm (float): What one unit's messages of norm 1 move all releases by, in the norm of the noise: 2-norm,
            for "k_ary" 1-norm. A message that moves by Delta costs what one release of sensitivity Delta column_norm /
            scale costs.
        size (int): Numbers of noise kept for each entry of a message, without the sum.
    """

    params: Params
    init: Callable[..., State]
    add: Callable[..., State]
    release: Callable[..., Any]
    deviation: Callable[[Any], Any]
    column_norm: float
    size: int


@cache
def _functions(begin: Any, move: Any, noise: Any) -> tuple[Any, Any, Any]:
    def init(shape, dtype):
        shape = tuple(shape)
        return State(jnp.zeros(shape, dtype), begin(shape, dtype), jnp.int32(0))

    def add(params, state, value, draws, t):
        counts = t <= params.horizon
        after = move(params.form, state.noise, draws, t, state.sum.shape)
        moved = jnp.where(counts, state.sum + value, state.sum)
        kept = jax.tree.map(lambda new, old: jnp.where(counts, new, old), after, state.noise)
        return State(moved, kept, jnp.where(counts, t, state.messages).astype(jnp.int32))

    def release(params, state, scale=1.0):
        drawn = noise(params.form, state.noise, state.messages)
        drawn = jnp.where(state.messages > 0, drawn, 0)
        scale = jnp.broadcast_to(jnp.asarray(scale, state.sum.dtype), state.sum.shape)
        return state.sum + jnp.where(scale == 0, 0, scale * drawn)

    return init, add, release


def form_of(
    form: str, horizon: int | None, error: str = "max", buffers: int = 4, participations: int = 1, separation: int = 1,
    bands: int | None = None, arity: int | None = None, share: Scalar = 0.5,
) -> Form:  # fmt: skip
    """The noise of a counter; `horizon` at least 1 or None. ValueError: the form cannot do what is asked."""
    if form == "k_ary" and arity is not None and arity % 2 == 0:
        raise ValueError(f"arity = {arity} must be odd: its digits run from -(arity - 1) / 2 to (arity - 1) / 2")
    if horizon is None:
        if form not in OF_ANY_HORIZON:
            raise ValueError(f"horizon = None needs form in {OF_ANY_HORIZON}, and form = {form!r}: give a horizon")
        if participations > 1:
            raise ValueError(f"participations = {participations} needs a horizon: give one")
        return unknown_horizon(form, error, buffers, share)
    if form == "blt":
        return blt(horizon, error, buffers, participations, separation)
    if form == "tree":
        return tree_form(horizon, participations, separation)
    if form == "honaker":
        return honaker(horizon, participations, separation)
    if form == "k_ary":
        return k_ary(horizon, error, arity, participations, separation)
    if form == "banded":
        width = min(separation, horizon) if participations > 1 else min(256, horizon)
        return toeplitz.toeplitz_bands(horizon, width if bands is None else bands, participations, separation)
    if horizon > toeplitz.MOST_RELEASES:
        remedy = f"give at most {toeplitz.MOST_RELEASES}, or form='blt', whose noise is the same to 0.2%"
        raise ValueError(f"horizon = {horizon} is too long for form = 'square_root', which keeps every draw: {remedy}")
    return toeplitz.square_root(horizon, participations, separation)


@declare(
    source="Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024 (arXiv 2404.16706) and the others, of which "
    "abstracts and public code were read: docs/formulas/counting.md"
)
def counter(
    form: Literal["blt", "tree", "honaker", "square_root", "banded", "k_ary"] = "blt",
    *,
    horizon: int | None,
    error: Literal["max", "mean"] = "max",
    buffers: Annotated[int, Ge(1), Doc('Of "blt"; at most n - 1 are used.')] = 4,
    participations: Annotated[int, Ge(1), Doc("How many messages a unit sends at most.")] = 1,
    separation: Annotated[int, Ge(1), Doc("How far two messages of a unit are apart at least.")] = 1,
    bands: Annotated[int, Ge(1)] | None = None,
    arity: Annotated[int, Ge(3)] | None = None,
    share: Inside = 0.5,
) -> Counter:
    """Private running sums: after every message the sum of all so far, with noise that is shared between releases.

    Args:
        form: The noise. "blt": buffered linear Toeplitz, the least for its state. "tree": the binary tree. "honaker":
            the tree with better estimates of its nodes. "square_root": the least largest error of all Toeplitz forms;
            it keeps every draw, so at most 1,024 releases. "banded": the first `bands` coefficients of that, for units
            whose messages lie so far apart; worse than the tree for single messages and long horizons. "k_ary": Laplace
            noise, for pure privacy.
        horizon (int or None): The number n of messages, in [0, 2^30]; None where it is not known ("blt", "honaker",
            "tree"), at 1.8 to 1.9, 1.4 and 1.3 times the noise of a known n between 1,000 and 20,000.
        error: Whether parameters of "blt" and the arity of "k_ary" make the largest or the root mean square deviation
            least.
        bands: Of "banded". The default: `separation` where a unit sends several messages, otherwise 256.
        arity: Of "k_ary": the base, odd. The default: the best in 3, 5, ..., 63.
        share: For horizon=None: what part of the squared sensitivity the totals of epochs get.

    Returns:
        ``init``, ``add``, ``release`` for one lane, their ``params``, and ``deviation``, ``column_norm``, ``size``.

    Raises:
        ValueError: For arguments outside these ranges, or a form that cannot do what is asked.

    Note:
        At equal privacy the noise is in proportion to ``column_norm * deviation(t)``: compare that. An argument that
        a form does not read is ignored.

        Messages may depend on earlier releases, as in a bandit. With matrices L R = A of running sums and noise L z,
        replace z in one of two worlds by z - delta R e_i: all releases agree, so all later messages do, and the map is
        a translation that keeps volume. Hence the privacy is that of one release of R x, whatever the messages depend
        on. For several messages of one unit and Gaussian noise: Denisov, McMahan, Rush, Smith and Thakurta 2022
        (abstract read).

        The counter adds what it is given: make messages finite and bounded before.

    >>> for form in ("blt", "honaker", "tree"):
    ...     count = counter(form, horizon=1000)
    ...     print(form, count.size, round(count.column_norm * count.deviation(np.arange(1, 1001)).max(), 3))
    blt 5 3.265
    honaker 10 6.736
    tree 10 9.487
    """
    last = MOST_MESSAGES if horizon is None else integer("horizon", horizon, 0, MOST_MESSAGES)
    releases = None if horizon is None else max(last, 1)
    made = form_of(form, releases, error, buffers, participations, separation, bands, arity, share)
    if last == 0:
        made = made._replace(column_norm=0.0, size=0)

    def deviation(t):
        at = np.asarray(t)
        if at.dtype.kind not in "iu" or at.size == 0 or (at < 1).any() or (at > last).any():
            raise ValueError(f"t = {t!r} must be whole numbers in [1, {last}]")
        found = np.asarray(made.deviation(at), np.float64)
        return float(found) if found.ndim == 0 else found

    params, functions = Params(np.int32(last), made.params), _functions(made.begin, made.move, made.noise)
    return Counter(params, *functions, deviation=deviation, column_norm=float(made.column_norm), size=made.size)
