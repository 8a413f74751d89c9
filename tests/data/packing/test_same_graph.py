"""A packed graph is the graph that reading its folder gives, in every bit."""

import csv
import gzip
import random

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from golden.reader import names_of
from golden.reader import write as write_case
from lgdgcn.data.packed import PackedGraph
from lgdgcn.data.packing import pack
from lgdgcn.data.user_graph import read_graph
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import InputError, LGDWarning

from .same import attempt, check_same, differences

KINDS = (  # of the recorded tables
    "decimal-comma",
    "half-precision",
    "ids-weights",
    "lists-of-edges",
    "packed-in-other-ways",
    "parquet-columns-that-edges-name",
    "parquet-values",
    "sets-of-labels",
    "tables-with-something",
)
CASES = [*names_of("ugly"), *(name for name in names_of("tables") if name[7:].startswith(KINDS))]


@pytest.mark.parametrize("case", CASES)
def test_a_recorded_folder(tmp_path, case):
    place = tmp_path / "g"
    place.mkdir()
    options = {"require_labels": False} | write_case(case, place)
    del options["require_labels"]
    check_same(place, tmp_path / "g.lgd", **options)


def folder(place, **files):
    place.mkdir(exist_ok=True)
    for name, text in files.items():
        (place / f"{name}.csv").write_bytes(text.encode())
    return place


HOSTILE = st.text(
    st.sampled_from("ab01e.+-_ \t\n\r,;|\"'#\\\0é\xa0\u2028日🙂=@%*?[]{}NULLnan"),
    min_size=1,
    max_size=6,
)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    ids=st.lists(HOSTILE, min_size=1, max_size=8, unique=True),
    labels=st.lists(HOSTILE | st.just(""), min_size=1, max_size=8),
    seed=st.integers(0, 99),
    line=st.sampled_from(["\n", "\r\n"]),
)
def test_hostile_ids_and_labels_come_back(tmp_path_factory, ids, labels, seed, line):
    place, rng = tmp_path_factory.mktemp("hostile"), random.Random(seed)
    (place / "g").mkdir()

    def write(name, rows):
        with open(place / "g" / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator=line)
            writer.writerows(rows)

    write("nodes", [("id", "label", "f"), *((i, rng.choice(labels), rng.random()) for i in ids)])
    pairs = [(rng.choice(ids), rng.choice(ids)) for _ in range(10)]
    write("edges", [("source", "target"), *pairs])
    graph, _ = check_same(place / "g", place / "g.lgd")
    if not isinstance(graph, InputError):
        packed = PackedGraph.open(place / "g.lgd")
        assert packed.ids() == ids
        assert packed.find(ids).tolist() == list(range(len(ids)))


def table(rng, rows, blanks=0.1):
    """A table with columns of every role."""
    words = ["graph", "node", "edge", "factor", "latent", "space"]
    columns = {
        "id": [f"n{i}" for i in rng.sample(range(10 * rows), rows)],
        "label": [rng.choice(["u", "v", "w", ""]) for _ in range(rows)],
        "split": [rng.choice(["train", "val", "test", ""]) for _ in range(rows)],
        "number": [repr(rng.gauss(0, 100)) for _ in range(rows)],
        "slips": [rng.choice(["unknown", "12", repr(rng.random())]) for _ in range(rows)],
        "few": [rng.choice("abc") for _ in range(rows)],
        "many": [f"v{int(rng.expovariate(0.05))}" for _ in range(rows)],
        "date": [f"{rng.randint(1, 28)}.{rng.randint(1, 12)}.2020" for _ in range(rows)],
        "flag": [rng.choice(["yes", "no"]) for _ in range(rows)],
        "text": [" ".join(rng.choices(words, k=6)) for _ in range(rows)],
        "nothing": [""] * rows,
    }
    for name, cells in columns.items():
        if name not in ("id", "label", "split"):
            columns[name] = ["" if rng.random() < blanks else cell for cell in cells]
    return columns


@pytest.mark.parametrize("blanks", [0, 0.1])
@pytest.mark.parametrize("words", [False, True])
def test_columns_of_every_role(tmp_path, blanks, words, monkeypatch):
    monkeypatch.setattr("lgdgcn.data.packing.numbers.GROUP", 1)  # several files, several blocks
    monkeypatch.setattr("lgdgcn.data.packing.numbers.BATCH", 300)
    monkeypatch.setattr("lgdgcn.data.packing.nodes.BATCH", 4000)
    rng = random.Random(f"{blanks} {words}")
    columns, rows = table(rng, 400, blanks), []
    ids = columns["id"]
    rows = [f"{rng.choice(ids)},{rng.choice(ids)},{rng.random()}" for _ in range(2000)]
    nodes = "\n".join(
        ",".join(row) for row in [columns.keys(), *zip(*columns.values(), strict=True)]
    )
    place = folder(tmp_path / "g", nodes=nodes, edges="\n".join(["source,target,weight", *rows]))
    graph, _ = check_same(place, tmp_path / "g.lgd", {"text": "words"} if words else {})
    assert PackedGraph.open(tmp_path / "g.lgd").x_csr is None or words
    roles = {column.name: column.role for column in graph.encoding.columns}
    assert {"number", "category", "date", "boolean"} <= set(roles.values())


