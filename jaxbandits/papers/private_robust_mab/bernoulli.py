"""Bernoulli arms, as in papers on private bandits."""

from functools import partial

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.papers.shared import REGRET, against, points, regrets
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, few, swept
from jaxbandits.reports import plot

MEANS = {"one close": [0.7, 0.7, 0.75, 0.7, 0.7], "spread": [0.5, 0.25, 0.75, 0.375, 0.625]}  # best in the middle
PRIVATE = {
    "PRM elimination": a.prm_elimination, "PRM-UCB": a.prm_ucb, "PRM-TS": a.prm_thompson, "DP-SE": a.dp_se,
    "AdaP-UCB": a.adap_ucb, "AdaP-KLUCB": a.adap_kl_ucb, "LDP-UCB": a.ldp_ucb,
    "LDP-UCB, randomised response": partial(a.ldp_ucb, mechanism="randomized_response"),
}  # fmt: skip
PLAIN = {"UCB1": a.ucb1, "KL-UCB": a.kl_ucb, "Thompson": a.thompson, "MOSS": a.moss}
DRAWN = [*PRIVATE, "UCB1", "Thompson"]
QUICK = {*PRIVATE, *PLAIN} - {"PRM-TS", "AdaP-KLUCB", "KL-UCB"}


def sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (100_000, 200) if full else (2000, 16)
    grid = {"environment.means": MEANS, "epsilon": [0.1, 0.25, 0.5, 1.0] if full else [0.25, 1.0]}
    algorithms = few(PRIVATE | PLAIN, full, QUICK)
    return {"arms": swept(algorithms, e.bernoulli_arms, horizon, seeds, grid=grid, checkpoints=60)}


def draw_time(instance, epsilon, results: Results) -> plot.Plot:
    ds = results["arms"]
    shown = [label for label in DRAWN if label in ds["algorithm"].values]
    select = {"environment.means": instance, "epsilon": epsilon, "algorithm": shown}
    caption = f"Bernoulli arms, {instance}: {MEANS[instance]}; ε = {epsilon:g}"
    return plot.regret(ds, select=select, log="both", caption=caption, width=5.5)


def claims(results: Results) -> Claims:
    """Mean regrets, best first."""
    frame = regrets(results["arms"])
    private = frame[frame["algorithm"].isin(PRIVATE)]
    for (instance, epsilon), part in private.groupby(["environment.means", "epsilon"], sort=False):
        ordered = part.sort_values("mean")
        measured = points(ordered["algorithm"], ordered["mean"], REGRET)
        yield Claim(f"private algorithms by regret, {instance}, ε = {epsilon:g}", "", measured)


PICTURES = {"time": partial(draw_time, "spread", 1.0)} | {
    instance.replace(" ", "-"): against(
        "arms", "epsilon", select={"environment.means": instance}, caption=f"Bernoulli arms, {instance}: {means}",
        width=5.5,
    )
    for instance, means in MEANS.items()
}  # fmt: skip
STUDY = Study(__doc__, "docs/reproductions/private_robust_mab.md", sweeps, PICTURES, claims)
