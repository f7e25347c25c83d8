import importlib
import pkgutil

import defocus.mechanisms as room
from defocus.mechanisms import Grid, Laplace, Mechanism


def test_the_room_exports_everything_public_and_nothing_else() -> None:
    assert sorted(room.__all__) == room.__all__
    assert all(hasattr(room, name) for name in room.__all__)


def test_every_file_names_what_it_offers() -> None:
    for file in pkgutil.iter_modules(room.__path__, "defocus.mechanisms."):
        module = importlib.import_module(file.name)
        assert module.__doc__
        assert all(hasattr(module, name) for name in module.__all__)


def test_what_offers_less_is_no_mechanism() -> None:
    assert isinstance(Laplace(scale=1), Mechanism)
    assert not isinstance(Grid(1), Mechanism)
