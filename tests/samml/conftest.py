"""The graphs of `graphs.py`, by name and one by one."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from fuseflow.samml.nodes import Graph


def _graphs() -> dict[str, Graph]:
    spec = spec_from_file_location("samml_graphs", Path(__file__).with_name("graphs.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return dict(module.GRAPHS)


GRAPHS = _graphs()


@pytest.fixture(scope="session")
def graphs() -> dict[str, Graph]:
    return GRAPHS


@pytest.fixture(params=GRAPHS)
def graph(request: pytest.FixtureRequest) -> Graph:
    """Every graph in turn."""
    return GRAPHS[request.param]
