"""Reasons of edges, whoever found them: the one container, in memory and in a run folder."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from lgdgcn import tensor_file
from lgdgcn.errors import CheckpointError
from lgdgcn.models import NodeOutput
from lgdgcn.reasons.edges import Array, Edges
from lgdgcn.reasons.stability import Stability, over_fits, stability
from lgdgcn.storage import plain_file

__all__ = ["EdgeReasons", "edges_fingerprint"]

KIND = "reasons"  # of file
ARRAYS = ("probability", "presence", "unknown", "usual")
OPTIONAL = ("known", "low", "high")


@dataclass(frozen=True)
class EdgeReasons:
    """Why each undirected edge of a graph is there.

    Attributes:
        edges: The E edges that the rows are of.
        probability: Of each of K reasons; rows sum to 1 ``[E, K]``.
        names: Of the reasons: observed types, or "reason 1" and so on.
        presence: Probability that the reason is there, alone or with others ``[E, K]``.
        unknown: Whether the edge is explained too little to name a reason, bool ``[E]``.
        usual: Share of each reason in the graph, or among the observed types ``[K]``.
        noun: What one is called: "type" where names were observed, "factor" where a node model
            found them, else "reason".
        known: One for every type that was observed, where there are any ``[E, K]``.
        stability: How well other fits agree, where there are others.
        low: Lowest probability over all fits ``[E, K]``.
        high: Highest probability over all fits ``[E, K]``.
        about: How they were found, ready for JSON.
    """

    edges: Edges
    probability: Array
    names: list[str]
    presence: Array
    unknown: Array
    usual: Array
    noun: str = "reason"
    known: Array | None = None
    stability: Stability | None = None
    low: Array | None = None
    high: Array | None = None
    about: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_factors(
        cls, output: NodeOutput, edges: Edges, others: Sequence[NodeOutput] = ()
    ) -> "EdgeReasons":
        """Take the factors of a node model as the reasons of edges.

        Args:
            output: What the model says of the graph.
            edges: The edges of the graph.
            others: What the same model says that was trained with other seeds.
        """
        fits = [edges.once(one.layers[-1].edge_factors.cpu().double()) for one in (output, *others)]
        probability, (count, factors) = fits[0], fits[0].shape
        reasons = cls(
            edges=edges,
            probability=probability,
            names=[f"factor {number + 1}" for number in range(factors)],
            presence=probability,
            unknown=np.zeros(count, dtype=bool),
            usual=probability.mean(0) if count else np.full(factors, 1 / factors),
            noun="factor",
        )
        return reasons.compared(fits[1:])

    def predict(self, balanced: bool = False) -> Array:
        """Index of the likeliest reason of each edge ``[E]``.

        Args:
            balanced: Whether rare reasons count as much as common ones: best for the mean recall,
                not for accuracy.
        """
        scores = self.probability / np.maximum(self.usual, 1e-6) if balanced else self.probability
        result: Array = scores.argmax(1)
        return result

    @property
    def activity(self) -> Array:
        """Expected number of edges of each reason at each node ``[N, K]``."""
        return np.asarray(self.edges.incidence @ self.probability)

    def compared(self, others: Sequence[Array]) -> "EdgeReasons":
        """The same with what other fits of the same edges say, probabilities ``[E, K']`` each."""
        if not others:
            return self
        fits = [self.probability, *others]
        found = stability(fits, named=self.noun == "type")
        low, high = over_fits(fits, found.matched)
        return replace(self, stability=found, low=low, high=high)

    def with_known(self, types: Array) -> "EdgeReasons":
        """The same with observed types in the place of what was learnt of these edges.

        Args:
            types: 0/1, a row of zeros where nothing is known ``[E, K]``.
        """
        types = np.asarray(types, dtype=float)
        given = types.sum(1, keepdims=True) > 0
        share = types / np.maximum(types.sum(1, keepdims=True), 1)

        def fixed(values: Array | None, known: Array = share) -> Array | None:
            return None if values is None else np.where(given, known, values)

        return replace(
            self,
            probability=np.where(given, share, self.probability),
            presence=np.where(given, types, self.presence),
            unknown=self.unknown & ~given[:, 0],
            known=types,
            low=fixed(self.low),
            high=fixed(self.high),
        )

    def part(self, edges: Edges, nodes: Array) -> "EdgeReasons":
        """Reasons of some of the edges.

        Args:
            edges: They, between nodes that are numbered anew.
            nodes: The former number of each node, ascending ``[n]``.
        """
        size = self.edges.num_nodes
        codes = self.edges.ends[0] * size + self.edges.ends[1]  # ascending
        rows = np.searchsorted(codes, nodes[edges.ends[0]] * size + nodes[edges.ends[1]])
        names = ("probability", "presence", "unknown", *OPTIONAL)
        parts = {
            name: values[rows] for name in names if (values := getattr(self, name)) is not None
        }
        return replace(self, edges=edges, **parts)

    def attach(self, data: Data) -> None:
        """Let a graph know its ``edge_reasons`` ``[2 E, K]`` and ``reason_names``.

        Labels may travel along them (:mod:`~lgdgcn.models.along_reasons`).
        """
        both = self.edges.both(self.probability)
        data.edge_reasons = torch.from_numpy(both).to(data.x.dtype)
        data.reason_names = list(self.names)

    def save(self, file: Path, data: Data) -> None:
        """Write them and which graph they are of.

        Args:
            file: Such as ``run/reasons.safetensors``.
            data: The graph in canonical form.
        """
        plain_file(file)  # refuses links
        arrays = {name: getattr(self, name) for name in (*ARRAYS, *OPTIONAL)}
        if self.stability is not None:
            arrays |= {"agreement": self.stability.agreement, "matched": self.stability.matched}
        tensors = {
            name: torch.from_numpy(np.ascontiguousarray(values))
            for name, values in arrays.items()
            if values is not None
        }
        meta = {"graph": edges_fingerprint(data), "names": self.names, "noun": self.noun}
        tensor_file.save(file, tensors, meta | {"about": self.about}, KIND)

    @classmethod
    def load(cls, file: Path, data: Data) -> "EdgeReasons":
        """Read what :meth:`save` wrote for the same graph.

        Raises:
            CheckpointError: The file is missing, damaged, or of another graph.
        """
        tensors, meta = tensor_file.load(file, KIND)
        if meta.get("graph") != edges_fingerprint(data):
            raise CheckpointError(
                f"{file} is of another graph: its edges, ids or types have changed since; restore "
                "them, or train again"
            )
        edges = Edges.of_graph(data)
        found: dict[str, Any] = {name: tensor.numpy() for name, tensor in tensors.items()}
        if "agreement" in found:
            found["stability"] = Stability(found.pop("agreement"), found.pop("matched"))
        return cls(
            edges=edges, names=meta["names"], noun=meta["noun"], about=meta["about"], **found
        )


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
