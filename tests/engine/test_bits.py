"""What must not change a bit of a result, for every kind of window: lanes beside a lane, sizes of calls, devices."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import KINDS
from dealt import dealt

import jaxbandits as jb
from jaxbandits import catalogue, checking
from jaxbandits.checking.check import findings_of
from jaxbandits.checking.subject import CHECKPOINTS, Subject
from jaxbandits.sweeps.engines.calls import LEAST_LANES, Machine, add_lane_shapes, calls_of, seeds_of_shard
from jaxbandits.sweeps.plan import plan

SEEDS = 32
ALGORITHMS = catalogue.ALGORITHMS


def settings(example, **changes):
    return {
        "algorithms": {"x": example.algorithm},
        "environment": example.environment,
        "reward_adversary": example.reward_adversary,
        "message_adversary": example.message_adversary,
        "horizon": example.horizon,
        "seeds": SEEDS,
        "checkpoints": CHECKPOINTS,
    } | changes


def run(example, **changes):
    return jb.sweep(**settings(example, progress=False) | changes)


def budget_for(example, lanes):
    """A memory budget that gives chunks of exactly `lanes` seeds."""
    laid_out = add_lane_shapes(plan(**settings(example)))

    def lanes_of(memory):
        calls = calls_of(laid_out, seeds_of_shard(laid_out), Machine([], 1, "cpu", memory))
        return {task.lanes for task in calls}

    low, high = 1, 1 << 40
    while low < high:  # the lanes of a chunk grow with the budget
        middle = (low + high) // 2
        try:
            enough = max(lanes_of(middle)) >= lanes
        except ValueError:
            enough = False
        low, high = (low, middle) if enough else (middle + 1, high)
    assert lanes_of(low) == {lanes}
    return low


def digest(ds):
    found = hashlib.sha256()
    for name in sorted(ds.data_vars):
        found.update(name.encode() + np.ascontiguousarray(ds[name].values).tobytes())
    return found.hexdigest()


def in_small_calls(example, devices=None):
    """A sweep in as many calls as there can be: one for each of two devices."""
    return run(example, seeds=2 * LEAST_LANES, memory=budget_for(example, LEAST_LANES), devices=devices)


@pytest.mark.parametrize("name", dealt(KINDS, 4, always=KINDS[1:3]))
def test_lanes_change_no_bit(fully_optimized, name):
    """A lane is the same alone, among few and among many. All other cases: test_lane_proof.py"""
    example = ALGORITHMS[name]
    subject = Subject(
        example.algorithm, example.environment, example.reward_adversary, example.message_adversary,
        horizon=example.horizon, seeds=SEEDS,
    )  # fmt: skip
    for rule in (checking.lane_alone, checking.chunks):
        assert findings_of(rule, subject) == []


@pytest.mark.parametrize("name", dealt(KINDS, 4, always=KINDS[2:3]))
def test_devices_change_no_bit(name):
    """Two forced CPU devices give in another process what one gives here."""
    script = (
        "import os, sys; sys.path[:0] = sys.argv[1].split(os.pathsep); import test_bits as c; "
        "import jax; assert len(jax.local_devices()) == 2; "
        "print(c.digest(c.in_small_calls(c.ALGORITHMS[sys.argv[2]], 2)))"
    )
    places = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-c", script, places, name],
        env=os.environ | {"JAX_NUM_CPU_DEVICES": "2"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split()[-1] == digest(in_small_calls(ALGORITHMS[name]))
