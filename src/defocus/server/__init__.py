"""Floor 9: the server. People, roles, requests and decisions around the same tables and the same ledger.

The server adds who asks, who approves and what was published. It charges by no way of its own and stores no private
value: a request that is approved is released by the same function as everywhere, and the ledger decides last.
"""

from defocus.lazy_imports import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
