"""The actions of the commands `fuseflow machines`, `fuseflow data` and `fuseflow ops`, which `cli/lists.py` declares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from textwrap import fill

from fuseflow.cli.common import JsonFile, parse_settings, print_lines, print_notices, print_pieces
from fuseflow.errors import UsageError
from fuseflow.filesystem.schemas import with_schema
from fuseflow.machine.files import load_machine, machine_names, machine_summaries
from fuseflow.memory.table_files import preset_names
from fuseflow.report.list_tables import preset_table
from fuseflow.yaml_text import write_yaml


def machines(name: str | None, settings: tuple[str, ...], json_file: JsonFile, quiet: bool) -> None:
    if name is not None:
        machine = load_machine(name, parse_settings(settings))
        described = {"name": machine.name, **machine.settings}
        json_file.write(lambda: {"schema": 1, "machine": described})
        if not (quiet and json_file.to_stdout):
            print_lines(json_file.console(), [with_schema("machine", write_yaml(described)).rstrip()])
        return
    if settings:
        raise UsageError("`--set` changes a machine, and none is named", hint="as in `fuseflow machines rda --set fifo_depth=16`")
    json_file.write(lambda: {"schema": 1, "machines": machine_summaries(), "memories": list(preset_names())})
    if quiet:
        _print_names(json_file, machine_names())
    else:
        out = json_file.console()
        listed = (f"{shipped:6} {summary}" for shipped, summary in machine_summaries().items())
        print_lines(out, (fill(line, out.width, subsequent_indent=" " * 7, break_on_hyphens=False) for line in listed))
        print_pieces(out, ["", preset_table()])


def data(spec: str | None, data_dir: Path | None, seed: int, json_file: JsonFile, quiet: bool) -> None:
    # Machines and operators are listed without these, which load SciPy.
    from fuseflow.frontend.data import data_sizes, list_data, load_data
    from fuseflow.report.list_tables import data_table, file_lines, size_lines

    if spec is not None:
        sizes = data_sizes(load_data(spec, data_dir, seed))
        json_file.write(lambda: {"schema": 1, **asdict(sizes)})
        if not quiet:
            print_lines(json_file.console(), size_lines(sizes))
            print_notices(json_file.console(), sizes.notices)
        return
    if data_dir is not None and not data_dir.is_dir():
        raise UsageError(f"no directory `{data_dir}`", hint="`--data-dir` is where the files of data sets are")
    entries = list(list_data(data_dir))
    json_file.write(lambda: {"schema": 1, "data": [entry.to_json() for entry in entries]})
    if quiet:
        return _print_names(json_file, [entry.spec for entry in entries])
    out = json_file.console()
    looked = f"in `{data_dir}`" if data_dir is not None else "where --data-dir says"
    print_pieces(out, [data_table(entries), f"\nfiles, looked for {looked}:"])
    print_lines(out, [*file_lines(entries), ""])
    print_lines(out, ["without --data, a model takes what its file calls DATA, or else karate"])
    print_lines(out, ["`fuseflow data SPEC` says how large data are"])


def ops(json_file: JsonFile, quiet: bool) -> None:
    # These take a while to load, and machines are listed without.
    from fuseflow.ops import OPERATORS, REDUCERS
    from fuseflow.report.tables import operator_table, operators_json, reducer_table

    json_file.write(operators_json)
    if quiet:
        _print_names(json_file, [*OPERATORS, *REDUCERS])
    else:
        print_pieces(json_file.console(), [operator_table(), "", reducer_table()])


def _print_names(json_file: JsonFile, names: Iterable[str]) -> None:
    """Print the names in a list, one a line, unless they stand in the JSON on standard output."""
    print_lines(json_file.console(), () if json_file.to_stdout else names)
