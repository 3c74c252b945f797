"""Messages of other software: PyTorch's own are silenced, and of an error a message of fuseflow repeats one sentence, without addresses."""

from __future__ import annotations

import logging
import re
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from fuseflow.errors import FrontendError

_LONGEST = 200
_OBJECT = re.compile(r"<(?:function |bound method )?([\w.<>]+?)(?: object)? at 0x[0-9a-fA-F]+[^<>]*>")
_ADDRESS = re.compile(r"\s*(?:at )?\b0x[0-9a-fA-F]{6,}\b")
_INVARIANT = re.compile(
    r"INTERNAL ASSERT FAILED|Expected .* to be true, but got false|^\s*assert |Could this error message be improved|functorch"
)


class ForeignFailure(FrontendError):
    """A model fails in PyTorch itself, on the inputs that it was given."""


def foreign_message(error: BaseException) -> str:
    """Return the kind and the first sentence of an error that other software raised. If a check inside that software failed,
    whose text does not help the user, the message says only that."""
    text = "\n".join(line for line in str(error).strip().splitlines() if line.strip())
    kind = type(error).__name__
    if _INVARIANT.search(text):
        return f"{kind}: a check inside PyTorch or one of its libraries fails"
    first = text.partition("\n")[0].partition(". ")[0]
    return f"{kind}: {textwrap.shorten(without_addresses(first), _LONGEST, placeholder=' ...')}" if first else kind


def without_addresses(text: str) -> str:
    """Return a text with the names of objects in the place of their `repr`.

    >>> without_addresses("cannot call <function relu at 0x7f83d00c5120>")
    'cannot call `relu`'
    """
    return _ADDRESS.sub("", _OBJECT.sub(r"`\1`", text))


@contextmanager
def quiet() -> Iterator[None]:
    """Silence PyTorch inside the block. It warns about every use of a sparse layout and logs errors that it also raises."""
    threshold = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(threshold)
