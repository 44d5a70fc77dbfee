"""Coverage of confidence sets and radii."""

from functools import cache, partial
from itertools import product

import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.auditing.confidence_bounds import clopper_pearson
from jaxbandits.environments.contextual import State as ContextualState
from jaxbandits.papers import watched as w
from jaxbandits.papers.byzantine.instance import DIM as AGENT_DIM
from jaxbandits.papers.byzantine.instance import FEDERATED
from jaxbandits.papers.byzantine.instance import target as pointing_away
from jaxbandits.papers.private_robust_mab.experiments import MEANS, PARETO
from jaxbandits.papers.robust_linear.instance import PRIVATE, THETA, batches, target
from jaxbandits.papers.shared import MESSAGE_SHARE, REWARD_SHARE
from jaxbandits.papers.study import Claim, Claims, Interval, Results, Study, Sweep, few, swept
from jaxbandits.protocol import Environment, World
from jaxbandits.reports import plot
from jaxbandits.selection import tidy
from jaxbandits.validation import factory

FAILURE = 0.05  # the failure probability that every set is built for
ATTACKED, CORRUPTED = 0.2, 0.05  # shares of attacked agents, and of contaminated rewards and reports: all are told
EPSILON = 0.5  # of PRM
NUM_ARMS, DIM = 20, 5
KNOWN = (0.5, 0.5, 0.0, 0.0, 2**-0.5)  # the true parameter (u, 1) / √2 of the contextual instance, |u| = 1
AGENT_THETA = np.full(AGENT_DIM, AGENT_DIM**-0.5)  # that of `federated_linear`


@cache
def _world_of_known() -> World:
    def init(params, draws):
        return ContextualState([jnp.asarray(x, draws.dtype) for x in KNOWN], (), (), ())

    return e.contextual_linear(num_arms=NUM_ARMS, dim=DIM).world._replace(init=init)


@factory
def known_contextual() -> Environment:
    """`contextual_linear` with fresh arms, whose parameter is `KNOWN` in every run."""
    return e.contextual_linear(num_arms=NUM_ARMS, dim=DIM)._replace(world=_world_of_known())


PAIR = partial(w.watching(a.online_ucb, np.array(KNOWN), updated=w.online_ucb_error), failure_prob=FAILURE, delta=0.1)
MEDIAN = partial(
    w.watching(a.byzantine_ucb, AGENT_THETA, updated=w.byzantine_error), failure_prob=FAILURE, window=10, delta=1e-3
)
RAW = partial(w.watching(a.prm_elimination, np.array(MEANS), updated=w.block_error), epsilon=EPSILON)
ELIMINATION = w.watching(a.robust_elimination, THETA, closed=lambda plain: w.batch_error(plain.version[2]))
ONLINE = {
    "pair, default width": PAIR,
    "pair, printed form": partial(PAIR, width="theory", gradient_bound="theory"),
    "reward only, default width": partial(PAIR, private_features=False),
    "reward only, printed form": partial(PAIR, private_features=False, width="theory", gradient_bound="theory"),
}
PRINTED = {"ridge_scale": 1.0, "radius_scale": 1.0}
PRIVATE_AGENTS = {"privacy": "tree", "constants": "dp", "epsilon": 4.0}
GROUPED = {"aggregate": "median_of_means", "constants": "median_of_means"}
AGENTS = {
    "median, printed": partial(MEDIAN, **PRINTED),
    "median, default": MEDIAN,
    "median of means, printed": partial(MEDIAN, **GROUPED, **PRINTED),
    "median of means, default": partial(MEDIAN, **GROUPED),
    "private, printed": partial(MEDIAN, **PRINTED, **PRIVATE_AGENTS, calibration="paper"),
    "private, default": partial(MEDIAN, **PRIVATE_AGENTS),
}
ONES = {"sampling_scale": 1.0, "privacy_scale": 1.0, "corruption_scale": 1.0}
CENTRAL = {"moment": "central", "mean_bound": 10.0, "guard_bins": 1}
BLOCKS = {
    "raw, default": RAW,
    "raw, constants of 1": partial(RAW, **ONES),
    "raw, explicit": partial(RAW, radius="explicit"),
    "central, default": partial(RAW, **CENTRAL),
    "central, constants of 1": partial(RAW, **CENTRAL, **ONES),
    "central, explicit": partial(RAW, **CENTRAL, radius="explicit"),
}


# As printed, with every constant stated: only here can the share contradict the paper, whose Lemmas 4, 12 and 14 hold
# with probability 1 - 3 delta / 4.
STATED = ("median, printed", "median of means, printed", "private, printed")
OPEN = ("printed form", "constants of 1")  # as printed, with the constants that the paper leaves open at 1


