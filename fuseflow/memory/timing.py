"""The timing of an HBM2 device, and the least distances between commands that follow from it, in cycles of the memory clock, 1
ns.

The constants come from Ramulator 2.1 (SAFARI Research Group, ETH Zurich and Carnegie Mellon University; MIT licence), with the
organisation `HBM2_8Gb` and the timing `HBM2_2000Mbps`. Vendors differ in FAW, CCD and RFC, and so do other simulators.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

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


@dataclass(frozen=True, slots=True)
class CommandDistances:
    """The smallest number of cycles from one command to another. RD and WR read and write, ACT and PRE open and close a row, and PREab
    and REFab close and refresh all banks."""

    read_data: int
    """From RD to the end of its data."""
    act_to_read: int
    act_to_write: int
    act_to_close: int
    """From ACT to PRE of the bank, and to PREab."""
    act_to_act: int
    """From ACT to ACT of the bank."""
    act_to_act_near: int
    """From ACT to ACT of the bank group."""
    act_to_act_far: int
    """From ACT to ACT of the pseudo channel."""
    four_acts: int
    """From ACT to the fourth ACT after it, of the pseudo channel."""
    act_to_refresh: int
    act_on_bus: int
    """From ACT to any row command of the channel."""
    close_to_act: int
    """From PRE and PREab to ACT."""
    close_to_refresh: int
    """From PRE and PREab to REFab."""
    read_to_close: int
    write_to_close: int
    same_near: int
    """From RD to RD and from WR to WR of the bank group."""
    same_far: int
    """From RD to RD and from WR to WR of the pseudo channel."""
    read_to_write: int
    write_to_read_near: int
    """From WR to RD of the bank group."""
    write_to_read_far: int
    """From WR to RD of the pseudo channel."""
    refresh_to_act: int
    refresh_to_close: int
    """From REFab to PREab. A bank has no row to close before `refresh_to_act` is over, so this never binds."""
    refresh_period: int


def command_distances(device: DeviceTiming) -> CommandDistances:
    """Return the distances between commands that follow from the constants of a device."""
    d = device
    write_end = d.nCWL + d.nBL
    return CommandDistances(
        read_data=d.nCL + d.nBL,
        act_to_read=d.nRCDRD + 1,
        act_to_write=d.nRCDWR + 1,
        act_to_close=d.nRAS + 1,
        act_to_act=d.nRC,
        act_to_act_near=d.nRRDL,
        act_to_act_far=d.nRRDS,
        four_acts=d.nFAW,
        act_to_refresh=d.nRC + 1,
        act_on_bus=ROW_BUS,
        close_to_act=d.nRP - 1,
        close_to_refresh=d.nRP,
        read_to_close=d.nRTPL,
        write_to_close=write_end + d.nWR,
        same_near=d.nCCDL,
        same_far=max(d.nCCDS, d.nBL),
        read_to_write=d.nCL + d.nBL + 2 - d.nCWL,
        write_to_read_near=write_end + d.nWTRL,
        write_to_read_far=write_end + d.nWTRS,
        refresh_to_act=d.nRFC - 1,
        refresh_to_close=d.nRFC,
        refresh_period=d.nREFI,
    )


def lookahead(device: DeviceTiming) -> int:
    """Return the number of cycles after the acceptance of a request during which the request cannot be answered."""
    return device.nCL + device.nBL + 1


DISTANCE_NAMES = tuple(field.name for field in fields(CommandDistances))
