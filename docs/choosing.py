"""Which algorithm to choose: all of the catalogue that play somewhere, there, at a spent epsilon of 1.

    python docs/choosing.py [PROBLEM ...]       plays them, all by default, and writes docs/guides/choosing.md
    python docs/choosing.py none                writes the page from the data that are there

Runs are kept in runs/choosing, so that a new algorithm costs its own runs. Means are in docs/figures/choosing.csv.

A problem is two instances. Its candidates are found, not named: every algorithm of the catalogue that plays there by
what it declares (what it plays on, which rewards it reads, what it assumes of tails), with its defaults and with one of
its named options at a time. Nothing is tuned. A row of the page is a problem, who is trusted, and the unit that is
protected; its private candidates are given the budget at which they spend 1.
"""

import math
import re
import sys
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
import xarray as xr

import jaxbandits as jb
from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e
from jaxbandits import statistics
from jaxbandits.formatting import markdown_table
from jaxbandits.papers.across.atlas import INSTANCES
from jaxbandits.papers.across.named_epsilon import LINEAR
from jaxbandits.papers.byzantine.instance import FEDERATED
from jaxbandits.papers.robust_linear.instance import unit as unit_norm
from jaxbandits.recipe import recipe_of
from jaxbandits.sweeps.assumptions import doubts_of_moments, doubts_of_range, privacy_spent
from jaxbandits.sweeps.simulate import algorithm_for
from jaxbandits.validation import plays_on

DOCS = Path(__file__).resolve().parent
PAGE, DATA = DOCS / "guides" / "choosing.md", DOCS / "figures" / "choosing.csv"
BEGIN, END = "<!-- choosing: begin -->", "<!-- choosing: end -->"
SHOWN = 3  # algorithms of a row that the page shows
ROW = ["problem", "trusted", "unit"]  # the columns that make a row
DIGITS = [float(f"{m}e{k}") for k in range(-6, 0) for m in range(1000, 10_000)]  # budgets of four digits
EPSILON, LEAST = 1.0, 0.99  # what every private candidate spends; one that spends less than LEAST is left out
ERROR = 0.05  # of all comparisons of a row with its best
BUDGETS = ("epsilon", "rho")  # arguments that say how much is spent
ORACLES = ("oracle_linucb",)  # are told what no learner knows, for comparison
FASTER = ("shortcut",)  # options that change how something is simulated, and not what
SEEDS, T = range(7000, 7050), 50_000  # nothing was chosen on these seeds
# conversion -> its bases; those of others: their own default, or that of their case in the catalogue
BASES = {
    "private_batched": [a.htinf, a.exp3, a.exp3_ix, a.tsallis_inf, a.ftpl],
    "bandit_to_experts": [a.private_batched, a.ldp_exp3, a.tsallis_inf, a.exp3_ix],
}
TRUSTED = {
    "none": "everyone", "central": "a server", "federated": "a server, with noisy sums",
    "shuffle": "a shuffler or secure sums", "arm": "one client an arm", "local": "nobody",
}  # fmt: skip
PRIVATE, PLACES = tuple(TRUSTED)[1:], list(TRUSTED.values())
STRONGER = {"reward": ["reward", "loss vector", "user"]}  # unit -> those whose protection covers it, if not it alone
HEAD = ["must be trusted", "protected", "take instead", "call", "regret on one instance", "on another", "δ"]


class Problem(NamedTuple):
    """What is played: two instances, how they are corrupted, and what a learner is told of that."""

    structure: str
    corrupted: str
    kinds: tuple[str, ...]  # what its algorithms play on
    horizon: int
    instances: list[Any]
    attack: dict[str, Any] = {}  # noqa: RUF012 (never written into)
    told: dict[str, float] = {}  # noqa: RUF012 (never written into)
    models: tuple[str, ...] = tuple(TRUSTED)
    options: tuple[str, ...] = (
        "arms",
        "fixed set",
        "decision set",
        "advice",
        "agents",
    )  # whose named options are tried


class Candidate(NamedTuple):
    """A call that plays a problem, and what it spends of what."""

    call: str
    algorithm: str
    epsilon: float
    delta: float
    trusted: str
    unit: str
    factory: Any
    built: Any  # of calls that build the same the first one counts


