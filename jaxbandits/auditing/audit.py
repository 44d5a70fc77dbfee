"""`jb.audit`: attack an algorithm's privacy claim with its own functions, and say how much of it is proven spent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from annotated_doc import Doc

from jaxbandits.auditing import confidence_bounds, neighbours, scores, strangers
from jaxbandits.auditing.differences import Differences, find_differences
from jaxbandits.auditing.neighbours import Edit
from jaxbandits.auditing.transcripts import MAX_PAIRS, Seeds, default_environment, furthest, prepare_transcripts
from jaxbandits.forks import refuse_fork
from jaxbandits.formatting import show
from jaxbandits.mechanisms.composition import compose
from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.sweeps.simulate import build_parts
from jaxbandits.typing import AlgorithmFactory, EnvironmentFactory
from jaxbandits.validation import declare, integer, number

MIN_RUNS = 2000  # with fewer no bound says anything


Pair = tuple[Any, Any]  # two neighbouring inputs


class Event(NamedTuple):
    """What was certified: chosen on one half of the runs, counted on the other."""

    # the input on which the event is likelier, and the other: of someone else's learner two `strangers.Stream`
    pair: Pair
    score: str  # what is compared with the threshold, in words
    threshold: float
    true_positives: int
    false_positives: int
    trials: int  # runs on each input


class Bound(NamedTuple):
    """What was proven at one delta."""

    delta: float
    epsilon_lower: float
    # what is claimed at this delta: the claim's epsilon, or what the declared releases spend here where that is less
    claimed: float
    event: Event


class Audit(NamedTuple):
    """What an audit measured. Prints as one line.

    A bound above what is claimed at its delta refutes the claim. All bounds hold together, with error probability 1 -
    confidence.
    """

    algorithm: str
    model: str
    unit: str
    epsilon_lower: float  # the lower confidence bound on epsilon, at `delta`
    claimed: tuple[float, float]  # (epsilon, delta), of `Guarantee.spend`
    delta: float
    event: Event
    curve: confidence_bounds.Curve  # what the chosen score achieves at every threshold
    runs: int
    confidence: float
    seed: int
    bounds: tuple[Bound, ...]  # one for each delta, the first of which is told above
    last: int  # the last play that was looked at
    differences: Differences | None  # what one unit changes in whole runs; None of someone else's learner
    adaptive: bool = False  # whether inputs reacted to the arms that were played
    tried: str = ""  # of someone else's learner: which inputs, in words

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted: a bound at any delta, or by what one unit changes in whole runs."""
        return bool(self.fault) or any(bound.epsilon_lower > bound.claimed for bound in self.bounds)

    @property
    def fault(self) -> str:
        """What one unit changes in whole runs that it may not, in words; empty where nothing was found."""
        return "" if self.differences is None else self.differences.fault

    @property
    def epsilon_reachable(self) -> float:
        """The most that these runs can prove: if every one on one input and none on the other were in the event."""
        each = 1 - (1 - self.confidence) / len(self.bounds)
        trials = self.event.trials
        return float(confidence_bounds.epsilon_lower(trials, 0, trials, self.delta, each))

    @property
    def looked_at(self) -> str:
        """How far transcripts went, in words."""
        if self.differences is None:
            return f"looked at plays 1 to {self.last}, {self.tried}"
        what, told = "messages" if self.model in ("local", "shuffle") else "releases", self.differences.releases
        seen, more = sum(play <= self.last for play in told), "" if self.differences.whole else " or more"
        return f"looked at plays 1 to {self.last}, {seen} of {len(told)}{more} {what}"

    @property
    def ratio(self) -> float:
        """The share of the claimed epsilon that was proven spent; NaN where none is claimed."""
        return self.epsilon_lower / self.claimed[0] if self.claimed[0] > 0 else float("nan")

    def __repr__(self) -> str:
        verdict = "REFUTES" if self.refuted else "does not refute"
        epsilon, delta = self.claimed
        bound = f"epsilon >= {self.epsilon_lower:.4g} at delta = {self.delta:.3g} (confidence {self.confidence:.6g})"
        inputs = " of inputs that react to the arms played" if self.adaptive else ""
        claim = f"({epsilon:.4g}, {delta:.3g}), {self.model}, one {self.unit.replace('_', ' ')}{inputs}"
        parts = [f"{self.algorithm}: {bound} {verdict} the claim {claim}", f"event: {self.event.score}"]
        for x in self.bounds[1:]:
            parts.append(f"epsilon >= {x.epsilon_lower:.4g} of {x.claimed:.4g} at delta = {x.delta:.3g}")
        if self.differences is None:
            one, other = self.event.pair
            parts[1] += f", likelier where play {one.play} pays {one.edit} than {other.edit}, all others {one.others}"
        parts += [f"{self.event.trials:,} runs an input can prove {self.epsilon_reachable:.4g} at most"]
        return "; ".join(
            [*parts, self.looked_at, *([] if self.differences is None else [self.fault or str(self.differences)])]
        )


