"""One profile for every property test, and one PostgreSQL, one MariaDB and one Spark for all tests of a session.

The same examples on every run, and no deadline on shared machines; explore with more and other examples by
``pytest --hypothesis-profile=explore``. Each worker of a parallel run has a server of its own.
"""

import atexit
import gc
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from tests import mariadb as mariadb_server
from tests import postgresql
from tests.cases import cases_of_tests, left_out_of
from tests.repeatable import Repeatable

from defocus.engines.spark.sessions import find_java, pyspark

settings.register_profile("steady", derandomize=True, deadline=None, print_blob=False, max_examples=50)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("steady")
# Numbers and words of our own sources are tried as well, of whatever was imported so far: that depends on which tests
# a worker took before, and examples are to be the same on every run.
providers._get_local_constants = lambda: providers._local_constants  # which is empty


MEMORY = Path("/dev/shm")  # noqa: S108  # folders below it are made by tempfile
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)  # ledgers wait for the disk many times in each test


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--salt", type=int, default=0, help="draw another noise in every test that gives no bits")
    parser.addoption("--cases", type=int, help="of tests with more cases, try so many: some from all over the list")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Repeatable(config.getoption("salt")))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from modules and test items: two million objects that live to the end."""
    gc.disable()
    result = yield
    gc.freeze()
    atexit.register(gc.unfreeze)
    gc.enable()
    return result


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what needs Spark, then with what is slow, so that workers who share the rest end together.

    Workers start with equal parts of the list and take work from the end of each other's, so one Spark is enough.
    """
    if (most := config.getoption("--cases")) is not None:
        left_out = [item for cases in cases_of_tests(items) for item in left_out_of(cases, most)]
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
    items.sort(key=lambda item: (not on_spark(item), item.get_closest_marker("slow") is None))


def on_spark(item: pytest.Item) -> bool:
    """Whether a test takes Spark, or is one of several that are the same for each engine."""
    given = item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    return "spark" in getattr(item, "fixturenames", ()) or any(one == "spark" for one in given if isinstance(one, str))


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also where tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a PostgreSQL server that lives as long as the test session."""
    with postgresql.running() as (address, _):
        yield address


@pytest.fixture(scope="session")
def mariadb() -> Iterator[str]:
    """The address of a MariaDB server that lives as long as the test session."""
    with mariadb_server.running() as address:
        yield address


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A Spark session on two cores of this machine that lives as long as the test session."""
    find_java()
    home = Path(tempfile.mkdtemp(prefix="defocus-spark-"))
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # small tables, few cores
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home / "local"),
    }
    builder = pyspark().SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
    shutil.rmtree(home, ignore_errors=True)
