"""Tables of predictions: what stands in their columns, and how they become CSV or Parquet."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.data.label_sets import joined
from lgdgcn.data.labels import SPLITS, is_labelled, label_pieces
from lgdgcn.errors import InputError
from lgdgcn.models import NodeOutput
from lgdgcn.storage import atomic_write, write_csv
from lgdgcn.train.trained import TrainedModel

__all__ = [
    "CSV",
    "PARQUET",
    "Block",
    "all_probabilities",
    "edge_columns",
    "has_parquet",
    "known_columns",
    "known_of",
    "node_columns",
    "require_parquet",
    "with_text",
    "write_table",
]

CSV, PARQUET = ".csv", ".parquet"

# Columns by name: numbers as an array (NaN where there is none), everything else as a list.
Block = dict[str, "np.ndarray[Any, Any] | Sequence[Any]"]


# Columns


def node_columns(trained: TrainedModel, output: NodeOutput) -> Block:
    """What the model says of every node: its label, how probable, and the likeliest factor."""
    probabilities = trained.task.probabilities(output.logits).cpu()
    predicted = trained.task.predict(output.logits).cpu()
    if trained.task.multi_label:
        labels = _label_sets(predicted, trained.classes)
        chosen = probabilities.masked_fill(~predicted.bool(), torch.inf).amin(1)
        chosen = chosen.masked_fill(chosen == math.inf, math.nan)  # of no label at all
    else:
        labels = [trained.classes[number] for number in predicted.tolist()]
        chosen = probabilities.amax(1)
    columns: Block = {"label": labels, "probability": chosen.numpy()}
    factors = trained.dominant_factors(output)
    return columns if factors is None else columns | {"factor": factors.cpu().numpy() + 1}


def all_probabilities(trained: TrainedModel, output: NodeOutput) -> Block:
    """A column ``p:NAME`` for every class or label."""
    by_class = trained.task.probabilities(output.logits).cpu().t().contiguous().numpy()
    names = (f"p:{name}" for name in trained.classes)
    return dict(zip(names, by_class, strict=True))


def known_columns(data: Data) -> list[str]:
    """Which columns the graph itself has: those in which it says something of any node."""
    has_split = any(bool(data[f"{split}_mask"].any()) for split in SPLITS)
    has_label = any(len(piece) for piece in label_pieces(data.y))
    names = {"true_label": has_label, "split": has_split}
    return [name for name, has in names.items() if has]


def known_of(data: Data, names: list[str]) -> Block:
    """What the graph itself says of every node, in these columns."""
    columns: Block = {}
    if "true_label" in names:
        if data.y.dim() == 2:
            labels: list[Any] = _label_sets(data.y > 0, data.classes)
        else:
            labels = [data.classes[number] for number in data.y.tolist()]
        known = zip(labels, is_labelled(data.y).tolist(), strict=True)
        columns["true_label"] = [name if has_label else "" for name, has_label in known]
    if "split" in names:
        number = sum((i + 1) * data[f"{name}_mask"].long() for i, name in enumerate(SPLITS))
        split = ("", *SPLITS)
        columns["split"] = [split[one] for one in torch.as_tensor(number).tolist()]
    return columns


def with_text(columns: Block, text: Mapping[str, Sequence[str]]) -> Block:
    """Add what the nodes table says in words; the ids stay the column ``node``."""
    return columns | {f"{name}_text" if name == "node" else name: c for name, c in text.items()}


def edge_columns(
    source: Sequence[Any],
    target: Sequence[Any],
    names: Sequence[str],
    shares: "np.ndarray[Any, Any]",
    *,
    unknown: "np.ndarray[Any, Any] | None" = None,
    known: "np.ndarray[Any, Any] | None" = None,
    probabilities: bool,
) -> Block:
    """Edges with their two likeliest reasons, the same columns whoever found them.

    Args:
        source: One end of each.
        target: The other end.
        names: Of the reasons.
        shares: Their probabilities ``[e, K]``.
        unknown: Whether an edge is explained too little to name a reason ``[e]``.
        known: One for every type that was observed ``[e, K]``.
        probabilities: Whether to write those of all reasons.
    """
    shares = shares.astype(np.float32)
    order = np.argsort(-shares, axis=1, kind="stable")
    rows = np.arange(len(shares))
    blank = np.zeros(len(shares), dtype=bool)
    columns: Block = {"source": source, "target": target}
    columns["reason"] = [names[number] for number in order[:, 0].tolist()]
    columns["probability"] = shares[rows, order[:, 0]]
    if len(names) > 1:
        columns["second"] = [names[number] for number in order[:, 1].tolist()]
        columns["second_probability"] = shares[rows, order[:, 1]]
    else:
        columns["second"] = [""] * len(shares)
        columns["second_probability"] = np.full(len(shares), math.nan, dtype=np.float32)
    columns["unknown"] = (blank if unknown is None else unknown).astype(np.int32)
    given = np.zeros_like(shares) if known is None else known
    columns["known"] = [  # several have ; between them, as in edges.csv
        ";".join(name for name, is_one in zip(names, row, strict=True) if is_one)
        for row in given.tolist()
    ]
    if probabilities:
        columns |= {f"p:{name}": shares[:, k] for k, name in enumerate(names)}
    return columns


def _label_sets(chosen: Tensor, names: list[Any]) -> list[str]:
    return [joined(name for name, is_one in zip(names, row, strict=True) if is_one)
            for row in chosen.tolist()]  # fmt: skip


# Files


def has_parquet() -> bool:
    """Whether Parquet files can be written: pyarrow is installed."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        return False
    return True


