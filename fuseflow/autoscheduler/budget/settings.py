"""The settings of a search within a budget: how much it tries, and when something counts as better, hopeful or large."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """The numbers that bound a search. They are counts and shares, so that the same search gives the same bytes on every machine."""

    # Ranges and orders -----------------------------------------------------------------------------------------------------------

    max_orders: int = 8
    """How many loop orders of a range are considered: the ones that the compiler ranks best."""
    worst_order: int = 4
    """An order is not considered if the compiler expects more than this many times the cycles of the best one: to estimate it may
    take longer than all others."""
    few_units: int = 4
    """With at most this many units, ranges get all their orders at once. With more, only ranges of the cheapest programs do."""
    many_states: int = 256
    """Longer ranges begin at this many states in all. Where there are many cuts, each has few of them."""
    kept_counts: int = 250
    """How many results of counting are kept for the next range, so that results of many ranges do not pile up."""

    # Variants --------------------------------------------------------------------------------------------------------------------

    max_combined: int = 64
    """Up to this many combinations, all are tried; beyond that, one change after the other."""
    max_einsums: int = 1_200
    """The most Einsums of all ranges together. Where single operators make more, the program is cut between products or regions."""
    variant_rounds: int = 2
    """How often every change of formats, blocks and products is tried."""
    kept_variants: int = 2
    """How many of the best variants are searched in full."""
    sparse_share: float = 0.9
    dense_share: float = 0.1
    """An input is tried compressed if at most the first share of its elements is not zero, and dense if at least the second share
    is not zero."""
    listed_share: float = 0.5
    """An outer level is tried dense if it lists at least this share of its coordinates."""
    large_share: float = 0.25
    """An input is large if it stores at least this share of the values of all inputs."""
    short_block: int = 16
    """The values of a line of the memory, the size of blocks of short dimensions."""
    large_block: int = 64
    """The size of blocks of dimensions that are longer than one such block."""
    most_blocked: int = 2
    """The most dimensions of a tensor along which it is tried in blocks."""
    full_share: float = 0.9
    """Entries come in blocks if at least this share of the elements of the blocks that hold any is stored."""

    # Programs --------------------------------------------------------------------------------------------------------------------

    max_ranges: int = 48
    """How many ranges in an order get lanes in one search, unless all lanes that may be the best are wanted. Where waits are most of the
    cycles, bounds are far below them, and tell few ranges apart."""
    large_range: float = 1 / 8
    """If a range is expected to take less than this share of the largest one of a program, its lanes are chosen later."""
    lever_ranges: int = 16
    """How many more ranges get lanes where a lever is taken away."""
    buffer_programs: int = 2
    """For how many programs reuse buffers are chosen."""
    hopeful_variant: float = 1.25
    """A variant is searched in full if its cycles in a first estimate are at most this many times those of the best program."""
    quick_ranges: int = 8
    """How many ranges get lanes for a first estimate of the cycles of a variant."""
    search_count_budget: int = 1 << 24
    """The most distinct elements that one count in a search may take, since to count more takes seconds. The cycles of a range that has
    more follow from statistics."""

    # Lanes -----------------------------------------------------------------------------------------------------------------------

    max_dealt: int = 2
    """How many indices of a region are dealt at once. Each pair takes more graphs."""
    max_width: int = 4096
    """The most lanes of a region where the budget limits nothing."""
    max_pairs: int = 6
    """For how many pairs of indices of a region lanes are measured, unless all are wanted."""
    max_compared: int = 12
    """How many lanes of a range in an order are compared by arithmetic: the ones that promise the fewest cycles."""
    alike: int = 2
    """Once this many choices of lanes of the same indices stand still, all others with these indices are assumed to do so."""
    looks_per_try: int = 4
    """Lanes that stand still do not count as tried. But once some lanes go on, at most this many times as many are considered."""
    right: float = 0.01
    """Arithmetic counts as right if its error was less than this share."""
    gain: float = 0.99
    """A candidate that takes at least this share of some cycles counts as equally slow."""
    max_tried: int = 6
    """For how many lanes of a range graphs are made, the most promising first, unless the caller says otherwise."""
    quick_tried: int = 2
    """For how many lanes of a range graphs are made in a quick choice."""
    crowded_fifos: float = 1 / 8
    """FIFOs leave little room for lanes if the FIFOs of one lane take more than this share of the budget."""
    hopeless_order: float = 1.25
    """An order is left out if arithmetic expects more than this many times the cycles of the best-ranked order, both in lanes."""
    near_bound: float = 1.05
    """Lanes of two indices are tried where lanes of one index promise more than this many times the bound of the range."""
    hopeful_lanes: float = 0.9
    """Fewer lanes are estimated where they promise less than this share of the cycles of the best lanes so far."""

    # FIFOs -----------------------------------------------------------------------------------------------------------------------

    bounded_fifos: int = 64
    """The slots of FIFOs on a machine that does not bound them, where the budget does."""
    shallow_fifos: tuple[int, ...] = (16, 4)
    """The slots of all FIFOs of a region that are tried where the FIFOs of the machine leave little room for lanes."""
    deep_fifos: tuple[int, ...] = (256, 1024, 4096)
    """The slots of all FIFOs of a region that are tried once its lanes are chosen, or where it stands still with fewer."""

    # Buffers and preloads --------------------------------------------------------------------------------------------------------

    most_buffers: int = 6
    """How many tensors get a buffer at most: the ones of which most bytes are read again."""
    preload_rates: tuple[int, ...] = (2, 4)
    """The most ports of each preload that is tried, for each line that the memory moves in a cycle at its peak: more than 4, which are 16
    ports, took no fewer cycles on HBM2 in eight channels."""
    boundless_lines: int = 4
    """The lines in a cycle of a memory without a peak, for that."""
    small_bytes: int = 4096
    """Inputs of at most this many bytes are preloaded wherever any tensor is: they lie in a few lines, which all lanes want."""
    buffer_step: int = 4
    """The next smaller buffer that is tried has this many times fewer bytes."""

    # Simulations -----------------------------------------------------------------------------------------------------------------

    searches_again: int = 12
    """How often schedules are searched again with the depths of FIFOs in the runs so far."""
    faster: float = 0.98
    """Schedules are searched again where one is expected to take less than this share of the cycles of the fastest run."""
    slower: float = 2.0
    """A decision is not simulated if it is expected to take more than this many times the cycles of the best one."""
    most_refined: int = 12
    """How many programs with other decisions about regions are simulated at most, while each makes regions faster."""
    times_put_together: int = 3
    """How often the fastest runs of each region are put together."""
    change_rounds: int = 2
    """How many changes of one kind are tried for each region at most."""
    short_run: int = 16
    """The rows that a short run is to have: a line of the memory has as many values."""
    shortest_run: int = 2
    longest_run: int = 64
    """The rows that it has at least and at most, since a run divides the index."""


SETTINGS = SearchSettings()
"""The settings of every search."""
