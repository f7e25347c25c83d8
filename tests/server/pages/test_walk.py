"""From the first link to a verified bundle in a real browser, in English and in Chinese."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.server.pages.conftest import EVIL, Site, Visitor

from defocus.ledger import Bundle
from defocus.server.pages.translations import translated

pytestmark = pytest.mark.slow


def said(text: str, locale: str) -> str:
    return translated(text, locale[:2])


def made_up(file: Path, column: str = "ward", keys: tuple[str, ...] = ("A", "B")) -> None:
    rows = 4000
    wards = [keys[i % len(keys)] for i in range(rows)]
    stay = [float(i % 30) for i in range(rows)]
    pq.write_table(pa.table({"patient": [i // 2 for i in range(rows)], column: wards, "stay": stay}), file)


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_people_of_all_roles_go_from_the_first_link_to_a_verified_bundle(
    visitor: Callable[..., Visitor], site: Site, tmp_path: Path, locale: str
) -> None:
    made_up(tmp_path / "visits.parquet")
    here, english = locale[:2], locale == "en-GB"
    steward = visitor(locale=locale)
    page = steward.page
    steward.go("/")
    steward.look(f"{here}-welcome", dark=english)
    steward.go(site.first_link)
    steward.look(f"{here}-invitation", dark=english)
    steward.accept(site.first_link)
    steward.look(f"{here}-home-empty", dark=english)

    # The steward declares a data set by form, and invites others.
    steward.press("main a[href='/declare']")
    steward.look(f"{here}-begin", dark=english)
    page.fill("#name", "visits")
    page.set_input_files("#file", tmp_path / "visits.parquet")
    steward.press("main button")
    page.select_option("#unit", "patient")
    page.fill("#epsilon", "-3")
    page.fill("#purposes", "planning\nresearch")
    page.fill("[name=c1_values]", "A, B")
    page.fill("[name=c2_low]", "0")
    page.fill("[name=c2_high]", "30")
    page.fill("#why", "the winter")
    steward.press("button[value=declare]")
    assert page.locator("[role=alert]").is_visible()  # what is wrong is said, and nothing was declared
    steward.look(f"{here}-declare-refused", dark=english)
    page.fill("#epsilon", "3")
    page.fill("#delta", "1e-6")
    page.fill("#rows", "2")
    steward.press("button[value=check]")
    assert page.locator("[role=status]").is_visible()
    steward.press("button[value=declare]")
    page.fill("#automatic", "0.05")
    page.fill("#why-policy", "small questions")
    steward.press("form[action$=policy] button")
    page.fill("#epsilon", "2")
    steward.press("form[action$=allowances] button")
    page.fill("#what", "the bound of 30 days")
    page.fill("#why-tuning", "the longest stay of last year")
    steward.press("form[action$=tuning] button")
    steward.look(f"{here}-steward", dark=english)
    links = {}
    for role in ("officer", "analyst", "auditor"):
        steward.go("/people")
        page.fill("#name", f"{role} one")
        page.select_option("#role", role)
        steward.press("main form.card button")
        links[role] = page.locator(".secret").inner_text()
    steward.look(f"{here}-people", dark=english)

    # The analyst builds a question, sees its price while it changes, and asks.
    analyst = visitor(locale=locale)
    page = analyst.page
    analyst.accept(links["analyst"])
    analyst.look(f"{here}-home", dark=english)
    analyst.press("main a[href='/datasets/visits/ask']")
    page.select_option("#group0", "ward")
    page.select_option("#function1", "mean")
    page.select_option("#of1", "stay")
    page.wait_for_selector("#preview table:has-text('stay')")
    assert page.locator(".brief").is_hidden()  # the preview is beside the form
    before = page.locator("#preview").inner_text()
    page.fill("#epsilon", "0.6")
    page.wait_for_function("before => document.getElementById('preview').innerText !== before", arg=before)
    analyst.look(f"{here}-ask", dark=english)
    analyst.press("#ask .actions button:first-child")
    page.wait_for_selector("[role=alert]")  # it has no reason
    page.fill("#reason", "Beds for the winter")
    analyst.press("#ask .actions button:first-child")
    page.wait_for_url("**/requests/*")
    request = page.url
    analyst.look(f"{here}-waiting", dark=english)

    # The officer asks back, the analyst answers, the officer approves.
    officer = visitor(locale=locale)
    page = officer.page
    officer.accept(links["officer"])
    officer.press("nav a[href='/queue']")
    officer.look(f"{here}-queue", dark=english)
    officer.press("article .button")
    officer.look(f"{here}-decide", dark=english)
    page.fill("#words", "Who will see it?")
    officer.press("button[value=ask_back]")
    analyst.go(request)
    analyst.page.fill("#reason", "Beds for the winter; the board sees it")
    analyst.look(f"{here}-asked-back", dark=english)
    analyst.press("form[action$=reply] button")
    officer.go(request)
    officer.press("button[value=approve]")
    page.wait_for_selector(f"text={said('Downloads', locale)}")
    assert page.locator("tbody th:text-is('A')").is_visible()
    page.wait_for_function("() => document.querySelector('.chart').naturalWidth > 0")
    officer.look(f"{here}-release", dark=english)
    assert "/register/" not in page.locator(".cite").inner_text()  # nobody could follow it yet

    # Every file can be had; the bundle proves itself, here and elsewhere.
    files = {}
    for link in page.locator(".files a").all():
        with page.expect_download() as downloading:
            link.click()
        files[downloading.value.suggested_filename.split("-", 1)[1]] = downloading.value.path()
    assert set(files) == {
        *("answer.csv", "answer.parquet", "answer.json", "release.bundle"),
        *("report.html", "report.pdf", "registry.yaml", "nist.html"),
    }
    assert pq.read_table(files["answer.parquet"])["ward"].to_pylist() == ["A", "B"]
    assert json.loads(files["answer.json"].read_text("utf-8"))["receipt"]["who"] == "analyst one"
    evidence = Bundle.load(files["release.bundle"]).verify(key=site.desk.key(site.desk.people.of_session(None)))
    assert evidence.require().facts["approved by"] == "officer one"
    officer.press("form[action$=publish] button")
    officer.look(f"{here}-published", dark=english)
    assert page.locator(".cite").inner_text().endswith(page.url)

    # A stranger finds it in the register, and verifies the file; a changed one is refused.
    stranger = visitor(locale=locale)
    page = stranger.page
    stranger.go("/register")
    stranger.look(f"{here}-register", dark=english)
    stranger.press("main .row")
    assert page.locator(".verdict.good").is_visible()
    stranger.go("/verify")
    page.set_input_files("#bundle", files["release.bundle"])
    stranger.press("main button")
    assert page.locator(".verdict.good").is_visible()
    stranger.look(f"{here}-verified", dark=english)
    text = files["release.bundle"].read_text("ascii")
    changed = tmp_path / "changed.bundle"
    changed.write_text(text.replace("planning", "learning"), encoding="ascii")
    page.set_input_files("#bundle", changed)
    stranger.press("main button")
    page.wait_for_selector("[role=alert]")

    # The auditor reads and verifies the ledger.
    auditor = visitor(locale=locale)
    page = auditor.page
    auditor.accept(links["auditor"])
    auditor.go("/datasets/visits/ledger?check=true")
    assert page.locator(".verdict.good").is_visible()
    assert page.locator("td:text-is('officer one')").is_visible()
    auditor.look(f"{here}-ledger", dark=english)
    auditor.press("a[href$='/exposure']")
    auditor.look(f"{here}-exposure", dark=english)
    auditor.go("/datasets/visits")
    auditor.look(f"{here}-dataset", dark=english)
    auditor.go("/account")
    page.fill("#name", "notebook")
    auditor.press("main form.card button")
    assert page.locator(".secret").inner_text().startswith("dfc_")
    auditor.look(f"{here}-account", dark=english)


def test_on_a_phone_the_error_stands_where_the_price_is_chosen(
    visitor: Callable[..., Visitor], site: Site, tmp_path: Path
) -> None:
    declared(site, tmp_path)
    analyst = visitor(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    page = analyst.page
    analyst.accept(invited(site, "analyst", "Ana"))
    analyst.go("/datasets/visits/ask")
    page.wait_for_selector(".brief:text('Expected error: count ')")
    before = page.locator(".brief").inner_text()
    page.fill("#epsilon", "0.01")
    page.wait_for_function("before => document.querySelector('.brief').innerText !== before", arg=before)
    page.locator("#epsilon").scroll_into_view_if_needed()
    place, slider = page.locator(".brief").bounding_box(), page.locator("#epsilon").bounding_box()
    assert place is not None
    assert slider is not None
    assert 0 < place["y"] - slider["y"] < 100
    analyst.look("phone-ask", dark=False)


def test_everything_works_without_scripts(visitor: Callable[..., Visitor], site: Site, tmp_path: Path) -> None:
    steward = visitor(java_script_enabled=False)
    steward.accept(site.first_link)
    declared(site, tmp_path)
    analyst = visitor(java_script_enabled=False)
    page = analyst.page
    analyst.accept(invited(site, "analyst", "Ana"))
    analyst.go("/datasets/visits/ask")
    page.select_option("#group0", "ward")
    analyst.press("#ask .actions button:last-child")
    assert page.locator("#preview table").first.is_visible()
    assert page.locator("#group0").input_value() == "ward"
    page.fill("#epsilon", "nothing")
    analyst.press("#ask .actions button:last-child")
    assert "must be a number" in page.locator("[role=alert]").inner_text()
    page.fill("#epsilon", "0.04")
    page.fill("#reason", "Beds")
    analyst.press("#ask .actions button:first-child")  # approved at once by the policy
    page.wait_for_selector("text=Downloads")  # the page looks again by itself
    assert page.locator(".state").first.inner_text() == "released"


def test_text_of_strangers_does_not_act_on_any_page(
    visitor: Callable[..., Visitor], site: Site, tmp_path: Path
) -> None:
    steward = visitor()
    steward.accept(site.first_link)
    declared(site, tmp_path, column=EVIL, keys=(EVIL, "B"), purpose=EVIL)
    analyst, officer = visitor(), visitor()
    analyst.accept(invited(site, "analyst", EVIL))
    officer.accept(invited(site, "officer", "Omar"))
    page = analyst.page
    analyst.go("/datasets/visits/ask")
    page.select_option("#group0", EVIL)
    page.select_option("#column0", EVIL)
    page.fill("#value0", EVIL)
    page.fill("#epsilon", "0.6")
    page.fill("#reason", EVIL)
    page.wait_for_selector("#preview table")
    analyst.look("evil-ask", dark=False)
    analyst.press("#ask .actions button:first-child")
    page.wait_for_url("**/requests/*")
    request = page.url
    officer.go("/queue")
    officer.look("evil-queue", dark=False)
    officer.go(request)
    officer.look("evil-decide", dark=False)
    officer.page.fill("#words", EVIL)
    officer.press("button[value=approve]")
    officer.page.wait_for_selector("text=Downloads")
    officer.look("evil-release", dark=False)
    assert "<img src=x" in officer.page.locator("tbody").first.inner_text()
    officer.press("form[action$=publish] button")
    officer.look("evil-published", dark=False)
    data_set = "/datasets/visits"
    for path in ("/", "/requests", "/register", data_set, f"{data_set}/ledger", f"{data_set}/exposure"):
        officer.go(path)
        officer.look(f"evil-{path.strip('/').replace('/', '-') or 'home'}", dark=False)
    steward.go("/people")
    steward.page.fill("#name", EVIL + "2")
    steward.press("main form.card button")
    steward.look("evil-people", dark=False)
    for path in ("/datasets/visits/steward", "/datasets/visits/declare"):
        steward.go(path)
        steward.look(f"evil-{path.rpartition('/')[2]}", dark=False)
    analyst.go("/account")
    page.fill("#name", EVIL)
    analyst.press("main form.card button")
    analyst.look("evil-account", dark=False)
    analyst.go(f"/datasets/visits/ask?how=sql&sql={EVIL}&epsilon={EVIL}&purpose={EVIL}&size={EVIL}")
    analyst.look("evil-query", dark=False)
    analyst.go(f"/sign-in?next={EVIL}")
    assert page.locator("[name=next]").input_value() == "/"


def declared(
    site: Site, folder: Path, column: str = "ward", keys: tuple[str, ...] = ("A", "B"), purpose: str = "planning"
) -> None:
    """A data set, declared by the owner."""
    from defocus.server.roles import ADMINISTRATOR  # noqa: PLC0415

    place = folder / "visits.parquet"
    made_up(place, column, keys)
    site.desk.datasets.upload(ADMINISTRATOR, "visits", "visits.parquet", lambda file: file.write(place.read_bytes()))
    text = f"""name = "visits"
data = "visits.parquet"
purposes = [{json.dumps(purpose)}]
unit.column = "patient"
budget = {{epsilon = 3, delta = 1e-6}}
bound.rows = 2
[columns.stay]
low = 0
high = 30
[columns.{json.dumps(column)}]
values = {json.dumps(list(keys))}
"""
    site.desk.declare(ADMINISTRATOR, text, "a test")
    site.desk.datasets.set_policy(ADMINISTRATOR, "visits", automatic=0.05, most=None, why="a test")


def invited(site: Site, role: str, name: str) -> str:
    from defocus.server.roles import ADMINISTRATOR  # noqa: PLC0415

    return site.desk.invite(ADMINISTRATOR, role, name)
