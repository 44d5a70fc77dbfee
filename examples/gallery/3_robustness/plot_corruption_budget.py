"""
An attacker with a budget
=========================

The attacker may change rewards by so much in all, and spends it on the best arm's first rewards. UCB1 falls off a
cliff: from some budget on it has dropped the best arm for good. Elimination that is told the budget waits longer before
it drops an arm, and its regret grows in proportion.
"""

from functools import partial

import jaxbandits as jb

BUDGETS = [0, 10, 20, 30, 50, 75, 100]
ds = jb.sweep(
    {"UCB1": jb.algorithms.ucb1, "told": partial(jb.algorithms.stopping_elimination, failure_prob=0.05)},
    jb.environments.bernoulli_arms(means=[0.9, 0.5, 0.5, 0.1]),
    horizon=10_000,
    seeds=100,
    reward_adversary=jb.adversaries.budgeted,
    grid={("reward_adversary.total", "told.corruption_budget"): BUDGETS},  # the learner knows what the attacker has
    checkpoints=1,
    progress=False,
)
figure, data = jb.plot.lines(
    jb.summary(ds),
    "reward_adversary.total",
    "mean",
    line="algorithm",
    names={"reward_adversary.total": "budget of the attack", "mean": "regret after 10,000 plays"},
)