@declare(check=False)
def audit(
    algorithm: Algorithm | AlgorithmFactory,
    *,
    runs: int,
    confidence: Annotated[float, Doc("In (0, 1): of the bound.")] = 0.95,
    delta: float | Iterable[float] = 0.0,
    environment: Environment | EnvironmentFactory | None = None,
    seed: Annotated[int, Doc("Of the audit, at least 0.")] = 0,
    pairs: Iterable[tuple[Edit, Edit]] | None = None,
    whole: bool = False,
    adaptive: bool = False,
    horizon: int | None = None,
    epsilon: float | None = None,
    unit: Literal["reward", "user", "loss_vector"] | None = None,
    model: Literal["central", "local"] | None = None,
    view: Callable[..., Any] | None = None,
) -> Audit:
    """A lower confidence bound on the epsilon that an algorithm spends, beside what it claims.

    Args:
        algorithm (Algorithm or factory): A built algorithm with a guarantee, or a factory (a partial with its horizon)
            together with `environment`. Or someone else's learner, `jb.foreign(make)`, or a partial of it that binds
            what `make` names; then say what is claimed, by the last five arguments.
        runs: Independent runs on both inputs together, at least 2000. A million of a small instance take seconds.
        delta (float or sequence of float, default 0.0): In [0, 1). Where the claim has a larger one, that is used,
            since nothing is claimed at smaller ones. Several are tested on the same runs: each has an event of its own,
            and all bounds hold together.
        environment (Environment or factory, optional): Where public contexts come from: a factory or a called part; its
            rewards are replaced. By default one that fits the algorithm's arguments; for someone else's learner two
            arms whose rewards are in [0, 1].
        pairs (sequence of pairs of auditing.Edit, optional): Neighbouring inputs to try instead of the catalogue of the
            guarantee's unit, within what the claim is for.
        whole: Whether a transcript holds the whole run, of at most 4,096 windows, instead of its beginning.
        adaptive: Whether inputs react to the arms that were played before, as those of an adaptive adversary. For
            claims about one reward or one loss vector.
        horizon (int, optional): Plays of a run, at least 1. For someone else's learner alone, where it must be given.
        epsilon (float, optional): What is claimed at `delta`, above 0. For someone else's learner alone, where it must
            be given.
        unit ({"reward", "user", "loss_vector"}, optional): What neighbours differ in, in one play: "reward", whichever
            arm is played; the rewards of all arms, "loss_vector"; a reward and the context, "user". For someone else's
            learner alone. The default: "reward".
        model ({"central", "local"}, optional): Who is trusted: "central", a server that shows arms and what it
            releases; "local", nobody, so that what is sent is seen. For someone else's learner alone. The default:
            "central".
        view (callable, optional): ``view(learner, arm, reward)``, called after every play: the numbers that are then
            released or sent. For someone else's learner alone. The default: nothing but the arms is seen.

    Returns:
        The bound, the claim, the event that was counted, and the trade-off curve of its test. Printed, one line.

    Raises:
        ValueError: Outside these ranges, for an algorithm without a guarantee, where algorithm and environment do not
            fit, for shortcut=True (no single reward is drawn), where a whole run has too many windows, and with
            `adaptive` for a claim about one user or one message. For someone else's learner where its claim or its
            horizon is missing, and for ours where they are given.
        StrangerError: Someone else's learner failed; the play and its own last line are told.

    Note:
        The algorithm's own functions run on two neighbouring inputs, and an attacker tells apart what the view of its
        guarantee shows of them. Half of the runs choose the pair of inputs and an event, by common random numbers and
        then by fitted likelihood ratios. The other half count how often the event happens on either input:
        Clopper-Pearson bounds on both shares give epsilon >= log((TPR - delta) / FPR), with confidence 1 - (1 -
        confidence) / m where there are m deltas. The pair is that of the first delta. A transcript ends 128 plays after
        its start (in the local model with the fourth message), or with the first release, unless the `whole` run is
        asked for; what was looked at is printed. Arms are part of the view, but in the local model.

        Before that, pairs of whole runs draw the same noise on neighbouring inputs. One unit may then change as many
        releases as the events say, and each by their sensitivity: more refutes the claim, too.

        With `adaptive` the two inputs are two rules: what a play pays follows from the arm that was played before it.
        They are the same for all plays but one, and the attacker sees the arms besides. Rewards of all other plays are
        0, or follow one of two rules of `auditing.Edit`; that is a small part of all adversaries, and a bound that
        holds for them all is no claim of this audit.

        Someone else's learner is played in processes of its own, once a run with a seed of its own, on two streams of
        rewards that are fixed but for one play. Every play may be that one, and the others pay all alike, or such that
        a tie is near, or at random; a few runs of equal seeds choose among these inputs, besides `runs`. The attacker
        sees all arms, here in the local model too, as categories, and what `view` returns; where a user is private, not
        the arm of her own play. What does not refute a claim is no proof: `Audit.epsilon_reachable` is the most that so
        many runs can prove.

    >>> report = jb.audit(jb.algorithms.ldp_ucb(num_arms=2, horizon=100, epsilon=1.0), runs=20_000)
    >>> report.claimed, report.refuted, report.ratio > 0.8
    ((1.0, 0.0), False, True)
    >>> gaussian = jb.algorithms.adac_ucb(num_arms=2, horizon=40, rho=0.5, delta=0.01)
    >>> [(bound.delta, round(bound.claimed, 3)) for bound in jb.audit(gaussian, runs=2000, delta=[0.01, 0.1]).bounds]
    [(0.01, 2.318), (0.1, 1.16)]
    """
    refuse_fork()
    runs = integer("runs", runs, MIN_RUNS, remedy="half of them choose an event, the other half count it")
    confidence = number("confidence", confidence, 0.0, 1.0, open_low=True, open_high=True)
    seed = integer("seed", seed, 0)
    claim: dict[str, Any] = {"horizon": horizon, "epsilon": epsilon, "unit": unit, "model": model, "view": view}
    if (factory := strangers.stranger_factory(algorithm)) is not None:
        for what, value in (("pairs", pairs), ("whole", whole or None)):
            if value is not None:
                raise ValueError(f"{what} = {show(value)} is for algorithms of this package: leave it out")
        asked = strangers.read_claim(factory, environment, adaptive, delta=delta, **claim)
        return _audit_stranger(asked, runs, confidence, seed)
    for what, value in claim.items():
        if value is not None:
            remedy = "an algorithm of this package has it in itself, jb.foreign(make) has not: leave it out"
            raise ValueError(f"{what} = {show(value)} is for other people's learners: {remedy}")
    given = list(delta) if isinstance(delta, Iterable) else [delta]
    if not given:
        raise ValueError("delta = []: give one at least, in [0, 1)")
    given = [number("delta", one, 0.0, 1.0, open_high=True) for one in given]
    algorithm, built_environment = build_parts(algorithm, environment)
    guarantee, name = algorithm.guarantee, algorithm.version[0]
    if guarantee.model == "none":
        raise ValueError(f"algorithm = {name} has no guarantee: an audit needs a private algorithm")
    if algorithm.program.hints.tally:
        raise ValueError(f"{name}: shortcut=True draws no single rewards, so none can be changed: leave it out")
    epsilon, least_delta = guarantee.spend(algorithm.params)
    claimed = float(epsilon), float(least_delta)
    deltas = list(dict.fromkeys(max(one, claimed[1]) for one in given))
    # of one bound; all of them hold together with `confidence`
    each = confidence if len(deltas) == 1 else 1 - (1 - confidence) / len(deltas)
    played_in = built_environment or default_environment(algorithm)

    differences = find_differences(algorithm, played_in)
    seeds = Seeds(seed)
    runner, plays, last, dim = prepare_transcripts(algorithm, played_in, seeds, runs, whole, adaptive)
    about: Any = {"bound": guarantee.bound, "dim": dim, "adaptive": adaptive, "arms": runner.setting.chosen}
    if pairs is None:
        candidates = neighbours.edits(guarantee.unit, plays, **about)
        tried, columns, arms = furthest(runner, candidates, seeds, whole)
        if np.isinf(guarantee.bound) and guarantee.unit in ("loss_vector", "reward"):
            tried = [furthest(runner, neighbours.finer(pair), seeds)[0][0] for pair in tried]
    else:
        tried = neighbours.check_pairs(pairs, guarantee.unit, last, **about)
        _, columns, arms = furthest(runner, [edit for pair in tried for edit in pair], seeds, whole)
    view, columns = len(columns), np.concatenate([columns, arms])

    def fit(negative: scores.Numbers, positive: scores.Numbers) -> list[scores.Score]:
        fitted = scores.fit_scores(negative[:, :view], positive[:, :view])
        return fitted + (scores.fit_scores(negative, positive) if len(arms) else [])

    def claim_at(one: float) -> float:
        releases = guarantee.events(algorithm.params) if one > claimed[1] else ()
        return min(claimed[0], compose(releases, one)[0]) if releases else claimed[0]  # else it is claimed as a whole

    source = scores.Source(lambda edit, number: runner.pair((edit,), number, seeds, columns)[0], fit, each)
    bounds, curve = certify(source, tried, runs, deltas, each, claim_at)
    return Audit(
        algorithm=name, model=guarantee.model, unit=guarantee.unit, epsilon_lower=bounds[0].epsilon_lower,
        claimed=claimed, delta=deltas[0], event=bounds[0].event, curve=curve, runs=runs, confidence=confidence,
        seed=seed, bounds=bounds, last=last, differences=differences, adaptive=adaptive,
    )  # fmt: skip


