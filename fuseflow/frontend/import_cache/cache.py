"""The walk through the cache: an import that was kept and is still valid is read; any other model is imported and kept."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy.typing as npt

from fuseflow.frontend.import_cache.entry import Entry, import_store, last_requests, read_entry, write_entry
from fuseflow.frontend.import_cache.recorder import file_state, recording
from fuseflow.frontend.import_cache.request import Request, digest_of, last_request_digest, request_of
from fuseflow.frontend.imported_program import ReferenceOutputs, Source, StepModel
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.private_store import PrivateStore

ImportFunction = Callable[[ModelSpec], Source]
StepModelFunction = Callable[[ModelSpec], StepModel]
_log = logging.getLogger(__name__)


def import_or_recall(spec: ModelSpec, import_model: ImportFunction, step_model: StepModelFunction) -> Source:
    """Return what `import_model` returns for a model file, from the cache if it was kept and nothing that it depends on changed.

    Outputs that PyTorch computes are kept as soon as something read them. With `spec.fresh`, the cache is not read but written. The model
    of a training step, which takes steps in PyTorch, is not kept: `step_model` builds it when something asks for it.
    """
    store = import_store()
    request = None if store is None else request_of(spec)
    if store is None or request is None:
        _log.debug(
            "%s is imported, and not kept: %s", spec.model, "no cache" if store is None else "only this process knows an option"
        )
        return import_model(spec)
    digest = digest_of(request)
    content = None if spec.fresh else store.read(digest)
    entry = None if content is None else readable_entry(content, str(spec.model))
    changed = [] if entry is None else [path for path, state in entry.states.items() if file_state(path) != state]
    if entry is not None and not changed:
        _log.debug("%s is read from the cache of imported models: nothing that it depends on changed", spec.model)
        _remember(spec, request)
        return _recalled(entry, spec, import_model, step_model)
    if _log.isEnabledFor(logging.DEBUG):
        _log.debug("%s is imported anew: %s", spec.model, _why_anew(spec, request, changed))
    return _imported(spec, import_model, store, request)


def _why_anew(spec: ModelSpec, request: Request, changed: Sequence[str]) -> str:
    """Return why a model is imported and not read from the cache. `changed` are the files that changed since the same request before."""
    from fuseflow.frontend.import_cache.request import file_changes, request_changes  # other imports do without

    if spec.fresh:
        return "`fresh` asks for it"
    if changed:
        return file_changes(changed)
    requests = last_requests()
    before = None if requests is None else requests.read(last_request_digest(spec))
    return "no import of it is kept" if before is None else request_changes(json.loads(before), request)


def _remember(spec: ModelSpec, request: Request) -> None:
    """Keep the request, as the last one for its model file."""
    if (requests := last_requests()) is not None:
        requests.write(last_request_digest(spec), json.dumps(request).encode())


def readable_entry(content: bytes, model: str) -> Entry | None:
    """Return the entry that a content holds, or None if it holds none that this version can read: then it is made again."""
    try:
        return read_entry(content)
    except Exception as error:  # whatever a damaged archive makes its readers raise
        _log.info("the kept import of `%s` is damaged, and made again: %s", model, str(error).partition("\n")[0][:200])
        return None


def _recalled(entry: Entry, spec: ModelSpec, import_model: ImportFunction, step_model: StepModelFunction) -> Source:
    """Return the source of an entry. If nothing read its reference outputs before, the model is imported when something does."""
    names, step = entry.source.program.outputs, entry.source.step

    def again() -> Source:
        return import_or_recall(replace(spec, fresh=True), import_model, step_model)

    def outputs() -> list[npt.NDArray[Any]]:
        expected = entry.expected
        if expected is None:
            expected = again().expected or {}
        return [expected[name] for name in names]

    expected = ReferenceOutputs(names, outputs) if entry.reference else None
    return replace(
        entry.source,
        expected=expected,
        intermediates=lambda: again().intermediates(),
        exported=lambda: import_model(spec).exported_text,
        step=None if step is None else replace(step, model=cache(lambda: step_model(spec))),
    )


def _imported(spec: ModelSpec, import_model: ImportFunction, store: PrivateStore, request: Request) -> Source:
    """Import a model and keep the result, unless the recorder has a reason why a second import may differ."""
    with recording() as recorder:
        source = import_model(spec)
    expected = source.expected
    entry = Entry(replace(source, expected=None, intermediates=dict, exported=None), recorder.states(), expected is not None)
    if recorder.reasons:
        _log.info("%s is imported anew in every run, because it %s", spec.model, recorder.reasons[0])
        return source
    digest = digest_of(request)
    _keep(store, digest, entry)
    _remember(spec, request)
    if expected is None:
        return source

    def outputs() -> Sequence[npt.NDArray[Any]]:
        with recording() as later:
            values = [expected[name] for name in expected]
        states = {**later.states(), **entry.states}
        if not later.reasons:
            _keep(store, digest, replace(entry, states=states, expected=dict(zip(expected, values, strict=True))))
        return values

    return replace(source, expected=ReferenceOutputs(tuple(expected), outputs))


def _keep(store: PrivateStore, digest: str, entry: Entry) -> None:
    content = write_entry(entry) if store.admits(entry.array_bytes) else None
    if content is None or not store.write(digest, content):
        _log.info("the import of `%s` is not kept: it is too large for the cache, or cannot be written", entry.source.name)
