"""The thread that called, which traces for its workers: a user's functions run there and nowhere else.

They see the thread's settings of JAX, its context variables, and what belongs to one thread, such as a connection of
sqlite. Workers take over the settings and the context variables, because lowering and compiling depend on some.
"""

import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any

from jaxbandits.sweeps.compilation import settings

_caller: contextvars.ContextVar["Caller | None"] = contextvars.ContextVar("jaxbandits_caller", default=None)


class CallerLeft(Exception):
    """The thread that called no longer answers: what a worker does is not wanted any more."""


class Caller:
    """The thread that made this object, its settings, and what its workers tell and ask it."""

    def __init__(self, compiles: Callable[[int], None] = lambda operations: None) -> None:
        self.compiles = compiles  # told the operations of a program that a worker is about to compile
        self._thread, self._settings = threading.get_ident(), settings.of_this_thread()
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._lock, self._left, self._open = threading.Lock(), False, set[Any]()
        self._context = contextvars.copy_context()
        self._context.run(_caller.set, self)

    def run_in_worker(self, function: Callable[..., Any], *args: Any) -> Any:
        """`function(*args)` in a worker's thread, with the settings and context variables of this one."""
        with settings.use_settings(self._settings):
            return self._context.copy().run(function, *args)

    def post(self, event: Any) -> None:
        """Give `next_event` something to return, which is no tuple."""
        self._events.put(event)

    def next_event(self) -> Any:
        """Answer what workers ask, until one of them tells something."""
        while True:
            event = self._events.get()
            if not isinstance(event, tuple):
                return event
            function, reply = event
            try:
                reply.put((function(), None))
            except Exception as error:
                reply.put((None, error))

    def run_in_caller(self, function: Callable[[], Any]) -> Any:
        """What `function()` gives in the thread that called. CallerLeft where it no longer answers."""
        if threading.get_ident() == self._thread:
            return function()
        # a queue, which an interrupt cannot stop half-way
        reply: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        with self._lock:
            if self._left:
                raise CallerLeft
            self._open.add(reply)
        self._events.put((function, reply))
        result, error = reply.get()
        with self._lock:
            self._open.discard(reply)
        if error is not None:
            raise error
        return result

    def stop_answering(self) -> None:
        """Answer no more, nor what an interrupt has kept from being answered."""
        with self._lock:
            self._left = True
            for reply in self._open:
                reply.put((None, CallerLeft()))


def about_to_compile(operations: int) -> None:
    """Tell the thread that called how large a program is that is compiled next."""
    caller = _caller.get()
    if caller is not None:
        caller.compiles(operations)


def in_caller(function: Callable[[], Any]) -> Any:
    """What `function()` gives in the thread that called the sweep; in this thread where it is no worker of one."""
    caller = _caller.get()
    return function() if caller is None else caller.run_in_caller(function)
