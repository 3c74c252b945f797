"""What this tree computes, as lines of text, so that two trees can be compared: a change of form must not change a line.

    python tools/behaviour.py -o FILE --models [--only 'run/gcn/*'] [--jobs 2]
    python tools/behaviour.py -o FILE --programs 5000 [--seed 0] [--jobs 2]
    python tools/behaviour.py -o FILE --graphs 20000 [--seed 0] [--jobs 2]
    python tools/behaviour.py --compare BEFORE AFTER [--common]

Each line is a key, a tab and a value. FILE grows while the command runs and is sorted at its end.

Models: the command line is called for every model at its small size, at three granularities of fusion and on every machine, and for a
smaller choice of blocks, lanes, options, explanations, estimates and mistakes. A line is the hash of one artifact or of what was printed.
`graph.mlir` has keys of its own, which begin with `mlir/`. Masked are the values of `seconds` and `versions` in JSON, the directory of
this tree and the directory that the command writes to; of an `.npz` file the arrays are hashed, since its bytes hold the time.

Programs and graphs: those that `tools/fuzz.py` draws from the same seeds, except that numbers and names in the sources of the repository
have no part in the drawing (Hypothesis likes to try the constants that it reads there). What is drawn from a seed depends on how many are,
so compare whole hundreds. `drawn` is the case; the other lines are what
became of it: a refusal with its text, or cycles and the hashes of the graph, the statistics, the outputs and the streams. The reference
simulator says them; that the engine says the same is checked each time, and is part of the line.

This file imports nothing of `fuseflow` by the path of a module but its command line, and of tests/support only what draws and checks
cases: so it runs unchanged in a tree whose modules have moved. Compare exits with 1 if a key differs, or is missing in one file; with
`--common` only keys that both have count, as of a record that is not complete yet, and there must be some.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
import time
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, is_dataclass
from fnmatch import fnmatchcase
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import click
import numpy as np
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import engines
import graph_fuzz
import program_fuzz
import program_levels
from hypothesis.internal.conjecture import providers
from random_graphs.case import Case, describe

import fuseflow as ff
from fuseflow.cli.main import main as command_line

ROOT = Path(__file__).resolve().parents[1]
CHUNK = program_fuzz.CHUNK
"""Programs of a seed, and graphs that a process takes at a time."""
PROGRESS = 5.0
"""Seconds between two lines of progress."""
SHOWN = 40
"""Differences that are printed in full."""

Line = tuple[str, str]
Work = tuple[str, tuple[Any, ...]]


@click.command(help=__doc__.partition("\n")[0])
@click.option("--models", is_flag=True, help="the models of the repository, by the command line")
@click.option("--only", default="*", show_default=True, metavar="PATTERN", help="models: keys of the calls to make")
@click.option("--programs", type=click.IntRange(1), help="how many random programs")
@click.option("--graphs", type=click.IntRange(1), help="how many random graphs")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help=f"of the first graph, or {CHUNK} programs")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="processes")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="where the lines are written")
@click.option("--compare", nargs=2, type=click.Path(exists=True, dir_okay=False, path_type=Path), help="two such files")
@click.option("--common", is_flag=True, help="compare: keys that both files have, no others")
def main(
    models: bool,
    only: str,
    programs: int | None,
    graphs: int | None,
    seed: int,
    jobs: int,
    output: Path | None,
    compare: tuple[Path, Path] | None,
    common: bool,
) -> None:
    if compare is not None:
        sys.exit(print_differences(*compare, common))
    if output is None:
        raise click.UsageError("name the file to write with --output, or two files with --compare")
    if ROOT not in Path(ff.__file__).parents:
        raise click.UsageError(f"{ff.__file__} is not of this tree: call this file by another interpreter or PYTHONPATH")
    work: list[Work] = [("models", (key,)) for key in CALLS if fnmatchcase(key, only)] if models else []
    work += [("programs", chunk) for chunk in chunks(programs or 0, seed, 1)]
    work += [("graphs", chunk) for chunk in chunks(graphs or 0, seed, CHUNK)]
    record(work, jobs, output)


def chunks(count: int, seed: int, step: int) -> list[tuple[int, int]]:
    """The first seed of each piece of the work, and how many cases it has."""
    return [(seed + n * step, min(CHUNK, count - n * CHUNK)) for n in range(-(-count // CHUNK))]


def record(work: list[Work], jobs: int, output: Path) -> None:
    start = last = time.monotonic()
    lines: list[Line] = []
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("w", encoding="utf-8") as file, ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for done, made in enumerate(pool.map(lines_of, work), 1):
            lines += made
            file.writelines(f"{key}\t{value}\n" for key, value in made)
            file.flush()
            if time.monotonic() - last > PROGRESS or done == len(work):
                last = time.monotonic()
                click.echo(f"{done:,} of {len(work):,} pieces, {len(lines):,} lines, {last - start:.0f} s", err=True)
    output.write_text("".join(f"{key}\t{value}\n" for key, value in sorted(lines)), encoding="utf-8")


def lines_of(work: Work) -> list[Line]:
    section, arguments = work
    return list(SECTIONS[section](*arguments))


# Comparison -------------------------------------------------------------------------------------------------------------------


def print_differences(before: Path, after: Path, common: bool) -> bool:
    """Whether two files differ in any key, or of those that are common to both."""
    a, b = read(before), read(after)
    differing = [key for key in a if key in b and a[key] != b[key]]
    for key in differing[:SHOWN]:
        click.echo(f"{key}\n  {a[key]}\n  {b[key]}")
    words = Counter(word for key in differing for word in differing_words(a[key], b[key]))
    for word, count in words.most_common():
        click.echo(f"{count:,} lines differ in {word}")
    for path, missing in ((before, b.keys() - a.keys()), (after, a.keys() - b.keys())):
        if missing:
            click.echo(f"{len(missing):,} keys are missing in {path}, as {', '.join(sorted(missing)[:5])}")
    click.echo(f"{len(a.keys() & b.keys()):,} keys are in both, {len(differing):,} of them differ")
    return bool(differing) or (a.keys().isdisjoint(b) if common else a.keys() != b.keys())


def read(path: Path) -> dict[str, str]:
    """The values by key; a last line without its end is of a run that goes on."""
    lines = (line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n"))
    return dict(line.rstrip("\n").split("\t", 1) for line in lines)


def differing_words(a: str, b: str) -> list[str]:
    """The names of the parts of a value that differ: `cycles` of `cycles=12 graph=3f`. A value without parts is one part."""
    parts = [dict(word.partition("=")[::2] for word in value.split() if "=" in word) for value in (a, b)]
    names = [name for name in parts[0] | parts[1] if parts[0].get(name) != parts[1].get(name)]
    return names or ["the value"]


# Digests ----------------------------------------------------------------------------------------------------------------------


def digest(content: str | bytes) -> str:
    return hashlib.sha256(content if isinstance(content, bytes) else content.encode()).hexdigest()[:24]


def digest_of(value: object) -> str:
    return digest(json.dumps(plain(value), separators=(",", ":")))


def plain(value: object) -> Any:
    """A value as lists and text. Classes and fields have no names in it, since they may be called otherwise in another tree; an empty
    field or one without a value is left out."""
    match value:
        case None | bool() | str():
            return value
        case int() | np.integer():
            return str(int(value))
        case float() | np.floating():
            return float(value).hex() if math.isfinite(value) else repr(float(value))
        case np.ndarray():
            numbers = value.astype(np.int64 if value.dtype.kind in "bui" else np.float64)
            return [list(value.shape), [plain(number) for number in numbers.reshape(-1).tolist()]]
        case array():
            return plain(np.asarray(value))
        case Mapping():
            return sorted(([plain(key), plain(entry)] for key, entry in value.items()), key=repr)
        case list() | tuple():
            return [plain(entry) for entry in value]
    if is_dataclass(value):
        return [plain(entry) for entry in (getattr(value, f.name) for f in fields(value)) if not is_empty(entry)]
    return repr(value)


def is_empty(value: object) -> bool:
    return value is None or (isinstance(value, Mapping | list | tuple) and not value)


def parts(**named: object) -> str:
    """Numbers as they are, the hashes of all else."""
    return " ".join(f"{k}={v if isinstance(v, int) else digest_of(v)}" for k, v in named.items())


def outcome_parts(outcome: Any) -> dict[str, object]:
    """What a simulator says of a run that came to its end."""
    names = ("cycles", "nodes", "edges", "tokens", "values", "elements", "memory", "written", "streams")
    return {name: getattr(outcome, name) for name in names}


def text_of(graph: Any, tensors: Any, machine: Any) -> str:
    """A graph with its tensors and machine as text, without the lines that import modules."""
    return describe(Case(graph, tensors, machine)).partition("GRAPH = ")[2]


# Models -----------------------------------------------------------------------------------------------------------------------

MODELS = {
    "gcn": ("models/gcn.py", "--small", "--data", "karate"),
    "gcn_pyg": ("models/gcn_pyg.py", "--small", "--data", "karate:nodes=12"),
    "graphsage": ("models/graphsage.py", "--small", "--data", "karate:nodes=12"),
    "sae": ("models/sae.py", "--small"),
    "gpt_bigbird": ("models/gpt_bigbird.py", "--small"),
    "attention": ("models/gpt_bigbird.py", "--small", "--part", "attention"),
    "paper_gcn": ("models/paper/gcn.py", "--small", "--data", "karate"),
    "paper_graphsage": ("models/paper/graphsage.py", "--small", "--data", "karate"),
    "paper_sae": ("models/paper/sae.py", "--small"),
    "paper_gpt": ("models/paper/gpt.py", "--small"),
}
FUSED = ("none", "layerwise", "full")
MACHINES = ("ideal", "comal", "rda")
FEW = {
    "gcn": (*MODELS["gcn"][:-1], "karate:nodes=12"),
    "graphsage": MODELS["graphsage"],
    "sae": MODELS["sae"],
    "decoder": ("models/gpt_bigbird.py", "--part", "decoder", "--small", "--data", "bigbird:block=2,length=8,features=4"),
}
"""Models that are small enough for many calls."""
BLOCKS = {
    "gcn": ("adj",),
    "gcn_pyg": ("adj",),
    "graphsage": ("mean",),
    "sae": ("encoder.weight",),
    "attention": ("mask",),
    "paper_gcn": ("A", "W1"),
    "paper_graphsage": ("A",),
    "paper_sae": ("We",),
}
"""By model, the inputs that are stored in blocks."""
CHOICES = {
    "par-i": ("--par", "i=4"),
    "par-two": ("--par", "i=2", "--par", "j=2"),
    "first": ("--order", "first"),
    "best": ("--order", "best"),
    "order-auto": ("--order", "auto"),
    "global": ("--iteration", "global"),
    "dense": ("--intermediates", "dense"),
    "scanned": ("--locate", "never"),
    "located": ("--locate", "always"),
    "reference": ("--repeat", "reference"),
    "no-copies": ("--no-copies",),
    "vector": ("--vector", "2"),
    "engine": ("--engine", "fast"),
    "simulated-twice": ("--no-dedup",),
    "fifos": ("--set", "fifo_depth=2"),
    "channels": ("--set", "memory.channels=1", "--set", "memory.mapping=RoBaRaCoCh"),
}
"""Options that are tried on the few models."""
MISTAKES = {
    "fuse": ("run", "models/gcn.py", "--fuse", "layer3"),
    "machine": ("run", "models/gcn.py", "--machine", "ideall"),
    "data": ("run", "models/gcn.py", "--data", "karat"),
    "order": ("run", "models/gcn.py", "--fuse", "full", "--order", "full=l,j,i,k,m,n"),
    "order-name": ("run", "models/gcn.py", "--fuse", "full", "--order", "full=i,q"),
    "format": ("compile", "models/gcn.py", "--format", "adj=crs"),
    "format-tensor": ("compile", "models/gcn.py", "--format", "ajd=csr"),
    "block": ("compile", "models/gcn.py", "--block", "adj=0x4"),
    "block-tensor": ("compile", "models/gcn.py", "--block", "ajd=4x4"),
    "lanes": ("compile", "models/gcn.py", "--par", "q=4"),
    "lanes-zero": ("compile", "models/gcn.py", "--par", "i=0"),
    "setting": ("run", "models/gcn.py", "--set", "fifo_dept=2"),
    "setting-value": ("run", "models/gcn.py", "--set", "fifo_depth=none"),
    "option": ("compile", "models/gcn.py", "-O", "hiden=3"),
    "stage": ("compile", "models/gcn.py", "--emit", "sammel"),
    "file": ("compile", "models/gnc.py"),
    "schedule": ("compile", "models/gcn.py", "--schedule", "schedules/gnc_full.yaml"),
    "deadlock": ("run", "models/gcn.py", "--fuse", "full", "--machine", "ideal", "--set", "fifo_depth=1"),
    "command": ("rum",),
    "flag": ("run", "models/gcn.py", "--fuze", "full"),
    "stats": ("estimate", "models/gcn.py", "--stats", "adj.densty=0.1"),
}
"""Calls that are refused, for their messages."""
HELP = ("", "compile", "run", "simulate", "estimate", "sweep", "sweep run", "sweep show", "explain fusion", "explain order")
HELP += ("explain cycles", "report", "ops")


def calls() -> Iterator[tuple[str, tuple[tuple[str, ...], ...]]]:
    """Keys, and the commands of each, which share the directory OUT and run one after the other."""
    for (model, words), fuse in product(MODELS.items(), FUSED):
        yield f"compile/{model}/{fuse}", (("compile", *words, "--fuse", fuse, "-o", "OUT/c"),)
        for machine in MACHINES:
            run = ("run", *words, "--fuse", fuse, "--machine", machine, "--top", "3", "--memory", "-o", "OUT/r", "--json", "-")
            yield f"run/{model}/{fuse}/{machine}", (run,)
        yield f"estimate/{model}/{fuse}", (("estimate", *words, "--fuse", fuse, "--by", "operator", "--json", "OUT/e.json"),)
        expected = ("estimate", *words, "--fuse", fuse, "--by", "tensor", "--statistics-only", "--json", "-")
        yield f"expected/{model}/{fuse}", (expected,)
        for subject in ("fusion", "order"):
            yield f"explain/{model}/{fuse}/{subject}", (("explain", subject, *words, "--fuse", fuse),)
            yield f"explain/{model}/{fuse}/{subject}-json", (("explain", subject, *words, "--fuse", fuse, "--json", "-"),)
    for (model, names), fuse, machine in product(BLOCKS.items(), FUSED, ("ideal", "rda")):
        blocks = [word for name in names for word in ("--block", f"{name}=4x4")]
        run = ("run", *MODELS[model], *blocks, "--fuse", fuse, "--machine", machine, "-o", "OUT/r")
        yield f"blocks/{model}/{fuse}/{machine}", (run,)
    for (model, words), (choice, options), fuse in product(FEW.items(), CHOICES.items(), ("layerwise", "full")):
        run = ("run", *words, *options, "--fuse", fuse, "--top", "3", "-o", "OUT/r")
        yield f"choice/{model}/{choice}/{fuse}", (run,)
    for model, words in FEW.items():
        cycles = ("explain", "cycles", *words, "--fuse", "layerwise", "--json", "OUT/cycles.json")
        run = ("run", *words, "--fuse", "layerwise", "-o", "OUT/r", "--trace", "OUT/t.json")
        report = ("report", "OUT/r", "--cycles", "OUT/cycles.json")
        yield f"report/{model}", (cycles, run, report)
        yield f"auto/{model}", (("run", *words, "--fuse", "auto", "-o", "OUT/r", "--auto-schedule", "OUT/schedule.yaml"),)
        dump = ("compile", *words, "--fuse", "full", "--dump-after", "all", "--dump-dir", "OUT/d", "-o", "OUT/c")
        yield f"dump/{model}", (dump,)
    for (model, cut), machine in product(product(("gcn", "graphsage", "sae", "gpt"), ("unfused", "partial", "full")), MACHINES):
        schedule = ("--schedule", f"schedules/{model}_{cut}.yaml")
        run = ("run", *MODELS[f"paper_{model}"], *schedule, "--machine", machine, "-o", "OUT/r")
        yield f"schedule/{model}_{cut}/{machine}", (run,)
    for name, words in MISTAKES.items():
        yield f"mistake/{name}", (words,)
    for command in HELP:
        yield f"help/{command.replace(' ', '-') or 'fuseflow'}", ((*command.split(), "--help"),)
    yield "ops", (("ops",),)


CALLS = dict(calls())
OF_HOST = re.compile(rb'"(seconds|versions)": ?(\{[^{}]*\}|[-+.e\d]+)')
"""In JSON: what depends on the machine and the hour."""
NUMBER = re.compile(rb"(?<=: )[-+.e\d]+")
TEXT = re.compile(rb'(?<=: )"[^"]*"')


def of_model(key: str) -> Iterator[Line]:
    """Exit status and texts of every command of a call, and the files that it left."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for number, words in enumerate(CALLS[key]):
            arguments = [str(ROOT / word) if is_file(word) else word.replace("OUT", name) for word in words]
            result = CliRunner().invoke(command_line, arguments, prog_name="fuseflow", env={"COLUMNS": "100"})
            yield f"{key} {number} exit", str(result.exit_code)
            yield f"{key} {number} stdout", digest(masked(result.stdout_bytes, folder))
            yield f"{key} {number} stderr", digest(masked(result.stderr_bytes, folder))
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                yield f"{key} {number} exception", repr(result.exception)
            mask_files(folder)
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            prefix = "mlir/" if path.name == "graph.mlir" else ""
            yield f"{prefix}{key} {path.relative_to(folder).as_posix()}", digest_of_file(path, folder)


