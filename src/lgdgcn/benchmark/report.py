"""How measured numbers are written."""

from typing import Any

__all__ = ["machine_name", "number"]


def number(value: float | None) -> str:
    """Three digits, without an exponent; a dash for what there is none of.

    Example:
        >>> number(0.12345), number(12345.6), number(None)
        ('0.123', '12,346', '–')
    """
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def machine_name(machine: dict[str, Any]) -> str:
    """The accelerator, or the processor and its threads."""
    return str(machine["gpu"] or f"{machine['threads']} threads of {machine['cpu']}")
