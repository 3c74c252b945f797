"""The timing of an HBM2 device, and the distances between commands that follow from it. All in cycles of the memory clock, 1 ns.

The constants are those of Ramulator 2.1 (SAFARI Research Group, ETH Zurich and Carnegie Mellon University; MIT licence), organisation
`HBM2_8Gb`, timing `HBM2_2000Mbps`. Vendors differ in FAW, CCD and RFC, and so do other simulators.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

ROW_BUS = 2
"""Cycles that an ACT takes on the row bus. It counts from the second, so distances from an ACT grow by one, those to an ACT shrink."""


@dataclass(frozen=True, slots=True)
class DeviceTiming:
    """The constants of a data sheet, under their usual names (nCL: CAS latency in cycles, and so on)."""

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
    """The earliest cycle of one command after another. RD, WR: read and write; PRE: close a row; PREab, REFab: close, refresh all banks."""

    read_data: int
    """RD to the end of its data."""
    act_to_read: int
    act_to_write: int
    act_to_close: int
    """ACT to PRE of the bank, and to PREab."""
    act_to_act: int
    """ACT to ACT of the bank."""
    act_to_act_near: int
    """ACT to ACT of the bank group."""
    act_to_act_far: int
    """ACT to ACT of the pseudo channel."""
    four_acts: int
    """ACT to the fourth ACT after it, of the pseudo channel."""
    act_to_refresh: int
    act_on_bus: int
    """ACT to any row command of the channel."""
    close_to_act: int
    """PRE and PREab to ACT."""
    close_to_refresh: int
    """PRE and PREab to REFab."""
    read_to_close: int
    write_to_close: int
    same_near: int
    """RD to RD and WR to WR of the bank group."""
    same_far: int
    """RD to RD and WR to WR of the pseudo channel."""
    read_to_write: int
    write_to_read_near: int
    """WR to RD of the bank group."""
    write_to_read_far: int
    """WR to RD of the pseudo channel."""
    refresh_to_act: int
    refresh_to_close: int
    """REFab to PREab; a bank has no row to close before `refresh_to_act` is over, so this never binds."""
    refresh_period: int


def command_distances(device: DeviceTiming) -> CommandDistances:
    """What the constants of a device mean for pairs of commands."""
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
    """Cycles from the acceptance of a request during which it cannot be answered."""
    return device.nCL + device.nBL + 1


DISTANCE_NAMES = tuple(field.name for field in fields(CommandDistances))
