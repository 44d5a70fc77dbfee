"""Transcripts of other people's learners, for `jb.audit`: which inputs are tried, and how they are played.

Two inputs are streams of rewards that are fixed but for one play. The stranger is played on both in processes of its
own. Any play may be the private one: with equal seeds few runs say which of them change what the attacker sees.

Axes: [T] plays, [K] arms, [S] runs, [F] numbers of a transcript.
"""

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.auditing.neighbours import REACTING_UNITS, REACTION_RULES
from jaxbandits.auditing.scores import Numbers, Source, ThresholdTest, fit_all
from jaxbandits.auditing.transcripts import MAX_COLUMNS, SeedArray, Seeds
from jaxbandits.environments import bernoulli_arms
from jaxbandits.formatting import duration, show
from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.random import Draws
from jaxbandits.recipe import recipe_of, unwrap
from jaxbandits.strangers import Foreign, StrangerError, StrangerProcess, learner_of, processes
from jaxbandits.strangers_process import Rows, Stranger
from jaxbandits.sweeps.engines.local import cores
from jaxbandits.sweeps.estimate import print_progress
from jaxbandits.sweeps.plan import stack_cases
from jaxbandits.sweeps.simulate import algorithm_for, environment_of
from jaxbandits.typing import EnvironmentFactory
from jaxbandits.validation import choice, integer, number

UNITS, MODELS = ("reward", "user", "loss_vector"), ("central", "local")
MAX_NUMBERS, MAX_NUMBERS_AT_ONCE = 1 << 18, 1 << 24  # of a transcript, and of those of one request
MAX_REWARD = 32.0  # of rewards without bounds: what does not clip them shows it
AHEAD = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)  # so many plays before the private one pay one arm alone
AHEAD_BELOW = (1, 3, 6)  # the same where that arm alone is not paid
PERIODS = (1, 2, 4, 8)  # one arm pays in every so many plays
RANDOM_PATTERNS = 4
# What the private user's features are, in place of those of the environment
FEATURES: dict[str, Callable[[Any, int], Any]] = {
    "with the opposite features": lambda x, t: -x[t],
    "with another user's features": lambda x, t: x[t - 1],
    "with another arm's features": lambda x, t: np.roll(x[t], 1, axis=0),
}
SEARCH_SHARE = 2  # so many times less than `runs` are played to choose inputs, besides
MAX_SEARCH_RUNS = 40_000
SHARES = 0.4, 0.3, 0.3  # of the search's runs, in each of its stages
LEAST = 2, 16, 32  # runs on an input in each
AT_MOST = 1 << 14, 64, 16  # pairs of inputs in each
PAIRS = 6  # of inputs that are then compared by fitted scores
GOOD_PLAYS = 3  # so many plays are tried with all patterns
QUANTILES = 0.0, 0.05, 0.2, 0.5, 0.8, 0.95  # events of a number that are looked at first
MAX_DISTANCE = 10.0
FIRST_RUNS, ONCE = 8, 64  # runs of a request: the first ones, by which the time is told, and at most
LARGE = 1e9  # a number of a view beyond every threshold
NAMED = 4  # numbers that an event's name lists


Factory = Callable[..., Any]
Values = np.ndarray[Any, Any]


class Claim(NamedTuple):
    """What is claimed of whom."""

    stranger: Stranger
    name: str
    horizon: int
    epsilon: float
    delta: float
    unit: str
    model: str
    adaptive: bool
    rewards: tuple[float, float]  # low, high
    num_arms: int
    contexts: Values | None  # [T, ...] of every run; None: none is shown


def stranger_factory(given: Any) -> Factory | None:
    """A factory of someone else's learner, with what is bound to it; None for what is none."""
    if isinstance(given, Algorithm):
        learner = learner_of(given.program)
        return None if learner is None else partial(learner.foreign, **learner.arguments)
    return given if isinstance(unwrap(given).function, Foreign) else None


