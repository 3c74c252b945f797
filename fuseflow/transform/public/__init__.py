"""The public form of a graph: the same results from primitives of the public schema alone, which other simulators execute, too."""

from typing import TYPE_CHECKING

from fuseflow.deferred_names import deferred_names

if TYPE_CHECKING:
    from fuseflow.transform.public.arithmetic import SELECTIONS as SELECTIONS
    from fuseflow.transform.public.form import public_form as public_form
    from fuseflow.transform.public.public_graph import PublicForm as PublicForm
else:
    __getattr__, __dir__, __all__ = deferred_names(__name__, __file__)
