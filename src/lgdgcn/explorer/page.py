"""One self-contained HTML file: template, style, scripts and data, and nothing from elsewhere."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from lgdgcn.storage import to_json

__all__ = ["encoded", "to_page"]

FORBIDDEN = re.compile(r"</(script|style)|<!--", re.IGNORECASE)  # would end the element it is in


def to_page(payload: Mapping[str, Any]) -> str:
    """Write the page that shows a payload.

    The template ``page/page.html`` is a plain HTML page: the policy goes right behind its
    ``<head>``, the title replaces its own, the style ``page/*.css`` goes before ``</head>``, the
    data and the scripts ``page/*.js`` go before ``</body>``, each kind sorted by name.

    Only scripts and styles of these exact bytes may run, so names and labels in the data are text
    whatever is in them, and the page can neither load nor send anything.
    """
    style, script = _joined(".css"), _joined(".js")
    head = (
        '\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">'
    )
    title = f"<title>{escape(str(payload['title']))}</title>"
    data = f'<script type="application/json" id="data">{_data(payload)}</script>\n'
    page = (_folder() / "page.html").read_text(encoding="utf-8")
    page = _once(page, r"(<head[^>]*>)", lambda found: found[1] + head)
    page = _once(page, r"<title>.*?</title>", lambda found: title)
    page = _once(page, r"(</head>)", lambda found: f"<style>{style}</style>\n{found[1]}")
    return _once(page, r"(</body>)", lambda found: f"{data}<script>{script}</script>\n{found[1]}")


def _folder() -> Any:
    return resources.files(__package__) / "page"


def _joined(suffix: str) -> str:
    files = sorted(_folder().iterdir(), key=lambda file: file.name)
    texts = [file.read_text(encoding="utf-8") for file in files if file.name.endswith(suffix)]
    text = "\n" + "\n".join(texts)
    if found := FORBIDDEN.search(text):
        raise ValueError(f"page/*{suffix} holds {found[0]!r}, which ends the element around it")
    return text


def _policy(style: str, script: str) -> str:
    """Nothing at all but these two texts and the icon."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "img-src data:",
            "connect-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(payload: Mapping[str, Any]) -> str:
    """JSON that no HTML or script parser can take for anything else: ASCII without ``<>&``."""
    text = json.dumps(to_json(payload), allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _once(page: str, pattern: str, replacement: Any) -> str:
    page, count = re.subn(pattern, replacement, page, count=1, flags=re.DOTALL | re.IGNORECASE)
    if count != 1:
        raise ValueError(f"page/page.html holds no {pattern}")
    return page


# Arrays inside JSON

TYPES = {"u8": "<u1", "u16": "<u2", "u32": "<u4", "i32": "<i4", "f32": "<f4"}


def encoded(values: Any, kind: str) -> dict[str, Any]:
    """An array as ``{"type", "shape", "data"}``, its bytes in base64, little endian, row by row.

    Args:
        values: Numbers that the type can hold; they are rounded where it has whole ones only.
        kind: ``u8``, ``u16``, ``u32``, ``i32`` or ``f32``.

    Example:
        >>> encoded([[1, 2]], "u8")
        {'type': 'u8', 'shape': [1, 2], 'data': 'AQI='}
    """
    array = np.asarray(values)
    if kind != "f32" and array.dtype.kind == "f":
        array = array.round()
    data = np.ascontiguousarray(array, dtype=TYPES[kind])
    return {
        "type": kind,
        "shape": list(array.shape),
        "data": base64.b64encode(data.tobytes()).decode("ascii"),
    }
