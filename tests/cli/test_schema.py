"""`fuseflow schema` prints the JSON schemas of YAML files, and files that are written name theirs."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result
from ruamel.yaml import YAML

from fuseflow.cli.main import main
from fuseflow.filesystem.schemas import KINDS, schema_file, with_schema
from fuseflow.interface import schemas as made
from fuseflow.machine.files import named_machines
from fuseflow.schedule import Schedule

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"
SPMM = (str(EXAMPLE / "spmm.ein"), "--tensors", str(EXAMPLE / "tensors.yaml"))


def fuseflow(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def is_valid(kind: str, text: str) -> bool:
    schema = json.loads(fuseflow("schema", kind).stdout)
    return jsonschema.Draft202012Validator(schema).is_valid(YAML(typ="safe", pure=True).load(text))


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_printed_and_written(kind: str, tmp_path: Path) -> None:
    printed = fuseflow("schema", kind)
    assert printed.exit_code == 0 and printed.stdout == made.schema_text(kind)
    assert fuseflow("schema", kind, "-o", tmp_path / schema_file(kind)).stdout == ""
    assert (tmp_path / schema_file(kind)).read_text(encoding="utf-8") == printed.stdout
    assert tuple(made.KINDS) == KINDS


def test_an_unknown_kind_is_told_the_kinds() -> None:
    result = fuseflow("schema", "schedul")
    assert result.exit_code == 2 and "schedule" in result.stderr


@pytest.mark.parametrize("name", named_machines())
def test_machines_are_printed_with_their_schema_and_fit_it(name: str) -> None:
    text = fuseflow("machines", name).stdout
    assert text.startswith("# yaml-language-server: $schema=machine.schema.json\n") and is_valid("machine", text)
    assert not is_valid("machine", text + "fifo_deepth: 4\n")


def test_a_chosen_schedule_names_its_schema_and_fits_it(tmp_path: Path) -> None:
    words = ("schedule", *SPMM, "--budget", "mul=4", "--top", "0", "--no-store", "-q", "-o", tmp_path / "s.yaml")
    assert fuseflow(*words).exit_code == 0
    text = (tmp_path / "s.yaml").read_text(encoding="utf-8")
    assert text == with_schema("schedule", Schedule.from_yaml(text).to_yaml()) and is_valid("schedule", text)
