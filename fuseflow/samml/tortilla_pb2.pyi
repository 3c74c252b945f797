"""The messages of `tortilla.proto`, whose classes protobuf makes from their descriptors when the module is loaded."""

from typing import Any

def __getattr__(name: str) -> Any: ...
