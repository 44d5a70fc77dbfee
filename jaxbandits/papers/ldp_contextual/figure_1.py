"""Regret of OnlineUCB and its rivals at three privacy levels.

Figure 1, as printed and with the reward alone perturbed. "As printed" is Algorithm 1's noise, and otherwise what
favours the algorithm most. The study `printed-form` has the perturbation and the bound on gradients that it has in
print.
"""

from functools import partial

from jaxbandits import algorithms as a
from jaxbandits.papers.ldp_contextual import instance
from jaxbandits.papers.ldp_contextual.instance import EPSILONS, PRIVATE_RIVALS, RIVALS, SDP, as_good, below, of_each
from jaxbandits.papers.shared import REGRET, points
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, decisive, swept
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret

PAPER_TRIALS = 50  # the first seeds
PRINTED = partial(a.online_ucb, calibration="paper", delta=instance.DELTA)
REWARD_ONLY = partial(PRINTED, private_features=False)
READINGS = {
    "as printed": {"OnlineUCB, Maler": PRINTED, "OnlineUCB, OGD": partial(PRINTED, learner="ogd")},
    "reward only": {"reward only, Maler": REWARD_ONLY, "reward only, OGD": partial(REWARD_ONLY, learner="ogd")},
}
CONTEXTS = {"redraw": "contexts redrawn", "fixed": "contexts fixed"}


def sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (instance.HORIZON, 1000) if full else (200, 4)
    algorithms = RIVALS | READINGS["as printed"] | READINGS["reward only"]
    grid = {"environment.contexts": list(CONTEXTS), "epsilon": EPSILONS}
    return {"curves": swept(algorithms, instance.CONTEXTUAL, horizon, seeds, grid=grid, checkpoints=60)}


def draw(reading, results: Results, contexts="redraw", trials=None) -> plot.Plot:
    """One reading's three panels."""
    ds = results["curves"].sel({"algorithm": [*RIVALS, *READINGS[reading]], "environment.contexts": contexts})
    ds = ds.drop_vars("environment.contexts").isel(seed=slice(trials), t=ds["t"] >= ds["t"][-1] / 50)
    return plot.regret(ds, log="y", caption=f"{reading}; {CONTEXTS[contexts]}")


NEIGHBOURS = [("LinUCB", "JDP"), *(("JDP", name) for name in SDP), *((name, "LDP") for name in SDP)]  # of O5


def orders(final, label) -> Claims:
    """The figure's orders for one algorithm, from final regrets (algorithm, epsilon, seed)."""
    for epsilon in EPSILONS:
        here = of_each(final.sel(epsilon=epsilon))
        yield instance.order(epsilon, here[label], here)
        if epsilon == EPSILONS[0]:
            ratios = {name: as_good(f"ratio to {name}", here[label], here[name]) for name in SDP}
            measured = ", ".join(f"{ratio:.2f} times {name}" for name, (ratio, _) in ratios.items())
            nearest = min(ratios.values(), key=lambda found: abs(found[0] - 1))[1]
            yield Claim(f"O1, ε = {epsilon:g}", "like SDP", measured, nearest)


def comparators(final) -> Claims:
    """O5: LinUCB < JDP < SDP < LDP at every privacy level, and each private curve falls as epsilon rises."""
    for epsilon in EPSILONS:
        regret = of_each(final.sel(epsilon=epsilon))
        measured = points(RIVALS, [regret[name].mean() for name in RIVALS], REGRET)
        evidence = decisive([below(f"{low} minus {high}", regret[low] - regret[high]) for low, high in NEIGHBOURS])
        yield Claim(f"O5, ε = {epsilon:g}", "LinUCB < JDP < SDP < LDP", measured, evidence)
    steps = {x: final.sel(algorithm=x).diff("epsilon").transpose("epsilon", "seed").values for x in PRIVATE_RIVALS}
    rising = [name for name, differences in steps.items() if not (differences.mean(1) < 0).all()]
    measured = f"not {', '.join(rising)}" if rising else "all fall"
    evidence = decisive([below(f"{name}, one step of ε", step) for name, found in steps.items() for step in found])
    yield Claim("O5", "each private curve falls as ε rises", measured, evidence)


def alike(final, labels) -> Claim:
    """O4: OGD in the place of Maler; labels: Maler's and OGD's."""
    maler, ogd = (final.sel(algorithm=label) for label in labels)
    ratios = {x: as_good(f"at ε = {x:g}", ogd.sel(epsilon=x).values, maler.sel(epsilon=x).values) for x in EPSILONS}
    measured = ", ".join(f"{ratio:.2f} times at ε = {eps:g}" for eps, (ratio, _) in ratios.items())
    furthest = max(ratios.values(), key=lambda found: abs(found[0] - 1))[1]
    return Claim("O4", "OGD matches Maler", measured, furthest)


def claims(results: Results) -> Claims:
    """O1 to O5 for both readings and both kinds of contexts, at all trials and at the paper's; their privacy."""
    final = final_regret(results["curves"])
    for contexts, words in CONTEXTS.items():
        here = final.sel({"environment.contexts": contexts})
        yield from of(words, comparators(here))
        for reading, labels in READINGS.items():
            for label in labels:
                yield from of(f"{label}, {words}", orders(here, label))
                held: dict[str, list[bool | None]] = {}
                for claim in orders(here.isel(seed=slice(PAPER_TRIALS)), label):
                    held.setdefault(claim.statement, []).append(claim.holds)
                found = ["yes" if all(one) else "no" if False in one else "open" for one in held.values()]
                trials = min(PAPER_TRIALS, here.sizes["seed"])
                statement = f"the same at {trials} trials: {label}, {words}"
                yield Claim(statement, "", points(held, found, "{x} {y}"))
            yield from of(f"{reading}, {words}", [alike(here, list(labels))])
    yield privacy_of("as printed", PRINTED)
    yield privacy_of("reward only", REWARD_ONLY)


def privacy_of(name: str, algorithm) -> Claim:
    """What the noise of an algorithm delivers at every privacy level."""
    spent = [instance.delivered(algorithm, epsilon=eps)[0] for eps in EPSILONS]
    return Claim(f"{name}: privacy delivered, ε at δ = 0.1", "", points(EPSILONS, spent, "ε = {x:g}: {y:.3g}", "; "))


def of(whose: str, claims: Claims) -> Claims:
    """The claims, with whose they are in their statements."""
    return [claim._replace(statement=f"{claim.statement}: {whose}") for claim in claims]


STUDY = Study(
    __doc__, "Figure 1; docs/formulas/ldp_contextual.md#figure-1", sweeps,
    {
        "printed": partial(draw, "as printed"),
        "printed-50": partial(draw, "as printed", trials=PAPER_TRIALS),
        "reward-only": partial(draw, "reward only"),
        "reward-only-50": partial(draw, "reward only", trials=PAPER_TRIALS),
        "reward-only-fixed": partial(draw, "reward only", contexts="fixed"),
    },
    claims,
)  # fmt: skip
