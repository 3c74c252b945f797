"""The timing of an HBM2 device, and the least distances between commands that follow from it, in cycles of the memory clock, 1
ns.

The constants come from Ramulator 2.1 (SAFARI Research Group, ETH Zurich and Carnegie Mellon University; MIT licence), with the
organisation `HBM2_8Gb` and the timing `HBM2_2000Mbps`. Vendors differ in FAW, CCD and RFC, and so do other simulators.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceTiming:
    """The constants of a data sheet, under their usual names (such as nCL for the CAS latency in cycles)."""

    nBL: int = 2
    nCL: int = 14
    nCWL: int = 5
    nRCDRD: int = 14
    nRCDWR: int = 12
    nRP: int = 14
    nRAS: int = 34
    nRC: int = 48
    nWR: int = 16
    nRTPL: int = 5
    nCCDS: int = 2
    nCCDL: int = 4
    nRRDS: int = 4
    nRRDL: int = 4
    nFAW: int = 15
    nWTRS: int = 6
    nWTRL: int = 8
    nRFC: int = 350
    nREFI: int = 3900


HBM2_2000 = DeviceTiming()
