"""What a call gives back."""

from typing import Any, NamedTuple

from jaxbandits.sweeps.engines.contract_faults import Fault, broken_cells


class Outcome(NamedTuple):
    """What a call gives back, on the host."""

    cells: tuple[int, ...]
    first: int
    regret: Any  # [S, M, C] float64; None where a worker has written the chunk and only its faults are left
    pulls: Any  # [S, M, K] int32 | None
    diagnostics: dict[str, Any]  # name -> [S, M]
    faults: tuple[Fault, ...] = ()

    def sound(self) -> list[tuple[int, int]]:
        """(position in the arrays, cell) of the cells that may be kept."""
        broken = broken_cells(self.faults)
        return [(m, c) for m, c in enumerate(self.cells) if c not in broken]

    def of(self, m: int) -> dict[str, Any]:
        """One cell's arrays under the names of the store, seeds first."""
        arrays = {"regret": self.regret[:, m]}
        if self.pulls is not None:
            arrays["pulls"] = self.pulls[:, m]
        return arrays | {f"diagnostic.{name}": x[:, m] for name, x in self.diagnostics.items()}
