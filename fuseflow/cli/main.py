"""The command line. It turns arguments into calls of the Python API, and writes results to standard output, messages to standard error."""

from __future__ import annotations

import click

from fuseflow.cli.common import ErrorBoundary, debug_option
from fuseflow.cli.compile import compile_command
from fuseflow.cli.doctor import doctor
from fuseflow.cli.estimate import estimate
from fuseflow.cli.explain import explain
from fuseflow.cli.ops import ops
from fuseflow.cli.report import report
from fuseflow.cli.run import run
from fuseflow.cli.simulate import simulate
from fuseflow.cli.sweep import sweep


@click.group("fuseflow", cls=ErrorBoundary, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="fuseflow")
@debug_option
def main() -> None:
    """Compile sparse PyTorch models to fused dataflow graphs, and execute them cycle by cycle.

    Exit status: 0; 1 when a run or a check fails; 2 for bad input or usage.
    """


for command in (compile_command, run, simulate, estimate, sweep, explain, report, doctor, ops):
    main.add_command(command)
