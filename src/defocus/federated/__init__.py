"""Floor 8: several owners who answer together, and none of whom shows a row to the others.

>>> from defocus import federated
>>> sorted(federated.__all__)[:4]
['Coordinator', 'FederatedQuery', 'Federation', 'Identity']
"""

from defocus.federated.coordinator import Coordinator
from defocus.federated.federation import FederatedQuery, Federation, federation
from defocus.federated.identity import Identity
from defocus.federated.membership import make_identity
from defocus.federated.party import Party
from defocus.federated.secure_aggregation import secure_sum
from defocus.federated.site import serve_site
from defocus.federated.sum_plan import SumPlan

__all__ = [
    "Coordinator",
    "FederatedQuery",
    "Federation",
    "Identity",
    "Party",
    "SumPlan",
    "federation",
    "make_identity",
    "secure_sum",
    "serve_site",
]
