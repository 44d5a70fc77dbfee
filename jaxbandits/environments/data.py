"""Classification as a bandit: the arm that is the label pays 1. `labelled_rows` reads the data."""

import math
import warnings
from collections.abc import Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.declared import LATER, STATIC
from jaxbandits.environments.labelled_rows import INTEGER, few, labels_of, read_features
from jaxbandits.protocol import Environment, Score, Truth, World
from jaxbandits.random import Draws
from jaxbandits.typing import Array, Int, Matrix, Numeric, Vector
from jaxbandits.validation import factory, integer

if TYPE_CHECKING:
    import pandas as pd

COMPONENTS = 4  # principal components of an arm where `dim` is not given
ORDER = "environment/order"  # the path of the draws that order the rows


def num_rounds(n: int) -> int:
    """Rounds of the shuffle: a position's law is then within n^1.5 2^(-rounds / 2) <= 2^-12 of uniform."""
    return 3 * math.ceil(math.log2(max(n, 2))) + 24


def shuffle_position(draws: Draws, turn: Int[Array, "..."], x: Int[Array, "..."], n: int) -> Int[Array, "..."]:
    """Where position x of pass `turn` lands under a random permutation of 0..n-1.

    The swap-or-not shuffle (Hoang, Morris and Rogaway 2012): any n, O(1) memory, every play computed on its own.
    """
    shift, swap = draws.child("shift"), draws.child("swap")

    def shuffle_round(r, x):
        moved = (shift.at(turn, jnp.full_like(x, r)) % np.uint32(n)).astype(jnp.int32) - x
        partner = jnp.where(moved < 0, moved + n, moved)
        address = r.astype(jnp.uint32) * np.uint32(n) + jnp.maximum(x, partner).astype(jnp.uint32)
        return jnp.where((swap.at(turn, address) & np.uint32(1)) == 1, partner, x)

    return jax.lax.fori_loop(jnp.int32(0), jnp.int32(num_rounds(n)), shuffle_round, x)


@partial(jax.jit, static_argnums=2)
def _rows(seed, turn, n):
    return shuffle_position(Draws(seed, ORDER), turn, jnp.arange(n, dtype=jnp.int32), n)


@lru_cache(maxsize=16)
def pass_order(seed: int, turn: int, n: int) -> np.ndarray:
    """The rows of one pass [n] in the order a seed plays them, on the host; cached for all algorithms of the seed."""
    return np.asarray(_rows(np.uint32(seed), np.int32(turn), n))


class Params(NamedTuple):
    """The rows of the data."""

    features: Numeric  # [n, m]: scaled principal components, norms at most 1
    labels: Numeric  # [n] int32


