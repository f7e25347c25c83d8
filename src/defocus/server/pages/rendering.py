"""How a page is made: its language, its template, and the words and numbers in it. Every text is escaped."""

from collections.abc import AsyncIterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

from fastapi import Depends, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.datastructures import FormData
from starlette.responses import HTMLResponse, RedirectResponse, Response

from defocus.answers.columns import brief
from defocus.errors import DefocusError, ForbiddenError
from defocus.privacy.budgets import Budget
from defocus.privacy.numbers import at_most
from defocus.server.access import desk_of, person_of
from defocus.server.pages.translations import LANGUAGES, translated
from defocus.server.roles import PUBLIC, Action, allowed

__all__ = ["LANGUAGE", "Form", "door", "error_page", "form_of", "language_of", "local", "page", "seen", "text_of"]

LANGUAGE = "defocus_language"
_TINY = 1e-3
_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def language_of(request: Request) -> str:
    """The language that was chosen here, else the first that the browser asks for and there is."""
    chosen = request.cookies.get(LANGUAGE)
    if chosen in LANGUAGES:
        return chosen
    wanted = request.headers.get("accept-language", "").lower()
    first = next((part.strip() for part in wanted.split(",") if part.strip()[:2] in LANGUAGES), "en")
    return first[:2]


def page(request: Request, template: str, status: int = 200, /, **context: Any) -> HTMLResponse:
    """A page in the language of whoever asks."""
    language = language_of(request)

    def say(text: object, **parts: object) -> str:
        return translated(str(text), language, **parts)

    person = getattr(request.state, "person", None) or PUBLIC
    common = {
        "_": say,
        "language": language,
        "languages": LANGUAGES,
        "person": person,
        "may": lambda action, subject=None: allowed(person, Action[action], subject),
        "here": request.url.path,
        "version": version("defocus"),
        "waiting": len(desk_of(request).waiting_for(person)) if person.signed_in else 0,
    }
    return HTMLResponse(_TEMPLATES.get_template(template).render(**common | context), status)


def error_page(request: Request, status: int, error: DefocusError) -> Response:
    """A refusal as a page: what happened and how to mend it. Who has not signed in is asked to."""
    if isinstance(error, ForbiddenError) and status == 401 and request.method == "GET":
        return door(request, status, after=request.url.path)
    try:
        person_of(request)
    except DefocusError:  # the records cannot be reached
        request.state.person = PUBLIC
    return page(request, "error.html", status, status=status, what=error.what, fix=error.fix)


def door(request: Request, status: int = 200, *, after: str, name: str = "", problem: Any = None) -> HTMLResponse:
    """The page on which people sign in, to go on ``after`` that."""
    elsewhere = bool(desk_of(request).settings.oidc)
    return page(request, "sign_in.html", status, next=after, name=name, problem=problem, elsewhere=elsewhere)


def seen(request: Request, address: str) -> RedirectResponse:
    """Show another page after something was done here, so that loading it again does nothing twice."""
    del request
    return RedirectResponse(address, 303)


def local(address: str | None) -> str:
    """An address of this server to go to; the first page where it is not one."""
    if not address or not address.startswith("/") or address.startswith(("//", "/\\")) or urlsplit(address).netloc:
        return "/"
    return address


async def form_of(request: Request) -> AsyncIterator[FormData]:
    """What was sent by a form; a file in it is gone afterwards."""
    async with request.form(max_files=1, max_fields=4000) as form:
        yield form


Form = Annotated[FormData, Depends(form_of)]
"""What was sent by a form, for routes; after the person, so that nothing is read of who may not send it."""


def text_of(form: Mapping[str, Any], name: str, default: str = "") -> str:
    """One field of a form as text without blanks around it."""
    value = form.get(name, default)
    return value.strip() if isinstance(value, str) else default


def _number(value: float) -> str:
    """Two digits and more; the power of ten of what is tiny."""
    if value == float("inf"):
        return "∞"
    return f"{value:.2g}" if 0 < abs(value) < _TINY else brief(value)


def _left(value: float) -> str:
    """What is left, rounded down: nobody is promised more than there is."""
    return "∞" if value == float("inf") else at_most(value, 3)


def _percent(value: float) -> str:
    return f"{100 * value:.3g}\u00a0%"


def _when(time: str) -> str:
    return f"{time[:10]} {time[11:16]} UTC"


def _budget(budget: Budget) -> str:
    """A budget in its own words, such as epsilon 3, delta 1e-06."""
    amounts = {"epsilon": budget.epsilon, "rho": budget.rho, "mu": budget.mu, "delta": budget.delta or None}
    return ", ".join(f"{name} {float(amount):g}" for name, amount in amounts.items() if amount is not None)


_TEMPLATES.filters.update(
    budget=_budget,
    left=_left,
    number=_number,
    percent=_percent,
    when=_when,
    path=lambda text: quote(str(text), safe=""),
)
