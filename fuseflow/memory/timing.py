"""The timing of an HBM2 device, and the least distances between commands that follow from it, in cycles of the memory clock, 1
ns.

The constants come from Ramulator 2.1 (SAFARI Research Group, ETH Zurich and Carnegie Mellon University; MIT licence), with the
organisation `HBM2_8Gb` and the timing `HBM2_2000Mbps`. Vendors differ in FAW, CCD and RFC, and so do other simulators.
"""

from __future__ import annotations

from dataclasses import dataclass

ROW_BUS = 2
"""The cycles that an ACT takes on the row bus. The ACT counts from the second cycle, so distances from an ACT grow by one, and
distances to an ACT shrink by one."""


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


def command_distances(device: DeviceTiming) -> dict[str, int]:
    """Return the smallest number of cycles from one command to another, as they follow from the constants of a device. RD and WR read and
    write, ACT and PRE open and close a row, and PREab and REFab close and refresh all banks."""
    d = device
    write_end = d.nCWL + d.nBL
    return {
        "read_data": d.nCL + d.nBL,  # from RD to the end of its data
        "act_to_read": d.nRCDRD + 1,
        "act_to_write": d.nRCDWR + 1,
        "act_to_close": d.nRAS + 1,  # from ACT to PRE of the bank, and to PREab
        "act_to_act": d.nRC,  # of the bank
        "act_to_act_near": d.nRRDL,  # of the bank group
        "act_to_act_far": d.nRRDS,  # of the pseudo channel
        "four_acts": d.nFAW,  # from ACT to the fourth ACT after it, of the pseudo channel
        "act_to_refresh": d.nRC + 1,
        "act_on_bus": ROW_BUS,  # from ACT to any row command of the channel
        "close_to_act": d.nRP - 1,  # from PRE and PREab to ACT
        "close_to_refresh": d.nRP,  # from PRE and PREab to REFab
        "read_to_close": d.nRTPL,
        "write_to_close": write_end + d.nWR,
        "same_near": d.nCCDL,  # from RD to RD and from WR to WR of the bank group
        "same_far": max(d.nCCDS, d.nBL),  # from RD to RD and from WR to WR of the pseudo channel
        "read_to_write": d.nCL + d.nBL + 2 - d.nCWL,
        "write_to_read_near": write_end + d.nWTRL,  # of the bank group
        "write_to_read_far": write_end + d.nWTRS,  # of the pseudo channel
        "refresh_to_act": d.nRFC - 1,
        "refresh_to_close": d.nRFC,  # A bank has no row to close before `refresh_to_act` is over, so this never binds.
        "refresh_period": d.nREFI,
    }


DISTANCE_NAMES = tuple(command_distances(HBM2_2000))


def lookahead(device: DeviceTiming) -> int:
    """Return the number of cycles after the acceptance of a request during which the request cannot be answered."""
    return device.nCL + device.nBL + 1
