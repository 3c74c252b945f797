"""The options that make a PyTorch model sparse on its way in."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fuseflow.cli.command import Command
from fuseflow.cli.common import FILE, with_options
from fuseflow.errors import UsageError

if TYPE_CHECKING:
    from fuseflow.sparsity.spec import SparseSpec


def sparsity_options(command: Command) -> Command:
    """Add the options of sparsity, and pass them on as `sparsity`: a spec, a directory of sparse weights, or None. `--print-sparsity`
    prints the spec and ends the command."""
    options = [
        click.option(
            "--sparsify",
            "texts",
            multiple=True,
            metavar="WEIGHT=RULE",
            help="Prune weights: '*.weight=magnitude:0.9:csr'; repeatable, the last match counts.",
        ),
        click.option(
            "--sparsity", "path", metavar="FILE", type=FILE, help="A YAML spec, or a directory that `fuseflow sparsify` wrote."
        ),
        click.option("--print-sparsity", is_flag=True, help="Print the spec, which `--sparsity` reads, and end."),
    ]

    @functools.wraps(command)
    def build(*args: Any, texts: tuple[str, ...], path: Path | None, print_sparsity: bool, **kwargs: Any) -> Any:
        sparsity = _sparsity(texts, path)
        if not print_sparsity:
            return command(*args, sparsity=sparsity, **kwargs)
        return click.echo(_printed(sparsity), nl=False)

    return with_options(options, build)  # type: ignore[return-value]


def _sparsity(texts: tuple[str, ...], path: Path | None) -> SparseSpec | Path | None:
    if not texts and path is None:
        return None
    from fuseflow.sparsity.spec import SparseSpec, parse_sparsify, read_spec  # commands on dense models do without

    if path is not None and path.is_dir():
        if texts:
            raise UsageError(
                f"`--sparsify` beside the directory `{path}`, which says what is sparse", hint="leave one of them out"
            )
        return path
    spec = SparseSpec() if path is None else read_spec(path)
    for text in texts:
        spec += parse_sparsify(text)
    return spec


def _printed(sparsity: SparseSpec | Path | None) -> str:
    from fuseflow.sparsity.spec import SPEC_FILE, read_spec

    if sparsity is None:
        return ""
    return (read_spec(sparsity / SPEC_FILE) if isinstance(sparsity, Path) else sparsity).to_yaml()
