"""Reasons in the page: why an edge is there, what if a factor goes, and runs about edges only."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lgdgcn.explorer.page import encoded
from lgdgcn.explorer.payload import payload
from lgdgcn.reasons import Explanation, fit_graph
from reasons.test_edge_reasons import typed_graph

from .chromium import Page
from .fake import fake_payload

Open = Callable[..., Page]
HOSTILE = "</script><img src=x onerror=window.harmed=1>\u2028=1+1"


def two_triangles(**more: Any) -> dict[str, Any]:
    """Nodes 0 and 1 with a common neighbour each way; four edges of the first factor."""
    ends = [[0, 0, 1, 0, 1], [1, 2, 2, 3, 3]]
    shares = np.array([[0.75, 0.25], [1, 0], [0.5, 0.5], [0, 1], [0.75, 0.25]])
    values: dict[str, Any] = {
        "position": encoded([[-0.5, 0], [0.5, 0], [0, 0.9], [0, -0.9]], "f32"),
        "edges": encoded(ends, "u32"),
        "edgeFactors": encoded(65535 * shares, "u16"),
        "truth": encoded([[0], [0], [1], [1]], "i32"),
        "predicted": encoded([[0], [0], [1], [1]], "i32"),
        "fits": 5,
        "edgeRange": {
            "low": encoded(255 * 0.8 * shares, "u8"),
            "high": encoded(255 * shares, "u8"),
        },
        "traits": {
            "names": ["feature rare", "feature usual", HOSTILE],
            "start": encoded([0, 3, 6, 7, 8], "u32"),
            "of": encoded([0, 1, 2, 0, 1, 2, 1, 1], "u32"),
        },
    }
    return fake_payload(4, 5, factors=2, **values | more)


def test_a_click_on_a_line_explains_the_edge(open_page: Open) -> None:
    page = open_page(two_triangles())
    (x, y), (other, _) = page.node(0), page.node(1)
    page.click((x + other) / 2, y)
    assert page.state()["link"] == "e=0"
    card = page.text("#edge-card")
    assert "2 common neighbours" in card
    first = page.text("#edge-card .reasons tbody tr")
    assert first.startswith("Factor 1")
    assert "75.0 % 60 % to 75 %" in first
    # node 0: 0.75 + 1 + 0, node 1: 0.75 + 0.5 + 0.75
    assert "edges of the ends in it: 1.7 and 2.0" in card
    assert "over 5 fits" in card
    both = page.evaluate("[...document.querySelectorAll('#edge-card li .tag bdi')]"
                         ".map(n => n.textContent)")  # fmt: skip
    assert both == ["feature rare", HOSTILE[:39] + "…", "feature usual"]  # the rarest first
    page.press("#edge-card .node-link")
    assert page.state()["node"] == 0
    assert page.state()["edge"] == -1
    page.key("Escape")
    assert page.state()["link"] == ""


def test_neighbours_lead_to_their_edges(open_page: Open) -> None:
    page = open_page(two_triangles(), "n=2")
    page.press("#node-card .why")
    assert page.state()["edge"] in (1, 2)
    assert page.evaluate("window.harmed") is None
    page.evaluate("location.hash = 'e=99'")  # no such edge
    page.wait_for("lgdgcn.state().edge === -1")


def test_what_if_a_factor_goes(open_page: Open) -> None:
    without = {
        "predicted": encoded([[0, 3], [0, 0], [1, 1], [1, 1]], "i32"),
        "kept": encoded([[1, 0], [1, 1], [1, 1], [1, 1]], "u8"),
        "probability": encoded(65535 * np.array([[0.5, 0.125]] * 4), "u16"),
        "low": encoded(65535 * np.array([0.25] * 4), "u16"),
        "high": encoded(65535 * np.array([0.75] * 4), "u16"),
    }
    page = open_page(two_triangles(without=without), "n=0")
    rows = page.evaluate(
        "[...document.querySelectorAll('.without tbody tr')].map(n => n.textContent)"
    )
    assert rows == ["Factor 1stays50.0 %", "Factor 2class 312.5 %"]
    assert "Over several seeds the prediction has 25.0 % to 75.0 %." in page.text("#node-card")


def test_every_factor_says_what_it_is_about(open_page: Open) -> None:
    about = [
        {"lines": [HOSTILE, "b", "c"], "stability": "agreement 0.91", "stable": True},
        {"lines": ["d", "e", "f"], "stability": "agreement 0.2: is not stable", "stable": False},
    ]
    page = open_page(two_triangles(about=about, factorNames=[None, HOSTILE]), "p=factors")
    cards = page.evaluate("[...document.querySelectorAll('.factor-card')].map(n => n.textContent)")
    assert HOSTILE in cards[0]
    assert "4 edges, 80 %" in cards[0]
    assert "Factor 2: </script>" in cards[1]
    assert page.text(".factor-card .tag.bad") == "agreement 0.2: is not stable"
    assert page.evaluate("window.harmed") is None


@pytest.fixture(scope="module")
def typed() -> dict[str, Any]:
    data = typed_graph()
    scores = {"held-back types: accuracy": 0.9}
    return payload(Explanation(data, fit_graph(data)), dataset="planted", scores=scores)


def test_a_run_about_edges(open_page: Open, typed: dict[str, Any]) -> None:
    page = open_page(typed)
    tabs = page.evaluate("[...document.querySelectorAll('#tabs button')].map(n => n.textContent)")
    assert tabs == ["Details", "Types"]
    assert page.evaluate("document.querySelectorAll('.view').length") == 1
    assert page.text("#edge-legend") == "Edges by type"
    said = page.evaluate("document.querySelector('#help-text').textContent")
    assert "the colour of its most probable type" in said
    assert not {"routing", "routed", "Maps", "map", "factor"} & set(re.findall(r"\w+", said))
    assert "</script>" in page.text("#factor-legend")  # the name of a type
    assert "held-back types: accuracy0.900" in page.text(".facts")
    page.press("#tab-factors")
    assert page.evaluate("document.querySelectorAll('.factor-card').length") == 2
    page.evaluate("lgdgcn.select(lgdgcn.state().node + 1)")
    page.mouse("mouseMoved", *page.node(3))
    page.frame()
    assert "Neighbours, by explaining type" in page.text("#node-card")
    page.evaluate("lgdgcn.selectEdge(0)")
    assert "one seed" in page.text("#edge-card")
    page.press("#search")
    page.type("1")
    page.key("Enter")
    assert page.state()["node"] >= 0
