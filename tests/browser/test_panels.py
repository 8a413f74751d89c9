"""The panels, themes and sizes of the page, and unusual data in it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lgdgcn.explorer.page import encoded

from .chromium import Page
from .fake import decoded, fake_payload

Open = Callable[..., Page]

# colour of the drawing where a node is
PIXELS = """(() => {
  const drawing = document.getElementById('drawing');
  const copy = Object.assign(document.createElement('canvas'), {width: 1, height: 1});
  const [x, y] = lgdgcn.place(%d, %d).map((at) => Math.floor(at * devicePixelRatio));
  copy.getContext('2d').drawImage(drawing, x, y, 1, 1, 0, 0, 1, 1);
  return [...copy.getContext('2d').getImageData(0, 0, 1, 1).data.slice(0, 3)];
})()"""
NO_WEBGL = (
    "const own = HTMLCanvasElement.prototype.getContext;"
    "HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {"
    "return kind === 'webgl2' ? null : own.call(this, kind, ...rest); };"
)


def one_node(**more: Any) -> dict[str, Any]:
    return fake_payload(1, 0, position=encoded([[0.0, 0.0]], "f32"), **more)


@pytest.mark.parametrize("before", ["", NO_WEBGL], ids=["webgl", "plain canvas"])
def test_nodes_are_drawn_in_the_colour_of_their_class(open_page: Open, before: str) -> None:
    page = open_page(one_node(classes=1), before=before)
    assert page.evaluate("document.getElementById('stage').dataset.painter ?? ''") == (
        "flat" if before else ""
    )
    for view in (0, 3):
        assert page.evaluate(PIXELS % (0, view)) == [0, 0x72, 0xB2]
    page.press("#legend input")
    assert page.evaluate(PIXELS % (0, 0)) != [0, 0x72, 0xB2]


BLUE, ORANGE, GREEN = [0, 0x72, 0xB2], [0xE6, 0x9F, 0], [0, 0x9E, 0x73]


def with_factor_classes() -> dict[str, Any]:
    """A node with labels 0 and 2, which are class 1 of factor 1 and class 2 of factor 2."""
    classes = {"ofNodes": encoded([[0, 1, 7]], "u8"), "ofLabels": encoded([0, -1, 8 + 1], "i32")}
    places = encoded([[[0.0, 0.0]]] * 3, "f32")
    labels = encoded([[0, 2]], "i32")
    return one_node(factors=3, classes=1, multi_label=True, maps=places, truth=labels,
                    predicted=labels, factorClasses=classes)  # fmt: skip


@pytest.mark.parametrize("before", ["", NO_WEBGL], ids=["webgl", "plain canvas"])
def test_maps_have_the_colours_of_their_factors_classes(open_page: Open, before: str) -> None:
    page = open_page(with_factor_classes(), before=before)
    graph, first, second, third = (page.evaluate(PIXELS % (0, view)) for view in range(4))
    assert (graph, first, second) == (BLUE, BLUE, GREEN)
    assert third not in (BLUE, ORANGE, GREEN)  # a class that is no label
    page.press("#map-classes")
    assert [page.evaluate(PIXELS % (0, view)) for view in range(4)] == [BLUE] * 4
    assert page.state()["link"] == "o=0"
    page.press("#map-classes")
    assert page.evaluate(PIXELS % (0, 2)) == GREEN
    page.press("#label-rows input")  # without label 0 the graph shows label 2, the maps the same
    assert [page.evaluate(PIXELS % (0, view)) for view in range(3)] == [GREEN, BLUE, GREEN]


def test_a_maps_classes_are_named(open_page: Open) -> None:
    page = open_page(with_factor_classes())
    for view, name in [(1, "class 0"), (2, "class 2"), (3, "class 8")]:
        page.mouse("mouseMoved", *page.node(0, view))
        page.wait_for(f"tip.textContent.includes('in factor {view} {name}')")
        assert "class class 0, class 2" in page.text("#tip")  # the true labels
        page.evaluate(f"location.hash = 'm={view}'")
        page.wait_for(f"window['map-class-rows']?.textContent === '{name}1'")
    page.evaluate("location.hash = 'm=1&o=0'")
    page.wait_for("!window['map-class-rows']")


def test_no_switch_where_factors_have_no_classes(page: Page) -> None:
    assert page.evaluate("document.getElementById('map-classes')") is None
    page.mouse("mouseMoved", *page.node(0, 2))
    page.wait_for("!document.getElementById('tip').hidden")
    assert "in factor" not in page.text("#tip")


def test_a_drawing_that_the_graphics_card_lost_comes_back(open_page: Open) -> None:
    page = open_page(one_node(classes=1))
    page.evaluate(
        "window.card = drawing.getContext('webgl2').getExtension('WEBGL_lose_context');"
        "card.loseContext(); 0"
    )
    page.wait_for("drawing.getContext('webgl2').isContextLost()")
    page.evaluate("setTimeout(() => card.restoreContext(), 50); 0")
    page.wait_for("!drawing.getContext('webgl2').isContextLost()")
    page.wait_for(f"String({PIXELS % (0, 0)}) === '0,114,178'")


def one_edge(**more: Any) -> dict[str, Any]:
    """Two nodes with an edge of the second factor, and a third node on that edge."""
    return fake_payload(
        3, 1, factors=2, position=encoded([[-0.5, 0], [0.5, 0], [0, 0]], "f32"),
        edges=encoded([[0], [1]], "u32"), edgeFactors=encoded([[13107, 52428]], "u16"),
        truth=encoded([[0], [0], [1]], "i32"), **more,
    )  # fmt: skip


def on_the_edge(page: Page, canvas: str = "drawing") -> str:
    """A script for the colour beside the third node."""
    x, y = page.evaluate("lgdgcn.place(2)")
    here = PIXELS.replace("lgdgcn.place(%d, %d)", f"[{x + 40}, {y}]")
    return here.replace("'drawing'", f"'{canvas}'")


def test_edges_have_the_colour_of_their_factor(open_page: Open) -> None:
    page = open_page(one_edge())
    assert page.text("#edge-count") == "1 of 1 edge shown"
    assert page.evaluate("document.querySelector('#factor-legend p')") is None
    beside = on_the_edge(page)
    red, green, blue = page.evaluate(beside)
    assert red > green > blue + 60  # orange on white
    page.evaluate("document.querySelectorAll('#factor-legend input')[1].click()")
    page.frame()
    assert page.evaluate(beside) == [255, 255, 255]


@pytest.mark.parametrize("before", ["", NO_WEBGL], ids=["webgl", "plain canvas"])
def test_edges_are_grey_where_nothing_is_routed(open_page: Open, before: str) -> None:
    said = "routing entropy is 0.9980: nothing is <routed>; try another variant"
    page = open_page(one_edge(unrouted=said), before=before)
    assert page.text("#factor-legend p") == f"Warning: {said}"
    assert said not in page.text("#panel-details")
    red, green, blue = page.evaluate(on_the_edge(page))
    assert max(red, green, blue) < 240  # there is a line
    assert max(red, green, blue) - min(red, green, blue) < 20
    page.evaluate("lgdgcn.select(0)")
    page.frame()
    red, green, blue = page.evaluate(on_the_edge(page, "overlay"))
    assert 0 < max(red, green, blue) - min(red, green, blue) < 20
    assert "by factor of the highest share" in page.text("#node-card")
    page.evaluate("document.querySelectorAll('#factor-legend input')[1].click()")
    page.frame()
    assert page.evaluate(on_the_edge(page)) == [255, 255, 255]  # filters work as ever
    assert page.text("#factor-legend p") == f"Warning: {said}"


def test_every_panel_opens(page: Page) -> None:
    assert "test Micro-F1" in page.text(".facts")
    for name in ("training", "correlation", "confusion", "measures"):
        page.press(f"#tab-{name}")
        assert page.state()["panel"] == name
        assert page.evaluate(f"document.getElementById('panel-{name}').offsetHeight") > 200
    titles = page.evaluate(
        "[...document.querySelectorAll('figcaption .name')].map(n=>n.textContent)"
    )
    assert titles == ["classification", "space", "diversity", "validation accuracy"]
    assert page.evaluate("document.querySelectorAll('.curve').length") == 8
    measured = page.text(".measures tbody tr")
    for number in ("0.6100", "0.5800 to 0.6400", "0.2600"):
        assert number in measured
    assert page.text("#panel-measures > p:last-child").endswith(": mutual information gap.")
    page.evaluate("document.getElementById('tab-measures').focus()")
    page.key("ArrowRight")
    assert page.state()["panel"] == "details"


def test_a_cell_of_the_confusion_matrix_selects_its_nodes(
    page: Page, usual: dict[str, Any]
) -> None:
    matrix = decoded(usual["confusion"]["matrix"])
    page.press("#tab-confusion")
    page.press("#panel-confusion .matrix tbody tr:nth-child(3) td:nth-of-type(3) button")
    assert len(page.state()["members"]) == matrix[2, 2]
    assert page.state()["panel"] == "details"


def test_labels_of_many_select_their_nodes(open_page: Open) -> None:
    payload = fake_payload(multi_label=True, factors=8, classes=8)
    page = open_page(payload, "p=confusion&n=3")
    page.press("#panel-confusion .node-link")
    assert len(page.state()["members"]) == (decoded(payload["truth"]) == 0).any(1).sum()


@pytest.mark.parametrize(
    "payload",
    [
        one_node(labelled=False, factors=1, classes=1, curves=[], confusion=None, measures=[]),
        fake_payload(40, 60, factors=12, classes=30, scores={}),
        fake_payload(40, 60, part=encoded([0] * 40, "u8"), truth=encoded([[-1]] * 40, "i32")),
    ],
    ids=["one node", "many factors and classes", "no labels"],
)
def test_unusual_data_shows_every_panel(open_page: Open, payload: dict[str, Any]) -> None:
    page = open_page(payload, "n=0")
    for name in ("training", "correlation", "confusion", "measures", "details"):
        page.press(f"#tab-{name}")
    for mode in page.evaluate(
        "[...document.querySelectorAll('#colour-modes input')].map(i=>i.value)"
    ):
        page.evaluate(f"document.querySelector('input[value={mode}]').click()")
        page.frame()
    page.key("ArrowLeft")
    page.press("#theme")


def test_colours_follow_the_system_until_chosen(
    open_page: Open, usual_file: Path, tmp_path: Path
) -> None:
    page = open_page(usual_file, dark=True)
    page.screenshot(tmp_path / "dark.png")  # kept by pytest, to be looked at
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(16, 19, 23)"
    assert "t=" not in page.state()["link"]
    page.press("#theme")
    assert page.evaluate(ground) == "rgb(244, 243, 239)"
    assert "t=light" in page.state()["link"]
    page.screenshot(tmp_path / "light.png")


def test_a_narrow_window_needs_no_sideways_scrolling(page: Page, tmp_path: Path) -> None:
    for width in (1000, 390):
        page.resize(width, 800)
        for _ in range(2):  # the size is noticed in one frame and drawn in the next
            page.frame()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        box = page.evaluate(
            "document.getElementById('graph-view').getBoundingClientRect().toJSON()"
        )
        assert box["width"] > 350
        page.click(*page.node(5))
        assert page.state()["node"] >= 0
        page.screenshot(tmp_path / f"{width}.png")


def test_everything_that_takes_the_focus_has_a_name(page: Page) -> None:
    page.evaluate("lgdgcn.select(3)")
    for name in ("training", "confusion", "details"):
        page.press(f"#tab-{name}")
    page.send("Accessibility.enable")
    nodes = page.send("Accessibility.getFullAXTree")["nodes"]
    nameless = []
    for node in nodes:
        traits = {
            trait["name"]: trait["value"].get("value") for trait in node.get("properties", [])
        }
        role = node.get("role", {}).get("value")
        if traits.get("focusable") and role != "RootWebArea" and not node["name"]["value"]:
            nameless.append(role)
    assert nameless == []
    roles = [node.get("role", {}).get("value") for node in nodes]
    assert {"table", "tab", "combobox", "slider", "application", "status"} <= set(roles)
