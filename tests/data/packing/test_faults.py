"""What may go wrong while a graph is packed: one clear line, and nothing that looks whole."""

import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import closing

import pytest

from lgdgcn.data.packed import PackedGraph, PackedWriter, writer
from lgdgcn.data.packing import engine, pack
from lgdgcn.data.packing import pack as packing_function
from lgdgcn.errors import InputError

PACK = """
import sys
from lgdgcn.data.packing import pack
pack(sys.argv[1], sys.argv[2], memory=sys.argv[3])
# the peak of this program; that of getrusage begins with the process it was started from
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(1024 * int(peak.split()[1]))
"""


FORKS = """
import os, sys
from lgdgcn.data.packing import pack
for line in sys.stdin:  # a process each time, without importing everything anew
    process = os.fork()
    if not process:
        pack(sys.argv[1], sys.argv[2], memory="8GB")
        os._exit(0)
    print(process, flush=True)
    print(os.waitpid(process, 0)[1], flush=True)
"""


def write_graph(place, nodes=200, edges=1000, width=2):
    place.mkdir(exist_ok=True)
    with open(place / "nodes.csv", "w") as file:
        file.write(",".join(["id", "label", *(f"f{i}" for i in range(width))]) + "\n")
        for i in range(nodes):
            cells = [
                f"node-{i:08d}",
                f"c{i % 3}",
                *(str((i * 7919 + j) % 997 / 10) for j in range(width)),
            ]
            file.write(",".join(cells) + "\n")
    with open(place / "edges.csv", "w") as file:
        file.write("source,target\n")
        for i in range(edges):
            file.write(f"node-{i * 7907 % nodes:08d},node-{i * 104729 % (nodes - 1):08d}\n")
    return place


def child(*arguments, **options):
    command = [sys.executable, "-W", "ignore", "-c", PACK, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def left(place):
    """What is in a folder beside the tables."""
    return sorted(p.name for p in place.iterdir() if p.name != "g")


def test_edges_that_name_unknown_nodes(tmp_path):
    place = write_graph(tmp_path / "g")
    with open(place / "edges.csv", "a") as file:
        file.write("node-00000001,ghost\nghost,node-00000002\nspirit,phantom\nshade,shade\n")
    said = r"edges\.csv: 4 edges name 4 nodes that are not in nodes\.csv \('ghost', 'phantom', "
    with pytest.raises(InputError, match=said):
        pack(place, tmp_path / "g.lgd", memory="8GB")
    assert left(tmp_path) == []


def test_blank_ends(tmp_path):
    place = write_graph(tmp_path / "g")
    with open(place / "edges.csv", "a") as file:
        file.write("node-00000001,\n \t,node-00000002\n")
    with pytest.raises(InputError, match="2 edges lack a source or a target"):
        pack(place, tmp_path / "g.lgd", memory="8GB")


def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch):
    place = write_graph(tmp_path / "g")
    module = sys.modules[packing_function.__module__]
    real = module.load_edges

    def load_and_append(*arguments):
        found = real(*arguments)
        with open(place / "edges.csv", "a") as file:
            file.write("node-00000001,node-00000002\n")
        return found

    monkeypatch.setattr(module, "load_edges", load_and_append)
    with pytest.raises(InputError, match=r"edges\.csv changed while it was read"):
        pack(place, tmp_path / "g.lgd", memory="8GB")
    assert left(tmp_path) == []


@pytest.mark.parametrize(("module", "name"), [("duckdb", "DuckDB"), ("pyarrow", "pyarrow")])
def test_duckdb_or_pyarrow_is_not_installed(module, name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"needs {name}; pip install 'lgdgcn\[scale\]'"):
        pack(write_graph(tmp_path / "g"), tmp_path / "g.lgd", memory="8GB")
    assert left(tmp_path) == []


@pytest.mark.parametrize("text", ["", "much", "-1GB", "1 XB", "GB"])
def test_memory_that_is_none(tmp_path, text):
    with pytest.raises(InputError, match="--memory is"):
        pack(write_graph(tmp_path / "g"), tmp_path / "g.lgd", memory=text)


