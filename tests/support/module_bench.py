"""Modules of the folder `sv` in Icarus, with given inputs in every cycle: what they give is to be compared with a model of them in Python.

Many instances run in one testbench, each with inputs of its own from a file.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fuseflow.hardware.rtl_simulators import library_text

Vector = Mapping[str, int]
"""The inputs, or the outputs, of one cycle."""


@dataclass(frozen=True)
class Instance:
    """An instance of a module: its parameters, the bits of its inputs and outputs, and its inputs in every cycle."""

    module: str
    parameters: Mapping[str, int]
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    cycles: Sequence[Vector]


def run_modules(folder: Path, sources: Sequence[str], instances: Sequence[Instance]) -> list[list[list[str]]]:
    """The outputs of every instance in every cycle, as text in hexadecimal, in their order."""
    length = max(len(instance.cycles) for instance in instances)
    parts, prints = [], []
    for number, instance in enumerate(instances):
        width = sum(instance.inputs.values())
        (folder / f"in{number}.hex").write_text("".join(f"{_packed(instance, cycle):x}\n" for cycle in instance.cycles))
        wires = "".join(f"wire [{bits - 1}:0] o{number}_{name}; " for name, bits in instance.outputs.items())
        parts.append(f"reg [{width - 1}:0] in{number} [0:{length - 1}]; {wires}")
        parts.append(f'initial $readmemh("in{number}.hex", in{number});')
        pins, low = [".clk(clk)", ".rst(rst)"], width
        for name, bits in instance.inputs.items():
            low -= bits
            pins.append(f".{name}(now{number}[{low} +: {bits}])")
        pins += [f".{name}(o{number}_{name})" for name in instance.outputs]
        parts.append(f"wire [{width - 1}:0] now{number} = in{number}[cycle];")
        given = ", ".join(f".{key}({value})" for key, value in instance.parameters.items())
        parts.append(f"{instance.module} #({given}) u{number} ({', '.join(pins)});")
        formats, values = " ".join("%h" for _ in instance.outputs), ", ".join(f"o{number}_{name}" for name in instance.outputs)
        prints.append(f'if (cycle < {len(instance.cycles)}) $fwrite(file, "{number} {formats}\\n", {values});')
    (folder / "bench.sv").write_text(_text(parts, prints, length))
    for source in sources:
        (folder / source).write_text(library_text(source))
    subprocess.run(["iverilog", "-g2012", "-o", "bench.vvp", "-s", "bench", "bench.sv", *sources], cwd=folder, check=True)
    subprocess.run(["vvp", "-n", "bench.vvp"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    outputs: list[list[list[str]]] = [[] for _ in instances]
    for line in (folder / "out.txt").read_text().splitlines():
        number, *values = line.split()
        outputs[int(number)].append(values)
    return outputs


def _packed(instance: Instance, cycle: Vector) -> int:
    word = 0
    for name, bits in instance.inputs.items():
        word = word << bits | cycle[name]
    return word


def _text(parts: Sequence[str], prints: Sequence[str], length: int) -> str:
    declared, printed = "\n  ".join(parts), "\n      ".join(prints)
    return f"""module bench;
  reg clk = 0, rst = 1;
  integer cycle = 0, resets = 0, file;
  {declared}
  initial file = $fopen("out.txt", "w");
  always #5 clk = !clk;
  always @(posedge clk) begin
    if (!rst) begin
      {printed}
      cycle <= cycle + 1;
      if (cycle == {length - 1}) $finish;
    end
  end
  always @(negedge clk) begin
    resets = resets + 1;
    if (resets == 2) rst = 0;
  end
endmodule
"""
