"""`jb.audit`: attack an algorithm's privacy claim with its own functions, and say how much of it the attack can prove used."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import environments
from jaxbandits.auditing import bounds, neighbours, scores
from jaxbandits.auditing.neighbours import Edit, Input
from jaxbandits.auditing.transcripts import Setting, clients_alone, lanes, transcripts
from jaxbandits.protocol import Algorithm, Environment
from jaxbandits.random import Draws
from jaxbandits.sweeps.plan import stacked
from jaxbandits.sweeps.simulate import built_parts
from jaxbandits.validation import integer, number
from jaxbandits.window import Parts

LEAST = 2000  # runs: with fewer no bound says anything
PLAYS = 128  # of a transcript, unless the first release comes later
MESSAGES = 4  # of a transcript in the local model
WINDOWS = 1 << 12  # most windows in which the first release is looked for
PAIRS = 4  # that the second stage of the search looks at
PROBES = 16  # runs an edit in its first stage


class Event(NamedTuple):
    """What was certified: chosen on one half of the runs, counted on the other."""

    pair: tuple  # Edit, Edit: the likelier input of the event, and the other
    score: str
    threshold: float
    true_positives: int
    false_positives: int
    trials: int  # runs on each input


class Audit(NamedTuple):
    """What an audit found. `epsilon_lower` above the claim refutes it, with error probability 1 - confidence. Prints as one line."""

    algorithm: str
    model: str
    unit: str
    epsilon_lower: float  # at `delta`
    claimed: tuple  # (epsilon, delta): Guarantee.spend
    delta: float
    event: Event
    curve: bounds.Curve
    runs: int
    confidence: float
    seed: int

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted."""
        return self.epsilon_lower > self.claimed[0]

    @property
    def ratio(self) -> float:
        """The share of the claimed epsilon that was proven spent; NaN where none is claimed."""
        return self.epsilon_lower / self.claimed[0] if self.claimed[0] > 0 else float("nan")

    def __repr__(self) -> str:
        verdict = "REFUTES" if self.refuted else "does not refute"
        epsilon, delta = self.claimed
        return (
            f"{self.algorithm}: epsilon >= {self.epsilon_lower:.4g} at delta = {self.delta:.3g} (confidence {self.confidence:.6g}) {verdict} the claim "
            f"({epsilon:.4g}, {delta:.3g}), {self.model}, one {self.unit.replace('_', ' ')}; event: {self.event.score}"
        )


class _Seeds:
    """Consecutive seeds: no run is made twice, whatever it is for."""

    def __init__(self, seed: int):
        self.next = int(np.random.SeedSequence(seed).generate_state(1)[0])

    def take(self, number: int):
        start, self.next = self.next, self.next + number
        return (np.arange(number, dtype=np.uint64) + np.uint64(start)).astype(np.uint32)


class _Runs(NamedTuple):
    """Makes transcripts on any edit."""

    setting: Setting
    params: Any
    environment: Input
    size: int  # runs of a call

    def on(self, edits: list[Edit], which, seeds, columns=None):
        made = _stack(edits)
        return transcripts(self.setting, self.params, self.environment, made, which, seeds, columns, self.size)

    def pair(self, pair, number: int, seeds: _Seeds, columns) -> list:
        """[number, F] runs on each edit of a pair."""
        return [self.on([edit], np.zeros(number, int), seeds.take(number), columns)[0] for edit in pair]


def _stack(edits: list[Edit]) -> Edit:
    def join(*xs):
        return np.stack([np.asarray(x, np.float32) for x in xs])

    stacked_edits = jax.tree.map(join, *edits)
    return stacked_edits._replace(play=np.array([edit.play for edit in edits], np.int32))


