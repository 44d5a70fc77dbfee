"""What the studies share: the instance of Figure 1, its comparators, and the orders that the figure claims."""

import warnings
from functools import partial
from typing import Any

import numpy as np

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.papers.shared import ratio_interval
from jaxbandits.papers.study import Claim, Interval
from jaxbandits.statistics import mean_interval

NUM_ARMS, DIM, HORIZON = 100, 5, 20_000
EPSILONS = [0.2, 1.0, 10.0]
CONTEXTUAL = partial(e.contextual_linear, num_arms=NUM_ARMS, dim=DIM)
DELTA = 0.1  # ours: the paper states none


def private_rivals(**settings: object) -> dict[str, partial[Any]]:
    """The comparators with the constants of published code, and some settings."""
    published = partial(partial, preset="reference", **settings)
    return {
        "JDP": published(a.jdp_linucb),
        "SDP-Amp": published(a.shuffle_linucb, protocol="amplified"),
        "SDP-Vec": published(a.shuffle_linucb, protocol="vector"),
        "LDP": published(a.ldp_linucb),
    }


PRIVATE_RIVALS = private_rivals(delta=DELTA)
RIVALS = {"LinUCB": a.linucb} | PRIVATE_RIVALS
SDP = ["SDP-Amp", "SDP-Vec"]  # the paper does not say which of the two it drew: both are asked for
BELOW = {0.2: ["LDP"], 1.0: list(PRIVATE_RIVALS), 10.0: list(PRIVATE_RIVALS)}  # whom OnlineUCB is claimed to beat
ORDERS = {0.2: "O1", 1.0: "O2", 10.0: "O3"}
ALIKE = 0.2  # "as good as": means within this share


def below(what, difference) -> Interval:
    """That a paired difference [seed] is below zero on average: its 95% interval."""
    _, low, high = mean_interval(np.asarray(difference))
    return Interval(what, float(low), float(high), at_most=0.0)


def as_good(what, numerator, denominator) -> tuple[float, Interval]:
    """A ratio of mean regrets [seed] and its 95% interval, paired, which `ALIKE` asks to be near 1."""
    ratio, low, high = ratio_interval(numerator, denominator)
    return float(ratio), Interval(what, float(low), float(high), 1 - ALIKE, 1 + ALIKE)


def of_each(final) -> dict[str, Any]:
    """Final regrets [algorithm, seed] as {algorithm: [seed]}."""
    return dict(zip(final["algorithm"].values, final.transpose("algorithm", "seed").values, strict=True))


def excess(ours, rivals) -> tuple[float, float, float, str]:
    """The largest paired difference of final regrets [seed], ours minus a rival's: mean, low, high and the rival."""
    differences = {name: mean_interval(np.asarray(ours) - np.asarray(theirs)) for name, theirs in rivals.items()}
    worst = max(differences, key=lambda name: differences[name][0])
    return (*map(float, differences[worst]), worst)


def order(epsilon: float, ours, regret) -> Claim:
    """The figure's order at a privacy level: it holds where the interval of `excess` over its rivals is below zero."""
    mean, low, high, worst = excess(ours, {name: regret[name] for name in BELOW[epsilon]})
    measured, evidence = f"nearest rival {worst}: {mean:+,.0f}", Interval("interval", low, high, at_most=0.0)
    return Claim(f"{ORDERS[epsilon]}, ε = {epsilon:g}", f"below {', '.join(BELOW[epsilon])}", measured, evidence)


def true_privacy(algorithm, **settings) -> tuple[float, float]:
    """What a setting truly spends on a user: (epsilon, delta) at the delta it claims."""
    with warnings.catch_warnings():  # of what is about to be told
        warnings.simplefilter("ignore", UserWarning)
        built = algorithm(num_arms=NUM_ARMS, dim=DIM, horizon=HORIZON, **settings)
    return built.guarantee.spend(built.params)
