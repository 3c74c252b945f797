"""The command `fuseflow explain fusion`, which says what is fused and why, how often producers run, and the costs of storing them."""

from __future__ import annotations

from fuseflow.cli.deferred import command
from fuseflow.cli.json_file import json_option
from fuseflow.cli.program import program_options


@command("What is fused and why, and what that costs.", program_options(), json_option("the report"), quiet=False)
def fusion() -> None:
    """Explain the regions of MODEL: which neighbouring Einsums are fused, and why or why not.

    The second table says how often each value of a producer is computed, inside which loops that it lacks, and what storing it instead
    means. With `--propagate`, the next one says what is left out, since no output needs it. If the program keeps parts of results, another
    one says where each is kept, why, and what that costs. With public primitives, the next one says what these are expected to cost in each
    region. A last one lists the stages of every region, which may have lanes of their own (`--par REGION/STAGE.INDEX=4`), each with the
    loops that it runs in. Nothing is executed: numbers are expected from the statistics of the tensors, which are assumed for those without
    data.
    """
