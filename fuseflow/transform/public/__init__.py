"""The public form of a graph: the same results from primitives of the public schema alone, which other simulators execute, too."""

from fuseflow.transform.public.arithmetic import SELECTIONS as SELECTIONS
from fuseflow.transform.public.form import PublicForm as PublicForm
from fuseflow.transform.public.form import public_form as public_form
