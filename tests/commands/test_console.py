"""The progress bar: one for all runs, and none where nobody looks."""

import io
import re

import pytest
from rich.console import Console

from lgdgcn.commands import console
from lgdgcn.config import Settings
from lgdgcn.train.state import EpochReport, Member, TrainState

SETTINGS = Settings(epochs=10)


@pytest.fixture
def shown(monkeypatch):
    """What a terminal would see last, without colours."""
    text = io.StringIO()

    def screen():
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", text.getvalue())

    def replace(terminal):
        fake = Console(file=text, force_terminal=terminal, width=80, highlight=False)
        monkeypatch.setattr(console, "_err", fake)
        return screen

    return replace


def report(epoch, best=0.5, finished=False):
    state = TrainState(epoch, epoch, best)
    return EpochReport(0, {"epoch": epoch, "total": 1.25}, state, finished)


def test_several_runs_share_a_bar_that_fits(shown):
    screen = shown(True)
    with console.epoch_progress("LGD-GCN", 20) as on_epoch:
        assert "compiling kernels, once" in screen()
        for seed in range(20):
            on_epoch(Member(Settings(epochs=1000), seed), report(4, 0.25 + seed % 2 / 2))
    assert "LGD-GCN, 20 runs" in screen()
    assert "80/20000" in screen()
    assert "loss 1.25, val. 50.0, 0 done" in screen()
    assert "…" not in screen()  # nothing is cut on 80 columns


def test_the_bar_ends_at_the_last_epoch(shown):
    screen = shown(True)
    with console.epoch_progress("GCN", 2) as on_epoch:
        on_epoch(Member(SETTINGS, 0), report(4, 0.25))
        on_epoch(Member(SETTINGS, 1), report(3, 0.75, finished=True))  # an early stop
        on_epoch(Member(SETTINGS, 0), report(5, 0.25, finished=True))
    assert "8/8" in screen()
    assert "2 done" in screen()


def test_a_run_without_validation_has_no_best(shown):
    screen = shown(True)
    with console.epoch_progress("GCN", 1) as on_epoch:
        on_epoch(Member(SETTINGS, 0), report(10, float("-inf"), finished=True))
    assert "10/10" in screen()
    assert "val." not in screen()
    assert "runs" not in screen()


def test_a_file_gets_no_bar(shown):
    screen = shown(False)
    with console.epoch_progress("GCN", 1) as on_epoch:
        on_epoch(Member(SETTINGS, 0), report(4))
    assert screen() == ""


@pytest.mark.parametrize(
    ("values", "text"), [((0.835,), "83.5"), ((0.835, 0.004), "83.5 ± 0.4"), ((None,), "–")]
)
def test_percent(values, text):
    assert console.percent(*values) == text


def test_long_work_shows_rows_a_second(shown, monkeypatch):
    screen = shown(True)
    monkeypatch.setattr(console, "SHOWN_AFTER", 0)
    with console.work_progress("reading [a].csv", "rows") as advance:
        advance(12_345, 0.25)
        while "12,345 rows" not in screen():
            pass
    assert "reading [a].csv" in screen()
    assert "25%" in screen()
    assert re.search(r"12,345 rows, [\d,]+ a second", screen())


def test_no_text_steers_the_terminal(capsys):
    hostile = "\x1b]0;title\x07a\x9b2J\rb\ud800"
    console.out.print(hostile, soft_wrap=True)
    console.print_table(hostile, ["model", f"two\n{hostile}"], [[hostile, "µ"]])
    console.print_warning(f"{hostile}\nrun folder: another")
    shown = capsys.readouterr().out
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert shown.count("\\x1b]0;title\\x07a\\x9b2J") == 5
    assert "\nrun folder" not in shown  # a warning is one line
    assert "µ" in shown


def test_short_work_shows_nothing(shown):
    screen = shown(True)
    with console.work_progress("reading a.csv", "rows") as advance:
        advance(1, 0.5)
    assert screen() == ""


def test_long_work_within_a_bar_shows_no_second_one(shown, monkeypatch):
    screen = shown(True)
    monkeypatch.setattr(console, "SHOWN_AFTER", 0)
    with console.steps() as on_step, console.work_progress("reading", "rows") as advance:
        on_step("training")
        advance(1, 0.5)
    assert "reading" not in screen()


def test_work_beside_epochs_is_a_note_of_their_bar(shown):
    screen = shown(True)
    with console.epoch_progress("GCN", 1) as on_epoch:
        on_epoch(Member(SETTINGS, 0), report(10, finished=True))
        with console.work_progress("scoring [a]", "nodes") as advance:
            advance(10, 0.25)
            while "scoring [a], 25%" not in screen():
                pass
        before = len(screen())
        while "loss 1.25" not in screen()[before:]:
            pass


def test_a_file_gets_no_bar_of_long_work(shown, monkeypatch):
    screen = shown(False)
    monkeypatch.setattr(console, "SHOWN_AFTER", 0)
    with console.work_progress("reading", "rows") as advance:
        advance(1, 0.5)
    assert screen() == ""
