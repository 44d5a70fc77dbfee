"""Calls of foreign learners: played in processes of their own, on the rewards that their worlds would pay.

What a world shows and would pay for every arm is drawn in compiled code, some plays of one run at a time: by the same
streams, at the same plays, as in a run of an algorithm of this package. So the rewards that an arm pays are the same.

Axes: [P] plays, [K] arms, [S] seeds, [C] checkpoints.
"""

import queue
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from functools import lru_cache, partial
from typing import Any, NamedTuple, NoReturn, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import simulator
from jaxbandits.protocol import AdversaryView, Case, Context, State
from jaxbandits.random import Draws
from jaxbandits.regret import regret_of_counts
from jaxbandits.strangers import STAND_IN, Learner, StrangerError, StrangerProcess, learner_of, processes
from jaxbandits.strangers_process import Rows, Stranger
from jaxbandits.sweeps.compilation.caller import Caller, CallerLeft, in_caller
from jaxbandits.sweeps.compilation.settings import settings_of
from jaxbandits.sweeps.engines.calls import Call, Machine, check_diagnostics
from jaxbandits.sweeps.engines.local import EngineRun, Failed, Orders, Workers, cores
from jaxbandits.sweeps.engines.one_call import Interrupted, Outcome, Progress
from jaxbandits.sweeps.engines.remaining import Remaining
from jaxbandits.sweeps.part_checks.examination import TAKEN, is_taken
from jaxbandits.sweeps.plan import Cell, Group, Plan, cell_words, host_case, stack_cases
from jaxbandits.typing import Array
from jaxbandits.window import Parts, streams

Numbers: TypeAlias = np.ndarray[Any, Any]
BLOCK_BYTES = 1 << 21  # of what a world shows and pays at a time
MOST_PLAYS = 1 << 15  # of a block
TRIED_PLAYS = 8  # before anything runs
# A process is asked for so many plays first, then for what takes about so many seconds
FIRST_PLAYS, ASKED_SECONDS = 16, 0.5


# ---- what a world shows and pays


class _Unread:
    """In the place of a learner's state in the view of an adversary."""

    def _refuse_reading(self, *_: object) -> NoReturn:
        read = "this adversary reads what the learner keeps, which nobody sees of a foreign one"
        raise ValueError(f"reward_adversary: {read}: take one that reads the truth alone, such as huber")

    __getattr__ = __getitem__ = __iter__ = __jax_array__ = __array__ = __len__ = __bool__ = _refuse_reading


@lru_cache(maxsize=64)
def _blocks_of(parts: Parts, plays: int) -> Any:
    """Compiled functions of a world: its state at the start, and a block of plays from one on."""
    arms, world, attack = parts.arms or parts.world.num_arms, parts.world, parts.reward_attack

    def begin(case: Case, seed: Array) -> State:
        return world.init(case.environment, streams(parts, seed).child("environment").child("instance"))

    def block(case: Case, seed: Array, state: State, first: Array) -> tuple[Context, Array, Any, State]:
        root = streams(parts, seed)
        draws, t = root.child("environment"), first + jnp.arange(plays, dtype=jnp.int32)
        context, state = world.observe(case.environment, state, draws.child("context"), t)

        def pay(draws: Draws, action: Array) -> Array:
            return jnp.broadcast_to(world.reward(case.environment, state, draws, t, context, action), (plays,))

        def of_arm(arm: Array) -> tuple[Array, Any]:
            action = jnp.full(plays, arm, jnp.int32)
            reward = pay(draws.child("reward"), action)
            if attack is not None:
                stream, unread = root.child("contamination"), _Unread()
                truth, played = world.truth(case.environment, state, t, context), jnp.ones(plays, bool)
                sample = partial(pay, stream.child("reward"))
                view = AdversaryView(t, context, action, played, truth, unread, unread, unread, sample)
                reward = attack.corrupt(case.reward_adversary, _state_of_attack(parts, case), stream, t, reward, view)[
                    0
                ]
            regret = world.score(case.environment, state, t, context, action).regret
            return reward, () if regret is None else jnp.broadcast_to(regret, (plays,))

        rewards, regret = jax.vmap(of_arm, out_axes=1)(jnp.arange(arms, dtype=jnp.int32))
        return context, rewards, regret, state

    return jax.jit(begin), jax.jit(block)


class Block(NamedTuple):
    """Some plays of one run."""

    seed: int
    first: int  # plays before
    rows: Rows
    regret: Any  # [P, K]; () where it follows from counts
    last: bool

    def split(self, plays: int) -> "tuple[Block, Block | None]":
        """Its first plays, and the rest."""
        if len(self.rows.rewards) <= plays:
            return self, None
        contexts, rewards = self.rows
        rows = [Rows(None if contexts is None else contexts[at], rewards[at]) for at in (np.s_[:plays], np.s_[plays:])]
        regret = [self.regret[at] for at in (np.s_[:plays], np.s_[plays:])]
        return (
            Block(self.seed, self.first, rows[0], regret[0], last=False),
            Block(self.seed, self.first + plays, rows[1], regret[1], self.last),
        )


