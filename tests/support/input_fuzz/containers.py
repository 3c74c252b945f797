"""Files that hold others: they are taken apart, one part is changed, and they are put together again with sizes and checksums that fit."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import pickletools
import random
import re
import sqlite3
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from input_fuzz.mutations import mutate, mutate_value

Change = Callable[[bytes, random.Random], bytes]


def change_zip(content: bytes, chance: random.Random) -> bytes:
    """Change one member of an archive. One of JSON may stay JSON."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(info.filename, info.compress_type, archive.read(info)) for info in archive.infolist()]
    at = chance.randrange(len(members))
    name, method, member = members[at]
    if chance.random() < 0.1:
        members = members[:at] + members[at + 1 :]
    elif chance.random() < 0.1:
        members.append((chance.choice(members)[0], method, member))
    elif name.endswith(".json"):
        members[at] = name, method, change_json(member, chance)
    else:
        others = [part for _, _, part in members]
        members[at] = (
            name,
            method,
            change_npy(member, chance) if name.endswith(".npy") else mutate(member, others, chance, False),
        )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, method, member in members:
            archive.writestr(zipfile.ZipInfo(name), member, method)
    return out.getvalue()


def change_npy(content: bytes, chance: random.Random) -> bytes:
    """Change the numbers of an array and leave its header, or the other way round."""
    start = 10 + int.from_bytes(content[8:10], "little")
    head, numbers = content[:start], content[start:]
    if chance.random() < 0.25:
        return mutate(head, [head], chance, True) + numbers
    changed = bytearray(numbers)
    for _ in range(chance.choice((1, 1, 2, 5))):
        if changed:
            at = chance.randrange(len(changed))
            changed[at] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
    return head + bytes(changed)


def change_json(content: bytes, chance: random.Random) -> bytes:
    """Change a value in a JSON text, which stays one."""
    try:
        value = json.loads(content)
    except ValueError:
        return content
    for _ in range(chance.choice((1, 1, 2, 3))):
        value = mutate_value(value, chance)
    return json.dumps(value).encode("utf-8", "surrogatepass")


def change_digest(hexadecimal: bool, inside: Change) -> Change:
    """Return a change of a content that begins with the SHA-256 digest of the rest."""

    def change(content: bytes, chance: random.Random) -> bytes:
        size = 65 if hexadecimal else 32
        body = inside(content[size:], chance)
        digest = hashlib.sha256(body)
        return (digest.hexdigest().encode() + b"\n" if hexadecimal else digest.digest()) + body

    return change


