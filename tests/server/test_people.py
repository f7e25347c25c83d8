"""People: links, passwords, sessions, tokens, and guessing."""

import pytest
from sqlalchemy import select, update
from tests.server.making import WORDS, person

from defocus.errors import ForbiddenError, InvalidParameterError, NotFoundError, SignInError, TooManyAttemptsError
from defocus.server.operations import Settings
from defocus.server.people import People, one_line
from defocus.server.records import INVITATIONS, PEOPLE, SESSIONS, TOKENS
from defocus.server.requests import Desk
from defocus.server.roles import PUBLIC, Person, Role


def test_the_first_start_makes_a_link_for_the_owner_and_later_ones_none(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    desk = Desk(Settings(home=tmp_path_factory.mktemp("new")))
    lost, link = desk.people.first_link(), desk.people.first_link()
    assert lost is not None
    assert link is not None
    with pytest.raises(SignInError, match="used, or has expired"):
        desk.people.accept(lost, WORDS)
    owner = desk.people.of_session(desk.people.accept(link, WORDS))
    assert (owner.name, owner.role) == ("owner", Role.STEWARD)
    assert desk.people.first_link() is None
    desk.close()


def test_a_link_is_used_once_and_until_it_expires(desk: Desk, people: dict[Role, Person]) -> None:
    link = desk.people.invite(people[Role.STEWARD], "analyst", "Bo")
    assert desk.people.invitation(link) == ("Bo", Role.ANALYST)
    assert desk.people.of_session(desk.people.accept(link, WORDS)).role is Role.ANALYST
    with pytest.raises(SignInError):
        desk.people.accept(link, WORDS)
    late = desk.people.invite(people[Role.STEWARD], "analyst", "Cy")
    with desk.records.write() as session:
        session.execute(update(INVITATIONS).values(until="2020-01-01"))
    with pytest.raises(SignInError):
        desk.people.accept(late, WORDS)


def test_a_new_link_gives_a_new_password_and_ends_all_sessions(desk: Desk, people: dict[Role, Person]) -> None:
    steward = people[Role.STEWARD]
    first = desk.people.accept(desk.people.invite(steward, "analyst", "Bo"), WORDS)
    desk.people.accept(desk.people.invite(steward, "analyst", "Bo"), "another good password")
    assert desk.people.of_session(first) == PUBLIC
    with pytest.raises(SignInError):
        desk.people.sign_in("Bo", WORDS)
    assert desk.people.of_session(desk.people.sign_in("Bo", "another good password")).name == "Bo"
    with pytest.raises(InvalidParameterError, match="known here as analyst"):
        desk.people.invite(steward, "officer", "Bo")


def test_a_new_password_leaves_nothing_that_opens_the_account_otherwise(desk: Desk, people: dict[Role, Person]) -> None:
    steward = people[Role.STEWARD]
    link, spare = (desk.people.invite(steward, "analyst", "Bo") for _ in range(2))
    bo = desk.people.of_session(desk.people.accept(link, WORDS))
    with pytest.raises(SignInError):
        desk.people.accept(spare, "the password of a thief")
    token = desk.people.new_token(bo, "stolen")
    desk.people.accept(desk.people.invite(steward, "analyst", "Bo"), "another good password")
    with pytest.raises(SignInError):
        desk.people.of_token(token)


def test_no_open_link_brings_back_whose_access_ended(desk: Desk, people: dict[Role, Person]) -> None:
    ana, sofia = people[Role.ANALYST], people[Role.STEWARD]
    link = desk.people.invite(sofia, "analyst", "Ana")
    desk.people.end(sofia, ana.id)
    with pytest.raises(SignInError):
        desk.people.accept(link, WORDS)
    with pytest.raises(SignInError):
        desk.people.sign_in_as("Ana")
    desk.people.invite(sofia, "analyst", "Ana")
    assert desk.people.of_session(desk.people.sign_in_as("Ana")) == ana


def test_secrets_are_stored_as_digests_only(desk: Desk, people: dict[Role, Person]) -> None:
    link = desk.people.invite(people[Role.STEWARD], "analyst", "Bo")
    session_ = desk.people.accept(link, WORDS)
    token = desk.people.new_token(desk.people.of_session(session_), "laptop")
    with desk.records.read() as session:
        stored = repr([session.execute(select(each)).all() for each in (PEOPLE, INVITATIONS, SESSIONS, TOKENS)])
    for secret in (link, session_, token, WORDS):
        assert secret not in stored
    assert "$argon2id$" in stored


def test_wrong_passwords_are_refused_and_guessing_is_stopped(desk: Desk, people: dict[Role, Person]) -> None:
    desk.people.accept(desk.people.invite(people[Role.STEWARD], "analyst", "Bo"), WORDS)
    for number in range(10):
        with pytest.raises(SignInError, match="Name or password is wrong"):
            desk.people.sign_in("Bo" if number % 2 else "nobody", "wrong", f"10.0.0.{number % 2}")
    for number in range(10):
        with pytest.raises(SignInError):
            desk.people.sign_in("bo" if number < 5 else f"other {number}", "wrong", "10.0.0.9")
    with pytest.raises(TooManyAttemptsError):
        desk.people.sign_in("Bo", WORDS, "10.0.0.77")
    with pytest.raises(TooManyAttemptsError):
        desk.people.sign_in("Ana", WORDS, "10.0.0.9")


def test_guessing_of_tokens_is_stopped(desk: Desk) -> None:
    for number in range(10):
        with pytest.raises(SignInError):
            desk.people.of_token(f"dfc_{number}", "10.0.0.1")
    with pytest.raises(TooManyAttemptsError):
        desk.people.of_token("dfc_11", "10.0.0.1")


def test_who_guessed_tokens_from_an_address_does_not_lock_others_out(desk: Desk, people: dict[Role, Person]) -> None:
    token = desk.people.new_token(people[Role.ANALYST], "laptop")
    for number in range(12):
        with pytest.raises((SignInError, TooManyAttemptsError)):
            desk.people.of_token(f"dfc_{number}", "10.0.0.1")
    assert desk.people.of_token(token, "10.0.0.1") == people[Role.ANALYST]


def test_a_token_works_until_it_is_revoked_and_only_its_owner_revokes_it(
    desk: Desk, people: dict[Role, Person]
) -> None:
    ana, omar = people[Role.ANALYST], people[Role.OFFICER]
    token = desk.people.new_token(ana, "laptop")
    (shown,) = desk.people.tokens(ana)
    assert token not in repr(shown)
    assert desk.people.of_token(token) == ana
    with pytest.raises(NotFoundError):
        desk.people.revoke(omar, shown["id"])
    desk.people.revoke(ana, shown["id"])
    with pytest.raises(SignInError):
        desk.people.of_token(token)


def test_whose_access_ended_has_no_session_and_no_token(desk: Desk, people: dict[Role, Person]) -> None:
    ana, sofia = people[Role.ANALYST], people[Role.STEWARD]
    token, session = desk.people.new_token(ana, "laptop"), desk.people.sign_in_as("Ana")
    with pytest.raises(InvalidParameterError, match="own access"):
        desk.people.end(sofia, sofia.id)
    desk.people.end(sofia, ana.id)
    assert desk.people.of_session(session) == PUBLIC
    with pytest.raises(SignInError):
        desk.people.of_token(token)
    with pytest.raises(SignInError):
        desk.people.sign_in_as("Ana")
    assert "Ana" in {one["name"] for one in desk.people.everybody(sofia) if one["ended"]}


def test_sessions_expire_and_end(desk: Desk, people: dict[Role, Person]) -> None:
    assert people
    first, second = desk.people.sign_in_as("Ana"), desk.people.sign_in_as("Ana")
    desk.people.sign_out(first)
    assert desk.people.of_session(first) == PUBLIC
    with desk.records.write() as session:
        session.execute(update(SESSIONS).values(until="2020-01-01"))
    assert desk.people.of_session(second) == PUBLIC


@pytest.mark.parametrize("password", ["", "short", "x" * 1025])
def test_a_password_is_neither_short_nor_endless(desk: Desk, people: dict[Role, Person], password: str) -> None:
    link = desk.people.invite(people[Role.STEWARD], "analyst", "Bo")
    with pytest.raises(InvalidParameterError, match="at least 12"):
        desk.people.accept(link, password)
    assert desk.people.invitation(link)[0] == "Bo"


@pytest.mark.parametrize("name", ["", " ", "a\x1b[31m", "x" * 201, 3, "\u202e"])
def test_names_that_could_act_are_refused(name: object) -> None:
    with pytest.raises(InvalidParameterError, match="text on one line"):
        one_line("name", name)


def test_only_known_roles_are_given(desk: Desk, people: dict[Role, Person]) -> None:
    for role in ("public", "root", ""):
        with pytest.raises(InvalidParameterError, match="There is no role"):
            desk.people.invite(people[Role.STEWARD], role, "Bo")
    with pytest.raises(ForbiddenError):
        desk.people.invite(people[Role.OFFICER], "analyst", "Bo")
    assert isinstance(desk.people, People)
    assert person(desk, Role.AUDITOR) == people[Role.AUDITOR]
