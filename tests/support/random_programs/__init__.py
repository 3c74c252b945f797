"""Random Einsum programs with random data, formats and schedules, as hypothesis strategies: what property tests and fuzzing draw from."""

from .case import Case
from .chosen import chosen_programs
from .data import formats, tensors
from .hard import hard_programs
from .programs import cases, planned
from .views import view_programs
from .wide import wide_programs

__all__ = ["Case", "cases", "chosen_programs", "formats", "hard_programs", "planned", "tensors", "view_programs", "wide_programs"]
