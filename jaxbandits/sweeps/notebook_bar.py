"""The estimate and the bar of a sweep as one output of a notebook.

It is text and an HTML element: nothing has to be installed, and a saved notebook shows how the run ended.
"""

import html
import io
from typing import Any

from tqdm import tqdm

UPDATE_SECONDS = 0.5  # seconds between two updates


class NotebookBar(tqdm):
    """A bar whose lines, about the size and the time of a run, stand above it in the same output."""

    def __init__(self, lines: list[str], **settings: object) -> None:
        self.lines = list(lines)
        self.handle: Any = None
        self.ended = False
        text = "{desc}: {percentage:3.0f}%, {n_fmt} of {total_fmt} plays, {elapsed}{postfix}"
        super().__init__(**settings | {"file": io.StringIO(), "mininterval": UPDATE_SECONDS, "bar_format": text})

    def display(self, msg: str | None = None, pos: int | None = None) -> bool:
        """Show the lines and how far the run is."""
        if not self.ended:
            self.show(str(self) if msg is None else msg, running=True)
        return True

    def clear(self, nolock: bool = False) -> None:
        """Nothing is in the way of the lines."""

    def close(self) -> None:
        """Say how the run ended, in the same place."""
        if self.disable or self.ended:
            return
        self.ended = True
        seconds, share = self.format_interval(self.format_dict["elapsed"]), self.n / max(self.total, 1)
        super().close()
        plays = self.format_sizeof(self.n)
        done = f"done: {plays} plays in {seconds}" if share >= 1 else f"stopped at {share:.0%} after {seconds}"
        self.show(done, running=False)

    def show(self, text: str, running: bool) -> None:
        """Put lines, text and, while it runs, a bar into the output."""
        from IPython.display import display

        lines = [*self.lines, text]
        bar = f'<progress value="{self.n}" max="{max(self.total, 1)}" style="width: 24em"></progress><br>'
        shown = "<br>".join(map(html.escape, lines[:-1])) + "<br>" + (bar if running else "") + html.escape(text)
        output = {"text/plain": "\n".join(lines), "text/html": f"<small>{shown}</small>"}
        if self.handle is None:
            self.handle = display(output, raw=True, display_id=True)
        else:
            self.handle.update(output, raw=True)
