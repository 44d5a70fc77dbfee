"""Draw the two pictures of the landing page and the README: what three levels of trust cost, and an audit of a claim.

    python docs/landing.py     docs/figures/landing-trust.png, landing-audit.png, and their figures in landing.json

The world is that of examples/quickstart.toml, and the audited algorithm that of the gallery's `plot_audit.py`.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import jaxbandits as jb
from jaxbandits.auditing.confidence_bounds import claimed_curve
from jaxbandits.reports import layout
from jaxbandits.sweeps.toml_file import read_config

DOCS = Path(__file__).resolve().parent
FIGURES = DOCS / "figures"
EPSILON = 1.0
RUNS, CONFIDENCE = 100_000, 0.999  # of an audit
LEARNERS = {
    "no privacy": "every reward is seen",
    "central privacy": "a server is trusted",
    "local privacy": "nobody is trusted",
}
SIZE = {"figsize": (3.9, 2.9), "layout": "constrained"}


def sweep() -> Any:
    """The quickstart at one privacy level."""
    settings = read_config(DOCS.parent / "examples/quickstart.toml")
    chosen = {key: settings[key] for key in ("horizon", "seeds")}
    return jb.sweep(
        settings["algorithms"], settings["environment"], grid={"epsilon": [EPSILON]}, progress=False, **chosen
    )


def prices(ds: Any) -> dict[str, float]:
    """Mean regret of each learner at the horizon."""
    final = ds["regret"].isel(t=-1).squeeze("epsilon").mean("seed")
    return {name: float(final.sel(algorithm=name)) for name in LEARNERS}


def times(found: dict[str, float]) -> dict[str, str]:
    """What a learner's regret is in those of the one without privacy."""
    return {name: f"{value / found['no privacy']:.1f}" for name, value in found.items()}


def trust(ds: Any, path: Path) -> None:
    """Regret against plays, each curve with its name and its price at its end."""
    from matplotlib.figure import Figure

    found = prices(ds)
    with layout.style(**{"font.size": 8}):
        figure = Figure(**SIZE)
        axes = figure.subplots()
        data = jb.plot.regret(ds, log="none").data
        for (name, words), colour, side in zip(
            LEARNERS.items(), layout.COLOURS, ("top", "bottom", "center"), strict=False
        ):
            curve = data[data["algorithm"] == name]
            axes.plot(curve["t"], curve["centre"], color=colour, linewidth=2)
            axes.fill_between(curve["t"], curve["low"], curve["high"], color=colour, alpha=0.2, linewidth=0)
            price = [] if name == "no privacy" else [f"{times(found)[name]} times the regret"]
            axes.annotate(
                "\n".join([name, words, *price]), (curve["t"].iloc[-1], curve["centre"].iloc[-1]), (6, 0),
                textcoords="offset points", color=colour, va=side, annotation_clip=False,
            )  # fmt: skip
        _bare(axes)
        layout.axis(axes.xaxis, data["t"].to_numpy(), False)
        axes.set(ylim=(0, None), xlabel="plays", ylabel="cumulative regret")
        axes.set_title(rf"What trust is worth, at $\varepsilon$ = {EPSILON:g}", loc="left", fontweight="bold")
        layout.save(figure, path)


def audits() -> dict[str, Any]:
    """The same claim twice: with the noise that it needs, and with two thirds of it."""
    honest = jb.algorithms.ldp_ucb(num_arms=2, horizon=100, epsilon=EPSILON)
    claim = honest.guarantee._replace(
        events=lambda params: honest.guarantee.events(honest.params),
        spend=lambda params: honest.guarantee.spend(honest.params),
    )
    cheat = honest._replace(params=honest.params._replace(mechanism_scale=2 / 3), guarantee=claim)
    return {
        "honest": jb.audit(honest, runs=RUNS, confidence=CONFIDENCE),
        "two thirds": jb.audit(cheat, runs=RUNS, confidence=CONFIDENCE),
    }


def audit(found: dict[str, Any], path: Path) -> None:
    """What the audits' tests reach beside what the claim allows."""
    from matplotlib.figure import Figure

    honest, cheat = (jb.plot.trade_off(found[name]).data for name in ("honest", "two thirds"))
    with layout.style(**{"font.size": 8}):
        figure = Figure(**SIZE)
        axes = figure.subplots()
        alpha = np.linspace(0, 1, 401)
        allowed = claimed_curve(EPSILON, 0.0, alpha)
        axes.fill_between(alpha, allowed, color="0.5", alpha=0.12, linewidth=0)
        axes.plot(alpha, allowed, color="0.35", linestyle=(0, (5, 1.5)))
        axes.plot(honest["false_positive"], honest["false_negative_high"], color=layout.COLOURS[0], linewidth=2)
        axes.plot(cheat["false_positive"], cheat["false_negative_high"], color=layout.COLOURS[1], linewidth=2)
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="false alarms of the attack", ylabel="misses of the attack")
        _bare(axes)
        axes.set_title(rf"An audit attacks the claim $\varepsilon$ = {EPSILON:g}", loc="left", fontweight="bold")
        low = {name: f"{one.epsilon_lower:.2f}" for name, one in found.items()}
        spent = rf"$\varepsilon$ of at least {low['honest']} is spent"
        axes.text(0.3, 0.4, f"as much noise as it needs:\n{spent}", color=layout.COLOURS[0])
        axes.text(
            0.03, 0.04, f"two thirds of that noise:\nat least {low['two thirds']}, refuted", color=layout.COLOURS[1]
        )
        axes.annotate("if the claim is true, no attack\ngets below the dashes", (0.13, 0.62), (0.3, 0.75), color="0.35",
                      arrowprops={"arrowstyle": "-", "color": "0.35", "linewidth": 0.6})  # fmt: skip
        layout.save(figure, path)


def _bare(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.92", linewidth=0.5)
    axes.set_axisbelow(True)


def main() -> int:
    ds, found = sweep(), audits()
    trust(ds, FIGURES / "landing-trust.png")
    audit(found, FIGURES / "landing-audit.png")
    figures = {"regret": prices(ds), "epsilon_lower": {name: one.epsilon_lower for name, one in found.items()}}
    (FIGURES / "landing.json").write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
