"""The graphs of `samml_graphs`, by name and one by one."""

from __future__ import annotations

import pytest
from samml_graphs import GRAPHS

from fuseflow.samml.nodes import Graph


@pytest.fixture(scope="session")
def graphs() -> dict[str, Graph]:
    return GRAPHS


@pytest.fixture(params=GRAPHS)
def graph(request: pytest.FixtureRequest) -> Graph:
    """Every graph in turn."""
    return GRAPHS[request.param]
