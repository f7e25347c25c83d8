"""Errors of the rooms of data. They depend on the schema, the question and declared facts, never on a row."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from defocus.errors.base import DefocusError, InvalidParameterError
from defocus.errors.core import UnfitDataError

__all__ = [
    "AskedAgainError",
    "BranchedRunError",
    "ChangedModelError",
    "CheckpointError",
    "ConflictError",
    "DatasetFileError",
    "DependentExamplesError",
    "EngineError",
    "EpsilonTooLargeError",
    "ForbiddenError",
    "LostProcessError",
    "MismatchedDomainError",
    "MismatchedOracleError",
    "NotDeclaredError",
    "NotFinishedError",
    "NotFoundError",
    "NotShuffledError",
    "OutOfDomainError",
    "ProtocolError",
    "RecordsError",
    "RequestWaitsError",
    "SealError",
    "ServerError",
    "ShufflerUnavailableError",
    "SignInError",
    "SilentDeviceError",
    "SourceError",
    "StepFailedError",
    "StreamEndedError",
    "StreamStateError",
    "TooFewPartiesError",
    "TooFewUsersError",
    "TooManyAttemptsError",
    "TrainingEndedError",
    "UnaccountedSamplingError",
    "UnanswerableWorkloadError",
    "UnfitModelError",
    "UnknownColumnError",
    "UnknownQuestionError",
    "UnknownTargetError",
    "UnmadeReportError",
    "UnmeasuredTablesError",
    "UnreadableDescriptionError",
    "UnsuitableQuestionError",
    "UnsupportedSqlError",
    "WrongKindError",
    "WrongSensitivityError",
]


class SourceError(DefocusError):
    """The data could not be opened, or its schema cannot be used."""


class EngineError(DefocusError):
    """The engine failed while it computed. What it said may quote private values, so it is not repeated."""


class DatasetFileError(DefocusError):
    """A dataset file says something that is not understood; names the place in the file."""


class UnknownColumnError(InvalidParameterError):
    """A question is about a column that the table does not have.

    >>> print(UnknownColumnError("depatment", ["age", "department"]))
    There is no column 'depatment'.
    To fix: did you mean 'department'? The columns are age, department.
    """

    def __init__(self, name: object, known: Iterable[str]) -> None:
        names = list(known)
        if not isinstance(name, str):
            shown = ", ".join(names[:20])
            super().__init__(
                f"Columns are asked for by name, and this is {type(name).__name__}.", fix=f"the columns are {shown}."
            )
            return
        same = [known for known in names if known.casefold() == name.casefold()]
        near = same or difflib.get_close_matches(name[:200], names, n=1)
        odd = [known for known in names if not known.isidentifier() and name in re.split(r"\W+", known)]
        case = " (upper and lower case count)" if same else ""
        hint = f"did you mean {near[0]!r}{case}? " if near else ""
        if odd and not same:
            hint = f"did you mean {odd[0]!r}? In SQL, write it in double quotes. "
        shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
        start = "The" if hint else "the"
        super().__init__(f"There is no column {name!r:.80}.", fix=f"{hint}{start} columns are {shown}.")


class WrongKindError(InvalidParameterError):
    """A column or an expression has a kind that an operation cannot use."""


class NotDeclaredError(InvalidParameterError):
    """A question needs a fact about the data, such as bounds or keys, that nobody declared."""


class UnsupportedSqlError(InvalidParameterError):
    """A construct of SQL that cannot be answered privately or is not understood; names it and the alternative."""

    def __init__(self, construct: str, *, why: str, fix: str) -> None:
        super().__init__(f"{construct} is not allowed here: {why}.", fix=fix)


class NotFinishedError(DefocusError):
    """An answer was released, but what SQL does to it afterwards failed. ``answer`` holds it: it is paid for."""

    def __init__(self, answer: Any, *, why: str) -> None:
        super().__init__(
            f"The answer was released, but HAVING, ORDER BY or a formula could not be applied to it: {why}",
            fix="use the answer in the `answer` attribute of this error.",
        )
        self.answer = answer


class UnknownQuestionError(DefocusError, AttributeError):
    """A graph was asked something that no method of it asks.

    >>> print(UnknownQuestionError("betweenness", ["edges", "triangles"]))
    A graph has no betweenness.
    To fix: ask one of edges(), triangles().
    """

    def __init__(self, name: str, known: Iterable[str]) -> None:
        asks = ", ".join(f"{each}()" for each in known)
        super().__init__(f"A graph has no {name[:60]}.", fix=f"ask one of {asks}.")


class OutOfDomainError(InvalidParameterError):
    """A value on a device lies outside of the domain that was agreed on. The text never quotes the value."""

    def __init__(self, domain: str, *, rule: str) -> None:
        super().__init__(
            f"A value lies outside of the domain: {domain}.",
            fix=f"declare what becomes of such values, with {rule}. Nothing was reported, and on a device that silence "
            "can be seen.",
        )


class EpsilonTooLargeError(InvalidParameterError):
    """A description asks a device for more than the device allows."""

    def __init__(self, asked: float, allowed: float) -> None:
        super().__init__(
            f"A report would cost epsilon = {asked:g}, but this device's limit is {allowed:g}.",
            fix="do not take part, or let the collector ask for less.",
        )


class AskedAgainError(DefocusError):
    """A device was asked a second question of a search in which everybody is asked once."""

    def __init__(self) -> None:
        super().__init__(
            "This device was asked already; everybody is asked once. Nothing was reported.",
            fix="ask the people of another group.",
        )


class UnsuitableQuestionError(InvalidParameterError):
    """A question that the protocol does not ask, or that costs more than was agreed on."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"The question does not suit the protocol: {why}. Nothing was reported.",
            fix="ask what the protocol makes of the prefixes found so far: HeavyHitters.oracle(group, prefixes).",
        )