def is_file(word: str) -> bool:
    return word.startswith(("models/", "schedules/"))


def masked(content: bytes, folder: Path) -> bytes:
    """Without the places of this run, and in JSON without times and versions. All other bytes stay as they are."""
    content = content.replace(str(folder).encode(), b"OUT").replace(str(ROOT).encode(), b"ROOT")
    return OF_HOST.sub(lambda found: TEXT.sub(b'"0"', NUMBER.sub(b"0", found[0])), content)


def mask_files(folder: Path) -> None:
    """What later commands read, a report for one, has no times either."""
    for path in folder.rglob("*.json"):
        path.write_bytes(masked(path.read_bytes(), folder))


def digest_of_file(path: Path, folder: Path) -> str:
    if path.suffix != ".npz":
        return digest(masked(path.read_bytes(), folder))
    with np.load(path, allow_pickle=False) as arrays:
        return digest("".join(f"{name} {arrays[name].dtype} {digest_of(arrays[name])}\n" for name in sorted(arrays)))


# Programs ---------------------------------------------------------------------------------------------------------------------


def of_programs(seed: int, count: int) -> list[Line]:
    """The programs of a seed, in the order in which they are drawn."""
    lines: list[Line] = []
    number = 0

    def check(case: Any) -> Any:
        nonlocal number
        key, number = f"programs/{seed:05}/{number:03}", number + 1
        lines.append((f"{key} drawn", digest(repr(case) + repr(case.tensors))))
        try:
            checked = program_levels.check(case)
        except ff.FuseFlowError as error:
            lines.append((f"{key} refused", " ".join(str(error).split())))
            raise
        except Exception as error:
            lines.append((f"{key} differs", " ".join(f"{type(error).__name__}: {error}".split())))
            raise ff.FuseFlowError("the levels differ") from error  # so that the programs behind it are drawn too
        lines.append((f"{key} schedule", digest(str(checked.schedule))))
        for place, run in enumerate(checked.runs):
            lines.append((f"{key} region {place}", region_parts(run)))
        return checked

    with patch.object(providers, "_get_local_constants", providers.Constants):
        program_fuzz.run(seed, count, check, smaller=False)
    return lines