def arms(law: Any, *means: list[float], **given: Any) -> list[Any]:
    return [partial(law, means=x, **given) for x in means]


APART = arms(e.bernoulli_arms, [0.9, 0.7, 0.5, 0.3, 0.1], [0.5, 0.5, 0.75, 0.5, 0.5])  # further than lies move them
HEAVY = arms(e.student_arms, [0.6, 0.4, 0.2, 0.0, -0.2], [0.4, 0.4, 0.6, 0.4, 0.4], scale=0.4)
OTHER_THETA = np.append(unit_norm(np.random.default_rng(21).normal(size=4)), 1.0) / math.sqrt(2)
FIXED = [LINEAR, partial(LINEAR, theta=OTHER_THETA)]
PHASES = np.floor(np.log(np.arange(1, T + 1)) / math.log(1.6)) % 2  # phases of growing length, losses low and high
LOSSES = [partial(e.loss_table, losses=np.add.outer(PHASES * (1 - x), x * (np.arange(5) != 2))) for x in (0.2, 0.1)]
TURNS = np.arange(T) // 100 + 1  # the arm that two of the experts favour, modulo 3
DICE = np.random.default_rng(23).random((T, 3))
GAPS = [e.loss_table(losses=1.0 * (DICE < 0.3 + gap * (np.arange(3) != TURNS[:, None] % 3))) for gap in (0.4, 0.2)]
ADVICE = [partial(e.rotating_experts, losses=losses, num_experts=8) for losses in GAPS]
CONTEXTS = [partial(e.contextual_linear, num_arms=10, dim=dim) for dim in (5, 3)]
AGENTS = [partial(FEDERATED, reward="bounded", theta_norm=x, noise_scale=1 - x) for x in (0.7, 0.5)]
REWARDS = {"reward_adversary": partial(v.huber, kind="target", value=1.0, corruption=0.05)}
TOLD = {"corruption_bound": 0.05, "corruption_before": 0.05}
REPORTS = {"message_adversary": partial(v.huber, kind="target", value=10.0, corruption=0.05)}
FORGED = {"corruption_bound": 0.05, "corruption_after": 0.05}
SPREAD, BUDGET = {"reward_adversary": partial(v.budgeted, total=500.0)}, {"corruption_budget": 500.0}
MESSAGES = {"message_adversary": partial(v.byzantine, kind="target", corruption=0.2)}
ON_ARMS, ON_SETS = ("arms",), ("fixed set", "decision set", "arms")
PROBLEMS = {
    "arms": Problem("arms", "none", ON_ARMS, T, arms(e.bernoulli_arms, *INSTANCES.values())),
    "heavy": Problem("arms, heavy tails", "none", ON_ARMS, T, HEAVY),
    "losses": Problem("arms, losses of any kind", "none", ON_ARMS, T, LOSSES, options=()),
    "experts": Problem("8 experts", "none", ("advice", "arms"), T, ADVICE, options=("advice",)),
    "linear": Problem("fixed linear arms", "none", ON_SETS, T, FIXED, options=ON_SETS[:1]),
    "contexts": Problem("contexts", "none", ("decision set",), 20_000, CONTEXTS, options=()),
    "agents": Problem("agents", "none", ("agents",), 2000, AGENTS),
    "share": Problem("arms", "5% of rewards", ON_ARMS, 3000, APART, REWARDS, TOLD, ("none",)),
    "private-share": Problem("arms", "5% of rewards", ON_ARMS, T, APART, REWARDS, TOLD, PRIVATE, ()),
    "reports": Problem("arms", "5% of reports", ON_ARMS, T, APART, REPORTS, FORGED, ("local",)),
    "budget": Problem("arms", "a budget of 500", ON_ARMS, T, APART, SPREAD, BUDGET, options=()),
    "linear-share": Problem(
        "fixed linear arms", "5% of rewards", ON_SETS, T, FIXED, REWARDS, TOLD, options=ON_SETS[:1]
    ),
    "liars": Problem("agents", "20% of agents", ("agents",), 2000, AGENTS, MESSAGES, {"corruption_bound": 0.2}),
}
# of each problem, or the first of those under one heading: what is played, and its two instances
APART_MEANS = "means 0.9, 0.7, 0.5, 0.3, 0.1; then 0.75 among four of 0.5"
ABOUT = {
    "arms": "The rewards of an arm follow one law, as in `bernoulli_arms`. Here five arms, rewards 0 or 1: means 0.5, "
    "0.375, 0.75, 0.625, 0.25; then 0.75 among four of 0.7.",
    "heavy": "A few rewards are huge, as in `student_arms`. Here 3 degrees of freedom and scale 0.4 around 0.6, 0.4, "
    "0.2, 0, -0.2; then around 0.6 among four of 0.4.",
    "losses": "A sequence of losses that may change, as in `loss_table`; a table without a trend is like arms: try "
    "both. Here five arms of which one is always better by 0.2; then by 0.1. Losses of all are low and high in turns "
    "of growing length, which misleads those that compare means of different times. One arm is the best throughout: "
    "where that changes, take what has a bound for every sequence (`tsallis_inf`, with privacy `private_batched`).",
    "experts": "Experts advise, as in `rotating_experts`. Here on three arms, losses 0 or 1, of which another one is "
    "better every 100 plays, by 0.4; then by 0.2; two experts know which. Where one arm stays the best, do without "
    "advice: see arms.",
    "linear": "Rewards are linear in fixed features, as in `linear_arms`. Here twenty arms in five dimensions, rewards "
    "0 or 1; two parameters.",
    "contexts": "Every play shows features of each arm, as in `contextual_linear`; rows of your own, one vector for "
    "all arms, were not compared: put the calls side by side on your file ([own data](../own_data.md)). Here ten arms, "
    "redrawn at every play, in five dimensions; then in three.",
    "agents": "Agents learn together through a server, as in `federated_linear`. Here ten agents, ten arms in four "
    "dimensions, more signal than noise; then as much. `isolated_linucb` sends nothing: where the private row costs "
    "more, let agents learn alone. Without `corruption_bound`, `median_of_means` and `trimmed_mean` are the plain "
    "mean, which one liar breaks.",
    "share": f"1 for a bad arm and -1 for the best replace the rewards, which are 0 or 1: {APART_MEANS}. What reads "
    "rewards in [0, 1] clips the -1 to 0. Without privacy there are fewer plays, since some algorithms keep every "
    "reward and end at 16,384; so no price of privacy is known here.",
    "reports": f"10 and -10 replace what clients send: {APART_MEANS}.",
    "budget": f"The best arm's rewards are lowered from the start, by 500 in all: {APART_MEANS}.",
    "linear-share": "1 for a bad arm and -1 for the best replace the rewards of the fixed linear arms above.",
    "liars": "Agents as above, of whom some send messages that point away from the truth. `isolated_linucb` sends "
    "nothing: where the private row costs more, let agents learn alone.",
}


