"""A trace that has all that a model computes from its inputs.

A composite trace, which has the operators that the user calls, misses what PyTorch computes inside of function transforms
(`torch.func.vmap`, `grad`) and in backward passes. Such a model is traced again, in the operators that composite ones consist of.
"""

from __future__ import annotations

from torch.fx import Node

from fuseflow.errors import FrontendError
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.dependence import Memories
from fuseflow.frontend.trace.model_call import ModelCall
from fuseflow.frontend.trace.refusals import OperatorError, raise_all, refusal
from fuseflow.frontend.trace.tracing import Trace, trace


def complete_trace(call: ModelCall) -> Trace:
    """Run a model on its inputs and return what it computed as a graph. Raise whatever the model raises, and `FrontendError` for a value
    that is computed from an input in a way that no trace records."""
    try:
        traced = _traced(call, composite=True)
        if not _unrecorded(traced):
            return traced
        if call.criterion is not None:
            hint = "train a model whose `forward` uses neither"
            raise FrontendError("the model differentiates or transforms functions in its `forward`", hint=hint)
    except FrontendError:
        raise
    except Exception as error:  # PyTorch cannot run all backward passes in such a trace.
        if call.criterion is not None:
            raise
        try:
            traced = _traced(call, composite=False)
        except Exception:
            raise error from None
    else:
        traced = _traced(call, composite=False)
    raise_all([_refusal(node) for node in _unrecorded(traced)], call.module)
    return traced


def _traced(call: ModelCall, *, composite: bool) -> Trace:
    with call.repeatable():
        return trace(call, composite=composite)


def _unrecorded(traced: Trace) -> list[Node]:
    """Return the constants that hold what was computed from an input, unless a recorded operator wrote it to them."""
    memories = Memories(traced.graph_module.graph)
    return [node for node in traced.unrecorded if node.users and not memories.writers(memories.root(node))]


def _refusal(constant: Node) -> OperatorError:
    user = next(iter(constant.users))
    action = "the model returns" if user.op == "output" else f"`{fx_origin.operator_name(user)}` reads"
    message = f"{action} a tensor that follows from an input in a way that PyTorch does not record"
    return refusal(user, message, "compute it by operators of PyTorch, on the tensors that the model was given")
