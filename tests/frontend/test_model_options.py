"""Options of model files: their types, and errors that name what `build` takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from fuseflow.errors import UsageError
from fuseflow.frontend.factory import BuildSignature

MODEL = Path("model.py")


def build(
    data: object,
    *,
    small: bool = False,
    depth: int = 12,
    rate: float = 1,
    share: float = 0.5,
    title: str = "x",
    part: Literal["model", "decoder", "attention"] = "model",
    width: int | None = None,
    free: Any = None,
) -> None: ...


def needy(*, width: int, part: Literal["a", "b"]) -> None: ...


def values(function: Callable[..., object] = build, **given: object) -> dict[str, Any]:
    return BuildSignature.of(MODEL, function).values(given)


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("small", "true", True),
        ("small", "No", False),
        ("small", "1", True),
        ("small", True, True),
        ("depth", "3", 3),
        ("depth", 3, 3),
        ("depth", "-1", -1),
        ("rate", "3", 3.0),
        ("rate", 2, 2.0),
        ("share", "1e-3", 1e-3),
        ("title", "3", "3"),
        ("title", "a=b", "a=b"),
        ("part", "decoder", "decoder"),
        ("width", "3", 3),
        ("free", "3", "3"),
        ("free", [3], [3]),
    ],
)
def test_values_have_the_type_of_the_default(name: str, given: object, expected: object) -> None:
    found = values(**{name: given})[name]
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"depht": "3"}, "model.py has no option `depht`\n  note: its options: small=false, depth=12, rate=1, share=0.5, title=x, "
         "part (one of model, decoder, attention), width, free\n  hint: did you mean `depth`?"),
        ({"small": "perhaps"}, "option `small` of model.py is true or false, not `perhaps`"),
        ({"small": 1}, "option `small` of model.py is true or false, not `1`"),
        ({"depth": "3.5"}, "option `depth` of model.py is a whole number, not `3.5`"),
        ({"depth": True}, "option `depth` of model.py is a whole number, not `True`"),
        ({"depth": ""}, "option `depth` of model.py is a whole number, not ``"),
        ({"share": "half"}, "option `share` of model.py is a number, not `half`"),
        ({"part": "atention"}, "option `part` of model.py cannot be `atention`\n  hint: did you mean `attention`?"),
        ({"width": "wide"}, "option `width` of model.py is a whole number, not `wide`"),
        ({"title": 3}, "option `title` of model.py is text, not `3`"),
    ],
)  # fmt: skip
def test_errors(given: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        values(**given)
    assert message in str(caught.value)


def test_required_options() -> None:
    assert values(needy, width="3", part="b") == {"width": 3, "part": "b"}
    with pytest.raises(UsageError, match=r"needs the option `width`\n  hint: pass `-O width=\.\.\.`"):
        values(needy, part="a")
    with pytest.raises(UsageError, match="pass `-O part=a`"):
        values(needy, width=3)


def test_a_build_without_options() -> None:
    with pytest.raises(UsageError, match=r"has no option `small`\n  hint: its `build` has no keyword parameters"):
        values(lambda data: None, small=True)


def test_annotations_that_do_not_resolve_say_nothing() -> None:
    def odd(*, width: Missing = 3) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    assert values(odd, width="4") == {"width": 4}
