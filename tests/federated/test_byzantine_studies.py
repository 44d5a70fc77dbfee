"""Studies of Byzantine-robust bandits: what their tables divide by."""

import numpy as np
import pytest
import xarray as xr

from jaxbandits.papers.byzantine import attacks
from jaxbandits.papers.byzantine.instance import honest


def finals(regret):
    """A Dataset of one algorithm: final regret by share of attacked agents."""
    values = np.tile(np.array(list(regret.values()), float)[None, :, None, None, None], (1, 1, 1, 3, 1))
    coords = {"algorithm": ["mean"], "corruption_bound": list(regret), "window": [25], "seed": range(3), "t": [100]}
    return xr.Dataset({"regret": (tuple(coords), values)}, coords)


def test_regret_is_divided_by_the_agents_that_do_not_attack():
    assert [honest(x) for x in (0.0, 0.2, 0.3)] == [10, 8, 7] and honest(0.2, 0.5) == 9
    # every agent that does not attack loses 5: agents that attack half the time lose half of it
    regrets = {"target": finals({0.0: 50, 0.2: 40, 0.4: 30}), "half the time": finals({0.0: 50, 0.4: 40})}
    frame = attacks.attack_ratios(regrets)
    assert frame["ratio"].tolist() == pytest.approx([1] * 5)
