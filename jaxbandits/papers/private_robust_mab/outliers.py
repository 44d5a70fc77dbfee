"""What 5% of rewards equal to inf, NaN, a million or minus a million do to each algorithm that was told to expect 5%."""

from functools import partial

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits.papers.private_robust_mab.raw_moments import PARETO
from jaxbandits.papers.private_robust_mab.tables import regrets
from jaxbandits.papers.study import Claim, Study, Sweep

BOUND = 0.05
ATTACKS = {
    "inf": partial(v.huber, value="inf"), "NaN": partial(v.huber, value="nan"), "1e6": partial(v.huber, value=1e6),
    "-1e6": partial(v.huber, value=-1e6), "swapped": partial(v.huber, kind="swapped"),
}  # fmt: skip
HEAVY = {"moment_order": 2.0, "moment_bound": 1.0}
ALGORITHMS = {
    "PRM elimination": partial(a.prm_elimination, epsilon=1.0, corruption_bound=BOUND),
    "PRM-UCB": partial(a.prm_ucb, epsilon=1.0, corruption_bound=BOUND),
    "robust UCB, truncated mean": partial(a.robust_ucb, **HEAVY),
    "robust UCB, median of means": partial(a.robust_ucb, estimator="median_of_means", **HEAVY),
    "robust UCB, Catoni": partial(a.robust_ucb, estimator="catoni", **HEAVY),
    "Huber UCB": partial(a.huber_ucb, corruption_bound=BOUND),
    "crUCB, trimmed mean": partial(a.cr_ucb, corruption_bound=BOUND),
    "crUCB, shorth": partial(a.cr_ucb, estimator="shorth", corruption_bound=BOUND),
    "UCB1": a.ucb1,
}
ASKED = (
    "PRM elimination",
    "PRM-UCB",
    "robust UCB, truncated mean",
)  # to stay within 1.5 under everything but swapped rewards
RULES = {
    "PRM elimination": "left out, n stays", "PRM-UCB": "left out, n stays", "robust UCB, truncated mean": "counts as 0",
}  # fmt: skip


def sweeps(full: bool) -> dict[str, Sweep]:
    """One sweep an attack, with and without it, the learners' belief unchanged."""
    horizon, seeds = (4000, 100) if full else (1000, 8)  # what keeps rewards takes time as T^2
    labels = ALGORITHMS if full else {k: ALGORITHMS[k] for k in (*ASKED, "UCB1")}
    settings = {
        "algorithms": labels, "environment": PARETO, "horizon": horizon, "seeds": seeds, "checkpoints": 1,
        "grid": {"reward_adversary.corruption": [0.0, BOUND]},
    }  # fmt: skip
    attacks = ATTACKS if full else {"inf": ATTACKS["inf"], "1e6": ATTACKS["1e6"]}
    return {name: Sweep(settings | {"reward_adversary": attack}) for name, attack in attacks.items()}


def claims(results) -> list[Claim]:
    """Regret with the attack over regret without it; for the algorithms asked, at most 1.5 under everything but swapped rewards."""
    ratio: dict = {}
    seen = {}
    for name, ds in results.items():
        frame = regrets(ds).set_index(["reward_adversary.corruption", "algorithm"])["mean"]
        ratio[name] = frame.loc[BOUND] / frame.loc[0.0]
        clean = frame.loc[0.0]
        bad = ds["nonfinite_rewards"].sel({"reward_adversary.corruption": BOUND}).mean("seed")
        seen[name] = {str(x): float(bad.sel(algorithm=x)) for x in ds["algorithm"].values}
    made = []
    for label in clean.index:
        said = ", ".join(f"{name} {ratio[name][label]:.2f}" for name in results)
        acted = max(seen[name][label] for name in results)
        rule = f"; a non-finite reward {RULES.get(label, 'counts as 0')}, {acted:,.0f} of them a run"
        holds = all(ratio[name][label] <= 1.5 for name in results if name != "swapped") if label in ASKED else None
        asked = "at most 1.5 for inf, NaN, ±1e6" if label in ASKED else "breaks at ±1e6" if label == "UCB1" else ""
        if label == "UCB1":
            holds = any(ratio[name][label] > 1.5 for name in results if "1e6" in name)
        made.append(Claim(f"{label}: regret {clean[label]:,.0f} without; ratio with", asked, said + rule, holds))
    return made


STUDY = Study(
    "Five per cent of rewards replaced: who breaks",
    "Sections 1 and 8 of the specification",
    sweeps,
    {},
    claims,
)
