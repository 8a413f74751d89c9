"""A browser for all tests of a process, and pages of made-up data in it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lgdgcn.explorer.page import to_page

from .chromium import Chromium, Page, find_chromium
from .fake import fake_payload

Open = Callable[..., Page]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium here: install the package chromium")
    browser = Chromium(program)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def usual() -> dict[str, Any]:
    """Data of the page that most tests look at."""
    return fake_payload()


@pytest.fixture(scope="session")
def usual_file(usual: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "usual.html"
    file.write_text(to_page(usual), encoding="utf-8")
    return file


@pytest.fixture
def open_page(chromium: Chromium, tmp_path: Path) -> Iterator[Open]:
    """Open the page of a payload (or a file); every opened page must end without a complaint."""
    opened: list[Page] = []

    def open_one(content: dict[str, Any] | Path, fragment: str = "", **options: Any) -> Page:
        file = content if isinstance(content, Path) else tmp_path / f"{len(opened)}.html"
        if not isinstance(content, Path):
            file.write_text(to_page(content), encoding="utf-8")
        opened.append(chromium.open(file, fragment, **options))
        return opened[-1]

    yield open_one
    complaints = [text for page in opened for text in page.complaints()]
    for page in opened:
        page.close()
    assert complaints == []


@pytest.fixture
def page(open_page: Open, usual_file: Path) -> Page:
    return open_page(usual_file)