@cache
def classification_world(n: int, num_arms: int, per_arm: int) -> World:
    """The world of classification."""

    def row_of_play(state, t):
        return shuffle_position(Draws(state, ORDER), (t - 1) // n, (t - 1) % n, n)

    def label(params, state, t):
        return jnp.asarray(params.labels)[row_of_play(state, t)].astype(jnp.int32)

    def init(params, draws):
        return jnp.asarray(draws.seed).astype(jnp.uint32)  # the order is a function of the seed alone

    def observe(params, state, draws, t):
        x = jnp.asarray(params.features, draws.dtype)[row_of_play(state, t)]
        # arm k's block k holds x
        blocks = jnp.asarray(np.eye(num_arms), draws.dtype)[None, :, :, None] * x[:, None, None, :]
        return blocks.reshape(t.shape[0], num_arms, num_arms * per_arm), state

    def reward(params, state, draws, t, context, action):
        return (label(params, state, t) == action).astype(draws.dtype)

    def score(params, state, t, context, action):
        loss = label(params, state, t) != action
        return Score(arm=action, regret=loss.astype(jnp.asarray(params.features).dtype))

    def truth(params, state, t, context):
        hit = label(params, state, t)[:, None] == jnp.arange(num_arms, dtype=jnp.int32)[None]
        return Truth(means=hit.astype(jnp.asarray(params.features).dtype))

    def baseline(params, seed, times):
        times, labels = np.asarray(times, np.int64), np.asarray(params.labels, np.int64)
        whole = np.bincount(labels, minlength=num_arms)
        best, passes = np.zeros(len(times)), (times - 1) // n
        for turn in np.unique(passes):  # a whole pass sees every row once: only passes with a checkpoint are drawn
            inside = passes == turn
            stops = times[inside] - turn * n
            seen = labels[pass_order(seed, int(turn), n)[: stops.max()]]
            hits = np.stack([np.concatenate([[0], np.cumsum(seen == arm)])[stops] for arm in range(num_arms)])
            best[inside] = times[inside] - (turn * whole[:, None] + hits).max(axis=0)
        return best

    return World(init, observe, reward, score, truth, num_arms=num_arms, baseline=baseline, seeded=True)


@factory
def classification(
    *,
    features: "Matrix | pd.DataFrame",
    labels: "Vector | Sequence[str] | pd.Series[Any]",
    dim: Annotated[int, STATIC, LATER] | None = None,
) -> Environment:
    """A classification problem as a bandit: a play shows a row of data, and the arm that is its label pays 1.

    The other arms pay 0. Rows come in an order that depends on the seed, shuffled anew at each pass over the data.

    Args:
        features (array_like of shape (n, p) or pandas.DataFrame): Finite numbers, one row for each example.
        labels (array_like of shape (n,) or pandas.Series): The class of each row, of at least two classes. Integers
            0..K-1 are the arms. Other integers of any size, text, booleans and categories become the arms 0..K-1 in
            sorted order; the sweep's `pulls` name them. Text stays text without the blanks around it: "10" comes before
            "9", and "nan" is a name.
        dim: Number of features of a context, a multiple of K and at most p K. The default: K min(p, 4).

    Returns:
        Environment: The context of a play is [K, dim]: arm k has the row's first dim / K principal components in block
            k and zeros elsewhere. Rows are centred, and scaled so that the largest context has norm 1. Facts:
            `num_arms`, `dim`, `reward_range` and, unless labels are the integers 0..K-1, `arm_names`: the class of each
            arm. Algorithms without contexts see the losses alone. Regret is against the arm best over plays 1..t.

    Raises:
        ValueError: For an argument outside its range. It names the row, from 1, and the column of a DataFrame.

    Warns:
        UserWarning: Features are the same in every row: they say nothing and change nothing. Labels are integers other
            than 0..K-1: which arm each of them is.

    Note:
        The shuffle is the swap-or-not shuffle of Hoang, Morris and Rogaway (2012), within 2^-12 of uniform for each
        position.

    >>> jb.environments.classification(features=[[0.0], [1.0], [2.0]], labels=[0, 1, 1]).facts["dim"]
    2
    >>> jb.environments.classification(features=[[0.0], [1.0]], labels=["no", "yes"]).facts["arm_names"]
    ('no', 'yes')
    """
    _same_index(features, labels)
    x, columns = read_features(features)
    n, p = x.shape
    codes, names, plain_labels = labels_of(labels, n)
    num_arms = len(names)
    if num_rounds(n) * n >= 2**32:
        raise ValueError(f"features has {n} rows, more than the shuffle can address: take at most 40 million")
    dim = num_arms * min(p, COMPONENTS) if dim is None else integer("dim", dim, num_arms)
    if dim % num_arms or dim // num_arms > p:
        raise ValueError(
            f"dim = {dim} must be a multiple of the {num_arms} arms, at most {p * num_arms} with {p} features"
        )
    _say_constant(x, columns)
    facts = {"num_arms": num_arms, "dim": dim, "reward_range": (0.0, 1.0), "shows": "decision set"}
    if names != tuple(map(str, range(num_arms))):
        facts["arm_names"] = names
        if all(map(INTEGER.fullmatch, names)):
            arms = few([f"arm {arm} is the label {name}" for arm, name in enumerate(names)])
            warnings.warn(
                f"classification: {num_arms} classes are {num_arms} arms: {arms} (facts['arm_names'])", stacklevel=3
            )
    centred = x - x.mean(axis=0)
    _, _, axes = np.linalg.svd(np.cov(centred, rowvar=False).reshape(p, p) if n > 1 else np.eye(p))
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], 1)
    parts = centred @ (axes * np.where(largest < 0, -1.0, 1.0)).T[:, : dim // num_arms]  # signs fixed: reproducible
    top = np.linalg.norm(parts, axis=1).max()
    params = Params(parts / top if top > 0 else parts, codes.astype(np.int32))
    # what a DataFrame and labels in words are recorded as: arrays of numbers and of text
    config: dict[str, Any] = {} if isinstance(features, Sequence | np.ndarray | jax.Array) else {"features": x}
    if plain_labels.dtype.kind not in "biuf" or not isinstance(labels, Sequence | np.ndarray | jax.Array):
        config["labels"] = plain_labels
    return Environment(classification_world(n, num_arms, dim // num_arms), params, facts, None, config, version=2)


def _same_index(features: object, labels: object) -> None:
    """Raise ValueError where pandas would not put these labels beside these rows."""
    rows: Any = getattr(features, "index", None)
    marks: Any = getattr(labels, "index", None)
    if hasattr(rows, "equals") and hasattr(marks, "equals") and len(rows) == len(marks) and not rows.equals(marks):
        raise ValueError(
            "features and labels have different indexes: give labels.loc[features.index], or labels.to_numpy() if the "
            "order of rows is right as it is"
        )


def _say_constant(x: np.ndarray, columns: Sequence[str]) -> None:
    """Warn of features that are the same in every row."""
    still = [name for name, there in zip(columns, (x == x[:1]).all(axis=0), strict=True) if there]
    if still and len(x) > 1:
        warnings.warn(
            f"classification: {len(still)} of {len(columns)} features are the same in every row and say nothing: "
            f"{few(still)}",
            stacklevel=4,
        )
