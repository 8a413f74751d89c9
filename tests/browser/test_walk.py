"""Click, search, lasso, slider, keyboard and link do what they say, in a real browser."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .chromium import Page
from .fake import decoded

SHIFT = 8
Open = Callable[..., Page]


def neighbours(payload: dict[str, Any], node: int) -> set[int]:
    ends = decoded(payload["edges"])
    return set(ends[1][ends[0] == node]) | set(ends[0][ends[1] == node])


def lonely(page: Page, payload: dict[str, Any]) -> int:
    """A node with neighbours and without another node in reach of the pointer."""
    places = np.array(
        page.evaluate(f"[...Array({payload['nodes']}).keys()].map(i=>lgdgcn.place(i))")
    )
    apart = np.linalg.norm(places[:, None] - places, axis=-1) + 1e9 * np.eye(len(places))
    return next(i for i in np.argsort(-apart.min(1)).tolist() if neighbours(payload, i) - {i})


def test_a_click_selects_a_node_and_its_links_lead_on(page: Page, usual: dict[str, Any]) -> None:
    node = lonely(page, usual)
    page.click(*page.node(node))
    assert page.state()["node"] == node
    assert usual["ids"][node] in page.text("#node-card h3")
    top, probability = (decoded(usual[name])[node] for name in ("top", "topProbability"))
    first = page.text("#node-card .bars tr")
    assert usual["classes"][top[0]] in first
    assert f"{100 * probability[0]:.1f} %" in first
    buttons = "[...document.querySelectorAll('#node-card .node-links .name')].map(n=>n.textContent)"
    shown = set(page.evaluate(buttons))
    around = {usual["ids"][other] for other in neighbours(usual, node)}
    latent = decoded(usual["latent"]["neighbours"])[node]
    assert shown == around | {usual["ids"][other] for other in latent[latent >= 0]}
    page.press("#node-card .node-link")
    assert page.state()["node"] in neighbours(usual, node)


def test_neighbours_are_grouped_by_the_strongest_factor(page: Page, usual: dict[str, Any]) -> None:
    node = lonely(page, usual)
    ends, factors = decoded(usual["edges"]), decoded(usual["edgeFactors"])
    own = factors[(ends == node).any(0)].argmax(1)
    page.evaluate(f"lgdgcn.select({node})")
    notes = page.evaluate("[...document.querySelectorAll('#node-card h5')].map(h=>h.textContent)")
    for factor, count in zip(*np.unique(own, return_counts=True), strict=True):
        assert any(note.startswith(f"Factor {factor + 1}{count} neighbour") for note in notes)


def test_hovering_names_the_node_and_is_timed(page: Page, usual: dict[str, Any]) -> None:
    node = lonely(page, usual)
    page.mouse("mouseMoved", *page.node(node))
    page.wait_for("!document.getElementById('tip').hidden")
    assert usual["ids"][node] in page.text("#tip")
    assert page.evaluate("lgdgcn.hoverTimes.length") >= 1


def test_search_finds_a_node_by_its_id(page: Page, usual: dict[str, Any]) -> None:
    page.key("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.type("NODE 29")
    options = page.evaluate("[...document.querySelectorAll('#matches bdi:first-of-type')].length")
    assert options >= 10
    page.key("Enter")
    assert page.state()["node"] == 29


def test_search_finds_a_node_by_its_text(page: Page, usual: dict[str, Any]) -> None:
    page.press("#search")
    page.type("Story of 17!")
    page.key("Enter")
    assert page.state()["node"] == 17
    assert page.text("#node-card .node-text") == "title the story of 17!"


def test_search_finds_the_nodes_of_a_class(page: Page, usual: dict[str, Any]) -> None:
    page.press("#search")
    page.type("class 4")
    page.key("Enter")
    members = np.flatnonzero((decoded(usual["truth"]) == 4).any(1))
    assert page.state()["members"] == members.tolist()
    assert f"{len(members)} nodes" in page.text("#group-card h3")


def test_a_lasso_takes_what_lies_inside(page: Page, usual: dict[str, Any], open_page: Open,
                                        usual_file: Path) -> None:  # fmt: skip
    for view, selector, radius, modifiers in [(0, "#graph-view", 150, SHIFT), (2, "#map-2", 60, 0)]:
        x, y = page.middle(selector)
        around = np.linspace(0, 6.2, 40)
        corners = [(x + radius * math.cos(a), y + radius * math.sin(a)) for a in around]
        if not modifiers:
            page.press(f"{selector} .lasso")
        page.drag(corners, modifiers)
        state = page.state()
        stage = page.evaluate("document.getElementById('stage').getBoundingClientRect().toJSON()")
        places = np.array(
            page.evaluate(f"[...Array({usual['nodes']}).keys()].map(i=>lgdgcn.place(i, {view}))")
        )
        far = np.hypot(places[:, 0] + stage["x"] - x, places[:, 1] + stage["y"] - y)
        inside, members = set(np.flatnonzero(far < radius - 3)), set(state["members"])
        assert inside <= members <= set(np.flatnonzero(far < radius + 1))
        assert inside
        restored = open_page(usual_file, state["link"]).state()
        assert restored["members"] == state["members"]


def test_the_slider_hides_weak_edges(page: Page, usual: dict[str, Any]) -> None:
    share = decoded(usual["edgeFactors"]).max(1)
    assert page.evaluate("[+strength.min, +strength.max]") == [share.min(), share.max()]
    page.evaluate("document.getElementById('strength').focus()")
    for _ in range(3):
        page.key("PageUp")
    chosen = page.state()["strength"]
    assert chosen > share.min()
    assert page.state()["shownEdges"] == (share >= chosen).sum()
    assert f"{(share >= chosen).sum()} of 900" in page.text("#edge-count")
    page.press("#factor-legend input")
    strongest = decoded(usual["edgeFactors"]).argmax(1)
    assert page.state()["shownEdges"] == ((share >= chosen) & (strongest != 0)).sum()


def test_arrow_keys_walk_along_edges_and_escape_clears(page: Page, usual: dict[str, Any]) -> None:
    page.evaluate("document.getElementById('graph-view').focus(); lgdgcn.select(3)")
    walked = [3]
    ways = {"ArrowLeft": (-1, 0), "ArrowRight": (1, 0), "ArrowUp": (0, -1), "ArrowDown": (0, 1)}
    for key, way in ways.items():
        page.key(key)
        now = page.state()["node"]
        if now != walked[-1]:
            assert now in neighbours(usual, walked[-1])
            assert np.dot(np.subtract(page.node(now), page.node(walked[-1])), way) > 0
        walked.append(now)
    assert len(set(walked)) > 1
    assert usual["ids"][walked[-1]] in page.text("#announcement") or "No neighbour" in page.text(
        "#announcement"
    )
    page.key("+")
    assert page.state()["cameras"][0]["zoom"] > 1
    page.key("0")
    assert page.state()["cameras"][0]["zoom"] == 1
    page.key("Escape")
    assert page.state()["node"] == -1


def test_wheel_and_drag_move_one_view(page: Page) -> None:
    x, y = page.middle("#graph-view")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-300)
    page.drag([(x, y), (x + 30, y), (x + 60, y + 20)])
    graph, *maps = page.state()["cameras"]
    assert graph["zoom"] > 1.3
    assert graph["x"] < 0 < graph["y"]
    assert all(camera == {"x": 0, "y": 0, "zoom": 1} for camera in maps)


def test_the_link_brings_the_view_back(page: Page, open_page: Open, usual_file: Path) -> None:
    page.press("#map-2 .enlarge")
    page.evaluate("document.querySelector('input[value=confidence]').click()")
    page.evaluate("document.querySelectorAll('#factor-legend input')[1].click()")
    page.evaluate("lgdgcn.select(17)")
    page.key("+")
    page.press("#theme")
    page.press("#tab-measures")
    page.press("#copy")
    wanted = page.state()
    assert page.evaluate("location.hash.slice(1)") == wanted["link"]
    assert page.text("#copy") == "Link copied"
    again = open_page(usual_file, wanted["link"]).state()
    for name, value in wanted.items():
        if name != "cameras":
            assert again[name] == value, name
    assert again["cameras"][2]["zoom"] == round(wanted["cameras"][2]["zoom"], 3) > 1


def test_a_pasted_link_wins_over_the_one_about_to_be_written(page: Page) -> None:
    # the page writes its own link by a timer, which may run before it hears of the pasted one
    page.evaluate("location.hash = 'm=2'; history.replaceState(null, '', '#m=1'); 0")
    page.wait_for("lgdgcn.state().main === 2")
    page.wait_for("location.hash === '#m=2'")


def test_a_senseless_link_is_as_none(open_page: Open, usual_file: Path) -> None:
    plain = open_page(usual_file).state()
    for fragment in (
        "n=300&c=__proto__&s=NaN&f=a&h=99&g=l0:1,2&m=9&z=0:NaN,0,1;7:1,1,1&t=pink&p=<b>",
        "n=-1&g=c9,9&z=__proto__&s=2&constructor=1&=&&&%E2%80%A8",
    ):
        state = open_page(usual_file, fragment).state()
        expected = plain | (
            {"hiddenFactors": [0, 1, 2, 3], "shownEdges": 0} if "f=a" in fragment else {}
        )
        assert {**state, "link": ""} == {**expected, "link": ""}
