"""The cited lemmas with explicit constants, enumerated."""

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax
from scipy.stats import binom

from jaxbandits.formatting import format_number
from jaxbandits.mechanisms.composition import composed_epsilon
from jaxbandits.papers.study import Claim, Claims, Exact, Results, Study, nothing
from jaxbandits.reports import plot
from jaxbandits.typing import Numeric

ROUNDING = 1e-9  # of a ratio
MECHANISMS = 200  # finite ones that are tried
RATES, MIXINGS = (0.1, 0.3, 1.0), (0.2, 0.5, 1.0)
LARGE = 10.0  # a loss outside of [-1, 1]
PLAYS = (10, 1000, 1_000_000)  # of Lemma B.3
EXPERTS = 2 ** np.arange(17)


def games(plays: int, arms: int, values: tuple[float, ...]) -> np.ndarray[Any, Any]:
    """All sequences of losses [sequence, play, arm] of these values."""
    rows = np.array(list(itertools.product(values, repeat=arms)))
    index = np.array(list(itertools.product(range(len(rows)), repeat=plays)))
    return rows[index]


def weights_ratio(losses: np.ndarray[Any, Any], rate: float) -> float:
    """Lemma F.1: the largest regret of multiplicative weights over its bound; losses [sequence, play, expert]."""
    total, spent, squares = np.zeros_like(losses[:, 0]), np.zeros(len(losses)), np.zeros(len(losses))
    for loss in losses.swapaxes(0, 1):
        p = softmax(-rate * total, -1)
        spent, squares, total = spent + (p * loss).sum(-1), squares + (p * loss**2).sum(-1), total + loss
    bound = math.log(losses.shape[2]) / rate + rate * squares
    return float(((spent - total.min(-1)) / bound).max())


def exp3_regret(losses: np.ndarray[Any, Any], rate: float, mixing: float, last: Any = None) -> np.ndarray[Any, Any]:
    """EXP3's expected loss less that of the best arm, over all histories; losses [sequence, play, 2].

    last: losses of a last play, whose arm is drawn and not learned from [sequence, 2].
    """
    estimate, chance = np.zeros((len(losses), 1, 2)), np.ones((len(losses), 1))
    spent, total = np.zeros(len(losses)), losses.sum(1)
    for play in range(losses.shape[1] + (last is not None)):
        p = (1 - mixing) * softmax(-rate * estimate, -1) + mixing / 2
        loss = losses[:, play] if play < losses.shape[1] else last
        spent += (chance[..., None] * p * loss[:, None]).sum((1, 2))
        seen = loss[:, None, :] / p
        steps = [estimate + seen * np.eye(2)[arm] for arm in range(2)]
        estimate, chance = np.concatenate(steps, 1), np.concatenate([chance * p[..., arm] for arm in range(2)], 1)
    return spent - (total if last is None else total + last).min(-1)


def exp3_bound(losses: np.ndarray[Any, Any], rate: float, mixing: float) -> np.ndarray[Any, Any]:
    """Lemma E.2: 2 gamma T + log K / eta + eta times the sum of all squared losses [sequence]."""
    return 2 * mixing * losses.shape[1] + math.log(2) / rate + rate * (losses**2).sum((1, 2))


def batches_ratio(rate: float, mixing: float) -> float:
    """Theorem 3.5: EXP3 in two batches of two plays and one more, over tau R(T / tau) + tau."""
    losses, window = games(5, 2, (0.0, 1.0)), 2
    means, last = losses[:, :4].reshape(-1, 2, window, 2).mean(2), losses[:, 4]
    # EXP3 gets the means; a batch costs `window` times as much as a play of it, and the last play is the third batch's
    with_last = exp3_regret(means, rate, mixing, last) + (means.sum(1) + last).min(-1)
    without = exp3_regret(means, rate, mixing) + means.sum(1).min(-1)
    doubled = window * without + (with_last - without) - losses.sum(1).min(-1)
    worst = exp3_regret(games(2, 2, (0.0, 0.5, 1.0)), rate, mixing).max()
    return float((doubled / (window * worst + window)).max())


