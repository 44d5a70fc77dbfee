"""What a call gives back, and what the store gets: finished calls, and the lanes of running ones for the next run."""

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jaxbandits.sweeps.engines.calls import Call, blocks
from jaxbandits.sweeps.engines.contract_faults import Fault, broken_cells
from jaxbandits.sweeps.storage.store import BegunCall, Store

# docs/decisions.md#saved-lanes
KEEP_SECONDS = 60.0  # between two saves of a running call, or longer:
KEEP_SHARE = 0.05  # saving takes at most this share of the time


class Outcome(NamedTuple):
    """What a call gives back, on the host."""

    cells: tuple[int, ...]
    first: int
    regret: Any  # [S, M, C] float64; None where a worker has written the chunk and only its faults are left
    pulls: Any  # [S, M, K] int32 | None
    diagnostics: dict[str, Any]  # name -> [S, M]
    faults: tuple[Fault, ...] = ()

    def sound(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The cells that may be kept, with their arrays."""
        broken = broken_cells(self.faults) if self.faults else ()
        for m, cell in enumerate(self.cells):
            if cell not in broken:
                yield cell, self.of(m)

    def of(self, m: int) -> dict[str, Any]:
        """One cell's arrays under the names of the store, seeds first."""
        arrays = {"regret": self.regret[:, m]}
        if self.pulls is not None:
            arrays["pulls"] = self.pulls[:, m]
        for name, x in self.diagnostics.items():
            arrays[f"diagnostic.{name}"] = x[:, m]
        return arrays


class Keeper:
    """Saves the lanes of one running call in the store, seldom enough to cost little."""

    def __init__(self, store: Store, call: Call) -> None:
        self.store, self.call = store, call
        self.saved, self.every = time.perf_counter(), KEEP_SECONDS

    def __call__(self, span: int, window: int, leaves: Callable[[], list[Any]], last: bool = False) -> None:
        """Save if it is time. last: there is no later chance; save if more than a few seconds of work would be lost."""
        began = time.perf_counter()
        if began - self.saved < (min(3.0, self.every) if last else self.every):
            return
        try:
            call = self.call
            begun = BegunCall(call.keys, call.first, call.lanes, call.seeds, span, window)
            self.store.keep_begun(begun, leaves())
        except OSError as error:  # a full disk: finished chunks are smaller and may still fit
            warnings.warn(f"cannot keep a call on its way: {error}", RuntimeWarning, stacklevel=2)
        self.saved = time.perf_counter()
        self.every = max(KEEP_SECONDS, (self.saved - began) / KEEP_SHARE)


def saved(store: Store, call: Call) -> dict[str, Any]:
    """What a call needs to go on from where it was saved, and to be saved again."""
    return {"keep": Keeper(store, call), "begun": store.begun_as(call)}


def keep_outcome(store: Store, call: Call, outcome: Outcome) -> None:
    """Write a finished call as files, one for a cell and block of seeds; nothing of cells that broke the contract."""
    keys = dict(zip(call.cells, call.keys, strict=True))
    for cell, arrays in outcome.sound():
        for low, high in blocks(call.first, call.first + call.seeds, store.block):
            at = slice(low - call.first, high - call.first)
            store.write(keys[cell], low, {name: x[at] for name, x in arrays.items()})
    store.forget_begun(call)
