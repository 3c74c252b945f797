"""The action of the command `fuseflow sparsify`, which `cli/sparsify.py` declares."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuseflow.cli.common import print_notices, refuse_inside, require_replaceable
from fuseflow.cli.json_file import JsonFile
from fuseflow.cli.progress import following
from fuseflow.errors import UsageError
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.report.sparsity_tables import sparsity_table
from fuseflow.report.tables import print_table

if TYPE_CHECKING:
    from fuseflow.sparsity.summary import SummaryRow


SCHEMA = 1
"""The version of the JSON that this command writes."""


def sparsify(spec: ModelSpec, output: Path | None, json_file: JsonFile, quiet: bool) -> None:
    from fuseflow.sparsity.spec import MANIFEST

    if output is not None:
        require_replaceable(output, MANIFEST)
    refuse_inside(output, json=json_file.path)
    with following("pruning", quiet):
        rows, notices = _rows(spec, output)
    json_file.write(lambda: {"schema": SCHEMA, "model": str(spec.model), "tensors": [row.to_json() for row in rows]})
    if not quiet:
        out = json_file.console()
        print_table(out, sparsity_table(rows))
        print_notices(out, notices)


def _rows(spec: ModelSpec, output: Path | None) -> tuple[list[SummaryRow], list[str]]:
    """Return the rows of a model, and notices. Write its sparse weights to a directory, if one is named."""
    from fuseflow.frontend.sources import (
        load_module,  # what follows loads PyTorch
        sparsified,
    )
    from fuseflow.sparsity.saved import save_sparsity
    from fuseflow.sparsity.state import sparse_weights, sparsity_of
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
