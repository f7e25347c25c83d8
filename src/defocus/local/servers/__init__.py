"""The collector's side: reports come in, counts with standard errors come out. It never sees a value."""

from defocus.local.servers.counts import State
from defocus.local.servers.server import Server

__all__ = ["Server", "State"]
