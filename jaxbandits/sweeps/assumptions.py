"""What an algorithm assumes of rewards and spends of privacy, what the environment pays, and what a dtype can hold.

An assumption is never filled in from the environment. A wrong one is no error, but the user should know that the
guarantee does not hold. Moments: docs/formulas/private_robust_mab.md#model. Bounded rewards:
docs/formulas/robust_linear.md#edges. Federated privacy: docs/formulas/byzantine.md#privacy-noise and
docs/formulas/byzantine.md#names-and-edges.
"""

import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxbandits.formatting import brackets
from jaxbandits.mechanisms.composition import claimed_epsilon, compose, repeat_events
from jaxbandits.protocol import Adversary, Algorithm, Environment
from jaxbandits.regret import gaps_of
from jaxbandits.spending import TOLERANCE

BOUND_ROUNDING = 1e-9  # relative; a bound that was computed from the same numbers counts as met
LARGEST_CHANGE = 0.01  # of a gap between arms, or of a probability, as a share
# Spacing of the uniforms that rewards are drawn from (`jaxbandits.random`).
GRID = {"float32": 2.0**-23, "float64": 2.0**-52}
Doubt: TypeAlias = tuple[str, float, str, str]  # subject, how large, text, what follows
Doubts: TypeAlias = Iterator[Doubt]
Numbers: TypeAlias = np.ndarray[Any, Any]
# what becomes of rewards outside the range, by `Rewards.outside`
FATES = {"clip": "clips others", "zero": "counts others as 0", "accept": "takes others as they are"}


class Spent(NamedTuple):
    """One run's privacy. Where nothing is promised: NaN, inf, 0."""

    asked: float  # epsilon; NaN where none is named
    epsilon: float
    delta: float


def range_of_rewards(environment: Environment) -> tuple[float, float] | None:
    """The range (low, high) of an environment's rewards: its `reward_range`, or +-`reward_bound`; None without both."""
    facts = environment.facts
    if "reward_range" in facts:
        low, high = facts["reward_range"]
        return float(low), float(high)
    return (-facts["reward_bound"], facts["reward_bound"]) if "reward_bound" in facts else None


def reach(environment: Environment, adversary: Adversary | None = None) -> float:
    """The largest absolute value of a reward, after a reward adversary too; 0 where nobody says."""
    low, high = range_of_rewards(environment) or (0.0, 0.0)
    ends = [low, high]
    if adversary is not None and adversary.reward_range is not None:
        ends += adversary.reward_range(adversary.params, low, high)
    return max(map(abs, ends))


def privacy_spent(algorithm: Algorithm, environment: Environment | None, adversary: Adversary | None = None) -> Spent:
    """What a run spends. Infinitely much where rewards go beyond those of the guarantee. adversary: of rewards."""
    claim = algorithm.guarantee
    if claim.model == "none":
        return Spent(math.nan, math.inf, 0.0)
    epsilon, delta = map(float, claim.spend(algorithm.params))
    if environment is not None and overspent(algorithm, environment, adversary):
        epsilon = math.inf
    asked = claimed_epsilon(algorithm)
    return Spent(math.nan if asked is None else asked, epsilon, 0.0 if math.isinf(epsilon) else delta)


def overspent(algorithm: Algorithm, environment: Environment, adversary: Adversary | None = None) -> bool:
    """Whether a finite epsilon is declared for smaller rewards than are paid and sent, as far as that is known."""
    bound, spend = algorithm.guarantee.bound, algorithm.guarantee.spend
    beyond = bound < math.inf and reach(environment, adversary) > bound
    return beyond and bool(np.isfinite(spend(algorithm.params)[0]))


