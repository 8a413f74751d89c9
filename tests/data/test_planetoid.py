import contextlib
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lgdgcn.data import load
from lgdgcn.data.planetoid import PLANETOID, file_names, read_planetoid
from lgdgcn.errors import InputError

PARTS = [name.removeprefix("ind.cora.") for name in file_names("cora")]


@pytest.fixture(scope="session")
def raw(shared_data):
    folder = shared_data / "planetoid"
    if not all((folder / name).is_file() for name in file_names("cora")):
        pytest.skip("no raw planetoid files beside the npz files")
    return folder


@pytest.fixture
def copy(raw, tmp_path):
    """A folder of raw cora files to damage."""
    for name in file_names("cora"):
        (tmp_path / name).write_bytes((raw / name).read_bytes())
    return tmp_path


@pytest.mark.parametrize("name", PLANETOID)
def test_raw_files_equal_the_npz(name, raw, shared_data, tmp_path):
    from_raw = load(name, raw)
    shutil.copy(shared_data / f"{name}.npz", tmp_path)
    from_npz = load(name, tmp_path)
    for key in ("edge_index", "y", "train_mask", "val_mask", "test_mask"):
        assert from_raw[key].equal(from_npz[key]), key
    for part in ("crow_indices", "col_indices", "values"):
        assert getattr(from_raw.x, part)().equal(getattr(from_npz.x, part)()), part


def test_citeseer_nodes_missing_from_the_test_index(raw):
    arrays = read_planetoid(raw, "citeseer")
    missing = np.flatnonzero(arrays["y"] == -1)
    assert len(missing) == 15
    assert (arrays["x_indptr"][missing + 1] == arrays["x_indptr"][missing]).all()
    assert not np.isin(missing, arrays["test_idx"]).any()


class Payload:
    def __init__(self, marker):
        self.command = f"touch {marker}"

    def __reduce__(self):
        import os

        return os.system, (self.command,)


@pytest.mark.parametrize("part", [part for part in PARTS if part != "test.index"])
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_payload_is_refused_and_never_runs(part, protocol, copy, tmp_path):
    marker = tmp_path / "marker"
    (copy / f"ind.cora.{part}").write_bytes(pickle.dumps(Payload(marker), protocol))
    with pytest.raises(InputError, match=rf"ind\.cora\.{part} .*(posix|nt)\.system"):
        read_planetoid(copy, "cora")
    assert not marker.exists()


@pytest.mark.parametrize(
    "name", ["builtins.eval", "numpy.load", "numpy.core.multiarray.scalar", "builtins.getattr"]
)
def test_other_globals_are_refused_by_name(name, copy):
    module, _, attribute = name.rpartition(".")
    (copy / "ind.cora.y").write_bytes(f"\x80\x02c{module}\n{attribute}\n.".encode("latin1"))
    with pytest.raises(InputError, match=name):
        read_planetoid(copy, "cora")


def test_allowed_globals_are_inert(copy):
    # numpy.ndarray((10**12,)) would claim memory if the real class were called
    (copy / "ind.cora.y").write_bytes(
        b"\x80\x02cnumpy\nndarray\n" + pickle.dumps(((10**12,),), 2)[2:-1] + b"R."
    )
    with pytest.raises(InputError, match=r"ind\.cora\.y"):
        read_planetoid(copy, "cora")


def test_forged_memo_index_claims_no_memory(copy):
    (copy / "ind.cora.y").write_bytes(b"\x80\x02]r\xff\xff\xff\x7f.")
    with pytest.raises(InputError, match=r"ind\.cora\.y"):
        read_planetoid(copy, "cora")


def test_file_size_is_bounded(copy, monkeypatch):
    monkeypatch.setattr("lgdgcn.data.planetoid.MAX_BYTES", 1000)
    with pytest.raises(InputError, match="larger than 1000"):
        read_planetoid(copy, "cora")


@pytest.mark.parametrize("index", ["1708\n", "99999999999999\n", "-1\n", "5\n", "x\n", ""])
def test_bad_test_index(index, copy):
    (copy / "ind.cora.test.index").write_text(index)
    with pytest.raises(InputError, match="cora"):
        read_planetoid(copy, "cora")


def test_files_of_different_sets_do_not_fit(copy, raw):
    shutil.copy(raw / "ind.citeseer.tx", copy / "ind.cora.tx")
    with pytest.raises(InputError, match="fit together"):
        read_planetoid(copy, "cora")


def damaged_reading_raises_only_input_error(folder: Path, part: str, content: bytes) -> None:
    path = folder / f"ind.cora.{part}"
    whole = path.read_bytes()
    path.write_bytes(content)
    try:
        with contextlib.suppress(InputError):
            arrays = read_planetoid(folder, "cora")
            assert len(arrays["y"]) == 2708  # the damage hit a value, not the structure
    finally:
        path.write_bytes(whole)


fuzz = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@fuzz
@given(part=st.sampled_from(PARTS), keep=st.floats(0, 1))
def test_truncated_files(copy, part, keep):
    content = (copy / f"ind.cora.{part}").read_bytes()
    damaged_reading_raises_only_input_error(copy, part, content[: int(keep * len(content))])


@fuzz
@given(
    part=st.sampled_from(PARTS), where=st.floats(0, 1), bit=st.integers(0, 7), head=st.booleans()
)
def test_flipped_bits(copy, part, where, bit, head: bool):
    content = bytearray((copy / f"ind.cora.{part}").read_bytes())
    span = min(len(content), 400) if head else len(content)  # the head holds the structure
    content[int(where * (span - 1))] ^= 1 << bit
    damaged_reading_raises_only_input_error(copy, part, bytes(content))


@fuzz
@given(content=st.binary(max_size=200))
def test_arbitrary_bytes(copy, content):
    damaged_reading_raises_only_input_error(copy, "y", content)
