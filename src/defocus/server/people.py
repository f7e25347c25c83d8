"""People: how they are invited, how they sign in, and the tokens of their programs.

A secret (a link, a session, a token) is random, shown once and stored as its SHA-256; a password is stored as its
argon2 hash. Nobody has a default password: the first start makes one link for the owner, who invites the others.
"""

import hashlib
import secrets
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, final

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from sqlalchemy import Connection, delete, func, insert, select, update

from defocus.errors import InvalidParameterError, NotFoundError, SignInError, TooManyAttemptsError
from defocus.server.records import (
    ATTEMPTS,
    INVITATIONS,
    PEOPLE,
    SESSIONS,
    TOKENS,
    Records,
    now,
    token,
)
from defocus.server.roles import PUBLIC, Action, Person, Role, demand

__all__ = ["People", "amount", "one_line"]

_LINK, _SESSION, _TOKEN = timedelta(days=7), timedelta(hours=12), timedelta(days=365)
_WINDOW, _MOST = timedelta(minutes=15), 10
"""So many wrong guesses are allowed for one name, or from one address, in this time."""
_SHORTEST, _LONGEST = 12, 1024
_OWNER = "owner"
_HASHING = threading.BoundedSemaphore(2)
"""Hashing takes 64 MB of memory, so that few passwords are tried at once."""


