"""What tables call regions that run alike."""

from __future__ import annotations

import pytest

from fuseflow.report.tables import region_label
from fuseflow.sim.signature import RegionRepeat


@pytest.mark.parametrize(
    ("names", "label"),
    [
        (["full"], "full"),
        (["full-2", "full-4"], "full-2, full-4"),
        (["decoders.0", "decoders.1"], "decoders.0, decoders.1"),
        ([f"full-{n}" for n in range(2, 26, 2)], "full-2 .. full-24 x12"),
        ([f"h.{n}-2" for n in range(12)], "h.0-2 .. h.11-2 x12"),
        (["a_region_with_a_name_that_is_quite_long"], "a_region_with_a_name_that_is_quite_long"),
    ],
)
def test_numbers_of_regions_are_not_left_out(names, label):
    assert region_label(names[0], [RegionRepeat(name, (), {}) for name in names[1:]]) == label
