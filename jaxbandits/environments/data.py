"""Rows of one's own as a bandit: labels, of which the right arm pays 1, or tables with a reward for every arm.

`labelled_rows` reads the data, `rows` makes of features what a play shows. Axes: [P] plays of a window, [n] rows of
data, [p] features, [d] features of a row that is shown, [K] arms.
"""

import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypedDict, Unpack

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.declared import HOST, LATER, STATIC, Default, Doc
from jaxbandits.environments.heavy_tailed import noise_of_law
from jaxbandits.environments.labelled_rows import INTEGER, few, labels_of, read_matrix
from jaxbandits.environments.rows import Floats, Rows, make_rows, principal_axes
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


class RowOptions(TypedDict, total=False):
    """How features become the rows that are shown.

    Args:
        dim: Features d of a row. The default: all, and one more for the bias. Of fewer the first are principal
            components, with a warning that says how much of the variance they keep.
        standardise: Whether every feature is brought to mean 0 and standard deviation 1.
        bias: Whether a feature that is always 1 comes last: what an arm pays in any case.
        norm: What rows are divided by at the end. "unit": each by its own norm; "largest": all by the largest norm.
    """

    dim: Annotated[int | None, STATIC, LATER, Default(None)]
    standardise: Annotated[bool, HOST, Default(True)]
    bias: Annotated[bool, Default(True)]
    norm: Annotated[Literal["unit", "largest", "none"], HOST, Default("unit")]


