"""Sources without what their outputs do not need: `--propagate`, and the argument `propagate` of `fuseflow.compile`."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase

from fuseflow.errors import AttributesError, did_you_mean
from fuseflow.frontend.model_spec import PropagationSpec
from fuseflow.frontend.source import Simplification, Source
from fuseflow.propagation.analysis import Analysis, analyse
from fuseflow.propagation.attribute import attributes_of
from fuseflow.propagation.propagation import Propagation, propagate
from fuseflow.propagation.rows import attribute_rows


def as_propagation(value: PropagationSpec | bool | None) -> PropagationSpec | None:
    """Return the value of `ModelSpec.propagate`. True means a spec that takes only stored patterns as known."""
    if isinstance(value, bool):
        return PropagationSpec() if value else None
    return value


def analysed(source: Source, spec: PropagationSpec) -> Analysis:
    """Return the analysis of a source. Raise `AttributesError` for a pattern that names no input."""
    fixed = {*source.constants, *_matching(source, spec.fixed)}
    constants = source.constants if spec.constants else ()
    return analyse(source.program, attributes_of(source.program, source.tensors, fixed, constants, source.masks))


def propagated(source: Source, spec: PropagationSpec) -> Source:
    """Return a source without what its outputs do not need. Its notices say how much that is."""
    analysis = analysed(source, spec)
    propagation = propagate(source.program, source.tensors, analysis)
    rows = attribute_rows(source.program, source.tensors, analysis, propagation, source.constants)
    return replace(
        source,
        program=propagation.program,
        tensors=propagation.tensors,
        notices=(*source.notices, *_notices(source, propagation)),
        original=source,
        simplified=Simplification(analysis, propagation, rows),
    )


def _matching(source: Source, patterns: tuple[str, ...]) -> set[str]:
    names = [tensor.name for tensor in source.program.inputs]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise AttributesError(f"no input is called `{pattern}`", hint=did_you_mean(pattern, names))
    return {name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)}


def _notices(source: Source, propagation: Propagation) -> tuple[str, ...]:
    before = sum(tensor.stored for tensor in source.tensors.values())
    now = sum(tensor.stored for tensor in propagation.tensors.values())
    statements = len(source.program.einsums) - len(propagation.program.einsums)
    left_out = [f"{before - now:,} of {before:,} stored values"] if now < before else []
    left_out += [f"{statements} of {len(source.program.einsums)} statements"] if statements else []
    return (f"left out, since no output needs it: {' and '.join(left_out)}",) if left_out else ()
