"""Known types of edges in one form: 0/1 per edge and type, equal in both directions."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgdgcn.data.edges import node_numbers
from lgdgcn.data.names import is_missing
from lgdgcn.errors import InputError
from lgdgcn.runtime import require_memory

__all__ = ["MOST_TYPES", "canonical_edge_types", "types_of_cells"]

MOST_TYPES = 1000  # a column with more different values says something else than a type


def canonical_edge_types(
    edge_type: Any, names: Any, listed: Any, edges: Tensor, num_nodes: int
) -> tuple[Tensor, list[str]]:
    """Bring the types of listed edges to the edges of a graph.

    An edge that is listed several times, or in both directions, has every type that any of its
    rows has.

    Args:
        edge_type: 0/1 ``[L, T]`` where a row of zeros is a type not known, or the number of the
            only type ``[L]`` with -1 for not known.
        names: The T names, or ``None`` to name the types by their numbers.
        listed: The edges as they were listed ``[2, L]``.
        edges: The same edges in canonical form ``[2, E]``.
        num_nodes: N.

    Returns:
        uint8 ``[E, T]`` and the names.

    Example:
        >>> edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> canonical_edge_types([1, -1], ["a", "b"], [[1, 1], [0, 2]], edges, 3)[0].tolist()
        [[0, 1], [0, 1], [0, 0], [0, 0]]
    """
    listed = node_numbers(listed)
    types = _checked(edge_type, listed.shape[1], names)
    names = _checked_names(names, types.shape[1])
    what = f"edge_type of {edges.shape[1]:,} edges and {types.shape[1]:,} types"
    require_memory(3 * edges.shape[1] * types.shape[1], what, "use fewer types")
    pairs, number = torch.unique(_pair_keys(edges, num_nodes), return_inverse=True)
    no_loop = listed[0] != listed[1]
    row = torch.searchsorted(pairs, _pair_keys(listed[:, no_loop], num_nodes))
    of_pair = types.new_zeros(len(pairs), types.shape[1])
    if len(row):
        of_pair.scatter_reduce_(0, row[:, None].expand(-1, types.shape[1]), types[no_loop], "amax")
    return of_pair[number], names


def types_of_cells(cells: Sequence[str], number: Any) -> tuple[Any, list[str]] | None:
    """The types that the cells of a column name, several of them divided by semicolons.

    Args:
        cells: Every different cell; a blank one is a type not known, and so is a word for nothing,
            such as ``NA``.
        number: Which of them each edge has ``[L]``.

    Returns:
        uint8 ``[L, T]`` and the names in alphabetical order; ``None`` if there are too many.

    Example:
        >>> types_of_cells(["train; bus", "", "bus"], np.array([0, 1, 2]))
        (array([[1, 1],
               [0, 0],
               [1, 0]], dtype=uint8), ['bus', 'train'])
    """
    named = [
        [name for part in cell.split(";") if not is_missing(name := part.strip())] for cell in cells
    ]
    names = sorted({name for types in named for name in types})
    if len(names) > MOST_TYPES:
        return None
    what = f"the types of {len(number):,} edges"
    require_memory(2 * len(number) * len(names), what, "use fewer types")
    column = {name: i for i, name in enumerate(names)}
    table = np.zeros((len(cells), len(names)), np.uint8)
    for row, types in enumerate(named):
        table[row, [column[name] for name in types]] = 1
    return table[number], names


def _pair_keys(edges: Tensor, num_nodes: int) -> Tensor:
    """A number for each edge that its other direction has, too ``[E]``."""
    low, high = edges.aminmax(dim=0) if edges.numel() else (edges[0], edges[1])
    return low * num_nodes + high


def _checked(edge_type: Any, listed: int, names: Any) -> Tensor:
    """Types of the listed edges as uint8 ``[L, T]``."""
    try:
        found = torch.as_tensor(edge_type).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"edge_type cannot be read ({error}); give 0/1 [E, types]") from None
    if found.dim() not in (1, 2) or len(found) != listed or found.is_complex():
        raise InputError(
            f"edge_type has shape {list(found.shape)} for {listed} edges; give 0/1 [E, types], or "
            "the number of one type per edge [E]"
        )
    if found.dim() == 2:
        bad = (found != 0) & (found != 1)
        if bad.any():
            row, column = (int(i) for i in bad.nonzero()[0])
            value = found[row, column].item()
            raise InputError(f"edge_type[{row}, {column}] is {value}; give 0 or 1")
        return found.to(torch.uint8)
    most = MOST_TYPES if names is None else len(names)
    bad = (found != found.long()) | (found < -1) | (found >= most)
    if bad.any():
        first = int(bad.nonzero()[0])
        raise InputError(
            f"edge_type[{first}] is {found[first].item()}; give whole numbers in 0..{most - 1}, or "
            "-1 where the type is not known"
        )
    count = len(names) if names is not None else int(found.max()) + 1 if listed else 0
    types = torch.zeros(listed, count, dtype=torch.uint8)
    known = (found >= 0).nonzero().view(-1)
    types[known, found[known].long()] = 1
    return types


def _checked_names(names: Any, count: int) -> list[str]:
    if names is None:
        return [str(number) for number in range(count)]
    found: list[str] = [str(name) for name in names]
    if len(found) != count:
        raise InputError(f"edge_type_names has {len(found)} names for {count} types; give one each")
    twice, times = Counter(found).most_common(1)[0] if found else ("", 1)
    if times > 1:
        raise InputError(f"edge_type_names has {twice[:50]!r} twice; give every type its own name")
    return found