def write(path, columns):
    if path.suffix == ".parquet":
        kinds = {
            "number": lambda c: float(c) if c else None,
            "flag": {"yes": True, "no": False}.get,
        }
        made = {n: [kinds.get(n, str)(c) for c in cells] for n, cells in columns.items()}
        pyarrow.parquet.write_table(pyarrow.table(made), path)
        return
    divider = "\t" if ".tsv" in path.suffixes else ","
    rows = [columns.keys(), *zip(*columns.values(), strict=True)]
    text = "\n".join(divider.join(row) for row in rows).encode()
    if path.suffix == ".zst":
        with pyarrow.CompressedOutputStream(path, "zstd") as file:
            file.write(text)
    else:
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def test_several_files_are_one_table(tmp_path):
    rng = random.Random(2)
    columns = table(rng, 60)
    ends = {name: rng.choices(columns["id"], k=300) for name in "st"}
    one, several = tmp_path / "g", tmp_path / "h"
    for place in (one, several, several / "edges"):
        place.mkdir()
    write(one / "nodes.csv", columns)
    write(one / "edges.csv", ends)
    for i in range(3):
        part = {n: cells[20 * i : 20 * i + 20] for n, cells in columns.items()}
        write(several / f"nodes-{i + 9}.csv", part)  # 9, 10, 11: not in the order of letters
        some = {n: cells[100 * i : 100 * i + 100] for n, cells in ends.items()}
        write(several / "edges" / f"part-{i}{['.parquet', '.csv.gz', '.csv.zst'][i]}", some)
    graphs = [pack(p, p.with_suffix(".lgd"), memory="8GB").to_data() for p in (one, several)]
    assert differences(*graphs) == ["name"]
    write(several / "nodes-12.csv", {"id": ["q"]})
    with pytest.raises(InputError, match=r"nodes-12\.csv has other columns"):
        pack(several, tmp_path / "i.lgd", memory="8GB")
    write(several / "nodes.csv", columns)
    with pytest.warns(LGDWarning, match=r"nodes-10\.csv is not read"):
        pack(several, tmp_path / "j.lgd", memory="8GB")
    (several / "edges.csv").write_text("a,b\n")
    with pytest.raises(InputError, match=r"edges.csv and a folder edges/"):
        pack(several, tmp_path / "i.lgd", memory="8GB")


def test_arrays_are_packed_too(tmp_path):
    place, rng = tmp_path / "g", np.random.default_rng(0)
    place.mkdir()
    np.savez(place / "edges.npz", edge_index=rng.integers(0, 50, (2, 200)))
    np.savez(place / "nodes.npz", x=rng.random((50, 4)), y=rng.integers(0, 3, 50))
    check_same(place, tmp_path / "g.lgd")


def test_columns_are_read_as_another_graph_was(tmp_path):
    first, second = table(random.Random(3), 200), table(random.Random(4), 50, blanks=0.3)
    second["few"][:5] = ["new"] * 5
    second["date"][:3] = ["oops"] * 3
    second["many"] = [""] * 50
    for name, columns in (("one", first), ("two", second)):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "nodes.csv", columns)
        (tmp_path / name / "edges.csv").write_text(f"{columns['id'][0]},{columns['id'][1]}\n")
    encoding = read_graph(tmp_path / "one", require_labels=False).encoding
    expected, _ = check_same(tmp_path / "two", tmp_path / "like.lgd", encoding=encoding)
    # one that was packed for itself is encoded again, from its own text
    packed = pack(tmp_path / "two", tmp_path / "two.lgd", memory="8GB")
    assert packed.encoding != encoding
    again, said = attempt(lambda: packed.to_data(require_labels=False, encoding=encoding))
    assert differences(expected, again) == []
    for words in (
        "training has not seen count as none: 'few' (5 cells)",
        f"'slips' ({second['slips'].count('unknown')} no number, such as 'unknown')",
        "'date' (3 no date, such as 'oops')",
        "all blank here: 'many'",
    ):
        assert any(words in line for line in said), said
    ignoring = pack(tmp_path / "two", tmp_path / "ignoring.lgd", {"flag": "ignore"}, memory="8GB")
    with pytest.raises(InputError, match=r"'flag' was packed as one to ignore.*--like RUN"):
        ignoring.to_data(require_labels=False, encoding=encoding)
    roles = {"number": "category"}
    other = read_graph(tmp_path / "one", require_labels=False, roles=roles).encoding
    with pytest.raises(InputError, match=r"packed as numbers.*--like RUN"):
        packed.to_data(require_labels=False, encoding=other)