@final
@dataclass(frozen=True)
class People:
    """Everybody who may sign in. Methods that act for somebody take that person first."""

    records: Records

    @cached_property
    def _hasher(self) -> PasswordHasher:
        return PasswordHasher()

    @cached_property
    def _nobody(self) -> str:
        """A hash that is tried where there is no such name, so that an answer takes as long."""
        return self._hasher.hash(secrets.token_hex(16))

    def first_link(self) -> str | None:
        """The secret of a new link for the owner, while nobody has signed in; None afterwards."""
        with self.records.write() as session:
            if session.execute(select(func.count()).select_from(PEOPLE)).scalar():
                return None
            session.execute(delete(INVITATIONS).where(INVITATIONS.c.name == _OWNER))
            return _invited(session, _OWNER, Role.STEWARD, None)

    def invite(self, person: Person, role: Role | str, name: str) -> str:
        """The secret of a one-time link with which somebody chooses a password, or a new one."""
        demand(person, Action.MANAGE_PEOPLE)
        wanted, title = _role(role), one_line("name", name)
        with self.records.write() as session:
            known = session.execute(select(PEOPLE.c.role).where(PEOPLE.c.name == title)).scalar()
            if known is not None and known != wanted:
                raise InvalidParameterError(
                    f"{title!r:.80} is known here as {known}.", fix="invite them with that role, or under another name."
                )
            return _invited(session, title, wanted, person.id)

    def invitation(self, secret: str) -> tuple[str, Role]:
        """For whom a link is that was not used yet, and as what."""
        with self.records.read() as session:
            found = _open_invitation(session, secret)
        return found["name"], Role(found["role"])

    def accept(self, secret: str, password: str) -> str:
        """Use a link: the person exists from now on. The secret of a session is returned."""
        checked = _password(password)
        with self.records.read() as session:
            _open_invitation(session, secret)
        hashed = self._hash(checked)
        with self.records.write() as session:
            found = _open_invitation(session, secret)
            session.execute(update(INVITATIONS).where(INVITATIONS.c.hash == _digest(secret)).values(used=now()))
            known = session.execute(select(PEOPLE.c.id).where(PEOPLE.c.name == found["name"])).scalar()
            if known is None:
                known = token()
                row = {"id": known, "name": found["name"], "role": found["role"], "password": hashed, "since": now()}
                session.execute(insert(PEOPLE), [row])
            else:
                session.execute(update(PEOPLE).where(PEOPLE.c.id == known).values(password=hashed, ended=None))
            _locked_out(session, known)
            return _opened(session, known)

    def sign_in(self, name: str, password: str, address: str = "") -> str:
        """The secret of a new session of who has this name and password."""
        keys = [_digest(f"name {name.strip().casefold()}"), _digest(f"address {address}")]
        self._guard(keys)
        with self.records.read() as session:
            found = session.execute(
                select(PEOPLE.c.id, PEOPLE.c.password).where(PEOPLE.c.name == name.strip(), PEOPLE.c.ended.is_(None))
            ).first()
        known = None if found is None else found.password
        right = self._verify(known or self._nobody, password) and known is not None
        if found is None or not right:
            self.failed(keys)
            raise SignInError("Name or password is wrong.", fix="try again, or ask a steward for a new link.")
        with self.records.write() as session:
            return _opened(session, found.id)

    def sign_in_as(self, name: str) -> str:
        """The secret of a new session of somebody whom an identity provider has vouched for.

        Not of the owner: whom nobody invited under that name, anybody may be called so elsewhere.
        """
        if name == _OWNER:
            raise SignInError(
                "The owner signs in with a password.", fix="ask a steward to invite you under your own name."
            )
        with self.records.write() as session:
            found = session.execute(select(PEOPLE.c.id).where(PEOPLE.c.name == name, PEOPLE.c.ended.is_(None))).scalar()
            if found is None:
                invited = (
                    session.execute(
                        select(INVITATIONS).where(
                            INVITATIONS.c.name == name, INVITATIONS.c.used.is_(None), INVITATIONS.c.until > now()
                        )
                    )
                    .mappings()
                    .first()
                )
                if invited is None:
                    raise SignInError("Nobody was invited under this name.", fix="ask a steward to invite you.")
                session.execute(update(INVITATIONS).where(INVITATIONS.c.hash == invited["hash"]).values(used=now()))
                found = session.execute(select(PEOPLE.c.id).where(PEOPLE.c.name == name)).scalar()
                if found is None:
                    found = token()
                    row = {"id": found, "name": name, "role": invited["role"], "password": None, "since": now()}
                    session.execute(insert(PEOPLE), [row])
                else:  # who is invited again after their access ended, and whose old password is nobody's any more
                    session.execute(update(PEOPLE).where(PEOPLE.c.id == found).values(password=None, ended=None))
                _locked_out(session, found)
            return _opened(session, found)

    def of_session(self, secret: str | None) -> Person:
        """Whose session it is; the public if it is nobody's any more."""
        return PUBLIC if not secret else self._of(SESSIONS, secret) or PUBLIC

    def of_token(self, secret: str, address: str = "") -> Person:
        """Whose token it is; one that is nobody's is refused, and counted as a guess."""
        found = self._of(TOKENS, secret)
        if found is None:
            keys = [_digest(f"token {address}")]
            self._guard(keys)
            self.failed(keys)
            raise SignInError("The token is nobody's, or has expired.", fix="make a new one on the account page.")
        return found

    def sign_out(self, secret: str) -> None:
        """End a session."""
        with self.records.write() as session:
            session.execute(delete(SESSIONS).where(SESSIONS.c.hash == _digest(secret)))

    def new_token(self, person: Person, name: str) -> str:
        """The secret of a new token for a program. It is shown once."""
        demand(person, Action.OWN_ACCOUNT)
        secret = f"dfc_{secrets.token_urlsafe(32)}"
        row = {"id": token(), "person": person.id, "name": one_line("name", name), "since": now()}
        with self.records.write() as session:
            session.execute(insert(TOKENS), [{"hash": _digest(secret), "until": _after(_TOKEN), **row}])
        return secret

    def tokens(self, person: Person) -> list[dict[str, Any]]:
        """The tokens of a person, without their secrets."""
        demand(person, Action.OWN_ACCOUNT)
        columns = [TOKENS.c[name] for name in ("id", "name", "since", "until")]
        with self.records.read() as session:
            rows = session.execute(select(*columns).where(TOKENS.c.person == person.id).order_by(TOKENS.c.since))
            return [dict(row) for row in rows.mappings()]

    def revoke(self, person: Person, id_: str) -> None:
        """End a token of one's own."""
        demand(person, Action.OWN_ACCOUNT)
        with self.records.write() as session:
            gone = session.execute(delete(TOKENS).where(TOKENS.c.id == id_, TOKENS.c.person == person.id)).rowcount
        if not gone:
            raise NotFoundError("You have no such token.", fix="look at the list of your tokens.")

    def everybody(self, person: Person) -> list[dict[str, Any]]:
        """All people, and who was invited and has not come yet."""
        demand(person, Action.MANAGE_PEOPLE)
        with self.records.read() as session:
            columns = [PEOPLE.c[name] for name in ("id", "name", "role", "since", "ended")]
            here = [dict(row) for row in session.execute(select(*columns).order_by(PEOPLE.c.name)).mappings()]
            open_ = select(INVITATIONS.c.name, INVITATIONS.c.role, INVITATIONS.c.until)
            waiting = session.execute(open_.where(INVITATIONS.c.used.is_(None), INVITATIONS.c.until > now()))
            return here + [{"id": None, **dict(row)} for row in waiting.mappings()]

    def end(self, person: Person, id_: str) -> None:
        """End somebody's access: sessions, tokens and open links are gone, requests and decisions stay."""
        demand(person, Action.MANAGE_PEOPLE)
        if id_ == person.id:
            raise InvalidParameterError("Nobody ends their own access.", fix="let another steward do it.")
        with self.records.write() as session:
            if not session.execute(update(PEOPLE).where(PEOPLE.c.id == id_).values(ended=now())).rowcount:
                raise NotFoundError("There is no such person.", fix="look at the list of people.")
            _locked_out(session, id_)

    def names(self) -> dict[str, str]:
        """What people are called, by id."""
        with self.records.read() as session:
            return {row.id: row.name for row in session.execute(select(PEOPLE.c.id, PEOPLE.c.name))}

    def failed(self, keys: list[str]) -> None:
        """Note a wrong guess, and forget those of long ago."""
        with self.records.write() as session:
            session.execute(insert(ATTEMPTS), [{"what": key, "time": now()} for key in keys])
            session.execute(delete(ATTEMPTS).where(ATTEMPTS.c.time < _after(-_WINDOW)))

    def _guard(self, keys: list[str]) -> None:
        with self.records.read() as session:
            recent = select(func.count()).where(ATTEMPTS.c.time > _after(-_WINDOW))
            tried = max(session.execute(recent.where(ATTEMPTS.c.what == key)).scalar() or 0 for key in keys)
        if tried >= _MOST:
            raise TooManyAttemptsError("There were too many wrong attempts.", fix="try again in a quarter of an hour.")

    def _of(self, kind: Any, secret: str) -> Person | None:
        joined = kind.join(PEOPLE, PEOPLE.c.id == kind.c.person)
        wanted = (kind.c.hash == _digest(secret), kind.c.until > now(), PEOPLE.c.ended.is_(None))
        with self.records.read() as session:
            found = session.execute(
                select(PEOPLE.c.id, PEOPLE.c.name, PEOPLE.c.role).select_from(joined).where(*wanted)
            ).first()
        return None if found is None else Person(found.id, found.name, Role(found.role))

    def _hash(self, password: str) -> str:
        with _HASHING:
            return self._hasher.hash(password)

    def _verify(self, known: str, password: str) -> bool:
        try:
            with _HASHING:
                return self._hasher.verify(known, password[:_LONGEST])
        except (Argon2Error, InvalidHashError):
            return False


