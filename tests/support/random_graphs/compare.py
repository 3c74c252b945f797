"""Whether two simulators say the same of a case, to the last bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.sim import Recording, Simulation
from fuseflow.tensors import Tensor

from .case import Case

Found: TypeAlias = Simulation | Exception


def found(case: Case, simulate: Callable[..., Simulation]) -> Found:
    """What a simulator says of a case, with every stream recorded and checked: the error that it raises is an answer too."""
    try:
        return simulate(case.graph, case.tensors, case.machine, check=True, record=True)
    except Exception as error:
        return error


def differences(a: Found, b: Found) -> Iterator[str]:
    """One line for everything in which `b` differs from `a`. NaNs are equal, 0 and -0 are not."""
    if isinstance(a, Exception) or isinstance(b, Exception):
        if type(a) is not type(b) or str(a) != str(b):
            yield f"{_outcome(a)} against {_outcome(b)}"
        return
    for field in (field for field in fields(Simulation) if field.name != "engine"):
        x, y = getattr(a, field.name), getattr(b, field.name)
        match field.name:
            case "outputs":
                yield from _keys("outputs", x, y)
                yield from (f"output {name}: {line}" for name in x if name in y for line in _tensors(x[name], y[name]))
            case "streams":
                yield from _keys("streams", x, y)
                for port in (port for port in x if port in y):
                    yield from (f"stream {port.node}.{port.output}: {line}" for line in differences_of_streams(x[port], y[port]))
            case "nodes" | "edges" | "traffic" if len(x) == len(y):
                yield from (f"{field.name}: {p} against {q}" for p, q in zip(x, y, strict=True) if p != q)
            case _ if x != y:
                yield f"{field.name}: {x} against {y}"


def same_results(a: Simulation, b: Simulation) -> bool:
    """Whether the outputs and the tokens of every stream are the same, be the time as it may."""
    outputs = (line for name in a.outputs for line in _tensors(a.outputs[name], b.outputs[name]))
    tokens = (_same(x, y) for port in a.streams for x, y in zip(a.streams[port].tokens, b.streams[port].tokens, strict=True))
    return not any(outputs) and all(tokens)


def _outcome(x: Found) -> str:
    return f"{type(x).__name__}:\n{x}\n" if isinstance(x, Exception) else f"{x.cycles} cycles"


def _keys(what: str, x: Any, y: Any) -> Iterator[str]:
    if x.keys() != y.keys():
        yield f"{what}: {sorted(map(str, x.keys() ^ y.keys()))} on one side only"


def _tensors(a: Tensor, b: Tensor) -> Iterator[str]:
    if (a.shape, a.format, a.dtype) != (b.shape, b.format, b.dtype) or not _same(a.fill, b.fill):
        yield f"{a} against {b}"
    for p, (x, y) in enumerate(zip(a.levels, b.levels, strict=True)):
        if x.size != y.size or x.entries != y.entries:
            yield f"level {p} has {x.entries} entries against {y.entries}"
        for name in x.arrays:
            if not np.array_equal(x.arrays[name], y.arrays[name]):
                yield f"{name} of level {p}: {x.arrays[name].tolist()} against {y.arrays[name].tolist()}"
    if not _same_bits(a.values, b.values):
        yield f"values {a.values.tolist()} against {b.values.tolist()}"


def _same_bits(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    if a.shape != b.shape or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
        return False
    return a.dtype.kind != "f" or bool((np.isnan(a) | (np.signbit(a) == np.signbit(b))).all())


def differences_of_streams(a: Recording, b: Recording) -> Iterator[str]:
    """The first place where tokens or cycles differ."""
    if len(a.tokens) != len(b.tokens):
        yield f"{len(a.tokens)} tokens against {len(b.tokens)}"
    for k, (x, y) in enumerate(zip(a.tokens, b.tokens, strict=False)):
        if not _same(x, y):
            yield f"token {k} is {x!r} against {y!r}"
            return
    for k, (s, t) in enumerate(zip(a.visible, b.visible, strict=False)):
        if s != t:
            yield f"token {k}, {a.tokens[k]}, is visible in cycle {s} against {t}"
            return


def _same(a: Any, b: Any) -> bool:
    """The same token: a number of the same kind and sign, an array of the same bits, or the same object."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and _same_bits(a, b)
    if not isinstance(a, int | float) or not isinstance(b, int | float) or isinstance(a, float) != isinstance(b, float):
        return False
    return (a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) or (a != a and b != b)
