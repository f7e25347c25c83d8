from defocus import audit as audit
from defocus import errors as errors
from defocus import ledger as ledger
from defocus import mechanisms as mechanisms
from defocus import noise as noise
from defocus import privacy as privacy
from defocus import release as release
from defocus import workloads as workloads
from defocus.ledger import Ledger as Ledger
from defocus.privacy.budgets import Budget as Budget
from defocus.privacy.units import edge as edge
from defocus.privacy.units import event as event
from defocus.privacy.units import node as node
from defocus.privacy.units import rows as rows
from defocus.privacy.units import user as user
from defocus.privacy.units import weight as weight

__all__ = [
    "Budget",
    "Ledger",
    "audit",
    "edge",
    "errors",
    "event",
    "ledger",
    "mechanisms",
    "node",
    "noise",
    "privacy",
    "release",
    "rows",
    "user",
    "weight",
    "workloads",
]