def doubts_of_range(algorithm: Algorithm, environment: Environment) -> Doubts:
    """Whether the environment, adversaries left aside, pays rewards outside the range that the algorithm reads."""
    read, pays = algorithm.rewards, range_of_rewards(environment)
    if read is None or pays is None:
        return
    # where privacy assumes bounded rewards, `doubts_of_moments` and `doubts_of_federation` say more
    if algorithm.guarantee.model == "federated" or overspent(algorithm, environment):
        return
    beyond = (read.low - pays[0], read.low), (pays[1] - read.high, read.high)
    outside = max((size for size, end in beyond if size > BOUND_ROUNDING * max(1.0, abs(end))), default=0.0)
    if outside:
        declared = f"reads rewards in {interval(read.low, read.high)} and {FATES[read.outside]}"
        remedy = "use an environment that pays inside, or an algorithm that reads them"
        listed = "`jaxbandits list algorithms` says which rewards each one reads"
        advice = f"its theory does not hold for them: {remedy} ({listed})"
        yield "range", outside, f"{declared}, and rewards here lie in {interval(*pays)}", advice


def interval(low: float, high: float) -> str:
    """An interval in text, open where it is infinite."""
    return brackets(low, high, "{:.4g}".format, open_low=math.isinf(low), open_high=math.isinf(high))


def doubts_of_moments(algorithm: Algorithm, environment: Environment, adversary: Adversary | None = None) -> Doubts:
    """How many times the most exceeded assumption of moments is exceeded; whether rewards leave what is claimed."""
    follows, claim = "its guarantee does not hold", algorithm.guarantee
    if claim.bound < math.inf and np.isfinite(epsilon := claim.spend(algorithm.params)[0]):
        text = f"epsilon = {epsilon:g} is that of rewards in [-{claim.bound:g}, {claim.bound:g}]"
        if overspent(algorithm, environment):
            remedy = "it is infinite (bernoulli_arms and linear_arms(noise='rademacher') pay bounded ones)"
            yield "moments", np.inf, f"{text}, and rewards here go beyond: {remedy}", follows
            return
        untold = ""
        if overspent(algorithm, environment, adversary):
            sent = f"reward_adversary sends rewards up to {reach(environment, adversary):g}"
            yield "bound", np.inf, f"{text}, and {sent}: it is infinite (a message_adversary corrupts reports)", follows
        elif range_of_rewards(environment) is None:
            untold = "the environment does not say what it pays: give its facts a reward_range"
        elif adversary is not None and adversary.reward_range is None:
            untold = "reward_adversary does not say what it sends: give Adversary(reward_range=...)"
        if untold:
            yield "bound", claim.bound, f"{text}, and {untold}", "if rewards go beyond, epsilon is infinite"
    assumed, moment, facts = algorithm.tails, environment.facts.get("moment"), environment.facts
    if assumed is None or moment is None:
        return
    order, bound, names, means = assumed.order, assumed.bound, assumed.declared_by, facts.get("means", [0.0])
    what = f"E|{assumed.of}|^{order:g}"
    if assumed.of == "1 - X":
        # The moments of X are known. The triangle inequality and Jensen's each bound that of 1 - X from below.
        sizes = np.maximum(np.abs(moment(order) ** (1 / order) - 1), np.abs(np.asarray(means) - 1))
        text = f"is at least {{:.4g}}^{order:g}, above that of {{}} = {{:.4g}}"
        found = [_excess(sizes, what, bound ** (1 / order), *names, text=text)]
    else:
        found = [_excess(moment(order, assumed.of == "X - mean"), what, bound, *names)]
        if assumed.mean_bound is not None:
            found.append(_excess(np.abs(means), "|mean|", assumed.mean_bound, "mean_bound"))
    for size, text in sorted(filter(None, found))[-1:]:
        yield "moments", size, text, follows


