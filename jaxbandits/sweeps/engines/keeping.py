"""What an engine gives to the store: finished calls, and now and then the lanes of a running call, for the next run."""

import time
import warnings
from collections.abc import Callable
from typing import Any

from jaxbandits.sweeps.engines.calls import Call, Keys, as_begun, blocks
from jaxbandits.sweeps.engines.outcome import Outcome
from jaxbandits.sweeps.storage.store import Store

# docs/decisions.md#saved-lanes
KEEP_SECONDS = 60.0  # between two saves of a running call, or longer:
KEEP_SHARE = 0.05  # saving takes at most this share of the time


class Keeper:
    """Saves the lanes of one running call in the store, seldom enough to cost little."""

    def __init__(self, store: Store, call: Call, keys: Keys) -> None:
        self.store, self.call, self.keys = store, call, keys
        self.saved, self.every = time.perf_counter(), KEEP_SECONDS

    def __call__(self, span: int, window: int, leaves: Callable[[], list[Any]], last: bool = False) -> None:
        """Save if it is time. last: there is no later chance; save if more than a few seconds of work would be lost."""
        began = time.perf_counter()
        if began - self.saved < (min(3.0, self.every) if last else self.every):
            return
        try:
            self.store.keep_begun(as_begun(self.call, self.keys, span, window), leaves())
        except OSError as error:  # a full disk: finished chunks are smaller and may still fit
            warnings.warn(f"cannot keep a call on its way: {error}", RuntimeWarning, stacklevel=2)
        self.saved = time.perf_counter()
        self.every = max(KEEP_SECONDS, (self.saved - began) / KEEP_SHARE)


def saved(store: Store, call: Call, keys: Keys) -> dict[str, Any]:
    """What a call needs to go on from where it was saved, and to be saved again."""
    return {"keep": Keeper(store, call, keys), "begun": store.begun_as(as_begun(call, keys))}


def keep_outcome(store: Store, call: Call, outcome: Outcome, keys: Keys, block: int) -> None:
    """Write a finished call as files, one for a cell and block of seeds; nothing of cells that broke the contract."""
    for m, c in outcome.sound():
        arrays = outcome.of(m)
        for low, high in blocks(call.first, call.first + call.seeds, block):
            at = slice(low - call.first, high - call.first)
            store.write(keys[c], low, {name: x[at] for name, x in arrays.items()})
    store.forget_begun(as_begun(call, keys))
