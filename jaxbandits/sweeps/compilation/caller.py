"""The thread that called, which traces for its workers: a user's functions run there and nowhere else.

They see the thread's settings of JAX, its context variables, and what belongs to one thread, such as a connection of
sqlite. Workers take over the settings and the context variables, because lowering and compiling depend on some.
"""

import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

from jaxbandits.sweeps.compilation import settings

_caller: contextvars.ContextVar["Caller | None"] = contextvars.ContextVar("jaxbandits_caller", default=None)


class CallerLeft(Exception):
    """The thread that called no longer answers: what a worker does is not wanted any more."""


class _Request(NamedTuple):
    function: Callable[[], Any]
    result: Future[Any]

    def answer(self) -> None:
        try:
            self.result.set_result(self.function())
        except BaseException as error:
            self.result.set_exception(error if isinstance(error, Exception) else CallerLeft())
            if not isinstance(error, Exception):
                raise


class Caller:
    """The thread that made this object, its settings, and what its workers tell and ask it."""

    def __init__(self) -> None:
        self._thread, self._settings = threading.get_ident(), settings.of_this_thread()
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._lock, self._left = threading.Lock(), False
        self._context = contextvars.copy_context()
        self._context.run(_caller.set, self)

    def run_in_worker(self, function: Callable[..., Any], *args: Any) -> Any:
        """`function(*args)` in a worker's thread, with the settings and context variables of this one."""
        with settings.entered(self._settings):
            return self._context.copy().run(function, *args)

    def tell(self, event: Any) -> None:
        """Give `next_event` something to return."""
        self._events.put(event)

    def next_event(self) -> Any:
        """Answer what workers ask, until one of them tells something."""
        while True:
            event = self._events.get()
            if not isinstance(event, _Request):
                return event
            event.answer()

    def ask(self, function: Callable[[], Any]) -> Any:
        """What `function()` gives in the thread that called. CallerLeft where it no longer answers."""
        if threading.get_ident() == self._thread:
            return function()
        request = _Request(function, Future())
        with self._lock:
            if self._left:
                raise CallerLeft
            self._events.put(request)
        return request.result.result()

    def leave(self) -> None:
        """Answer no more."""
        with self._lock:
            self._left = True
        with contextlib.suppress(queue.Empty):
            while True:
                event = self._events.get_nowait()
                if isinstance(event, _Request):
                    event.result.set_exception(CallerLeft())


def in_caller(function: Callable[[], Any]) -> Any:
    """What `function()` gives in the thread that called the sweep; in this thread where it is no worker of one."""
    caller = _caller.get()
    return function() if caller is None else caller.ask(function)
