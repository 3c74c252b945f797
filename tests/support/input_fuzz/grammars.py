"""Texts that follow a grammar, so that they get past the parser, with names and numbers that need not make sense."""

from __future__ import annotations

import json
import random
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from fuseflow.samml import tortilla_pb2 as pb
from input_fuzz.mutations import NUMBERS, VALUES, WORDS, mutate_value


def yaml_text(seeds: list[Any], keys: list[str], chance: random.Random) -> bytes:
    """Return YAML: a known document with changed values, a made-up one, or one whose parts refer to each other."""
    kind = chance.randrange(4)
    if kind < 2 and seeds:
        value = chance.choice(seeds)
        for _ in range(chance.choice((1, 2, 3))):
            value = mutate_value(value, chance)
        return json.dumps(value, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
    if kind == 2:
        return _block(keys, chance, 0).encode("utf-8", "surrogatepass")
    lines = [f"{chance.choice(keys)}: &a0 {_scalar(chance)}"]
    for number in range(1, chance.randrange(2, 12)):
        parts = ", ".join(f"*a{chance.randrange(number)}" for _ in range(chance.randrange(1, 10)))
        lines.append(f"{chance.choice(keys)}: &a{number} [{parts}]")
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _block(keys: list[str], chance: random.Random, depth: int) -> str:
    lines = []
    for _ in range(chance.randrange(1, 4)):
        start = "  " * depth + chance.choice((f"{chance.choice(keys)}: ", "- "))
        if depth < 4 and chance.random() < 0.4:
            lines.append(start.rstrip() + "\n" + _block(keys, chance, depth + 1))
        else:
            lines.append(start + _scalar(chance))
    return "\n".join(lines)


def _scalar(chance: random.Random) -> str:
    match chance.randrange(6):
        case 0:
            return chance.choice(NUMBERS)
        case 1:
            return json.dumps(chance.choice(WORDS)[:50])
        case 2:
            return f"[{chance.choice(NUMBERS[:9])}, {chance.choice(('i', 'j', 'csr', 'auto'))}]"
        case 3:
            return chance.choice(
                ("2024-13-45", "1:2:3", "0o777", "0b11", "!!set {a, b}", "!!binary aGk=", "<<", "? x", "| \n  a", "1_000")
            )
        case 4:
            return json.dumps(chance.choice(VALUES[:14]))
        case _:
            return chance.choice(("i", "csr", "full", "auto", "layer1", "null", "true", "relu"))


def program_text(chance: random.Random) -> bytes:
    """Return an Einsum program. Most of them parse, and some verify."""
    tensors, lines = ["A", "B", "x"], ["program p"]
    sizes = [chance.choice((*["3", "4"] * 6, "0", "1", "9" * chance.randrange(1, 30))) for _ in range(3)]
    formats = ("csr", "dense", "(compressed, compressed)", "(dense, compressed) order (1, 0)", "csc", "coo", "(dense, bitmap)")
    lines += [f"tensor {name}[{sizes[0]}, {sizes[1]}]  {chance.choice(formats)}" for name in tensors[:2]]
    lines.append(f"tensor x[{sizes[1]}]  dense{chance.choice(('', '', ' f64', ' i32', ' fill 0.5', ' bf16', ' fill nan'))}")
    for number in range(chance.randrange(1, 5)):
        name = f"y{number}"
        left = chance.choice(("i, j", "i", "j", "i, j, k", ""))
        lines.append(f"{name}[{left}] = {_expression(tensors, chance, 0)}{chance.choice(('', '', '  @layer1'))}")
        tensors.append(name)
    lines += [f"output {chance.choice(tensors)}" for _ in range(chance.choice((1, 1, 2)))]
    return ("\n".join(lines) + "\n").encode()


def _expression(tensors: list[str], chance: random.Random, depth: int) -> str:
    indices = chance.choice(("i, j", "i, k", "k, j", "j", "k", "i + 1, j", "2*i, j", "i"))
    match chance.randrange(7) if depth < chance.choice((2, 2, 2, 40)) else 0:
        case 0 | 1:
            return f"{chance.choice(tensors)}[{indices}]"
        case 2:
            return f"{_expression(tensors, chance, depth + 1)} {chance.choice('*+-/')} {_expression(tensors, chance, depth + 1)}"
        case 3:
            return f"{chance.choice(('relu', 'exp', 'log', 'neg', 'nothing'))}({_expression(tensors, chance, depth + 1)})"
        case 4:
            reducer = chance.choice(("sum", "max", "min", "mean"))
            return f"{reducer}({chance.choice(('k', 'j', 'k, j'))}) {_expression(tensors, chance, depth + 1)}"
        case 5:
            return chance.choice(("0", "1", "-1", "2.5", "1e308", "inf", "1e-400", "9" * 400))
        case _:
            return f"({_expression(tensors, chance, depth + 1)})"


def liberty_text(chance: random.Random) -> bytes:
    """Return a library of cells. Most have a cell with an area and a flip-flop."""
    cells = [_cell(chance, chance.choice(("INV", "FF", "X[0]", "a.b", "")), number) for number in range(chance.randrange(6))]
    cells.append(_cell(chance, "D", 99) if chance.random() < 0.8 else "")
    chance.shuffle(cells)
    name = chance.choice(("small", '"small"', "a-b", "", "x" * 300, "é"))
    return f"library ({name}) {{\n{''.join(cells)}}}{chance.choice(('', chr(10), '}', ' /* '))}".encode("utf-8", "surrogatepass")


def _cell(chance: random.Random, name: str, number: int) -> str:
    area = chance.choice((*["1.5", "2"] * 4, *NUMBERS))
    parts = [f"area : {area};", "pin(A) { direction : input; }", 'pin(Y) { direction : output; function : "(A*B)\'"; }']
    parts += ['ff(IQ, IQN) { next_state : "D"; clocked_on : "C"; }'] if number == 99 or chance.random() < 0.3 else []
    parts += [f"{_word(chance)} ({_word(chance)}) {{ {_word(chance)} : {_scalar(chance)}; }}" for _ in range(chance.randrange(3))]
    chance.shuffle(parts)
    return f"  cell ({name}{number}) {{ {' '.join(parts[: chance.choice((9, 9, 9, 2))])} }}\n"


def _word(chance: random.Random) -> str:
    return chance.choice(
        ("pin", "ff", "cell", "area", "bus", "timing", "values", "include_file", "/*", "//", "\\\n", '"', *WORDS[:8])
    )


def graph_message(chance: random.Random) -> bytes:
    """Return a graph in protobuf whose fields are filled at random."""
    message = pb.ComalGraph()
    _fill(message, chance, 0)
    return message.SerializeToString(deterministic=True)


def change_message(content: bytes, chance: random.Random) -> bytes:
    """Return a graph in protobuf with some fields of one of its messages filled again."""
    message = pb.ComalGraph.FromString(content)
    for _ in range(chance.choice((1, 1, 2, 4))):
        part: Message = message
        while chance.random() < 0.8 and (parts := _parts(part)):
            part = chance.choice(parts)
        _fill(part, chance, 3, chance.choice((1, 1, 2)))
    return message.SerializeToString(deterministic=True)


def _parts(message: Message) -> list[Message]:
    parts: list[Message] = []
    for field, value in message.ListFields():
        if field.message_type is not None:
            parts += list(value) if field.is_repeated else [value]
    return parts


def _fill(message: Message, chance: random.Random, depth: int, most: int = 4) -> None:
    descriptor: Descriptor = message.DESCRIPTOR
    for field in chance.sample(list(descriptor.fields), min(len(descriptor.fields), chance.randrange(1, most + 1))):
        target = getattr(message, field.name)
        if field.message_type is not None:
            if depth > 6:
                continue
            for _ in range(chance.randrange(1, 4)) if field.is_repeated else (0,):
                inner = target.add() if field.is_repeated else target
                inner.SetInParent()
                _fill(inner, chance, depth + 1)
        elif field.is_repeated:
            target.extend(_plain(field, chance) for _ in range(chance.randrange(3)))
        else:
            setattr(message, field.name, _plain(field, chance))


def _plain(field: FieldDescriptor, chance: random.Random) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            texts = ("", "A", "B", "i", "k", "root", "relu", "(dense)", "csr", "\x1b[0m", "a" * 300)
            return chance.choice(texts) if field.type == FieldDescriptor.TYPE_STRING else b"\x00"
        case FieldDescriptor.CPPTYPE_BOOL:
            return chance.random() < 0.5
        case FieldDescriptor.CPPTYPE_ENUM:
            return chance.choice([value.number for value in field.enum_type.values])
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return chance.choice((0.0, 1.0, -1.5, float("nan"), float("inf")))
        case FieldDescriptor.CPPTYPE_UINT32:
            return chance.choice((0, 1, 2, 3, 4, 7, 100, 2**31, 2**32 - 1))
        case FieldDescriptor.CPPTYPE_UINT64:
            return chance.choice((0, 1, 2, 3, 4, 7, 100, 2**63, 2**64 - 1))
        case FieldDescriptor.CPPTYPE_INT64:
            return chance.choice((0, 1, 2, 3, -1, 2**63 - 1, -(2**63)))
        case _:
            return chance.choice((0, 1, 2, 3, -1, 2**31 - 1, -(2**31)))