def mechanism(rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Positive probabilities of outputs, the last axis."""
    return softmax(rng.uniform(-1, 1, size), -1)


def composition_ratio(rng: np.random.Generator, releases: int = 4, outputs: int = 3) -> float:
    """Lemmas A.4 and A.5: privacy loss of adaptive releases over the sum of their epsilons."""
    loss, budget = np.zeros(1), 0.0
    for _ in range(releases):  # a mechanism for every history of outputs, on both of two neighbouring inputs
        one, other = mechanism(rng, (len(loss), outputs)), mechanism(rng, (len(loss), outputs))
        own = np.log(one / other)
        budget, loss = budget + np.abs(own).max(), (loss[:, None] + own).ravel()
    return float(np.abs(loss).max() / budget)


def advanced_ratio() -> float:
    """Lemma A.6: the delta of randomized responses at the epsilon that it allows, over its own delta."""
    ratios = []
    for times, epsilon, delta in itertools.product((2, 10, 100, 1000), (0.01, 0.1, 0.5), (1e-6, 1e-3, 0.1)):
        truths = np.arange(times + 1)
        losses = (2 * truths - times) * epsilon
        allowed = composed_epsilon(epsilon, times, delta)
        chance = binom.pmf(truths, times, 1 / (1 + math.exp(-epsilon)))
        ratios.append((chance * -np.expm1(np.minimum(allowed - losses, 0))).sum() / delta)
    return float(max(ratios))


def postprocessing_ratio(rng: np.random.Generator) -> float:
    """Lemma A.7: delta at an epsilon of a mechanism whose output is processed at random, over that before."""
    one, other = mechanism(rng, (2, 6))
    process = mechanism(rng, (6, 4))
    epsilon = rng.uniform(0, np.abs(np.log(one / other)).max())

    def delta(p, q):
        return np.maximum(p - math.exp(epsilon) * q, 0).sum()

    before = max(delta(one, other), delta(other, one))
    return float(max(delta(one @ process, other @ process), delta(other @ process, one @ process)) / before)


def group_ratio(rng: np.random.Generator, records: int = 4, outputs: int = 5) -> float:
    """Lemma A.8: privacy loss of inputs that differ in k of the records, over k times the epsilon."""
    inputs = np.array(list(itertools.product((0, 1), repeat=records)))
    apart = (inputs[:, None] != inputs[None]).sum(-1)
    logs = np.log(mechanism(rng, (len(inputs), outputs)))
    loss = np.abs(logs[:, None] - logs[None]).max(-1)
    epsilon = loss[apart == 1].max()
    return float((loss / np.maximum(apart * epsilon, 1e-300))[apart > 0].max())


def norm_limit(experts: Numeric, plays: Numeric) -> Numeric:
    """Lemma B.3: 10 log^2(N T), the limit of a squared norm in units of the noise's squared scale."""
    return 10 * np.log(np.asarray(experts) * plays) ** 2


def passing(experts: int, plays: int) -> float:
    """At least so likely a Laplace vector's Euclidean norm passes the limit at one play.

    Its square has mean 2 N and variance 20 N: the one-sided inequality of Chebyshev and Cantelli.
    """
    above = 2 * experts - float(norm_limit(experts, plays))
    return above**2 / (above**2 + 20 * experts) if above > 0 else 0.0


def compute_lemma_ratios(full: bool) -> dict[str, Any]:
    """The largest ratio of the two sides of every lemma, and how many cases it is of."""
    rng = np.random.default_rng(0)
    small, wide = games(4, 2, (-1.0, 0.0, 1.0)), games(3, 3, (-1.0, 0.0, 1.0))
    halved = [(mixing / 2, mixing) for mixing in MIXINGS]  # half the mixing: no estimate times the rate is below -1
    found = {
        "batches": max(batches_ratio(*rates) for rates in halved),
        "weights": max(weights_ratio(one, rate) for one in (small, wide) for rate in RATES),
        "exp3": max(float((exp3_regret(small, *rates) / exp3_bound(small, *rates)).max()) for rates in halved),
        "composition": max(composition_ratio(rng) for _ in range(MECHANISMS)),
        "advanced": advanced_ratio(),
        "processed": max(postprocessing_ratio(rng) for _ in range(MECHANISMS)),
        "group": max(group_ratio(rng) for _ in range(MECHANISMS)),
        "norms": max(float(n * t) ** (1 - math.sqrt(10)) * t for n in EXPERTS for t in (1, *PLAYS)),
    }
    return {"ratios": found, "sequences": len(small) + len(wide), "games": len(small)}


def draw(results: Results) -> plot.Plot:
    ratios = {f"T = {plays:,}": 2 * EXPERTS / norm_limit(EXPERTS, plays) for plays in PLAYS} | {"the limit": 1.0}
    table = pd.DataFrame({"experts": EXPERTS} | ratios).melt("experts", var_name="line", value_name="ratio")
    return plot.lines(
        table[["experts", "ratio", "line"]], "experts", "ratio", line="line", log="both", width=6.0,
        names={"experts": "experts N", "ratio": "mean of the squared norm over the limit"},
        caption="Lemma B.3 for the Euclidean norm of N Laplace draws: false where a line is above the limit",
        dotted={"the limit": f"T = {PLAYS[-1]:,}"},
    )  # fmt: skip


def claims(results: Results) -> Claims:
    found, sequences, small = results["ratios"], f"{results['sequences']:,}", f"{results['games']:,}"
    tried = f"{MECHANISMS} finite mechanisms"
    rows = [
        ("Theorem 3.5, τ R(T/τ) + τ: EXP3 in batches", "batches", "1,024 sequences of losses 0 and 1, three mixings"),
        ("Lemma F.1: multiplicative weights, losses in [-1, 1]", "weights", f"{sequences} sequences, three rates"),
        ("Lemma E.2: EXP3, losses in [-1, 1]", "exp3", f"{small} sequences, three mixings, all histories"),
        ("Lemmas A.4 and A.5, sum of the ε: adaptive releases", "composition", f"{tried}, four releases"),
        ("Lemma A.6, as composed in the ledger: randomized responses", "advanced", "36 cases, 2 to 1,000 releases"),
        ("Lemma A.7: outputs processed at random", "processed", tried),
        ("Lemma A.8, k ε: inputs that differ in k of four records", "group", tried),
        ("Lemma B.3: largest coordinate, by the union bound", "norms", f"N to {EXPERTS[-1]:,}, T to {PLAYS[-1]:,}"),
    ]
    paper = "at most 1 of the bound"
    for statement, key, of in rows:
        measured = f"{format_number(found[key])} at most ({of})"
        yield Claim(statement, paper, measured, Exact(found[key], at_most=1 + ROUNDING))
    regret, losses = 1000 * LARGE / 2, np.broadcast_to([0.0, LARGE], (1, 1000, 2))
    bound = float(exp3_bound(losses, 1 / (LARGE * math.sqrt(1000)), 1.0)[0])
    measured = f"regret {regret:,.0f} of {bound:,.0f}, {regret / bound:.2f} times it (all play mixed in)"
    yield Claim(f"Lemma E.2: EXP3, losses 0 and {LARGE:g}", paper, measured, Exact(regret / bound, at_most=1.0))
    for plays in PLAYS[1:]:
        experts = int(next(n for n in EXPERTS if passing(int(n), plays) > 1 / plays))
        chance = passing(experts, plays)
        measured = f"passed with probability {chance:.2f} at least, at one play, from N = {experts:,} on (powers of 2)"
        evidence = Exact(chance, at_most=1 / plays)
        yield Claim(f"Lemma B.3: Euclidean norm, T = {plays:,}", "probability 1/T at most", measured, evidence)


SOURCE = "Theorem 3.5, Lemmas A.4 to A.8, B.3, E.2 and F.1"
STUDY = Study(__doc__, SOURCE, nothing, {"norms": draw}, claims, compute_lemma_ratios)