def test_too_little_memory(tmp_path):
    with pytest.raises(InputError, match=r"--memory leaves 0 MB .* give at least \d+ MB"):
        pack(write_graph(tmp_path / "g"), tmp_path / "g.lgd", memory="50MB")
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "no edges file"),
        ({"edges.csv": "a,b\n", "edges.csv.gz": ""}, "keep one of them"),
        ({"edges.csv": "a,b\n", "nodes.npz": ""}, "give both as tables"),
        ({"edges.csv.gz": "no gzip"}, "cannot be read"),
        ({"edges.parquet": "no parquet"}, "cannot be read"),
    ],
)
def test_folders_that_are_no_graph(tmp_path, files, said):
    (tmp_path / "g").mkdir()
    for name, text in files.items():
        (tmp_path / "g" / name).write_text(text)
    with pytest.raises(InputError, match=said):
        pack(tmp_path / "g", tmp_path / "g.lgd", memory="8GB")
    with pytest.raises(InputError, match="is no folder"):
        pack(tmp_path / "nowhere", tmp_path / "g.lgd")
    assert left(tmp_path) == []


@pytest.mark.parametrize("limit", [10**5, 3 * 10**6])
def test_a_disk_that_fills(tmp_path, limit):
    """No file may grow above a limit: first the database is refused, then an array."""
    place = write_graph(tmp_path / "g", nodes=60_000, edges=10, width=20)

    def lower():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = child(place, tmp_path / "g.lgd", "2GB", preexec_fn=lower)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert "InputError: cannot write" in last, done.stderr
    assert "File too large" in last
    assert not (tmp_path / "g.lgd").exists()
    pack(place, tmp_path / "g.lgd", memory="8GB")
    assert left(tmp_path) == ["g.lgd"]


