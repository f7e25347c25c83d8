"""The collector's side: reports come in, counts with standard errors come out. It never sees a value."""

from defocus.local.servers.server import Server
from defocus.local.servers.states import State

__all__ = ["Server", "State"]
