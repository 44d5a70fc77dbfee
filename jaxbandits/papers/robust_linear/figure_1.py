"""Figure 1: the bounds as the paper draws them, three panels, each beside measured curves."""

import pandas as pd

from jaxbandits import theory
from jaxbandits.papers.robust_linear.instance import DIM, M1, M2, PRIVATE, SHARES, horizon_sweeps, joined, target
from jaxbandits.papers.study import Claim, Results, Study, Sweep
from jaxbandits.papers.tables import regrets
from jaxbandits.reports import plot

EPSILON, VALUE, SHARE_HORIZON = 1.0, 30.0, 100_000


def sweeps(full: bool) -> dict[str, Sweep]:
    """Both models over horizons with and without privacy; M1 over horizons and shares of corrupted reports."""
    seeds = 200 if full else 8
    horizons = [1000, 10_000, 100_000, 1_000_000] if full else [100, 1000]
    shares = [0.0, 0.01, 0.05, 0.2] if full else [0.0, 0.1]
    common = {"environment": PRIVATE, "seeds": seeds}
    private = horizon_sweeps({"M1": M1, "M2": M2}, horizons, common | {"grid": {"epsilon": [EPSILON, float("inf")]}})
    corrupt = horizon_sweeps(
        {"M1": M1}, horizons, common | {"grid": {SHARES: shares}, "message_adversary": target(VALUE)}
    )
    return {f"private-{name}": one for name, one in private.items()} | {
        f"corrupt-{name}": one for name, one in corrupt.items()
    }


def part(results, which):
    """One group of sweeps over horizons as a Dataset."""
    return joined({name.removeprefix(f"{which}-"): ds for name, ds in results.items() if name.startswith(which)})


def curves(ds, keep, bound) -> pd.DataFrame:
    """Rows `horizon`, `regret`, `line`: measured means, and the bound of the same line, which ends in ", bound".

    keep: {name of a line: selection of the regret table}. bound: (horizon, name) -> the order there.
    """
    frame, rows = regrets(ds), []
    for name, chosen in keep.items():
        here = frame[(frame[list(chosen)] == pd.Series(chosen)).all(axis=1)]
        rows.append(here[["horizon"]].assign(regret=here["mean"], line=name))
        order = [bound(int(horizon), name) for horizon in here["horizon"]]
        rows.append(here[["horizon"]].assign(regret=order, line=f"{name}, bound"))
    return pd.concat(rows, ignore_index=True)


def left(results):
    """Private against not private, M1."""
    keep: dict[str, dict] = {
        "private, ε = 1": {"algorithm": "M1", "epsilon": EPSILON},
        "not private": {"algorithm": "M1", "epsilon": float("inf")},
    }
    return curves(
        part(results, "private"), keep, lambda t, name: theory.robust_linear_reward_bound(DIM, t, keep[name]["epsilon"])
    )


def center(results):
    """Both models, private."""
    keep = {label: {"algorithm": label, "epsilon": EPSILON} for label in ("M1", "M2")}
    orders = {"M1": theory.robust_linear_reward_bound, "M2": theory.robust_linear_action_bound}
    return curves(part(results, "private"), keep, lambda t, name: orders[name](DIM, t, EPSILON))


def right(results):
    """M1 at several shares of corrupted reports, not private."""
    ds = part(results, "corrupt")
    keep = {f"α = {share:g}": {"corruption_bound": share} for share in ds["corruption_bound"].values}
    return curves(
        ds, keep, lambda t, name: theory.robust_linear_reward_bound(DIM, t, corruption=keep[name]["corruption_bound"])
    )


PANELS = {"left": left, "center": center, "right": right}
CAPTIONS = {
    "left": "M1, rewards of ±1; dotted: the bound's order",
    "center": "ε = 1, rewards of ±1; dotted: the bounds' orders",
    "right": f"M1, ε = ∞, corrupted: ∓{VALUE:g}; dotted: the bound's order",
}


def draw(panel):
    """One panel."""

    def picture(results: Results) -> plot.Plot:
        frame = PANELS[panel](results)
        dotted = [name for name in dict.fromkeys(frame["line"]) if name.endswith(", bound")]
        names = {"horizon": "horizon T", "regret": "regret"}
        return plot.lines(
            frame,
            "horizon",
            "regret",
            line="line",
            log="both",
            dotted=dotted,
            names=names,
            caption=CAPTIONS[panel],
            width=5.0,
        )

    return picture


def claims(results: Results) -> list[Claim]:
    """Each panel's order of lines, and how far measured regrets are below the orders."""
    entries = []
    for panel, rows in PANELS.items():
        table = rows(results).pivot(index="horizon", columns="line", values="regret")
        lines = [name for name in table if not name.endswith(", bound")]
        last = table.iloc[-1]
        measured = "; ".join(f"{name}: {last[name]:,.0f} against {last[f'{name}, bound']:,.0f}" for name in lines)
        entries.append(Claim(f"{panel}, T = {table.index[-1]:,}: measured against the order", "", measured))
        worst = max(float((table[name] / table[f"{name}, bound"]).max()) for name in lines)
        entries.append(
            Claim(f"{panel}: measured against the order at worst", "constants unspecified", f"{worst:.2f} times")
        )
    return entries


STUDY = Study(
    "Figure 1: the bounds and what is measured",
    "Figure 1",
    sweeps,
    {panel: draw(panel) for panel in PANELS},
    claims,
)
