"""What the rules look at: an algorithm in its environment, with what was traced and played of it so far."""

import functools
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import jax
import numpy as np

from jaxbandits import adversaries
from jaxbandits.protocol import Case
from jaxbandits.recipe import unwrap
from jaxbandits.sweeps.engines.calls import LEAST_LANES, Call
from jaxbandits.sweeps.engines.one_call import play_call
from jaxbandits.sweeps.engines.one_lane import watch_lane
from jaxbandits.sweeps.grid import PARTS
from jaxbandits.sweeps.identity import identify_cells
from jaxbandits.sweeps.part_checks.examination import Examination
from jaxbandits.sweeps.plan import Cell, Plan, host_case, parts_in, plan, stack_cases
from jaxbandits.sweeps.simulate import History, history_of_windows
from jaxbandits.typing import AdversaryFactory, AlgorithmFactory, EnvironmentFactory

CHECKPOINTS = 8
MAX_WINDOW_SIZES = 6  # so many sizes of windows are traced at most


@dataclass(eq=False, repr=False)
class Subject:
    """An algorithm in its environment, perhaps under adversaries.

    Nothing is built, traced or played before a rule asks for it, and nothing twice.
    """

    algorithm: AlgorithmFactory  # these four as `jaxbandits.sweep` takes them: one factory, or a partial of one, each
    environment: EnvironmentFactory
    reward_adversary: "AdversaryFactory | None" = None
    message_adversary: "AdversaryFactory | None" = None
    _: KW_ONLY
    horizon: int = 256
    seeds: int = 8
    lanes: int = LEAST_LANES  # of a call, where a rule does not ask for another number
    audit: bool = False  # whether the rules `differences` and `short_audit` are looked at
    _traced: dict[tuple[int, str], Examination] = field(default_factory=dict, init=False)
    _played: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict, init=False)

    @property
    def label(self) -> str:
        """What errors call the algorithm."""
        name = unwrap(self.algorithm).name
        return "algorithm" if name.split(".")[0] in (*PARTS, "base") else name

    def build_plan(self) -> Plan:
        """The sweep that is checked, of one cell, built anew."""
        return plan(
            {self.label: self.algorithm}, self.environment, reward_adversary=self.reward_adversary,
            message_adversary=self.message_adversary, horizon=self.horizon, seeds=self.seeds, checkpoints=CHECKPOINTS,
        )  # fmt: skip

    plan = functools.cached_property(build_plan)

    @functools.cached_property
    def current(self) -> Plan:
        """The same plan, which knows what its functions compute now: nothing compiled before is used for other code."""
        return identify_cells(self.plan, "cpu", stored=False)[0]

    @property
    def cell(self) -> Cell:
        """The algorithm and its environment, built."""
        return self.plan.cells[0]

    def case(self, dtype: str = "float32") -> Case:
        """The numbers of the cell, as the engine is given them."""
        return stack_cases([host_case(self.cell)], dtype)[0]

    @functools.cached_property
    def sizes(self) -> list[int]:
        """The plays of the windows that are traced: one, the largest of the schedule, and some between."""
        # a lane is begun from the shapes of a window of one play
        sizes = sorted({1, *(span.slots for span in self.cell.algorithm.schedule if span.repeats)})
        few = np.linspace(0, len(sizes) - 1, min(len(sizes), MAX_WINDOW_SIZES)).round()
        return [sizes[int(i)] for i in few]

    def trace_window(self, slots: int, dtype: str = "float32") -> Examination:
        """A window of so many plays, traced, in float32 twice. ValueError where a function is malformed."""
        if (slots, dtype) not in self._traced:
            with jax.enable_x64(dtype == "float64"):
                parts, case = parts_in(self.cell, dtype), self.case(dtype)
                self._traced[slots, dtype] = Examination(self.cell, parts, slots, case, checked=True)
        return self._traced[slots, dtype]

    def play_seeds(
        self, *, lanes: int | None = None, first: int = 0, seeds: int | None = None, evenly: bool = False
    ) -> dict[str, Any]:
        """Arrays of seeds first, first + 1, ... by name, played in calls of `lanes` lanes each.

        lanes: None for the subject's. seeds: how many; None: all of the subject's. evenly: as many
        checkpoints up to the same horizon, at equal distances: few of them are checkpoints otherwise.
        """
        seeds = self.seeds if seeds is None else seeds
        lanes = self.lanes if lanes is None else lanes
        key = (lanes, first, seeds, evenly)
        if key not in self._played:
            laid_out, calls = self.current, []
            if evenly:
                group, count = laid_out.groups[0], len(laid_out.groups[0].times)
                times = np.linspace(self.horizon / count, self.horizon, count).astype(np.int64)
                laid_out = laid_out._replace(groups=[group._replace(times=np.unique(times))])
            for start in range(first, first + seeds, lanes):
                call = Call(0, (0,), start, lanes, min(lanes, first + seeds - start))
                calls.append(play_call(call, laid_out, jax.local_devices()[0]).arrays_of_cell(0))
            self._played[key] = {name: np.concatenate([call[name] for call in calls]) for name in calls[0]}
        return self._played[key]

    def record_lane(self, corruption: float, value: float | str) -> tuple[History, Any]:
        """One lane, every play of it, and its last state.

        corruption: the share of the rewards that is replaced by `value`; 0 leaves the environment's own.
        """
        attack = adversaries.huber(corruption=corruption, kind="fixed", value=value)
        cell = self.cell._replace(reward_adversary=attack)
        parts = parts_in(cell, "float32")._replace(traced=self.current.groups[0].parts.traced)
        lane = stack_cases([host_case(cell)], "float32")[0], np.uint32(0), np.array([self.horizon], np.int32)
        states, windows = zip(*watch_lane(parts, cell.algorithm.schedule, *lane), strict=True)
        return history_of_windows(windows, False), states[-1].algorithm
