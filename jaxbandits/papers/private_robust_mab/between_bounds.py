"""E4: regret against epsilon and against the share of contaminated rewards, between the lower and the upper bound."""

from functools import partial

from jaxbandits import statistics
from jaxbandits.papers.private_robust_mab.raw_moments import ATTACKS, AXES, PARETO, PRM, order_lines
from jaxbandits.papers.shared import REWARD_SHARE, regrets
from jaxbandits.papers.study import Claim, Claims, Results, Study, Sweep, swept
from jaxbandits.reports import plot


def sweeps(full: bool) -> dict[str, Sweep]:
    """A sweep over epsilon without contamination, and one over the share at epsilon = 1."""
    horizon, seeds = (100_000, 200) if full else (2000, 16)
    epsilons = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0] if full else [0.1, 1.0]
    shares = {"epsilon": [1.0], REWARD_SHARE: [0.001, 0.003, 0.01, 0.03, 0.1] if full else [0.01, 0.1]}
    prm = partial(swept, PRM, PARETO, horizon, seeds)
    return {"epsilon": prm(grid={"epsilon": epsilons}), "share": prm(grid=shares, reward_adversary=ATTACKS["swapped"])}


def along(results, name):
    """(key, {name of a bound: its order}) of one sweep, cut at playing the worst arm throughout."""
    horizon = int(results[name].t[-1])
    if name == "epsilon":
        return "epsilon", order_lines(horizon, lambda x: (x, 0.0))
    return "corruption_bound", order_lines(horizon, lambda x: (1.0, x))


def draw(name, results: Results) -> plot.Plot:
    """Final regret along one axis, on logarithmic axes, with both bounds."""
    key, reference = along(results, name)
    given = "no contamination" if name == "epsilon" else "swapped rewards, ε = 1"
    caption = f"Pareto rewards; {given}"
    return plot.against(results[name], key, reference=reference, names=AXES, caption=caption, width=5.5)


def claims(results: Results) -> Claims:
    """Regrets between the bounds' orders, and fitted exponents next to the theorem's."""
    exponents = {
        "epsilon": ("1/ε", -1, "1/2 (k = 2), uniformly over instances"),
        "share": ("α", 1, "1/2 (k = 2), and -1 where T₀ rules"),
    }
    for name, (what, sign, paper) in exponents.items():
        key, lines = along(results, name)
        upper, lower = lines.values()
        fitted = statistics.slope(results[name], over=key).set_index("algorithm")
        for label, row in fitted.iterrows():
            low, high = sorted((sign * row.ci_low, sign * row.ci_high))
            measured = f"{sign * row.slope:.2f} [{low:.2f}, {high:.2f}]"
            yield Claim(f"exponent of {what}, {label}", paper, measured)
        for label, part in regrets(results[name]).groupby("algorithm", sort=False):
            x, mean = part[key].to_numpy(), part["mean"].to_numpy()
            above, ratio = int((mean >= lower(x)).sum()), mean / upper(x)
            measured = (
                f"above the lower (times 1/27) at {above}, below the upper at {int((ratio <= 1).sum())} of {len(part)} "
                f"points; {ratio.min():.2f} to {ratio.max():.2f} of the upper"
            )
            paper = "orders, constants unspecified; the upper is proved for PRM elimination"
            yield Claim(f"between the bounds along {what}, {label}", paper, measured)


STUDY = Study(
    "Regret between the lower and the upper bound", "Theorems 4.1 and 6.2; docs/reproductions/private_robust_mab.md",
    sweeps, {"epsilon": partial(draw, "epsilon"), "share": partial(draw, "share")}, claims,
)  # fmt: skip
