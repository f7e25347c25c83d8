"""Privacy amplification by shuffling: what reports lose once nobody knows who sent which."""

from defocus.privacy.accounting.shuffling.amplification import Amplification, amplification
from defocus.privacy.accounting.shuffling.reports import replaced_only

__all__ = ["Amplification", "amplification", "replaced_only"]
