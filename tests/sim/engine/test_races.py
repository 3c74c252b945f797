"""Threads of a team never use the same word of memory at the same time, if one of them writes it."""

from __future__ import annotations

from uncompiled import check_uncompiled

SCRIPT = """
from engines import LIMITS, differences, on_engine, on_reference
from graph_fuzz import drawn
from races import Watch, watch_team

watch, threaded = Watch(), [limits for limits in LIMITS if limits.threads]
watch_team(watch)
meetings = 0
for seed in range(45):
    case = drawn(seed, "small")
    found = on_engine(case, threaded[seed % len(threaded)])
    assert not list(differences(case, on_reference(case), found)), seed
    meetings += watch.meetings
assert meetings > 1000
assert not watch.races, watch.races[:5]
"""


def test_threads_do_not_race() -> None:
    """The watch finds it if runs still grow that readers in other threads see, and if a thread tells bounds before all have come."""
    check_uncompiled(SCRIPT)
