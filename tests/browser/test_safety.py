"""Names are text whatever is in them, and the page can load and send nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from .chromium import Chromium, Page
from .fake import fake_payload

Open = Callable[..., Page]

HOSTILE = [
    "</script><img src=x onerror=window.harmed=1>",
    "<svg onload=window.harmed=1>",
    "\u2028window.harmed=1\u2029",
    "__proto__",
    "constructor",
    "x" * 100_000,
    "';window.harmed=1//\\",
    "${window.harmed=1}",
    "<!--<script>",
    "",
    "\u202eevil\u0000\ud83d\ude00",
]


@pytest.fixture
def hostile() -> dict:
    ids = [f"{HOSTILE[i % len(HOSTILE)]}{i // len(HOSTILE) or ''}" for i in range(60)]
    payload = fake_payload(60, 120, classes=len(HOSTILE), ids=ids)
    numbers = payload["curves"][0]["terms"]["space"]
    payload |= dict.fromkeys(("title", "dataset", "model", "variant"), HOSTILE[0])
    payload["classes"] = HOSTILE
    payload["curves"][0]["terms"] = dict.fromkeys(HOSTILE, numbers)
    payload["measures"] = [
        {"name": name, "title": name, "value": 1, "low": None, "high": None, "untrained": None,
         "permuted": None, "better": name, "about": name} for name in HOSTILE
    ]  # fmt: skip
    payload["scores"] = dict.fromkeys(HOSTILE, 0.5)
    payload["warnings"] = list(HOSTILE)
    payload["unrouted"] = " ".join(HOSTILE)
    payload["factorNames"] = HOSTILE[:4]
    payload["about"] = [
        {"lines": HOSTILE[i : i + 3], "stability": HOSTILE[i], "stable": False} for i in range(4)
    ]
    return payload


def test_hostile_names_are_shown_as_text(open_page: Open, hostile: dict) -> None:
    page = open_page(hostile)
    for node in range(len(HOSTILE)):
        page.evaluate(f"lgdgcn.select({node})")
    page.evaluate("lgdgcn.select(0)")
    assert HOSTILE[0] in page.text("#node-card h3")
    page.evaluate("lgdgcn.selectEdge(0)")
    for name in ("factors", "training", "correlation", "confusion", "measures", "details"):
        page.press(f"#tab-{name}")
    page.press("#search")
    page.type("onerror")
    assert HOSTILE[0] in page.text("#matches")
    page.key("Enter")
    page.mouse("mouseMoved", *page.node(1))
    page.frame()
    assert page.evaluate("document.title") == HOSTILE[0]
    assert HOSTILE[0] in page.text("#title")
    assert HOSTILE[0] in page.text("#legend")
    assert page.evaluate("window.harmed") is None
    assert page.evaluate("document.querySelectorAll('img, svg[onload], script').length") == 2
    longest = "Math.max(...[...document.querySelectorAll('bdi')].map(n => n.textContent.length))"
    assert page.evaluate(longest) <= 2000
    assert page.evaluate("document.documentElement.scrollWidth") <= 1200


def test_a_class_called_proto_is_a_class(open_page: Open, hostile: dict) -> None:
    page = open_page(hostile)
    place = HOSTILE.index("__proto__")
    page.evaluate(f"document.querySelectorAll('#legend input')[{place}].click()")
    assert page.state()["hiddenClasses"] == [place]
    page.press("#search")
    page.type("__PROTO__")
    page.key("ArrowDown")
    page.key("Enter")
    assert page.state()["group"] == {"kind": "class", "label": place}


def test_the_policy_stops_scripts_styles_and_connections(
    chromium: Chromium, usual_file: Path
) -> None:
    page = chromium.open(usual_file)
    page.evaluate("""
      window.stopped = [];
      document.addEventListener('securitypolicyviolation', (event) => {
        stopped.push(event.effectiveDirective);
      });
      const script = document.createElement('script');
      script.textContent = 'window.harmed = 1';
      document.body.append(script);
      const add = (markup) => document.body.insertAdjacentHTML('beforeend', markup);
      add('<img src="data:," onerror="window.harmed = 2">');
      add('<b style="color: red">x</b>');
      add('<img src="https://example.org/x.png">');
      add('<iframe src="https://example.org/"></iframe>');
      fetch('https://example.org/').catch(() => 0);
      0
    """)
    wanted = [
        "script-src-elem",
        "script-src-attr",
        "style-src-attr",
        "img-src",
        "frame-src",
        "connect-src",
    ]
    page.wait_for(f"{wanted}.every((name) => stopped.includes(name))")
    refused = page.send(
        "Runtime.evaluate", expression="eval('1')", allowUnsafeEvalBlockedByCSP=False
    )
    assert "EvalError" in str(refused["exceptionDetails"])
    assert page.evaluate("window.harmed") is None
    page.close()


def test_the_page_asks_for_nothing_but_itself(page: Page, usual_file: Path) -> None:
    page.press("#tab-correlation")
    page.evaluate("lgdgcn.select(1)")
    asked = {event["request"]["url"] for event in page.events("Network.requestWillBeSent")}
    assert {url for url in asked if not url.startswith("data:")} == {usual_file.as_uri()}
