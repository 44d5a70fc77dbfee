"""Without communication the regret is linear.

Proposition 1: without communication the regret grows as alpha N T; with it, it does not. A share of the agents has half
of its rewards drawn from the instance -theta, so that the rewards of such an agent say nothing about theta. Regret
counts the plays that were not attacked.
"""

from functools import partial

import numpy as np

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits.formatting import brackets
from jaxbandits.papers.byzantine.instance import FEDERATED, NUM_AGENTS
from jaxbandits.papers.shared import against, by_algorithm, ratio_interval
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, swept
from jaxbandits.selection import final_regret

SHARE, PROB = 0.2, 0.5  # of attacked agents, which the server knows, and of their attacked plays
ALONE, TOGETHER = "isolated agents", "Byzantine-UCB"


def sweeps(full: bool) -> dict[str, Sweep]:
    horizons, seeds = ([512, 2048, 8192, 32_768], 64) if full else ([64, 256], 4)
    algorithms = {ALONE: a.isolated_linucb, TOGETHER: partial(a.byzantine_ucb, corruption_bound=SHARE)}
    attack = partial(v.poison, corruption=SHARE, prob=PROB)
    return {"poisoned": swept(algorithms, FEDERATED, horizons, seeds, reward_adversary=attack)}


PICTURE = against(
    "poisoned", "horizon", width=5.5, reference={"α N T / 20": lambda xs: SHARE * NUM_AGENTS * np.asarray(xs) / 20},
    caption=f"regret summed over {NUM_AGENTS} agents and the plays that were not attacked; "
    f"{SHARE:.0%} of the agents have half of their rewards from -θ",
)  # fmt: skip


def claims(results: Results) -> Claims:
    ds = results["poisoned"]
    final = final_regret(ds)
    first, last = (int(ds["horizon"].values[i]) for i in (0, -1))
    statements = {
        ALONE: "at least c α N T for a constant c (Proposition 1)",
        TOGETHER: "Õ(T^(3/4)) (Theorem 2), constants hidden",
    }
    for label, paper in statements.items():
        here = final.sel(algorithm=label)
        ratio, low, high = ratio_interval(here.sel(horizon=last).values / last, here.sel(horizon=first).values / first)
        measured = f"{float(ratio):.3g} of the regret a play is left when T grows {last // first}-fold"
        measured += f"; share left {brackets(low, high)}" if label == ALONE else ""
        yield Claim(f"{label}: regret", paper, measured)
    yield from by_algorithm(ds, "horizon", "{}: regret at each T".format, "{y:,.1f} at {x:,}")
    end = float(final.sel(algorithm=ALONE, horizon=last).mean() / (SHARE * NUM_AGENTS * last))
    yield Claim("isolated agents: regret over α N T at the longest horizon", "", f"{end:.3f}")


STUDY = Study(__doc__, "Proposition 1; Theorem 2", sweeps, {"horizon": PICTURE}, claims)
