"""The pages of the server: HTML made here, which works without scripts; a small script makes it quicker."""

from pathlib import Path

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from defocus.server.pages import accounts, asking, publishing, stewarding
from defocus.server.pages.rendering import error_page

__all__ = ["add_pages"]


def add_pages(app: FastAPI) -> None:
    """Give an application its pages, and pages instead of problem documents for people."""
    for each in (accounts, asking, publishing, stewarding):
        app.include_router(each.router)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    app.state.page_of_error = error_page