class SilentDeviceError(InvalidParameterError):
    """A description under which a device would be silent about some values, for a device that must not be."""

    def __init__(self) -> None:
        super().__init__(
            "Under this description a device is silent about values outside of the domain, and silence can be seen.",
            fix="let the collector declare outside='other' for categories, or outside='clip' for numbers.",
        )


class UnmadeReportError(DefocusError):
    """A device made a report that its design does not know: a fault of the program, noticed before it was sent."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"A client of {name} made a report that no client of {name} makes. Nothing was reported.",
            fix="tell the maintainers; until then use another oracle.",
        )


class MismatchedOracleError(InvalidParameterError):
    """Reports or counts were made under another description than the one that reads them."""

    def __init__(self, what: str, given: str, expected: str) -> None:
        super().__init__(
            f"{what} belong to the oracle {given}, but this one is {expected}.",
            fix="use the description that the clients were given; oracles that differ in domain, epsilon or any "
            "parameter do not mix.",
        )


class UnreadableDescriptionError(DefocusError, ValueError):
    """Text or bytes are not what they should be: the description of an oracle, counts, reports or a memory."""

    def __init__(
        self, why: str, *, what: str = "The description of an oracle", writer: str = "Oracle.to_json()"
    ) -> None:
        super().__init__(
            f"{what} could not be read: {why}.",
            fix=f"pass what {writer} wrote, unchanged, and the same version of the wire format.",
        )


class NotShuffledError(InvalidParameterError):
    """Amplification was asked for where nobody shuffles the reports."""

    def __init__(self, deployment: str, why: str, fix: str) -> None:
        super().__init__(f"There is no amplification by shuffling in {deployment}: {why}.", fix=fix)


class SealError(DefocusError):
    """Something sealed could not be opened: damaged, meant for another key, or of another round."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} could not be opened.",
            fix="use the private key that belongs to the round's public one, and the bytes unchanged.",
        )


class ProtocolError(DefocusError):
    """A message that a protocol between parties does not allow here; whoever refuses it reveals nothing."""

    def __init__(self, what: str) -> None:
        super().__init__(what, fix="leave the sender out, or begin anew with a plan of another name.")


