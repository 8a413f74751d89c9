"""Everything the paper shows, and the sharp variant, by the name the command line calls it."""

import difflib
from collections.abc import Callable, Sequence

from lgdgcn.errors import InputError
from lgdgcn.reproduce.exhibits import Exhibit
from lgdgcn.reproduce.plan import Plan
from lgdgcn.reproduce.sweeps import curves, picture
from lgdgcn.reproduce.tables import table

__all__ = ["NAMES", "exhibits"]

_MAKERS: dict[str, Callable[[str, Plan], Exhibit]] = {
    **dict.fromkeys(("table1", "table2", "table3", "table4", "sharp"), table),
    **dict.fromkeys(("fig-units", "fig-correlation", "fig-embedding"), picture),
    **dict.fromkeys(("fig-lambda", "fig-k", "fig-factors"), curves),
}
NAMES = tuple(_MAKERS)


def exhibits(names: Sequence[str], plan: Plan) -> list[Exhibit]:
    """Describe exhibits by name, each once and in the paper's order; ``all`` is all of them."""
    for name in names:
        if name not in (*NAMES, "all"):
            close = difflib.get_close_matches(name, NAMES, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise InputError(f"no table or figure {name!r}; {hint}known: all, {', '.join(NAMES)}")
    chosen = NAMES if "all" in names else [name for name in NAMES if name in names]
    return [_MAKERS[name](name, plan) for name in chosen]
