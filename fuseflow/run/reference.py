"""What the outputs of a program are compared with: PyTorch's, or those of the dense interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from fuseflow.einsum.blocks import tensors_to_elements
from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.integer_range import refuse_rounded_integers
from fuseflow.einsum.interpret import evaluate_operands, operands_of
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.sparse_arrays import Operand
from fuseflow.frontend.sources import Source
from fuseflow.run.check import PYTORCH, Check, check_program
from fuseflow.run.input_tensors import inputs_of
from fuseflow.tensors import Tensor

if TYPE_CHECKING:
    from fuseflow.run.training.model_steps import LearningRates, ModelSteps


@dataclass(frozen=True, slots=True)
class ProgramReference:
    """The reference of a compiled program. `memory` gives the tensors in memory before the first region runs. If `wide`, the interpreter
    computes in 64 bits."""

    source: Source
    program: Program
    wide: bool
    memory: Callable[[], Mapping[str, Tensor]]

    def comparison(self) -> Callable[[Mapping[str, Tensor]], Check]:
        """Return the function that checks outputs. What PyTorch computes is computed now, so a model that it cannot run is refused."""
        program, expected = self._original.program, self.source.expected
        if expected is None:
            return lambda outputs: check_program(program, self._arrays, outputs, self.interpret(), "dense interpreter")
        if self.source.step is not None:
            steps = self.model_steps(None)
            return partial(steps.compare, steps.taken(1, self.source.tensors))
        known = dict(expected)
        return lambda outputs: check_program(program, self._arrays, outputs, known, PYTORCH)

    def model_steps(self, rates: LearningRates | None) -> ModelSteps:
        """Return what the steps of a model need beside its program."""
        from fuseflow.run.training.model_steps import ModelSteps  # loads PyTorch

        assert self.source.step is not None
        return ModelSteps(self.source.step, self._original.program, self.program, rates)

    def interpret(self) -> dict[str, Operand]:
        """Compute the outputs of the program before it was simplified. Raises `ProgramError` for integers that might have been rounded."""
        arrays = self._arrays()
        refuse_rounded_integers(infer(self._original.program), arrays)
        results = evaluate_operands(self._original.program, arrays, outputs_only=True, wide=self.wide)
        return {name: results[name] for name in self.program.outputs}

    @property
    def _original(self) -> Source:
        """The source before it was rewritten."""
        return self.source.original or self.source

    def _arrays(self) -> dict[str, Operand]:
        original = self._original
        stored, declared = self.memory(), self.program.declared
        inputs = inputs_of(original, original.program.inputs)
        roots = {t.like: declared[t.like] for t in original.program.tensors if t.like}
        return operands_of(original.program, inputs | tensors_to_elements(roots, {name: stored[name] for name in roots}))
