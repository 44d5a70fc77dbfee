"""The best of many policies looks better on the log that it was chosen by than it is.

    python examples/best_of_many.py    half a minute

Four kinds of customers and three offers make 81 policies, an offer for each kind. Each is judged on a log of 200 rows,
and the best is taken. Printed is what that log says of the best, what another log says of it, and what it truly earns,
over 100 pairs of logs.
"""

import itertools
import warnings

import numpy as np
import pandas as pd

import jaxbandits as jb

SHARE = np.array([0.4, 0.3, 0.2, 0.1])  # of the kinds
FEATURES = np.array([[0, 1], [1, -0.5], [-1, 0.3], [0.5, 2]])
BUYS = np.array([[0.2, 0.5, 0.35], [0.7, 0.3, 0.4], [0.1, 0.25, 0.6], [0.5, 0.8, 0.15]])
CHANCE = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6], [0.5, 0.25, 0.25], [0.1, 0.1, 0.8]])  # of an offer being made
POLICIES = np.array(list(itertools.product(range(3), repeat=4)))  # [81, 4]


def draw_log(rng, rows: int):
    """A log, and the kind of customer in each of its rows."""
    kind = rng.choice(4, size=rows, p=SHARE)
    arm = (rng.random(rows)[:, None] > CHANCE[kind].cumsum(axis=1)).sum(axis=1)
    bought = (rng.random(rows) < BUYS[kind, arm]).astype(int)
    x, y = FEATURES[kind].T
    frame = pd.DataFrame({"x": x, "y": y, "arm": arm, "bought": bought, "chance": CHANCE[kind, arm]})
    return jb.read_logged(frame, arm="arm", reward="bought", propensity="chance", arms=[0, 1, 2]), kind


def choose(seed: int, rows: int = 200) -> list[float]:
    """What its own log says of the best policy, what another log says, and the truth."""
    rng = np.random.default_rng(seed)
    (log, kind), (other, other_kind) = draw_log(rng, rows), draw_log(rng, rows)
    found = jb.offline({str(policy): policy[kind] for policy in POLICIES}, log, estimator="ips")
    best = POLICIES[int(found.value.argmax())]
    again = jb.offline(best[other_kind], other, estimator="ips").value
    return [found.value.max(), again, float(SHARE @ BUYS[range(4), best])]


def main(logs: int = 100) -> np.ndarray:
    """Print the three means with their standard errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of policies that hardly a row shows, and arms with few rows
        found = np.array([choose(seed) for seed in range(logs)])
    means, errors = found.mean(axis=0), found.std(axis=0, ddof=1) / logs**0.5
    for name, mean, error in zip(("its own log", "another log", "truth"), means, errors, strict=True):
        print(f"{name:12s} {mean:.3f} +- {error:.3f}")
    print(f"best of all  {float(SHARE @ BUYS.max(axis=1)):.3f}")
    return means


if __name__ == "__main__":
    main()
