"""The store of results of sweeps, in SQLite, with a row for each point and mode. A row is complete or absent, even after a crash."""

from __future__ import annotations

import fcntl
import json
import re
import sqlite3
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from fuseflow.errors import FileError, SweepError
from fuseflow.filesystem import parse_json
from fuseflow.run.settings import versions
from fuseflow.sweep.point import Task, TaskOutcome, code_version

SCHEMA = 1
"""The version of the table, in `user_version`."""
APPLICATION = 0x66756673
"""The `application_id` in the header of the file, `fufs`, which says that it is a store of a sweep."""

_TABLE = """
CREATE TABLE IF NOT EXISTS rows (
    key TEXT PRIMARY KEY,   -- of the point and the mode
    mode TEXT NOT NULL,     -- estimate, sample or simulate
    source TEXT NOT NULL,   -- what points that share a traced model have in common
    point TEXT NOT NULL,    -- JSON
    labels TEXT NOT NULL,   -- JSON: what the point was called on the axes of its sweep
    reason TEXT NOT NULL,   -- why it failed; empty if it did not
    error TEXT NOT NULL,
    attempt REAL NOT NULL,  -- its limit in seconds; 0 without
    "values" TEXT NOT NULL, -- JSON: what is compared
    seconds REAL NOT NULL,  -- from here on: of this machine and this day
    peak INTEGER NOT NULL,
    finished REAL NOT NULL,
    code TEXT NOT NULL,
    versions TEXT NOT NULL
)
"""

_RUNS = """
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY,   -- of a row
    run BLOB NOT NULL       -- packed: what its page shows
)
"""
"""The table of the runs that were kept. A store of before runs were kept has none."""

_OWN_COLUMNS = {
    name: re.findall(r'^ +"?(\w+)"? (?:TEXT|REAL|INTEGER|BLOB)', sql, re.MULTILINE)
    for name, sql in (("rows", _TABLE), ("runs", _RUNS))
}
_OTHER_STORE = "name another store: `--store FILE`"
_MOST_BYTES = 64 << 20
"""The most bytes of a text in the table."""


@dataclass(frozen=True, slots=True)
class ResultRow:
    """The result of a point in a mode, as it is stored.

    `limit` is the limit of time in seconds, 0 without one. `finished` is the time at which it finished, in seconds since 1970. `code` is
    the version of the fuseflow that ran it. `has_run` says that its run was kept.
    """

    mode: str
    source: str
    labels: Mapping[str, str]
    outcome: TaskOutcome
    limit: float
    finished: float
    code: str
    has_run: bool = False


