"""Which settings ``lgdgcn train`` tries on an unknown graph, learnt on graphs that we have.

``train`` trains every setting of a pool on every development graph and writes what validation said
after each round of the search, and what the test nodes say in the end. ``choose`` puts together the
portfolio: the settings that, tried with successive halving on validation, lose least against the
best of the pool, added one by one. Each graph is also left out once, and the portfolio chosen
without it is judged on it. ``$LGDGCN_DATA`` says where the graphs are.

    python benchmarks/portfolio.py train runs/portfolio --device cuda --workers 14
    python benchmarks/portfolio.py choose runs/portfolio
"""

import argparse
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch_geometric.data import Data
from trainings import Row, in_workers, scored, source_of

import lgdgcn
from lgdgcn.config import auto_scaling, preset, resolve
from lgdgcn.storage import write_text
from lgdgcn.training import Training

LARGE = ("tolokers", "flickr", "pubmed", "dblp_full", "blogcatalog", "amazon_photo", "actor")
SMALL = ("citeseer", "cora", "chameleon_filtered", "wisconsin")
SETS = ("ppi_multilabel", "synthetic")
GRAPHS = (*LARGE, *SMALL, *SETS)
MODELS = ("lgdgcn", "mlp", "gcn", "appnp", "grand")
LARGEST = {"lgdgcn": 12}  # members of a portfolio; baselines have 4

RESULT = Path(__file__).with_suffix(".json")  # all portfolios, for benchmarks/suite.py
USED = Path(lgdgcn.__file__).with_name("portfolio.toml")
BY_HAND = "# Settings after the papers of these models, which were not learnt:\n"

MOST = 6.0  # points lost that count, so that one graph alone decides nothing
JUDGED = (50, 150, 300)  # epochs after which validation scores are written down
KEPT = (8, 4, 1)  # members that go on then; lgdgcn.search.choose.RUNGS are quicker

Entry = dict[str, Any]
PLAIN: Entry = {"views": 1, "drop_nodes": 0.0, "lambda_consistency": 0.0}
CONSISTENT: Entry = {"views": 2, "drop_nodes": 0.5, "lambda_consistency": 1.0,
                     "consistency_warmup": 50}  # fmt: skip
# how strongly weights are held back; models of one architecture are trained in one pass
HELD: tuple[Entry, ...] = (
    {"weight_decay": 5e-4, "dropout": 0.5},
    {"weight_decay": 5e-5, "dropout": 0.2},
    {"weight_decay": 5e-3, "dropout": 0.5},
    {"weight_decay": 5e-4, "dropout": 0.8, "lr": 0.003},
)


def architectures(model: str, multi_label: bool) -> list[Entry]:
    """What is tried of a model, as changes of its default; each with every entry of ``held``."""
    if model == "lgdgcn":
        return [*(_ours_of_sets() if multi_label else _ours())]
    if model == "mlp":
        return [{"hidden_channels": width, "num_layers": layers}
                for width, layers in ((64, 2), (256, 2), (64, 1), (256, 3))]  # fmt: skip
    if model == "gcn":
        sizes = product((64, 256), (1, 2, 3))
        return [{"hidden_channels": width, "num_layers": layers} for width, layers in sizes]
    if model == "appnp":
        sizes = product((64, 256), (0.1, 0.3, 0.6))
        return [{"hidden_channels": width, "alpha": alpha} for width, alpha in sizes]
    kinds = product(((2, CONSISTENT), (4, CONSISTENT), (8, CONSISTENT), (2, PLAIN)), (False, True))
    return [{"hidden_channels": 64, "hops": hops, **kind, "batch_norm": norm}
            for (hops, kind), norm in kinds]  # fmt: skip