def write_call(given: Any) -> str:
    """A factory as Python: its name, or a partial with its arguments. Another value as it is written."""
    if not callable(given):
        return f"{given:.4g}" if isinstance(given, float) else repr(given)
    recipe = recipe_of(given)
    bound = "".join(f", {key}={write_call(value)}" for key, value in recipe.bound.items())
    return f"partial({recipe.name}{bound})" if bound else recipe.name


def calls(name: str, problem: Problem) -> Iterator[tuple[Any, str]]:
    """An algorithm's default call, those told of the corruption or with one base, and with one option, and its name.

    What has no default is that of the algorithm's case in the catalogue.
    """
    factory: Any = getattr(a, name)
    rows, example = factory.arguments, factory.example.arguments if factory.example else {}
    needed = {key: example[key] for key, row in rows.items() if row.required and key in example}
    if "base" in needed or name in BASES:
        stated = needed.get("base")
        bases = BASES.get(name) or [getattr(a, stated["name"] if isinstance(stated, dict) else stated)]
        yield from ((partial(factory, base=base), "") for base in bases)
        return
    needed = {key: value for key, value in needed.items() if key not in BUDGETS}
    needed |= {"delta": 1 / problem.horizon} if "delta" in needed else {}
    plain = partial(factory, **needed) if needed else factory
    yield plain, ""
    if told := {key: value for key, value in problem.told.items() if key in rows}:
        yield partial(plain, **told), ""
    for key, row in rows.items():
        values = row.range.values if row.range and row.range.kind == "choice" else (True, False)
        named = key not in FASTER and (row.kinds == [bool] or values != (True, False))
        others = [value for value in values if named and value not in (row.default, None)]
        yield from ((partial(plain, **{key: value}), key) for value in others)