@dataclass(slots=True)
class Store:
    """An open store. One process at a time may add rows, inside `writing`; others may read at any time."""

    path: Path
    _database: sqlite3.Connection = field(repr=False)
    _writing: bool = False

    @classmethod
    def open(cls, path: Path) -> Store:
        """Open a store, and create it if it does not exist. Raises `FileError` for a file that is no store of this schema."""
        with _file_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            database = sqlite3.connect(path, timeout=30, isolation_level=None)
            try:
                _prepare(database, path)
            except BaseException:
                database.close()
                raise
        return cls(path, database)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Take the right to add rows. Raises `SweepError` if another process has it. The lock ends with the process, however it ends."""
        with ExitStack() as opened:
            with _file_errors(self.path):  # and not around the block: its faults are not faults of this file
                self._lock(opened.enter_context(open(f"{self.path}.lock", "w")))
                self._database.execute(_RUNS)
            self._writing = True
            try:
                yield
            finally:
                self._writing = False

    def _lock(self, file: TextIO) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SweepError(
                f"another sweep is writing to `{self.path}`", hint="wait for it, or name another store: `--store FILE`"
            ) from None

    @property
    def is_written_by_another(self) -> bool:
        """Return whether another process has the right to add rows now."""
        if self._writing:
            return False
        try:
            with open(f"{self.path}.lock") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def add(self, task: Task, labels: Mapping[str, str], outcome: TaskOutcome) -> None:
        """Store the outcome of a task, and its run if it has one. They replace earlier ones."""
        row = (
            task.key,
            task.mode,
            task.point.source,
            json.dumps(asdict(task.point), sort_keys=True),
            json.dumps(dict(labels)),
            outcome.reason,
            outcome.error,
            task.limit or 0.0,
            json.dumps(outcome.values, sort_keys=True, allow_nan=False),
            outcome.seconds,
            outcome.peak,
            time.time(),
            code_version(),
            json.dumps(versions()),
        )
        with _file_errors(self.path), _transaction(self._database) as database:
            database.execute(f"INSERT OR REPLACE INTO rows VALUES ({','.join('?' * len(row))})", row)
            database.execute(_RUNS)
            database.execute("DELETE FROM runs WHERE key = ?", (task.key,))
            if outcome.run:
                database.execute("INSERT INTO runs VALUES (?, ?)", (task.key, b64decode(outcome.run)))

    def rows(self) -> dict[str, ResultRow]:
        """Return all rows, by key."""
        columns = 'key, mode, source, labels, "values", reason, error, seconds, peak, attempt, finished, code'
        with _file_errors(self.path):
            records = self._database.execute(f"SELECT {columns} FROM rows ORDER BY key").fetchall()
            kept = {key for (key,) in self._database.execute("SELECT key FROM runs")} if self._has_runs else set()
        return {key: replace(row, has_run=key in kept) for key, row in map(self._checked, records)}

    def run(self, key: str) -> bytes | None:
        """Return the packed run of a row, or None if none was kept. Raises `FileError` for a value that is no packed run."""
        with _file_errors(self.path):
            record = self._database.execute("SELECT run FROM runs WHERE key = ?", (key,)).fetchone() if self._has_runs else None
        if record is None:
            return None
        if not isinstance(record[0], bytes):
            raise FileError(f"`{self.path}` has a damaged run, `{key}`", hint=_OTHER_STORE)
        return record[0]

    @property
    def _has_runs(self) -> bool:
        return bool(self._database.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone())

    def _checked(self, record: tuple[Any, ...]) -> tuple[str, ResultRow]:
        """Return the key and the content of `record`, a row of the table. Raise `FileError` for a row that is damaged."""
        key, mode, source, labels, values, reason, error, seconds, peak, attempt, finished, code = record
        try:
            texts = (key, mode, source, reason, error, code)
            if not all(isinstance(text, str) for text in texts) or not isinstance(peak, int):
                raise ValueError("a text or a number is of another kind")
            spent, limit, at = float(seconds), float(attempt), float(finished)
            outcome = TaskOutcome(key, _mapping(values), reason, error, spent, peak)
            return key, ResultRow(mode, source, _mapping(labels), outcome, limit, at, code)
        except (FileError, TypeError, ValueError) as problem:
            message = f"`{self.path}` has a damaged row, `{str(key)[:40]}`: {getattr(problem, 'message', problem)}"
            raise FileError(message, hint=_OTHER_STORE) from None


def _mapping(text: Any) -> dict[str, Any]:
    """Return the JSON object that a row has. Raise `ValueError` for anything else."""
    values = parse_json(text, "it") if isinstance(text, str) else None
    if not isinstance(values, dict):
        raise ValueError("it is no JSON object")
    return values


def _prepare(database: sqlite3.Connection, path: Path) -> None:
    def pragma(name: str) -> Any:
        return database.execute(f"PRAGMA {name}").fetchone()[0]

    database.execute("PRAGMA trusted_schema = OFF")  # a file may come from anywhere: nothing in its schema is executed
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_BYTES)
    contents = database.execute("SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'").fetchall()
    problem = ""
    if contents and pragma("application_id") != APPLICATION:
        problem = "holds no results of a sweep"
    elif contents and pragma("user_version") != SCHEMA:
        problem = f"has schema {pragma('user_version')}, this fuseflow has {SCHEMA}"
    elif contents and not _is_own(database, contents):
        problem = "holds another table than that of a sweep"
    if problem:
        raise FileError(f"`{path}` {problem}", hint=_OTHER_STORE)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")  # a process that is killed loses nothing; a power cut may cost the last rows
    if not contents:
        with _transaction(database):
            database.execute(_TABLE)
            database.execute(_RUNS)
            database.execute(f"PRAGMA application_id = {APPLICATION}")
            database.execute(f"PRAGMA user_version = {SCHEMA}")


def _is_own(database: sqlite3.Connection, contents: list[tuple[str, str]]) -> bool:
    """Return whether a database, whose `contents` are kinds and names, has the tables of a store with all their columns."""
    if sorted(contents) not in ([("table", "rows")], [("table", "rows"), ("table", "runs")]):
        return False
    columns = {name: [column[1] for column in database.execute(f"PRAGMA table_xinfo({name})").fetchall()] for _, name in contents}
    return all(columns[name] == _OWN_COLUMNS[name] for name in columns)


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Make all changes of the block in one step, or none of them."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield database
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError, OverflowError) as error:  # what sqlite says of damage may be damaged, too
        raise FileError(f"`{path}`: {error}", hint=_OTHER_STORE) from error
    except OSError as error:
        raise FileError(f"cannot write `{path}`: {error.strerror or error}") from error