def audit(algorithm, *, runs, confidence=0.95, delta=0.0, environment=None, seed=0, pairs=None) -> Audit:
    """A lower confidence bound on the epsilon that an algorithm spends, beside what it claims.

    The algorithm's real functions are run on two neighbouring inputs, `runs` independent runs in all, and what its guarantee's view
    shows of them is told apart. Half of the runs choose the pair of inputs and an event (by common random numbers, then fitted
    likelihood ratios); the other half count how often it happens on either input: Clopper-Pearson bounds on both shares give
    epsilon >= log((TPR - delta) / FPR).

    algorithm: a built algorithm with a guarantee, or a factory (a partial with its horizon) with `environment`. runs >= 2000: a million
    of a small instance take seconds. confidence in (0, 1): of the bound. delta in [0, 1): where the claim has a larger one, that is used,
    since nothing is claimed at smaller ones. environment: where public contexts come from (a factory or a called part; None: one
    that fits the algorithm's arguments); its rewards are replaced. seed: of the audit. pairs: neighbours to try instead of the
    catalogue of the unit, a sequence of two `auditing.Edit` each, within what the claim is for. A transcript ends 128 plays after its
    start (in the local model with the fourth message), or with the first release. Raises ValueError outside these ranges, without a guarantee, where algorithm and environment do not
    fit, and for shortcut=True (no single reward is drawn).

    >>> import jaxbandits as jb
    >>> found = jb.audit(jb.algorithms.ldp_ucb(num_arms=2, horizon=100, epsilon=1.0), runs=20_000)
    >>> found.claimed, found.refuted, found.ratio > 0.8
    ((1.0, 0.0), False, True)
    """
    runs = integer("runs", runs, LEAST, remedy="half of them choose an event, the other half count it")
    confidence = number("confidence", confidence, 0.0, 1.0, open_low=True, open_high=True)
    delta = number("delta", delta, 0.0, 1.0, open_high=True)
    seed = integer("seed", seed, 0)
    algorithm, environment = built_parts(algorithm, environment)
    guarantee, name = algorithm.guarantee, algorithm.version[0]
    if guarantee.model == "none":
        raise ValueError(f"algorithm = {name} has no guarantee: an audit needs a private algorithm")
    if algorithm.program.hints.tally:
        raise ValueError(f"{name}: shortcut=True draws no single rewards, so none can be changed: leave it out")
    claimed = tuple(map(float, guarantee.spend(algorithm.params)))
    delta = max(delta, claimed[1])
    environment = environment or _environment(algorithm.config)

    seeds = _Seeds(seed)
    runner, plays, last, dim = _prepared(algorithm, environment, seeds, runs)
    if pairs is None:
        candidates = neighbours.edits(guarantee.unit, plays, bound=guarantee.bound, dim=dim)
        tried, columns = _furthest(runner, candidates, seeds)
        if np.isinf(guarantee.bound) and guarantee.unit in ("loss_vector", "reward"):
            tried = [_furthest(runner, neighbours.finer(pair), seeds)[0][0] for pair in tried]
    else:
        tried = neighbours.checked(pairs, guarantee.unit, last, bound=guarantee.bound, dim=dim)
        _, columns = _furthest(runner, [edit for pair in tried for edit in pair], seeds)

    def found_on(pair, number):
        one = runner.pair(pair, number // 2, seeds, columns)
        negative, positive = runner.pair(pair, number // 2, seeds, columns)
        return scores.chosen(scores.fitted(*one), negative, positive, delta, confidence)

    if len(tried) > 1:
        few = max(64, runs // 16 // len(tried))  # on each input
        expected = [found_on(pair, few).expected for pair in tried]
        tried = [tried[int(np.argmax(expected))]]
    pair = tried[0]
    choice = found_on(pair, runs * 3 // 16)
    return _certified(algorithm, claimed, delta, pair, choice, runner, columns, seeds, runs, confidence, seed)


def _certified(algorithm, claimed, delta, pair, choice, runner, columns, seeds, runs, confidence, seed) -> Audit:
    trials, step = runs // 4, 1 << 16
    counted = [
        np.concatenate([
            choice.sign * choice.score(runner.pair((edit,), min(step, trials - first), seeds, columns)[0])
            for first in range(0, trials, step)
        ])
        for edit in pair
    ]  # fmt: skip
    negative, positive = counted if choice.sign == 1 else counted[::-1]
    tp, fp = (int(np.sum(x >= choice.threshold)) for x in (positive, negative))
    lower = float(bounds.epsilon_lower(tp, fp, trials, delta, confidence))
    event = Event(pair[:: -choice.sign], choice.score.name, choice.threshold, tp, fp, trials)
    guarantee = algorithm.guarantee
    return Audit(
        algorithm.version[0], guarantee.model, guarantee.unit, lower, claimed, delta, event,
        bounds.trade_off(negative, positive, confidence), runs, confidence, seed,
    )  # fmt: skip


def _environment(config: dict) -> Environment:
    """One that offers what an algorithm of these arguments was built for."""
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


def _windows(schedule) -> list[int]:
    return [s.repeats * (-(-(s.length or s.slots) // s.slots) if s.full else 1) for s in schedule]


def _prepared(algorithm: Algorithm, environment: Environment, seeds: _Seeds, runs: int):
    """How transcripts are made, the plays whose input may be private, the last play seen, and the features' dimension (unit "user")."""
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
    sent = guarantee.model in ("local", "shuffle")
    program = clients_alone(algorithm.program) if sent else algorithm.program
    parts = Parts(program, neighbours.world_of(world, user), None, attack, jnp.float32)
    horizon = int(algorithm.config["horizon"])
    offered = sum(_windows(algorithm.schedule))
    schedule = algorithm.schedule
    begun = next((int(n) for n in np.cumsum(_windows(schedule)) if n), 1)
    closes = any(span.close for span in schedule)  # what a close releases, the window after it tells
    start = min(begun, MESSAGES) if sent else begun + 1 if closes else 64
    setting = Setting(
        parts, schedule, guarantee.view, min(start, offered), horizon,
        environment.facts.get("num_arms", 0), sent,
    )  # fmt: skip
    first = neighbours.edits(guarantee.unit, [1], bound=guarantee.bound, dim=dim)[:1]
    probes = seeds.take(8)
    while True:  # short transcripts first: every further span is code to compile
        runner = _Runs(setting, params, Input(public, ()), lanes(runs // 16))
        _, done, tells = runner.on(first, np.zeros(8, int), probes)
        if tells.any() or setting.windows == min(offered, WINDOWS):
            break
        setting = setting._replace(windows=min((2 if closes else 16) * setting.windows, offered, WINDOWS))
    if not tells.any() and sent:
        raise ValueError(
            f"{algorithm.version[0]} sent no number in its first {setting.windows} windows: raise its horizon"
        )
    at = int(np.argmax(tells.any(axis=0))) if tells.any() else 0  # actions alone: the start of the run
    last = int(done[:, at].max())
    before = int(done[:, at - 1].max()) if at else 0
    plays = sorted({before + 1, last} if sent else {1, (1 + last) // 2, max(before, 1), last})
    if not sent and not closes:
        windows = max(at + 1, min(int(np.searchsorted(done.max(axis=0), min(horizon, PLAYS))) + 1, len(tells[0])))
        if 2 * windows < setting.windows:  # else it is not worth compiling again
            runner = runner._replace(setting=setting._replace(windows=windows))
    return runner, plays, int(done[:, runner.setting.windows - 1].max()), dim


def _furthest(runner: _Runs, edits: list[Edit], seeds: _Seeds):
    """The most distant pairs of edits, under common random numbers and in units of each number's spread; and the numbers that vary."""
    which, common = np.repeat(np.arange(len(edits)), PROBES), np.tile(seeds.take(PROBES), len(edits))
    numbers = runner.on(edits, which, common)[0]
    columns = np.flatnonzero(np.ptp(numbers, axis=0) > 0)
    numbers = numbers[:, columns].astype(np.float64).reshape(len(edits), PROBES, -1)
    spread = np.sqrt(np.mean(numbers.var(axis=1), axis=0))
    spread = np.maximum(spread, 1e-6 * np.abs(numbers).max(axis=(0, 1), initial=0) + 1e-30)
    numbers = numbers / spread
    found: dict = {}  # pair -> distance
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
                found[pair] = max(far[a, b], found.get(pair, 0))
    best = sorted(found, key=lambda pair: -found[pair])[:PAIRS]
    if not best:  # nothing told any two apart
        best = [(0, next(i for i, edit in enumerate(edits) if i and edit.play == edits[0].play))]
        columns = columns if len(columns) else np.zeros(1, int)
    return [(edits[a], edits[b]) for a, b in best], columns
