"""Random graphs whose names are what a reader of tables most easily gets wrong."""

from dataclasses import dataclass, field
from random import Random

import numpy as np

from attack.rules import is_nothing, labels_of

__all__ = ["Graph", "draw", "hostile_name"]

WORDS = [
    "#tag", "#", "# note", "a#b", "1_0", "1e5", "1E5", "+1", "-1", "-0", "0x1F", "1.0", "1.", ".5",
    "٣", "１２", "७", "²", "12345678901234567890", "98765432109876543210", "007", "00", "0", "10",
    "nan", "NaN", "inf", "-inf", "None", "null", "NA", "true", "FALSE", "", " ",
    'say "hi"', '"', '""', "'quoted'", "a,b", ",", "a\tb", "a b", "a  b", "a\nb", "a\r\nb", "a\rb",
    "\ufeffbom", "é", "e\u0301", "Å", "A\u030a", "ﬁ", "ß", "ẞ", "İ", "ı", "K", "\u212a",
    "source", "target", "Source", "TARGET", "src", "dst", "from", "to", "u", "v", "id", "label",
    "split", "train", "|", "a|b", "=1+1", "+cmd", "-x", "@sum", "'=1", "\\", "\\n", "a\\", "%s",
    "{}", "</script>", "__proto__", "../x", "C:\\x", "😀", "\u200b", "a\u200bb", "\u202eevil",
    "a\u2028b", "a\x85b", "a\x0bb", "a\x1cb", "a\u00a0b", "a\u3000b", "\u00a0", "\x7f",
    "n" * 300, "true ", " lead", "\ttab",
]  # fmt: skip


@dataclass
class Graph:
    """A graph as its author thinks of it.

    Attributes:
        ids: Names of the N nodes.
        x: Features [N, d].
        edges: Pairs of rows; may repeat and may be loops.
        labels: One cell per node, empty without a label; ``None`` without a label column.
        label_sets: Instead, 0/1 columns by name; a row of empty cells has no labels.
        splits: One cell per node; ``None`` without a split column.
        weights: One for each edge; ``None`` without.
    """

    ids: list[str]
    x: np.ndarray
    edges: list[tuple[int, int]] = field(default_factory=list)
    labels: list[str] | None = None
    label_sets: dict[str, list[str]] | None = None
    splits: list[str] | None = None
    weights: list[float] | None = None

    @property
    def edge_weights(self) -> dict[tuple[int, int], float] | None:
        """Weights as a model sees them: added up in one direction, the mean of both directions."""
        if self.weights is None:
            return None
        listed: dict[tuple[int, int], float] = {}
        for edge, weight in zip(self.edges, self.weights, strict=True):
            listed[edge] = listed.get(edge, 0.0) + weight
        both = {}
        for a, b in self.neighbours:
            found = [listed[edge] for edge in ((a, b), (b, a)) if edge in listed]
            both[a, b] = sum(found) / len(found)
        return both

    @property
    def neighbours(self) -> set[tuple[int, int]]:
        """Edges as a model sees them: both directions, once, no loops."""
        return {pair for a, b in self.edges if a != b for pair in ((a, b), (b, a))}

    @property
    def label_rows(self) -> list[tuple[str, ...]]:
        """The cells of the label sets, node by node."""
        return list(zip(*(self.label_sets or {}).values(), strict=True))

    @property
    def labelled(self) -> list[bool]:
        if self.label_sets is not None:
            return [cells[0] not in ("", "-1") for cells in self.label_rows]
        cells = self.labels if self.labels is not None else [""] * len(self.ids)
        return [label is not None for label in labels_of(cells)]

    @property
    def trainable(self) -> bool:
        """Whether there is something to learn: two classes and, with splits, a training node."""
        labelled = self.labelled
        split = self.splits or ["train"] * len(self.ids)
        trains = any(has and part == "train" for has, part in zip(labelled, split, strict=True))
        if self.label_sets is not None:
            return trains
        classes = set(labels_of(self.labels or [])) - {None}
        return trains and len(classes) > 1


def hostile_name(random: Random, empty: bool = False) -> str:
    """A name, most often one that something could trip over; ``empty`` may be nothing at all."""
    kind = random.random()
    if kind < 0.55:
        name = random.choice(WORDS)
    elif kind < 0.7:
        name = random.choice(WORDS) + random.choice(["", " ", "x", "-"]) + random.choice(WORDS)
    elif kind < 0.9:
        name = str(random.randint(0, 99))
    else:
        name = "".join(chr(random.choice(CODES)) for _ in range(random.randint(1, 6)))
    return name if empty or not is_nothing(name) else hostile_name(random)


CODES = [*range(1, 0x180), *range(0x600, 0x670), *range(0x2000, 0x2070), 0xFEFF, 0x1F600, 0xFFFD]


def draw(random: Random) -> Graph:
    """A graph of at most a dozen nodes; now and then one that cannot be trained on."""
    count = random.choice([1, 2, 4, 6, 8, 8, 12])
    ids = _ids(random, count)
    graph = Graph(ids, _features(random, count))
    for _ in range(random.choice([0, 1, 3, 10, 20])):
        graph.edges.append((random.randrange(count), random.randrange(count)))
    kind = random.random()
    if kind < 0.75:
        graph.labels = _labels(random, count)
    elif kind < 0.95:
        names = {hostile_name(random) for _ in range(random.randint(1, 4))}
        graph.label_sets = {name: [] for name in sorted(names)}
        for _ in range(count):
            empty = random.choice(["", "-1"]) if random.random() < 0.2 else None
            for cells in graph.label_sets.values():
                cells.append(random.choice("01") if empty is None else empty)
    if random.random() < 0.7:
        graph.splits = [random.choice(["train", "train", "val", "test", ""]) for _ in range(count)]
    return graph


def _ids(random: Random, count: int) -> list[str]:
    if random.random() < 0.15:
        return [str(i) for i in range(count)]
    ids: dict[str, None] = {}
    while len(ids) < count:
        ids[hostile_name(random)] = None
    return list(ids)


def _features(random: Random, count: int) -> np.ndarray:
    kinds = [
        lambda: random.gauss(0, 1),
        lambda: float(random.randint(-5, 5)),
        lambda: random.choice([0.0, -0.0, 1e-38, 3e38, -3e38, 1e-45, 0.1, 1 / 3, 123456789.0]),
    ]
    columns = [random.choice(kinds) for _ in range(random.choice([1, 2, 5]))]
    return np.array([[make() for make in columns] for _ in range(count)])


def _labels(random: Random, count: int) -> list[str]:
    """Labels of one kind: integers, codes of many digits, names, or anything at all."""
    kind = random.choice(["integers", "codes", "zeros", "names", "names", "mixed"])
    pool = {
        "integers": ["0", "1", "2", "5", "40"],
        "codes": ["12345678901234567890", "12345678901234567891", "98765432109876543210"],
        "zeros": ["007", "7", "07", "010"],
        "names": ["red", "blue", "=1+1", "größe", "a|b", "#x", "+1", "1_0", "10"],
        "mixed": [hostile_name(random, empty=True) for _ in range(3)],
    }[kind]
    pool = random.sample(pool, random.choice([1, 2, 3, 3])) + random.choice([[], [""]])
    if kind == "integers" and random.random() < 0.3:
        pool.append("-1")
    return [random.choice(pool) for _ in range(count)]
