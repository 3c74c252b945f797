"""Keeps on disk which cut was chosen for a program. To choose takes ten times as long as to compile, and the choice is always the
same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.text import show
from fuseflow.machine.machine import Machine
from fuseflow.package_digest import package_digest
from fuseflow.private_store import PrivateStore
from fuseflow.schedule import Schedule
from fuseflow.tensors import Tensor


def cut_store() -> PrivateStore | None:
    """Return the store of the cuts of this user, or None if it cannot be opened."""
    return PrivateStore.open("cuts", ".json")


def cut_digest(program: Program, schedule: Schedule, machine: Machine, tensors: Mapping[str, Tensor]) -> str:
    """Return a digest of everything that decides a cut: the program with the modules and regions of its Einsums, the rest of the
    schedule, the machine, the tensors, and the sources of fuseflow."""
    places = [(e.location.path, e.location.region) for e in program.einsums]
    contents = {name: tensor.digest() for name, tensor in tensors.items()}
    return hashlib.sha256(
        repr((package_digest(), show(program), places, schedule, machine.settings, contents)).encode()
    ).hexdigest()


def recall_cut(store: PrivateStore, digest: str, schedule: Schedule) -> Schedule | None:
    """Return the schedule with the regions of the cut that is kept under a digest, or None if there is none."""
    content = store.read(digest)
    if content is None:
        return None
    names, regions = json.loads(content)
    return replace(schedule, fuse_regions=tuple(names), regions=tuple((name, tuple(members)) for name, members in regions))


def keep_cut(store: PrivateStore, digest: str, schedule: Schedule) -> None:
    """Keep the regions of a schedule under a digest."""
    store.write(digest, json.dumps([schedule.fuse_regions, schedule.regions]).encode())
