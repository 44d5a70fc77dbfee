"""Logged choices: what was shown, which arm it got, what that paid, and how probable the arm was.

Axes: [n] rows, [p] features, [K] arms.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandits.environments.labelled_rows import attach_names, classes_of, file_marks, fill_means, say_identifiers
from jaxbandits.environments.user_tables import MISSING_WORDS, Columns, TableSource, few, table_of
from jaxbandits.formatting import show
from jaxbandits.validation import array, choice, declare, integer, number

if TYPE_CHECKING:
    import pandas as pd

UNIFORM = "uniform"
MIN_ROWS = 10  # an arm with fewer is hardly known
MIN_PROPENSITY = 1e-3  # one such row counts as much as a thousand
MAX_DEVIATION = 4  # standard errors


class Log(NamedTuple):
    """A log of choices, as `read_logged` makes it."""

    features: np.ndarray[Any, Any]  # [n, p]
    arm: np.ndarray[Any, Any]  # [n] int32: the arm that was shown, 0 to K - 1
    reward: np.ndarray[Any, Any]  # [n]
    propensity: np.ndarray[Any, Any] | None  # [n]: how probable the arm was that was shown; None: not known
    arm_names: tuple[str, ...]  # of the K arms
    feature_names: tuple[str, ...]  # of the p features

    def split(self, share: float = 0.5, seed: int | None = 0) -> "tuple[Log, Log]":
        """Two logs without a row in common: `share` of the rows and the others, in an order that the seed draws.

        seed None: in the order of the log, so that the second came later.
        """
        n = len(self.arm)
        share = number("share", share, 0.0, 1.0, open_low=True, open_high=True)
        cut = round(share * n)
        if not 0 < cut < n:
            raise ValueError(f"share = {share:g} of {n} rows leaves one part empty: choose something nearer 1/2")
        order = np.arange(n) if seed is None else np.random.default_rng(integer("seed", seed, 0)).permutation(n)
        return self._take_rows(order[:cut]), self._take_rows(order[cut:])

    def _take_rows(self, rows: np.ndarray[Any, Any]) -> "Log":
        known = {key: value[rows] for key, value in self._asdict().items() if isinstance(value, np.ndarray)}
        return self._replace(**known)

    def check(self) -> "pd.DataFrame":
        """What the log says of each arm, and warnings where propensities cannot be right or arms are hardly known.

        A row an arm, named by the index: `rows`, `mean_reward`, `smallest_propensity`, and `mean_weight` with its
        `standard_error`: the mean over all n rows of 1 / propensity where the arm was shown and 0 elsewhere, which is
        about 1 if propensities are right and the arm could always be shown. NaN where propensities are not known.
        """
        check_log(self)
        return _tabulate_arms(self, stacklevel=3)


def check_log(log: Any) -> None:
    """ValueError for what is no log, or one whose columns do not fit together."""
    if not isinstance(log, Log):
        raise ValueError(f"log = {show(log)} must be what jb.read_logged returns")
    n, num_arms = len(array("log.features", log.features, 2)), len(log.arm_names)
    columns = {"log.arm": log.arm, "log.reward": log.reward, "log.propensity": log.propensity}
    for name, column in columns.items():
        if column is not None:
            array(name, column, 1, shape=(n,), remedy="one entry for each row of features")
    if not np.isin(log.arm, np.arange(num_arms)).all():
        raise ValueError(f"log.arm must hold integers from 0 to {num_arms - 1}, for {num_arms} names: {show(log.arm)}")
    if log.propensity is not None:
        _check_propensities(log.propensity, "log.propensity[{}]".format)
    if n < 2 or num_arms < 2:
        raise ValueError(f"log has {n} rows and {num_arms} arms: it needs two of both")


def _check_propensities(propensity: np.ndarray[Any, Any], where: Callable[[int], str]) -> None:
    wrong = np.flatnonzero((propensity <= 0) | (propensity > 1))
    if len(wrong):
        need = "must be in (0, 1]: how probable the arm was that was shown"
        raise ValueError(f"{where(int(wrong[0]))}: {propensity[wrong[0]]:g} {need}")


def _tabulate_arms(log: Log, stacklevel: int) -> "pd.DataFrame":
    """The table of `Log.check`, with its warnings."""
    import pandas as pd

    n, names, said = len(log.arm), np.array(log.arm_names, object), list[str]()
    shown = log.arm[:, None] == np.arange(len(names))  # [n, K]
    rows, propensity = shown.sum(axis=0), np.full(n, np.nan) if log.propensity is None else log.propensity
    none = np.where(rows > 0, 0.0, np.nan)
    weights = shown / propensity[:, None]
    mean, error = weights.mean(axis=0), weights.std(axis=0, ddof=1) / np.sqrt(n)
    off = np.flatnonzero(np.abs(mean - 1) > MAX_DEVIATION * error)
    if len(off):
        found = few([f"{names[k]} ({mean[k]:.3g} +- {error[k]:.2g})" for k in off])
        what = f"the rows of an arm have 1 as mean of 1/propensity, over all rows, but not those of {found}"
        said.append(f"{what}: propensities are wrong, or it could not always be shown, which no estimator mends")
    if (rows < MIN_ROWS).any():
        said.append(f"arms with fewer than {MIN_ROWS} rows are hardly known: {few(names[rows < MIN_ROWS].tolist())}")
    if rare := int((propensity < MIN_PROPENSITY).sum()):
        said.append(f"{rare} rows have a propensity below {MIN_PROPENSITY:g}: each of them outweighs a thousand others")
    for text in said:
        warnings.warn(f"log: {text}", stacklevel=stacklevel)
    paid = (shown * log.reward[:, None]).sum(axis=0) / np.maximum(rows, 1) + none
    columns = {"rows": rows, "mean_reward": paid, "mean_weight": mean, "standard_error": error}
    columns["smallest_propensity"] = np.where(shown, propensity[:, None], np.inf).min(axis=0) + none
    return pd.DataFrame(columns, index=pd.Index(names, name="arm"))


@declare(check=False)
def read_logged(
    source: TableSource,
    *,
    arm: str | int,
    reward: str | int,
    propensity: str | int | None = None,
    features: Columns | None = None,
    arms: Sequence[Any] | None = None,
    missing: str = "error",
    missing_words: Sequence[str] = MISSING_WORDS,
) -> Log:
    """Read a log of choices from a file or a DataFrame: what was seen, which arm was shown, and what that paid.

    Args:
        source (str, path, pandas.DataFrame or table): One row for each choice, in a source as of `read_losses`. In an
            NPZ file `arm` is an array of its own, beside one array whose columns are named 1, 2, ...
        arm (str or int): The column of the arm that was shown: its name, or its number from 1 where a file has no
            header. It is read as the labels of `read_labelled` are.
        reward (str or int): The column of rewards.
        propensity (str or int, optional): The column that says how probable the shown arm was, in (0, 1], or "uniform":
            each arm as probable as any other. The default: not known, which is enough for `fitted`.
        features (sequence of str or int, optional): The columns of features. The default: all others. Columns that are
            not used may hold anything.
        arms (sequence, optional): The arms that could be shown, in the order of their numbers. The default: those that
            were, sorted as labels are.
        missing ("error", "drop" or "mean", default "error"): What happens where a cell is missing, as in
            `read_labelled`: "mean" fills in features alone.
        missing_words (sequence of str, default ('', '?', 'NA', 'nan', 'NaN')): As in `read_losses`.

    Returns:
        Log: `features` [n, p], `arm` [n] from 0, `reward` [n], `propensity` [n] or None, `arm_names`, `feature_names`.
            `log.split(share=0.5, seed=0)` makes two of it, one to learn from and one to judge by; with seed=None the
            second is what came later. `log.check()` tabulates the arms.

    Raises:
        ValueError: As `read_losses`, with row and column of an arm that is not among `arms`, a reward that is not
            finite, or a propensity outside (0, 1]; for fewer than two rows or arms.

    Warns:
        UserWarning: As `read_labelled`; where the mean of 1 / propensity over an arm's rows, as a share of all rows, is
            further than 4 standard errors from 1; for arms with fewer than 10 rows, and propensities below 1/1000.

    >>> import pandas as pd
    >>> import jaxbandits as jb
    >>> rows = {"age": [31, 52, 44, 27] * 5, "shown": ["letter", "call"] * 10, "sale": [0, 1, 0, 0] * 5}
    >>> log = jb.read_logged(pd.DataFrame(rows), arm="shown", reward="sale", propensity="uniform")
    >>> log.arm_names, log.arm[:4].tolist(), log.check()["mean_weight"].tolist()
    (('call', 'letter'), [1, 0, 1, 0], [1.0, 1.0])
    """
    choice("missing", missing, ("error", "drop", "mean"))
    for name, given in (("features", features), ("arms", arms)):
        if given is not None and (isinstance(given, str) or not isinstance(given, Sequence | np.ndarray)):
            raise ValueError(f"{name} = {show(given)} must be a list")
    named = [arm, reward] if propensity in (None, UNIFORM) else [arm, reward, propensity]
    wanted = None if features is None else [*named, *features]
    table = table_of(source, missing_words, arm, wanted)
    rest = table.without(named) if wanted is None else table.pick(wanted).without(named)
    marks, numbers = file_marks(table.pick([arm])), table.pick(named[1:]).to_numbers()
    x = fill_means(rest.to_numbers(), missing)
    is_empty = np.column_stack([[mark is None for mark in marks], np.isnan(numbers), np.isnan(x)])
    complete = table.complete_rows([*map(str, named), *rest.names], is_empty, missing, filled=rest.names)
    rows = np.flatnonzero(complete)
    where = lambda column: lambda i: table.where(int(rows[i]), str(column))
    codes, names = _arms_of([marks[i] for i in rows], arms, where(arm))
    if len(names) < 2 or len(rows) < 2:
        what = f"there are {len(rows)} rows and {len(names)} arms ({few(names)}), and a log needs two of both"
        raise ValueError(f"{table.source}: {what}: arms=[...] names those that could be shown")
    chances = numbers[complete, 1] if len(named) == 3 else np.full(len(rows), 1 / len(names))
    _check_propensities(chances, where(propensity))
    say_identifiers(rest, x)
    found, chances = attach_names(x[complete], rest.names), None if propensity is None else chances
    log = Log(found, codes.astype(np.int32), numbers[complete, 0], chances, names, tuple(rest.names))
    _tabulate_arms(log, stacklevel=3)
    return log


def _arms_of(
    marks: list[Any], arms: Sequence[Any] | None, where: Callable[[int], str]
) -> tuple[np.ndarray[Any, Any], tuple[str, ...]]:
    """Marks as numbers of arms [n], and the arms' names. arms: those that there are; None: those that are seen."""
    codes, seen = classes_of(marks, where)
    if arms is None:
        return codes, seen
    places, known = classes_of(list(arms), lambda i: f"arms[{i}]")
    names = tuple(known[k] for k in places)
    if len(known) < len(names):
        raise ValueError(f"arms = {show(list(arms))} names an arm twice")
    unknown = np.flatnonzero(~np.isin(codes, [k for k, name in enumerate(seen) if name in names]))
    if len(unknown):
        i = int(unknown[0])
        raise ValueError(f"{where(i)}: {show(marks[i])} is none of the arms {few(names)}: add it to arms")
    return np.array([names.index(name) for name in seen])[codes], names
