"""
Experts, with and without privacy
=================================

Eight experts advise on three arms, and the learner follows the best of them. EXP4 learns from every expert's advice at
once, so one noisy report moves all weights. A bandit whose arms are the experts learns of one at a time, but may do so
once a batch, with one noise.
"""

from functools import partial

import jaxbandits as jb

a = jb.algorithms
ds = jb.sweep(
    {
        "local EXP4, noise on every report": partial(a.local_exp4, learning_rate=0.004, mixing=0.05),
        "experts as arms, noise once a batch": partial(
            a.bandit_to_experts, base=partial(a.private_batched, base=a.htinf)
        ),
        "EXP4, no privacy": partial(a.exp4, learning_rate=0.02, mixing=0.02),
    },
    jb.environments.rotating_experts(
        losses=jb.environments.fixed_gap_losses(num_arms=3, best=2, gap=0.4), num_experts=8
    ),
    horizon=10_000,
    seeds=100,
    grid={("epsilon", "experts as arms, noise once a batch.base.epsilon"): [1.0]},
    progress=False,
)
figure, data = jb.plot.regret(ds)
