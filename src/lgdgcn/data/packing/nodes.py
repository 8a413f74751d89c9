"""From the table of nodes to arrays: ids, labels, the split, features and text."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from lgdgcn.data.column_notes import tell_columns, tell_new_values
from lgdgcn.data.columns import CountedCells, summary
from lgdgcn.data.edge_list import some_ends
from lgdgcn.data.encoding import EncodedColumn, Encoding
from lgdgcn.data.graph_file import GraphFile
from lgdgcn.data.label_sets import label_sets
from lgdgcn.data.labels import canonical_labels, split_number
from lgdgcn.data.names import label_values
from lgdgcn.data.node_table import (
    LABEL_CELLS,
    LABELS,
    check_columns,
    fitted,
    label_names,
    with_points,
)
from lgdgcn.data.other_id import BLANKS, OtherId, other_id
from lgdgcn.data.packed.writer import UNKNOWN, PackedWriter, index_type
from lgdgcn.data.packing.engine import literal
from lgdgcn.data.packing.node_cells import NodeCells
from lgdgcn.data.packing.numbers import Numbers
from lgdgcn.data.packing.table_file import is_blank, warn_of_padding
from lgdgcn.errors import InputError
from lgdgcn.progress import long_work

__all__ = ["check_ids", "find_other_id", "write_nodes"]

Array = np.ndarray[Any, Any]
Coder = Callable[[Any], Array]  # cells of a batch to rows of an array
BATCH = 1 << 22  # numbers in a batch of features


def check_ids(nodes: NodeCells) -> None:
    """Refuse ids that are blank or there twice."""
    for name in nodes.of("id"):
        cell = nodes.column(name)
        blank = nodes.engine.one(f"SELECT min(rowid) FROM nodes WHERE {is_blank(cell)}")[0]
        if blank is not None:
            raise InputError(f"{nodes.where(blank)}: the id is empty; give every node an id")
        twice = nodes.engine.one(
            f"SELECT {cell}, min(rowid), max(rowid), count(*) FROM nodes GROUP BY {cell} "
            "HAVING count(*) > 1 ORDER BY 2 LIMIT 1"
        )
        if twice is not None:
            raise InputError(
                f"{nodes.where(twice[2])}: id {twice[0][:50]!r} is already in "
                f"{nodes.where(twice[1])}; ids must be unique"
            )
        warn_of_padding(nodes.engine, "nodes", cell, f"{nodes.path}: ids")


def find_other_id(
    nodes: NodeCells, edges: Sequence[Path], given: Mapping[str, str], written: GraphFile
) -> OtherId | None:
    """The column that holds the nodes which edges name, where the id does not."""
    ends = set() if "id" in given.values() else some_ends(edges[0], written.delimiter)
    if not ends:
        return None
    own = nodes.of("id")
    name = nodes.column(own[0]) if own else "CAST(rowid AS VARCHAR)"
    wanted = ", ".join(literal(end) for end in {*ends, *(end.strip(BLANKS) for end in ends)})
    found = nodes.engine.rows(f"SELECT DISTINCT {name} FROM nodes WHERE {name} IN ({wanted})")
    paths = [Path(path) for path, _ in nodes.starts]
    known = {str(cell) for (cell,) in found}
    return other_id(paths, nodes.roles, given, ends, known, written.delimiter)


def write_nodes(
    nodes: NodeCells,
    writer: PackedWriter,
    given: Mapping[str, str],
    encoding: Encoding | None,
    half: bool,
) -> dict[str, Any]:
    """Write every array that has a row per node.

    Args:
        nodes: The table.
        writer: Where to write.
        given: The roles of columns that the user has named.
        encoding: How a trained model's graph was encoded; learnt from this table if ``None``.
        half: Whether dense features are stored as float16.

    Returns:
        What the manifest says of them, as plain values.
    """
    with writer.refusals():
        numbers = Numbers(nodes, writer.work)
    used = [n for n in nodes.names if nodes.roles.get(n) not in ("id", "label", "split")]
    encoding, here = _encodings(nodes, used, numbers, given, encoding)
    if half and (not encoding.columns or any(c.role == "words" for c in encoding.columns)):
        found = "sparse, as words are counted" if encoding.columns else "not there"
        raise InputError(f"--half is for dense features, and those are {found}; leave it out")
    coders, facts = _label_coders(nodes)
    kept = [n for n in used if n not in numbers and n not in encoding.ignored]
    with ExitStack() as stack:
        outputs = []
        for name, (column, dtype, width, code) in coders.items():
            outputs.append((column, stack.enter_context(writer.array(name, dtype, *width)), code))
        table = stack.enter_context(writer.table("columns", kept)) if kept else None
        ids = _ids_table(nodes, writer, stack)
        features = _FeatureWriter(here, writer, stack, half) if encoding.columns else None
        columns = list(dict.fromkeys([*nodes.of("id"), *(c for o in outputs for c in o[0]), *kept]))
        advance = stack.enter_context(long_work("writing nodes", "rows"))
        for start, rows, cells in nodes.batches(columns, _batch_rows(encoding)):
            by_name = dict(zip(columns, cells, strict=True))
            for needed, array, code in outputs:
                array.append(code([by_name[name] for name in needed]))
            if ids is not None:
                ids.append([by_name[nodes.of("id")[0]]])
            if table is not None:
                table.append([by_name[name] for name in kept])
            if features is not None:
                features.append(by_name | numbers.rows(start, rows))
            advance(start + rows, (start + rows) / nodes.rows)
    numbers.remove()
    text = [name for name in encoding.text if name in kept]
    facts |= {"nodes": nodes.rows, "text": text, "columns": kept}
    if encoding.columns:
        names = encoding.feature_names
        facts |= {"features": len(names), "feature_names": names, "encoding": encoding.as_dict()}
    return facts


def _batch_rows(encoding: Encoding) -> int:
    width = sum(1 if c.role == "words" else len(c.feature_names) for c in encoding.columns)
    return max(256, min(1 << 15, BATCH // (width + 8)))


def _ids_table(nodes: NodeCells, writer: PackedWriter, stack: ExitStack) -> Any:
    """Where ids go; nowhere if they are the numbers of the rows."""
    for name in nodes.of("id"):
        others = f"SELECT 1 FROM nodes WHERE {nodes.column(name)} <> CAST(rowid AS VARCHAR) LIMIT 1"
        if nodes.engine.one(others) is not None:
            return stack.enter_context(writer.table("ids", ["id"]))
    return None


class _Columns(Mapping[str, CountedCells | Array]):
    """Cells of the columns that are neither ids, labels nor the split, one column at a time."""

    def __init__(self, nodes: NodeCells, used: list[str], numbers: Numbers) -> None:
        self.nodes, self.used, self.numbers = nodes, used, numbers
        self._counted: dict[str, CountedCells] = {}

    def __getitem__(self, name: str) -> CountedCells | Array:
        if name in self.numbers:
            return self.numbers.column(name)
        if name not in self._counted:
            self._counted[name] = self.nodes.counted(name)
        return self._counted[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.used)

    def __len__(self) -> int:
        return len(self.used)


def _encodings(
    nodes: NodeCells,
    used: list[str],
    numbers: Numbers,
    given: Mapping[str, str],
    encoding: Encoding | None,
) -> tuple[Encoding, Encoding]:
    """How the columns become features, learnt or given; and how those of this table do."""
    columns = _Columns(nodes, used, numbers)
    if encoding is not None:
        check_columns(encoding, columns)
        here = with_points(nodes.path, encoding, columns)
        tell_new_values(nodes.path, here, columns)
        return encoding, here
    found = [summary(name, cells, nodes.roles.get(name)) for name, cells in columns.items()]
    try:
        encoding = replace(fitted(found, columns), roles=dict(given))
    except InputError as error:
        raise InputError(f"{nodes.path}: {error}") from None
    tell_columns(nodes.path, found, encoding)
    return encoding, encoding


def _label_coders(nodes: NodeCells) -> tuple[dict[str, Any], dict[str, Any]]:
    """How labels and the split become numbers; and what the manifest says of them."""
    coders: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    labels = nodes.of("label")
    if len(labels) == 1 and not labels[0].lower().startswith(LABELS):
        counts = {cell: count for cell, _, count in nodes.different(labels[0])}
        cells = list(counts)
        if (sets := label_sets(nodes.path, labels[0], cells)) is not None:
            rows = np.where(np.isnan(sets[0]), UNKNOWN, sets[0]).astype(np.uint8)
            coders["y"] = labels, np.uint8, rows.shape[1:], _set_coder(cells, rows)
            facts = {"label": "multi", "classes": sets[1]}
        else:
            values = label_values(nodes.path, labels[0], cells, counts)
            codes, classes = canonical_labels(values, len(cells))
            code = dict(zip(cells, codes.tolist(), strict=True))
            coders["y"] = labels, np.int32, (), _coder(code)
            facts = {"label": "single", "classes": classes}
    elif labels:
        for name in labels:
            _refuse_others(nodes, name, set(LABEL_CELLS), "use 0, 1 or nothing")
        known = {c: UNKNOWN if np.isnan(v) else int(v) for c, v in LABEL_CELLS.items()}
        coders["y"] = labels, np.uint8, (len(labels),), _row_coder(known)
        facts = {"label": "multi", "classes": label_names(labels)}
    for name in nodes.of("split"):
        number = {}
        for cell, row, _ in nodes.different(name):
            try:
                number[cell] = split_number(cell) + 1
            except InputError as error:
                raise InputError(f"{nodes.where(row)}: {error}") from None
        coders["split"] = [name], np.uint8, (), _coder(number)
        facts["has_split"] = True
    return coders, facts


def _refuse_others(nodes: NodeCells, name: str, known: set[str], way_out: str) -> None:
    for cell, row, _ in nodes.different(name):
        if cell not in known:
            raise InputError(
                f"{nodes.where(row)}: column {name[:50]!r} holds {cell[:50]!r}; {way_out}"
            )


def _looked_up(cells: Any, code: Mapping[str, int]) -> Array:
    """The number of each cell; each different cell of a batch is looked at once."""
    coded = cells.dictionary_encode()
    table = np.array([code[cell] for cell in coded.dictionary.to_pylist()], np.int64)
    return table[coded.indices.to_numpy()] if len(table) else np.zeros(0, np.int64)


def _coder(code: Mapping[str, int]) -> Coder:
    return lambda columns: _looked_up(columns[0], code)


def _row_coder(code: Mapping[str, int]) -> Coder:
    return lambda columns: np.stack([_looked_up(cells, code) for cells in columns], 1)


def _set_coder(cells: Sequence[str], rows: Array) -> Coder:
    """Look up the 0/1 row of each cell that holds a set of labels."""
    number = {cell: i for i, cell in enumerate(cells)}
    return lambda columns: rows[_looked_up(columns[0], number)]


class _FeatureWriter:
    """Writes features batch by batch: dense, or as CSR where words are counted."""

    def __init__(
        self, encoding: Encoding, writer: PackedWriter, stack: ExitStack, half: bool
    ) -> None:
        self.encoding = encoding
        self.sparse = any(column.role == "words" for column in encoding.columns)
        width = len(encoding.feature_names)
        if not self.sparse:
            dtype = np.float16 if half else np.float32
            self.array = stack.enter_context(writer.array("x", dtype, width))
            self.half = half
            return
        self.row_ptr = stack.enter_context(writer.array("x_row_ptr", np.int64))
        self.column = stack.enter_context(writer.array("x_column", index_type(width)))
        self.value = stack.enter_context(writer.array("x_value", np.float32))
        self.row_ptr.append([0])
        self.entries = 0

    def append(self, table: Mapping[str, Any]) -> None:
        """Write the features of some rows; ``table`` holds their cells by column."""
        blocks = [_encoded(column, table[column.name]) for column in self.encoding.columns]
        if not self.sparse:
            block = np.concatenate(blocks, 1)
            if self.half and (np.abs(block) > np.finfo(np.float16).max).any():
                raise InputError("a feature is larger than float16 holds; leave out --half")
            self.array.append(block)
            return
        matrix = scipy.sparse.hstack(blocks, format="csr", dtype=np.float32)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        self.row_ptr.append(matrix.indptr[1:].astype(np.int64) + self.entries)
        self.column.append(matrix.indices)
        self.value.append(matrix.data)
        self.entries += matrix.nnz


def _encoded(column: EncodedColumn, cells: Any) -> Any:
    """The features of a column; each different cell of a batch is encoded once."""
    if isinstance(cells, np.ndarray):
        return column.encode(cells)
    coded = cells.dictionary_encode()
    return column.encode(coded.dictionary.to_pylist())[coded.indices.to_numpy()]