def change_store(content: bytes, chance: random.Random) -> bytes:
    """Change a value in a row of an SQLite file, or its schema."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.deserialize(content)
        column = chance.choice([row[1] for row in database.execute("PRAGMA table_info(rows)")])
        key, old = database.execute(f'SELECT key, "{column}" FROM rows ORDER BY key LIMIT 1').fetchone()
        match chance.randrange(14):
            case 10 | 11 | 12 | 13:
                (packed,) = database.execute("SELECT run FROM runs WHERE key = ?", (key,)).fetchone()
                run = (
                    change_json(zlib.decompress(packed), chance)
                    if chance.random() < 0.9
                    else mutate(packed, [packed], chance, False)
                )
                database.execute(
                    "UPDATE runs SET run = ? WHERE key = ?", (run if run.startswith(b"x") else zlib.compress(run), key)
                )
            case 0:
                database.execute("CREATE VIEW extra AS SELECT * FROM rows")
            case 1:
                database.execute("CREATE TRIGGER hidden AFTER INSERT ON rows BEGIN DELETE FROM rows; END")
            case 2:
                database.execute(f"PRAGMA {chance.choice(('application_id', 'user_version'))} = {chance.choice((0, 1, 2, -1))}")
            case 3 | 4 if isinstance(old, str) and old.startswith("{"):
                database.execute(
                    f'UPDATE rows SET "{column}" = ? WHERE key = ?',
                    (change_json(old.encode(), chance).decode("utf-8", "replace"), key),
                )
            case 5:
                value = chance.choice((b"\x00\xff", -(2**63), 1e308, float("inf"), "", "{", "[" * 3000, "9" * 5000, "{}"))
                database.execute(f'UPDATE OR IGNORE rows SET "{column}" = ? WHERE key = ?', (value, key))
            case _:
                text = mutate(str(old).encode(), [b"{}"], chance, True).decode("utf-8", "replace")
                database.execute(f'UPDATE OR IGNORE rows SET "{column}" = ? WHERE key = ?', (text, key))
        return bytes(database.serialize())


SEPARATOR = b"\n=====\n"
"""What stands between the files of a folder that is kept as one content: each begins with a line of its name."""


def change_folder(is_text: bool, inside: Change | None = None) -> Change:
    """Return a change of one file of a folder."""

    def change(content: bytes, chance: random.Random) -> bytes:
        files = content.split(SEPARATOR)
        at = chance.randrange(len(files))
        name, _, body = files[at].partition(b"\n")
        others = [file.partition(b"\n")[2] for file in files]
        changed = mutate(body, others, chance, is_text) if inside is None else inside(body, chance)
        files[at] = name + b"\n" + changed
        return SEPARATOR.join(files)

    return change


def unfold(content: bytes, folder: Path) -> None:
    """Write the files of a folder that is kept as one content. A name that leads out of the folder is left out."""
    for file in content.split(SEPARATOR):
        name, _, body = file.partition(b"\n")
        parts = name.decode("utf-8", "replace").split("/")
        if all(part not in ("", ".", "..") and "\0" not in part for part in parts):
            path = folder.joinpath(*(part[:50] for part in parts[:3]))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)


def change_text(content: bytes, chance: random.Random) -> bytes:
    """Change a text so that it mostly still parses: JSON as values, any other by its lines."""
    return change_json(content, chance) if content.startswith(b"{") else change_lines(content, chance)


def change_member(content: bytes, chance: random.Random) -> bytes:
    """Change an archive, or a text."""
    return change_zip(content, chance) if content.startswith(b"PK") else change_text(content, chance)


def change_gzip(content: bytes, chance: random.Random) -> bytes:
    """Change what is packed."""
    return gzip.compress(mutate(gzip.decompress(content), [b"0,1\n"], chance, True), mtime=0)


def change_lines(content: bytes, chance: random.Random) -> bytes:
    """Change a text so that it mostly still parses: lines are repeated, removed or exchanged, and numbers and texts are put into the places
    of others."""
    for _ in range(chance.choice((1, 1, 2))):
        lines = content.split(b"\n")
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        match chance.randrange(8):
            case 0:
                lines[at:at] = [lines[other]]
            case 1:
                del lines[at]
            case 2:
                lines[at], lines[other] = lines[other], lines[at]
            case 3 | 4:
                lines[at] = _substitute(lines[at], rb'"[^"\n]*"', content, chance)
            case _:
                lines[at] = _substitute(lines[at], rb"(?<![%#\w.])\d+", content, chance)
        content = b"\n".join(lines)
    return content


def _substitute(line: bytes, pattern: bytes, content: bytes, chance: random.Random) -> bytes:
    """Put something else of the same kind into one place of a line."""
    places, choices = list(re.finditer(pattern, line)), re.findall(pattern, content)
    if not places:
        return line
    place = chance.choice(places)
    new = chance.choice(
        (chance.choice(choices), b"0", b"9223372036854775807", b"3") if place[0].isdigit() else (chance.choice(choices), b'""')
    )
    return line[: place.start()] + new + line[place.end() :]


def change_pickles(content: bytes, chance: random.Random) -> bytes:
    """Change what an operation of one pickle of a folder is given, and leave its length."""
    files = content.split(SEPARATOR)
    at = chance.randrange(len(files))
    name, _, body = files[at].partition(b"\n")
    changed = bytearray(body)
    try:
        starts = [position for _, argument, position in pickletools.genops(body) if argument is not None]
    except ValueError:
        return content
    for _ in range(chance.choice((1, 2, 4))):
        start = chance.choice(starts) + 1
        for place in range(start, min(start + chance.choice((1, 1, 4)), len(changed) - 1)):
            changed[place] = chance.choice((0, 1, 2, 127, 128, 255, chance.randrange(256)))
    files[at] = name + b"\n" + bytes(changed)
    return SEPARATOR.join(files)