def _ours() -> Iterator[Entry]:
    for norm in (False, True):
        shared: Entry = {"batch_norm": norm}
        for width in (64, 256):
            yield {**shared, **PLAIN, "hops": 0, "encoder_channels": width}
        for hops in (1, 2, 4, 8):
            yield {**shared, **PLAIN, "hops": hops}
        for hops in (1, 2, 4):
            yield {**shared, **PLAIN, "hops": hops, "hop_weights": "separate"}
        yield {**shared, **PLAIN, "hops": 2, "hop_weights": "separate", "encoder_channels": 256}
        for hops in (2, 4, 8):
            yield {**shared, **CONSISTENT, "hops": hops}
    yield {**CONSISTENT, "hops": 0, "drop_nodes": 0.0}
    yield {**CONSISTENT, "hops": 2, "hop_weights": "separate"}
    yield {**CONSISTENT, "hops": 4, "encoder_channels": 256}
    for structure in ("local", "global", "both"):
        yield {**CONSISTENT, "hops": 4, "structure": structure}
    yield {**PLAIN, "hops": 2, "structure": "both"}
    for edge in (0.1, 0.01):
        yield {**PLAIN, "hops": 1, "encoder_layers": 2, "lambda_edge": edge}
    yield {**PLAIN, "hops": 2, "encoder_layers": 2, "hop_weights": "separate"}
    yield {**PLAIN, "hops": 1, "encoder_layers": 3, "hop_weights": "separate", "batch_norm": True}
    yield {**CONSISTENT, "hops": 2, "encoder_layers": 2}
    for hops, norm in ((8, False), (8, True), (16, True)):
        yield {**CONSISTENT, "hops": hops, "hop_weights": "mean", "batch_norm": norm}


def _ours_of_sets() -> Iterator[Entry]:
    yield {}
    yield {"num_layers": 2}
    # edges need not have to do with labels: they weigh as little as for nodes of one label
    shared: Entry = {"iterations": 0, "lambda_edge": 0.1}
    for hops, kind, width in product((0, 2, 4), (PLAIN, CONSISTENT), (64, 256)):
        yield {"hops": hops, **kind, "encoder_channels": width, **shared}
    shared = {**shared, "encoder_channels": 256}
    yield {**shared, **PLAIN, "hops": 2, "hop_weights": "separate"}
    yield {**shared, **PLAIN, "hops": 1, "encoder_layers": 2}
    yield {**shared, **CONSISTENT, "hops": 8, "hop_weights": "mean"}
    for kind in (PLAIN, CONSISTENT):
        yield {**shared, **kind, "hops": 4, "factors": 16, "hidden_channels": 256}


def held(model: str, architecture: Entry) -> list[Entry]:
    """How strongly weights are held back; features are dropped as hidden channels are."""
    has_input = model in ("grand", "lgdgcn") and "hops" in architecture
    return [{**one, "input_dropout": min(one["dropout"], 0.5)} if has_input else one
            for one in HELD]  # fmt: skip


@lru_cache(maxsize=1)
def _graphs(name: str) -> list[Data]:
    return [source_of(name).load(split) for split in range(2 if name in LARGE else 3)]


def train(task: tuple[str, str, int], folder: Path, device: str, end: float) -> str:
    """Train one architecture on one graph; write its rows unless they are there."""
    name, model, number = task
    file = folder / f"{name}-{model}-{number}.json"
    if file.exists() or time.time() > end:
        return ""
    data = _graphs(name)
    multi_label = data[0].y.dim() == 2
    architecture = architectures(model, multi_label)[number]
    base = preset("", model, multi_label=multi_label)
    limits = {"epochs": JUDGED[-1], "patience": 10_000}
    places = {}
    for variant, entry in enumerate(held(model, architecture)):
        settings = resolve(base, auto_scaling(""), architecture, entry, limits)
        for split, graph in enumerate(data):
            training = Training(model, settings, split, graph)
            places[training] = {"entry": [number, variant], "split": split}
    trained = {result.training: row
               for result, row in scored(list(places), torch.device(device), JUDGED)}  # fmt: skip
    found = [{**place, **trained[training]} for training, place in places.items()]
    write_text(file, json.dumps(found))
    return file.stem


