"""Graphs as users have them, with a planted reason for every edge: folders or ``Data``.

Every generator draws sizes, strengths, blanks and noise from its seed. The true reason of an edge
and the labels of all nodes are kept apart and never written, unless some types are asked for:

    python benchmarks/planted.py write customers 0 FOLDER [--typed 0.1]
    python benchmarks/planted.py agreement [customers ...] [--seeds 5] [--first-seed 0]

    python benchmarks/planted.py types [customers ...] [--seeds 5] [--share 0.1 0.25]

``agreement`` finds reasons without any type and prints how well they are those planted: adjusted
mutual information (AMI), edges of noise left out. ``types`` shows a share of the edges' types and
prints how many of the others are named right, edges of noise left out.
"""

import argparse
import csv
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Data

Draws = np.random.Generator
Array = Any

NOISE = "noise"
SYLLABLES = ("ba", "do", "ki", "lu", "me", "no", "pra", "ri", "sto", "tu", "va", "zen")


@dataclass(frozen=True)
class Planted:
    """A drawn graph.

    Attributes:
        name: Of the generator.
        columns: The cells of the nodes table by column, blanks and the visible labels included.
        ends: The two nodes of each edge, once, in the order of ``Edges`` ``[2, P]``.
        reasons: The true reason of each edge; "noise" is none ``[P]``.
        labels: The true label of each node ``[N]``.
        label: The column that shows some of the labels.
        driver: The reason that the label follows.
    """

    name: str
    columns: dict[str, list[str]]
    ends: Array
    reasons: Array
    labels: Array
    label: str
    driver: str

    @property
    def kinds(self) -> list[str]:
        """Names of the planted reasons."""
        return sorted(set(self.reasons) - {NOISE})

    def typed(self, share: float, seed: int = 0) -> Array:
        """The edges whose type is shown ``[P]``: a share of those that have a reason."""
        known = np.flatnonzero(self.reasons != NOISE)
        draws = np.random.default_rng([seed, 77])
        mask = np.zeros(len(self.reasons), dtype=bool)
        mask[draws.permutation(known)[: round(share * len(self.reasons))]] = True
        return mask

    def write(self, folder: Path, typed: float = 0.0, seed: int = 0) -> Path:
        """Write ``nodes.csv`` and ``edges.csv``, with a column ``type`` if some are to be shown."""
        folder.mkdir(parents=True, exist_ok=True)
        names = [f"{self.name[0]}{node}" for node in range(len(self.labels))]
        with (folder / "nodes.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["id", *self.columns])
            table.writerows(zip(names, *self.columns.values(), strict=True))
        shown = self.typed(typed, seed)
        with (folder / "edges.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["source", "target", *(["type"] if typed else [])])
            for edge in np.random.default_rng(seed).permutation(len(self.reasons)):
                first, second = self.ends[:, edge]
                kind = [self.reasons[edge] if shown[edge] else ""] if typed else []
                table.writerow([names[first], names[second], *kind])
        return folder

    def data(self, typed: float = 0.0, seed: int = 0) -> Data:
        """The graph as ``load`` gives it for the written folder."""
        from lgdgcn.data.source import GraphSource

        with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            folder = self.write(Path(place) / self.name, typed, seed)
            return GraphSource(str(folder), label=self.label).load(require_labels=False)


class _Edges:
    """Edges while they are drawn; an edge keeps the reason it was first drawn for."""

    def __init__(self, nodes: int, draws: Draws, skew: float) -> None:
        self.nodes, self.draws = nodes, draws
        self.activity = draws.lognormal(0, skew, nodes)
        self.found: dict[tuple[int, int], str] = {}

    def add(self, reason: str, first: Sequence[int], second: Sequence[int]) -> None:
        for a, b in np.sort(np.stack([first, second]), axis=0).T.tolist():
            if a != b:
                self.found.setdefault((a, b), reason)

    def within(self, reason: str, groups: Array, count: int) -> None:
        """Edges inside groups (-1 is none); large groups and active nodes have more of them."""
        members = [np.flatnonzero(groups == group) for group in np.unique(groups[groups >= 0])]
        members = [group for group in members if len(group) > 1]
        weight = np.array([len(group) for group in members], dtype=float)
        for index, share in enumerate(self.draws.multinomial(count, weight / weight.sum())):
            group = members[index]
            chance = self.activity[group] / self.activity[group].sum()
            self.add(reason, *self.draws.choice(group, (2, share), p=chance))

    def cliques(self, reason: str, groups: Array) -> None:
        """All edges inside groups (-1 is none)."""
        for group in np.unique(groups[groups >= 0]):
            inside = np.flatnonzero(groups == group)
            first, second = np.triu_indices(len(inside), 1)
            self.add(reason, inside[first], inside[second])

    def near(self, reason: str, places: Array, count: int, neighbours: int) -> None:
        """Edges from active nodes to one of their nearest in ``places`` ``[N, d]``."""
        from sklearn.neighbors import NearestNeighbors

        jitter = places + 1e-6 * self.draws.standard_normal(places.shape)
        found = NearestNeighbors(n_neighbors=neighbours + 1).fit(jitter).kneighbors(jitter)[1]
        first = self.draws.choice(self.nodes, count, p=self.activity / self.activity.sum())
        self.add(reason, first, found[first, self.draws.integers(1, neighbours + 1, count)])

    def noise(self, share: float) -> None:
        """Edges between any nodes, a share of all."""
        count = round(share / (1 - share) * len(self.found))
        chance = self.activity / self.activity.sum()
        self.add(NOISE, *self.draws.choice(self.nodes, (2, count), p=chance))


def _groups(draws: Draws, nodes: int, low: int, high: int, among: Array | None = None) -> Array:
    """Groups of random sizes; each inside one value of ``among``, if given ``[N]``."""
    among = np.zeros(nodes, dtype=int) if among is None else among
    result, number = np.full(nodes, -1), 0
    for value in np.unique(among):
        waiting = draws.permutation(np.flatnonzero(among == value))
        while len(waiting):
            size = int(draws.integers(low, high + 1))
            result[waiting[:size]] = number
            waiting, number = waiting[size:], number + 1
    return result


def _names(draws: Draws, count: int) -> list[str]:
    """Different words."""
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(draws.choice(SYLLABLES, draws.integers(2, 5))).capitalize()] = None
    return list(found)


def _values(draws: Draws, nodes: int, low: int, high: int) -> tuple[Array, list[str]]:
    """One of a few values of unequal sizes per node, and their names."""
    count = int(draws.integers(low, high + 1))
    share = draws.dirichlet(np.full(count, 3.0))
    return draws.choice(count, nodes, p=share), _names(draws, count)


def _cells(draws: Draws, values: Sequence[Any], blank: tuple[float, float] | None) -> list[str]:
    """Values as cells, a share of them blank."""
    share = draws.uniform(*blank) if blank else 0.0
    return ["" if draws.random() < share else str(value) for value in values]


def _days(days: Array) -> list[str]:
    return [str(np.datetime64("2018-01-01") + int(day)) for day in days]


def _labels(draws: Draws, groups: Array, classes: int, purity: float, skew: float = 3.0) -> Array:
    """A class per group, kept by a share of its nodes ``[N]``."""
    share = draws.dirichlet(np.full(classes, skew))
    of_group = draws.choice(classes, groups.max() + 2, p=share)  # the last one: no group
    drawn = draws.choice(classes, len(groups), p=share)
    return np.where((draws.random(len(groups)) < purity) & (groups >= 0), of_group[groups], drawn)


def _planted(
    name: str,
    draws: Draws,
    edges: _Edges,
    columns: dict[str, list[str]],
    label: str,
    labels: Sequence[str],
    driver: str,
) -> Planted:
    edges.noise(draws.uniform(0.05, 0.15))
    order = sorted(edges.found)
    reasons = np.array([edges.found[pair] for pair in order])
    shown = _cells(draws, labels, (0.4, 0.7))
    return Planted(
        name, {**columns, label: shown}, np.array(order).T, reasons, np.array(labels), label, driver
    )


def customers(seed: int) -> Planted:
    """Households (cliques in a city), clubs (an interest), colleagues (teams in no column)."""
    draws = np.random.default_rng([seed, 1])
    nodes = int(draws.integers(600, 2600))
    city, cities = _values(draws, nodes, 4, 12)
    interest, interests = _values(draws, nodes, 8, 20)
    household = _groups(draws, nodes, 1, 6, city)
    club = _groups(draws, nodes, 20, 60, interest)
    team = _groups(draws, nodes, 8, 30)
    edges = _Edges(nodes, draws, draws.uniform(0.3, 1.0))
    edges.cliques("household", household)
    edges.within("club", club, int(nodes * draws.uniform(1, 1.8)))
    edges.within("colleague", team, int(nodes * draws.uniform(1, 2)))
    driver, groups = [("colleague", team), ("club", club)][seed % 2]
    labels = _labels(draws, groups, int(draws.integers(3, 6)), draws.uniform(0.75, 0.95))
    age = draws.normal(45, 15, nodes).clip(18, 90).round().astype(int)
    income = (draws.lognormal(10, 0.4, nodes) * (0.6 + age / 100)).round(2)
    words = np.array([word.lower() for word in _names(draws, 150)])
    notes = [" ".join(draws.choice(words, draws.integers(3, 12))) for _ in range(nodes)]
    columns = {
        "city": _cells(draws, [cities[i] for i in city], (0, 0.2)),
        "interest": _cells(draws, [interests[i] for i in interest], (0.1, 0.4)),
        "age": _cells(draws, age, (0.05, 0.3)),
        "income": _cells(draws, income, (0.1, 0.4)),
        "joined": _cells(draws, _days(draws.integers(0, 2500, nodes)), None),
        "newsletter": _cells(draws, draws.choice(["yes", "no"], nodes), (0.1, 0.3)),
        "country": ["DE"] * nodes,
        "notes": _cells(draws, notes, (0.2, 0.4)),
    }
    names = _names(draws, 6)
    return _planted(
        "customers", draws, edges, columns, "segment", [names[i] for i in labels], driver
    )


def staff(seed: int) -> Planted:
    """A site, a hobby, peers of an age, and teams that no column shows and labels follow."""
    draws = np.random.default_rng([seed, 2])
    nodes = int(draws.integers(500, 2000))
    site, sites = _values(draws, nodes, 4, 9)
    hobby, hobbies = _values(draws, nodes, 8, 16)
    seniority = draws.gamma(2, 4, nodes)
    age = (24 + seniority + draws.gamma(2, 3, nodes)).round().astype(int)
    team = _groups(draws, nodes, 8, 25)
    edges = _Edges(nodes, draws, draws.uniform(0.2, 0.9))
    edges.within("site", site, int(nodes * draws.uniform(0.8, 1.5)))
    edges.within("hobby", hobby, int(nodes * draws.uniform(0.8, 1.5)))
    peers = int(nodes * draws.uniform(0.8, 1.4))
    edges.near("peers", seniority[:, None], peers, max(8, nodes // 50))
    edges.within("team", team, int(nodes * draws.uniform(1.2, 2)))
    labels = _labels(draws, team, int(draws.integers(4, 8)), draws.uniform(0.85, 1.0))
    columns = {
        "site": _cells(draws, [sites[i] for i in site], (0, 0.15)),
        "hobby": _cells(draws, [hobbies[i] for i in hobby], (0.1, 0.35)),
        "age": _cells(draws, age, (0, 0.15)),
        "seniority": _cells(draws, seniority.round(1), (0.1, 0.3)),
        "desk": _cells(draws, draws.integers(1, 400, nodes), (0.1, 0.4)),
        "remote": _cells(draws, draws.choice(["true", "false"], nodes, p=[0.3, 0.7]), None),
    }
    names = _names(draws, 8)
    return _planted(
        "staff", draws, edges, columns, "department", [names[i] for i in labels], "team"
    )


def accounts(seed: int) -> Planted:
    """Shared devices, campaigns (sign-up near), regions, chains of referral; few are fraud."""
    draws = np.random.default_rng([seed, 3])
    nodes = int(draws.integers(900, 3000))
    country, countries = _values(draws, nodes, 10, 30)
    region = np.where(draws.random(nodes) < 0.8, country, -1)
    device = _groups(draws, nodes, 1, 7)
    makes = draws.choice(["Pixel", "Galaxy", "iPhone", "Xperia"], device.max() + 1)
    codes = draws.permutation(90_000)[: device.max() + 1] + 10_000
    signed = np.sort(draws.integers(0, 900, nodes))[draws.permutation(nodes)]
    edges = _Edges(nodes, draws, draws.uniform(0.3, 1.1))
    edges.cliques("device", device)
    campaign = int(nodes * draws.uniform(0.7, 1.3))
    edges.near("campaign", signed[:, None].astype(float), campaign, max(6, nodes // 120))
    edges.within("region", region, int(nodes * draws.uniform(0.6, 1.2)))
    order = draws.permutation(nodes)
    parent = (np.arange(1, nodes) * draws.beta(3, 1, nodes - 1)).astype(int)
    kept = draws.random(nodes - 1) < draws.uniform(0.5, 0.9)
    edges.add("referral", order[1:][kept], order[parent][kept])
    bad = draws.random(device.max() + 1) < 0.12
    labels = np.where(draws.random(nodes) < 0.95, bad[device], draws.random(nodes) < 0.1)
    texts = [f"{makes[d]} {codes[d]}" for d in device]
    columns = {
        "device": _cells(draws, texts, (0.1, 0.25)),
        "country": _cells(draws, [countries[i] for i in country], (0, 0.2)),
        "signed_up": _cells(draws, _days(signed), (0, 0.15)),
        "balance": _cells(draws, draws.lognormal(3, 1.5, nodes).round(2), (0.1, 0.3)),
        "plan": ["basic"] * nodes,
        "logins": _cells(draws, draws.poisson(4, nodes), None),
    }
    names = [("ok", "fraud")[int(label)] for label in labels]
    return _planted("accounts", draws, edges, columns, "status", names, "device")


def products(seed: int) -> Planted:
    """Like in numbers, of a brand, with a rare tag, bought together (communities, no column)."""
    draws = np.random.default_rng([seed, 4])
    nodes = int(draws.integers(500, 2500))
    width = int(draws.integers(4, 9))
    vectors = draws.standard_normal((nodes, width)) * draws.uniform(0.5, 2, width)
    category, categories = _values(draws, nodes, 5, 12)
    brand, brands = _values(draws, nodes, 15, 45)
    basket = _groups(draws, nodes, 15, 60)
    tag_names = [name.lower() for name in _names(draws, 120)]
    share = 1 / (np.arange(120) + 3.0)
    tags = [
        draws.choice(120, draws.integers(1, 6), False, share / share.sum()) for _ in range(nodes)
    ]
    edges = _Edges(nodes, draws, draws.uniform(0.3, 1.0))
    edges.near("similar", vectors, int(nodes * draws.uniform(1, 1.6)), max(6, nodes // 100))
    edges.within("brand", brand, int(nodes * draws.uniform(0.7, 1.4)))
    edges.within("bought", basket, int(nodes * draws.uniform(1, 1.8)))
    rare = np.array([max(own) if draws.random() < 0.8 else -1 for own in tags])
    edges.within("tag", np.where(rare > 15, rare, -1), int(nodes * draws.uniform(0.5, 1.0)))
    labels = _labels(draws, basket, int(draws.integers(3, 7)), draws.uniform(0.8, 0.95))
    numbers = {
        f"v{i + 1}": _cells(draws, column.round(4), (0, 0.1)) for i, column in enumerate(vectors.T)
    }
    columns = {
        **numbers,
        "category": _cells(draws, [categories[i] for i in category], (0, 0.2)),
        "brand": _cells(draws, [brands[i] for i in brand], (0.05, 0.3)),
        "tags": _cells(draws, ["; ".join(tag_names[i] for i in own) for own in tags], (0, 0.2)),
        "price": _cells(draws, draws.lognormal(3, 1, nodes).round(2), (0.1, 0.4)),
    }
    names = _names(draws, 7)
    return _planted(
        "products", draws, edges, columns, "shelf", [names[i] for i in labels], "bought"
    )


def researchers(seed: int) -> Planted:
    """Papers written together (cliques, no column), topics (shared words), an institute, a year."""
    draws = np.random.default_rng([seed, 5])
    nodes = int(draws.integers(500, 2500))
    institute, institutes = _values(draws, nodes, 12, 40)
    topic = draws.integers(0, int(draws.integers(10, 25)), nodes)
    year = draws.integers(1985, 2025, nodes)
    edges = _Edges(nodes, draws, draws.uniform(0.3, 0.8))
    for _ in range(int(nodes * draws.uniform(0.25, 0.4))):
        chance = edges.activity / edges.activity.sum()
        authors = draws.choice(nodes, int(draws.integers(3, 6)), False, chance)
        edges.add("paper", *authors[np.stack(np.triu_indices(len(authors), 1))])
    edges.within("topic", topic, int(nodes * draws.uniform(1, 1.8)))
    edges.within("institute", institute, int(nodes * draws.uniform(0.8, 1.6)))
    cohort = int(nodes * draws.uniform(0.5, 1.0))
    edges.near("cohort", year[:, None].astype(float), cohort, max(8, nodes // 40))
    labels = _labels(draws, topic, int(draws.integers(3, 7)), draws.uniform(0.75, 0.95))
    common = [name.lower() for name in _names(draws, 60)]
    of_topic = [[name.lower() for name in _names(draws, 12)] for _ in range(topic.max() + 1)]

    def words(node: int) -> str:
        used = [*draws.choice(common, 8), *draws.choice(of_topic[topic[node]], 4)]
        return " ".join(draws.permutation(used))

    columns = {
        "institute": _cells(draws, [institutes[i] for i in institute], (0.05, 0.3)),
        "summary": _cells(draws, [words(node) for node in range(nodes)], (0.1, 0.3)),
        "first_paper": _cells(draws, year, (0, 0.2)),
        "papers": _cells(draws, draws.poisson(9, nodes), (0, 0.3)),
        "h_index": _cells(draws, draws.poisson(6, nodes), (0, 0.3)),
    }
    names = _names(draws, 7)
    return _planted(
        "researchers", draws, edges, columns, "field", [names[i] for i in labels], "topic"
    )


GENERATORS: dict[str, Callable[[int], Planted]] = {
    one.__name__: one for one in (customers, staff, accounts, products, researchers)
}


def information(found: Array, true: Array) -> float:
    """AMI of reasons found and true ones, edges of noise left out."""
    from sklearn.metrics import adjusted_mutual_info_score

    return float(adjusted_mutual_info_score(true[true != NOISE], found[true != NOISE]))


def agreement_table(names: Sequence[str], seeds: range) -> None:
    """How well reasons are found, beside the same with the nodes' rows shuffled."""
    from lgdgcn.reasons.agreement import fit_agreement

    print("| graph | AMI of each seed | mean | reasons found | true | rows shuffled | seconds |")
    print("|" + " --- |" * 7)
    for name in names:
        rows = []
        for seed in seeds:
            drawn = GENERATORS[name](seed)
            data, started = drawn.data(), time.process_time()
            found = fit_agreement(data)
            seconds = time.process_time() - started
            shuffled = fit_agreement(_with_shuffled_rows(data, seed))
            scores = [
                information(one.probability.argmax(1), drawn.reasons) for one in (found, shuffled)
            ]
            counts = len(found.names) - 1, len(set(drawn.reasons) - {NOISE})
            rows.append([*scores, *counts, seconds])
            print(name, seed, *rows[-1], found.names, file=sys.stderr, flush=True)
        scores, control, count, true, seconds = zip(*rows, strict=True)
        cells = [
            name, " ".join(f"{one:.2f}" for one in scores), f"{np.mean(scores):.2f}",
            " ".join(map(str, count)), str(true[0]), f"{np.mean(control):.2f}",
            f"{np.mean(seconds):.0f}",
        ]  # fmt: skip
        print("| " + " | ".join(cells) + " |", flush=True)


def types_table(names: Sequence[str], seeds: int, shares: Sequence[float]) -> None:
    """How well the types of all edges are learned from those of a few."""
    from lgdgcn.reasons.edges import Edges
    from lgdgcn.reasons.of_graph import describe_graph
    from lgdgcn.reasons.scores import edge_type_scores
    from lgdgcn.reasons.typed import fit_types

    head = ["graph", "share", "accuracy of each seed", "mean", "balanced", "calibration error"]
    head += ["unknown", "of these right", "seconds"]
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
    for name in names:
        rows: dict[float, list[Any]] = {share: [] for share in shares}
        for seed in range(seeds):
            drawn = GENERATORS[name](seed)
            data, started = drawn.data(), time.process_time()
            types = np.stack([drawn.reasons == kind for kind in drawn.kinds], 1).astype(float)
            assert np.array_equal(Edges.of_graph(data).ends, drawn.ends)
            structure = describe_graph(data, len(drawn.kinds))
            once = time.process_time() - started
            for share in shares:
                shown, started = drawn.typed(share, seed), time.process_time()
                found = fit_types(structure, np.where(shown[:, None], types, 0), seed)
                seconds = once + time.process_time() - started
                scores = edge_type_scores(found.probability, types, named=True, scored=~shown)
                scored = ~shown & types.any(1)
                right = (found.probability.argmax(1) == types.argmax(1))[scored]
                unknown = found.unknown[scored]
                flagged = unknown.mean(), (unknown & right).sum(), unknown.sum(), seconds
                error = scores.calibration_error
                rows[share].append([scores.accuracy, scores.balanced, error, *flagged])
                print(name, seed, share, *rows[share][-1], file=sys.stderr, flush=True)
        for share in shares:
            accuracy, balanced, error, unknown, right, flagged, seconds = zip(
                *rows[share], strict=True
            )
            cells = [
                name, f"{share}", " ".join(f"{one:.2f}" for one in accuracy),
                f"{np.mean(accuracy):.3f}", f"{np.mean(balanced):.3f}", f"{np.mean(error):.3f}",
                f"{np.mean(unknown):.3f}", f"{sum(right) / max(sum(flagged), 1):.2f}",
                f"{np.mean(seconds):.0f}",
            ]  # fmt: skip
            print("| " + " | ".join(cells) + " |", flush=True)


def _with_shuffled_rows(data: Data, seed: int) -> Data:
    """The same graph with the rows of the nodes table in another order: columns say nothing."""
    order = np.random.default_rng(seed).permutation(data.x.size(0))
    shuffled = data.clone()
    shuffled.x = data.x[order]
    for key in ("node_text", "node_codes"):
        if key in data:
            columns = {n: [column[i] for i in order] for n, column in data[key].items()}
            shuffled[key] = columns
    return shuffled


def main() -> None:
    """Write a graph, or score what is found in many."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write", help="write a graph as a folder")
    write.add_argument("graph", choices=GENERATORS)
    write.add_argument("seed", type=int)
    write.add_argument("folder", type=Path)
    write.add_argument("--typed", type=float, default=0.0, help="share of edges with a type")
    agreement = commands.add_parser("agreement", help="score reasons found without types")
    agreement.add_argument("graphs", nargs="*", default=list(GENERATORS))
    agreement.add_argument("--seeds", type=int, default=5)
    agreement.add_argument("--first-seed", type=int, default=0)
    predictions = commands.add_parser("predictions", help="score predictions along reasons")
    predictions.add_argument("graphs", nargs="*", default=list(GENERATORS))
    predictions.add_argument("--seeds", type=int, default=5)
    predictions.add_argument("--jobs", type=int, default=2)
    types = commands.add_parser("types", help="score types learned from a few")
    types.add_argument("graphs", nargs="*", default=list(GENERATORS))
    types.add_argument("--seeds", type=int, default=5)
    types.add_argument("--share", type=float, nargs="+", default=[0.1, 0.25])
    given = parser.parse_args()
    if given.command == "types":
        return types_table(given.graphs, given.seeds, given.share)
    if given.command == "agreement":
        seeds = range(given.first_seed, given.first_seed + given.seeds)
        return agreement_table(given.graphs, seeds)
    if given.command == "predictions":
        from planted_predictions import prediction_table

        return prediction_table(given.graphs, given.seeds, given.jobs)
    drawn = GENERATORS[given.graph](given.seed)
    drawn.write(given.folder, given.typed, given.seed)


if __name__ == "__main__":
    main()
