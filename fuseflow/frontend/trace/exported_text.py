"""The text of a model as PyTorch exports it: the operators, with the lines of the user that call them, and its arguments."""

from __future__ import annotations

import re

import torch
from torch.export import export

from fuseflow.frontend.foreign_errors import without_addresses
from fuseflow.frontend.quiet import quiet
from fuseflow.frontend.trace.fx_origin import export_error, shown_path
from fuseflow.frontend.trace.model_call import ModelCall

_PLACE = re.compile(r"(# File: )(.+?)(:\d+ in )")


def exported_text(call: ModelCall) -> str:
    """Return the exported program of a call as PyTorch prints it: the given one, or the module's. Paths of files are relative to
    the working directory, or to the folder of libraries, so that equal files have equal texts.

    Raise `FrontendError` if PyTorch cannot export the module.
    """
    program = call.program
    if program is None:
        with quiet(), torch.no_grad(), call.repeatable():
            try:
                program = export(call.module, call.args, dict(call.kwargs), strict=False)
            except Exception as error:  # whatever the model and PyTorch raise
                raise export_error(error) from error
    lines = without_addresses(_PLACE.sub(lambda place: place[1] + shown_path(place[2]) + place[3], str(program))).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines).rstrip("\n") + "\n"
