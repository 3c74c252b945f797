"""The words of MLIR: types, affine maps, numbers, texts and names, as its parser reads them."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence

from fuseflow.einsum.nodes import Index, linear_form

UNSIGNED = {"u4": "i4", "u8": "i8"}
"""The types of elements for which MLIR's operations have no type of their own."""
_SYMBOL_NAME = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)
_LOOP_NAME = re.compile(r"(?!mod$|floordiv$|ceildiv$|symbol$)[A-Za-z_]\w*", re.ASCII)


def affine_map(loops: Sequence[str], indices: Sequence[Index]) -> str:
    """Return the affine map from loops to the coordinates of an operand."""
    written = {v: v if _LOOP_NAME.fullmatch(v) else f"d${n}" for n, v in enumerate(loops)}
    return f"affine_map<({', '.join(written.values())}) -> ({', '.join(_coordinate(i, written) for i in indices)})>"


def _coordinate(index: Index, written: Mapping[str, str]) -> str:
    if isinstance(index, str):
        return written[index]
    form = linear_form(index)
    terms = [f"{written[name]} * {factor}" if factor != 1 else written[name] for name, factor in form.terms]
    return " + ".join([*terms, *([str(form.offset)] if form.offset or not terms else [])])


def tensor_type(shape: Sequence[int], dtype: str, encoding: str = "") -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element_type(dtype)}{encoding}>"


def element_type(dtype: str) -> str:
    return UNSIGNED.get(dtype, dtype)


def float_attribute(value: float, dtype: str) -> str:
    """Return a float as MLIR reads it, with its type. Floats that decimals cannot say are written in bits."""
    if math.isfinite(value):
        mantissa, _, exponent = repr(float(value)).partition("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}{f'e{exponent}' if exponent else ''} : {dtype}"
    if dtype == "f64":
        return f"0x{struct.pack('>d', value).hex().upper()} : f64"
    return f"0x{struct.pack('>f', value).hex().upper()} : f32"


def quoted_list(words: Sequence[str]) -> str:
    return f"[{', '.join(map(quoted, words))}]"


def quoted(text: str) -> str:
    """Return a text as MLIR quotes it: beyond ASCII, and for quotation marks, it takes the bytes of UTF-8."""
    plain = (chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in text.encode())
    return f'"{"".join(plain)}"'


def symbol_name(name: str) -> str:
    return f"@{name}" if _SYMBOL_NAME.fullmatch(name) else f"@{quoted(name)}"


def parenthesized(types: Sequence[str]) -> str:
    return types[0] if len(types) == 1 else f"({', '.join(types)})"
