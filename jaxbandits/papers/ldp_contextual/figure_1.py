"""Figure 1: regret over time at three privacy levels, as printed and with the reward alone perturbed.

"As printed" is Algorithm 1's noise, and otherwise what favours the algorithm most. The study `printed-form` has the
perturbation and the bound on gradients that it has in print.
"""

from functools import partial

from jaxbandits import algorithms as a
from jaxbandits.papers.ldp_contextual.instance import (
    BELOW,
    CONTEXTUAL,
    DELTA,
    EPSILONS,
    HORIZON,
    ORDERS,
    PRIVATE_RIVALS,
    RIVALS,
    SDP,
    as_good,
    below,
    delivered,
    excess,
    of_each,
)
from jaxbandits.papers.shared import REGRET, points
from jaxbandits.papers.study import Claim, Interval, Results, Study, Sweep, decisive, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret

PAPER_TRIALS = 50
PRINTED = partial(a.online_ucb, calibration="paper", delta=DELTA)
REWARD_ONLY = partial(PRINTED, private_features=False)
READINGS = {
    "as printed": {"OnlineUCB, Maler": PRINTED, "OnlineUCB, OGD": partial(PRINTED, learner="ogd")},
    "reward only": {"reward only, Maler": REWARD_ONLY, "reward only, OGD": partial(REWARD_ONLY, learner="ogd")},
}
CONTEXTS = {"redraw": "contexts redrawn", "fixed": "contexts fixed"}


def sweeps(full: bool) -> dict[str, Sweep]:
    """Every algorithm at every privacy level, with contexts redrawn and fixed.

    The paper's 50 trials are the first 50 seeds.
    """
    horizon, seeds = (HORIZON, 1000) if full else (200, 4)
    algorithms = RIVALS | READINGS["as printed"] | READINGS["reward only"]
    grid = {"environment.contexts": list(CONTEXTS), "epsilon": EPSILONS}
    return {"curves": swept(algorithms, CONTEXTUAL, horizon, seeds, grid=grid, checkpoints=60)}


def draw(reading, results: Results, contexts="redraw", trials=None) -> plot.Plot:
    """One reading's three panels."""
    ds = results["curves"].sel({"algorithm": [*RIVALS, *READINGS[reading]], "environment.contexts": contexts})
    ds = ds.drop_vars("environment.contexts").isel(seed=slice(trials), t=ds["t"] >= ds["t"][-1] / 50)
    return plot.regret(ds, log="y", caption=f"{reading}; {CONTEXTS[contexts]}")


NEIGHBOURS = [("LinUCB", "JDP"), *(("JDP", name) for name in SDP), *((name, "LDP") for name in SDP)]  # of O5


def orders(final, label) -> list[Claim]:
    """The figure's three orders for one algorithm: name, what is claimed, what is measured, whether it holds.

    final: final regrets (algorithm, epsilon, seed). An order holds where the 95% interval of the paired difference to
    every rival is below zero.
    """
    entries = []
    for epsilon, rivals in BELOW.items():
        here = of_each(final.sel(epsilon=epsilon))
        mean, low, high, worst = excess(here[label], {name: here[name] for name in rivals})
        measured, evidence = f"nearest rival {worst}: {mean:+,.0f}", Interval("interval", low, high, at_most=0.0)
        claimed = f"below {', '.join(rivals)}"
        entries.append(Claim(f"{ORDERS[epsilon]}, ε = {epsilon:g}", claimed, measured, evidence))
    here = of_each(final.sel(epsilon=EPSILONS[0]))
    ratios = {name: as_good(f"ratio to {name}", here[label], here[name]) for name in SDP}
    measured = ", ".join(f"{ratio:.2f} times {name}" for name, (ratio, _) in ratios.items())
    nearest = min(ratios.values(), key=lambda found: abs(found[0] - 1))[1]
    entries.insert(1, Claim(f"O1, ε = {EPSILONS[0]:g}", "like SDP", measured, nearest))
    return entries


