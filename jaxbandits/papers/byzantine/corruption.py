"""Regret of an honest agent against the share of attacked agents."""

from jaxbandits.formatting import percent
from jaxbandits.papers.byzantine.instance import FEDERATED, NUM_AGENTS, RATE, RULES, an_agent, honest, target
from jaxbandits.papers.shared import MESSAGE_SHARE, against, by_value, ratio_interval
from jaxbandits.papers.study import Claim, Claims, Interval, Results, Study, Sweep, swept
from jaxbandits.selection import final_regret

SCALE, WINDOW = 5.0, 10
BROKEN = 2.0  # times the regret of the mean without an attack
COMPARED = [label for label in RULES if label != "median of means"]  # its groups need corruption of at most 1/4


def sweeps(full: bool) -> dict[str, Sweep]:
    """Every rule at every share, which the server knows."""
    horizon, seeds = (2000, 64) if full else (200, 4)
    shares = [0.0, 0.1, 0.2, 0.3, 0.4] if full else [0.0, 0.2]
    grid = {MESSAGE_SHARE: shares, "window": [WINDOW], "radius_scale": [RATE]}
    rules = {label: RULES[label] for label in COMPARED}
    return {"rules": swept(rules, FEDERATED, horizon, seeds, grid=grid, message_adversary=target(SCALE))}


def per_agent(results: Results):
    """The Dataset with regret an honest agent."""
    return an_agent(results["rules"].squeeze(["window", "radius_scale"], drop=True), honest)


PICTURE = against(
    per_agent, "corruption_bound", names={"corruption_bound": "share of attacked agents"}, width=5.5,
    caption=f"{NUM_AGENTS} agents, regret of an honest one; target attack of scale {SCALE:g}",
)  # fmt: skip


def claims(results: Results) -> Claims:
    """Everyone's regret at every share."""
    ds = per_agent(results)
    statement = lambda share: f"regret of an honest agent, {percent(share)} attacked"
    yield from by_value(ds, ["corruption_bound"], statement)
    final = final_regret(ds).transpose("algorithm", "corruption_bound", "seed").reset_coords(drop=True)
    mean, shares = final.sel(algorithm="mean"), final["corruption_bound"].values
    median = final.sel(algorithm="geometric median").mean("seed")
    ratio = float((median[shares <= 0.3] / mean[0].mean()).max())
    measured = f"{ratio:.2f} times the attack-free mean at worst"
    paper = "Õ(T^(3/4)) for every share below 1/2 (Theorem 2), constants hidden"
    yield Claim("geometric median up to 30% attacked", paper, measured)
    ratio, low, high = (float(x) for x in ratio_interval(mean.values[1], mean.values[0]))  # the smallest share attacked
    paper, measured = "vulnerable to attacks on even a single agent", f"{ratio:.1f} times the attack-free mean"
    evidence = Interval("interval", low, high, at_least=BROKEN)
    yield Claim(f"mean at {percent(shares[1])} attacked", paper, measured, evidence)


STUDY = Study(
    "Regret against the share of attacked agents", "Theorem 2; docs/reproductions/byzantine.md", sweeps,
    {"share": PICTURE}, claims,
)  # fmt: skip
