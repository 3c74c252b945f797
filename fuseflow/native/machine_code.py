"""LLVM makes object files for a processor, and places them in the memory of this process. No C compiler or linker is needed for that."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm


def target_machine(cpu: str, features: str = "") -> llvm.TargetMachine:
    """Return LLVM's description of a processor (`cpu` with `features`), for code that is loaded into a process."""
    _initialize()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu, features=features, opt=3, reloc="static", codemodel="jitdefault", jit=True)


@cache
def _initialize() -> None:
    """Prepare LLVM, once in a process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


class Loader:
    """A loader places object code in the memory of this process, where it stays as long as the loader."""

    def __init__(self, cpu: str, features: str) -> None:
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine(cpu, features))

    def load(self, code: bytes, symbol: str) -> int:
        """Load the object file `code` and return the address of its function `symbol`."""
        self.engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self.engine.finalize_object()
        address: int = self.engine.get_function_address(symbol)
        assert address, symbol
        return address
