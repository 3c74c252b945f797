"""The options of a schedule."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from fuseflow.cli.common import FILE, with_options
from fuseflow.cli.completion import complete_fused, complete_index, complete_region, complete_tensor, complete_tensor_value
from fuseflow.schedule.settings import SETTINGS

Command = TypeVar("Command", bound=Callable[..., Any])


OPTIONS = (
    click.option(
        "--fuse",
        multiple=True,
        metavar="REGION",
        shell_complete=complete_fused,
        help="none, layerwise, full, best (the default), auto, or a module or Einsum; repeatable.",
    ),
    click.option(
        "--order",
        multiple=True,
        shell_complete=complete_region,
        metavar="REGION=i,k,j",
        help="Loop order of a region; first, best or auto: of all others.",
    ),
    click.option(
        "--format",
        "formats",
        multiple=True,
        shell_complete=complete_tensor_value,
        metavar="TENSOR=csr",
        help="Storage format of a tensor, or of all that a pattern matches; repeatable.",
    ),
    click.option(
        "--block",
        multiple=True,
        shell_complete=complete_tensor_value,
        metavar="TENSOR=16x16",
        help="Blocks in which a tensor is stored; repeatable.",
    ),
    click.option(
        "--split",
        multiple=True,
        metavar="EINSUM.i=16",
        help="An index that is two loops in its region, and the size of the inner one; repeatable.",
    ),
    click.option("--vector", type=int, metavar="16", help="Elements of a dense dimension that go through a stream together."),
    click.option(
        "--par",
        multiple=True,
        shell_complete=complete_index,
        metavar="i=4",
        help="Lanes of an index, in a region or a stage; repeatable.",
    ),
    click.option(
        "--depth",
        multiple=True,
        shell_complete=complete_region,
        metavar="REGION=128",
        help="Slots of the FIFOs of a region, or of one; `auto`: as many as they need; repeatable.",
    ),
    click.option("--associate", multiple=True, metavar='"T=A (X W)"', help="Order of the products that end in T; repeatable."),
    click.option(
        "--buffer",
        multiple=True,
        shell_complete=complete_tensor_value,
        metavar="TENSOR=64KB",
        help="Reuse buffer of each port that reads a tensor; repeatable.",
    ),
    click.option(
        "--preload",
        multiple=True,
        shell_complete=complete_tensor_value,
        metavar="TENSOR=8",
        help="Ports that read a tensor once, in order, for all its readers; repeatable.",
    ),
    click.option("--iteration", type=click.Choice(SETTINGS["iteration"]), help="Reductions in loops of their own, or one space."),
    click.option(
        "--intermediates",
        type=click.Choice(SETTINGS["intermediates"]),
        help="What regions read: the real ones, or stand-ins.",
    ),
    click.option("--locate", type=click.Choice(SETTINGS["locate"]), help="Dense levels: located, or scanned and joined."),
    click.option(
        "--writers", type=click.Choice(SETTINGS["writers"]), help="Dense results of lanes: written once, or in each lane."
    ),
    click.option("--rescan", type=click.Choice(SETTINGS["rescan"]), help="Outermost levels: scanned in every loop, or kept."),
    click.option(
        "--primitives", type=click.Choice(SETTINGS["primitives"]), help="What graphs are made of: our own, or public ones."
    ),
    click.option("--repeat", type=click.Choice(SETTINGS["repeat"]), help="What is repeated in loops that an operand lacks."),
    click.option("--no-copies", is_flag=True, help="Never copy a tensor into another storage order."),
    click.option(
        "--drop-zeros",
        multiple=True,
        shell_complete=complete_tensor,
        metavar="TENSOR",
        help="Store a result without its zeros; repeatable.",
    ),
    click.option("--plan", "plan_file", metavar="FILE", type=FILE, help="Operands that are divided into parts; or `auto`."),
    click.option(
        "--resident",
        multiple=True,
        shell_complete=complete_tensor,
        metavar="TENSOR",
        help="An input read from the configuration; repeatable.",
    ),
    click.option("--schedule", "file", metavar="FILE", type=FILE, help="A schedule file; flags win."),
    click.option("--print-schedule", is_flag=True, help="Print the schedule, which `--schedule` reads, and end."),
)
"""The options, in the order of the help."""


def schedule_options(command: Command) -> Command:
    """Add the options of a schedule, and pass them on as `schedule`, a `Schedule`, and `print_schedule`, which asks to print it and end."""

    @functools.wraps(command)
    def build(
        *args: Any,
        fuse: tuple[str, ...],
        order: tuple[str, ...],
        formats: tuple[str, ...],
        block: tuple[str, ...],
        split: tuple[str, ...],
        vector: int | None,
        par: tuple[str, ...],
        depth: tuple[str, ...],
        associate: tuple[str, ...],
        buffer: tuple[str, ...],
        preload: tuple[str, ...],
        iteration: str | None,
        intermediates: str | None,
        locate: str | None,
        rescan: str | None,
        writers: str | None,
        repeat: str | None,
        primitives: str | None,
        no_copies: bool,
        drop_zeros: tuple[str, ...],
        plan_file: Path | None,
        resident: tuple[str, ...],
        file: Path | None,
        **kwargs: Any,
    ) -> Any:
        from fuseflow.plan.plan import AUTO, Plan, read_plan  # `--help` does without
        from fuseflow.schedule import Schedule

        base = None if file is None else Schedule.load(file)
        settings = {"iteration": iteration, "intermediates": intermediates, "locate": locate, "rescan": rescan, "repeat": repeat}
        settings |= {"primitives": primitives, "writers": writers}
        lowering = {**settings, "copies": False if no_copies else None, "vector": vector, "drop_zeros": drop_zeros}
        lowering["resident"] = resident
        plan = None if plan_file is None else Plan(auto=True) if str(plan_file) == AUTO else read_plan(plan_file)
        schedule = Schedule.from_flags(
            fuse, order, formats, par, block, base, plan, depth, associate, buffer, preload, split, **lowering
        )
        return command(*args, schedule=schedule, **kwargs)

    return with_options(OPTIONS, build)  # type: ignore[return-value]
