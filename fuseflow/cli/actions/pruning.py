"""The actions of the commands `fuseflow sparsify` and `fuseflow propagate`, which `cli/pruning.py` declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuseflow.cli.common import JsonFile, print_notices, refuse_inside, require_replaceable
from fuseflow.cli.progress import following
from fuseflow.errors import FrontendError, UsageError
from fuseflow.frontend.factory import Factory
from fuseflow.frontend.imported_program import propagated
from fuseflow.frontend.model_spec import ModelSpec, PropagationSpec
from fuseflow.frontend.sources import load
from fuseflow.propagation.attribute_table import AttributeRow
from fuseflow.report.sparsity_tables import attribute_table, sparsity_table
from fuseflow.report.table_width import print_table

if TYPE_CHECKING:
    from fuseflow.sparsity.summary import SummaryRow


def sparsify(spec: ModelSpec, output: Path | None, json_file: JsonFile, quiet: bool) -> None:
    from fuseflow.sparsity.spec import MANIFEST

    if output is not None:
        require_replaceable(output, MANIFEST)
    refuse_inside(output, json=json_file.path)
    with following("pruning", quiet):
        rows, notices = _pruned_rows(spec, output)
    json_file.write(lambda: {"schema": 1, "model": str(spec.model), "tensors": [row.to_json() for row in rows]})
    if not quiet:
        out = json_file.console()
        print_table(out, sparsity_table(rows))
        print_notices(out, notices)


def _pruned_rows(spec: ModelSpec, output: Path | None) -> tuple[list[SummaryRow], list[str]]:
    """Return the rows of a model, and notices. Write its sparse weights to a directory, if one is named."""
    from fuseflow.frontend.sources import (
        load_module,  # what follows loads PyTorch
        sparsified,
    )
    from fuseflow.sparsity.model_sparsity import sparse_weights, sparsity_of
    from fuseflow.sparsity.saved import save_sparsity
    from fuseflow.sparsity.summary import intermediate_rows, weight_rows
    from fuseflow.sparsity.weights import dense_values

    loaded = load_module(spec)
    module: Any = loaded.module
    sparse_before = {name for name, _, _ in sparse_weights(module)}
    dense = {name: dense_values(p).clone() for name, p in module.named_parameters() if name not in sparse_before}
    with sparsified(module, spec, owned=True) as sparse:
        rows = weight_rows(dense, sparse)
        inputs = loaded.inputs
        args, kwargs = ((), inputs) if isinstance(inputs, Mapping) else (inputs, {})
        if not rows and sparsity_of(sparse) is None:
            raise UsageError("nothing is said to be sparse", hint="as in `--sparsify '*.weight=magnitude:0.9:csr'`")
        rows += intermediate_rows(sparse, args, kwargs)
        if output is not None:
            save_sparsity(sparse, output)
    return rows, [loaded.notice] if loaded.notice else []


def propagate(
    spec: ModelSpec, knowledge: PropagationSpec, graph: bool, all_tensors: bool, json_file: JsonFile, quiet: bool
) -> None:
    with following("analysing", quiet):
        rows, form, notices = _graph_rows(spec, knowledge, []) if graph else _rows(spec, knowledge)
    values = {"schema": 1, "model": str(spec.model), "form": form, "tensors": [row.to_json() for row in rows]}
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
    from fuseflow.frontend.model_propagation import analyse_module  # it loads PyTorch
    from fuseflow.frontend.sources import load_module, sparsified

    loaded = load_module(spec)
    module: Any = loaded.module
    with sparsified(module, spec, owned=True) as sparse:
        analysis = analyse_module(sparse, loaded.inputs)
    notices = [*notices, *([loaded.notice] if loaded.notice else []), *map(str, analysis.guesses)]
    return analysis.rows, "graph", notices