def require_parquet() -> None:
    """Refuse to write Parquet, before any work is done, where nothing can."""
    if not has_parquet():
        raise InputError(
            "Parquet files need pyarrow; pip install 'lgdgcn[parquet]', or name a .csv file"
        )


def write_table(path: Path, blocks: Iterable[Block]) -> int:
    """Write a table completely or not at all, holding one block at a time.

    Args:
        path: The file; ``.parquet`` makes it a Parquet file, everything else CSV.
        blocks: Rows with the same columns each, at least one block.

    Returns:
        The number of rows.
    """
    blocks = iter(blocks)
    first, count = next(blocks), 0

    def counted() -> Iterator[Block]:
        nonlocal count
        for block in chain([first], blocks):
            count += len(next(iter(block.values())))
            yield block

    if path.suffix == PARQUET:
        _write_parquet(path, first, counted())
    else:
        rows = (
            row for block in counted() for row in zip(*map(_cells, block.values()), strict=True)
        )
        write_csv(path, first, rows)
    return count


def _cells(column: Any) -> list[Any]:
    """The cells of a column: probabilities have six digits, and none is an empty cell."""
    if not isinstance(column, np.ndarray):
        return list(column)
    values: list[Any] = column.tolist()
    if column.dtype.kind != "f":
        return values
    return ["" if value != value else f"{value:.6f}" for value in values]


def _write_parquet(path: Path, first: Block, blocks: Iterable[Block]) -> None:
    import pyarrow
    from pyarrow import parquet

    def kind(column: Any) -> Any:
        if not isinstance(column, np.ndarray):
            return pyarrow.string()
        return pyarrow.float32() if column.dtype.kind == "f" else pyarrow.int32()

    schema = pyarrow.schema([(name, kind(column)) for name, column in first.items()])

    def fill(file: BinaryIO) -> None:
        with parquet.ParquetWriter(file, schema) as writer:
            for block in blocks:
                arrays = [
                    pyarrow.array(_plain(column), field.type, from_pandas=True)
                    for column, field in zip(block.values(), schema, strict=True)
                ]
                writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))

    atomic_write(path, fill)


def _plain(column: Any) -> Any:
    """Numbers as they are; everything else as text that UTF-8 can hold."""
    if isinstance(column, np.ndarray):
        return column
    cells = ("" if cell is None else str(cell) for cell in column)
    return [cell.encode("utf-8", "backslashreplace").decode() for cell in cells]
