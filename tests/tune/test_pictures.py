"""Pictures of studies, also of poor ones."""

from xml.etree import ElementTree

import numpy as np
import optuna
import pytest
from matplotlib.figure import Figure
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState, create_trial

from lgdgcn.search.winner import _importance, plot_history, plot_importance

SPACE = {
    "lr": FloatDistribution(1e-4, 1, log=True),
    "dropout": FloatDistribution(0, 0.8),
    "units": CategoricalDistribution([8, 16]),
}


def trial(value, *, state=TrialState.COMPLETE, names=tuple(SPACE), seed=0):
    rng = np.random.default_rng(seed)
    drawn = {"lr": 10 ** -rng.uniform(0.1, 3.9), "dropout": rng.uniform(0, 0.8)}
    drawn["units"] = int(rng.choice([8, 16]))
    return create_trial(
        state=state,
        value=None if state == TrialState.FAIL else value,
        params={name: drawn[name] for name in names},
        distributions={name: SPACE[name] for name in names},
    )


@pytest.fixture
def study() -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(direction="maximize", study_name="cora-$x$_gcn")


@pytest.fixture
def drawn(monkeypatch) -> list[Figure]:
    """The figures that are written."""
    figures = []
    real = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda self, *a, **k: (figures.append(self), real(self, *a, **k))[1]
    )
    return figures


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def test_history_shows_every_trial_and_the_best_so_far(study, drawn, tmp_path):
    scores = [0.5, 0.7, 0.6, 0.8, 0.75]
    for score in scores:
        study.add_trial(trial(score))
    study.add_trial(trial(0.55, state=TrialState.PRUNED))
    study.add_trial(trial(None, state=TrialState.FAIL))
    plot_history(study, tmp_path / "history.v1")
    axes = drawn[0].axes[0]
    shown = {c.get_label(): c.get_offsets().data.tolist() for c in axes.collections}
    assert shown["complete"] == [[number, score] for number, score in enumerate(scores)]
    assert shown["pruned"] == [[5, 0.55]]
    assert axes.lines[0].get_ydata().tolist() == [0.5, 0.7, 0.7, 0.8, 0.8, 0.8]
    assert axes.lines[0].get_xdata().tolist() == [0, 1, 2, 3, 4, 6]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["history.v1.png", "history.v1.svg"]
    assert (tmp_path / "history.v1.png").read_bytes().startswith(b"\x89PNG")
    assert "cora-$x$_gcn" in (tmp_path / "history.v1.svg").read_text()


def test_far_off_scores_are_drawn_at_the_edge(study, drawn, tmp_path):
    for score in (0.1, 0.8, 0.81, 0.79, 0.82, 0.8, 0.81, 0.8):
        study.add_trial(trial(score))
    plot_history(study, tmp_path / "history")
    axes = drawn[0].axes[0]
    shown = {c.get_label(): c.get_offsets().data.tolist() for c in axes.collections}
    assert axes.get_ylim()[0] > 0.7
    assert shown["complete, below"] == [[0, axes.get_ylim()[0]]]
    assert len(shown["complete"]) == 7


@pytest.mark.parametrize("values", [[], [0.5], [0.5, 0.5], [0.0, float("inf")]])
def test_history_of_few_or_equal_trials(study, tmp_path, values):
    for value in values:
        study.add_trial(trial(value))
    plot_history(study, tmp_path / "history")
    ElementTree.parse(tmp_path / "history.svg")


def test_importance_finds_what_matters_and_is_repeatable(study, drawn, tmp_path):
    for seed in range(20):
        one = trial(0.0, seed=seed)
        one.value = float(one.params["dropout"])
        study.add_trial(one)
    found = _importance(study)
    assert next(iter(found)) == "dropout"
    assert found["dropout"] > 0.8
    assert sum(found.values()) == pytest.approx(1)
    plot_importance(study, tmp_path / "a")
    plot_importance(study, tmp_path / "b")
    assert [label.get_text() for label in drawn[0].axes[0].get_yticklabels()] == list(found)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_importance_says_why_there_is_none(study, drawn, tmp_path):
    def says(match: str) -> None:
        plot_importance(study, tmp_path / "importance")
        assert match in texts(drawn[-1])[0]

    says("0 complete trials are too few")
    for _ in range(8):
        study.add_trial(trial(0.5, names=("lr",)))
    says("All trials have the same score")
    study.add_trial(trial(0.6, names=("lr",)))
    says("Fewer than two settings")
    study.add_trial(trial(0.7, names=("dropout",)))
    says("Fewer than two settings")


def test_importance_of_equal_settings(study, drawn, tmp_path):
    for score in range(8):
        study.add_trial(trial(0.1 * score))
    plot_importance(study, tmp_path / "importance")
    assert "Fewer than two settings" in texts(drawn[0])[0]
