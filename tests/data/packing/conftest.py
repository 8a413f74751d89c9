import pytest

pytest.importorskip("duckdb", reason="packing needs the extra [scale]")
