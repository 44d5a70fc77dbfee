"""An atlas of private arms: regret over the lower bound."""

import math
from functools import partial
from typing import Any

import pandas as pd

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits import theory
from jaxbandits.papers import shared
from jaxbandits.papers.shared import against, by_value, horizon_of, ratios, regrets, series, with_numeric_key
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, few, swept
from jaxbandits.reports import plot
from jaxbandits.selection import BESIDE, final_regret

# the best in the middle: some algorithms play arm by arm, and barely finish one
INSTANCES = {"easy": [0.5, 0.375, 0.75, 0.625, 0.25], "hard": [0.7, 0.7, 0.75, 0.7, 0.7]}
PRIVATE = {
    "DP-IMED": partial(a.dp_imed, batch_ratio=1.5),
    "DP-KLUCB": partial(a.dp_klucb, batch_ratio=1.5),
    "AdaP-KLUCB": a.adap_kl_ucb,
    "AdaP-UCB": a.adap_ucb,
    "Lazy-DP-TS": partial(a.lazy_dp_ts, logarithm="natural"),
    "PRM-TS": a.prm_thompson,
    "PRM-UCB": a.prm_ucb,
    "PRM elimination": a.prm_elimination,
    "DP-SE": a.dp_se,
    "DPRSE": partial(a.dprse, moment_bound=1.0),
    "HTINF in batches": partial(a.private_batched, base=a.htinf),
    "dist. elimination": a.dist_elimination,
    "LDP-UCB": partial(a.ldp_ucb, mechanism="randomized_response"),
    "LDP-EXP3": a.ldp_exp3,
}
QUICK = ("DP-IMED", "AdaP-UCB", "LDP-UCB")
BATCHED = ("DP-IMED", "DP-KLUCB")  # advised: batches that grow by 1.5 from 10 / epsilon on


def sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (100_000, 100) if full else (1000, 4)
    algorithms = few(PRIVATE, full, QUICK)
    keys = ("epsilon", *(f"{label}.first_batch" for label in BATCHED if label in algorithms))
    epsilons = [0.1, 0.25, 0.5, 1.0] if full else [0.5, 1.0]
    grid: dict[Any, Any] = {keys: {f"{x:g}": (x, *(math.ceil(10 / x) for _ in keys[1:])) for x in epsilons}}
    arms = {name: partial(e.bernoulli_arms, means=means) for name, means in few(INSTANCES, full, ["easy"]).items()}
    return {name: swept(algorithms, environment, horizon, seeds, grid=grid) for name, environment in arms.items()}


def ratios_to_bound(results: Results) -> pd.DataFrame:
    """A row for each instance, algorithm and epsilon: `ratio` of regret to the bound, and to that of uniform play."""
    frames = []
    for name, ds in results.items():
        # of one algorithm each
        tied = [key for key in ds.coords if key not in (*ds.dims, *BESIDE) and "epsilon" in ds[key].dims]
        frame, means, horizon = regrets(ds.drop_vars(tied)), INSTANCES[name], horizon_of(results)
        bound = [theory.private_kl_lower_bound(means, float(x)) * math.log(horizon) for x in frame["epsilon"]]
        uniform = horizon * (max(means) - sum(means) / len(means))
        frames.append(frame.assign(instance=name, ratio=frame["mean"] / bound, uniform=frame["mean"] / uniform))
    table = pd.concat(frames, ignore_index=True)
    return table.assign(text=shared.short(table["ratio"], 100))


CUTS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 1000.0)


def draw(instance: str, results: Results) -> plot.Plot:
    frame = ratios_to_bound({instance: results[instance]} if instance in results else results)
    labels = dict.fromkeys([*PRIVATE, *frame["algorithm"]])
    return plot.heatmap(
        shared.in_order(frame, list(labels)[::-1]), "epsilon", "algorithm", "ratio", text="text", cuts=CUTS, width=6.0,
        names={"epsilon": "ε", "algorithm": ""},
        caption=f"{instance} instance; regret over ln T times the coefficient of the central lower bound",
    )  # fmt: skip


def claims(results: Results) -> Claims:
    for (instance, label), part in ratios_to_bound(results).groupby(["instance", "algorithm"], sort=False):
        measured = series(part["epsilon"], part["ratio"], "{y:.2f} at {x}")
        yield Claim(f"{instance}: {label} over the lower bound", "", measured)


PICTURES = {name: partial(draw, name) for name in INSTANCES}
STUDY = Study(__doc__, "docs/formulas/private_frontier.md#lower-bounds", sweeps, PICTURES, claims)

# ---- elimination of arms in the three models of trust, at the same spent epsilon

SERVER, LAPLACE, SKELLAM = "server, DP-SE", "aggregation, Laplace", "aggregation, Skellam"
BITS, LDP_UCB, NOBODY = "nobody, elimination on bits", "nobody, LDP-UCB", "without privacy"
PRECISION, DELTA = 10.0, 1e-5  # of Skellam noise, which alone has a delta
TRUSTED = {
    NOBODY: partial(a.successive_elimination, noise_scale=0.5),
    SERVER: a.dp_se,
    LAPLACE: a.dist_elimination,
    SKELLAM: partial(a.dist_elimination, noise="skellam", precision_scale=PRECISION, delta=DELTA),
    BITS: partial(a.local_robust_elimination, moment_order=math.inf),
    LDP_UCB: partial(a.ldp_ucb, mechanism="randomized_response"),
}


def trust_sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (200_000, 200) if full else (2000, 4)
    values: dict[str, Any] = {f"{x:g}": x for x in ([0.1, 0.2, 0.5, 1.0, 2.0] if full else [0.5, 2.0])}
    arms = partial(e.bernoulli_arms, means=INSTANCES["easy"])
    return {
        "models": swept(few(TRUSTED, full, (NOBODY, LAPLACE, BITS)), arms, horizon, seeds, grid={"epsilon": values})
    }


def by_budget(results: Results):
    """The Dataset along `epsilon`, what is spent."""
    return with_numeric_key(results["models"], "epsilon")


CAPTION = f"Bernoulli arms {INSTANCES['easy']}; at the same spent ε, Skellam noise at δ = {DELTA:g}"
TRUST_PICTURE = against(by_budget, "epsilon", names={"epsilon": "spent ε"}, caption=CAPTION, width=6.0)


def trust_claims(results: Results) -> Claims:
    ds = by_budget(results)
    final = final_regret(ds)
    yield from by_value(ds, "epsilon", "regret at ε = {:g} spent".format)
    there = [label for label in (SERVER, BITS) if label in final["algorithm"].values]
    yield from [Claim(f"{label} over {LAPLACE}", "", ratios(final, label, LAPLACE)) for label in there]


TITLE = "Whom to trust: server, secure aggregation, nobody"
SOURCE = "docs/formulas/private_frontier.md#secure-aggregation"
TRUST = Study(TITLE, SOURCE, trust_sweeps, {"models": TRUST_PICTURE}, trust_claims)