def comparators(final) -> list[Claim]:
    """O5: LinUCB < JDP < SDP < LDP at every privacy level, and each private curve falls as epsilon rises."""
    entries = []
    for epsilon in EPSILONS:
        regret = of_each(final.sel(epsilon=epsilon))
        measured = points(RIVALS, [regret[name].mean() for name in RIVALS], REGRET)
        evidence = decisive([below(f"{low} minus {high}", regret[low] - regret[high]) for low, high in NEIGHBOURS])
        entries.append(Claim(f"O5, ε = {epsilon:g}", "LinUCB < JDP < SDP < LDP", measured, evidence))
    steps = {x: final.sel(algorithm=x).diff("epsilon").transpose("epsilon", "seed").values for x in PRIVATE_RIVALS}
    rising = [name for name, differences in steps.items() if not (differences.mean(1) < 0).all()]
    measured = f"not {', '.join(rising)}" if rising else "all fall"
    evidence = decisive([below(f"{name}, one step of ε", step) for name, found in steps.items() for step in found])
    return [*entries, Claim("O5", "each private curve falls as ε rises", measured, evidence)]


def alike(final, labels) -> Claim:
    """O4: OGD in the place of Maler; labels: Maler's and OGD's."""
    maler, ogd = (final.sel(algorithm=label) for label in labels)
    ratios = {x: as_good(f"at ε = {x:g}", ogd.sel(epsilon=x).values, maler.sel(epsilon=x).values) for x in EPSILONS}
    measured = ", ".join(f"{ratio:.2f} times at ε = {eps:g}" for eps, (ratio, _) in ratios.items())
    furthest = max(ratios.values(), key=lambda found: abs(found[0] - 1))[1]
    return Claim("O4", "OGD matches Maler", measured, furthest)


def claims(results: Results) -> list[Claim]:
    """O1 to O5 for both readings and both kinds of contexts, at all trials and at the paper's.

    The last lines say what privacy either reading delivers.
    """
    final, entries = final_regret(results["curves"]), []
    for contexts, words in CONTEXTS.items():
        here = final.sel({"environment.contexts": contexts})
        entries += [_of(claim, words) for claim in comparators(here)]
        for reading, labels in READINGS.items():
            for label in labels:
                entries += [_of(claim, f"{label}, {words}") for claim in orders(here, label)]
                held: dict[str, list[bool | None]] = {}
                for claim in orders(here.isel(seed=slice(PAPER_TRIALS)), label):
                    held.setdefault(claim.statement, []).append(claim.holds)
                found = ["yes" if all(one) else "no" if False in one else "open" for one in held.values()]
                trials = min(PAPER_TRIALS, here.sizes["seed"])
                statement = f"the same at {trials} trials: {label}, {words}"
                entries.append(Claim(statement, "", points(held, found, "{x} {y}")))
            entries.append(_of(alike(here, list(labels)), f"{reading}, {words}"))
    return entries + [privacy_of("as printed", PRINTED), privacy_of("reward only", REWARD_ONLY)]


def privacy_of(name: str, algorithm) -> Claim:
    """What the noise of an algorithm delivers at every privacy level."""
    spent = [delivered(algorithm, epsilon=eps)[0] for eps in EPSILONS]
    return Claim(f"{name}: privacy delivered, ε at δ = 0.1", "", points(EPSILONS, spent, "ε = {x:g}: {y:.3g}", "; "))


def _of(claim: Claim, whose: str) -> Claim:
    return claim._replace(statement=f"{claim.statement}: {whose}")


STUDY = Study(
    "Regret of OnlineUCB and its rivals at three privacy levels", "Figure 1; docs/formulas/ldp_contextual.md#figure-1",
    sweeps,
    {
        "printed": partial(draw, "as printed"),
        "printed-50": partial(draw, "as printed", trials=PAPER_TRIALS),
        "reward-only": partial(draw, "reward only"),
        "reward-only-50": partial(draw, "reward only", trials=PAPER_TRIALS),
        "reward-only-fixed": partial(draw, "reward only", contexts="fixed"),
    },
    claims,
)  # fmt: skip