def _excess(
    sizes: Any, what: str, limit: float, name: str, order: str = "", text: str = "is {:.4g}, above {} = {:g}"
) -> tuple[float, str] | None:
    """How many times the size of the worst arm exceeds a declared limit, and text about it; None where it does not."""
    arm = int(np.argmax(sizes))
    if sizes[arm] <= limit * (1 + BOUND_ROUNDING):
        return None
    if order and np.isinf(sizes[arm]):
        remedy = f"lower {order}"
    else:
        unit = 10.0 ** (np.floor(np.log10(sizes[arm])) - 3)  # rounded up to four digits
        remedy = f"declare at least {np.ceil(sizes[arm] / unit * (1 - 1e-12)) * unit:.4g}"
    said = f"{what} of arm {arm} {text.format(sizes[arm], name, limit)}: {remedy}"
    return sizes[arm] / limit if limit > 0 else np.inf, said


def doubts_of_federation(algorithm: Algorithm, environment: Environment) -> Doubts:
    """Whether federated privacy assumes other rewards, or swamps the data."""
    if algorithm.guarantee.model != "federated":
        return
    size, share = reach(environment), algorithm.guarantee.noise_share(algorithm)
    if size > 1 + BOUND_ROUNDING:
        extent = "are unbounded" if np.isinf(size) else f"reach {size:.4g}"
        text = f"rewards {extent}, and privacy assumes at most 1 (Assumption 2)"
        advice = "honest messages may be refused: use reward='bounded' with theta_norm + noise_scale <= 1"
        yield "rewards", size, text, advice
    if share > 0.5:
        text = f"privacy noise swamps the data, at the end it is {share:.3g} times the information gathered"
        yield "noise", share, text, "raise epsilon, the number of agents or the horizon, or lower window"


def doubts_of_spending(algorithm: Algorithm) -> Doubts:
    """Where more privacy is spent than is asked for, or delta is large."""
    if algorithm.guarantee.model == "none":
        return
    config = algorithm.config
    try:
        asked, epsilon, delta = privacy_spent(algorithm, None)
    except Exception:  # a malformed guarantee is named by the checks of parts
        return
    if epsilon > (1 + TOLERANCE) * asked:
        much = "infinity" if math.isinf(epsilon) else f"{epsilon:.3g}"
        presets = (name for name in ("preset", "calibration") if config.get(name) not in (None, "exact"))
        remedy = next((f"{name}='exact' keeps it" for name in presets), "ds.epsilon_spent has it for every point")
        yield "spent", epsilon / asked if asked else math.inf, f"asked for epsilon {asked:g}, spends {much}", remedy
    horizon, delta = config.get("horizon"), max(delta, float(config.get("delta") or 0))
    if horizon and delta > 1.000001 / horizon:
        text = f"delta = {delta:g} exceeds 1 / horizon = {1 / horizon:.3g}: it allows to publish one play's data whole"
        yield "delta", delta * horizon, text, "bind a smaller one"


def plays_of_a_row(environment: Environment, horizon: int) -> int:
    """How often a row of data is played at most."""
    return max(1, math.ceil(horizon / environment.facts["num_rows"]))


def doubts_of_repeats(algorithm: Algorithm, environment: Environment) -> Doubts:
    """Whether someone who stands behind a row is played several times, and what that spends."""
    claim, horizon = algorithm.guarantee, algorithm.config.get("horizon") or 1
    if claim.model == "none" or (plays := plays_of_a_row(environment, horizon)) == 1:
        return
    epsilon, delta = claim.spend(algorithm.params)
    local, events = claim.model == "local", claim.events(algorithm.params)
    if 0 < epsilon < math.inf:
        spent = compose(repeat_events(events, plays, local), delta)[0] if events else plays * epsilon
        rows, how = environment.facts["num_rows"], f"{plays} releases" if local else f"a group of {plays}"
        what = f"{horizon:,} plays of {rows:,} rows, each up to {plays} times: epsilon = {epsilon:.3g} is of one play"
        text = f"{what}, and who stands behind a row spends {spent:.3g} ({how})"
        yield "repeats", spent / epsilon, text, "play each row once, or ask for less a play"


