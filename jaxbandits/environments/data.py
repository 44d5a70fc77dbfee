"""Rows of one's own as a bandit: labels, of which the right arm pays 1, or tables with a reward for every arm.

`labelled_rows` reads the data, `rows` makes of features what a play shows. Axes: [P] plays of a window, [n] rows of
data, [p] features, [d] features of a row that is shown, [K] arms.
"""

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.declared import HOST, LATER, STATIC, Doc
from jaxbandits.environments import heavy_tailed as laws
from jaxbandits.environments.labelled_rows import INTEGER, few, labels_of, read_matrix
from jaxbandits.environments.rows import Floats, Rows, make_rows, principal_axes
from jaxbandits.formatting import show
from jaxbandits.protocol import Environment, Score, Truth, World
from jaxbandits.random import Draws
from jaxbandits.typing import Array, Int, Matrix, Numeric, Vector
from jaxbandits.validation import factory, integer, is_frame

if TYPE_CHECKING:
    import pandas as pd

COMPONENTS = 4  # principal components of an arm in blocks where `dim` is not given
SURE = 0.01  # of the test whether any feature predicts a label, over all features
# columns of zeros and ones, or of probabilities, that no labelled data have
LOGGED = re.compile("reward|click|conversion|propensity|pscore", re.IGNORECASE)
ORDER = "environment/order"  # the path of the draws that order the rows

Dim = Annotated[
    int,
    STATIC,
    LATER,
    Doc("""Features d of a row that is shown. The default: all, and one more for the bias. Of fewer the first are
        principal components, with a warning that says how much of the variance they keep."""),
]
Standardise = Annotated[bool, HOST, Doc("Whether every feature is brought to mean 0 and standard deviation 1.")]
Bias = Annotated[bool, STATIC, Doc("Whether a feature that is always 1 comes last: what an arm pays in any case.")]
Norm = Annotated[
    Literal["unit", "largest", "none"],
    HOST,
    Doc("""What rows are divided by at the end. "unit": each by its own norm; "largest": all by the largest norm."""),
]
Shuffle = Annotated[
    bool,
    Doc("""Whether rows come in an order that depends on the seed, anew at each pass. False: in their own order, pass
        after pass, as for data that time orders."""),
]
Against = Annotated[
    Literal["row", "fixed"],
    Doc(
        """What regret is measured against. "row": the best arm of every row; "fixed": the arm best over plays 1..t."""
    ),
]


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
    """Labelled rows."""

    features: Numeric  # [n, d]: what is shown; in blocks [n, d / K]
    labels: Numeric  # [n] int32


class TableParams(NamedTuple):
    """Rows with the rewards of all arms."""

    features: Numeric  # [n, d]
    rewards: Numeric  # [n, K]


class FittedParams(NamedTuple):
    """Rows with the mean rewards of all arms."""

    features: Numeric  # [n, d]
    means: Numeric  # [n, K]
    noise_scale: Numeric | tuple[()]  # standard deviation of Gaussian rewards


