"""The result of a sampled run: cycles with their intervals, exact counts, and the values of the interpreter.

It is not a `Result`, and its cycles have another key than those of a `Result`: a reader of exact numbers cannot take sampled ones
for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fuseflow.run.check import Check
from fuseflow.run.directory_names import OUTPUTS
from fuseflow.run.result import Seconds, check_json, output_arrays, save_tensors
from fuseflow.run.settings import Settings, versions
from fuseflow.sampling.interval import SampledCycles, sampled_sum
from fuseflow.sampling.replicates import RegionSample
from fuseflow.sampling.sample_request import Sample
from fuseflow.sim.configuration_load import ConfigurationLoad
from fuseflow.sim.signature import RegionRepeat

if TYPE_CHECKING:
    import pandas
    from scipy import sparse

    from fuseflow.estimate.program_estimate import RegionEstimate
    from fuseflow.tensors import Tensor

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class SampledRegionResult:
    """A region of a sampled run, and the regions that run like it.

    `cycles` are sampled, over coordinates of the loop `index`, or exact if the region was short or most of it was needed; then
    `sample` is None. `counts` has its FLOPs, bytes and firings, whether it was sampled or not.
    """

    name: str
    einsums: tuple[str, ...]
    index: str
    cycles: SampledCycles | int
    sample: RegionSample | None
    counts: RegionEstimate
    repeats: tuple[RegionRepeat, ...] = ()

    @property
    def times(self) -> int:
        """How often the program has the region: once, and its repeats."""
        return 1 + len(self.repeats)

    def to_json(self) -> dict[str, Any]:
        """Return the region as plain values. Exact cycles have another key than sampled ones."""
        values: dict[str, Any] = {
            "name": self.name,
            "einsums": list(self.einsums),
            "times": self.times,
            "repeats": [repeat.name for repeat in self.repeats],
            "counted": self.counts.work.exact,
            "flops": round(self.counts.flops),
            "firings": round(self.counts.firings),
            "bytes": {direction: round(self.counts.bytes(direction)) for direction in ("read", "write")},
            "config": asdict(self.counts.config),
        }
        if self.sample is None or isinstance(self.cycles, int):
            return {**values, "exact_cycles": self.cycles}
        sample = {
            "index": self.index,
            "coordinates": self.sample.coordinates,
            "taken": self.sample.taken,
            "always": self.sample.certain,
            "replicates": self.sample.replicates,
            "share": round(self.sample.share, 6),
        }
        return {**values, "sampled_cycles": self.cycles.to_json(), "sample": sample}


def _row(region: SampledRegionResult) -> dict[str, Any]:
    cycles: dict[str, Any] = {"exact_cycles": region.cycles, "sampled_cycles": None, "sampled_low": None, "sampled_high": None}
    if isinstance(region.cycles, SampledCycles):
        ends = {"sampled_low": region.cycles.low, "sampled_high": region.cycles.high}
        cycles = {"exact_cycles": None, "sampled_cycles": round(region.cycles.estimate), **ends}
    counts = {"flops": round(region.counts.flops), "firings": round(region.counts.firings)}
    moved = {"bytes_read": round(region.counts.bytes("read")), "bytes_written": round(region.counts.bytes("write"))}
    return {"region": region.name, "times": region.times, **cycles, **counts, **moved}


@dataclass(frozen=True, slots=True)
class SampledResult:
    """A sampled run of a compiled program. `tensors` are the outputs of the interpreter.

    `check` compares them with PyTorch, and `rows_check` the values of all sampled rows with the interpreter.

    >>> import fuseflow as ff
    >>> text = "tensor A[2, 2] csr\\ntensor x[2]\\ny[i] = sum(k) A[i, k] * x[k]\\noutput y"
    >>> result = ff.compile(text, ([[1, 0], [2, 3]], [4, 5])).run(sample=ff.Sample(fraction=0.1))
    >>> result.cycles.low <= result.cycles.estimate <= result.cycles.high
    True
    """

    settings: Settings
    sample: Sample
    tensors: Mapping[str, Tensor]
    regions: tuple[SampledRegionResult, ...]
    check: Check | None
    rows_check: Check
    seconds: Seconds

    def __repr__(self) -> str:
        return f"<SampledResult {self.settings.model}: {self.cycles} cycles, {len(self.regions)} regions>"

    @property
    def outputs(self) -> dict[str, npt.NDArray[np.generic] | sparse.coo_array]:
        """Every model output, as a dense array, or as a scipy array if it is sparse."""
        return output_arrays(self.tensors)

    @property
    def cycles(self) -> SampledCycles:
        """The cycles of all regions together, with their interval."""
        sampled = [(r.times, r.cycles) for r in self.regions if isinstance(r.cycles, SampledCycles)]
        exact = sum(r.times * r.cycles for r in self.regions if isinstance(r.cycles, int))
        return sampled_sum(sampled, exact, self.sample.confidence)

    @property
    def flops(self) -> int:
        """The counted FLOPs of all regions together."""
        return round(sum(r.times * r.counts.flops for r in self.regions))

    @property
    def firings(self) -> int:
        """The counted firings of all regions together."""
        return round(sum(r.times * r.counts.firings for r in self.regions))

    def bytes(self, direction: str) -> int:
        """Return the counted bytes that all regions together move in a `direction`: `read` or `write`."""
        return round(sum(r.times * r.counts.bytes(direction) for r in self.regions))

    @property
    def config(self) -> ConfigurationLoad:
        """The loads of the configurations of all regions from memory, together."""
        return ConfigurationLoad.total((r.times, r.counts.config) for r in self.regions)

    @property
    def counted(self) -> bool:
        """Whether FLOPs, bytes and firings were counted; else they are expected from statistics."""
        return all(r.counts.work.exact for r in self.regions)

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain values, as `fuseflow run --sample --json` writes them. It has `sampled_cycles` in place of the `cycles`
        of an exact run."""
        s = self.settings
        return {
            "kind": "sampled",
            "schema": SCHEMA,
            **s.to_json(),
            "sample": {"asked": self.sample.text, "confidence": self.sample.confidence, "seed": self.sample.seed},
            "sampled_cycles": self.cycles.to_json(),
            "regions": [region.to_json() for region in self.regions],
            "counted": self.counted,
            "flops": self.flops,
            "firings": self.firings,
            "bytes": {direction: self.bytes(direction) for direction in ("read", "write")},
            "config": asdict(self.config),
            "check": check_json(self.check),
            "rows_check": check_json(self.rows_check),
            "notices": list(s.notices),
            **s.left_out_json,
            "versions": versions(),
            "seconds": self.seconds.to_json(),
        }

    def to_pandas(self) -> pandas.DataFrame:
        """Return a row for each region as a `DataFrame` of pandas: sampled cycles with the ends of their interval, or exact ones where the
        region ran in full, and counts. Raises `UsageError` without pandas."""
        from fuseflow.data_frames import data_frame  # few results are asked for one

        return data_frame(map(_row, self.regions))

    def save_outputs(self, directory: str | Path) -> list[Path]:
        """Write each output to `outputs/NAME.npy`, or to `.npz` if it is sparse, and return the files."""
        return save_tensors(Path(directory) / OUTPUTS, self.tensors)