def read_claim(
    factory: Factory,
    environment: "Environment | EnvironmentFactory | None",
    adaptive: bool,
    *,
    horizon: object,
    epsilon: object,
    delta: object,
    unit: str | None,
    model: str | None,
    view: Factory | None,
) -> Claim:
    """The arguments of an audit of someone else's learner, checked before anything runs."""
    if horizon is None or epsilon is None:
        needed = "a claim about someone else's learner needs it, jb.audit(jb.foreign(make), horizon=100, epsilon=1.0)"
        raise ValueError(f"{'horizon' if horizon is None else 'epsilon'} is missing: {needed}")
    epsilon, horizon = number("epsilon", epsilon, 0.0, open_low=True), integer("horizon", horizon, 1)
    if isinstance(delta, Iterable):
        raise ValueError(f"delta = {show(delta)}: the claim of someone else's learner has one: give a number")
    delta = number("delta", delta, 0.0, 1.0, open_high=True)
    unit, model = choice("unit", unit or UNITS[0], UNITS), choice("model", model or MODELS[0], MODELS)
    if view is not None and not callable(view):
        raise TypeError(f"view = {show(view)} is no function: give view(learner, arm, reward), which returns numbers")
    if adaptive and unit not in REACTING_UNITS:
        raise ValueError("adaptive = True: inputs react where they differ in a reward, and not in a user: leave it out")
    recipe = recipe_of(factory)
    told = {name: x for name, x in (("epsilon", epsilon), ("delta", delta)) if name in recipe.needed}
    if recipe.bound.get("horizon", horizon) != horizon:
        what = f"horizon = {horizon}, and {recipe.name} is bound to horizon = {recipe.bound['horizon']}"
        raise ValueError(f"{what}: leave one of them out")
    if environment is None and recipe.function.plays_on != "arms":
        kind = recipe.function.plays_on
        raise ValueError(f"environment is missing: {recipe.name} plays on {kind!r}: give one that shows it")
    two = integer("num_arms", recipe.bound.get("num_arms", 2), 2)
    world = bernoulli_arms(means=[0.5] * two) if environment is None else environment_of(environment)
    algorithm = algorithm_for(recipe.bind(told | {"horizon": horizon}).factory, world)
    learner, arms = learner_of(algorithm.program), int(world.world.num_arms or world.facts["num_arms"])
    assert learner is not None
    longest, remedy = MAX_NUMBERS // (arms + 1), f"a transcript of {arms} arms holds no more: audit a shorter run"
    if world.facts.get("max_horizon", math.inf) < longest:
        longest, remedy = int(world.facts["max_horizon"]), "the environment has no more plays"
    integer("horizon", horizon, 1, longest, remedy=remedy)
    contexts = None
    if recipe.function.plays_on != "arms":
        draws, (params, _) = Draws(jnp.uint32(0), "environment", jnp.float32), stack_cases([world.params], "float32")
        t = jnp.arange(1, horizon + 1, dtype=jnp.int32)
        shown, _ = world.world.observe(params, world.world.init(params, draws), draws, t)
        contexts = np.asarray(shown, np.float64)
    low, high = map(float, world.facts.get("reward_range", (0.0, 1.0)))
    rewards, theirs = (max(low, -MAX_REWARD), min(high, MAX_REWARD)), learner.stranger(view)
    return Claim(theirs, recipe.name, horizon, epsilon, delta, unit, model, adaptive, rewards, arms, contexts)


# ---- inputs


class Stream(NamedTuple):
    """One input of a stranger."""

    play: int  # the private one, from 1
    edit: str  # what it pays, in words
    others: str  # what all other plays pay, in words
    rewards: Values  # [T, K], or [T, K, K] by the arm of the play before
    contexts: Values | None  # [T, ...]
    apart: tuple[()] = ()  # as of `neighbours.Edit`

    def __repr__(self) -> str:
        return f"play {self.play} pays {self.edit}, all others {self.others}"


class Pattern(NamedTuple):
    """What all plays but one pay: `rewards`, and `one` from an arm in so many plays before that one.

    Where fewer are before it, those that follow pay it, too.
    """

    words: str
    rewards: Values  # [T, K], or [T, K, K] by the arm of the play before
    arm: int = 0
    before: int = 0
    one: float = 0.0


