"""What an algorithm believes about the rewards' range, size and moments, held against what the environment pays.

A belief is never filled in from the environment; a wrong one is not an error either, but its user should know: the guarantee is
void. Private and robust bandits, sections 1 and 8 (moments); robust linear bandits, section 10; Byzantine-robust federated
bandits, sections 4 and 10 (privacy).
"""

import warnings
from typing import Any

import numpy as np

from jaxbandits.protocol import Algorithm, Environment

ROUNDING = 1e-9  # a range computed from the same numbers is kept
# what becomes of rewards outside, for `Rewards.outside`
FATES = {"clip": "clips others", "zero": "counts others as 0", "accept": "takes others as they are"}
CENTRAL = ("median_of_means", "catoni")  # estimators whose moment bound is about X - mean


def paid(environment: Environment) -> tuple[float, float] | None:
    """(low, high) of the rewards that an environment says it pays: `reward_range`, or both signs of `reward_bound`. None: it does not say."""
    facts = environment.facts
    if "reward_range" in facts:
        low, high = facts["reward_range"]
        return float(low), float(high)
    return (-facts["reward_bound"], facts["reward_bound"]) if "reward_bound" in facts else None


def reach(environment: Environment) -> float:
    """The largest size of a reward; 0 where the environment does not say."""
    low, high = paid(environment) or (0.0, 0.0)
    return max(abs(low), abs(high))


def overspent(algorithm: Algorithm, environment: Environment) -> bool:
    """Whether a finite epsilon is declared for smaller rewards than the environment pays; nothing known counts as no."""
    claim = algorithm.guarantee
    return reach(environment) > claim.bound and bool(np.isfinite(claim.spend(algorithm.params)[0]))


