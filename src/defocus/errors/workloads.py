"""Refusals of the workloads room. They are raised before anything is charged, and name public facts only."""

from defocus.errors.base import InvalidParameterError

__all__ = ["MismatchedDomainError", "UnanswerableWorkloadError", "UnmeasuredTablesError", "WrongSensitivityError"]


class MismatchedDomainError(InvalidParameterError):
    """Two things that must be about the same domain are not."""

    def __init__(self, what: str, given: object, expected: object) -> None:
        super().__init__(
            f"{what} is over the domain {given}, but {expected} is needed.",
            fix="describe both over the same attributes, with the same public number of values each; a table with one "
            "row for each record is passed as workloads.records(codes).",
        )


class UnanswerableWorkloadError(InvalidParameterError):
    """A strategy does not determine the answers to a workload: a query lies outside its row space."""

    def __init__(self, rank: int, cells: int, share: float) -> None:
        super().__init__(
            f"The strategy has rank {rank} over {cells} cells and does not determine the workload: "
            f"a share of {share:.2g} of its weight lies outside the strategy's row space.",
            fix="add rows to the strategy until every query is a combination of them, for example an identity; after a "
            "release, ask for sums of its answers only.",
        )


class UnmeasuredTablesError(InvalidParameterError):
    """Marginals were asked of a release that did not measure them, nor any larger tables that hold them."""

    def __init__(self, tables: str) -> None:
        super().__init__(
            f"The release did not measure the table over attributes {tables}, alone or within a larger one.",
            fix="ask for tables within those that were planned for, or plan and release again with this one.",
        )


class WrongSensitivityError(InvalidParameterError):
    """A strategy was declared with a sensitivity that its matrix does not have."""

    def __init__(self, norm: str, declared: object, actual: object) -> None:
        super().__init__(
            f"The strategy was declared with {norm} sensitivity {declared}, but its columns reach {actual}.",
            fix=f"leave the declaration out, since it is computed exactly, or declare {actual}.",
        )
