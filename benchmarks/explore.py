"""How quick the explorer page is in a real browser: first paint, hover, drag and slider.

    python benchmarks/explore.py [--nodes 20000] [--edges 45000] [--page page.html]

Measured in the page itself (``performance.now``) in headless Chromium, which draws with software
here: a computer with a graphics card is faster. Needs Chromium; nothing is asserted.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from browser.chromium import Chromium, Page, find_chromium
from browser.fake import fake_payload
from lgdgcn.explorer.page import to_page

WINDOW = (1440, 900)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--edges", type=int, default=45_000)
    parser.add_argument("--page", type=Path, help="a page that lgdgcn explore wrote")
    arguments = parser.parse_args()
    program = find_chromium()
    if program is None:
        sys.exit("no Chromium here: install the package chromium")
    with tempfile.TemporaryDirectory() as folder:
        file = arguments.page or made_up(Path(folder), arguments.nodes, arguments.edges)
        file = file.resolve()
        print(f"page    {file.stat().st_size / 1e6:8.1f} MB")
        browser = Chromium(program)
        try:
            paints = [first_paint(browser, file) for _ in range(4)]
            print(f"paint   {paints[0]:8.0f} ms in a browser just started")
            print(f"paint   {min(paints[1:]):8.0f} ms afterwards, best of {len(paints) - 1}")
            page = browser.open(file, size=WINDOW)
            report("hover", hovers(page))
            report("drag", drags(page))
            report("slider", sliders(page))
            page.close()
        finally:
            browser.close()


def made_up(folder: Path, nodes: int, edges: int) -> Path:
    file = folder / "page.html"
    file.write_text(to_page(fake_payload(nodes, edges)), encoding="utf-8")
    return file


def report(what: str, times: list[float]) -> None:
    half, most = np.percentile(times, [50, 95])
    print(f"{what:7} {half:8.1f} ms median, {most:.1f} ms for 95 of 100, {len(times)} times")


def first_paint(browser: Chromium, file: Path) -> float:
    page = browser.open(file, size=WINDOW)
    elapsed = page.evaluate("lgdgcn.firstPaintMs")
    page.close()
    return float(elapsed)


def hovers(page: Page, moves: int = 120) -> list[float]:
    """From the event of the pointer until the marks and the card are drawn."""
    x, y = page.middle("#graph-view")
    for angle in np.linspace(0, 6 * np.pi, moves):
        radius = 12 * angle
        page.mouse("mouseMoved", x + radius * np.cos(angle), y + radius * np.sin(angle))
        page.frame()
    return list(page.evaluate("lgdgcn.hoverTimes"))


def drags(page: Page, moves: int = 40) -> list[float]:
    """Frame by frame while the graph is dragged."""
    page.evaluate(
        "window.times = [];"
        "window.watch = (now) => { times.push(now); requestAnimationFrame(watch); };"
        "requestAnimationFrame(watch); 0"
    )
    x, y = page.middle("#graph-view")
    page.drag([(x + 3 * step, y + step) for step in range(moves)])
    times = page.evaluate("times")
    page.evaluate("window.watch = () => 0; 0")
    return np.diff(times).tolist()


def sliders(page: Page, moves: int = 20) -> list[float]:
    """From a new position of the slider until the graph is drawn."""
    return [
        float(
            page.evaluate(
                "new Promise((done) => { const begin = performance.now();"
                "const [low, high] = [+strength.min, +strength.max];"
                f"strength.value = low + {step} * (high - low) / {moves};"
                "strength.dispatchEvent(new Event('input'));"
                "requestAnimationFrame(() => done(performance.now() - begin)); })"
            )
        )
        for step in range(moves)
    ]


if __name__ == "__main__":
    main()