def region_parts(run: Any) -> str:
    machine = ff.load_machine("ideal")
    region = run.region
    graph = text_of(region.graph, {}, machine)
    inputs = text_of(region.graph, run.inputs, machine)
    return parts(name=region.name, order=region.fused.order, graph=graph, inputs=inputs, **outcome_parts(run.outcome))


# Graphs -----------------------------------------------------------------------------------------------------------------------


def of_graphs(seed: int, count: int) -> Iterator[Line]:
    for each in range(seed, seed + count):
        yield from of_graph(each)


def of_graph(seed: int) -> Iterator[Line]:
    key = f"graphs/{seed:07}"
    try:
        case = graph_fuzz.drawn(seed, None)
        yield f"{key} drawn", digest(text_of(case.graph, case.tensors, case.machine))
        found, lines = graph_fuzz.compare(case, seed)
    except Exception as error:
        yield f"{key} fails", " ".join(f"{type(error).__name__}: {error}".split())
        return
    agrees = parts(differences=len(lines))
    if isinstance(found, ff.FuseFlowError):
        yield f"{key} result", f"{agrees} {parts(error=str(found))}"
    elif hasattr(found, "cycles"):
        yield f"{key} result", f"{agrees} {parts(**outcome_parts(found))}"
    else:
        text = str(engines.deadlock_error(found, case.graph))
        yield f"{key} result", f"{agrees} {parts(deadlock=text, waiting=found.waiting, nodes=found.nodes)}"


SECTIONS = {"models": of_model, "programs": of_programs, "graphs": of_graphs}


if __name__ == "__main__":
    main()
