"""Chooses the layouts of a training step, and keeps them for the next time."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

from fuseflow.cut.cut_cache import cut_digest
from fuseflow.einsum.phases import carried_inputs
from fuseflow.frontend.imported_program import Source
from fuseflow.layouts.changes import from_json
from fuseflow.machine.machine import Machine
from fuseflow.private_store import PrivateStore
from fuseflow.schedule import Schedule

_log = logging.getLogger(__name__)


def with_layouts(source: Source, schedule: Schedule, machine: Machine) -> Source:
    """Return a training step with its tensors in the layouts in which it is expected to take the fewest cycles (`search.choose_layouts`).
    Any other program stays as it is, as does a step whose layouts were chosen before.

    Tensors about which the schedule decides stay as they are. So do outputs and the inputs that they replace, as every new value has
    the format of the old one.
    """
    if source.arranged or not carried_inputs(source.program):
        return source
    store = PrivateStore.open("layouts", ".json")
    digest = "" if store is None else cut_digest(source, schedule, machine)
    content = None if store is None else store.read(digest)
    if content is not None:
        _log.debug("the layouts of the training step are read from the cache: nothing that decides them changed")
        changes, notices = json.loads(content)
        for values in changes:
            source = from_json(values, source.program).applied(source)
        return replace(source, notices=(*source.notices, *notices), arranged=True)
    _log.debug("the layouts of the training step are chosen anew: none for this program, schedule, machine and data are kept")
    from fuseflow.layouts.search import choose_layouts  # takes long to load, and layouts that are kept do without

    best, kept = choose_layouts(source, schedule, machine)
    if store is not None:
        store.write(digest, json.dumps([[change.to_json() for change in kept], best.notices[len(source.notices) :]]).encode())
    return replace(best, arranged=True)
