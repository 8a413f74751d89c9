"""Where factors of our variant are not needed, `train` and `measure` say so, once."""

from cli.runner import call, result_of, train

SAID = "factors take under 1 % of the edges; factors="
MANY = ["--model", "lgdgcn", "--set", "factors=14", "--set", "hidden_channels=42"]


def test_factors_without_edges_are_named(quick_measures, tmp_path):
    run = tmp_path / "run"
    trained = train(run, *MANY, "--seeds", 2)
    measured = call("measure", run)
    assert (trained.code, measured.code) == (0, 0)
    (kept,) = [text for text in result_of(run)["warnings"] if SAID in text]
    assert " of 14 factors take" in kept
    assert trained.out.count(f"warning: {kept}") == 1
    assert "warning: " not in measured.out
    assert 1 <= result_of(run)["factors"]["factor_usage"] < 14
