"""Random tests that draw the same in every process.

Hypothesis also draws the constants that stand in the source of the modules that are loaded, and these depend on which tests a process ran
before. Importing this file leaves them out.
"""

from __future__ import annotations

from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

NO_CONSTANTS = Constants()
providers._get_local_constants = lambda: NO_CONSTANTS
