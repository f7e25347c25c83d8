"""Floor 8: several owners who answer together, and none of whom shows a row to the others.

>>> from defocus import federated
>>> sorted(federated.__all__)
['Coordinator', 'FederatedQuery', 'Federation', 'Identity', 'Party', 'SumPlan', 'federation', 'secure_sum']
"""

from defocus.federated.federation import FederatedQuery, Federation, federation
from defocus.federated.secure_aggregation import Coordinator, Identity, Party, SumPlan, secure_sum

__all__ = [
    "Coordinator",
    "FederatedQuery",
    "Federation",
    "Identity",
    "Party",
    "SumPlan",
    "federation",
    "secure_sum",
]
