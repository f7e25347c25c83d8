"""The device's side: a value goes in, an epsilon-private report comes out. Needs numpy and random bits, no server.

>>> from defocus.local.designs import design
>>> client = Client(design("k-rr", 10, 1))
>>> len(client.report(3))
11
"""

from defocus.local.clients.changing import ChangingMemory
from defocus.local.clients.client import Client
from defocus.local.clients.filter import ContributionFilter
from defocus.local.clients.memory import Memory
from defocus.local.clients.messages import CrowdClient, HistogramClient, PrefixClient, SumClient

__all__ = [
    "ChangingMemory",
    "Client",
    "ContributionFilter",
    "CrowdClient",
    "HistogramClient",
    "Memory",
    "PrefixClient",
    "SumClient",
]
