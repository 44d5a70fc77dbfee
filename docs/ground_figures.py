"""The figures in the grounds of docs/verdicts.md: none is typed, each is read from a page or computed here.

A row of verdicts.toml names them in `figures`: {name} of its text -> where from,

    "PAPER/FIGURE: statement ~ pattern"   what the pattern finds first in that line's cells
    "largest: PAPER/FIGURE: statement ~ pattern"   the largest number that it finds in these lines; * is any text
    "page: privacy.md ~ pattern"          the same in a page
    "computed: name"                      a function of this file

and a pattern's first group, if it has one, is what is shown. It may not end with a comma or a point of its sentence.
"""

import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import study_tables as pages

from jaxbandits import mechanisms, theory
from jaxbandits.papers.private_adversarial.experts_map import NUM_ARMS as EXPERTS_ARMS
from jaxbandits.papers.private_adversarial.experts_map import compute_bounds_map
from jaxbandits.papers.private_robust_mab.moment_order import EPSILONS, HORIZONS, slope_of_order
from jaxbandits.papers.verdicts import Verdict

DOCS = Path(__file__).resolve().parent


def fill(text: str, row: Verdict, docs: Path) -> str:
    """The text with its figures. ValueError where one is not found."""
    return re.sub(r"\{(\w+)\}", lambda found: find_figure(row, found[1], docs), text)


def find_figure(row: Verdict, name: str, docs: Path) -> str:
    source = row.figures[name]
    kind, _, rest = source.partition(": ")
    if kind == "computed":
        return COMPUTED[rest]()
    where, _, pattern = rest.rpartition(" ~ ")
    if kind == "largest":
        return find_largest(where, pattern, docs)
    if kind == "page":
        text = (docs / where).read_text(encoding="utf-8")
    else:
        lines = [line for line in pages.study_text(kind, docs).splitlines() if line.startswith(f"| {where} |")]
        text = "\n".join(lines)
    found = re.search(pattern, text)
    if not found:
        raise ValueError(f"{row.number}: {name}: nothing is {source!r}")
    return _whole(found[1] if found.groups() else found[0], source)


def _whole(figure: str, source: str) -> str:
    """The figure. ValueError where the pattern took a comma or a point after it, too."""
    if figure.endswith((",", ".")):
        raise ValueError(f"{source!r} is {figure!r}: give a pattern that ends before the comma or point")
    return figure


def find_largest(where: str, pattern: str, docs: Path) -> str:
    study, _, like = where.partition(": ")
    shape = re.compile(".*".join(map(re.escape, like.split("*"))))
    lines = (line.strip("| ").split(" | ") for line in pages.study_text(study, docs).splitlines())
    found = [x for line in lines if shape.fullmatch(line[0]) for cell in line[1:] for x in re.findall(pattern, cell)]
    if not found:
        raise ValueError(f"nothing is {where} ~ {pattern}")
    return _whole(max(found, key=lambda x: float(x.replace(",", ""))), f"{where} ~ {pattern}")


def cells_of_batched_exp4() -> str:
    """Of the cells of Table 2's third region on the map of `experts-map`, those in which batched EXP4 is best.

    Rates are compared without logarithms and without the term √N/ε.
    """
    frame = compute_bounds_map(full=True)["bounds"]
    region = frame[frame["region"] & frame["panel"].str.startswith("rates")]
    horizons = region["panel"].str.extract(r"T = (\S+)")[0].astype(float)
    arms, count = float(EXPERTS_ARMS), 0
    for n, epsilon, horizon in zip(region["num_experts"], region["epsilon"], horizons, strict=True):
        as_arms, local = math.sqrt(n * horizon / epsilon), math.sqrt(arms * horizon) / epsilon
        count += n ** (1 / 6) * math.sqrt(arms) * horizon ** (2 / 3) / epsilon ** (1 / 3) <= min(as_arms, local)
    return f"{count:,} of {len(region):,}"


def round_up(x: float, digits: int = 2) -> str:
    step = 10.0 ** (math.floor(math.log10(x)) - digits + 1)
    return f"{math.ceil(x / step - 1e-9) * step:.10g}"


def local_divergence() -> float:
    """T plays at epsilon = 1/√T, at most: T (e^(1/√T) - 1)²/4, largest at T = 1."""
    return (math.e - 1) ** 2 / 4


def local_cost() -> str:
    """A gap of 1/4, twice: one of two hypotheses is missed half of the time with probability exp(-KL)/4 at least."""
    return f"{math.floor(1e4 * math.exp(-local_divergence()) / 32) / 1e4:g}"