def test_a_decimal_comma_of_another_graph_comes_too_late_for_a_packed_one(tmp_path):
    edges = "source,target\na,b\n"
    one = folder(tmp_path / "one", nodes='id,price\na,"1.234,5"\nb,"2,5 €"\n', edges=edges)
    encoding = read_graph(one, require_labels=False).encoding
    two = folder(tmp_path / "two", nodes="id,price\na,1.234\nb,7\n", edges=edges)
    packed = pack(two, tmp_path / "own.lgd", memory="8GB")
    with pytest.raises(InputError, match=r"packed as numbers.*decimal comma.*--like RUN"):
        packed.to_data(require_labels=False, encoding=encoding)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_numbers_of_a_table_with_types_have_no_decimal_comma(tmp_path, suffix):
    edges = "source,target\na,b\n"
    one = folder(tmp_path / "one", nodes='id,price\na,"4833,87 €"\nb,"12,5 €"\n', edges=edges)
    encoding = read_graph(one, require_labels=False).encoding
    two = folder(tmp_path / "two", edges=edges)
    nodes = pyarrow.table({"id": ["a", "b", "c"], "price": [1.125, 1234.567, None]})
    pyarrow.parquet.write_table(nodes, two / "nodes-1.parquet")
    if suffix == ".csv":
        (two / "nodes-2.csv").write_text('id,price\nd,"0,5"\n')
        with pytest.raises(InputError, match=r"'price' holds numbers in one file.*save it alike"):
            pack(two, tmp_path / "three.lgd", encoding=encoding, memory="8GB")
    else:
        nodes = pyarrow.table({"id": ["d"], "price": [0.125]})
        pyarrow.parquet.write_table(nodes, two / "nodes-2.parquet")
        packed = pack(two, tmp_path / "three.lgd", encoding=encoding, memory="8GB")
        assert packed.features([0, 3])[:, 0].tolist() == [1.125, 0.125]


def test_files_with_commas_and_with_semicolons_are_one_table(tmp_path):
    place = tmp_path / "g"
    place.mkdir()
    (place / "nodes-1.csv").write_text('id,sum,plain\na,"1.234,5",1.5\nb,7,2\n')
    (place / "nodes-2.csv").write_text("id;sum;plain\nc;2,5;0,5\nd;1.000;3\n")
    (place / "edges.csv").write_text("source,target\na,b\n")
    graph = pack(place, tmp_path / "g.lgd", memory="8GB").to_data(require_labels=False)
    assert graph.x.tolist() == [[1234.5, 1.5], [7, 2], [2.5, 0.5], [1000, 3]]


def test_half_precision(tmp_path):
    place = folder(tmp_path / "g", nodes="id,f\nu,1\nv,0.1\n", edges="source,target\nu,v\n")
    graph = pack(place, tmp_path / "h.lgd", memory="8GB", half=True)
    assert graph.x.dtype == np.float16
    assert graph.features([1]).dtype == np.float32
    assert graph.to_data(require_labels=False).x.tolist() == [[1.0], [float(np.float16(0.1))]]
    place = folder(tmp_path / "g", nodes="id,f\nu,1\nv,1e6\n", edges="source,target\nu,v\n")
    with pytest.raises(InputError, match="float16"):
        pack(place, tmp_path / "h.lgd", memory="8GB", half=True, overwrite=True)


def test_many_random_edges_across_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("lgdgcn.data.packing.adjacency.BATCH", 64)
    monkeypatch.setattr("lgdgcn.data.packed.pointers.PIECE", 7)
    rng = np.random.default_rng(5)
    ends = (300 * rng.random((3000, 2)) ** 3).astype(int)
    weights, types = rng.random(3000).tolist(), rng.choice(list("xyz"), 3000)
    rows = [f"{a},{b},{w!r},{t}" for (a, b), w, t in zip(ends, weights, types, strict=True)]
    nodes = "id,f\n" + "\n".join(f"{i},{i}" for i in range(310))
    edges = "\n".join(["source,target,weight,type", *rows])
    place = folder(tmp_path / "g", nodes=nodes, edges=edges)
    graph, found = check_same(place, tmp_path / "g.lgd")
    assert fingerprint(graph) == fingerprint(found)
