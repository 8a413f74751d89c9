"""What is shown of work that goes on, and text that strangers have written."""

import io
import re

import pytest
from rich.console import Console

from lgdgcn.cli import console


@pytest.fixture
def shown(monkeypatch):
    """What a terminal would see last, without colours."""
    text = io.StringIO()

    def screen():
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", text.getvalue())

    def replace(terminal):
        fake = Console(file=text, force_terminal=terminal, width=80, highlight=False)
        monkeypatch.setattr(console, "_err", fake)
        monkeypatch.setattr(console._display.live, "console", fake)
        return screen

    return replace


def test_work_is_a_line_with_its_share_and_a_word(shown):
    screen = shown(True)
    with console.progress("LGD-GCN (ours), 20 runs") as update:
        update(0.25, "80/20000, loss 1.25, val. 50.0, 0 done")
        while "80/20000, loss 1.25, val. 50.0, 0 done" not in screen():
            pass
        assert "LGD-GCN (ours), 20 runs" in screen()
        assert "━" in screen()
        assert "…" not in screen()  # nothing is cut on 80 columns


def test_all_work_is_shown_at_once(shown, monkeypatch):
    screen = shown(True)
    monkeypatch.setattr(console, "SHOWN_AFTER", 0)
    with console.steps() as on_step, console.work_progress("reading [a].csv", "rows") as advance:
        on_step("measures")
        advance(12_345, 0.25)
        while not ("measures" in screen() and "reading [a].csv" in screen()):
            pass
        assert re.search(r"12,345 rows, [\d,]+ a second, .* left", screen())
    assert not console._display.live.is_started


def test_short_work_shows_nothing(shown):
    screen = shown(True)
    with console.work_progress("reading a.csv", "rows") as advance:
        advance(1, 0.5)
    assert screen() == ""


@pytest.mark.parametrize("quiet", [False, True])
def test_a_file_gets_lines_where_it_is_asked_for(shown, quiet):
    screen = shown(quiet)  # on a terminal, too, where nothing is to be said
    console.begin(quiet=quiet)
    with (
        console.progress("a", tenths=True) as tenths,
        console.progress("b") as update,
        console.steps(lines=True) as on_step,
    ):
        for share in (0.05, 0.1, 0.15, 0.95):
            tenths(share, f"{share} of it")
        update(0.5, "hidden")
        on_step("GCN")
    console.begin()
    assert screen() == ("" if quiet else "10 %: 0.1 of it\n90 %: 0.95 of it\nGCN\n")


@pytest.mark.parametrize(
    ("values", "text"), [((0.835,), "83.5"), ((0.835, 0.004), "83.5 ± 0.4"), ((None,), "–")]
)
def test_percent(values, text):
    assert console.percent(*values) == text


def test_no_text_steers_the_terminal(capsys):
    hostile = "\x1b]0;title\x07a\x9b2J\rb\ud800"
    console.say(hostile)
    console.table(hostile, ["model", f"two\n{hostile}"], [[hostile, "µ"]])
    console.warn(f"{hostile}\nrun folder: another")
    shown = capsys.readouterr().out
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert shown.count("\\x1b]0;title\\x07a\\x9b2J") == 5
    assert "\nrun folder" not in shown  # a warning is one line
    assert "µ" in shown
