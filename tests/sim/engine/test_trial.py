"""A trial runs in a copy of the process, and only its answer comes back."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from fuseflow.sim.engine.execute import FORK_AVAILABLE, TrialFailure, run_in_copy

pytestmark = pytest.mark.skipif(not FORK_AVAILABLE, reason="this system does not copy processes")


@pytest.mark.parametrize("answer", [7, 0, None])
def test_the_answer_comes_back_and_nothing_else(answer: int | None) -> None:
    state = [1]

    def attempt(alive: Callable[[int], None]) -> int | None:
        state.append(2)
        alive(0)
        return answer

    assert run_in_copy(attempt) == answer
    assert state == [1]


def test_a_copy_that_is_ended_has_no_answer() -> None:
    def attempt(alive: Callable[[int], None]) -> int | None:
        os.kill(os.getpid(), signal.SIGKILL)
        return 1

    with pytest.raises(TrialFailure):
        run_in_copy(attempt)


def test_a_copy_that_fails_has_none_either(capfd: pytest.CaptureFixture[str]) -> None:
    def attempt(alive: Callable[[int], None]) -> int | None:
        raise ZeroDivisionError

    with pytest.raises(TrialFailure):
        run_in_copy(attempt)
    assert capfd.readouterr().err == ""
