"""The paper's tables and figures, one TOML file each: what is trained, and the paper's numbers."""

import tomllib
from importlib import resources
from typing import Any

__all__ = ["number", "parts", "read"]


def read(name: str) -> dict[str, Any]:
    """Return the description of an exhibit, e.g. ``"table2"``."""
    file = resources.files(__name__) / f"{name}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def parts(described: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The rows, panels or views of an exhibit, each with what ``[every]`` one has."""
    return [{**described.get("every", {}), **part} for part in described[kind]]


def number(text: str) -> tuple[float, float | None] | None:
    """Read a number as the paper prints it: mean and standard deviation, where there is one.

    Example:
        >>> number("84.9 ± 0.4"), number("83.7"), number("")
        ((84.9, 0.4), (83.7, None), None)
    """
    if not text:
        return None
    mean, _, std = text.partition("±")
    return float(mean), float(std) if std else None