class Tape:
    """What the world of a cell shows and pays, run by run."""

    def __init__(self, plan: Plan, group: Group, cell: Cell) -> None:
        self.dtype, self.horizon, self.shows = plan.dtype, cell.horizon, cell.algorithm.plays_on != "arms"
        self.case = stack_cases([host_case(cell)], plan.dtype)[0]
        self.parts = group.parts._replace(traces=None)
        bytes_of_play = 8 * (self.parts.arms or 1) + group.shape.context
        plays = max(64, min(MOST_PLAYS, BLOCK_BYTES // max(1, bytes_of_play)))
        self.plays = min(plays, 1 << (self.horizon - 1).bit_length())
        self.begin, self.block = _blocks_of(self.parts, self.plays)

    def trace_world(self) -> None:
        """Trace the world in this thread, so that no other one calls a user's functions."""
        with settings_of(self.dtype, jax.local_devices()[0]):
            state = jax.eval_shape(self.begin, self.case, jnp.uint32(0))
            jax.eval_shape(self.block, self.case, jnp.uint32(0), state, 1)

    def draw_blocks(self, seeds: Sequence[int], device: jax.Device) -> Iterator[Block]:
        """The plays of runs, one run after the other."""
        for seed in seeds:
            with settings_of(self.dtype, device):
                state = self.begin(self.case, jnp.uint32(seed))
            for first in range(0, self.horizon, self.plays):
                with settings_of(self.dtype, device):
                    context, rewards, regret, state = self.block(self.case, jnp.uint32(seed), state, first + 1)
                wanted = slice(min(self.plays, self.horizon - first))
                shown = np.asarray(context)[wanted] if self.shows else None
                rows = Rows(shown, np.asarray(rewards)[wanted])
                regret = () if isinstance(regret, tuple) else np.asarray(regret, np.float64)[wanted]
                yield Block(seed, first, rows, regret, first + self.plays >= self.horizon)


class Record:
    """Pulls and regret of one run at its checkpoints, as `recorder` keeps them."""

    def __init__(self, arms: int, times: Numbers) -> None:
        self.times, self.pulls, self.regret = times, np.zeros(arms, np.int64), 0.0
        self.pulls_at, self.regret_at = np.zeros((len(times), arms), np.int64), np.zeros(len(times))
        self.numbers: dict[str, float] = {}  # of the learner, at the horizon

    def add(self, block: Block, played: Numbers, numbers: dict[str, float]) -> None:
        """Count the arms of a block."""
        self.numbers = numbers
        rows = np.flatnonzero((self.times > block.first) & (self.times <= block.first + len(played)))
        cuts = [0, *(self.times[rows] - block.first), len(played)]
        paid = None if isinstance(block.regret, tuple) else block.regret[np.arange(len(played)), played]
        for low, high, row in zip(cuts[:-1], cuts[1:], [*rows, None], strict=True):
            self.pulls += np.bincount(played[low:high], minlength=len(self.pulls))
            if paid is not None:  # one after the other: a sum must not depend on how plays were cut into blocks
                self.regret = float(np.add.accumulate(np.append(self.regret, paid[low:high]))[-1])
            if row is not None:
                self.pulls_at[row], self.regret_at[row] = self.pulls, self.regret


# ---- before anything runs


def refuse_what_is_played(plan: Plan, engine: str) -> None:
    """ValueError where what a foreign learner is paid depends on what was played, or would be played elsewhere."""
    for group in plan.groups:
        if group.parts.program is not STAND_IN:
            continue
        cell, attack = plan.cells[group.cells[0]], group.parts.reward_attack
        if engine != "local":
            raise ValueError(
                f"engine = 'ray': {cell.label} is a foreign learner, which this machine plays: leave it out"
            )
        if cell.message_adversary is not None:
            what = "is a foreign learner, which sends no messages that an adversary could change"
            raise ValueError(f"message_adversary: {cell.label} {what}: leave it out")
        if not (group.parts.arms or group.parts.world.num_arms):
            raise ValueError(f"{cell.label}: the environment does not say how many arms it has: facts['num_arms']")
        if attack is not None and jax.tree.leaves(jax.eval_shape(partial(_state_of_attack, group.parts), group.case)):
            reads = "what it pays depends on what was played before, and a foreign learner is paid from a tape"
            raise ValueError(f"reward_adversary: {reads}: take one that keeps nothing, such as huber")


def _state_of_attack(parts: Parts, case: Case) -> Any:
    """What an adversary of rewards keeps, before the first play."""
    draws = streams(parts, jnp.uint32(0)).child("contamination")
    assert parts.reward_attack is not None
    return simulator.attack_state(parts.reward_attack, case.reward_adversary, draws, parts.arms)


def try_out(plan: Plan) -> Plan:
    """A plan whose foreign learners have each made a few plays; with the names of what they are diagnosed by."""
    foreign = dict[str, tuple[Cell, Tape]]()  # of every label a cell, and what it meets
    for group in plan.groups:
        if group.parts.program is STAND_IN:
            cell = plan.cells[group.cells[0]]
            foreign[cell.label] = cell, Tape(plan, group, cell)
            foreign[cell.label][1].trace_world()
    if not foreign:
        return plan
    groups = list(plan.groups)
    with processes(1) as (process,):
        for label, (cell, tape) in foreign.items():
            try:
                block = next(tape.draw_blocks(plan.seeds[:1], jax.local_devices()[0]))
                few = block.split(TRIED_PLAYS)[0]._replace(last=True)
                numbers = process.request("play", process.number(_stranger_of(cell)), *_request(few))[1]
            except StrangerError as error:
                raise StrangerError(f"{label}: {error}") from error
            for name in filter(is_taken, numbers):
                raise ValueError(f"{label}: diagnose gives {name!r}, which {TAKEN}")
            check_diagnostics(label, numbers, plan)
            for h, group in enumerate(groups):
                if plan.cells[group.cells[0]].label == label:
                    groups[h] = group._replace(shape=group.shape._replace(diagnostics=tuple(sorted(numbers))))
    return plan._replace(groups=groups)


@lru_cache(maxsize=256)
def _stranger(learner: Learner) -> Stranger:
    return learner.stranger()


def _stranger_of(cell: Cell) -> Stranger:
    learner = learner_of(cell.algorithm.program)
    assert learner is not None
    return _stranger(learner)


def _request(block: Block) -> tuple[object, ...]:
    return block.seed, block.first == 0, tuple(block.rows), block.last


# ---- the run


class StrangerRun(EngineRun["Future[Outcome]"]):
    """A run of foreign learners' calls on this machine: a thread for each process."""

    def __init__(self, plan: Plan, remaining: Remaining, machine: Machine, orders: Orders) -> None:
        self.errors, self.alone = list[BaseException](), orders.failed is None
        if self.alone:  # the other learners are finished first
            orders = orders._replace(failed=lambda call, reason, trace: None)
        super().__init__(plan, remaining, machine, orders)
        self.keep, self.stopping, self.device = orders.sink, threading.Event(), machine.devices[0]
        self.slots, self.caller = partial(int, machine.workers), Caller()
        self.free = queue.SimpleQueue[StrangerProcess]()
        self.failed_labels: dict[str, StrangerError] = {}
        self.doubts = queue.SimpleQueue[str]()  # lines to warn of, in the calling thread
        self.plays_at_once = dict[str, int]()  # of a label
        self.looked_at = set[str]()  # labels whose first run was played twice

    def play(self) -> None:
        orders = self.orders
        with Workers(self.machine.workers) as self.pool, processes(self.machine.workers) as self.started:
            for process in self.started:
                self.free.put(process)
            orders.compiling(1, 1)
            super().play()
        if self.alone and self.errors:
            raise self.errors[0]

    def submit(self) -> None:
        begun = list[Call]()
        future = self.pool.submit(self.caller.run_in_worker, self.play_next, begun)
        self.pending[future] = begun
        future.add_done_callback(self.caller.post)

    def wait(self) -> list[Any]:
        return [self.caller.next_event()]

    def result(self, ticket: "Future[Outcome]") -> Outcome | Failed:
        while not self.doubts.empty():
            warnings.warn(self.doubts.get(), UserWarning, stacklevel=10)
        error = ticket.exception()
        if error is None:
            return ticket.result()
        self.errors += [] if isinstance(error, Interrupted | CallerLeft) else [error]
        return Failed(error)

    def interrupt(self) -> None:
        self.stop()
        for process in self.started:  # a learner may take as long as it likes for a play
            process.end()
        for future in wait(self.pending).done:
            if not future.cancelled():
                self.end(future)

    def stop(self) -> None:
        self.stopping.set()
        self.caller.stop_answering()
        for future in self.pending:
            future.cancel()

    # ---- in other threads

    def play_next(self, begun: list[Call]) -> Outcome:
        """Play the call that is next, in a process that is free."""
        process = self.free.get()
        try:
            begun.append(call := self.remaining.take())
            cell = self.plan.cells[call.cells[0]]
            if cell.label in self.failed_labels:
                raise self.failed_labels[cell.label]
            try:
                return self.play_call(call, cell, process)
            except StrangerError as error:
                self.failed_labels[cell.label] = error
                raise
        finally:
            try:
                if (process.owes or process.process.poll() is not None) and not self.stopping.is_set():
                    process.end()  # its next answer would be of what was asked before, or a stranger ended it
                    process = StrangerProcess()
                    self.started.append(process)
            finally:
                self.free.put(process)

    def play_call(self, call: Call, cell: Cell, process: StrangerProcess) -> Outcome:
        """The runs of a call; the first run of a label is played twice."""
        group, seeds = self.plan.groups[call.group], range(call.first, call.first + call.seeds)
        twice = call.first == self.plan.seeds.start and cell.label not in self.looked_at
        self.looked_at.add(cell.label)
        tape = Tape(self.plan, group, cell).draw_blocks([*seeds, *seeds[:twice]], self.device)
        records, arms_of_first, since, timed = list[Record](), list[list[Any]](), time.perf_counter(), False
        for block, arms, numbers in self.play_blocks(cell, process, tape):
            if block.first == 0:
                records.append(Record(group.parts.arms or group.parts.world.num_arms, group.times))
            records[-1].add(block, arms, numbers)
            if twice and block.seed == seeds[0]:
                arms_of_first += [[]] if block.first == 0 else []
                arms_of_first[-1].append(arms)
            if len(records) <= len(seeds):
                now = time.perf_counter()
                # what comes first may hold what the learner imports
                self.orders.report(Progress(call, len(arms), now - since if timed else 0.0))
                timed = True
                since = now
        if twice and not np.array_equal(np.concatenate(arms_of_first[0]), np.concatenate(arms_of_first[1])):
            elsewhere = "it draws from elsewhere than the argument seed of its make, and nobody can have the run again"
            self.doubts.put(f"{cell.label}: seed {seeds[0]}, played twice, chose other arms: {elsewhere}")
        if lost := sorted({name for record in records for name in record.numbers} - {*group.shape.diagnostics}):
            same = f"a name that was not there after {TRIED_PLAYS} plays: give the same names always"
            self.doubts.put(f"{cell.label}: diagnose gives {', '.join(lost)}, left out, since each is {same}")
        return outcome_of(group, cell, seeds, records[: len(seeds)])

    def play_blocks(self, cell: Cell, process: StrangerProcess, tape: Iterator[Block]) -> Iterator[tuple[Any, ...]]:
        """The blocks of a tape, each with the arms that were played, and at the end of a run numbers of the learner."""
        number, block = process.number(_stranger_of(cell)), next(tape, None)
        while block is not None:
            if self.stopping.is_set():
                raise Interrupted
            plays, began = self.plays_at_once.get(cell.label, FIRST_PLAYS), time.perf_counter()
            block, rest = block.split(plays)
            process.send("play", number, *_request(block))
            after = rest or next(tape, None)  # drawn while this one is played
            try:
                arms, numbers = process.take_answer()
            except StrangerError as error:
                raise StrangerError(f"{cell_words(self.plan, cell)}, seed {block.seed}, {error}") from error
            seconds = max(time.perf_counter() - began, 1e-6)
            self.plays_at_once[cell.label] = max(1, int(plays * min(8, ASKED_SECONDS / seconds)))
            yield block, arms, numbers
            block = after


def outcome_of(group: Group, cell: Cell, seeds: range, records: Sequence[Record]) -> Outcome:
    """What a call gives back: regret exact from counts where it follows from them, else sums in float64."""
    counts, world = np.stack([record.pulls_at for record in records]), group.parts.world
    if group.shape.counted:
        regret = regret_of_counts(counts, np.asarray(cell.environment.facts["means"], np.float64))
    else:
        regret = np.stack([record.regret_at for record in records])
    if (baseline := world.baseline) is not None:
        own_seeds = [seed if world.seeded else 0 for seed in seeds]
        regret -= in_caller(lambda: [baseline(cell.environment.params, seed, group.times) for seed in own_seeds])
    pulls = None if group.shape.arms is None else counts[:, -1:].astype(np.int32)
    names = group.shape.diagnostics
    numbers = {name: np.array([[record.numbers.get(name, np.nan)] for record in records]) for name in names}
    return Outcome(regret[:, None], pulls, numbers)


class Strangers:
    """The engine of foreign learners."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine._replace(workers=cores(), at_once=1)

    def run(self, plan: Plan, remaining: Remaining, machine: Machine, orders: Orders) -> None:
        """Run every call that remains."""
        StrangerRun(plan, remaining, machine, orders).play()
