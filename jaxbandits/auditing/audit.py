"""`jb.audit`: attack an algorithm's privacy claim with its own functions, and say how much of it is proven spent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

import numpy as np
from annotated_doc import Doc

from jaxbandits.auditing import confidence_bounds, neighbours, scores
from jaxbandits.auditing.differences import Differences, find_differences
from jaxbandits.auditing.neighbours import Edit
from jaxbandits.auditing.transcripts import MAX_PAIRS, Seeds, default_environment, furthest, prepare_transcripts
from jaxbandits.forks import refuse_fork
from jaxbandits.mechanisms.composition import compose
from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.sweeps.simulate import build_parts
from jaxbandits.typing import AlgorithmFactory, EnvironmentFactory
from jaxbandits.validation import declare, integer, number

MIN_RUNS = 2000  # with fewer no bound says anything


class Event(NamedTuple):
    """What was certified: chosen on one half of the runs, counted on the other."""

    pair: tuple[Edit, Edit]  # the input on which the event is likelier, and the other
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
    differences: Differences  # what one unit changes in whole runs
    adaptive: bool = False  # whether inputs reacted to the arms that were played

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted: a bound at any delta, or by what one unit changes in whole runs."""
        return bool(self.differences.fault) or any(bound.epsilon_lower > bound.claimed for bound in self.bounds)

    @property
    def looked_at(self) -> str:
        """How far transcripts went, in words."""
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
        return "; ".join([*parts, self.looked_at, str(self.differences.fault or self.differences)])


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
) -> Audit:
    """A lower confidence bound on the epsilon that an algorithm spends, beside what it claims.

    Args:
        algorithm (Algorithm or factory): A built algorithm with a guarantee, or a factory (a partial with its horizon)
            together with `environment`.
        runs: Independent runs on both inputs together, at least 2000. A million of a small instance take seconds.
        delta (float or sequence of float, default 0.0): In [0, 1). Where the claim has a larger one, that is used,
            since nothing is claimed at smaller ones. Several are tested on the same runs: each has an event of its own,
            and all bounds hold together.
        environment (Environment or factory, optional): Where public contexts come from: a factory or a called part; its
            rewards are replaced. By default one that fits the algorithm's arguments.
        pairs (sequence of pairs of auditing.Edit, optional): Neighbouring inputs to try instead of the catalogue of the
            guarantee's unit, within what the claim is for.
        whole: Whether a transcript holds the whole run, of at most 4,096 windows, instead of its beginning.
        adaptive: Whether inputs react to the arms that were played before, as those of an adaptive adversary. For
            claims about one reward or one loss vector.

    Returns:
        The bound, the claim, the event that was counted, and the trade-off curve of its test. Printed, one line.

    Raises:
        ValueError: Outside these ranges, for an algorithm without a guarantee, where algorithm and environment do not
            fit, for shortcut=True (no single reward is drawn), where a whole run has too many windows, and with
            `adaptive` for a claim about one user or one message.

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
    given = list(delta) if isinstance(delta, Iterable) else [delta]
    if not given:
        raise ValueError("delta = []: give one at least, in [0, 1)")
    given = [number("delta", one, 0.0, 1.0, open_high=True) for one in given]
    seed = integer("seed", seed, 0)
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

    def best_tests(pair: Any, number: int, wanted: list[float]) -> list[scores.ThresholdTest]:
        one = runner.pair(pair, number // 2, seeds, columns)
        negative, positive = runner.pair(pair, number // 2, seeds, columns)
        candidates = scores.fit_scores(*(x[:, :view] for x in one))
        if len(arms):
            candidates += scores.fit_scores(*one)
        return [scores.choose_score(candidates, negative, positive, delta, each) for delta in wanted]

    if len(tried) > 1:
        few = max(64, runs // 16 // min(len(tried), MAX_PAIRS))  # on each input
        # users who are apart blur what is released: such a pair must be clearly better
        expected = [best_tests(pair, few, deltas[:1])[0].expected for pair in tried]
        expected = [x - 0.2 * abs(x) if pair[0].apart else x for x, pair in zip(expected, tried, strict=True)]
        tried = [tried[int(np.argmax(expected))]]
    pair = tried[0]
    choices = best_tests(pair, runs * 3 // 16, deltas)
    counted = _fresh_scores(pair, choices, runner, columns, seeds, runs // 4)
    asked = zip(deltas, choices, counted, strict=True)
    certified = tuple(_certify(algorithm, claimed, pair, each, *one) for one in asked)
    first, curve = certified[0], confidence_bounds.trade_off(*counted[0], each)
    return Audit(
        algorithm=name, model=guarantee.model, unit=guarantee.unit, epsilon_lower=first.epsilon_lower, claimed=claimed,
        delta=deltas[0], event=first.event, curve=curve, runs=runs, confidence=confidence, seed=seed, bounds=certified,
        last=last, differences=differences, adaptive=adaptive,
    )  # fmt: skip


def _fresh_scores(pair, choices, runner, columns, seeds, trials) -> list[tuple[Any, Any]]:
    """For each choice the scores of fresh runs, of those that it takes for false and for true positives."""
    step = 1 << 16
    told: list[list[list[Any]]] = [[[], []] for _ in choices]
    for side, edit in enumerate(pair):
        for first in range(0, trials, step):
            runs = runner.pair((edit,), min(step, trials - first), seeds, columns)[0]
            for choice, sides in zip(choices, told, strict=True):
                sides[side].append(choice.sign * choice.score(runs))
    joined = [[np.concatenate(part) for part in sides] for sides in told]
    return [(a, b) if choice.sign == 1 else (b, a) for choice, (a, b) in zip(choices, joined, strict=True)]


def _certify(algorithm, claimed, pair, confidence, delta, choice, told) -> Bound:
    trials = len(told[1])
    fp, tp = (int(np.sum(x >= choice.threshold)) for x in told)
    event = Event(pair[:: -choice.sign], choice.score.name, choice.threshold, tp, fp, trials)
    epsilon = claimed[0]
    if delta > claimed[1] and algorithm.guarantee.events is not None:
        epsilon = min(epsilon, compose(algorithm.guarantee.events(algorithm.params), delta)[0])
    return Bound(delta, float(confidence_bounds.epsilon_lower(tp, fp, trials, delta, confidence)), epsilon, event)
