"""The papers' figures and tables, to be run again: `jaxbandits reproduce PAPER/FIGURE`.

One module a paper, `across` for what concerns several, `robust_frontier` for robust bandits of today. What a study
asks, and what was found, is told in its section of docs/reproductions/<paper>.md.
"""

from importlib import import_module

from jaxbandits.formatting import nearest
from jaxbandits.papers.beside import enter_own, reproduce_beside
from jaxbandits.papers.study import Claim, Exact, Interval, Search, Study, Sweep, Tuning, claims_table, reproduce

# paper -> figure -> its module, and which of its studies
STUDIES = {
    "private_adversarial": {
        "price-of-privacy": "price_of_privacy", "constants": "two_arms:CONSTANTS", "lemmas": "lemmas",
        "below-root": "two_arms", "experts-map": "experts_map", "exp3-leak": "exp3_leak", "lower-bound": "lower_bound",
    },
    "private_robust_mab": {
        "raw-moments": "experiments", "central-moments": "experiments:CENTRAL", "bernoulli": "experiments:BERNOULLI",
        "moment-order": "moment_order", "bounds": "experiments:BOUNDED", "outliers": "experiments:BREAKING",
    },
    "robust_linear": {
        "regret": "both_models", "breakdown": "breakdown", "dimension": "dimension", "filter": "breakdown:FILTER",
        "figure-1": "both_models:FIGURE_1",
    },
    "byzantine": {
        "isolated": "regret:ISOLATED", "rate": "regret:GROWTH", "price": "attacks:PRICE",
        "corruption": "regret:CORRUPTION", "episodes": "regret:EPISODES", "privacy": "regret:PRIVACY",
        "attacks": "attacks", "aggregate": "aggregate",
    },
    "ldp_contextual": {
        "figure-1": "figure_1", "printed-form": "figure_1:PRINTED_FORM", "map": "readings", "widths": "figure_1:WIDE",
        "favourable": "favourable", "equal-budget": "equal_budget", "noise-reach": "equal_budget:REACH",
        "root-t": "root_t", "squared-errors": "squared_errors", "steps": "figure_1:STEPPED",
    },
    "across": {
        "named-epsilon": "named_epsilon", "coverage": "coverage", "believed": "corruption:BELIEVED",
        "counting": "better_counting", "before-after": "corruption:PLACES", "trust": "atlas:TRUST", "atlas": "atlas",
        "plain-thompson": "plain_thompson", "worst-case": "worst_case",
    },
    "robust_frontier": {
        "budgets": "budgets", "corrupted-regime": "budgets:REGIME", "linear-budgets": "budgets:LINEAR",
        "heavy-linear": "budgets:HEAVY", "shares": "budgets:SHARES", "delay": "budgets:DELAY",
    },
}  # fmt: skip
PAPERS = tuple(STUDIES)

__all__ = [
    "PAPERS", "Claim", "Exact", "Interval", "Search", "Study", "Sweep", "Tuning", "claims_table", "find", "all_studies",
    "reproduce", "enter_own", "reproduce_beside",
]  # fmt: skip


def all_studies() -> dict[str, Study]:
    """Every study by its name PAPER/FIGURE."""
    found = {}
    for paper, figures in STUDIES.items():
        for figure, where in figures.items():
            module, _, name = where.partition(":")
            study = getattr(import_module(f"jaxbandits.papers.{paper}.{module}"), name or "STUDY")
            title = study.title.split("\n")[0].removesuffix(".")
            found[f"{paper.replace('_', '-')}/{figure}"] = study._replace(title=title)
    return found


def find(name: str) -> dict[str, Study]:
    """The study PAPER/FIGURE, all of PAPER, or "all". Dashes and underscores are equal. ValueError lists what there is.

    >>> list(find("private_adversarial/exp3_leak"))
    ['private-adversarial/exp3-leak']
    """
    studies, wanted = all_studies(), name.strip("/").replace("_", "-").lower()
    matching = {key: study for key, study in studies.items() if wanted in ("all", key, key.split("/")[0])}
    if not matching:
        papers = list(dict.fromkeys(key.split("/")[0] for key in studies))
        remedy = f"give a paper ({', '.join(papers)}), all, or a figure ({', '.join(studies)})"
        raise ValueError(f"nothing is called {name!r}{nearest(wanted, [*studies, *papers])}: {remedy}")
    return matching
