"""Places for the names of points in a picture, so that no name hides a point or another name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

LETTER, LINE = 6.2, 12
"""The width of a letter and the height of a line, in pixels."""
BESIDE = 9
"""How far a name stands from the middle of its point."""
BESIDE_POINTS, BESIDE_LINES = (4, -7, 16, -19, 28), (-7, 16, -19, 28, 4)
"""Where the foot of a name may stand below the middle of its point, the best first: in a picture of points, and in one with a line through
them."""


@dataclass(slots=True)
class LabelPlaces:
    """The boxes of a picture that are taken: left, right and foot of each. `heights` are the heights for names, the best first."""

    heights: tuple[int, ...] = BESIDE_POINTS
    _taken: list[tuple[float, float, float]] = field(default_factory=list)

    @classmethod
    def around(cls, points: Iterable[tuple[float, float]], heights: tuple[int, ...] = BESIDE_POINTS) -> LabelPlaces:
        """Return the places around points, whose circles names must not hide. `heights` are as in the class."""
        return cls(heights, [(x - 5, x + 5, y + 5) for x, y in points])

    def place(self, x: float, y: float, name: str) -> tuple[float, float] | None:
        """Take a place for the name of the point at (x, y), and return where it begins; None if all are taken.

        >>> places = LabelPlaces.around([(10, 50), (30, 50)])
        >>> places.place(10, 50, "one"), places.place(30, 50, "two")
        ((19, 43), (39, 54))
        """
        left, right = x + BESIDE, x + BESIDE + LETTER * len(name)
        for height in self.heights:
            foot = y + height
            if all(abs(foot - at) >= LINE or right < start or end < left for start, end, at in self._taken):
                self._taken.append((left, right, foot))
                return left, foot
        return None
