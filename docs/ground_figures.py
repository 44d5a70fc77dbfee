"""The figures in the grounds of docs/verdicts.md: none is typed, each is read from a page or computed here.

A row of verdicts.toml names them in `figures`: {name} of its text -> where from,

    "PAPER/FIGURE: statement ~ pattern"   what the pattern finds first in that line's cells
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

from jaxbandits import theory
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


def figure_1_crossing(dim: int = 50, epsilon: float = 0.1, *, horizon: int = 10_000, source: Any = "theorem") -> str:
    """The T from which on the order of M2 is below that of M1, by the informal theorems, up to `horizon`.

    ValueError where they do not cross within.
    """
    action = partial(theory.robust_linear_action_bound, dim, epsilon=epsilon, source=source)
    above = [T for T in range(1, horizon + 1) if action(T) >= theory.robust_linear_reward_bound(dim, T, epsilon)]
    if not above or above[-1] == horizon:
        raise ValueError(f"the orders do not cross for T in 1 to {horizon}")
    return f"{above[-1] + 1}"


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


def reconstruction_until() -> str:
    """Up to which ε/log²(4/δ) Theorem 6's reconstructed noise spends at most ε; rounded down.

    A message lies in as many nodes m as printed. They move by √(6 m) L together, and each has noise of scale
    8 √m L log(4/δ)/ε. By concentrated privacy it spends, with ℓ = log(4/δ), 3 ε²/(64 ℓ²) + √(12 log(1/δ)) ε/(8 ℓ),
    and the root over ℓ is largest at δ = 1/4.
    """
    share = math.sqrt(12 * math.log(4)) / (8 * math.log(16))
    return f"{math.floor(64 / 3 * (1 - share))}"


COMPUTED: dict[str, Callable[[], str]] = {
    "local_divergence": lambda: round_up(local_divergence()),
    "local_cost": local_cost,
    "lemma_5_1_least": lambda: f"{min(map(lemma_5_1, np.linspace(0.35, 0.65, 31))):.3f}",
    "figure_1_crossing": figure_1_crossing,
    "byzantine_useful_from": byzantine_useful_from,
    "reconstruction_until": reconstruction_until,
}
