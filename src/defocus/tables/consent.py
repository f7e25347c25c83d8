r"""Consent: a private table of person × purpose, by which rows are restricted before a question is asked.

Proof of sensitivity:
    Let :math:`D` be the rows and :math:`C` the table of consents. Neighbours differ in one person, whose rows come or
    go in both. For a purpose :math:`p`, :math:`D_p` has the rows of :math:`D` of persons who are in :math:`C` with
    :math:`p`. Whether a row of a person is in :math:`D_p` depends on the rows of that person in :math:`C` alone. So
    :math:`D_p` of neighbours differs in rows of that one person only, and :math:`D_p` has no more of them than
    :math:`D`: the restriction has stability one, and no sensitivity changes. A person in :math:`C` more than once for
    :math:`p` is counted once: the consents of a person are made one row before they are matched.

Consents are read when a release is computed. Who withdraws counts in no release from then on; what was released before
stays, since nothing can be taken back that others have seen.
"""

from dataclasses import dataclass
from typing import final

from defocus.engines.schema import Kind
from defocus.errors import InvalidParameterError, NotDeclaredError, WrongKindError
from defocus.tables.person_features import per_person
from defocus.tables.rows import Rows, join_private

__all__ = ["PURPOSE", "Consent", "consented_purpose"]

PURPOSE = "purpose"
"""The column of consents that names the purpose, unless it is said otherwise."""
_GIVEN = "consents given"


@final
@dataclass(frozen=True, slots=True)
class Consent:
    """Who consents to which purpose: rows of persons, and the column that names a purpose."""

    rows: Rows
    purpose: str = PURPOSE

    def __post_init__(self) -> None:
        column = self.rows.schema.usable(self.purpose)
        if column.kind is not Kind.TEXT:
            raise WrongKindError(
                f"Purposes are text, but {column.name!r:.60} of the table of consents is of kind {column.kind}.",
                fix="name the column of purposes.",
            )

    def restricted(self, rows: Rows, purpose: str) -> Rows:
        """The rows of those who consent to a purpose; see the proof above."""
        assert rows.unit is not None  # noqa: S101  # tables of rows without persons are refused when they are opened
        assert self.rows.unit is not None  # noqa: S101
        quoted = purpose.replace("'", "''")
        name = self.purpose.replace('"', '""')
        willing = per_person(self.rows.where(f"\"{name}\" = '{quoted}'"), (), {_GIVEN: "COUNT(*)"})
        made = join_private(rows, willing, {rows.unit: self.rows.unit}, "inner")
        kept = made.derive({}, kept=rows.schema.names)
        said = (*rows.words, f"only of those who consent to {purpose}")
        return Rows(kept.engine, kept.relation, kept.schema, kept.unit, said, kept.steps, kept.division, rows.single)


def consented_purpose(purpose: str | None) -> str:
    """The purpose that people are asked to consent to; without one nobody does."""
    if purpose is None:
        raise NotDeclaredError(
            "People consent to purposes here, and none was named.",
            fix='name it: table.for_purpose("research"), or purpose="research" where a SELECT is released.',
        )
    if not purpose.strip() or not purpose.isprintable():
        raise InvalidParameterError("A purpose is text on one line.", fix='write for_purpose("research").')
    return purpose