class PrivateRow(NamedTuple):
    """What the private play pays."""

    words: str
    row: Values | float  # a number, [K] or [K, K] by the arm of the play before
    features: str = ""  # a key of `FEATURES`


def list_patterns(claim: Claim, seed: int) -> list[Pattern]:
    """Rewards of all plays but one: all alike, such that a tie is near, and random ones."""
    (low, high), shape, ends = claim.rewards, (claim.horizon, claim.num_arms), (0, claim.num_arms - 1)
    arms, before = np.arange(claim.num_arms), np.arange(claim.num_arms)[:, None]
    if claim.adaptive:
        rules = arms < 0, (before != 0) | (arms < 0), arms != before
        rows = [np.where(rule, high, low) + np.zeros((len(arms), 1)) for rule in rules]
        named = zip(REACTION_RULES, rows, strict=True)
        return [Pattern(f"by the rule {name}", np.tile(row, (claim.horizon, 1, 1))) for name, row in named]
    found = [Pattern(f"{x:g}", np.full(shape, x)) for x in (low, high, (low + high) / 2)]
    for one, rest, sizes in ((high, low, AHEAD), (low, high, AHEAD_BELOW)):
        for plays, arm in itertools.product([size for size in sizes if size < claim.horizon], ends):
            found.append(Pattern(f"{rest:g}, but {one:g} of arm {arm}", np.full(shape, rest), arm, plays, one))
    for period, arm in itertools.product(PERIODS, ends):
        pays = (np.arange(claim.horizon)[:, None] % period == 0) & (arms == arm)
        found.append(Pattern(f"{low:g}, but {high:g} of arm {arm} in one of {period}", np.where(pays, high, low)))
    rng = np.random.default_rng(seed)
    for i in range(RANDOM_PATTERNS):
        shares = rng.integers(0, 2, shape) if i % 2 else rng.random(shape)
        found.append(Pattern(f"at random (number {i + 1})", low + (high - low) * shares))
    return found


def list_rows(claim: Claim) -> list[tuple[PrivateRow, PrivateRow]]:
    """Pairs of what the private play may pay."""
    (low, high), last, arms = claim.rewards, claim.num_arms - 1, np.arange(claim.num_arms)
    nothing, all_of_it = PrivateRow(f"{low:g}", low), PrivateRow(f"{high:g}", high)
    found = [(nothing, all_of_it)]
    if claim.adaptive:
        after = [np.where((arms == 0)[:, None], *x) for x in ((high, low), (low, high))]
        one, other = (PrivateRow(f"{x:g} after arm 0", row) for x, row in zip((high, low), after, strict=True))
        found += [(one, other), (nothing, one)]
    elif claim.unit == "loss_vector":
        one, other = (PrivateRow(f"{high:g} of arm {a} alone", np.where(arms == a, high, low)) for a in (0, last))
        found += [(one, other)]
    elif claim.unit == "user" and claim.contexts is not None:
        found += [(all_of_it, all_of_it._replace(features=features)) for features in FEATURES]
        found += [(all_of_it, nothing._replace(features=next(iter(FEATURES))))]
    return found


def make_stream(claim: Claim, pattern: Pattern, private: PrivateRow, play: int) -> Stream:
    """An input. play: the private one, from 0."""
    rewards, contexts, words, others = np.array(pattern.rewards), claim.contexts, private.words, pattern.words
    if pattern.before:
        first = max(0, play - pattern.before)
        last = first + pattern.before
        rewards[first : last + 1, pattern.arm], others = pattern.one, f"{others} in plays {first + 1} to {last + 1}"
    rewards[play] = private.row
    if private.features and contexts is not None:
        contexts, words = contexts.copy(), f"{words} {private.features}"
        contexts[play] = FEATURES[private.features](claim.contexts, play)
    return Stream(play + 1, words, others, rewards, contexts)


# ---- runs


