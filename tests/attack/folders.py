"""Graph folders: write a graph, read it back, compare everything; then the same with damage."""

import math
import warnings
from pathlib import Path
from random import Random

import numpy as np
import torch
from torch_geometric.data import Data

from attack import damage
from attack.dialects import Written, write_edges_alone, write_graph
from attack.graphs import draw
from attack.literal import UnreadableError, read_literally
from attack.rules import labels_of, may_be_real
from attack.verdict import Finding, Verdict, one_line_error
from lgdgcn.data.labels import is_labelled
from lgdgcn.data.user_graph import read_graph
from lgdgcn.errors import InputError

__all__ = ["damaged", "difference", "round_trip"]


def round_trip(random: Random, folder: Path) -> Finding:
    """A valid graph in a valid dialect must come back as it was."""
    graph = draw(random)
    alone = bool(graph.edges) and random.random() < 0.05
    written = (write_edges_alone if alone else write_graph)(folder, graph, random)
    require = written.graph.trainable
    features = None if written.x is not None else "degree"
    finding, data = _read(folder, features, require or random.random() < 0.5)
    if data is not None:
        return _judge(difference(data, written))
    if finding.verdict is Verdict.CLEAN and require and not _excused(written):
        return Finding(Verdict.REFUSED, finding.reason)
    return finding


def damaged(random: Random, folder: Path) -> Finding:
    """A damaged folder is refused, or read as the literal reader reads it."""
    original = write_graph(folder, draw(random), random)
    kind = damage.damage(random, folder)
    try:
        if kind is damage.Kind.REFUSE:
            raise UnreadableError(kind)
        expected = original if kind is damage.Kind.SEALED else read_literally(folder, original)
    except UnreadableError as error:
        expected = error
    finding, data = _read(folder, None, original.graph.trainable)
    if data is None:
        return finding
    if isinstance(expected, UnreadableError):
        return Finding(Verdict.WRONG, f"accepted, though it must be refused: {expected}")
    return _judge(difference(data, expected))


def _excused(written: Written) -> bool:
    """Whether a refusal is all right."""
    graph = written.graph
    single = graph.label_sets is not None and len(graph.label_sets) == 1  # several are asked for
    return bool(written.excuses) or single or may_be_real(graph.labels or [])


def _read(folder: Path, features: str | None, labels: bool) -> tuple[Finding, Data | None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = read_graph(folder, features, require_labels=labels)
    except InputError as error:
        found = one_line_error(str(error), longest=math.inf)  # the command line cuts it
        return Finding(found.verdict, found.reason or str(error)), None
    except Exception as error:
        return Finding(Verdict.INTERNAL, f"{type(error).__name__}: {error}"[:300]), None
    return Finding(Verdict.SUCCESS), data


def _judge(found: str | None) -> Finding:
    return Finding(Verdict.SUCCESS) if found is None else Finding(Verdict.WRONG, found)


def difference(data: Data, written: Written) -> str | None:
    """The first thing that did not come back, or ``None``."""
    graph = written.graph
    if data.node_ids != graph.ids:
        return f"ids: {graph.ids} came back as {data.node_ids}"
    if written.x is not None:
        x = data.x.to_dense().numpy()
        if x.dtype != written.x.dtype or not np.array_equal(x, written.x):
            return f"features: {written.x.tolist()} came back as {x.tolist()} ({x.dtype})"
    for name, column in written.plain.items():
        x = data.x.to_dense().numpy()[:, data.feature_names.index(name)]
        if not np.array_equal(x, column):
            return f"feature {name!r}: {column.tolist()} came back as {x.tolist()}"
    edges = {(a, b) for a, b in data.edge_index.t().tolist()}
    if edges != graph.neighbours or data.edge_index.size(1) != len(edges):
        return f"edges: {sorted(graph.neighbours)} came back as {data.edge_index.t().tolist()}"
    return (
        _weight_difference(data, written)
        or _label_difference(data, written)
        or _split_difference(data, written)
    )


def _weight_difference(data: Data, written: Written) -> str | None:
    wanted = written.graph.edge_weights
    if wanted is None or "edge_weight" not in data:
        both = (wanted is None) == ("edge_weight" not in data)
        return None if both else f"weights: {wanted} came back as {data.get('edge_weight')}"
    pairs = [(a, b) for a, b in data.edge_index.t().tolist()]
    found = dict(zip(pairs, data.edge_weight.tolist(), strict=True))
    same = all(math.isclose(wanted[pair], found[pair], rel_tol=1e-5) for pair in wanted)
    return None if same else f"weights: {wanted} came back as {found}"


def _label_difference(data: Data, written: Written) -> str | None:
    graph = written.graph
    if len({str(name) for name in data.classes}) != len(data.classes):
        return f"classes: {data.classes} are not all different"
    if graph.label_sets is not None:
        names = list(graph.label_sets)
        if not any(graph.labelled) and not is_labelled(data.y).any():
            return None
        if data.classes != names:
            return f"label names: {names} came back as {data.classes}"
        number = {"": np.nan, "-1": np.nan, "0": 0.0, "1": 1.0}
        rows = [[cell.strip().removesuffix(".0") for cell in row] for row in graph.label_rows]
        expected = [[number[cell] for cell in row] for row in rows]
        if data.y.dim() != 2 or not np.array_equal(data.y.numpy(), expected, equal_nan=True):
            return f"label sets: {expected} came back as {data.y.tolist()}"
        return None
    cells = graph.labels if graph.labels is not None else [""] * len(graph.ids)
    wanted = labels_of(cells)
    found = [None if i < 0 else data.classes[i] for i in data.y.tolist()]
    same = [(type(label), label) for label in wanted] == [(type(label), label) for label in found]
    return None if same else f"labels: {wanted} came back as {found}"


def _split_difference(data: Data, written: Written) -> str | None:
    graph = written.graph
    masks = torch.stack([data.train_mask, data.val_mask, data.test_mask])
    labelled = is_labelled(data.y)  # as compared above
    if graph.splits is None:  # made here: each labelled node in one of the three, or none at all
        if bool((masks.sum(0) == labelled).all()) or not masks.any():
            return None
        return f"a split was made that does not fit the labels: {masks.tolist()}"
    wanted = [[split == part for part in graph.splits] for split in ("train", "val", "test")]
    if torch.equal(masks, torch.tensor(wanted) & labelled):
        return None
    return f"splits: {graph.splits} came back as {masks.tolist()}"
