"""Floor 8: what a signed release says to others: a reader, an evaluator, a registry. Made of the bundle alone."""

from defocus.publication.evaluation import Claim, evaluation, evaluation_page
from defocus.publication.registry import registry_record, registry_yaml
from defocus.publication.release_report import answer_in, pdf_report, release_report

__all__ = [
    "Claim",
    "answer_in",
    "evaluation",
    "evaluation_page",
    "pdf_report",
    "registry_record",
    "registry_yaml",
    "release_report",
]