def spend_all(factory: Any, spent: Any) -> Any:
    """The factory with the largest budget of which `spent` is at most EPSILON."""
    recipe = recipe_of(factory)
    key = min((x for x in recipe.known_keys() if x.split(".")[-1] in BUDGETS), key=lambda x: x.count("."))

    def size(budget: float) -> float:
        try:
            return spent(recipe.bind({key: budget}).factory)
        except ValueError:  # outside the range for which the algorithm has a tuning
            return math.inf if budget > EPSILON else 0.0

    most = EPSILON * (1 + 1e-6)
    named = LEAST * EPSILON <= size(EPSILON) <= most
    return recipe.bind({key: EPSILON if named else DIGITS[bisect_right(DIGITS, most, key=size) - 1]}).factory


def judge(factory: Any, problem: Problem) -> Iterator[Candidate]:
    """A call as candidates: without privacy where that is its default, and at EPSILON where it takes a budget."""
    worlds = [instance() for instance in problem.instances]
    adversary = problem.attack["reward_adversary"]() if "reward_adversary" in problem.attack else None
    build = lambda given: algorithm_for(partial(given, horizon=problem.horizon), worlds[0])
    budgets = [key for key in recipe_of(factory).known_keys() if key.split(".")[-1] in BUDGETS]
    for private in [False, True][: 1 + bool(budgets)]:
        try:
            given = spend_all(factory, lambda x: privacy_spent(build(x), None).epsilon) if private else factory
            made = build(given)
        except (TypeError, ValueError):  # it needs a budget, or plays on something else
            continue
        doubts = [x for one in worlds for x in (*doubts_of_range(made, one), *doubts_of_moments(made, one, adversary))]
        model = made.guarantee.model if math.isfinite(made.guarantee.spend(made.params)[0]) else "none"
        if not doubts and plays_on(given, made) in problem.kinds and private == (model != "none"):
            spent = privacy_spent(made, worlds[0], adversary)
            averages = model == "local" and any(span.whole for span in made.schedule)  # a client, rewards of many
            place, unit = (
                TRUSTED["arm" if averages else model],
                made.guarantee.unit.replace("_", " ") if private else "",
            )
            built = made.program, made.schedule, str(jax.tree.map(np.asarray, made.params))
            yield Candidate(write_call(given), made.version[0], *spent[1:], place, unit, given, built)


@cache
def candidates(name: str, horizon: int) -> list[Candidate]:
    """Every call of the catalogue that plays a problem, row by row, those too that cannot spend EPSILON."""
    problem, found = PROBLEMS[name]._replace(horizon=horizon), dict[Any, Candidate]()
    rows = set[tuple[str, str, str]]()
    with warnings.catch_warnings():  # of presets that spend more than they are given, until they are given less
        warnings.simplefilter("ignore", UserWarning)
        for call, option in (x for label in a.__all__ if label not in ORACLES for x in calls(label, problem)):
            tried = option in ("", "preset") or plays_on(call) in problem.options
            for one in judge(call, problem):
                row = one.algorithm, one.trusted, one.unit
                if one.trusted in [TRUSTED[model] for model in problem.models] and (tried or row not in rows):
                    found.setdefault(one.built, one)
                    rows.add(row)
    return sorted(found.values(), key=lambda one: (PLACES.index(one.trusted), one.unit))


def play(name: str) -> pd.DataFrame:
    """The candidates of a problem, row by row and the best first; one that cannot spend EPSILON has no regret."""
    problem, found = PROBLEMS[name], candidates(name, PROBLEMS[name].horizon)
    algorithms = {one.call: one.factory for one in found if one.epsilon >= LEAST}
    algorithms |= {} if "agents" in problem.kinds else {"uniform": a.uniform}  # for comparison
    regrets = []
    for i, instance in enumerate(problem.instances):
        store, settings = f"runs/choosing/{name}-{i + 1}", {"seeds": SEEDS, "checkpoints": 1} | problem.attack
        ds = jb.sweep(algorithms, instance, horizon=problem.horizon, store=store, **settings)
        regrets.append(ds["regret"].reset_coords(drop=True))
    place = {"problem": name, "structure": problem.structure, "corrupted": problem.corrupted, "plays": problem.horizon}
    frame = pd.DataFrame(found).drop(columns=["factory", "built"]).assign(**place)
    for i, regret in enumerate(regrets):
        at = regret.sel(algorithm="uniform").isel(t=-1).mean().item() if "uniform" in algorithms else math.nan
        frame[f"uniform {i + 1}"] = at
    return rank_rows(frame, xr.concat(regrets, "instance"))