def lemma_5_1(log_ratio: float) -> float:
    """Least of the larger of γT/4 and the second term over √(T/ε), at p ε = `log_ratio`, τ₀ = 0.1 √(T/ε), γ ≤ 1/2.

    With γ = g √(1/(εT)) they are g/4 and a/g - 0.05, a = (1 - e^(pε)/2) pε/4.
    """
    a = (1 - math.exp(log_ratio) / 2) * log_ratio / 4
    return (math.sqrt(0.05**2 + a) - 0.05) / 2


def lemma_5_1_gamma(epsilon: float = 0.1, p: float = 4.0) -> str:
    """The least γ, rounded up, at which the window of ⌊p/γ⌋ plays lies in the first batch of ⌈1/ε⌉ plays of one arm.

    That arm is a fair coin, and p is less than the batch: E_p is that it is not arm 2.
    """
    batch = math.ceil(1 / epsilon)
    gamma = math.ceil(1e3 * p / (batch + 1)) / 1e3
    if not 0.35 <= p * epsilon <= 0.65 or p >= batch or math.floor(p / gamma) > batch:
        raise ValueError("the lemma's conditions are not met")
    return f"{gamma:g}"


def largest_laplace(num_arms: float) -> float:
    """The mean of the largest of K standard Laplace draws, log(K/2) + 0.577, for many arms."""
    return math.log(num_arms / 2) + float(np.euler_gamma)


def lemma_e4_ratio(num_arms: float = 1e4, horizon: float = 1e9) -> str:
    """What the second entry of η's minimum costs over 11 λ √(KT log K) log(KT) + 10, at λ = 1/log(KT).

    The plays of other arms add up to the mean of the largest of K Laplace draws, over η.
    """
    size = math.log(num_arms * horizon)
    cost = largest_laplace(num_arms) * math.sqrt(num_arms * horizon) * (1 + 4 * math.log(horizon) / size)
    return f"{cost / (11 * math.sqrt(num_arms * horizon * math.log(num_arms)) + 10):.2f}"


def corollary_e3_ratio(num_arms: float = 1e8, horizon: float = 1e24, epsilon: float = 0.99) -> str:
    """The same for Corollary E.3's tuning, over 2/ε (11 √(KεT log K) log(KεT) + 10) + 2/ε; two digits, rounded down.

    ValueError where that bound says nothing.
    """
    plays = epsilon * horizon
    cost = math.ceil(1 / epsilon) * largest_laplace(num_arms) * math.sqrt(num_arms * plays) * (1 + 4 * math.log(plays))
    root = math.sqrt(num_arms * plays * math.log(num_arms))
    bound = 2 / epsilon * (11 * root * math.log(num_arms * plays) + 11)
    if bound >= horizon:
        raise ValueError("the bound is above T")
    return f"{math.floor(10 * cost / bound) / 10:g}"


def slope(order: int, *, upper: bool) -> str:
    return f"{slope_of_order(order, EPSILONS[True], HORIZONS[True], upper=upper):.2f}"


def figure_1_crossing(dim: int = 50, epsilon: float = 0.1, *, horizon: int = 10_000, source: Any = "theorem") -> str:
    """The T from which on the order of M2 is below that of M1, by the informal theorems, up to `horizon`.

    ValueError where they do not cross within.
    """
    action = partial(theory.robust_linear_action_bound, dim, epsilon=epsilon, source=source)
    above = [T for T in range(1, horizon + 1) if action(T) >= theory.robust_linear_reward_bound(dim, T, epsilon)]
    if not above or above[-1] == horizon:
        raise ValueError(f"the orders do not cross for T in 1 to {horizon}")
    return f"{above[-1] + 1}"


def over_order(study: str, statement: str, label: str, order: float) -> str:
    """Regret in a line of a study over an order."""
    (line,) = (x for x in pages.study_text(study, DOCS).splitlines() if x.startswith(f"| {statement} |"))
    (regret,) = re.findall(rf"\b{label} ([\d,]+)", line)
    return f"{float(regret.replace(',', '')) / order:.2f}"


def error_with_the_clean_bound() -> str:
    """The largest error with the clean variance bound over 2d√α, in the cells of `filter` with corruption."""
    ratios = [
        float(error) / (2 * float(dim) * math.sqrt(float(share)))
        for dim, share, error in re.findall(
            r"^\| error, d = (\d+), n = [\d,]+, α = (0\.\d+) \|.*clean bound ([\d.]+),",
            pages.study_text("robust-linear/filter", DOCS),
            flags=re.M,
        )
    ]
    return f"{max(ratios):.2f}"


def byzantine_useful_from(num_agents: int = 10, dim: int = 4, corruption: float = 0.3) -> str:
    """A power of ten up to which the last two terms of Theorem 6's bound without noise, with 200, exceed 2 N √d T."""
    factor = (2 - 2 * corruption) / (1 - 2 * corruption)
    for power in range(1, 40):  # it grows more slowly than T
        plays = 10.0**power
        iota = math.log(128 * num_agents * plays / 0.05)
        ridge, numerator = 8 * factor * math.sqrt(plays * iota), math.sqrt(plays * iota) * factor * 1.5
        bound = 200 * num_agents * dim * math.sqrt(plays * iota) * (math.sqrt(ridge) + numerator / math.sqrt(ridge))
        if bound < 2 * num_agents * math.sqrt(dim) * plays:
            break
    if power in (1, 39):
        raise ValueError("they do not cross within the T looked at")
    return f"10^{power - 1}"