def test_a_pack_that_is_killed_goes_on(tmp_path):
    """Killed after every stage, it is whole in the end, and the same."""
    place = write_graph(tmp_path / "g", nodes=10_000, edges=50_000, width=3)
    pack(place, tmp_path / "undisturbed.lgd", memory="8GB")
    work, stages, kills = tmp_path / ".k.lgd.packing", set(), 0
    command = [sys.executable, "-W", "ignore", "-c", FORKS, str(place), str(tmp_path / "k.lgd")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as server:
        while not (tmp_path / "k.lgd").exists():
            assert kills < 20
            print("pack", file=server.stdin, flush=True)
            process, known = int(server.stdout.readline()), set(stages)
            while stages <= known and not (tmp_path / "k.lgd").exists():
                time.sleep(0.002)
                stages |= set(_stages(work))
            os.kill(process, signal.SIGKILL)
            assert int(server.stdout.readline()) in (0, signal.SIGKILL)
            kills += 1
        server.stdin.close()
    assert {"nodes", "columns", "edges"} <= stages
    assert kills > 3
    expected = PackedGraph.open(tmp_path / "undisturbed.lgd").manifest
    found = PackedGraph.open(tmp_path / "k.lgd", verify="hashes").manifest
    assert found.fingerprint == expected.fingerprint
    assert left(tmp_path) == ["k.lgd", "undisturbed.lgd"]


def _stages(work):
    try:
        text = (work / "stages.json").read_text()
    except OSError:
        return []
    return [name for name in ("nodes", "columns", "edges", "adjacency") if f'"{name}": {{' in text]


def test_finished_stages_are_not_done_again(tmp_path, monkeypatch):
    place = write_graph(tmp_path / "g")
    module = sys.modules[packing_function.__module__]

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "write_adjacency", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pack(place, tmp_path / "g.lgd", memory="8GB")
    monkeypatch.undo()
    monkeypatch.setattr(module, "load_edges", interrupted)  # not called: edges are joined
    pack(place, tmp_path / "g.lgd", memory="8GB")
    os.utime(place / "edges.csv", (1, 1))  # another version: everything again
    with pytest.raises(KeyboardInterrupt):
        pack(place, tmp_path / "g.lgd", memory="8GB", overwrite=True)
    assert PackedGraph.open(tmp_path / "g.lgd").num_nodes == 200


def test_a_disk_without_room_to_spill_is_called_full(tmp_path):
    with closing(engine.Engine(tmp_path, tmp_path / "g.lgd", 8 * 10**9, 2)) as made:
        for setting in ("max_temp_directory_size = '1MB'", "memory_limit = '100MB'"):
            made.run(f"SET {setting}")
        with pytest.raises(InputError, match=r"No space left on device; free some space") as found:
            made.run("CREATE TEMP TABLE t AS SELECT hash(range)::VARCHAR FROM range(50_000_000)")
    assert len(str(found.value)) < 250


def test_ctrl_c_in_a_statement_keeps_the_finished_stages(tmp_path, monkeypatch):
    """When DuckDB notices a signal is its own affair; this is what it raises then."""
    place = write_graph(tmp_path / "g")
    module = sys.modules[packing_function.__module__]

    class Interrupted:
        def execute(self, sql):
            raise RuntimeError("Query interrupted")

        def close(self):
            pass

    def long_statement(engine, *arguments):
        engine._connection.close()
        engine._connection = Interrupted()
        engine.run("SELECT sum(hash(range)) FROM range(100_000_000_000)")

    monkeypatch.setattr(module, "write_adjacency", long_statement)
    with pytest.raises(KeyboardInterrupt):
        pack(place, tmp_path / "g.lgd", memory="8GB")
    assert _stages(tmp_path / ".g.lgd.packing") == ["nodes", "columns", "edges"]


@pytest.mark.parametrize(("cores", "memory", "threads"), [(2, 10**9, 2), (64, 10**9, 6)])
def test_many_cores_do_not_need_more_memory(tmp_path, monkeypatch, cores, memory, threads):
    monkeypatch.setattr(engine, "_resident", lambda: 3 * 10**8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(cores), raising=False)
    with closing(engine.Engine(tmp_path, tmp_path / "g.lgd", memory, 2)) as made:
        assert made.one("SELECT current_setting('threads')") == (threads,)


@pytest.mark.parametrize("moment", ["_remove", "write_json", "os.rename"])
def test_a_kill_while_the_folder_is_finished(tmp_path, monkeypatch, moment):
    place = write_graph(tmp_path / "g")
    expected = pack(place, tmp_path / "whole.lgd", memory="8GB").manifest.fingerprint
    real, calls = PackedWriter.finish, []

    def finish(self, about):
        def interrupted(*arguments):
            calls.append(arguments)
            if len(calls) > (moment == "_remove") * 2:  # the notes of the stages are gone by then
                raise KeyboardInterrupt
            return original(*arguments)

        original = getattr(writer, moment, None)
        monkeypatch.setattr(f"{writer.__name__}.{moment}", interrupted)
        return real(self, about)

    monkeypatch.setattr(PackedWriter, "finish", finish)
    with pytest.raises(KeyboardInterrupt):
        pack(place, tmp_path / "g.lgd", memory="8GB")
    monkeypatch.undo()
    assert not (tmp_path / "g.lgd").exists()
    assert pack(place, tmp_path / "g.lgd", memory="8GB").manifest.fingerprint == expected
    assert left(tmp_path) == ["g.lgd", "whole.lgd"]


def test_memory_is_bounded(tmp_path):
    """Tables of 90 MB, more than DuckDB is given: the child keeps within --memory."""
    place = write_graph(tmp_path / "g", nodes=300_000, edges=1_500_000, width=6)
    done = child(place, tmp_path / "g.lgd", "600MB")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 600 * 10**6


def test_sizes_are_read():
    assert engine.memory_size("2 GiB") == 2**31
    assert engine.memory_size("1000000000") == 10**9
    assert engine.memory_size(None) >= 10**9
