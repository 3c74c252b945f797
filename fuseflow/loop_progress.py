"""Loops that may take long, and that report their progress to a listener: a command with a terminal shows the time that is left.

    with listening(lambda loop, done, total: print(loop, done, total)):
        for node in counted(nodes, "reading operators"):
            ...

Nobody listens by default, and then a loop is as fast as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Listener = Callable[[str, int, int], None]
"""A function that gets the name of a loop, the number of its items that are done, and the number of all its items."""

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call a listener for the loops inside the block. Of nested loops, only the outermost one reports."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tell(loop: str, done: int, total: int) -> None:
    """Report to the listener how far a loop is that does not use `counted`, such as one in PyTorch."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(loop, done, total)


def counted(items: Collection[T], loop: str) -> Iterator[T]:
    """Yield items, and tell the listener how many of them are done. `loop` names the work that is done on them."""
    listener = _LISTENER.get()
    if listener is None:
        yield from items
        return
    _LISTENER.set(None)
    try:
        for done, item in enumerate(items):
            listener(loop, done, len(items))
            yield item
        listener(loop, len(items), len(items))
    finally:
        _LISTENER.set(listener)
