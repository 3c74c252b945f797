"""The options of a model, its data, its build and its sparsity, and the completion of options by names of the model."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from fuseflow.cli.command import Command, options_of
from fuseflow.cli.common import FILE, completed, data_option, with_options
from fuseflow.errors import UsageError
from fuseflow.frontend.datasets.spec_options import ADJACENCIES, split_spec

if TYPE_CHECKING:
    from fuseflow.frontend.import_cache.entry import ProgramNames
    from fuseflow.frontend.model_spec import ModelSpec
    from fuseflow.schedule.section import Completion
    from fuseflow.sparsity.spec import SparseSpec

sparsity_option = options_of("Sparsity")
DATA_DIR = data_option("--data-dir", metavar="DIR", type=FILE, help="Where the files of a data set are.")
SEED = data_option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Of random numbers.")

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
        data_option(
            "--data",
            metavar="SPEC",
            shell_complete=completed(_dataset_names),
            help="Data of a model file: graph.mtx, karate, cora[:nodes=N], synthetic:dblp, random:nodes=N,...",
        ),
        data_option(
            "--adj", type=click.Choice(ADJACENCIES), help="Short for adj= in --data: normalized with self loops, or raw."
        ),
        DATA_DIR,
        data_option("--tensors", metavar="FILE", type=FILE, help="YAML that names the inputs of a program."),
        data_option(
            "-O",
            "--option",
            "option_texts",
            multiple=True,
            metavar="KEY=VALUE",
            help="An option of a model file's build; repeatable.",
        ),
        data_option(
            "--dim",
            "dim_texts",
            multiple=True,
            metavar="INPUT.AXIS=SIZE",
            help="The size of a dynamic dimension of a .pt2 file, as in x.0=7; repeatable.",
        ),
        data_option("--small", is_flag=True, help="Short for -O small=true: a size that runs in seconds."),
        data_option("--part", metavar="NAME", help="Short for -O part=NAME: a part of the model alone."),
        data_option("--fresh", is_flag=True, help="Import the model file again, even if nothing that it depends on changed."),
        SEED,
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


def sparsity_options(command: Command) -> Command:
    """Add the options of sparsity, and pass them on as `sparsity`: a spec, a directory of sparse weights, or None. `--print-sparsity`
    prints the spec and ends the command."""
    options = [
        sparsity_option(
            "--sparsify",
            "texts",
            multiple=True,
            metavar="WEIGHT=RULE",
            help="Prune weights: '*.weight=magnitude:0.9:csr'; repeatable, the last match counts.",
        ),
        sparsity_option(
            "--sparsity", "path", metavar="FILE", type=FILE, help="A YAML spec, or a directory that `fuseflow sparsify` wrote."
        ),
        sparsity_option("--print-sparsity", is_flag=True, help="Print the spec, which `--sparsity` reads, and end."),
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


def names_of_model(which: Completion, end: str = "", others: tuple[str, ...] = ()) -> Callable[..., list[CompletionItem]]:
    """Return a function that completes an option by names of the model on the command line, each with an `end` such as `=`, and
    by `others`. `which` is the kind of names.

    The names come from a program text, or from the import that the cache kept. A model that was never imported has none.
    """

    def complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        names = _names(context)
        known = {"parts": (*names.modules, *names.einsums), "tensors": names.tensors, "indices": names.indices, "": ()}
        words = (*others, *(name + end for name in known[which]))
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]

    return complete


def trained(spec: ModelSpec, chosen: Mapping[str, Any]) -> ModelSpec:
    """Return the spec of a model, or of its training step if the options of one ask for it; `chosen` has their values by the names of
    their parameters."""
    if not chosen.get("train"):
        return spec
    from fuseflow.frontend.model_spec import TrainingRequest  # `--help` does without

    return replace(spec, training=TrainingRequest(chosen["loss"], chosen["optimizer"], gradients=chosen["gradients"]))


def _names(context: click.Context) -> ProgramNames:
    from fuseflow.frontend.import_cache.entry import ProgramNames, program_names

    try:
        chosen = context.params
        spec = replace(model_spec(chosen), sparsity=_sparsity(chosen.get("texts", ()), chosen.get("path")))
        return program_names(trained(spec, chosen))
    except Exception:  # a line that is not finished may hold anything, and a message would stand in the middle of it
        return ProgramNames()
