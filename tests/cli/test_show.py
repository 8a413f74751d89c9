"""``lgdgcn show``: a run as training has printed it."""

import json

import pytest

from cli.runner import call, content, train


def test_a_run_is_shown_as_it_was_printed(finished):
    run, trained = finished
    before = content(run)
    shown = call("show", run)
    assert (shown.code, shown.err) == (0, "")
    start = trained.out.index("\nsynthetic, in %")
    printed = trained.out[start:].partition("run folder: ")[0]
    assert printed in shown.out
    assert shown.out.startswith("dataset synthetic:nodes=120")
    assert f"files in {run}: " in shown.out
    found = json.loads(call("show", run, "--json").out)
    results = [
        json.loads((folder / "result.json").read_text()) for folder in (run, run / "compared/gcn")
    ]
    assert found["results"] == results
    assert content(run) == before


@pytest.mark.parametrize("kind", ["typed", "untyped"])
def test_reasons_of_edges_are_shown(kind, request):
    _, run, trained = request.getfixturevalue(kind)
    shown = call("show", run)
    assert (shown.code, shown.err) == (0, "")
    _, _, printed = trained.out.partition("reasons of edges are found\n")
    assert printed.partition("run folder: ")[0] in shown.out


def test_what_is_no_finished_run(mine, tmp_path):
    assert train(tmp_path / "run", "--model", "mlp", epochs=1).code == 0
    (tmp_path / "run/result.json").unlink()
    call("show", tmp_path / "run").refused("is not finished", "--resume --out")
    call("show", tmp_path / "nothing").refused("holds no finished run")
    run = tmp_path / "edges"
    run.mkdir()
    (run / "config.toml").write_bytes((mine[1] / "config.toml").read_bytes())
    (run / "reasons.safetensors").touch()
    for text in (
        "",
        "[]",
        "{}",
        '{"reasons": {"noun": 1, "reasons": [3], "choice": {}, "held_back": 0}}',
    ):
        (run / "result.json").write_text(text)
        call("show", run).refused("result.json is damaged")