@cache
def rows_world(
    n: int, num_arms: int, law: str, *, view: str = "row", shuffle: bool = True, against: str = "fixed"
) -> World:
    """A world that shows rows.

    law: "label": the arm that is the label pays 1, the others 0; "reward": what the table says; "bernoulli" and
    "gaussian": around the mean in the table. view: "row", or "blocks", where arm k has the row in block k.
    """

    def row_of_play(state, t):
        if not shuffle:
            return (t - 1) % n
        return shuffle_position(Draws(state, ORDER), (t - 1) // n, (t - 1) % n, n)

    def label(params, state, t):
        return jnp.asarray(params.labels)[row_of_play(state, t)].astype(jnp.int32)

    def mean(params, state, t, action):
        table = params.rewards if law == "reward" else params.means
        return jnp.asarray(table)[row_of_play(state, t), action]

    def init(params, draws):
        return jnp.asarray(draws.seed).astype(jnp.uint32)  # the order is a function of the seed alone

    def observe(params, state, draws, t):
        x = jnp.asarray(params.features, draws.dtype)[row_of_play(state, t)]
        if view == "row":
            return x, state
        # arm k's block k holds x
        blocks = jnp.asarray(np.eye(num_arms), draws.dtype)[None, :, :, None] * x[:, None, None, :]
        return blocks.reshape(t.shape[0], num_arms, num_arms * x.shape[1]), state

    def reward(params, state, draws, t, context, action):
        if law == "label":
            return (label(params, state, t) == action).astype(draws.dtype)
        paid = mean(params, state, t, action).astype(draws.dtype)
        if law == "bernoulli":  # one draw a play for every arm: counterfactual rewards are defined
            return (draws.uniform(t) < paid).astype(draws.dtype)
        return paid if law == "reward" else paid + laws.noise_of_law(law, params.noise_scale, draws, t)

    def score(params, state, t, context, action):
        dtype = jnp.asarray(params.features).dtype
        if law == "label":
            return Score(arm=action, regret=(label(params, state, t) != action).astype(dtype))
        return Score(arm=action, regret=1 - mean(params, state, t, action).astype(dtype))

    def truth(params, state, t, context):
        if law != "label":
            return Truth(means=mean(params, state, t[:, None], jnp.arange(num_arms, dtype=jnp.int32)[None]))
        hit = label(params, state, t)[:, None] == jnp.arange(num_arms, dtype=jnp.int32)[None]
        return Truth(means=hit.astype(jnp.asarray(params.features).dtype))

    def baseline(params, seed, times):
        times, rivals = np.asarray(times, np.int64), list(_rivals(params, num_arms, against))
        whole = np.array([rewards.sum(dtype=np.float64) for rewards in rivals])
        best, passes = np.zeros(len(times)), (times - 1) // n
        for turn in np.unique(passes):  # a whole pass sees every row once: only passes with a checkpoint are drawn
            inside = passes == turn
            stops = times[inside] - turn * n
            order = pass_order(seed, int(turn), n) if shuffle else np.arange(n)
            order = order[: stops.max()]
            paid = [np.concatenate([[0.0], np.cumsum(rewards[order], dtype=np.float64)])[stops] for rewards in rivals]
            best[inside] = times[inside] - (turn * whole[:, None] + np.stack(paid)).max(axis=0)
        return best

    return World(init, observe, reward, score, truth, num_arms=num_arms, baseline=baseline, seeded=shuffle)


def _rivals(params: Any, num_arms: int, against: str) -> Iterator[np.ndarray]:
    """What regret is measured against: its mean rewards in every row [n], of each fixed arm, or of the best ones."""
    if isinstance(params, Params):
        labels = np.asarray(params.labels, np.int64)
        rewards = (labels == arm for arm in range(num_arms))
        yield from rewards if against == "fixed" else [np.ones(len(labels))]
    else:
        table = np.asarray(params[1], np.float64)
        yield from table.T if against == "fixed" else [table.max(axis=1)]


def facts_of_rows(rows: Rows, x: Floats, num_arms: int, regret_against: str) -> dict[str, Any]:
    """The facts of an environment that shows the rows x [n, d]. It is to be told what they pay."""
    largest = float(np.linalg.norm(x, axis=1).max()) if rows.norm == "none" else 1.0
    return {
        "num_arms": num_arms, "dim": x.shape[1], "feature_norm": largest or 1.0, "shows": "row", "models": "per_arm",
        "rows": rows, "num_rows": len(x), "regret_against": regret_against,
    }  # fmt: skip


def check_rows(n: int) -> None:
    """ValueError for more rows than can be shuffled."""
    if num_rounds(n) * n >= 2**32:
        raise ValueError(f"features has {n} rows, more than the shuffle can address: take at most 40 million")


@factory
def classification(
    *,
    features: "Matrix | pd.DataFrame",
    labels: "Vector | Sequence[str] | pd.Series[Any]",
    dim: Dim | None = None,
    view: Literal["row", "blocks"] = "row",
    standardise: Standardise | None = None,
    bias: Bias | None = None,
    norm: Norm | None = None,
    shuffle: Shuffle = True,
    regret_against: Against = "fixed",
) -> Environment:
    """A classification problem as a bandit: a play shows a row of data, and the arm that is its label pays 1.

    The other arms pay 0.

    Args:
        features (array_like of shape (n, p) or pandas.DataFrame): Finite numbers, one row for each example.
        labels (array_like of shape (n,) or pandas.Series): The class of each row, of at least two classes. Integers
            0..K-1 are the arms. Other integers of any size, text, booleans and categories become the arms 0..K-1 in
            sorted order; the sweep's `pulls` name them. Text stays text without the blanks around it: "10" comes before
            "9", and "nan" is a name.
        view: What a play shows. "row": the row, one vector for all arms, for learners with one model an arm. "blocks":
            [K, dim], for learners with one model: arm k has the first dim / K principal components of the row, as they
            are without `standardise`, in block k, scaled so that the largest has norm 1, and zeros elsewhere; dim is
            then a multiple of K, by default K min(p, 4).
        standardise: Whether every feature is brought to mean 0 and standard deviation 1. The default, for rows alone:
            True.
        bias: Whether a feature that is always 1 comes last. The default, for rows alone: True.
        norm: What rows are divided by at the end, as in `contextual_table`. The default, for rows alone: "unit".

    Returns:
        Environment: Facts: `num_arms`, `dim`, `feature_norm`, `shows`, `reward_range`, `regret_against`, `num_rows`, of
            rows `rows`, which makes the same of other features (`rows.apply(features)`), and, unless labels are the
            integers 0..K-1, `arm_names`: the class of each arm. Algorithms without contexts see the losses alone.

    Raises:
        ValueError: For an argument outside its range. It names the row, from 1, and the column of a DataFrame.

    Warns:
        UserWarning: Features are the same in every row: they say nothing and change nothing. Labels are integers other
            than 0..K-1: which arm each of them is. Components are left out: how much of the variance those explain that
            are kept. The data look like a log of choices, which `jb.read_logged` reads.

    Note:
        The shuffle is the swap-or-not shuffle of Hoang, Morris and Rogaway (2012), within 2^-12 of uniform for each
        position. Means, standard deviations and components are computed from all rows and taken to be public: no
        guarantee of privacy covers them.

    >>> jb.environments.classification(features=[[0.0], [1.0], [2.0]], labels=[0, 1, 1]).facts["dim"]
    2
    >>> jb.environments.classification(features=[[0.0], [1.0]], labels=["no", "yes"]).facts["arm_names"]
    ('no', 'yes')
    """
    _check_index(features, labels, "labels")
    x, columns = read_matrix("features", features)
    n = len(x)
    codes, names, plain_labels = labels_of(labels, n)
    num_arms = len(names)
    check_rows(n)
    _say_constant("classification", x, columns)
    if view == "blocks":
        for name, value in (("standardise", standardise), ("bias", bias), ("norm", norm)):
            if value is not None:
                raise ValueError(f"{name} = {show(value)} is of view='row' alone, and view = 'blocks': leave it out")
        shown, facts = _block_rows(x, num_arms, dim)
        facts |= {"num_rows": n, "regret_against": regret_against}
    else:
        how: dict[str, Any] = {"standardise": standardise is not False, "bias": bias is not False}
        blocks = ", and view='blocks' has contexts of more"
        shown, rows = make_rows(x, columns, dim=dim, norm=norm or "unit", remedy=blocks, **how)
        facts = facts_of_rows(rows, shown, num_arms, regret_against)
    facts["reward_range"] = (0.0, 1.0)
    if names != tuple(map(str, range(num_arms))):
        facts["arm_names"] = names
        if all(map(INTEGER.fullmatch, names)):
            arms = few([f"arm {arm} is the label {name}" for arm, name in enumerate(names)])
            warnings.warn(
                f"classification: {num_arms} classes are {num_arms} arms: {arms} (facts['arm_names'])", stacklevel=3
            )
    _say_log(x, columns, codes)
    # what a DataFrame and labels in words are recorded as: arrays of numbers and of text
    config: dict[str, Any] = {} if _is_plain(features) else {"features": x}
    if plain_labels.dtype.kind not in "biuf" or not _is_plain(labels):
        config["labels"] = plain_labels
    world = rows_world(n, num_arms, "label", view=view, shuffle=shuffle, against=regret_against)
    return Environment(world, Params(shown, codes.astype(np.int32)), facts, None, config, version=2)


def _block_rows(x: Floats, num_arms: int, dim: int | None) -> tuple[Floats, dict[str, Any]]:
    """The first principal components of rows, for blocks, and the facts of these."""
    p = x.shape[1]
    given, dim = dim, num_arms * min(p, COMPONENTS) if dim is None else integer("dim", dim, num_arms)
    if dim % num_arms or dim // num_arms > p:
        raise ValueError(
            f"dim = {dim} must be a multiple of the {num_arms} arms, at most {p * num_arms} with {p} features"
        )
    centred = x - x.mean(axis=0)
    axes, variances = principal_axes(centred)
    parts = centred @ axes.T[:, : dim // num_arms]
    top = np.linalg.norm(parts, axis=1).max()
    if given is None and p > COMPONENTS:
        share = variances[:COMPONENTS].sum() / (variances.sum() or 1.0)
        kept = f"blocks keep {COMPONENTS} of {p} components, {100 * share:.0f} % of the variance"
        warnings.warn(f"classification: {kept}: give dim, up to {p * num_arms}, or take view='row'", stacklevel=4)
    facts = {"num_arms": num_arms, "dim": dim, "feature_norm": 1.0, "shows": "decision set"}
    return parts / top if top > 0 else parts, facts


@factory
def contextual_table(
    *,
    features: "Matrix | pd.DataFrame",
    rewards: "Matrix | pd.DataFrame",
    dim: Dim | None = None,
    standardise: Standardise = True,
    bias: Bias = True,
    norm: Norm = "unit",
    shuffle: Shuffle = True,
    regret_against: Against = "row",
) -> Environment:
    """Rows of data with what every arm pays there: a play shows a row, and the arm pays what the table says.

    Args:
        features (array_like of shape (n, p) or pandas.DataFrame): Finite numbers, one row for each context.
        rewards (array_like of shape (n, K) or pandas.DataFrame): What each of at least two arms pays in each row.

    Returns:
        Environment: The context of a play is the row [dim], one vector for all arms: learners have one model an arm.
            Facts: `num_arms`, `dim`, `feature_norm`, `shows`, `reward_range` (the least and the largest reward),
            `regret_against`, `num_rows`, `rows`, which makes the same of other features (`rows.apply(features)`), and
            `arm_names` where the columns of rewards have names.

    Raises:
        ValueError: For an argument outside its range, with the row and the column of a DataFrame; where the two have
            another number of rows, or another index.

    Warns:
        UserWarning: As `classification`.

    Note:
        Rows come as those of `classification` do, and their means, standard deviations and components are public, too.

    >>> table = jb.environments.contextual_table(features=[[0.0], [1.0]], rewards=[[0.2, 0.9], [0.4, 0.1]])
    >>> table.facts["dim"], table.facts["reward_range"]
    (2, (0.1, 0.9))
    """
    _check_index(features, rewards, "rewards")
    (x, columns), (paid, names) = read_matrix("features", features), read_matrix("rewards", rewards)
    n, num_arms = paid.shape
    if len(x) != n or num_arms < 2:
        wanted = f"({len(x)}, K): a row for each row of features, and a column for each of K >= 2 arms"
        raise ValueError(f"rewards has shape {paid.shape}; it must be {wanted}")
    check_rows(n)
    _say_constant("contextual_table", x, columns)
    shown, rows = make_rows(x, columns, dim=dim, standardise=standardise, bias=bias, norm=norm)
    facts = facts_of_rows(rows, shown, num_arms, regret_against)
    facts["reward_range"] = float(paid.min()), float(paid.max())
    if is_frame(rewards) or getattr(rewards, "names", None):
        facts["arm_names"] = tuple(names)
    given = {"features": (features, x), "rewards": (rewards, paid)}
    config = {key: numbers for key, (value, numbers) in given.items() if not _is_plain(value)}
    world = rows_world(n, num_arms, "reward", shuffle=shuffle, against=regret_against)
    return Environment(world, TableParams(shown, paid), facts, None, config)


def _is_plain(given: object) -> bool:
    """Whether an argument is recorded as it is."""
    return isinstance(given, Sequence | np.ndarray | jax.Array)


def _check_index(features: object, others: object, name: str) -> None:
    """Raise ValueError where pandas would not put these labels or rewards beside these rows."""
    rows: Any = getattr(features, "index", None)
    marks: Any = getattr(others, "index", None)
    if hasattr(rows, "equals") and hasattr(marks, "equals") and len(rows) == len(marks) and not rows.equals(marks):
        raise ValueError(
            f"features and {name} have different indexes: give {name}.loc[features.index], or {name}.to_numpy() if the "
            "order of rows is right as it is"
        )


def _say_constant(name: str, x: np.ndarray, columns: Sequence[str]) -> None:
    """Warn of features that are the same in every row."""
    still = [name for name, there in zip(columns, (x == x[:1]).all(axis=0), strict=True) if there]
    if still and len(x) > 1:
        warnings.warn(
            f"{name}: {len(still)} of {len(columns)} features are the same in every row and say nothing: {few(still)}",
            stacklevel=4,
        )


def _say_log(x: Floats, columns: Sequence[str], codes: np.ndarray) -> None:
    """Warn of labels that no feature predicts, beside a column such as clicks: arms that were shown, it seems."""
    logged = np.array([bool(LOGGED.search(name)) for name in columns])
    logged &= ((x >= 0) & (x <= 1)).all(axis=0)
    if logged.any() and not predicts(x[:, ~logged], codes):
        named = few([name for name, one in zip(columns, logged, strict=True) if one])
        warnings.warn(
            f"classification: no feature predicts the labels, and there is a column {named}: this looks like a log of "
            "choices: jb.read_logged reads one, and jb.environments.fitted plays it",
            stacklevel=4,
        )


def predicts(x: Floats, codes: np.ndarray) -> bool:
    """Whether some feature [n, p] has other means in other classes [n]: an F test each, at `SURE` for all of them."""
    from scipy.stats import f

    counts = np.bincount(codes)
    between, within = len(counts) - 1, len(x) - len(counts)
    if within < 1:
        return True  # nobody can say
    for feature in x.T:
        spread = feature - feature.mean()
        explained = (np.bincount(codes, spread) ** 2 / counts).sum()
        rest = (spread**2).sum() - explained
        if (
            explained > 0
            and f.sf(explained / between * within / max(rest, 1e-300), between, within) * x.shape[1] < SURE
        ):
            return True
    return False
