"""What a run asks for and what it spends of a unit's privacy, as its Dataset, warnings and ledger have it."""

import math
from typing import NamedTuple

import numpy as np

from jaxbandits.mechanisms.composition import claimed_epsilon
from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.spending import TOLERANCE


class Spent(NamedTuple):
    """One run's privacy. Where nothing is promised: NaN, inf, 0."""

    asked: float  # epsilon; NaN where none is named
    epsilon: float
    delta: float


def paid(environment: Environment) -> tuple[float, float] | None:
    """The range (low, high) of an environment's rewards: its `reward_range`, or +-`reward_bound`; None without both."""
    facts = environment.facts
    if "reward_range" in facts:
        low, high = facts["reward_range"]
        return float(low), float(high)
    return (-facts["reward_bound"], facts["reward_bound"]) if "reward_bound" in facts else None


def reach(environment: Environment) -> float:
    """The largest absolute value of a reward; 0 where the environment does not say."""
    low, high = paid(environment) or (0.0, 0.0)
    return max(abs(low), abs(high))


def spent(algorithm: Algorithm, environment: Environment | None) -> Spent:
    """What a run spends. Infinitely much where the environment pays rewards beyond those of the guarantee."""
    claim = algorithm.guarantee
    if claim.model == "none":
        return Spent(math.nan, math.inf, 0.0)
    epsilon, delta = map(float, claim.spend(algorithm.params))
    if environment is not None and overspent(algorithm, environment):
        epsilon = math.inf
    asked = claimed_epsilon(algorithm)
    return Spent(math.nan if asked is None else asked, epsilon, 0.0 if math.isinf(epsilon) else delta)


def overspent(algorithm: Algorithm, environment: Environment) -> bool:
    """Whether a finite epsilon is declared for smaller rewards than the environment pays, as far as that is known."""
    beyond = reach(environment) > algorithm.guarantee.bound
    return beyond and bool(np.isfinite(algorithm.guarantee.spend(algorithm.params)[0]))


def doubts(algorithm: Algorithm) -> list[tuple[str, float, str, str]]:
    """Doubts (subject, how large, text, what follows) where more is spent than is asked for, or delta is large."""
    if algorithm.guarantee.model == "none":
        return []
    found, config = list[tuple[str, float, str, str]](), algorithm.config
    try:
        asked, epsilon, delta = spent(algorithm, None)
    except Exception:  # a malformed guarantee is named by the checks of parts
        return []
    if epsilon > (1 + TOLERANCE) * asked:
        much = "infinity" if math.isinf(epsilon) else f"{epsilon:.3g}"
        presets = (name for name in ("preset", "calibration") if config.get(name) not in (None, "exact"))
        remedy = next((f"{name}='exact' keeps it" for name in presets), "ds.epsilon_spent has it for every point")
        found.append(("spent", epsilon / asked, f"asked for epsilon {asked:g}, spends {much}", remedy))
    horizon, delta = config.get("horizon"), max(delta, float(config.get("delta") or 0))
    if horizon and delta > 1.000001 / horizon:
        text = f"delta = {delta:g} exceeds 1 / horizon = {1 / horizon:.3g}: it allows to publish one play's data whole"
        found.append(("delta", delta * horizon, text, "bind a smaller one"))
    return found
