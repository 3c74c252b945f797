"""The sample that a user asks for: a share of the work, or an error that must be reached."""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.errors import UsageError

LARGEST_SHARE = 0.30
"""The largest share of the work of a region that is sampled. If more would be needed, all of it is run."""
SHORTEST_REPLICATE = 200_000
"""The fewest cycles of a replicate, so that the phase of refresh and the fill of the pipeline are small in it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of every region of a program.

    It has a `fraction` of the work, or as much of it as is needed so that half of the interval of `confidence` is at most `error`
    of the cycles. All random choices follow from the `seed`. `replicates` is the number of disjoint parts that the interval is
    computed from, each of `shortest` cycles at least.

    >>> Sample(error=0.01).text, Sample(fraction=0.02).text
    ('error=1%', '2%')
    """

    fraction: float | None = None
    error: float | None = None
    confidence: float = 0.95
    seed: int = 0
    replicates: int = 5
    shortest: int = SHORTEST_REPLICATE

    def __post_init__(self) -> None:
        if (self.fraction is None) == (self.error is None):
            raise UsageError("a sample has a fraction or an error", hint="`Sample(fraction=0.02)`, or `Sample(error=0.01)`")
        for name, share in (("fraction", self.fraction), ("error", self.error), ("confidence", self.confidence)):
            if share is not None and not 0 < share <= 1:
                raise UsageError(f"a sample with {name} {share:g}", hint="a share above 0 and at most 1")
        if self.error == 1 or self.confidence == 1:
            raise UsageError("a sample with an error or a confidence of 1 says nothing", hint="less than 1, such as `error=0.01`")
        if self.replicates < 2 or self.shortest < 1 or self.seed < 0:
            raise UsageError(
                f"a sample of {self.replicates} replicates of {self.shortest} cycles with seed {self.seed}",
                hint="2 replicates or more, each of a cycle or more, and a seed of 0 or more",
            )

    @property
    def text(self) -> str:
        """The sample in the form in which a user writes it."""
        return _percent(self.fraction) if self.fraction is not None else f"error={_percent(self.error or 0)}"


def parse_sample(text: str, seed: int = 0) -> Sample:
    """Return the sample that a user wrote: `2%`, `0.02`, `error=1%`, or these with `confidence=99%` or `seed=3` behind a comma.

    Raises `UsageError` for other texts.

    >>> parse_sample("error=1%,confidence=99%").confidence
    0.99
    """
    settings: dict[str, float] = {}
    for part in text.split(","):
        key, equals, value = part.strip().rpartition("=")
        name = key if equals else "fraction"
        if name not in ("fraction", "error", "confidence", "seed") or name in settings:
            raise _malformed(text)
        settings[name] = _number(value, text)
    whole_seed = settings.pop("seed", float(seed))
    if whole_seed != int(whole_seed):
        raise _malformed(text)
    return Sample(**settings, seed=int(whole_seed))  # type: ignore[arg-type]


def _number(value: str, text: str) -> float:
    digits, percent = (value[:-1], 100) if value.endswith("%") else (value, 1)
    try:
        number = float(digits) / percent
    except ValueError:
        raise _malformed(text) from None
    if not 0 <= number < float("inf"):
        raise _malformed(text)
    return number


def _malformed(text: str) -> UsageError:
    return UsageError(f"`{text}` is no sample", hint="`2%` of the work, or `error=1%`; also `error=1%,confidence=99%,seed=3`")


def _percent(share: float) -> str:
    return f"{share * 100:g}%"
