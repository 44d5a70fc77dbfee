"""Central against local privacy below epsilon = 1 / sqrt(T)."""

from functools import partial

import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits.formatting import brackets
from jaxbandits.papers.shared import Curve, as_sweep, drawn, exponent, points, ratio_interval, times
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret

NUM_ARMS = 2
POWERS = [0.25, 0.5, 0.6, 0.75]  # a
GAPS = [0.1, 0.3, 1.0]
CENTRAL, LOCAL = "HTINF in batches", "HTINF, noise on every play"
ALGORITHMS = {CENTRAL: a.private_batched, LOCAL: partial(a.private_batched, window=1)}
LEARNT = 0.5  # of uniform play's regret: below it an exponent says something about the algorithm


def sweeps(full: bool) -> dict[str, Sweep]:
    horizons, seeds = ([2000, 20_000, 200_000, 2_000_000, 20_000_000], 16) if full else ([200, 800], 4)
    losses = partial(e.fixed_gap_losses, num_arms=NUM_ARMS, best=1, base=1.0)
    grids = {t: {"environment.gap": GAPS, "epsilon": [t**-power for power in POWERS]} for t in horizons}
    return {f"{horizon}": swept(ALGORITHMS, losses, horizon, seeds, grid=grid) for horizon, grid in grids.items()}


def shares(results: Results) -> xr.DataArray:
    """Regret [algorithm, power, horizon, seed] at the costliest gap, over what uniform play costs at a gap of 1."""
    parts = []
    for name, ds in results.items():
        uniform = int(name) * (NUM_ARMS - 1) / NUM_ARMS
        share = final_regret(ds).assign_coords(epsilon=POWERS).rename(epsilon="power") / uniform
        parts.append(share.isel({"environment.gap": share.mean("seed").argmax("environment.gap")}))
    joined = xr.concat(parts, pd.Index([int(x) for x in results], name="horizon"), coords="minimal", compat="override")
    return joined.transpose("algorithm", "power", "horizon", "seed")


def draw(results: Results) -> plot.Plot:
    share, kinds = shares(results), {CENTRAL: "batches", LOCAL: "noise on every play"}
    name = "{}, ε = T^-{:g}".format
    lines: list[Curve] = [
        (name(kind, power), share["horizon"].values, share.sel(algorithm=label, power=power))
        for power in POWERS
        for label, kind in kinds.items()
    ]
    dotted = {name(kinds[LOCAL], power): name(kinds[CENTRAL], power) for power in POWERS}
    caption = "HTINF, two arms; the gap of 0.1, 0.3 and 1 that costs most; dotted: noise on every play (local)"
    words = {"horizon": "plays T", "share": "regret over that of uniform play"}
    return drawn("horizon", "share", lines, dotted=dotted, names=words, caption=caption, width=6.5)


def claims(results: Results) -> Claims:
    share = shares(results)
    first, last = (int(share["horizon"][i]) for i in (0, -1))
    for power in POWERS:
        stated, here = (1 + power) / 2, share.sel(algorithm=CENTRAL, power=power)
        learnt = here.isel(horizon=(here.mean("seed") < LEARNT).values)
        if learnt.sizes["horizon"] < 3:
            measured = f"regret is below half of uniform play's at {learnt.sizes['horizon']} of {len(results)} horizons"
        else:
            measured = "{:.2f}; {}".format(*exponent(as_sweep(learnt * learnt["horizon"]), "horizon"))
        paper = f"at most {stated:g}: √(KT/ε) (Corollary 3.2)"
        yield Claim(f"exponent of T along ε = T^-{power:g}: {CENTRAL}", paper, measured)
    for power in POWERS:
        here = share.sel(algorithm=LOCAL, power=power)
        ratio, low, high = map(float, ratio_interval(here.sel(horizon=last).values, here.sel(horizon=first).values))
        measured = f"{ratio:.2f} of the regret a play is left when T grows {last // first:,}-fold"
        measured += f"; share left {brackets(low, high)}" if power >= 0.5 else ""
        bound = "of order T under local privacy (introduction)" if power >= 0.5 else "√(KT)/ε, below T"
        yield Claim(f"regret a play along ε = T^-{power:g}: {LOCAL}", bound, measured)
    for power in POWERS:
        for label in ALGORITHMS:
            means = share.sel(algorithm=label, power=power).mean("seed")
            measured = points(means["horizon"], means, "{y:.3f} at {x:,}")
            yield Claim(f"regret over uniform play's along ε = T^-{power:g}: {label}", "", measured)
    for power in POWERS:
        ends = [np.asarray(share.sel(algorithm=label, power=power, horizon=last)) for label in (CENTRAL, LOCAL)]
        measured = f"{times(ends[0], ends[1], 3)} of the local regret at T = {last:,}, ε = {last**-power:.2g}"
        yield Claim(f"central over local along ε = T^-{power:g}", "", measured)


STUDY = Study(__doc__, "Corollary 3.2 and the introduction", sweeps, {"share": draw}, claims)
