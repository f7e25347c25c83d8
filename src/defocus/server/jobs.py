"""Running what was approved: workers that claim requests, and the recovery of those that a killed process left."""

import contextlib
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import final

from defocus.errors import DefocusError
from defocus.server.requests import Desk, Request

__all__ = ["Jobs"]

_LOOK = 0.5
"""How long a worker waits, in seconds, before it looks for requests that another process approved."""
_RECOVER = 5.0
"""How often requests of processes that are gone are looked for."""
_TELL = 1.0
"""How often progress is written down."""


@final
@dataclass
class Jobs:
    """The workers of one server process. Several processes share one queue: the records."""

    desk: Desk
    _awake: threading.Condition = field(default_factory=threading.Condition)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _left: deque[Request] = field(default_factory=deque)
    """What ran here and could not be written down, since the records were away."""

    def start(self) -> None:
        """Say that this process lives, finish what others left behind, and work."""
        self.desk.records.be_alive()
        self.desk.recover()
        workers = [self._work] * self.desk.settings.workers
        self._threads = [threading.Thread(target=each, daemon=True) for each in (*workers, self._watch)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let running releases end, and start no others."""
        self._stopped.set()
        self.wake()
        for thread in self._threads:
            thread.join()

    def wake(self) -> None:
        """Something was approved."""
        with self._awake:
            self._awake.notify_all()

    def _work(self) -> None:
        while not self._stopped.is_set():
            found = None
            with contextlib.suppress(DefocusError):  # the records cannot be reached: look again
                found = self.desk.claim()
            if found is not None:
                again = self._run(found)
                if not again:
                    continue
            with self._awake:
                self._awake.wait(_LOOK)

    def _run(self, request: Request) -> bool:
        """Whether it must be tried again."""
        told = time.monotonic()

        def tell(percent: float) -> None:
            nonlocal told
            if time.monotonic() > told + _TELL:
                told = time.monotonic()
                self.desk.note_progress(request.id, percent)

        try:
            return self.desk.run(request, tell).state == "approved"
        except DefocusError:  # the records cannot be written
            self._left.append(request)
            return True

    def _watch(self) -> None:
        while not self._stopped.wait(_RECOVER):
            for request in [self._left.popleft() for _ in range(len(self._left))]:
                try:
                    self.desk.finish(request)
                except DefocusError:
                    self._left.append(request)
            with contextlib.suppress(DefocusError):
                self.desk.recover()
