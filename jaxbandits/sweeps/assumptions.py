"""What an algorithm assumes of the rewards' range, size and moments, compared with what the environment pays.

An assumption is never filled in from the environment. A wrong one is no error, but the user should know that the
guarantee does not hold. Moments: docs/formulas/private_robust_mab.md#model. Bounded rewards:
docs/formulas/robust_linear.md#edges. Federated privacy: docs/formulas/byzantine.md#privacy-noise and
docs/formulas/byzantine.md#names-and-edges.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.sweeps import precision, spent
from jaxbandits.sweeps.spent import overspent, paid, reach

ROUNDING = 1e-9  # relative; a bound that was computed from the same numbers counts as met
# what becomes of rewards outside the range, by `Rewards.outside`
FATES = {"clip": "clips others", "zero": "counts others as 0", "accept": "takes others as they are"}
CENTRAL_ESTIMATORS = ("median_of_means", "catoni")  # estimators whose moment bound is about X - mean


def unread(algorithm: Algorithm, environment: Environment) -> list[tuple[str, float, str, str]]:
    """Doubts where the environment pays rewards outside the range that the algorithm reads.

    A doubt is (subject, how far outside, text, what follows). There is none where the algorithm declares no range or
    the environment none, and none about what an adversary makes of rewards.
    """
    read, pays = algorithm.rewards, paid(environment)
    if read is None or pays is None:
        return []
    outside = 0.0
    if pays[0] < read.low - ROUNDING * max(1.0, abs(read.low)):
        outside = read.low - pays[0]
    if pays[1] > read.high + ROUNDING * max(1.0, abs(read.high)):
        outside = max(outside, pays[1] - read.high)
    # where privacy assumes bounded rewards, `exceeded` and `doubted` say more
    if outside == 0 or algorithm.guarantee.model == "federated" or overspent(algorithm, environment):
        return []
    text = (
        f"reads rewards in {interval(read.low, read.high)} and {FATES[read.outside]}, "
        f"and rewards here lie in {interval(*pays)}"
    )
    advice = (
        "its theory does not hold for them: use an environment that pays inside, or an algorithm that reads them "
        "(`jaxbandits list algorithms` says which rewards each one reads)"
    )
    return [("range", outside, text, advice)]


def interval(low: float, high: float) -> str:
    """An interval in text, open where it is infinite.

    >>> interval(0.0, 1.0), interval(-1.0, float("inf"))
    ('[0, 1]', '[-1, inf)')
    """
    return f"{'(' if np.isinf(low) else '['}{low:.4g}, {high:.4g}{')' if np.isinf(high) else ']'}"


def exceeded(algorithm: Algorithm, environment: Environment) -> tuple[float, str] | None:
    """How many times the most exceeded assumption is exceeded, and text about it; None where none is known to be."""
    if overspent(algorithm, environment):
        bound, epsilon = algorithm.guarantee.bound, algorithm.guarantee.spend(algorithm.params)[0]
        text = f"epsilon = {epsilon:g} is that of rewards in [-{bound:g}, {bound:g}], and rewards here go beyond"
        return np.inf, text + ": it is infinite (bernoulli_arms and linear_arms(noise='rademacher') pay bounded ones)"
    config, moment = algorithm.config, environment.facts.get("moment")
    if moment is not None and config.get("tail_index") is not None:
        return _tails(algorithm, environment)
    bound, order = config.get("moment_bound"), config.get("moment_order")
    if moment is None or bound is None or order is None:
        return None
    if np.isinf(order):  # rewards are bounded then, which `Rewards` declares
        return None
    central = config.get("moment") == "central" or config.get("estimator") in CENTRAL_ESTIMATORS
    what = f"E|X - mean|^{order:g}" if central else f"E|X|^{order:g}"
    found = [_excess(moment(order, central), what, "moment_bound", bound, "moment_order")]
    limit = config.get("mean_bound")
    if central and limit is not None:
        found.append(_excess(np.abs(environment.facts.get("means", [0.0])), "|mean|", "mean_bound", limit))
    return max(filter(None, found), default=None)


def _excess(sizes: Any, what: str, name: str, limit: float, order: str = "") -> tuple[float, str] | None:
    """How many times the size of the worst arm exceeds a declared limit, and text about it; None where it does not."""
    arm = int(np.argmax(sizes))
    if sizes[arm] <= limit * (1 + ROUNDING):
        return None
    remedy = f"lower {order}" if order and np.isinf(sizes[arm]) else f"declare at least {_above(sizes[arm])}"
    text = f"{what} of arm {arm} is {sizes[arm]:.4g}, above {name} = {limit:g}: {remedy}"
    return sizes[arm] / limit if limit > 0 else np.inf, text


def _tails(algorithm: Algorithm, environment: Environment) -> tuple[float, str] | None:
    """The assumption of HTINF: losses 1 - X have E|1 - X|^tail_index of at most tail_scale^tail_index."""
    order, scale = algorithm.config["tail_index"], float(algorithm.params.tail_scale)
    means = np.asarray(environment.facts["means"])
    norm = environment.facts["moment"](order) ** (1 / order)
    # The moments of X are known. The triangle inequality and Jensen's each bound that of 1 - X from below.
    sizes = np.maximum(np.abs(norm - 1), np.abs(means - 1))
    arm = int(np.argmax(sizes))
    if sizes[arm] <= scale * (1 + ROUNDING):
        return None
    remedy = "lower tail_index" if np.isinf(sizes[arm]) else f"declare at least {_above(sizes[arm])}"
    text = (
        f"E|1 - X|^{order:g} of arm {arm} is at least {sizes[arm]:.4g}^{order:g}, "
        f"above that of tail_scale = {scale:.4g}: {remedy}"
    )
    return sizes[arm] / scale, text


def doubted(algorithm: Algorithm, environment: Environment) -> list[tuple[str, float, str, str]]:
    """Doubts (subject, how many times too large, text, what follows) about federated privacy."""
    if algorithm.guarantee.model != "federated":
        return []
    doubts = list[tuple[str, float, str, str]]()
    size, share = reach(environment), algorithm.guarantee.noise_share(algorithm)
    if size > 1 + ROUNDING:
        extent = "are unbounded" if np.isinf(size) else f"reach {size:.4g}"
        text = f"rewards {extent}, and privacy assumes at most 1 (Assumption 2)"
        advice = "honest messages may be refused: use reward='bounded' with theta_norm + noise_scale <= 1"
        doubts.append(("rewards", size, text, advice))
    if share > 0.5:
        text = f"privacy noise swamps the data, at the end it is {share:.3g} times the information gathered"
        advice = "raise epsilon, the number of agents or the horizon, or lower window"
        doubts.append(("noise", share, text, advice))
    return doubts


def _above(x: float) -> str:
    """x rounded up to four digits."""
    unit = 10.0 ** (np.floor(np.log10(x)) - 3)
    return f"{np.ceil(x / unit * (1 - 1e-12)) * unit:.4g}"


def warn(cells: Sequence[tuple[Any, ...]], dtype: str, stacklevel: int) -> None:
    """Give one warning for a label and subject, about the worst cell (label, algorithm, environment, ...)."""
    worst: dict[tuple[str, str], list[Any]] = {}
    points: dict[tuple[str, str], int] = {}
    checked: dict[Any, list[Any]] = {}
    for label, algorithm, environment, *_ in cells:
        config = algorithm.config
        names = ("moment", "estimator", "moment_order", "moment_bound", "mean_bound", "tail_index", "tail_scale")
        key = (id(environment), overspent(algorithm, environment), *map(str, map(config.get, names)))
        if key not in checked:  # a grid over other arguments repeats the same assumption
            excess = exceeded(algorithm, environment)
            checked[key] = [] if excess is None else [("moments", *excess, "its guarantee does not hold")]
        found = doubted(algorithm, environment) + unread(algorithm, environment) + spent.doubts(algorithm)
        for about, *doubt in checked[key] + found + precision.doubts(algorithm, environment, dtype):
            points[label, about] = points.get((label, about), 0) + 1
            worst[label, about] = max(worst.get((label, about), doubt), doubt)
    for (label, about), (_, text, advice) in worst.items():
        total = sum(1 for cell in cells if cell[0] == label)
        where = f" (the worst of {points[label, about]} among {total} points)" if total > 1 else ""
        warnings.warn(f"{label}: {text}{where}; {advice}", UserWarning, stacklevel=stacklevel + 1)