def halving(rows: dict[Any, Row], members: Sequence[Any], split: int) -> float:
    """Test score of the member that the search would choose."""
    going = [row for member in members if (row := rows[member, split])["val"] is not None]
    for place, keep in enumerate(KEPT):
        going = sorted(going, key=lambda row: -row["rounds"][place])[:keep]
    return float(going[0]["test"]) if going else 0.0


class Table:
    """The rows of a graph, by entry and split."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = {((*row["entry"],), row["split"]): row for row in rows}
        self.splits = sorted({split for _, split in self.rows})
        self.entries = sorted({entry for entry, _ in self.rows})
        self.best = max(fmean(self.rows[entry, split]["test"] or 0.0 for split in self.splits)
                        for entry in self.entries)  # fmt: skip

    def regret(self, members: Iterable[Any]) -> float:
        """Points lost against the entry of the pool that is best here on test."""
        members = [*members]
        found = fmean(halving(self.rows, members, split) for split in self.splits)
        return 100 * (self.best - found)


def kind_of(model: str, entry: Entry) -> str:
    """What a setting is good for. A portfolio has one of each kind, whatever graphs we have."""
    if model != "lgdgcn":
        keys = ("hidden_channels", "num_layers", "alpha", "hops", "views")
        return str([entry[key] for key in keys if key in entry])
    if "hops" not in entry:
        return f"{entry.get('num_layers', 1)} layers without encoder"
    text = "consistent" if entry["views"] > 1 else "plain"
    if "structure" in entry:
        return text + ", structure"
    if "encoder_layers" in entry:
        return text + ", deep"
    if entry.get("hop_weights") == "separate" and text == "plain":
        return text + ", hops apart"
    if text == "plain" and entry["hops"] and (entry.get("batch_norm") or entry["hops"] > 2):
        return text + ", far or normalised"
    return text + {0: ", no hops", 1: ", near", 2: ", near", 4: ", 4 hops"}.get(
        entry["hops"], ", far"
    )


def choose(tables: Sequence[Table], kinds: dict[str, list[Any]]) -> list[Any]:
    """Take the entry of every kind with which the whole portfolio loses least; best first."""
    known = set.intersection(*(set(table.entries) for table in tables))
    pools = {kind: [entry for entry in entries if entry in known]
             for kind, entries in kinds.items()}  # fmt: skip
    pools = {kind: entries for kind, entries in pools.items() if entries}

    def lost(members: Iterable[Any]) -> float:
        members = [*members]
        each = (min(MOST, max(0.0, table.regret(members))) for table in tables)
        return round(fmean(each), 3)

    # 1. the best of every kind by itself; 2. exchanged one by one while that helps
    chosen = {kind: min(entries, key=lambda entry: lost([entry]))
              for kind, entries in pools.items()}  # fmt: skip
    for _ in range(2):
        for kind, entries in pools.items():
            others = [entry for other, entry in chosen.items() if other != kind]
            chosen[kind] = min(
                entries, key=lambda e: (lost([*others, e]), e != chosen[kind])
            )  # fmt: skip
    # 3. in the order in which they help
    order: list[Any] = []
    rest = [*chosen.values()]
    while rest:
        order.append(min(rest, key=lambda entry: lost([*order, entry])))
        rest.remove(order[-1])
    return order


def portfolios(folder: Path, model: str, names: Sequence[str]) -> dict[str, list[Entry]]:
    """The portfolio of a model, chosen on all graphs and without each of them; prints its loss."""
    tables = {}
    for graph in names:
        files = sorted(folder.glob(f"{graph}-{model}-*.json"))
        rows = [row for file in files for row in json.loads(file.read_text())]
        if rows:
            tables[graph] = Table(rows)
    if not tables:
        return {}
    kinds: dict[str, list[Any]] = {}
    entries = architectures(model, names is SETS)
    for number, entry in enumerate(entries):
        found = [(number, variant) for variant in range(len(HELD))]
        kinds.setdefault(kind_of(model, entry), []).extend(found)
    most = LARGEST.get(model, 4)
    members = {"all": choose([*tables.values()], kinds)[:most]}
    print(f"\n{model}\n\n| graph | best of the pool | points lost | chosen without it |")
    print("| --- | --- | --- | --- |")
    for graph, table in tables.items():
        others = [other for name, other in tables.items() if name != graph] or [table]
        members[graph] = choose(others, kinds)[:most]
        lost = [f"{table.regret(members[name]):.1f}" for name in ("all", graph)]
        print(f"| {graph} | {100 * table.best:.1f} | {' | '.join(lost)} |")
    return {name: [{"kind": kind_of(model, entries[number]), **entries[number],
                    **held(model, entries[number])[variant]} for number, variant in chosen]
            for name, chosen in members.items()}  # fmt: skip


def with_means(ours: Sequence[Entry], grand: Sequence[Entry]) -> list[Entry]:
    """Our portfolio with the consistent entries of GRAND's, as far as it lacks them.

    Both propagate alike, so what suits one suits the other; ours only reads classes of factors
    from it. GRAND takes the mean of all hops, which our own entries mostly learn.
    """
    first = next(entry for entry in ours if "hops" in entry)
    always = {key: first[key] for key in ("iterations", "lambda_edge") if key in first}
    found = [*ours]
    for entry in grand:
        if entry["views"] == 1:
            continue
        own = {key: value for key, value in entry.items() if key not in ("kind", "hidden_channels")}
        kind = f"consistent, mean of {entry['hops']} hops" + ", normalised" * entry["batch_norm"]
        own |= {"encoder_channels": entry["hidden_channels"], "hop_weights": "mean", **always}
        if not any(_is_same(own, other) for other in ours):
            found.append({"kind": kind, **own})
    return found


def _is_same(entry: Entry, other: Entry) -> bool:
    """Whether two entries differ in nothing but what the default says anyway."""
    default = {"encoder_channels": 64, "batch_norm": False}
    one, two = ({**default, **e, "kind": ""} for e in (entry, other))
    return one == two


def section(model: str, multi_label: bool) -> str:
    """Name of the tables of a model in ``portfolio.toml``."""
    name = f"{model}-ours" if model == "lgdgcn" else model
    return name + ("-multilabel" if multi_label else "")


def as_toml(found: dict[str, dict[str, list[Entry]]]) -> str:
    """The portfolios that were chosen on all graphs, as ``lgdgcn`` reads them."""
    lines = ["# What `lgdgcn train GRAPH` tries on validation where a graph has no preset, best",
             "# first; made by benchmarks/portfolio.py. What is not named is as in defaults.toml.",
             ""]  # fmt: skip
    for name, chosen in found.items():
        for entry in chosen["all"]:
            lines += [f"[[{name}]]  # {entry['kind']}"]
            lines += [f"{k} = {json.dumps(v)}" for k, v in entry.items() if k != "kind"] + [""]
    _, _, by_hand = USED.read_text().partition(BY_HAND)
    return "\n".join(lines) + "\n" + BY_HAND + by_hand


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("train", "choose"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--models", default=",".join(MODELS))
    options = parser.parse_args()
    models = options.models.split(",")
    if options.what == "choose":
        found = {}
        for model, names in product(models, ((*LARGE, *SMALL), SETS)):
            found[section(model, names is SETS)] = portfolios(options.folder, model, names)
        for of_sets in (False, True):
            ours, grand = section("lgdgcn", of_sets), found.get(section("grand", of_sets))
            if ours in found and grand is not None:
                found[ours] = {name: with_means(entries, grand[name])
                               for name, entries in found[ours].items()}  # fmt: skip
        write_text(RESULT, json.dumps(found, indent=1) + "\n")
        write_text(USED, as_toml(found))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    tasks = [(graph, model, number) for model in models for graph in options.graphs.split(",")
             for number in range(len(architectures(model, graph in SETS)))]  # fmt: skip
    end = time.time() + 60 * options.minutes
    run = partial(train, folder=options.folder, device=options.device, end=end)
    in_workers(run, tasks, options.workers)


if __name__ == "__main__":
    main()
