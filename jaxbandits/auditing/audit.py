"""`jb.audit`: attack an algorithm's privacy claim with its own functions, and say how much of it is proven spent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import environments
from jaxbandits.auditing import bounds, neighbours, scores
from jaxbandits.auditing.neighbours import Edit, Input
from jaxbandits.auditing.transcripts import Setting, clients_alone, lanes, transcripts
from jaxbandits.mechanisms.composition import compose, view_released
from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.random import Draws
from jaxbandits.spans import windows_offered
from jaxbandits.sweeps.plan import stacked
from jaxbandits.sweeps.simulate import built_parts
from jaxbandits.typing import AlgorithmFactory, EnvironmentFactory
from jaxbandits.validation import integer, number
from jaxbandits.window import Parts

MIN_RUNS = 2000  # with fewer no bound says anything
# A transcript ends after so many plays, unless the first release comes later.
TRANSCRIPT_PLAYS = 128
# In the local model it ends after so many messages.
TRANSCRIPT_MESSAGES = 4
# The first release is looked for in so many windows at most.
MAX_WINDOWS = 1 << 12
# So many pairs of inputs come into the second stage of the search.
MAX_PAIRS = 4
# Runs on each edit in the first stage of the search.
PROBE_RUNS = 16


class Event(NamedTuple):
    """What was certified: chosen on one half of the runs, counted on the other."""

    # the input on which the event is likelier, and the other
    pair: tuple[Edit, Edit]
    # what is compared with the threshold, in words
    score: str
    threshold: float
    true_positives: int
    false_positives: int
    # runs on each input
    trials: int


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
    # the lower confidence bound on epsilon, at `delta`
    epsilon_lower: float
    # (epsilon, delta), of `Guarantee.spend`
    claimed: tuple[float, float]
    delta: float
    event: Event
    # what the chosen score achieves at every threshold
    curve: bounds.Curve
    runs: int
    confidence: float
    seed: int
    # one for each delta, the first of which is told above
    bounds: tuple[Bound, ...]

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted, at any delta."""
        return any(bound.epsilon_lower > bound.claimed for bound in self.bounds)

    @property
    def ratio(self) -> float:
        """The share of the claimed epsilon that was proven spent; NaN where none is claimed."""
        return self.epsilon_lower / self.claimed[0] if self.claimed[0] > 0 else float("nan")

    def __repr__(self) -> str:
        verdict = "REFUTES" if self.refuted else "does not refute"
        epsilon, delta = self.claimed
        return (
            f"{self.algorithm}: epsilon >= {self.epsilon_lower:.4g} at delta = {self.delta:.3g} "
            f"(confidence {self.confidence:.6g}) {verdict} the claim "
            f"({epsilon:.4g}, {delta:.3g}), {self.model}, one {self.unit.replace('_', ' ')}; event: {self.event.score}"
            + "".join(
                f"; epsilon >= {bound.epsilon_lower:.4g} of {bound.claimed:.4g} at delta = {bound.delta:.3g}"
                for bound in self.bounds[1:]
            )
        )


class _Seeds:
    """Consecutive seeds: no run is repeated, whatever it is for."""

    def __init__(self, seed: int) -> None:
        self.next = int(np.random.SeedSequence(seed).generate_state(1)[0])

    def take(self, number: int) -> np.ndarray[Any, Any]:
        start, self.next = self.next, self.next + number
        return (np.arange(number, dtype=np.uint64) + np.uint64(start)).astype(np.uint32)


class _Runs(NamedTuple):
    """Makes transcripts on any edit."""

    setting: Setting
    params: Any
    environment: Input
    # runs of a call
    size: int

    def on(self, edits: list[Edit], which: Any, seeds: Any, columns: Any = None) -> tuple[Any, Any, Any]:
        stacked_edits = _stack(edits)
        return transcripts(self.setting, self.params, self.environment, stacked_edits, which, seeds, columns, self.size)

    def pair(self, pair: Any, number: int, seeds: _Seeds, columns: Any) -> list[Any]:
        """[number, F] runs on each edit of a pair."""
        return [self.on([edit], np.zeros(number, int), seeds.take(number), columns)[0] for edit in pair]


