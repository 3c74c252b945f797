"""Elements of HTML and SVG. Names are escaped, and numbers have at most two decimal places, so that the same values give the same bytes."""

from __future__ import annotations

from markupsafe import Markup, escape


def number(value: float) -> str:
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def element(name: str, content: object = "", /, **attributes: object) -> Markup:
    """Return an element. `class_` is the attribute `class`, and `data_t` is `data-t`."""
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(number(v) if isinstance(v, int | float) else v)}"'
        for key, v in attributes.items()
        if v is not None
    )
    return Markup(f"<{name}{pairs}>{escape(content)}</{name}>")  # `Markup.format` takes several times as long


def shorten(name: str, letters: int) -> str:
    """Return a name with at most `letters` letters."""
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def shorten_middle(name: str, letters: int) -> str:
    """Return a name with at most `letters` letters. Names of one model differ at their ends, so the middle is left out.

    >>> shorten_middle("decoders.0.attn.query.weight_val", 20)
    'decod…ery.weight_val'
    """
    if len(name) <= letters:
        return name
    head = max(letters // 4, 1)
    return f"{name[:head]}…{name[len(name) - (letters - head - 1) :]}"


__all__ = ["Markup", "element", "number", "shorten", "shorten_middle"]