def agents_for_median_of_means() -> str:
    """The fewest agents N at which 64/√N is no more than 4 C_α, α = 1/N."""
    return f"{next(n for n in range(3, 10_000) if 64 / math.sqrt(n) <= 4 * (2 - 2 / n) / (1 - 2 / n))}"


def slack_of_lemma_12() -> str:
    """Of σ over R: (3 - √1.5) 8 C σ √(L ι k) covers (√2 - 1) 4 C (σ + R) √(L ι k)."""
    owed, slack = 4 * (math.sqrt(2) - 1), 8 * (3 - math.sqrt(1.5))
    return round_up(owed / (slack - owed))


def attacks_that_double() -> str:
    """With one of ten agents attacked: at how many of the attacks the mean's regret is more than twice what it was."""
    text = pages.study_text("byzantine/attacks", DOCS)
    grown = re.findall(r"^\| [^|]*: mean at 0, 0\.1, [^|]*\|  \| [\d.,]+, ([\d.]+),", text, flags=re.M)
    if not grown:
        raise ValueError("byzantine/attacks: no line is about the mean")
    return f"{sum(float(x) > 2 for x in grown)} of {len(grown)}"


def reconstruction_spends(epsilon: float = 4.0, delta: float = 0.001) -> str:
    """The epsilon that Theorem 6's reconstructed noise spends at most: a message lies in as many nodes m as printed.

    These m nodes move by √(6 m) L together, and each has noise of scale 8 √m L log(4/δ)/ε.
    """
    return f"{mechanisms.gaussian_epsilon(math.sqrt(6), 8 * math.log(4 / delta) / epsilon, delta):.2f}"


def reconstruction_until() -> str:
    """Up to which epsilon over log²(4/δ) that noise spends at most epsilon, by concentrated privacy; rounded down.

    With L = log(4/δ) it spends 3 ε²/(64 L²) + √(12 log(1/δ)) ε/(8 L), and the root over L is largest at δ = 1/4.
    """
    share = math.sqrt(12 * math.log(4)) / (8 * math.log(16))
    return f"{math.floor(64 / 3 * (1 - share))}"


COMPUTED: dict[str, Callable[[], str]] = {
    "cells_of_batched_exp4": cells_of_batched_exp4,
    "local_divergence": lambda: round_up(local_divergence()),
    "local_cost": local_cost,
    "lemma_5_1_least": lambda: f"{min(map(lemma_5_1, np.linspace(0.35, 0.65, 31))):.3f}",
    "lemma_5_1_near": lambda: f"{lemma_5_1(0.69):.4f}",
    "lemma_e4_ratio": lemma_e4_ratio,
    "corollary_e3_ratio": corollary_e3_ratio,
    "corollary_4_3_early": lambda: f"{theory.htinf_experts_bound(3, 1_000, 1):,.0f}",
    "theorem_4_4_early": lambda: f"{theory.local_exp4_bound(3, 3, 1_000, 1):,.0f}",
    "lemma_5_1_gamma": lemma_5_1_gamma,
    # ε²/(6 log(1/δ)) + √(2/3) ε ≤ ε (A33)
    "delta_of_theorem_4_5": lambda: round_up(1 / (6 * (1 - math.sqrt(2 / 3))), 3),
    "figure_1_crossing": figure_1_crossing,
    "error_with_the_clean_bound": error_with_the_clean_bound,
    "m1_over_its_order": lambda: over_order(
        "robust-linear/dimension", "regret, d = 20, share 0%", "M1", theory.robust_linear_reward_bound(20, 100_000)
    ),
    "m2_over_its_order": lambda: over_order(
        "robust-linear/dimension",
        "regret, d = 5, share 0%",
        "M2",
        theory.robust_linear_action_bound(5, 100_000, source="theorem"),
    ),
    "byzantine_useful_from": byzantine_useful_from,
    "agents_for_median_of_means": agents_for_median_of_means,
    "slack_of_lemma_12": slack_of_lemma_12,
    "attacks_that_double": attacks_that_double,
    "reconstruction_spends": reconstruction_spends,
    "reconstruction_until": reconstruction_until,
}
for order in (2, 3, 4):
    COMPUTED[f"slope_of_theorem_4_1_{order}"] = partial(slope, order, upper=False)
    COMPUTED[f"slope_of_theorem_6_2_{order}"] = partial(slope, order, upper=True)