def unread(algorithm: Algorithm, environment: Environment) -> list[tuple[str, float, str, str]]:
    """(about what, how far outside, what is said, what follows) where the environment pays rewards that the algorithm does not read.

    Nothing declared or nothing known counts as read. What an adversary makes of rewards is no matter of this.
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
    said = f"reads rewards in {interval(read.low, read.high)} and {FATES[read.outside]}, and rewards here lie in {interval(*pays)}"
    advice = (
        "its theory does not hold for them: use an environment that pays inside, or an algorithm that reads them "
        "(`jaxbandits list algorithms` says which rewards each one reads)"
    )
    return [("range", outside, said, advice)]


def interval(low: float, high: float) -> str:
    """An interval in text, open where it is infinite.

    >>> interval(0.0, 1.0), interval(-1.0, float("inf"))
    ('[0, 1]', '[-1, inf)')
    """
    return f"{'(' if np.isinf(low) else '['}{low:.4g}, {high:.4g}{')' if np.isinf(high) else ']'}"


def exceeded(algorithm: Algorithm, environment: Environment) -> tuple[float, str] | None:
    """(how many times too large, what is said) of the belief that is exceeded most; None where all hold or nothing is known."""
    if overspent(algorithm, environment):
        bound, epsilon = algorithm.guarantee.bound, algorithm.guarantee.spend(algorithm.params)[0]
        said = f"epsilon = {epsilon:g} is that of rewards in [-{bound:g}, {bound:g}], and rewards here go beyond: it is infinite"
        return np.inf, said + " (bernoulli_arms and linear_arms(noise='rademacher') pay bounded ones)"
    config, moment = algorithm.config, environment.facts.get("moment")
    if moment is not None and config.get("tail_index") is not None:
        return _tails(algorithm, environment)
    bound, order = config.get("moment_bound"), config.get("moment_order")
    if moment is None or bound is None or order is None:
        return None
    central = config.get("moment") == "central" or config.get("estimator") in CENTRAL
    found = []
    sizes = moment(order, central)
    arm = int(np.argmax(sizes))
    if sizes[arm] > bound * (1 + 1e-9):  # a bound computed from the same numbers is kept
        what = f"E|X - mean|^{order:g}" if central else f"E|X|^{order:g}"
        remedy = "lower moment_order" if np.isinf(sizes[arm]) else f"declare at least {_above(sizes[arm])}"
        said = f"{what} of arm {arm} is {sizes[arm]:.4g}, above moment_bound = {bound:g}: {remedy}"
        found.append((sizes[arm] / bound if bound > 0 else np.inf, said))
    limit = config.get("mean_bound")
    means = np.abs(environment.facts.get("means", [0.0]))
    arm = int(np.argmax(means))
    if central and limit is not None and means[arm] > limit * (1 + 1e-9):
        said = f"|mean| of arm {arm} is {means[arm]:.4g}, above mean_bound = {limit:g}: declare at least {_above(means[arm])}"
        found.append((means[arm] / limit if limit > 0 else np.inf, said))
    return max(found) if found else None


def _tails(algorithm: Algorithm, environment: Environment) -> tuple[float, str] | None:
    """The belief of HTINF: losses 1 - X have E|1 - X|^tail_index of at most tail_scale^tail_index."""
    order, scale = algorithm.config["tail_index"], float(algorithm.params.tail_scale)
    means = np.asarray(environment.facts["means"])
    norm = environment.facts["moment"](order) ** (1 / order)
    # of X, whose moments are known: the triangle inequality bounds that of 1 - X from below, Jensen's another way
    sizes = np.maximum(np.abs(norm - 1), np.abs(means - 1))
    arm = int(np.argmax(sizes))
    if sizes[arm] <= scale * (1 + ROUNDING):
        return None
    remedy = "lower tail_index" if np.isinf(sizes[arm]) else f"declare at least {_above(sizes[arm])}"
    said = f"E|1 - X|^{order:g} of arm {arm} is at least {sizes[arm]:.4g}^{order:g}, above that of tail_scale = {scale:.4g}: {remedy}"
    return sizes[arm] / scale, said


def doubted(algorithm: Algorithm, environment: Environment) -> list[tuple[str, float, str, str]]:
    """(about what, how many times too large, what is said, what follows) where rewards or noise defeat federated privacy."""
    if algorithm.guarantee.model != "federated":
        return []
    found = []
    size, share = reach(environment), algorithm.guarantee.noise_share(algorithm)
    if size > 1 + ROUNDING:
        extent = "are unbounded" if np.isinf(size) else f"reach {size:.4g}"
        said = f"rewards {extent}, and privacy assumes at most 1 (Assumption 2)"
        advice = "honest messages may be refused: use reward='bounded' with theta_norm + noise_scale <= 1"
        found.append(("rewards", size, said, advice))
    if share > 0.5:
        said = f"privacy noise swamps the data, at the end it is {share:.3g} times the information gathered"
        advice = "raise epsilon, the number of agents or the horizon, or lower window"
        found.append(("noise", share, said, advice))
    return found


def _above(x: float) -> str:
    """x rounded up to four digits."""
    unit = 10.0 ** (np.floor(np.log10(x)) - 3)
    return f"{np.ceil(x / unit * (1 - 1e-12)) * unit:.4g}"


def warn(cases: list[tuple[str, Any, Any]], stacklevel: int) -> None:
    """One warning a label, at its worst case: (label, algorithm, environment) of every point."""
    worst: dict[tuple[str, str], list] = {}
    points: dict[tuple[str, str], int] = {}
    checked: dict = {}
    for label, algorithm, environment in cases:
        config = algorithm.config
        names = ("moment", "estimator", "moment_order", "moment_bound", "mean_bound", "tail_index", "tail_scale")
        key = (id(environment), overspent(algorithm, environment), *(str(config.get(name)) for name in names))
        if key not in checked:  # a grid over other things repeats the same belief
            found = exceeded(algorithm, environment)
            checked[key] = [] if found is None else [("moments", *found, "its guarantee does not hold")]
        for about, *doubt in checked[key] + doubted(algorithm, environment) + unread(algorithm, environment):
            points[label, about] = points.get((label, about), 0) + 1
            worst[label, about] = max(worst.get((label, about), doubt), doubt)
    for (label, about), (_, said, advice) in worst.items():
        total = sum(1 for case in cases if case[0] == label)
        where = f" (the worst of {points[label, about]} among {total} points)" if total > 1 else ""
        warnings.warn(f"{label}: {said}{where}; {advice}", UserWarning, stacklevel=stacklevel + 1)
