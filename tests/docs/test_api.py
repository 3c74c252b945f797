"""docs/reference/api.md lists the public API: names, commands and schemas, each list as the code has it."""

from __future__ import annotations

import doctest
import inspect
import json
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import fuseflow as ff
from fuseflow.cli.main import main

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "example"


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading of the page, without its head."""
    text = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", text.partition(f"## {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table is not None, heading
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in table[0].splitlines()[2:]]


def test_names_of_python() -> None:
    names = [row[0] for row in rows("Python")]
    assert names == sorted(names, key=lambda name: (name[0].islower(), name)) and set(names) == set(ff.__all__)
    assert all(hasattr(ff, name) for name in names)


def commands(group: click.Group, prefix: str) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}"


def test_commands() -> None:
    assert [row[0] for row in rows("Commands")] == sorted(commands(main, "fuseflow"))


def invoke(*words: str) -> None:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """The schema of each document that commands write of a small program."""
    folder = tmp_path_factory.mktemp("documents")
    program = (str(EXAMPLE / "spmm.ein"), "--tensors", str(EXAMPLE / "tensors.yaml"))
    invoke("run", *program, "-o", str(folder / "out"))
    paths = {name: folder / "out" / name for name in ("about.json", "result.json")}
    (paths["region.json"],) = (folder / "out").glob("*/region.json")
    paths["sampled.json"] = folder / "sampled.json"
    invoke("run", *program, "--sample", "100%", "--json", str(paths["sampled.json"]))
    for name, words in {
        "estimate": ("estimate",),
        "check of a model": ("check",),
        "explanation of cycles": ("explain", "cycles"),
        "explanation of fusion": ("explain", "fusion"),
        "explanation of an order": ("explain", "order"),
    }.items():
        paths[name] = folder / f"{name}.json"
        invoke(*words, *program, "--json", str(paths[name]))
    paths |= {"rows of a sparse model": folder / "rows.json", "sparsity.json": folder / "sparse" / "sparsity.json"}
    rule = ("--sparsify", "*.weight=magnitude:0.9:csr", "--json", str(folder / "rows.json"))
    invoke("sparsify", str(ROOT / "models" / "gcn.py"), *rule, "-o", str(folder / "sparse"))
    paths["explanation of a plan"] = folder / "plan.json"
    divided = ("--plan", str(EXAMPLE / "plan.yaml"), "--json", str(paths["explanation of a plan"]))
    invoke("explain", "plan", *program, *divided)
    paths["rows of what is needed"] = folder / "needed.json"
    invoke("propagate", *program, "--json", str(paths["rows of what is needed"]))
    schemas = {name: int(json.loads(path.read_text(encoding="utf-8"))["schema"]) for name, path in paths.items()}
    invoke("sweep", "run", str(EXAMPLE / "sweep.yaml"), "--store", str(folder / "sweep.sqlite"))
    with closing(sqlite3.connect(folder / "sweep.sqlite")) as store:
        return schemas | {"store of a sweep": store.execute("PRAGMA user_version").fetchone()[0]}


def test_schemas(documents: dict[str, int]) -> None:
    assert {row[0]: int(row[2]) for row in rows("JSON and other files")} == documents


def test_every_name_is_explained_with_an_example_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples of all names run in the folder of the checkout, as a reader would type them there."""
    monkeypatch.chdir(ROOT)
    for name in ff.__all__:
        value = getattr(ff, name)
        text = inspect.getdoc(value) or ""
        examples = doctest.DocTestParser().get_doctest(text, {"ff": ff, **_module_of(value)}, name, None, 0)
        assert examples.examples, f"`{name}` has no example"
        assert not any(example.options.get(doctest.SKIP) for example in examples.examples), name
        outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples)
        assert outcome.failed == 0, name


def _module_of(value: object) -> dict[str, object]:
    """The names that an example in the module of a value can use."""
    module = sys.modules.get(getattr(value, "__module__", ""), None)
    return {} if module is None else dict(vars(module))


def test_notebooks_import_nothing_else_of_the_package() -> None:
    for path in sorted((ROOT / "examples").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        lines = [line for cell in cells if cell["cell_type"] == "code" for line in "".join(cell["source"]).splitlines()]
        imports = {line for line in lines if re.match(r"\s*(import|from) fuseflow\b", line)}
        assert imports <= {"import fuseflow as ff"}, path.name
        used = {name for line in lines for name in re.findall(r"\bff\.(\w+)", line)}
        assert used <= set(ff.__all__), path.name
