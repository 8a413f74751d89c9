"""The page as text: one file, a tight policy, and data that stays data. Browsers come later."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

from lgdgcn.explorer.page import to_page

HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "\u2028\u2029",
    "__proto__",
    "\ud800",  # half a letter
    "&lt;/title>",
    "\\1 \\g<0>",
]


class Elements(HTMLParser):
    """Scripts and styles with their text, policies, and every address that could be loaded."""

    def __init__(self, page):
        super().__init__(convert_charrefs=False)
        self.texts, self.policy, self.addresses, self.open = [], [], [], None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.addresses += [given[name] for name in ("src", "href") if name in given]
        assert not [name for name in given if name.startswith("on") or name == "style"]
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy.append(given["content"])
        self.open = (tag, given) if tag in ("script", "style") else None
        if self.open:
            self.texts.append([tag, given, ""])

    def handle_data(self, text):
        if self.open:
            self.texts[-1][2] += text

    def handle_endtag(self, tag):
        self.open = None


def hash_of(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_only_the_pages_own_script_and_style_may_run():
    elements = Elements(to_page({"title": "t"}))
    (style,) = [text for tag, _, text in elements.texts if tag == "style"]
    (script,) = [text for tag, given, text in elements.texts if tag == "script" and not given]
    (policy,) = elements.policy
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules == {
        "default-src": "'none'",
        "script-src": hash_of(script),
        "style-src": hash_of(style),
        "img-src": "data:",
        "connect-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert len(style) > 100
    assert len(script) > 100
    assert all(address.startswith(("#", "data:")) for address in elements.addresses)


def test_the_policy_comes_before_everything_it_rules():
    page = to_page({"title": "t"})
    assert (
        page.index("Content-Security-Policy")
        < re.search("<(script|style|link|title)", page).start()
    )
    assert page.index("charset") < 200


def test_hostile_names_come_through_as_they_are():
    payload = {
        "title": HOSTILE[0],
        "ids": HOSTILE,
        "classes": ["a" * 10**6],
        "nothing": float("nan"),
    }
    page = to_page(payload)
    elements = Elements(page)
    (data,) = [text for _, given, text in elements.texts if given.get("id") == "data"]
    assert json.loads(data) == {**payload, "nothing": None}
    assert not set(data) & set("<>&\u2028\u2029")
    assert data.isascii()
    assert "<img" not in page
    assert "<title>&lt;/script&gt;" in page


def test_equal_payloads_give_equal_pages():
    assert to_page({"title": "t", "x": 1}) == to_page({"title": "t", "x": 1})