Shuffle = Annotated[
    bool,
    Doc("""Whether rows come in an order that depends on the seed, anew at each pass. False: in their own order, pass
        after pass, as for data that time orders."""),
]
Against = Annotated[
    Literal["row", "fixed"],
    Doc("""What regret is measured against: the best arm of every row, or the fixed arm that is best over plays
        1..t."""),
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


@cache
def rows_world(n: int, num_arms: int, law: str, shows: str, shuffle: bool, against: str) -> World:
    """A world of rows, which are shown as they are, or as a decision set where arm k has the row in block k.

    law: "label": the arm that is the label pays 1, the others 0; "reward": what the table says, the second of the
    params; "bernoulli" and "gaussian": around the mean in that table.
    """

    def row_of_play(state, t):
        if not shuffle:
            return (t - 1) % n
        return shuffle_position(Draws(state, ORDER), (t - 1) // n, (t - 1) % n, n)

    def label(params, state, t):
        return jnp.asarray(params.labels)[row_of_play(state, t)].astype(jnp.int32)

    def mean_reward(params, state, t, action):
        return jnp.asarray(params[1])[row_of_play(state, t), action]

    def init(params, draws):
        return jnp.asarray(draws.seed).astype(jnp.uint32)  # the order is a function of the seed alone

    def observe(params, state, draws, t):
        x = jnp.asarray(params.features, draws.dtype)[row_of_play(state, t)]
        if shows == "row":
            return x, state
        # arm k's block k holds x
        blocks = jnp.asarray(np.eye(num_arms), draws.dtype)[None, :, :, None] * x[:, None, None, :]
        return blocks.reshape(t.shape[0], num_arms, num_arms * x.shape[1]), state

    def reward(params, state, draws, t, context, action):
        if law == "label":
            return (label(params, state, t) == action).astype(draws.dtype)
        expected = mean_reward(params, state, t, action).astype(draws.dtype)
        if law == "bernoulli":  # one draw a play for every arm: counterfactual rewards are defined
            return (draws.uniform(t) < expected).astype(draws.dtype)
        return expected if law == "reward" else expected + noise_of_law(law, params.noise_scale, draws, t)

    def score(params, state, t, context, action):
        dtype = jnp.asarray(params.features).dtype
        if law == "label":
            return Score(arm=action, regret=(label(params, state, t) != action).astype(dtype))
        return Score(arm=action, regret=1 - mean_reward(params, state, t, action).astype(dtype))

    def truth(params, state, t, context):
        arms = jnp.arange(num_arms, dtype=jnp.int32)[None]
        if law == "label":
            return Truth(means=(label(params, state, t)[:, None] == arms).astype(jnp.asarray(params.features).dtype))
        return Truth(means=mean_reward(params, state, t[:, None], arms))

    def baseline(params, seed, times):
        order = (lambda turn: pass_order(seed, turn, n)) if shuffle else lambda turn: np.arange(n)
        return _loss_of_best(list(_rivals(params[1], num_arms, law, against)), np.asarray(times, np.int64), order)

    return World(init, observe, reward, score, truth, num_arms=num_arms, baseline=baseline, seeded=shuffle)


def _loss_of_best(rivals: list[np.ndarray], times: np.ndarray, order: Callable[[int], np.ndarray]) -> Floats:
    """The loss over plays 1..t [C] of the best of some rewards in every row [n]. order: of the rows in a pass."""
    n, whole = len(rivals[0]), np.array([rewards.sum(dtype=np.float64) for rewards in rivals])
    best, passes = np.zeros(len(times)), (times - 1) // n
    for turn in np.unique(passes):  # a whole pass sees every row once: only passes with a checkpoint are drawn
        inside = passes == turn
        stops = times[inside] - turn * n
        rows = order(int(turn))[: stops.max()]
        earned = [np.concatenate([[0.0], np.cumsum(rewards[rows], dtype=np.float64)])[stops] for rewards in rivals]
        best[inside] = times[inside] - (turn * whole[:, None] + np.stack(earned)).max(axis=0)
    return best


def _rivals(table: Any, num_arms: int, law: str, against: str) -> Iterator[np.ndarray]:
    """What regret is measured against: its mean rewards in every row [n], of each fixed arm, or of the best ones."""
    if law == "label":
        yield from (
            (np.asarray(table) == arm for arm in range(num_arms)) if against == "fixed" else [np.ones(len(table))]
        )
    else:
        table = np.asarray(table, np.float64)
        yield from table.T if against == "fixed" else [table.max(axis=1)]


def facts_of_rows(rows: Rows, x: Floats) -> dict[str, Any]:
    """What an environment says of the rows x [n, d] that it shows."""
    largest = float(np.linalg.norm(x, axis=1).max()) if rows.norm == "none" else 1.0
    return {"dim": x.shape[1], "feature_norm": largest or 1.0, "shows": "row", "models": "per_arm", "rows": rows}


def environment_of_rows(
    law: str,
    params: Any,
    arm_names: tuple[str, ...],
    facts: dict[str, Any],
    *,
    shuffle: bool,
    against: str,
    **config: Any,
) -> Environment:
    """An environment of rows. config: what is recorded of arguments in place of them."""
    n, num_arms = len(params.features), len(arm_names)
    if num_rounds(n) * n >= 2**32:
        raise ValueError(f"features has {n} rows, more than the shuffle can address: take at most 40 million")
    facts = {"num_arms": num_arms, **facts, "num_rows": n, "regret_against": against}
    if arm_names != tuple(map(str, range(num_arms))):
        facts["arm_names"] = arm_names
    world = rows_world(n, num_arms, law, facts["shows"], shuffle, against)
    return Environment(world, params, facts, None, config, version=2)


@factory
def classification(
    *,
    features: "Matrix | pd.DataFrame",
    labels: "Vector | Sequence[str] | pd.Series[Any]",
    view: Literal["row", "blocks"] = "row",
    shuffle: Shuffle = True,
    regret_against: Against = "fixed",
    **options: Unpack[RowOptions],
) -> Environment:
    """A classification problem as a bandit: a play shows a row of data, and the arm that is its label pays 1.

    The other arms pay 0.

    Args:
        features (array_like of shape (n, p) or pandas.DataFrame): Finite numbers, one row for each example.
        labels (array_like of shape (n,) or pandas.Series): The class of each row, of at least two classes. Integers
            0..K-1 are the arms. Other integers of any size, text, booleans and categories become the arms 0..K-1 in
            sorted order; the sweep's `pulls` name them. Text stays text without the blanks around it: "10" comes before
            "9", and "nan" is a name.
        view: What a play shows. "row": one vector for all arms, for learners with one model an arm. "blocks": [K, dim],
            for learners with one model: arm k has the first dim / K principal components of the features, as they are
            given, in block k, scaled so that the largest has norm 1, and zeros elsewhere. There `dim` is a multiple of
            K, by default K min(p, 4), and `standardise`, `bias` and `norm` are left out.

    Returns:
        Environment: Facts: `num_arms`, `dim`, `feature_norm`, `shows`, `reward_range`, `num_rows`, `regret_against`; of
            rows `rows`, by which `rows.apply(features)` makes others; unless labels are the integers 0..K-1
            `arm_names`: the class of each arm. Algorithms without contexts see the losses alone.

    Raises:
        ValueError: For an argument outside its range. It names the row, from 1, and the column of a DataFrame.

    Warns:
        UserWarning: Features are the same in every row: they say nothing and change nothing. Labels are integers other
            than 0..K-1: which arm each of them is. Principal components are left out. The data look like a log of
            choices, which `jb.read_logged` reads.

    Note:
        The shuffle is the swap-or-not shuffle of Hoang, Morris and Rogaway (2012), within 2^-12 of uniform for each
        position. Means, standard deviations and components come from the data and are taken to be public: no guarantee
        of privacy covers them.

    >>> jb.environments.classification(features=[[0.0], [1.0], [2.0]], labels=[0, 1, 1]).facts["dim"]
    2
    >>> jb.environments.classification(features=[[0.0], [1.0]], labels=["no", "yes"]).facts["arm_names"]
    ('no', 'yes')
    """
    _check_index(features, labels, "labels")
    x, columns = read_matrix("features", features)
    codes, names, plain_labels = labels_of(labels, len(x))
    _say_constant("classification", x, columns)
    if view == "blocks":
        shown, facts = _block_rows(x, len(names), **options)
    else:
        shown, rows = make_rows(x, columns, **options)
        facts = facts_of_rows(rows, shown)
    if all(map(INTEGER.fullmatch, names)) and names != tuple(map(str, range(len(names)))):
        arms = few([f"arm {arm} is the label {name}" for arm, name in enumerate(names)])
        which = f"{len(names)} classes are {len(names)} arms: {arms} (facts['arm_names'])"
        warnings.warn(f"classification: {which}", stacklevel=3)
    _say_log(x, columns, codes)
    # what a DataFrame and labels in words are recorded as: arrays of numbers and of text
    config: dict[str, Any] = {} if _is_plain(features) else {"features": x}
    if plain_labels.dtype.kind not in "biuf" or not _is_plain(labels):
        config["labels"] = plain_labels
    params, facts = Params(shown, codes.astype(np.int32)), facts | {"reward_range": (0.0, 1.0)}
    return environment_of_rows("label", params, names, facts, shuffle=shuffle, against=regret_against, **config)


def _block_rows(
    x: Floats, num_arms: int, *, dim: int | None, standardise: bool, bias: bool, norm: str
) -> tuple[Floats, dict[str, Any]]:
    """The first principal components of rows, for blocks, and the facts of these."""
    for name, value, usual in (("standardise", standardise, True), ("bias", bias, True), ("norm", norm, "unit")):
        if value != usual:
            raise ValueError(f"{name} = {value!r} with view = 'blocks': leave it out, it is of view='row' alone")
    p, given = x.shape[1], dim
    dim = num_arms * min(p, COMPONENTS) if dim is None else integer("dim", dim, num_arms)
    if dim % num_arms or dim // num_arms > p:
        raise ValueError(
            f"dim = {dim} must be a multiple of the {num_arms} arms, at most {p * num_arms} with {p} features"
        )
    centred = x - x.mean(axis=0)
    axes, variances = principal_axes(centred)
    parts = centred @ axes.T[:, : dim // num_arms]
    if given is None and p > COMPONENTS:
        share = variances[:COMPONENTS].sum() / (variances.sum() or 1.0)
        kept = f"blocks keep {COMPONENTS} of {p} components, {100 * share:.0f} % of the variance"
        warnings.warn(f"classification: {kept}: give dim, up to {p * num_arms}, or take view='row'", stacklevel=4)
    top = np.linalg.norm(parts, axis=1).max()
    return parts / top if top > 0 else parts, {"dim": dim, "feature_norm": 1.0, "shows": "decision set"}


@factory
def contextual_table(
    *,
    features: "Matrix | pd.DataFrame",
    rewards: "Matrix | pd.DataFrame",
    shuffle: Shuffle = True,
    regret_against: Against = "row",
    **options: Unpack[RowOptions],
) -> Environment:
    """Rows of data with what every arm pays there: a play shows a row, and the arm pays what the table says.

    Args:
        features (array_like of shape (n, p) or pandas.DataFrame): Finite numbers, one row for each context.
        rewards (array_like of shape (n, K) or pandas.DataFrame): What each of at least two arms pays in each row.

    Returns:
        Environment: The context of a play is the row [dim], one vector for all arms. Facts: as of `classification`,
            with the least and the largest reward as `reward_range`, and `arm_names` where columns of rewards have
            names.

    Raises:
        ValueError: As `classification`, and where the two have another number of rows, or another index.

    Warns:
        UserWarning: As `classification`.

    Note:
        Rows come as those of `classification` do, and how they are made is public, too.

    >>> table = jb.environments.contextual_table(features=[[0.0], [1.0]], rewards=[[0.2, 0.9], [0.4, 0.1]])
    >>> table.facts["dim"], table.facts["reward_range"]
    (2, (0.1, 0.9))
    """
    _check_index(features, rewards, "rewards")
    (x, columns), (paid, names) = read_matrix("features", features), read_matrix("rewards", rewards)
    if len(x) != len(paid) or paid.shape[1] < 2:
        wanted = f"({len(x)}, K): a row for each row of features, and a column for each of K >= 2 arms"
        raise ValueError(f"rewards has shape {paid.shape}; it must be {wanted}")
    _say_constant("contextual_table", x, columns)
    shown, rows = make_rows(x, columns, **options)
    facts = facts_of_rows(rows, shown) | {"reward_range": (float(paid.min()), float(paid.max()))}
    if not is_frame(rewards) and getattr(rewards, "names", None) is None:
        names = [*map(str, range(len(names)))]
    given = {"features": (features, x), "rewards": (rewards, paid)}
    config = {key: numbers for key, (value, numbers) in given.items() if not _is_plain(value)}
    params, arms = TableParams(shown, paid), tuple(names)
    return environment_of_rows("reward", params, arms, facts, shuffle=shuffle, against=regret_against, **config)


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
    shares = [x[:, j].min() >= 0 and x[:, j].max() <= 1 for j in range(len(columns))]
    logged = [j for j, name in enumerate(columns) if shares[j] and LOGGED.search(name)]
    if logged and not predicts(np.delete(x, logged, axis=1), codes):
        looks = f"there is a column {columns[logged[0]]}, so that this looks like a log of choices"
        remedy = "jb.read_logged reads one, and jb.environments.fitted plays it"
        warnings.warn(f"classification: no feature predicts the labels, and {looks}: {remedy}", stacklevel=4)


def predicts(x: Floats, codes: np.ndarray) -> bool:
    """Whether some feature [n, p] has other means in other classes [n]: an F test each, at `SURE` for all of them."""
    from scipy.stats import f_oneway

    classes = [x[codes == k] for k in range(codes.max() + 1)]
    if x.shape[1] == 0 or len(x) == len(classes):
        return False
    with warnings.catch_warnings():  # of features that never change
        warnings.simplefilter("ignore")
        chances = f_oneway(*classes).pvalue
    return bool((chances * x.shape[1] < SURE).any())