def doubts_of_precision(algorithm: Algorithm, environment: Environment, dtype: str) -> Doubts:
    """What a dtype cannot hold: arms that it takes for equal, rare rewards that it cannot draw, horizons too long."""
    means = environment.facts.get("means")
    if means is not None:  # arms whose means differ may be further apart or nearer once their means are rounded
        exact = np.asarray(means, np.float64)
        text = f"means of arms differ by {{:.4g}}, and by {{:.4g}} in {dtype}"
        held = gaps_of(exact.astype(dtype))
        yield from _rounding_doubt("gaps", gaps_of(exact), held, text, "move or scale the means", dtype)
    # coins may be so rare, or so sure, that a uniform does not draw them as often as they say
    coins = np.asarray(environment.facts.get("coins", ()), np.float64)
    rare = np.minimum(coins, 1 - coins)
    drawn = np.round(rare / GRID[dtype]) * GRID[dtype]
    text = f"a probability of {{:.3g}} is drawn as {{:.3g}}: uniforms of {dtype} are multiples of {GRID[dtype]:.2g}"
    yield from _rounding_doubt("coins", rare, drawn, text, "give means further from 0 and 1", dtype)
    horizon, plays = algorithm.config.get("horizon", 0), algorithm.program.float32_plays
    if dtype == "float32" and plays is not None and horizon > plays:
        lost = "what later plays add is rounded away, and it stops learning from them"
        text = f"its float32 sums hold {plays:,} plays, and horizon = {horizon:,}: {lost}"
        yield "horizon", horizon / plays, text, "run it with dtype='float64'"


def _rounding_doubt(subject: str, exact: Numbers, held: Numbers, text: str, remedy: str, dtype: str) -> Doubts:
    """A doubt where a positive number changes by more than `LARGEST_CHANGE`. text: of the one that changes most."""
    exact, held = exact[exact > 0], held[exact > 0]
    changes = np.abs(held - exact) / exact
    if changes.size and changes.max() > LARGEST_CHANGE:
        worst = changes.argmax()
        remedy += ", or run it with dtype='float64'" if dtype == "float32" else ""
        yield subject, float(changes[worst]), text.format(exact[worst], held[worst]), remedy


def warn(cells: Sequence[tuple[Any, ...]], dtype: str, stacklevel: int) -> None:
    """Give one warning for a label and subject, about the worst cell (label, algorithm, environment, ...)."""
    found: dict[tuple[str, str], list[list[Any]]] = {}
    checked: dict[Any, tuple[list[Doubt], list[Doubt]]] = {}
    for label, algorithm, environment, adversary, *_ in cells:
        about_length = algorithm.config.get("horizon"), algorithm.program.float32_plays
        claim = algorithm.guarantee
        claimed = (claim.bound, claim.spend(algorithm.params)[0]) if claim.bound < math.inf else ()
        key = id(environment), id(adversary), claimed, algorithm.tails, about_length
        if key not in checked:  # a grid over other arguments repeats the same assumptions
            precision = doubts_of_precision(algorithm, environment, dtype)
            checked[key] = list(doubts_of_moments(algorithm, environment, adversary)), list(precision)
        beyond, lost = checked[key]
        others = doubts_of_federation(algorithm, environment), doubts_of_range(algorithm, environment)
        if environment.facts.get("num_rows"):
            others += (doubts_of_repeats(algorithm, environment),)
        for about, *doubt in itertools.chain(beyond, *others, doubts_of_spending(algorithm), lost):
            found.setdefault((label, about), []).append(doubt)
    for (label, _), doubts in found.items():
        _, text, advice = max(doubts)
        total = sum(1 for cell in cells if cell[0] == label)
        where = f" (the worst of {len(doubts)} among {total} points)" if total > 1 else ""
        warnings.warn(f"{label}: {text}{where}; {advice}", UserWarning, stacklevel=stacklevel + 1)
