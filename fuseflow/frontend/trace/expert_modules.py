"""Mixtures of experts of Hugging Face, which have several implementations of one function.

The first implementation loops over the experts that some token chose, so that its operators depend on the data. Another one sorts the
tokens by expert and multiplies them in groups. It is the one that can be traced.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

_SETTING, _LOOP, _GROUPS = "_experts_implementation", (None, "eager"), "grouped_mm"


@contextmanager
def grouped_experts(model: nn.Module) -> Iterator[int]:
    """Let the experts of a model that loop over themselves multiply in groups in the block. The value is how many modules do."""
    modules = [module for module in model.modules() if _loops_over_experts(module)]
    configs = {id(module.config): module.config for module in modules}.values()
    before = [getattr(config, _SETTING) for config in configs]
    try:
        for config in configs:
            setattr(config, _SETTING, _GROUPS)
        yield len(modules)
    finally:
        for config, implementation in zip(configs, before, strict=True):
            setattr(config, _SETTING, implementation)


def _loops_over_experts(module: nn.Module) -> bool:
    config: Any = getattr(module, "config", None)
    has_several = hasattr(type(module).forward, "__wrapped__") and hasattr(config, _SETTING)
    return has_several and getattr(config, _SETTING) in _LOOP and "expert" in type(module).__name__.lower()
