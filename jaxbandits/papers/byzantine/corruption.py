"""Regret of an honest agent against the share of attacked agents."""

from jaxbandits.papers.byzantine.instance import FEDERATED, NUM_AGENTS, RATE, RULES, SHARES, honest, target
from jaxbandits.papers.study import Claim, Results, Study, Sweep
from jaxbandits.papers.tables import regrets, share_text
from jaxbandits.reports import plot

SCALE, WINDOW = 5.0, 10
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
        "grid": {SHARES: shares, "window": [WINDOW], "radius_scale": [RATE]},
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
    return plot.against(per_agent(results["rules"]), "corruption_bound", caption=caption, width=5.5)


def claims(results: Results) -> list[Claim]:
    """Everyone's regret at every share."""
    ds = per_agent(results["rules"])
    cells = regrets(ds).set_index(["corruption_bound", "algorithm"])["mean"].unstack()
    entries = []
    for share, row in cells.iterrows():
        measured = ", ".join(f"{label} {row[label]:,.0f}" for label in COMPARED)
        entries.append(Claim(f"regret of an honest agent, {share_text(share)} attacked", "", measured))
    ratio = (cells["geometric median"] / cells["mean"].loc[0.0])[lambda x: x.index <= 0.3]
    measured = f"{ratio.max():.2f} times the attack-free mean at worst"
    entries.append(
        Claim("geometric median up to 30% attacked", "a constant factor C_α", measured, bool(ratio.max() <= 2))
    )
    broken = (cells["mean"] / cells["mean"].loc[0.0]).iloc[-1]
    entries.append(Claim(f"mean at {share_text(cells.index[-1])}", "breaks", f"{broken:.1f} times", bool(broken > 2)))
    return entries


STUDY = Study(
    "Regret against the share of attacked agents",
    "Theorem 2; docs/reproductions/byzantine.md",
    sweeps,
    {"share": draw},
    claims,
)
