"""What every page has: a language, escaped text, few bytes and nothing from elsewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from httpx import Client
from tests.server.making import Served

from defocus.server import pages
from defocus.server.pages.rendering import local
from defocus.server.pages.translations import LANGUAGES, texts, translated
from defocus.server.roles import Role

HOME = Path(pages.__file__).parent
TEMPLATES = sorted((HOME / "templates").glob("*.html"))
SAID = re.compile(r"""_\(\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with served.client() as made:
        yield made


def sentences() -> set[str]:
    """Every text of the templates, and every word of the desk that pages show."""
    found = {match[1:-1] for file in TEMPLATES for match in SAID.findall(file.read_text("utf-8"))}
    return found | set(Role)


@pytest.mark.parametrize("language", [code for code in LANGUAGES if code != "en"])
def test_every_text_of_a_page_is_translated_with_the_same_parts(language: str) -> None:
    known, _ = texts(language)
    assert sentences() - set(known) == set()
    for text, made in known.items():
        assert sorted(re.findall(r"%\(\w+\)s", text)) == sorted(re.findall(r"%\(\w+\)s", made)), text
        if "%(" in text:
            assert "%" in made % dict.fromkeys(re.findall(r"%\((\w+)\)s", text), "1") or "%%" not in text


def test_the_usual_terms_are_used_in_chinese() -> None:
    known = " ".join(texts("zh")[0].values())
    for term in ("差分隐私", "隐私预算", "噪声", "置信区间", "账本"):
        assert term in known
    assert translated("everything about one patient, added or removed", "zh").startswith("一个 patient")


def test_words_of_people_are_not_taken_for_texts_with_parts() -> None:
    assert translated("100 % (of %(name)s) sure", "zh") == "100 % (of %(name)s) sure"


def test_no_template_has_scripts_styles_or_text_that_is_not_escaped() -> None:
    for file in TEMPLATES:
        text = file.read_text("utf-8")
        assert not re.search(r"\bstyle=|\bon\w+=|<script(?! src=\"/static/)|\|\s*safe\b|javascript:", text), file.name
        assert not re.search(r"(?:src|href)=\"(?:https?:)?//", text), file.name


def test_the_first_page_is_small_and_loads_nothing_from_elsewhere(client: Client) -> None:
    first = client.get("/")
    assert first.status_code == 200
    files = re.findall(r"(?:src|href)=\"(/static/[^\"]+)\"", first.text)
    assert {"/static/style.css", "/static/page.js"} <= set(files)
    assert len(first.content) + sum(len(client.get(file).content) for file in files) < 100_000
    policy = first.headers["content-security-policy"]
    assert "'unsafe-inline'" not in policy
    assert "default-src 'none'" in policy


def test_the_language_is_the_chosen_one_else_that_of_the_browser(client: Client) -> None:
    assert '<html lang="en">' in client.get("/", headers={"accept-language": "fr, en"}).text
    assert '<html lang="zh-Hans">' in client.get("/", headers={"accept-language": "zh-CN, en"}).text
    answer = client.get("/language/zh?next=/register", follow_redirects=False)
    assert answer.headers["location"] == "/register"
    assert '<html lang="zh-Hans">' in client.get("/").text
    assert client.get("/language/xx", follow_redirects=False).status_code == 303


@pytest.mark.parametrize("address", ["//evil.example", "https://evil.example", "/\\evil.example", "evil", "", None])
def test_nobody_is_led_to_another_server(address: str | None) -> None:
    assert local(address) == "/"


def test_who_has_not_signed_in_is_asked_to_and_comes_back(client: Client) -> None:
    answer = client.get("/requests")
    assert answer.status_code == 401
    assert 'name="next" value="/requests"' in answer.text
    refused = client.post("/sign-in", data={"name": "nobody", "password": "x" * 12, "next": "//evil.example"})
    assert refused.status_code == 401
    assert "Name or password is wrong." in refused.text
    assert 'name="next" value="/"' in refused.text


def test_refusals_are_pages_for_people_and_documents_for_programs(client: Client) -> None:
    page, document = client.get("/nothing"), client.get("/api/v1/nothing")
    assert page.status_code == document.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert document.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/declare/files/new", "/datasets/visits/files/replace", "/datasets/visits/consent"])
def test_nothing_is_read_of_a_form_that_somebody_may_not_send(client: Client, path: str) -> None:
    broken = {"content-type": "multipart/form-data; boundary=x"}
    assert client.post(path, content=b"not a form", headers=broken).status_code == 401