class TooFewPartiesError(DefocusError):
    """More parties dropped out than was agreed on, so there is no sum; nothing was learned."""

    def __init__(
        self, left: int, needed: int, missing: Mapping[str, str] | None = None, *, without: Iterable[str] = ()
    ) -> None:
        named: dict[str, list[str]] = {}
        for name, reason in (missing or {}).items():
            named.setdefault(reason.rstrip("."), []).append(name)
        why = "".join(f" {', '.join(names)}: {reason}." for reason, names in named.items())
        fix = "begin anew with those who are there, or agree on more drop-outs."
        if out := list(without):
            fix = f"decide whom to leave out, and ask anew: without={out!r}. What was charged stays."
        elif missing:
            fix = f"change the question or its price where a site says so; else {fix}"
        super().__init__(f"{left} parties answered, but it takes {needed}.{why}", fix=fix)


class ShufflerUnavailableError(DefocusError):
    """The shuffler did not answer, or not as a shuffler does; reports that it did not accept can be sent again."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"The shuffler {why}.",
            fix="check that it runs at this address and carries this round; what was not accepted can be sent again, "
            "since copies are rejected.",
        )


class TooFewUsersError(UnfitDataError):
    """Fewer users took part than a multi-message protocol counts on, so they hide each other less than promised."""

    def __init__(self, users: int, planned: int) -> None:
        super().__init__(
            f"{users} users toss too few coins for a protocol of {planned}.",
            fix="describe the protocol for the honest users that surely take part, less those who drop out; what was "
            "already sent by fewer costs event_among(users).",
        )


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


class StreamEndedError(DefocusError):
    """A stream was planned and charged for a number of steps, and they are used up."""

    def __init__(self, steps: int) -> None:
        super().__init__(
            f"This stream was charged for {steps} steps, and all of them have been released.",
            fix="plan another RunningSum and start it: it is charged on its own. Plan for more steps than needed;"
            " twice as many cost little accuracy.",
        )
        self.steps = steps


class StreamStateError(DefocusError):
    """A stream cannot go on from here: closed, handed over, already resumed, damaged or not its own."""


class UnfitModelError(InvalidParameterError):
    """A model, loss or optimizer that cannot be trained as it is. Says which part of it, never what the data is."""


class DependentExamplesError(UnfitModelError):
    """What a model makes of one example depends on the other examples of its batch, so clipping would bound nobody."""


class UnaccountedSamplingError(InvalidParameterError):
    """Batches are drawn in a way for which no proven event exists."""


class TrainingEndedError(DefocusError):
    """A step was asked for that was not paid for: the run took all the steps that it was charged for."""


class CheckpointError(DefocusError):
    """A checkpoint or the log of its run that cannot be used: damaged, missing, of another run, or in use."""


class BranchedRunError(DefocusError):
    """A step would be released a second time, from other sums than before, and only one run was charged."""


class ChangedModelError(DefocusError):
    """A model or its optimizer was changed in the middle of a run, for which clipping and noise were arranged."""


class LostProcessError(DefocusError):
    """Another process of the same run is gone, or did not answer in time. The charge stays."""


class StepFailedError(DefocusError):
    """Model or loss failed on private examples; what they said is withheld, since it may quote one."""


class UnknownTargetError(DefocusError, LookupError):
    """No audit target has this name."""

    def __init__(self, name: object, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(str(name), names, n=3, cutoff=0.4) or names[:3]
        super().__init__(
            f"There is no audit target called {str(name)[:60]!r}.",
            fix=f"choose one of the {len(names)} names of audit.targets(), for example {', '.join(near)}.",
        )


class ForbiddenError(DefocusError):
    """A role on a server does not allow an action."""


class SignInError(DefocusError):
    """Name and password, or a link, session or token, are not those of anybody."""


class TooManyAttemptsError(DefocusError):
    """Somebody guesses passwords or tokens."""


class NotFoundError(DefocusError):
    """A server has no such thing, or it may not be seen by whoever asks."""


class ConflictError(DefocusError):
    """Something cannot be done to a request in the state that it is in."""


class RecordsError(DefocusError):
    """The database of a server cannot be reached, read or written."""


class ServerError(DefocusError):
    """A server refused something, or cannot be reached."""


class RequestWaitsError(DefocusError):
    """A request on a server waits for somebody; nothing was charged yet."""
