"""``lgdgcn settings``: everything that --set can change."""

import dataclasses

from lgdgcn.cli import console
from lgdgcn.config import Settings, default_variant

__all__ = ["settings"]


def settings() -> None:
    """List every setting that --set and --config can change.

    Examples:
        lgdgcn settings
        lgdgcn train cora --set views=2 --set lambda_edge=0.1
    """
    rows = []
    for field in dataclasses.fields(Settings):
        meaning = field.metadata["help"]
        if "options" in field.metadata:
            meaning += f": {', '.join(field.metadata['options'])}"
        where = [", ".join(field.metadata["models"])] if field.metadata["models"] else []
        if needs := ", and ".join(field.metadata["needs"]):
            by = ", ".join(field.metadata["needed_by"])
            where.append(f"needs {needs}" + (f" in {by}" if by else ""))
        meaning += f" ({'; '.join(where)})" if where else ""
        default = str(field.default).lower() if field.type is bool else str(field.default)
        if field.name == "variant":
            default = default_variant("lgdgcn")
        rows.append([field.name, default, meaning])
    console.table("Settings", ["key", "default", "meaning"], rows, text_columns=3, width=80)
    console.say("Presets of a graph and model may differ; a run's config.toml says what it used.")
