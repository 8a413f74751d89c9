"""Reasons of edges in a run folder: tensors in one file, names and numbers to read in another.

``edge_reasons.safetensors`` and ``edge_reasons.json``, which says which tensors and which graph it
belongs to.
"""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from lgdgcn import tensor_file
from lgdgcn.errors import CheckpointError
from lgdgcn.reasons.edges import Array
from lgdgcn.reasons.fit import EdgeReasons
from lgdgcn.reasons.number_of_reasons import ModelChoice
from lgdgcn.reasons.stability import Stability
from lgdgcn.storage import plain_file, write_json

__all__ = ["Interval", "edges_fingerprint", "load_reasons", "load_stability", "save_reasons"]

REASONS = "reasons"  # the kind of file
TENSORS = ("probability", "presence", "unknown", "activity", "usual")
OVER_SEEDS = ("agreement", "matched", "lowest", "highest")


def edges_fingerprint(data: Data) -> str:
    """The sha256 of a canonical graph's edges, the names of its nodes and the known types."""
    digest = hashlib.sha256(f"{data.x.size(0)} nodes\n".encode())
    for key in ("edge_index", "edge_type"):
        if key in data:
            array = np.ascontiguousarray(data[key].cpu().numpy())
            digest.update(f"{key} {array.dtype.str} {array.shape}\n".encode())
            digest.update(array.reshape(-1).view(np.uint8).data)
    for key in ("node_ids", "edge_type_names"):
        names = [str(name) for name in data.get(key) or []]
        digest.update(json.dumps([key, names]).encode())
    return digest.hexdigest()


Interval = tuple[Array, Array]  # lowest and highest probability over the seeds, [P, M] each


def save_reasons(
    file: Path,
    reasons: EdgeReasons,
    data: Data,
    seed: int,
    *,
    stability: Stability | None = None,
    interval: Interval | None = None,
) -> None:
    """Write reasons and what they are of.

    Args:
        file: Such as ``run/edge_reasons.safetensors``; the other file has ``.json`` at its end.
        reasons: Reasons of the edges of ``data``.
        data: A graph from :func:`~lgdgcn.data.validate.canonical`.
        seed: The seed that they were fitted with.
        stability: How well the fits of other seeds agree.
        interval: What they say of every pair.
    """
    about = file.with_suffix(".json")
    for one in (file, about):
        plain_file(one)  # refuses links
    tensors = {name: getattr(reasons, name) for name in TENSORS}
    if stability is not None and interval is not None:
        parts = (stability.agreement, stability.matched, *interval)
        for name, part in zip(OVER_SEEDS, parts, strict=True):
            tensors[name] = torch.from_numpy(np.ascontiguousarray(part, dtype=np.float32))
    tensor_file.save(file, tensors, {}, REASONS)
    write_json(
        about,
        {
            "graph": edges_fingerprint(data),
            "tensors": tensor_file.digest(file),
            "seed": seed,
            "names": reasons.names,
            "log_loss": reasons.log_loss,
            "weights": reasons.weights,
            "curve": dataclasses.asdict(reasons.curve),
        },
    )


def load_reasons(file: Path, data: Data) -> EdgeReasons:
    """Read what :func:`save_reasons` wrote for the same graph.

    Raises:
        CheckpointError: A file is missing or damaged, or of another graph.
    """
    about = _about(file.with_suffix(".json"))
    if about["graph"] != edges_fingerprint(data):
        raise CheckpointError(
            f"{file} is of another graph: its edges, ids or types have changed since; restore "
            "them, or train again with --task edges"
        )
    tensors, _ = tensor_file.load(file, REASONS)
    rows = {"probability", "presence", "unknown"}
    edges, count = data.edge_index.size(1), len(about["names"])
    fits = all(name in tensors and (name not in rows or len(tensors[name]) == edges)
               for name in TENSORS)  # fmt: skip
    if about["tensors"] != tensor_file.digest(file) or not fits or len(tensors["usual"]) != count:
        raise CheckpointError(
            f"{file} and the .json beside it are of two runs; train again with --task edges"
        )
    curve: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in about["curve"].items()
    }
    return EdgeReasons(
        **{name: tensors[name] for name in TENSORS},
        names=about["names"],
        curve=ModelChoice(**curve),
        log_loss=about["log_loss"],
        weights=about["weights"],
    )


def load_stability(file: Path) -> tuple[Stability | None, Interval | None]:
    """How well seeds agree, as :func:`save_reasons` wrote it; nothing if there was one seed.

    Call :func:`load_reasons` first: it says whether the file is whole and of this graph.
    """
    tensors, _ = tensor_file.load(file, REASONS)
    if not all(name in tensors for name in OVER_SEEDS):
        return None, None
    agreement, matched, low, high = (tensors[name].double().numpy() for name in OVER_SEEDS)
    return Stability(agreement, matched.astype(int)), (low, high)


def _about(file: Path) -> dict[str, Any]:
    kinds = {"graph": str, "tensors": str, "names": list, "curve": dict, "weights": dict}
    known = {field.name for field in dataclasses.fields(ModelChoice)}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        good = all(isinstance(content[key], kind) for key, kind in kinds.items())
        good = good and content["curve"].keys() == known
        good = good and isinstance(content["log_loss"], float | None)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        good, content = False, {}
    if not good:
        raise CheckpointError(
            f"{file} is missing or damaged; restore it, or train again with --task edges"
        )
    result: dict[str, Any] = content
    return result
