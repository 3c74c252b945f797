"""What the package logs, as lines on standard error."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import click

from fuseflow.cli.command import VERBOSE
from fuseflow.cli.common import console, print_lines
from fuseflow.errors import visible


class _Lines(logging.Handler):
    """A log handler that prints messages of the package, such as why a first run takes longer."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.err = console(stderr=True)

    def emit(self, record: logging.LogRecord) -> None:
        print_lines(self.err, [visible(record.getMessage())])


@contextmanager
def log_lines(level: int = logging.DEBUG) -> Iterator[None]:
    """Print what the package logs from a level on while the block runs. Notices, of level INFO, are said once if the user asks for all."""
    context = click.get_current_context(silent=True)
    if level > logging.DEBUG and context is not None and context.meta.get(VERBOSE):
        yield
        return
    logger, handler = logging.getLogger("fuseflow"), _Lines(level)
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False  # a library may have set up another handler, which would say it again
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]
