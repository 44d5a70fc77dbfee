"""Robust elimination of model M2, whose windows hold answers of whole arms: bits of a lane beside other lanes.

In a file of its own, since programs are optimized here as they are for users.
"""

from functools import partial

import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.algorithms import robust_elimination

pytestmark = [pytest.mark.usefixtures("fully_optimized"), pytest.mark.dealt(8)]
RNG = np.random.default_rng(4)
ACTIONS = RNG.normal(size=(6, 3))
ACTIONS /= np.linalg.norm(ACTIONS, axis=1, keepdims=True)
ARMS = jb.environments.linear_arms(actions=ACTIONS, theta=[0.9, 0.1, -0.2], noise="rademacher")


def test_lanes_of_answers_do_not_depend_on_their_neighbours():
    def run(seeds):
        return jb.sweep(
            partial(robust_elimination, num_batches=2, model="M2", epsilon=1.0), ARMS, horizon=600, seeds=seeds,
            checkpoints=6, progress=False,
            message_adversary=jb.adversaries.huber(corruption=0.1, kind="target", value=30.0),
        )  # fmt: skip

    np.testing.assert_array_equal(run(24).regret[:, 16:], run(range(16, 24)).regret)