def one_line(name: str, value: object, *, longest: int = 200) -> str:
    """Text that somebody wrote, in one line."""
    said = " ".join(value.split()) if isinstance(value, str) else ""
    if not said or len(said) > longest or not said.isprintable():
        raise InvalidParameterError.about(
            name, f"must be text on one line of at most {longest} characters.", "write {} in plain words."
        )
    return said


def amount(name: str, value: Any) -> float:
    """A number that is not negative, as somebody sent it."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
        raise InvalidParameterError.about(name, "must be a number of at least 0.", "write {} = 0.5.")
    return float(value)


def _role(role: Role | str) -> Role:
    if role in set(Role) - {Role.PUBLIC}:
        return Role(role)
    raise InvalidParameterError(
        f"There is no role {str(role)!r:.40}.", fix="choose steward, officer, analyst or auditor."
    )


def _password(password: str) -> str:
    if not _SHORTEST <= len(password) <= _LONGEST:
        raise InvalidParameterError(
            f"A password has at least {_SHORTEST} characters.", fix="choose a few words that nobody would guess."
        )
    return password


def _invited(session: Connection, name: str, role: Role, by: str | None) -> str:
    secret = secrets.token_urlsafe(32)
    row = {"hash": _digest(secret), "name": name, "role": str(role), "by": by, "until": _after(_LINK)}
    session.execute(insert(INVITATIONS), [row])
    return secret


def _open_invitation(session: Connection, secret: str) -> Any:
    wanted = (INVITATIONS.c.hash == _digest(secret), INVITATIONS.c.used.is_(None), INVITATIONS.c.until > now())
    found = session.execute(select(INVITATIONS).where(*wanted)).mappings().first()
    if found is None:
        raise SignInError("This link was used, or has expired.", fix="ask a steward for a new one.")
    return found


def _opened(session: Connection, person: str) -> str:
    secret = secrets.token_urlsafe(32)
    session.execute(insert(SESSIONS), [{"hash": _digest(secret), "person": person, "until": _after(_SESSION)}])
    session.execute(delete(SESSIONS).where(SESSIONS.c.until < now()))
    return secret


def _locked_out(session: Connection, person: str) -> None:
    """Nothing that was given to a person before lets anybody in any more: no session, no token, no open link."""
    session.execute(delete(SESSIONS).where(SESSIONS.c.person == person))
    session.execute(delete(TOKENS).where(TOKENS.c.person == person))
    name = select(PEOPLE.c.name).where(PEOPLE.c.id == person).scalar_subquery()
    session.execute(delete(INVITATIONS).where(INVITATIONS.c.name == name, INVITATIONS.c.used.is_(None)))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "backslashreplace")).hexdigest()


def _after(time: timedelta) -> str:
    return (datetime.now(UTC) + time).isoformat(timespec="microseconds")
