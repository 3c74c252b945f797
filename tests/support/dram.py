"""Tables of memories from the recorded parameters of Ramulator, as `config.json` of the golden data has them."""

from __future__ import annotations

from typing import Any

from fuseflow.memory.dram_table import DataClock, Distance, DramTable, Lpddr5, RefreshKind

_LEVELS = {
    "Channel": "channel",
    "PseudoChannel": "pseudo_channel",
    "Rank": "rank",
    "Sid": "sid",
    "BankGroup": "bank_group",
    "Bank": "bank",
}
_CONTROLLERS = {"GenericDDR": "generic_ddr", "HBM12": "hbm12", "HBM34": "hbm34", "LPDDR5": "lpddr5"}
_REFRESHES: dict[str, RefreshKind] = {"AllBank": "all-bank", "PerBank": "per-bank", "HBM34PerBankRefresh": "per-bank"}


def table_of(config: dict[str, Any], name: str = "golden") -> DramTable:
    """The table of one entry of a `config.json`."""
    raw, refresh = config["raw"], _REFRESHES[config["refresh"]]
    table = DramTable(
        name=name,
        controller=_CONTROLLERS[config["controller"]],  # type: ignore[arg-type]
        refresh=refresh,
        cycle_ps=config["cycle_ps"],
        channels=config["channels"],
        transaction=config["transaction_bytes"],
        bytes_per_cycle=int(config["peak_bytes_per_cycle_per_channel"]),
        levels=tuple((_LEVELS[level], config["sizes"][level]) for level in config["levels"]),
        rows=config["rows"],
        row_bytes=config["row_bytes"],
        read_latency=config["read_latency"],
        read_queue=config["read_queue"],
        write_queue=config["write_queue"],
        distances=tuple(_distance(d) for d in config["constraints"]),
        command_cycles=tuple((command, cycles) for command, cycles in config["command_cycles"].items() if cycles > 1),
        refresh_period=raw["nREFI" if refresh == "all-bank" else "nREFIpb"],
        lpddr5=_lpddr5(config) if config["controller"] == "LPDDR5" else None,
    )
    for key in ("column_bits", "channel_bytes", "ticks_per_clock"):
        assert getattr(table, key) == config[key]
    return table


def _distance(d: dict[str, Any]) -> Distance:
    return Distance(_LEVELS[d["scope"]], tuple(d["first"]), tuple(d["then"]), d["cycles"], d["window"], d["siblings"])


def _lpddr5(config: dict[str, Any]) -> Lpddr5:
    raw = config["raw"]
    rest = raw["nBL_min"] + raw["nWCKPST"]
    clock = None if config.get("wck_sync_mode") == "always_on" else DataClock(raw["nCL"] + rest, raw["nCWL"] + rest)
    return Lpddr5(raw["nAAD"], clock)