def _audit_stranger(claim: strangers.Claim, runs: int, confidence: float, seed: int) -> Audit:
    epsilon, delta = claimed = claim.epsilon, claim.delta
    with strangers.search(claim, runs, seed) as (source, pairs, tried):
        bounds, curve = certify(source, pairs, runs, [delta], confidence, lambda _: epsilon)
    about = claim.name, claim.model, claim.unit, bounds[0].epsilon_lower, claimed, delta, bounds[0].event, curve
    return Audit(*about, runs, confidence, seed, bounds, claim.horizon, None, claim.adaptive, tried)


def certify(
    source: scores.Source,
    tried: list[Pair],
    runs: int,
    deltas: list[float],
    each: float,
    claim_at: Callable[[float], float],
) -> tuple[tuple[Bound, ...], confidence_bounds.Curve]:
    """A pair of inputs and an event for each delta, chosen on half of the runs, and what the other half proves.

    tried: pairs of neighbours. each: the confidence of one bound. claim_at: delta -> the epsilon that is claimed.
    """

    def best_tests(pair: Pair, number: int, wanted: list[float]) -> list[scores.ThresholdTest]:
        one = [source.draw(edit, number // 2) for edit in pair]
        negative, positive = (source.draw(edit, number // 2) for edit in pair)
        candidates = source.fit(*one)
        return [scores.choose_score(candidates, negative, positive, delta, source.confidence) for delta in wanted]

    if len(tried) > 1:
        few = max(64, runs // 16 // min(len(tried), MAX_PAIRS))  # on each input
        # users who are apart blur what is released: such a pair must be clearly better
        expected = [best_tests(pair, few, deltas[:1])[0].expected for pair in tried]
        expected = [x - 0.2 * abs(x) if pair[0].apart else x for x, pair in zip(expected, tried, strict=True)]
        tried = [tried[int(np.argmax(expected))]]
    pair = tried[0]
    choices = best_tests(pair, runs * 3 // 16, deltas)
    counted = _fresh_scores(source, pair, choices, runs // 4)
    asked = zip(deltas, choices, counted, strict=True)
    bounds = tuple(_count_events(source, pair, each, delta, claim_at(delta), test, told) for delta, test, told in asked)
    return bounds, confidence_bounds.trade_off(*counted[0], each)


def _fresh_scores(
    source: scores.Source, pair: Pair, choices: list[scores.ThresholdTest], trials: int
) -> list[tuple[Any, Any]]:
    """For each choice the scores of fresh runs, of those that it takes for false and for true positives."""
    told: list[list[list[Any]]] = [[[], []] for _ in choices]
    for side, edit in enumerate(pair):
        for first in range(0, trials, source.step):
            runs = source.draw(edit, min(source.step, trials - first))
            for choice, sides in zip(choices, told, strict=True):
                sides[side].append(choice.sign * choice.score(runs))
    joined = [[np.concatenate(part) for part in sides] for sides in told]
    return [(a, b) if choice.sign == 1 else (b, a) for choice, (a, b) in zip(choices, joined, strict=True)]


def _count_events(
    source: scores.Source,
    pair: Pair,
    confidence: float,
    delta: float,
    claimed: float,
    choice: scores.ThresholdTest,
    told: tuple[scores.Numbers, scores.Numbers],
) -> Bound:
    trials = len(told[1])
    fp, tp = (int(np.sum(x >= choice.threshold)) for x in told)
    words = choice.score.name
    if source.describe is not None:
        read = source.describe(choice)
        words = f"{words}: {read}" if len(choice.score.columns) > 1 else read
    event = Event(pair[:: -choice.sign], words, choice.threshold, tp, fp, trials)
    return Bound(delta, float(confidence_bounds.epsilon_lower(tp, fp, trials, delta, confidence)), claimed, event)
