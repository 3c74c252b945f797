"""The processor seconds of every test, child processes included, one JSON line a test.

    PYTHONPATH=tests/support python -m pytest -p cpu_times --cpu-times FILE

Wall-clock times of a loaded machine say little; processor times can be compared. `tools/bench/suite.py` adds them up by folder.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-times", metavar="FILE", help="append the processor seconds of every test to FILE, as JSON lines")


def processor_seconds() -> float:
    """Of this process and of the children that it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


class CpuTimes:
    """Appends one line a test. Workers of xdist write to one file: a line is shorter than what one write keeps whole."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        wall, processor = time.perf_counter(), processor_seconds()
        outcome = yield
        line = {
            "test": item.nodeid,
            "processor": round(processor_seconds() - processor, 3),
            "wall": round(time.perf_counter() - wall, 3),
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return outcome


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--cpu-times")
    if path:
        config.pluginmanager.register(CpuTimes(Path(path).absolute()))
