"""Shared fixtures: golden texts, and random tests that repeat."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable
from pathlib import Path

import cheap_runs
import parser_forks
import pytest
import repeatable_draws  # noqa: F401 - it takes effect when it is imported
from hypothesis import settings

GOLDEN = Path(__file__).parent / "data" / "golden"

# In CI the same examples every time; elsewhere new ones in every run, failures with the blob that repeats them.
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("dev", deadline=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

cheap_runs.keep_bytecode()
cheap_runs.one_thread()

# A test imports its models: what an earlier run of other code kept must not stand in for that. Tests of the cache turn it on.
os.environ["FUSEFLOW_MODEL_CACHE_MB"] = "0"

parser_forks.fork_parsers()

# Whether kernels are compiled in a test or were before is no part of what a command prints.
logging.getLogger("fuseflow.native.kernel_library").setLevel(logging.WARNING)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/data/golden from what this run prints")
    parser.addoption(
        "--draws", type=int, help="how many programs, graphs or files a slow random test draws, in place of its own number"
    )
    parser.addoption("--first-draw", type=int, default=0, help="the first seed of a slow random test")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(0))


def pytest_collection_finish() -> None:
    cheap_runs.leave_what_is_loaded()
    cheap_runs.keep_the_list_of_operators()
    cheap_runs.prefer_the_engine()


@pytest.fixture(autouse=True)
def _no_lines_of_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search tells a pipe every few seconds how far it is. Which lines there are depends on the machine."""
    monkeypatch.setattr("fuseflow.cli.progress.LOG_SECONDS", math.inf)


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A directory of imports and cuts that all processes of this run of the tests share."""
    base = tmp_path_factory.getbasetemp()
    return (base if worker_id == "master" else base.parent) / "shared_cache"


@pytest.fixture
def kept_imports(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that were imported, and cuts that were chosen, stay for later tests, by their content. For tests of what comes after."""
    monkeypatch.setattr("fuseflow.private_store.cache_root", lambda: shared_cache)
    monkeypatch.setattr("fuseflow.private_store._limit", lambda: 1 << 30)


@pytest.fixture
def draws(request: pytest.FixtureRequest) -> Callable[[int], range]:
    """`draws(number)` has the seeds of a slow random test: this number of them, unless `--draws` names another, from `--first-draw` on."""
    first, asked = (request.config.getoption(option) for option in ("--first-draw", "--draws"))
    return lambda number: range(first, first + (asked or number))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)` compares `text` with the file tests/data/golden/`name`; `--update-golden` rewrites the file."""
    update = request.config.getoption("--update-golden")

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists():
            pytest.fail(f"no golden text tests/data/golden/{name}; look at the text, then write it with `pytest --update-golden`")
        expected = path.read_text(encoding="utf-8")
        assert text == expected, (
            f"differs from tests/data/golden/{name}; if that is right, rewrite it with `pytest --update-golden`"
        )

    return compare
