"""The certified accountant: privacy-loss distributions whose epsilon is never below the truth."""

from defocus.privacy.accounting.pld.loss import PldLoss, account

__all__ = ["PldLoss", "account"]
