"""The declaration of a command and what it does are two modules, and the second one is imported when the command is called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

from fuseflow.cli.interruption import interruptible

DECLARED, ACTIONS = "fuseflow.cli.", "fuseflow.cli.actions."


def deferred(declaration: Callable[[], None]) -> Callable[..., Any]:
    """Return the function that a declaration stands for: that of the same name in the module of the same name in `actions`.

    The declaration has the options and the help of a command, and nothing else. `fuseflow --help` and the completion of a shell read it,
    and neither has to wait for the compiler.
    """
    module = ACTIONS + declaration.__module__.removeprefix(DECLARED)

    @functools.wraps(declaration)
    def act(*args: Any, **kwargs: Any) -> Any:
        action = getattr(import_module(module), declaration.__name__)
        with interruptible():  # not while modules are imported: Python may turn an interruption there into anything
            return action(*args, **kwargs)

    return act