def sweeps(full: bool) -> dict[str, Sweep]:
    horizon, plays, long, seeds = (2000, 20_000, 10_000, 1000) if full else (100, 2000, 1000, 4)
    # each kind is compiled apart
    online, agents, blocks = (few(sets, full, list(sets)[:n]) for sets, n in ((ONLINE, 2), (AGENTS, 2), (BLOCKS, 3)))
    own = partial(ELIMINATION, failure_prob=FAILURE, num_batches=batches(long), presieve=True)
    made = product(("M1", "M2") if full else ("M1",), {"default": "practical", "constants of 1": "paper"}.items())
    linear = {f"{model}, {words}": partial(own, model=model, radius=radius) for model, (words, radius) in made}
    epsilons = [0.2, 1.0, 10.0] if full else [1.0, 10.0]
    attacked = {MESSAGE_SHARE: [0.0, ATTACKED]}
    rewards = {"failure_prob": [FAILURE, 1 / plays], REWARD_SHARE: [0.0, CORRUPTED]}
    reports = {"epsilon": [1.0, np.inf], MESSAGE_SHARE: [0.0, CORRUPTED]}
    spikes, away = partial(v.huber, kind="fixed", value=50.0), pointing_away(5.0)
    return {
        "OnlineUCB": swept(online, known_contextual, horizon, seeds, grid={"epsilon": epsilons}),
        "Byzantine-UCB": swept(agents, FEDERATED, horizon, seeds, grid=attacked, message_adversary=away),
        "PRM": swept(blocks, PARETO, plays, seeds, grid=rewards, reward_adversary=spikes),
        "elimination": swept(linear, PRIVATE, long, seeds, grid=reports, message_adversary=target(30.0)),
    }


ONE_SET = ("PRM",)  # the promise is about one set, the first one; elsewhere about all sets of a run
WORDS = {
    "epsilon": lambda x: "no privacy" if np.isinf(x) else f"ε = {x:g}",
    "corruption_bound": lambda x: f"{x:.0%} corrupted",
    "failure_prob": lambda x: "δ = 0.05" if x == FAILURE else "δ = 1/T",
}


def failure_shares(results: Results, name: str) -> pd.DataFrame:
    """In what share of `runs` the truth was `outside` of each set in each setting, with the exact 95% interval.

    `any` is the share of runs in which any set failed, `ratio` the median over runs of error over radius, at its
    largest.
    """
    ds: xr.Dataset = results[name]
    keys = [str(key) for key in ds["largest_error"].dims if key not in ("algorithm", "seed")]
    ordered = ds.transpose("algorithm", *keys, "seed", ...).reset_coords(drop=True)
    largest = ordered["largest_error"]
    error = ordered["first_error"] if name in ONE_SET else largest
    failures, runs = (error > 1).sum("seed").values, np.maximum(1, error.count("seed").values)
    low, high = clopper_pearson(failures, runs, 0.025)
    columns = {"runs": runs, "failures": failures, "outside": failures / runs, "low": low, "high": high}
    columns |= {"any": (largest > 1).mean("seed").values, "ratio": error.median("seed").values.astype(float)}
    frame = tidy(error.isel(seed=0, drop=True), columns).rename(columns={"algorithm": "set"})
    setting = [",\n".join(WORDS[key](float(row[key])) for key in keys) for row in frame.to_dict("records")]
    return frame.assign(setting=setting)[["set", "setting", *columns]]


CUTS = (0.0, 0.01, 0.05, 0.2, 0.5, 1.0)


def draw(name: str, results: Results) -> plot.Plot:
    frame = failure_shares(results, name)
    frame["text"] = [f"{x:.0%} ({y:.2f})" for x, y in zip(frame["outside"], frame["ratio"], strict=True)]
    parts = [part for _, part in frame.groupby("set", sort=False)]
    return plot.heatmap(
        pd.concat(parts[::-1]), "setting", "set", "outside", text="text", cuts=CUTS, width=6.0,
        names={"setting": "", "set": ""},
        caption="share of runs with the truth outside; in brackets: error over radius, median over runs",
    )  # fmt: skip


def claims(results: Results) -> Claims:
    for name in results:
        for row in failure_shares(results, name).to_dict("records"):
            setting = row["setting"].replace("\n", " ")
            measured = f"outside in {row['failures']} of {row['runs']} runs, error {row['ratio']:.2g} of the radius"
            if name in ONE_SET:
                measured += f"; any set of a run: {row['any']:.0%}"
            paper, evidence = "", None
            if row["set"] in STATED:
                paper = f"at most {0.75 * FAILURE:g} (3δ/4)"
                evidence = Interval("share", row["low"], row["high"], at_most=0.75 * FAILURE)
            else:
                measured += f"; share [{row['low']:.3f}, {row['high']:.3f}]"
            if row["set"].endswith(OPEN):
                paper = "at most δ, constants hidden"
            yield Claim(f"{name}: {row['set']}, {setting}", paper, measured, evidence)


PICTURES = {"online": "OnlineUCB", "agents": "Byzantine-UCB", "blocks": "PRM", "elimination": "elimination"}
FIGURES = {key: partial(draw, name) for key, name in PICTURES.items()}
STUDY = Study(__doc__, "all papers that have a radius", sweeps, FIGURES, claims)