def rank_rows(frame: pd.DataFrame, regret: xr.DataArray) -> pd.DataFrame:
    """The candidates with their regrets, each row ranked for itself."""
    frames = []
    for _, row in frame.groupby(ROW, sort=False):
        able = row["epsilon"] >= LEAST
        ranked = rank(regret, list(row["call"][able])).merge(row) if able.any() else row[able]
        frames += [ranked, row[~able]]
    return pd.concat(frames, ignore_index=True)


def rank(regret: xr.DataArray, row: list[str]) -> pd.DataFrame:
    """Calls by their mean regret on both instances, the least first; `p` is that of a difference from it, after Holm.

    regret: [algorithm, instance, seed, t]. Of calls with the same regret in every run the shortest counts.
    """
    shortest = sorted(row, key=len)
    first = {regret.sel(algorithm=call).values.tobytes(): call for call in reversed(shortest)}
    means = regret.sel(algorithm=list(first.values())).isel(t=-1).mean("seed").transpose("algorithm", "instance")
    means = means.sortby(means.mean("instance"))
    (best, *others), both = means["algorithm"].values.tolist(), regret.mean("instance").to_dataset(name="regret")
    with warnings.catch_warnings():  # of few seeds, where differences are skewed
        warnings.simplefilter("ignore", UserWarning)
        tests = [statistics.compare(both, call, best)["p_value"].item() for call in others]
    ends = {f"regret {i + 1}": values for i, values in enumerate(means.values.T)}
    return pd.DataFrame({"call": [best, *others], **ends, "p": [1.0, *statistics.holm(tests)]})


def against_uniform(regret: float, uniform: float) -> str:
    """A regret, and how many percent of that of uniform play it is, where somebody played uniformly."""
    return f"{regret:,.0f}" if math.isnan(uniform) else f"{regret:,.0f} ({100 * regret / uniform:.0f}%)"


def protected(unit: str) -> str:
    return f"one {unit}" if unit else "-"


def shown(row: pd.DataFrame) -> pd.DataFrame:
    """The best call of each of the best algorithms of a row, and all calls that are as good as its best."""
    able = row.dropna(subset="p")
    return able[able["call"].isin(able.drop_duplicates("algorithm")["call"][:SHOWN]) | (able["p"] > ERROR)]


def first_calls(frame: pd.DataFrame) -> pd.DataFrame:
    """The best call of each row."""
    return frame.dropna(subset="p").drop_duplicates(ROW)


def cheaper_row(one: dict[str, Any], best: pd.DataFrame) -> dict[str, Any] | None:
    """Of `best` the row that costs least, if less on both instances, and trusts no more and protects no less.

    A client of each arm is neither more nor less to trust than a shuffler: no row names it in place of its own.
    """
    place, units = PLACES.index(one["trusted"]), STRONGER.get(one["unit"], [one["unit"]])
    fewer = (best["trusted"].map(PLACES.index) >= place) & (best["trusted"] != TRUSTED["arm"])
    safe = fewer & best["unit"].isin(units) & (best["delta"] <= one["delta"])
    less = (best["regret 1"] < one["regret 1"]) & (best["regret 2"] < one["regret 2"])
    found = best[(best["problem"] == one["problem"]) & safe & less]
    found = found.assign(regret=found["regret 1"] + found["regret 2"]).sort_values("regret")
    return found.iloc[0].to_dict() if len(found) else None


def table(frame: pd.DataFrame) -> str:
    """The rows as Markdown, a line for each call that is shown; bold: not told from the best of its row."""
    lines, best = [HEAD], first_calls(frame)
    for _, row in frame.groupby(ROW, sort=False):
        for i, one in enumerate(shown(row).to_dict("records")):
            instead = None if i else cheaper_row(one, best)
            other = f"↓ {instead['trusted']}, {protected(instead['unit'])}" if instead else ""
            cells = [against_uniform(one[f"regret {k}"], one[f"uniform {k}"]) for k in (1, 2)]
            cells = [f"`{one['call']}`", *cells]
            cells = [f"**{cell}**" if one["p"] > ERROR else cell for cell in cells]
            delta = f"{one['delta']:.2g}" if one["unit"] else ""
            lines.append([one["trusted"], protected(one["unit"]), other, *cells, delta])
    unused = not any(line[2] for line in lines[1:])
    return markdown_table([line[:2] + line[3:] if unused else line for line in lines], right=3)


