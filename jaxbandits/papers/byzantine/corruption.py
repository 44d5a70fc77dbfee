"""Regret of an honest agent against the share of attacked agents."""

from jaxbandits.formatting import percent
from jaxbandits.papers.byzantine.instance import FEDERATED, NUM_AGENTS, RATE, RULES, honest, target
from jaxbandits.papers.shared import MESSAGE_SHARE, ratio_interval, regrets
from jaxbandits.papers.study import Claim, Interval, Results, Study, Sweep
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret

SCALE, WINDOW = 5.0, 10
BROKEN = 2.0  # times the regret of the mean without an attack
COMPARED = [label for label in RULES if label != "median of means"]  # its groups need corruption of at most 1/4


def sweeps(full: bool) -> dict[str, Sweep]:
    """Every rule at every share, which the server knows."""
    seeds, horizon = (64, 2000) if full else (4, 200)
    shares = [0.0, 0.1, 0.2, 0.3, 0.4] if full else [0.0, 0.2]
    settings = {
        "algorithms": {label: RULES[label] for label in COMPARED},
        "environment": FEDERATED,
        "horizon": horizon,
        "seeds": seeds,
        "grid": {MESSAGE_SHARE: shares, "window": [WINDOW], "radius_scale": [RATE]},
        "message_adversary": target(SCALE),
        "checkpoints": 1,
    }
    return {"rules": Sweep(settings)}


def per_agent(ds):
    """The Dataset with regret an honest agent."""
    agents = ds["corruption_bound"].copy(data=[honest(x) for x in ds["corruption_bound"].values])
    return ds.assign(regret=(ds["regret"] / agents).transpose(*ds["regret"].dims)).squeeze(
        ["window", "radius_scale"], drop=True
    )


def draw(results: Results) -> plot.Plot:
    """Regret an honest agent against the share of attacked agents."""
    caption = f"{NUM_AGENTS} agents, regret of an honest one; target attack of scale {SCALE:g}"
    names = {"corruption_bound": "share of attacked agents"}
    return plot.against(per_agent(results["rules"]), "corruption_bound", names=names, caption=caption, width=5.5)


def claims(results: Results) -> list[Claim]:
    """Everyone's regret at every share."""
    ds = per_agent(results["rules"])
    cells = regrets(ds).set_index(["corruption_bound", "algorithm"])["mean"].unstack()
    entries = []
    for share, row in cells.iterrows():
        measured = ", ".join(f"{label} {row[label]:,.0f}" for label in COMPARED)
        entries.append(Claim(f"regret of an honest agent, {percent(share)} attacked", "", measured))
    ratio = (cells["geometric median"] / cells["mean"].loc[0.0])[lambda x: x.index <= 0.3]
    measured = f"{ratio.max():.2f} times the attack-free mean at worst"
    paper = "Õ(T^(3/4)) for every share below 1/2 (Theorem 2), constants hidden"
    entries.append(Claim("geometric median up to 30% attacked", paper, measured))
    final, share = final_regret(ds).sel(algorithm="mean"), cells.index[1]  # the smallest that is attacked
    ratio, low, high = ratio_interval(final.sel(corruption_bound=share).values, final.sel(corruption_bound=0.0).values)
    evidence = Interval("interval", float(low), float(high), at_least=BROKEN)
    paper, measured = "vulnerable to attacks on even a single agent", f"{float(ratio):.1f} times the attack-free mean"
    return [*entries, Claim(f"mean at {percent(share)} attacked", paper, measured, evidence)]


STUDY = Study(
    "Regret against the share of attacked agents",
    "Theorem 2; docs/reproductions/byzantine.md",
    sweeps,
    {"share": draw},
    claims,
)