def _stack(edits: list[Edit]) -> Edit:
    def join(*leaves: Any) -> np.ndarray[Any, Any]:
        return np.stack([np.asarray(leaf, np.float32) for leaf in leaves])

    stacked_edits = jax.tree.map(join, *edits)
    return stacked_edits._replace(play=np.array([edit.play for edit in edits], np.int32))


def audit(
    algorithm: Algorithm | AlgorithmFactory,
    *,
    runs: int,
    confidence: float = 0.95,
    delta: float | Iterable[float] = 0.0,
    environment: Environment | EnvironmentFactory | None = None,
    seed: int = 0,
    pairs: Iterable[tuple[Edit, Edit]] | None = None,
) -> Audit:
    """A lower confidence bound on the epsilon that an algorithm spends, beside what it claims.

    Parameters
    ----------
    algorithm : Algorithm or factory
        A built algorithm with a guarantee, or a factory (a partial with its horizon) together with `environment`.
    runs : int
        Independent runs on both inputs together, at least 2000. A million of a small instance take seconds.
    confidence : float
        In (0, 1): of the bound.
    delta : float or sequence of float
        In [0, 1). Where the claim has a larger one, that is used, since nothing is claimed at smaller ones. Several are
        tested on the same runs: each has an event of its own, and all bounds hold together.
    environment : Environment or factory, optional
        Where public contexts come from: a factory or a called part; its rewards are replaced. By default one that
        fits the algorithm's arguments.
    seed : int
        Of the audit, at least 0.
    pairs : sequence of pairs of auditing.Edit, optional
        Neighbouring inputs to try instead of the catalogue of the guarantee's unit, within what the claim is for.

    Returns
    -------
    Audit
        The bound, the claim, the event that was counted, and the trade-off curve of its test. Printed, one line.

    Raises
    ------
    ValueError
        Outside these ranges, for an algorithm without a guarantee, where algorithm and environment do not fit, and for
        shortcut=True (no single reward is drawn).

    Notes
    -----
    The algorithm's own functions run on two neighbouring inputs, and an attacker tells apart what the view of its
    guarantee shows of them. Half of the runs choose the pair of inputs and an event, by common random numbers and
    then by fitted likelihood ratios. The other half count how often the event happens on either input:
    Clopper-Pearson bounds on both shares give epsilon >= log((TPR - delta) / FPR), with confidence 1 - (1 - confidence)
    / m where there are m deltas. The pair is that of the first delta. A transcript ends 128 plays after
    its start (in the local model with the fourth message), or with the first release.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> report = jb.audit(jb.algorithms.ldp_ucb(num_arms=2, horizon=100, epsilon=1.0), runs=20_000)
    >>> report.claimed, report.refuted, report.ratio > 0.8
    ((1.0, 0.0), False, True)
    >>> gaussian = jb.algorithms.adac_ucb(num_arms=2, horizon=40, rho=0.5, delta=0.01)
    >>> [(bound.delta, round(bound.claimed, 3)) for bound in jb.audit(gaussian, runs=2000, delta=[0.01, 0.1]).bounds]
    [(0.01, 2.318), (0.1, 1.16)]
    """
    runs = integer("runs", runs, MIN_RUNS, remedy="half of them choose an event, the other half count it")
    confidence = number("confidence", confidence, 0.0, 1.0, open_low=True, open_high=True)
    given = list(delta) if isinstance(delta, Iterable) else [delta]
    if not given:
        raise ValueError("delta = []: give one at least, in [0, 1)")
    given = [number("delta", one, 0.0, 1.0, open_high=True) for one in given]
    seed = integer("seed", seed, 0)
    algorithm, built_environment = built_parts(algorithm, environment)
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
    played_in = built_environment or _environment(algorithm.config)

    seeds = _Seeds(seed)
    runner, plays, last, dim = _prepared(algorithm, played_in, seeds, runs)
    if pairs is None:
        candidates = neighbours.edits(guarantee.unit, plays, bound=guarantee.bound, dim=dim)
        tried, columns = _furthest(runner, candidates, seeds)
        if np.isinf(guarantee.bound) and guarantee.unit in ("loss_vector", "reward"):
            tried = [_furthest(runner, neighbours.finer(pair), seeds)[0][0] for pair in tried]
    else:
        tried = neighbours.checked(pairs, guarantee.unit, last, bound=guarantee.bound, dim=dim)
        _, columns = _furthest(runner, [edit for pair in tried for edit in pair], seeds)

    def best_tests(pair: Any, number: int, wanted: list[float]) -> list[scores.Choice]:
        one = runner.pair(pair, number // 2, seeds, columns)
        negative, positive = runner.pair(pair, number // 2, seeds, columns)
        candidates = scores.fitted(*one)
        return [scores.chosen(candidates, negative, positive, delta, each) for delta in wanted]

    if len(tried) > 1:
        few = max(64, runs // 16 // len(tried))  # on each input
        expected = [best_tests(pair, few, deltas[:1])[0].expected for pair in tried]
        tried = [tried[int(np.argmax(expected))]]
    pair = tried[0]
    choices = best_tests(pair, runs * 3 // 16, deltas)
    counted = _counted(pair, choices, runner, columns, seeds, runs // 4)
    certified = tuple(
        _certified(algorithm, claimed, delta, pair, choice, *told, each)
        for delta, choice, told in zip(deltas, choices, counted, strict=True)
    )
    return Audit(
        algorithm=name,
        model=guarantee.model,
        unit=guarantee.unit,
        epsilon_lower=certified[0].epsilon_lower,
        claimed=claimed,
        delta=deltas[0],
        event=certified[0].event,
        curve=bounds.trade_off(*counted[0], each),
        runs=runs,
        confidence=confidence,
        seed=seed,
        bounds=certified,
    )


def _counted(pair, choices, runner, columns, seeds, trials) -> list[tuple[Any, Any]]:
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


def _certified(algorithm, claimed, delta, pair, choice, negative, positive, confidence) -> Bound:
    trials = len(positive)
    tp, fp = (int(np.sum(x >= choice.threshold)) for x in (positive, negative))
    event = Event(
        pair=pair[:: -choice.sign],
        score=choice.score.name,
        threshold=choice.threshold,
        true_positives=tp,
        false_positives=fp,
        trials=trials,
    )
    epsilon = claimed[0]
    if delta > claimed[1] and algorithm.guarantee.events is not None:
        epsilon = min(epsilon, compose(algorithm.guarantee.events(algorithm.params), delta)[0])
    return Bound(delta, float(bounds.epsilon_lower(tp, fp, trials, delta, confidence)), epsilon, event)


def _environment(config: dict[str, Any]) -> Environment:
    """An environment that offers what an algorithm of these arguments was built for."""
    if config.get("num_experts"):
        losses = environments.bernoulli_losses(means=[0.5] * config["num_arms"])
        return environments.rotating_experts(losses=losses, num_experts=config["num_experts"])
    sizes = {key: config[key] for key in ("num_agents", "num_arms", "dim") if config.get(key)}
    if "num_agents" in sizes:
        return environments.federated_linear(**sizes)
    if "dim" in sizes:
        return environments.contextual_linear(**sizes)
    arms = config["num_arms"] if config.get("num_arms") else len(config["actions"])
    return environments.bernoulli_arms(means=[0.5] * arms)


def _prepared(
    algorithm: Algorithm, environment: Environment, seeds: _Seeds, runs: int
) -> tuple[_Runs, list[int], int, int]:
    """How transcripts are made, and what may be private in them.

    Returns the runner, the plays whose input may be private, the last play seen, and the features' dimension (unit
    "user").
    """
    guarantee, world = algorithm.guarantee, environment.world
    params = stacked([algorithm.params], "float32")[0]
    public = stacked([environment.params], "float32")[0]
    draws, t = Draws(jnp.uint32(0), "environment"), jnp.ones(1, jnp.int32)
    shape = jax.eval_shape(lambda: world.observe(public, world.init(public, draws), draws, t)[0])
    user = guarantee.unit == "user"
    if user and not hasattr(shape, "shape"):
        raise ValueError(
            f"environment: unit 'user' needs contexts of features, {environment.config.get('name')} has none"
        )
    dim = shape.shape[-1] if user else 0
    attack = neighbours.MESSAGE if guarantee.unit == "message" else None
    sent = guarantee.model in ("local", "shuffle") and guarantee.view is not view_released
    program = clients_alone(algorithm.program) if sent else algorithm.program
    parts = Parts(program, neighbours.world_of(world, user), None, attack, jnp.float32)
    horizon = int(algorithm.config["horizon"])
    schedule = algorithm.schedule
    windows_of_spans = [windows_offered(span) for span in schedule]
    offered = sum(windows_of_spans)
    begun = next((int(n) for n in np.cumsum(windows_of_spans) if n), 1)
    closes = any(span.close for span in schedule)  # what a close releases, the window after it tells
    start = min(begun, TRANSCRIPT_MESSAGES) if sent else begun + 1 if closes else 64
    setting = Setting(
        parts=parts,
        schedule=schedule,
        view=guarantee.view,
        windows=min(start, offered),
        horizon=horizon,
        num_arms=environment.facts.get("num_arms", 0),
        sent=sent,
    )
    first = neighbours.edits(guarantee.unit, [1], bound=guarantee.bound, dim=dim)[:1]
    probes = seeds.take(8)
    while True:  # short transcripts first: every further span is code to compile
        runner = _Runs(setting, params, Input(public, ()), lanes(runs // 16))
        _, done, tells = runner.on(first, np.zeros(8, int), probes)
        if tells.any() or setting.windows == min(offered, MAX_WINDOWS):
            break
        setting = setting._replace(windows=min((2 if closes else 16) * setting.windows, offered, MAX_WINDOWS))
    if not tells.any() and sent:
        raise ValueError(
            f"{algorithm.version[0]} sent no number in its first {setting.windows} windows: raise its horizon"
        )
    at = int(np.argmax(tells.any(axis=0))) if tells.any() else 0  # actions alone: the start of the run
    last = int(done[:, at].max())
    before = int(done[:, at - 1].max()) if at else 0
    plays = sorted({before + 1, last} if sent else {1, (1 + last) // 2, max(before, 1), last})
    if not sent and not closes:
        windows = max(
            at + 1, min(int(np.searchsorted(done.max(axis=0), min(horizon, TRANSCRIPT_PLAYS))) + 1, len(tells[0]))
        )
        if 2 * windows < setting.windows:  # else it is not worth compiling again
            runner = runner._replace(setting=setting._replace(windows=windows))
    return runner, plays, int(done[:, runner.setting.windows - 1].max()), dim


def _furthest(runner: _Runs, edits: list[Edit], seeds: _Seeds) -> tuple[list[tuple[Edit, Edit]], np.ndarray[Any, Any]]:
    """The most distant pairs of edits, and the numbers of a transcript that vary.

    Distances are in units of each number's spread, over runs of common random numbers.
    """
    which, common = np.repeat(np.arange(len(edits)), PROBE_RUNS), np.tile(seeds.take(PROBE_RUNS), len(edits))
    numbers = runner.on(edits, which, common)[0]
    columns = np.flatnonzero(np.ptp(numbers, axis=0) > 0)
    numbers = numbers[:, columns].astype(np.float64).reshape(len(edits), PROBE_RUNS, -1)
    spread = np.sqrt(np.mean(numbers.var(axis=1), axis=0))
    spread = np.maximum(spread, 1e-6 * np.abs(numbers).max(axis=(0, 1), initial=0) + 1e-30)
    numbers = numbers / spread
    distances: dict[tuple[int, int], float] = {}  # by pair of edits
    for play in sorted({edit.play for edit in edits}):
        mine = [i for i, edit in enumerate(edits) if edit.play == play]
        for power in (1, 2):  # Laplace noise adds up distances, Gaussian noise their squares
            far = np.zeros((len(mine), len(mine)))
            for row, i in enumerate(mine):
                apart = np.abs(numbers[mine] - numbers[i]) ** power
                far[row] = np.mean(apart.sum(-1) ** (1 / power), axis=1)
            a, b = np.unravel_index(int(np.argmax(far)), far.shape)
            if far[a, b] > 0:
                pair = mine[min(a, b)], mine[max(a, b)]
                distances[pair] = max(far[a, b], distances.get(pair, 0))
    best = sorted(distances, key=lambda pair: -distances[pair])[:MAX_PAIRS]
    if not best:  # nothing told any two apart
        best = [(0, next(i for i, edit in enumerate(edits) if i and edit.play == edits[0].play))]
        columns = columns if len(columns) else np.zeros(1, int)
    return [(edits[a], edits[b]) for a, b in best], columns