class Crew:
    """Processes that play one stranger, and what the attacker sees of each run."""

    def __init__(self, claim: Claim, started: list[StrangerProcess], seeds: Seeds) -> None:
        self.claim, self.started, self.seeds = claim, started, seeds
        self.view: int | None = None  # numbers that the view shows of a run, once it is known
        self.columns: Any = slice(None)  # the numbers of a transcript that are looked at
        self.most = max(2, MAX_NUMBERS_AT_ONCE // (claim.horizon * (claim.num_arms + 1)))  # runs of a request

    def play_streams(self, jobs: list[tuple[Stream, SeedArray]]) -> Iterator[Numbers]:
        """The transcripts [S, F] of runs of some seeds on each input, in this order whatever process plays them."""
        ahead = len(self.started)
        try:
            for i in range(len(jobs) + ahead):
                one = self.started[i % ahead]
                if 0 <= i - ahead:
                    yield self._tabulate(jobs[i - ahead][0], *one.take_answer())
                if i < len(jobs):
                    stream, seeds = jobs[i]
                    rows = Rows(stream.contexts, stream.rewards)
                    one.send("many", one.number(self.claim.stranger), seeds.tolist(), tuple(rows))
        except StrangerError as error:
            error.args = (f"{self.claim.name}: {error}",)
            raise

    def draw_fresh(self, stream: Stream, runs: int) -> Numbers:
        """The numbers of fresh runs on an input."""
        seeds, once = self.seeds.take(runs), min(ONCE, self.most)
        jobs = [(stream, seeds[first : first + once]) for first in range(0, runs, once)]
        return np.concatenate(list(self.play_streams(jobs)))

    def _tabulate(self, stream: Stream, arms: Values, seen: Values | None) -> Numbers:
        """What the view shows, which arms were played when, when the arm changed, and how often each was played."""
        played, changes = arms[..., None] == np.arange(self.claim.num_arms), arms[:, 1:] != arms[:, :-1]
        if self.claim.unit == "user":  # her own arm is hers
            played[:, stream.play - 1] = False
            changes[:, max(stream.play - 2, 0) : stream.play] = False
        parts = [played.reshape(len(arms), -1), changes, played.sum(axis=1)]
        if seen is not None:
            if self.view is None:
                self.view = seen.shape[1]
                self.most = max(2, MAX_NUMBERS_AT_ONCE // (parts[0].shape[1] + 2 * self.view))
                if 2 * self.view > MAX_NUMBERS:
                    remedy = "let it return fewer, or audit a shorter run"
                    raise ValueError(f"view shows {self.view:,} numbers of a run, at most {MAX_NUMBERS // 2}: {remedy}")
            if not np.isfinite(seen).any():
                raise ValueError("view gave no finite number in these runs: let it return numbers")
            shown = np.pad(seen, ((0, 0), (0, max(0, self.view - seen.shape[1]))))[:, : self.view]
            parts = [np.where(np.isfinite(shown), shown, 0.0), np.isfinite(shown), *parts]
        return np.concatenate(parts, axis=1, dtype=np.float32)[:, self.columns]

    def describe_test(self, test: ThresholdTest) -> str:
        """The numbers of a transcript that a test reads, in words; of one number, what of it is counted."""
        read = [*map(self._name_number, self.columns[test.score.columns][:NAMED].tolist())]
        more = len(test.score.columns) - len(read)
        if len(read) > 1 or more:
            return ", ".join(f"{words} {of}" for words, _, of in read) + (f" and {more} more" if more else "")
        (words, otherwise, of), horizon = read[0], self.claim.horizon
        if otherwise:  # yes or no
            return f"{otherwise if test.takes(np.zeros(1))[0] else words} {of}"
        if words == "number":
            low, high = test.takes(np.array([-LARGE, LARGE]))
            return f"{'a large' if high > low else 'a small' if low > high else 'some'} number {of}"
        counted = np.flatnonzero(test.takes(np.arange(horizon + 1.0)))
        first, last = (int(counted[0]), int(counted[-1])) if len(counted) else (0, horizon)
        many = f"at most {last}" if not first else f"at least {first}" if last == horizon else f"{first} to {last}"
        return f"{many} plays {of}"

    def _name_number(self, column: int) -> tuple[str, str, str]:
        """A number of a transcript in words; what it is otherwise where it is yes or no; and of what it is."""
        view, (T, K) = self.view or 0, (self.claim.horizon, self.claim.num_arms)
        of_arms, later = column - 2 * view, column - 2 * view - T * K
        if of_arms < 0:
            of = f"{column % view} of the view"
            return ("finite number", "no finite number", of) if column >= view else ("number", "", of)
        if later < 0:
            return f"arm {of_arms % K}", f"another arm than {of_arms % K}", f"in play {of_arms // K + 1}"
        if later < T - 1:
            return "a change", "no change", f"after play {later + 1}"
        return "plays", "", f"of arm {later - T + 1}"


@contextlib.contextmanager
def search(claim: Claim, runs: int, seed: int) -> Iterator[tuple[Source, list[tuple[Stream, Stream]], str]]:
    """Where a stranger's transcripts come from, pairs of inputs that it tells apart, and what was tried, in words."""
    with processes(cores()) as started:
        crew = Crew(claim, started, Seeds(seed))
        pairs, words = choose_pairs(crew, runs, seed)
        # 0: `choose_score` adds what it needs for the best of many, and more trials are counted than choose
        yield Source(crew.draw_fresh, fit_all, confidence=0.0, step=4096, describe=crew.describe_test), pairs, words


Candidate = tuple[int, int]  # a line, which is a pattern and what the private play pays; that play, from 0


def choose_pairs(crew: Crew, runs: int, seed: int) -> tuple[list[tuple[Stream, Stream]], str]:
    """Pairs of inputs whose runs of equal seeds differ most, and what was tried, in words.

    Sets the columns of the crew.
    """
    claim, T = crew.claim, crew.claim.horizon
    budget = min(runs // SEARCH_SHARE, MAX_SEARCH_RUNS)
    known, rows = list_patterns(claim, seed), list_rows(claim)
    lines = list(itertools.product(known, rows))

    def streams_of(one: Candidate) -> tuple[Stream, Stream]:
        pattern, (first, second) = lines[one[0]]
        return make_stream(claim, pattern, first, one[1]), make_stream(claim, pattern, second, one[1])

    alike = _meet(crew, streams_of((0, 0))[0], budget + runs)
    order, step = np.random.default_rng(seed).permutation(T).tolist(), -(-T // len(lines))
    # all lines together soon try every play
    left = [(line, order[(j + line * step) % T]) for j in range(T) for line in range(len(lines))]
    told, tried = list[Apart](), 0
    for stage, share in enumerate(SHARES):
        least = LEAST[stage if alike else max(stage, 1)]
        size = min(AT_MOST[stage], max(PAIRS, int(share * budget) // (2 * least)))
        left = _best(left, told, size, len(lines) if stage == 1 else 0) if stage else left[:size]
        tried = tried or len({play for _, play in left})
        seeds = crew.seeds.take(min(max(least, int(share * budget) // (2 * len(left))), crew.most))
        played = crew.play_streams([(stream, seeds) for one in left for stream in streams_of(one)])
        prior, keep = 1.0 if alike else math.sqrt(len(seeds)), stage == len(SHARES) - 1
        told = [tell_apart(one, other, prior, keep) for one, other in zip(played, played, strict=True)]
    best = _best(left, told, PAIRS, each=1)
    apart = np.max([told[left.index(one)].columns for one in best], axis=0)
    varying = np.flatnonzero(apart >= 0)
    crew.columns = np.sort(varying[np.argsort(-apart[varying], kind="stable")[:MAX_COLUMNS]])
    if not len(crew.columns):  # the arms are always the same
        crew.columns = np.zeros(1, int)
    local = claim.model == "local"
    saw = "arms and the view" if claim.stranger.view else "arms alone" + (", and none of its messages" if local else "")
    words = f"saw {saw}, tried {tried} of {T} plays as the private one, {len(known)} patterns of what others pay"
    words += f", {len(rows)} edits" if len(rows) > 1 else ""
    words += "" if alike else "; equal seeds gave other runs, so that few runs chose among them by their means"
    return [streams_of(one) for one in best], words


def _meet(crew: Crew, stream: Stream, runs: int) -> bool:
    """Print how long runs will take, and say whether equal seeds give equal runs."""
    several, seeds = max(2, len(crew.started)), crew.seeds.take(FIRST_RUNS)
    list(crew.play_streams([(stream, seeds[:1])] * several))  # what the stranger imports
    began = time.monotonic()
    first, *others = crew.play_streams([(stream, seeds)] * several)
    took = duration((time.monotonic() - began) / (several * FIRST_RUNS) * runs)
    on = f"{len(crew.started)} core{'s' * (len(crew.started) > 1)}"
    print_progress(f"{crew.claim.name}: {runs:,} runs of {crew.claim.horizon:,} plays, about {took} on {on}")
    return all(np.array_equal(first, other) for other in others)


class Apart(NamedTuple):
    """How far runs on two inputs are apart."""

    ratio: float  # log of how much more often an event of one number is met on one of them
    distance: float  # of their means, in units of spread
    columns: Values  # [F], of each number, -1 where it is always the same; none where they are not asked for


def tell_apart(one: Numbers, other: Numbers, prior: float, keep: bool) -> Apart:
    """How far runs [S, F] of the same seeds are apart. prior: runs that are added to every count."""
    changed = np.flatnonzero((one != other).any(axis=0))
    a, b = one[:, changed].astype(np.float64), other[:, changed].astype(np.float64)
    spread = np.sqrt((a.var(axis=0) + b.var(axis=0)) / 2)
    apart = np.minimum(np.abs(a.mean(axis=0) - b.mean(axis=0)) / np.maximum(spread, 1e-9), MAX_DISTANCE)
    ratio = 0.0
    for at in np.quantile(np.concatenate([a, b]), QUANTILES, axis=0, method="nearest") if len(changed) else ():
        x, y = np.sum(a > at, axis=0), np.sum(b > at, axis=0)
        for k, n in ((x, y), (len(a) - x, len(b) - y)):
            ratio = max(ratio, float(np.abs(np.log((k + prior) / (n + prior))).max()))
    columns = np.zeros(0)
    if keep:
        columns = np.where(np.ptp(np.concatenate([one, other]), axis=0) > 0, 0.0, -1.0)
        columns[changed] = apart
    return Apart(ratio, float(np.sqrt(np.sum(apart**2))), columns)


def _best(left: list[Candidate], told: list[Apart], size: int, lines: int = 0, each: int = 2) -> list[Candidate]:
    """Candidates for the next stage: in turn by ratio, by distance, the best of each line, and good plays elsewhere.

    lines: how many lines there are, where those two are wanted, else 0. Otherwise `each` is how many of one line are
    taken at most, and of those whose runs of equal seeds differ equally one is.
    """
    of_play: dict[int, list[float]] = {}
    for (_, play), apart in zip(left, told, strict=True):
        of_play.setdefault(play, []).append(apart.ratio)
    means = {play: float(np.mean(ratios)) for play, ratios in of_play.items()}
    worth = [-apart.ratio - means[play] / 4 for (_, play), apart in zip(left, told, strict=True)]
    by_ratio = [left[i] for i in np.argsort(worth, kind="stable")]
    orders = [by_ratio, [left[i] for i in np.argsort([-apart.distance for apart in told], kind="stable")]]
    if lines:
        good = sorted(means, key=lambda play: -means[play])[:GOOD_PLAYS]
        orders += [list({line: (line, play) for line, play in reversed(by_ratio)}.values())[::-1]]
        orders += [[(line, play) for line in range(lines) for play in good]]
    values = {} if lines else {one: apart[:2] for one, apart in zip(left, told, strict=True)}
    best = list[Candidate]()
    for one in filter(None, itertools.chain(*itertools.zip_longest(*orders))):
        alike = not lines and any(values[one] == values[chosen] for chosen in best)
        often = not lines and sum(one[0] == line for line, _ in best) >= each
        if len(best) < size and one not in best and not alike and not often:
            best.append(one)
    return best
