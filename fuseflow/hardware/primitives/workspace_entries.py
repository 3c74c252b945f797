"""Which entries of the two buffers of a workspace hold a value, and which entry is next.

Up to 64 keys have a bit each in a register, and the next entry is the lowest bit. More keys have their bits in words of 64, in a
memory. A register has a bit for each word with a set bit, so clearing that register empties a buffer. The next entry is the
lowest bit of the lowest such word: two searches among at most 64 bits, in the same cycle, up to 4,096 keys.
"""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.hardware.arithmetic import lowest
from fuseflow.rules.expressions import YES, Expr, concat, const, mux
from fuseflow.rules.rules import Module, Store

WORD_BITS = 6
"""The width of the index of an entry in a word."""
WORD = 1 << WORD_BITS
BUFFERS = 2
HELD, SENT, GIVEN = "held", "sent", "given"


@dataclass(frozen=True, slots=True)
class Insertion:
    """The effects of storing a value at a key of the open buffer: whether a value `was` there, and the registers and words after
    it. `touched` are the registers after a firing that stores nothing."""

    was: Expr
    sets: dict[str, Expr | int]
    stores: tuple[Store, ...]
    touched: dict[str, Expr | int]


@dataclass(frozen=True, slots=True)
class NextEntry:
    """The next entry of the buffer that is emptied: whether there is an entry, its key, and the registers after it was
    emitted."""

    some: Expr
    key: Expr
    sets: dict[str, Expr | int]


class Entries:
    """The entries of two buffers with `count` keys of `width` bits. Their registers are `full0` and `full1`. For the buffer that
    is emptied, `sent` has the bits of its register that are done, and `given` the entries of the current word that were
    emitted."""

    def __init__(self, m: Module, count: int, width: int) -> None:
        self.m, self.split, self.width = m, count > WORD, width
        self.places = -(-count // WORD) if self.split else count
        self.full = [m.register(f"full{k}", self.places) for k in range(BUFFERS)]
        self.sent = m.register(SENT, self.places)
        if self.split:
            m.memory(HELD, WORD, BUFFERS << (width - WORD_BITS))
            self.given = m.register(GIVEN, WORD)

    def put(self, fill: Expr, work: Expr, key: Expr) -> Insertion:
        """Return the effects of storing a value at `key` in buffer number `fill`. Without `work` the buffer is empty at first."""
        full = mux(work, mux(fill, self.full[1], self.full[0]), const(0, self.places))
        place = self._place(key)
        was, stores = (full & _bit(place, self.places)).is_not(0), tuple[Store, ...]()
        if self.split:
            address, bit = concat(fill, place), _bit(key.bits(0, WORD_BITS), WORD)
            word = mux(was, self.m.read(HELD, address), const(0, WORD))
            was, stores = (word & bit).is_not(0), (Store(HELD, address, word | bit),)
        return Insertion(was, self._filled(fill, full | _bit(place, self.places)), stores, self._filled(fill, full))

    def next(self, emit: Expr) -> NextEntry:
        """Return the next entry of buffer number `emit`."""
        left = mux(emit, self.full[1], self.full[0]) & ~self.sent
        some, place = left.is_not(0), lowest(left)
        after = self.sent | _bit(place, self.places)
        if not self.split:
            return NextEntry(some, place.fit(self.width), {SENT: after})
        place = place.fit(self.width - WORD_BITS)
        word = self.m.read(HELD, concat(emit, place)) & ~self.given
        at = lowest(word)
        bit = _bit(at, WORD)
        last = (word & ~bit).is_(0)
        sets: dict[str, Expr | int] = {SENT: mux(last, after, self.sent), GIVEN: mux(last, const(0, WORD), self.given | bit)}
        return NextEntry(some, concat(place, at), sets)

    @property
    def emptied(self) -> dict[str, Expr | int]:
        """The registers after the last entry of a buffer."""
        return {SENT: const(0, self.places)}

    def _place(self, key: Expr) -> Expr:
        return key.bits(WORD_BITS, self.width - WORD_BITS) if self.split else key

    def _filled(self, fill: Expr, full: Expr) -> dict[str, Expr | int]:
        return {f"full{k}": mux(fill.is_(k), full, held) for k, held in enumerate(self.full)}


def _bit(place: Expr, width: int) -> Expr:
    """Return a number of `width` bits with the bit at `place` set."""
    return const(1, width) << place.fit(width) if width > 1 else YES