def title(structure: str, corrupted: str) -> str:
    """The heading of a kind of play."""
    return structure.capitalize() + (f", corrupted: {corrupted}" if corrupted != "none" else "")


def prices(frame: pd.DataFrame) -> str:
    """The least regret of each private row over that of its problem without privacy, as Markdown.

    A row that `cheaper_row` finds counts in place of one, with an arrow. Nothing is so many times a regret below zero.
    """
    best = first_calls(frame)
    best = best.assign(regret=best["regret 1"] + best["regret 2"])
    free = best[best["unit"] == ""].set_index("problem")["regret"]
    best = best[(best["unit"] != "") & best["problem"].isin(free.index[free > 0])]
    trusted = [place for place in PLACES if place in set(best["trusted"])]
    lines = [["played", *trusted]]
    for name, rows in best.groupby("problem", sort=False):
        cells = dict.fromkeys(trusted, "")
        for one in rows.to_dict("records"):
            instead = cheaper_row(one, best)
            price = f"{(instead or one)['regret'] / free[name]:.3g}{' ↓' if instead else ''} ({protected(one['unit'])})"
            cells[one["trusted"]] = ", ".join(filter(None, (cells[one["trusted"]], price)))
        heading = title(*rows[["structure", "corrupted"]].iloc[0])
        anchor = re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-"))
        lines.append([f"[{heading}](#{anchor})", *cells.values()])
    return markdown_table(lines)


def section(frame: pd.DataFrame) -> str:
    """What stands on the page between its marks."""
    price = (
        "Times the least regret without privacy, by what must be trusted, and what is protected. ↓: the price of a call"
    )
    parts = [BEGIN, "## What each choice costs", f"{price} that trusts fewer or protects more, and costs less."]
    parts.append(prices(frame))
    for (structure, corrupted), rows in frame.groupby(["structure", "corrupted"], sort=False):
        plays = rows.drop_duplicates("problem")["plays"].tolist()
        long = f", {plays[-1]:,} elsewhere" if len(plays) > 1 else ""
        size = f"{plays[0]:,} plays{' where everyone is trusted' if long else ''}{long}."
        parts += [f"## {title(structure, corrupted)}", f"{ABOUT[rows['problem'].iloc[0]]} {size}", table(rows)]
    unable = dict.fromkeys(frame["call"][frame["p"].isna()])
    parts += [f"No budget makes these spend 1, and they are left out: {', '.join(f'`{x}`' for x in unable)}."] * bool(
        unable
    )
    return "\n\n".join([*parts, END])


def read() -> pd.DataFrame:
    """What the page is written from."""
    numbers = ["p", "regret 1", "regret 2", "uniform 1", "uniform 2"]
    return pd.read_csv(DATA, keep_default_na=False, na_values={key: [""] for key in numbers})


def write(frame: pd.DataFrame) -> None:
    """Put the table into the page."""
    text, places = re.subn(f"{BEGIN}.*{END}", lambda _: section(frame), PAGE.read_text("utf-8"), flags=re.S)
    if places != 1:
        raise ValueError(f"{PAGE}: {places} places for the table: give it one pair of lines, {BEGIN} and {END}")
    PAGE.write_text(text, "utf-8")


def main(names: list[str]) -> None:
    """Play problems, and write the data and the page."""
    known = read() if DATA.exists() else pd.DataFrame({"problem": []})
    for name in [] if names == ["none"] else names or PROBLEMS:
        known = pd.concat([known[known["problem"] != name], play(name)], ignore_index=True)
        order = {label: i for i, label in enumerate(PROBLEMS)}
        known = known.sort_values("problem", key=lambda column: column.map(order), kind="stable")
        known.to_csv(DATA, index=False, float_format="%.5g")
        write(read())
    write(read())


if __name__ == "__main__":
    main(sys.argv[1:])
