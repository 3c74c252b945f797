"""Types of the settings in machine files: whole numbers within bounds, and settings without unknown keys."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import PydanticCustomError

MOST = 2**31 - 1
"""The largest number of a setting, so that its product with a number of firings stays inside 64 bits."""
MOST_LINE = 4096
MOST_LATENCY = 1 << 20


class Strict(BaseModel):
    """Settings without unknown keys, which do not change."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)


def whole_number(value: Any) -> int:
    """Return a whole number as a plain int, and -1 for anything else. Raise pydantic's error for a number above `MOST`."""
    if not isinstance(value, int) or isinstance(value, bool):
        return -1
    if value > MOST:
        raise PydanticCustomError("large", f"is above {MOST:,}, the largest number of a setting")
    return value


def number_in(allowed: Container[int], message: str) -> BeforeValidator:
    """Return a validator that takes the `allowed` whole numbers, and refuses all else with a message."""

    def check(value: Any) -> Any:
        if whole_number(value) not in allowed:
            raise PydanticCustomError("number", message)
        return whole_number(value)

    return BeforeValidator(check)
