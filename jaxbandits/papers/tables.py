"""What the studies share: final regrets as rows."""

import pandas as pd
import xarray as xr

from jaxbandits.selection import final_regret, grid_dims, tidy
from jaxbandits.statistics import mean_interval


def regrets(ds: xr.Dataset) -> pd.DataFrame:
    """Mean final regret with its 95% interval: columns `algorithm`, the grid's, `mean`, `low`, `high`."""
    final = final_regret(ds).transpose("algorithm", *grid_dims(ds), "seed")
    mean, low, high = mean_interval(final.values)
    return tidy(final.isel(seed=0, drop=True), {"mean": mean, "low": low, "high": high})


def share_text(share: float) -> str:
    """A share as a percentage."""
    return f"{100 * share:g}%"
