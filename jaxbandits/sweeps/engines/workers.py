"""Worker threads for which a process that was interrupted twice does not wait, as it does for those of an executor."""

import atexit
import os
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Self

_left_alone: list[threading.Thread] = []


@atexit.register
def _end() -> None:
    """End the process where threads that were left alone still run: they would abort it on their way back to Python."""
    if any(thread.is_alive() for thread in _left_alone):
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        os._exit(130)  # as after SIGINT


class Workers:
    """Some daemon threads that run functions in the order in which they are given.

    Leaving the context waits for them, unless they were left alone (`leave`).

    >>> with Workers(2) as workers:
    ...     futures = [workers.submit(pow, 2, n) for n in range(4)]
    >>> [future.result() for future in futures]
    [1, 2, 4, 8]
    """

    def __init__(self, number: int) -> None:
        self._number, self._threads, self._left = number, list[threading.Thread](), False
        self._tasks: queue.SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]] | None]
        self._tasks = queue.SimpleQueue()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have `function(*arguments)` run by a thread."""
        future: Future[Any] = Future()
        self._tasks.put((future, function, arguments))
        if len(self._threads) < self._number:
            self._threads.append(threading.Thread(target=self._work, daemon=True))
            self._threads[-1].start()
        return future

    def leave(self) -> None:
        """Wait for nothing any more."""
        self._left = True
        _left_alone.extend(self._threads)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, function, arguments = task
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(*arguments))
                except BaseException as error:
                    future.set_exception(error)
            del task, future, function, arguments  # otherwise they would live until the next task comes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for _thread in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            if not self._left:
                thread.join()
