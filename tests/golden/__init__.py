"""The golden record: what must not change unnoticed, stored as it was, and compared.

=============  ==================================================================
``reader``     what ``read_graph`` makes of folders: arrays, notes, refusals
``refusals``   calls that are refused: command, exit code, words
``shapes``     keys and shapes of what the commands write
``compare``    two checkouts side by side, where rounding differs between machines
=============  ==================================================================
"""

from pathlib import Path

__all__ = ["PARTS"]

# those that store something: modules with ``record()`` and ``differences()``
PARTS = tuple(
    name
    for name in ("reader", "refusals", "shapes")
    if (Path(__file__).parent / f"{name}.py").is_file()
)
