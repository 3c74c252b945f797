"""How much a search within a budget tries, and what it takes for better, hopeful or large."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """The numbers that bound a search. They are counts and shares, so that the same search gives the same bytes on every machine."""

    # Ranges and orders -----------------------------------------------------------------------------------------------------------

    max_orders: int = 8
    """How many loop orders of a range, those that the compiler ranks best, are considered."""
    worst_order: int = 4
    """An order of which the compiler expects more than so many times the cycles of the best one is not considered: to estimate it may take
    longer than all others."""
    few_units: int = 4
    """Of so many units, ranges are there in all their orders at once. Where there are more, those of the cheapest programs alone are."""
    many_states: int = 256
    """Of so many states in all, longer ranges may begin. Where there are many cuts, those of each are few."""
    kept_counts: int = 250
    """How many results of counting are kept for the next range, so that those of many ranges do not pile up."""

    # Variants --------------------------------------------------------------------------------------------------------------------

    max_combined: int = 64
    """Up to so many combinations, all are tried; beyond that, one change after the other."""
    max_einsums: int = 1_200
    """The most Einsums of all ranges together. Where single operators make more, the program is cut between products or layers."""
    variant_rounds: int = 2
    """So often every change of formats, blocks and products is looked at."""
    kept_variants: int = 2
    """How many of the best variants are searched in full."""
    sparse_share: float = 0.9
    dense_share: float = 0.1
    """An input of which more than the first share is not zero is not tried compressed, and one of which less than the second share
    is not zero is not tried dense."""
    listed_share: float = 0.5
    """An outer level is tried dense if it lists so large a share of its coordinates."""
    large_share: float = 0.25
    """An input is large if it stores so large a share of the values of all inputs."""
    short_block: int = 16
    """The values of a line of the memory, the size of blocks of short dimensions."""
    large_block: int = 64
    """The size of blocks of dimensions that have several."""
    most_blocked: int = 2
    """Along so many dimensions a tensor is tried in blocks at most."""
    full_share: float = 0.9
    """Entries come in blocks if so many of the elements of the blocks that hold any are stored."""

    # Programs --------------------------------------------------------------------------------------------------------------------

    max_ranges: int = 48
    """How many ranges in an order get lanes in one search, unless all lanes that may be the best are wanted. Where waits are most of the
    cycles, bounds are far below them, and tell few ranges apart."""
    large_range: float = 1 / 8
    """Lanes of ranges that are expected to take less than this share of the largest one of a program are chosen after its own."""
    lever_ranges: int = 16
    """Of how many more ranges lanes are chosen where a lever is taken away."""
    buffer_programs: int = 2
    """For how many programs reuse buffers are chosen."""
    hopeful_variant: float = 1.25
    """A variant is searched in full beside the best program if a first idea of its cycles is at most so many times those of that."""
    quick_ranges: int = 8
    """Of how many ranges lanes are chosen for a first idea of the cycles of a variant."""
    search_count_budget: int = 1 << 24
    """The most distinct elements that one count in a search may take, since to count more takes seconds. The cycles of a range that has
    more follow from statistics."""

    # Lanes -----------------------------------------------------------------------------------------------------------------------

    max_dealt: int = 2
    """How many indices of a region are dealt at once. Each takes the graphs of its pairs."""
    max_width: int = 4096
    """The most lanes of a region where the budget limits nothing."""
    max_pairs: int = 6
    """Of how many pairs of indices of a region lanes are measured, unless all are wanted."""
    max_compared: int = 12
    """How many lanes of a range in an order are compared by arithmetic, those that promise the fewest cycles."""
    alike: int = 2
    """Once so many lanes of the same indices stand still, all others of a range are taken to do so."""
    looks_per_try: int = 4
    """Lanes that stand still are none of those that are tried, but so many times as many are looked at at most once some go on."""
    right: float = 0.01
    """Arithmetic whose error was less is right."""
    gain: float = 0.99
    """What takes this share of some cycles or more is taken to be as slow."""
    max_tried: int = 6
    """Of how many lanes of a range graphs are made, those that are expected to take the fewest cycles, unless the caller says otherwise."""
    quick_tried: int = 2
    """Of how many lanes of a range graphs are made for a quick choice."""
    crowded_fifos: float = 1 / 8
    """FIFOs leave little room for lanes if those of one lane take more than this share of the budget."""
    hopeless_order: float = 1.25
    """An order is left of whose lanes arithmetic expects more than so many times the cycles of those of the best-ranked order."""
    near_bound: float = 1.05
    """Lanes of two indices are looked at where those of one promise more than so many times the bound of the range."""
    hopeful_lanes: float = 0.9
    """Fewer lanes are estimated where they promise less than this share of the cycles of those that are known."""

    # FIFOs -----------------------------------------------------------------------------------------------------------------------

    bounded_fifos: int = 64
    """The slots of FIFOs on a machine that does not bound them, where the budget does."""
    shallow_fifos: tuple[int, ...] = (16, 4)
    """The slots of all FIFOs of a region that are tried where those of the machine leave little room for lanes."""
    deep_fifos: tuple[int, ...] = (256, 1024, 4096)
    """The slots of all FIFOs of a region that are tried once its lanes are chosen, or where it stands still with fewer."""

    # Buffers and preloads --------------------------------------------------------------------------------------------------------

    most_buffers: int = 6
    """How many tensors get a buffer at most, those of which most bytes are read again."""
    preload_ports: tuple[int, ...] = (8, 16)
    """Preloads are tried by at most so many ports each: more than 16 took no fewer cycles on HBM2 in eight channels."""
    small_bytes: int = 4096
    """Inputs of at most so many bytes are preloaded wherever any tensor is: they lie in a few lines, which all lanes want."""
    buffer_step: int = 4
    """The next smaller buffer that is tried has so many times fewer bytes."""

    # Simulations -----------------------------------------------------------------------------------------------------------------

    searches_again: int = 12
    """So often schedules are searched again with what the runs of the last ones say about FIFOs."""
    faster: float = 0.98
    """Schedules are searched again where one is expected to take less than this share of the cycles of the fastest that ran."""
    slower: float = 2.0
    """A decision is not simulated if it is expected to take more than so many times the cycles of the best one."""
    times_put_together: int = 3
    """How often the fastest of each region are put together."""
    change_rounds: int = 2
    """How many changes of one kind are tried for each region at most."""
    short_run: int = 16
    """The rows that a short run is to have: so many values are a line of the memory."""
    shortest_run: int = 2
    longest_run: int = 64
    """The rows that it has at least and at most, since a run divides the index."""


SETTINGS = SearchSettings()
"""The settings of every search."""
