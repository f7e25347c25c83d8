"""Who may do what: the one table of role × action, and the rules about own requests."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, final

from defocus.errors import ForbiddenError

__all__ = [
    "ADMINISTRATOR",
    "PUBLIC",
    "TABLE",
    "Action",
    "Person",
    "Role",
    "Subject",
    "allowed",
    "demand",
]


class Role(StrEnum):
    """What a person is here. Each has one role; who has not signed in is the public.

    >>> [str(role) for role in Role]
    ['steward', 'officer', 'analyst', 'auditor', 'public']
    """

    STEWARD = "steward"
    OFFICER = "officer"
    ANALYST = "analyst"
    AUDITOR = "auditor"
    PUBLIC = "public"


class Action(StrEnum):
    """Everything that can be done here."""

    READ_REGISTER = "read the public register"
    SIGN_IN = "sign in"
    SEE_DATASETS = "see data sets and what is left of their budgets"
    PREVIEW = "preview a question"
    ASK = "ask a question"
    SEE_REQUEST = "see a request and its answer"
    CANCEL = "cancel a request"
    SEE_QUEUE = "see what waits for a decision"
    DECIDE = "approve, refuse or ask back"
    PUBLISH = "publish a release"
    READ_LEDGER = "read and verify a ledger"
    DECLARE = "declare a data set, its data, policy, consent and tuning"
    MANAGE_PEOPLE = "invite people, end their access and set allowances"
    OWN_ACCOUNT = "change one's own password and tokens"


_STEWARD, _OFFICER, _ANALYST, _AUDITOR, _ = Role
TABLE: dict[Action, frozenset[Role]] = {
    Action.READ_REGISTER: frozenset(Role),
    Action.SIGN_IN: frozenset(Role),
    Action.SEE_DATASETS: frozenset({_STEWARD, _OFFICER, _ANALYST, _AUDITOR}),
    Action.PREVIEW: frozenset({_STEWARD, _OFFICER, _ANALYST}),
    Action.ASK: frozenset({_OFFICER, _ANALYST}),
    Action.SEE_REQUEST: frozenset({_STEWARD, _OFFICER, _ANALYST, _AUDITOR}),
    Action.CANCEL: frozenset({_OFFICER, _ANALYST}),
    Action.SEE_QUEUE: frozenset({_STEWARD, _OFFICER, _AUDITOR}),
    Action.DECIDE: frozenset({_OFFICER}),
    Action.PUBLISH: frozenset({_STEWARD, _OFFICER}),
    Action.READ_LEDGER: frozenset({_STEWARD, _OFFICER, _AUDITOR}),
    Action.DECLARE: frozenset({_STEWARD}),
    Action.MANAGE_PEOPLE: frozenset({_STEWARD}),
    Action.OWN_ACCOUNT: frozenset({_STEWARD, _OFFICER, _ANALYST, _AUDITOR}),
}
"""Which roles may do what. Nothing else decides, but for the rules of :func:`allowed` about whose a request is."""


@final
@dataclass(frozen=True, slots=True)
class Person:
    """Who is acting.

    >>> Person("7f3a", "ada", Role.ANALYST).role
    <Role.ANALYST: 'analyst'>
    """

    id: str
    name: str
    role: Role

    @property
    def signed_in(self) -> bool:
        """Whether it is known who it is."""
        return self.role is not Role.PUBLIC


PUBLIC = Person("", "the public", Role.PUBLIC)
"""Who has not signed in."""
ADMINISTRATOR = Person("", "administrator", Role.STEWARD)
"""Who starts the server on its own machine, and may read its files anyway."""


class Subject(Protocol):
    """What a rule needs to know about a request."""

    @property
    def asker(self) -> str:
        """The id of the person who asked."""


def allowed(person: Person, action: Action, subject: Subject | None = None) -> bool:
    """Whether a person may do something, to a request if one is given.

    Nobody decides about their own request; a request is cancelled by whoever asked; analysts see their own requests
    only.

    >>> ada = Person("7f3a", "ada", Role.ANALYST)
    >>> allowed(ada, Action.ASK), allowed(ada, Action.DECIDE)
    (True, False)
    """
    if person.role not in TABLE[action]:
        return False
    if subject is None:
        return True
    own = person.signed_in and subject.asker == person.id
    if action is Action.DECIDE:
        return not own
    if action is Action.CANCEL or (action is Action.SEE_REQUEST and person.role is Role.ANALYST):
        return own
    return True


def demand(person: Person, action: Action, subject: Subject | None = None) -> None:
    """Refuse what a person may not do."""
    if allowed(person, action, subject):
        return
    if person.role in TABLE[action]:
        own = subject is not None and subject.asker == person.id
        why = "it is your own request" if own else "it is not your request"
        raise ForbiddenError(f"You may not {action} here: {why}.", fix="let somebody else do it.")
    roles = ", ".join(sorted(role for role in TABLE[action] if role is not Role.PUBLIC))
    who = "Nobody has signed in" if person.role is Role.PUBLIC else f"You are {_an(person.role)}"
    raise ForbiddenError(f"{who}, and may not {action}.", fix=f"let one of these do it: {roles}.")


def _an(role: Role) -> str:
    return f"{'an' if role[0] in 'aeiou' else 'a'} {role}"
