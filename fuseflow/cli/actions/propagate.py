"""The action of the command `fuseflow propagate`, which `cli/propagate.py` declares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuseflow.cli.common import print_notices
from fuseflow.cli.json_file import JsonFile
from fuseflow.cli.progress import following
from fuseflow.errors import FrontendError, UsageError
from fuseflow.frontend.factory import Factory
from fuseflow.frontend.model_spec import ModelSpec, PropagationSpec
from fuseflow.frontend.source import propagated
from fuseflow.frontend.sources import load
from fuseflow.propagation.rows import AttributeRow
from fuseflow.report.attribute_tables import attribute_table
from fuseflow.report.tables import print_table

SCHEMA = 1
"""The version of the JSON that this command writes."""


def propagate(
    spec: ModelSpec, knowledge: PropagationSpec, graph: bool, all_tensors: bool, json_file: JsonFile, quiet: bool
) -> None:
    with following("analysing", quiet):
        rows, form, notices = _graph_rows(spec, knowledge, []) if graph else _rows(spec, knowledge)
    values = {"schema": SCHEMA, "model": str(spec.model), "form": form, "tensors": [row.to_json() for row in rows]}
    json_file.write(lambda: values)
    if not quiet:
        out = json_file.console()
        print_table(out, attribute_table(rows if all_tensors else [row for row in rows if row.kind == "constant"]))
        print_notices(out, notices)


def _rows(spec: ModelSpec, knowledge: PropagationSpec) -> tuple[Sequence[AttributeRow], str, list[str]]:
    """Return the rows of a model, whether Einsums or a graph of operators were analysed, by name, and notices."""
    try:
        source = load(spec)
    except FrontendError as error:
        if Factory.parse(str(spec.model)) is None:
            raise
        return _graph_rows(spec, knowledge, [f"the graph of PyTorch operators was analysed: {error.message}"])
    simpler = propagated(source, knowledge)
    assert simpler.simplified is not None
    return simpler.simplified.rows, "einsum", list(simpler.notices)


def _graph_rows(spec: ModelSpec, knowledge: PropagationSpec, notices: list[str]) -> tuple[Sequence[AttributeRow], str, list[str]]:
    if knowledge.fixed:
        raise UsageError("`--fixed` is of Einsum programs", hint="inputs of a graph of PyTorch operators are unknown")
    if knowledge.constants:
        raise UsageError(
            "`--constants` is of Einsum programs", hint="a graph of PyTorch operators knows its buffers, scales and shifts"
        )
    from fuseflow.frontend.lifting import analyse_module  # it loads PyTorch
    from fuseflow.frontend.sources import load_module, sparsified

    loaded = load_module(spec)
    module: Any = loaded.module
    with sparsified(module, spec, owned=True) as sparse:
        analysis = analyse_module(sparse, loaded.inputs)
    notices = [*notices, *([loaded.notice] if loaded.notice else []), *map(str, analysis.guesses)]
    return analysis.rows, "graph", notices
