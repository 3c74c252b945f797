"""The options of a model, its data and its build."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fuseflow.cli.command import Command
from fuseflow.cli.common import FILE, completed, with_options
from fuseflow.cli.sparsity_options import sparsity_options
from fuseflow.errors import UsageError
from fuseflow.frontend.datasets.spec_options import ADJACENCIES, split_spec

if TYPE_CHECKING:
    from fuseflow.frontend.model_spec import ModelSpec
    from fuseflow.sparsity.spec import SparseSpec
PARAMETERS = (
    "model", "data", "adj", "data_dir", "tensors", "option_texts", "dim_texts", "small", "part", "fresh", "seed",
)  # fmt: skip
"""The names of the parameters that say which model is meant."""


def _dataset_names() -> tuple[str, ...]:
    from fuseflow.frontend.data import DATASET_NAMES  # loads scipy

    return DATASET_NAMES


def model_options(command: Command) -> Command:
    """Add MODEL and the options of its data and its build, and pass them on as `spec`, a `ModelSpec`."""
    options = [
        click.argument("model", type=FILE),
        click.option(
            "--data",
            metavar="SPEC",
            shell_complete=completed(_dataset_names),
            help="Data of a model file: graph.mtx, karate, cora[:nodes=N], synthetic:dblp, random:nodes=N,...",
        ),
        click.option(
            "--adj", type=click.Choice(ADJACENCIES), help="Short for adj= in --data: normalized with self loops, or raw."
        ),
        click.option("--data-dir", metavar="DIR", type=FILE, help="Where the files of a data set are."),
        click.option("--tensors", metavar="FILE", type=FILE, help="YAML that names the inputs of a program."),
        click.option(
            "-O",
            "--option",
            "option_texts",
            multiple=True,
            metavar="KEY=VALUE",
            help="An option of a model file's build; repeatable.",
        ),
        click.option(
            "--dim",
            "dim_texts",
            multiple=True,
            metavar="INPUT.AXIS=SIZE",
            help="The size of a dynamic dimension of a .pt2 file, as in x.0=7; repeatable.",
        ),
        click.option("--small", is_flag=True, help="Short for -O small=true: a size that runs in seconds."),
        click.option("--part", metavar="NAME", help="Short for -O part=NAME: a part of the model alone."),
        click.option("--fresh", is_flag=True, help="Import the model file again, even if nothing that it depends on changed."),
        click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Of random numbers."),
    ]

    @functools.wraps(command)
    def build(*args: Any, sparsity: SparseSpec | Path | None, **kwargs: Any) -> Any:
        chosen = {name: kwargs.pop(name) for name in PARAMETERS}
        return command(*args, spec=replace(model_spec(chosen), sparsity=sparsity), **kwargs)

    return with_options(options, sparsity_options(build))  # type: ignore[return-value]


def model_spec(chosen: Mapping[str, Any]) -> ModelSpec:
    """Return the model that options name; `chosen` has their values by the names of their parameters. Raises `UsageError` for bad texts."""
    from fuseflow.frontend.model_spec import ModelSpec  # `--help` does without

    short = [("--small", "small=true")] * bool(chosen["small"])
    short += [("--part", f"part={chosen['part']}")] * (chosen["part"] is not None)
    return ModelSpec(
        chosen["model"],
        data=_with_adjacency(chosen["data"], chosen["adj"]),
        data_dir=chosen["data_dir"],
        tensors=chosen["tensors"],
        options=_model_options([*short, *(("-O", text) for text in chosen["option_texts"])]),
        seed=chosen["seed"],
        fresh=chosen["fresh"],
        dims=_dims(chosen["dim_texts"]),
    )


def _with_adjacency(data: str | None, adj: str | None) -> str | None:
    """Return a data spec with the adjacency added. Without a spec, the adjacency is added to the default data."""
    if adj is None:
        return data
    return f"{data or ''}{':' if split_spec(data or '')[1] is None else ','}adj={adj}"


def _model_options(texts: list[tuple[str, str]]) -> dict[str, str]:
    """Return the names of options with their values as text. Raises `UsageError` for a malformed or repeated one."""
    values: dict[str, str] = {}
    for flag, text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise UsageError(f"`-O {text}` is not KEY=VALUE", hint=f"as in `-O {key or 'small'}=true`")
        if key in values:
            raise UsageError(f"the model option `{key}` is given twice", hint=f"keep one of `{flag}` and the other")
        values[key] = value
    return values


def _dims(texts: tuple[str, ...]) -> dict[str, int]:
    """Return the sizes of dimensions by input and axis. Raises `UsageError` for a malformed or repeated one."""
    sizes: dict[str, int] = {}
    for text in texts:
        place, _, size = text.partition("=")
        if "." not in place or not size.isdecimal():
            raise UsageError(f"`--dim {text}` is not INPUT.AXIS=SIZE", hint="as in `--dim x.0=7`")
        if place in sizes:
            raise UsageError(f"`--dim {place}` is given twice")
        sizes[place] = int(size)
    return sizes
