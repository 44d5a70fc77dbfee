"""The instance of this paper's studies: ten agents, ten fresh unit arms a play in four dimensions."""

from collections.abc import Callable
from functools import partial

import xarray as xr

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e

NUM_AGENTS, NUM_ARMS, DIM = 10, 10, 4
FEDERATED = partial(e.federated_linear, num_agents=NUM_AGENTS, num_arms=NUM_ARMS, dim=DIM)
AGGREGATES = {
    name.replace("_", " ").replace("krum", "Krum"): partial(a.byzantine_ucb, aggregate=name)
    for name in ("geometric_median", "median_of_means", "coordinate_median", "trimmed_mean", "krum", "mean")
}
RATE = 0.1  # radius_scale where the bonus, not the blind first episode, is to set the regret


def target(scale):
    """The omniscient attack that points the vector away from theta."""
    return partial(v.byzantine, kind="target", scale=scale)


def honest(corruption, prob=1.0, num_agents: int = NUM_AGENTS) -> float:
    """Agents that do not attack, where others do so with probability `prob` an episode: regret is summed over them."""
    return num_agents - prob * int(corruption * num_agents + 0.5)


def an_agent(ds: xr.Dataset, agents: float | Callable[..., float]) -> xr.Dataset:
    """The Dataset with regret an honest agent; agents: how many, or a function of the share of corrupted ones."""
    if callable(agents):
        share = ds["corruption_bound"]
        agents = share.copy(data=[agents(x) for x in share.values])
    return ds.assign(regret=(ds["regret"] / agents).transpose(*ds["regret"].dims))
