"""A small driver of Chromium: the DevTools protocol over two pipes, nothing else needed."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

__all__ = ["Chromium", "Page", "find_chromium"]

# the browser reads commands from descriptor 3 and writes answers to 4
LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); "
    "os.execv(sys.argv[3], sys.argv[3:])"
)
FLAGS = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--mute-audio",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--force-color-profile=srgb",
]


def find_chromium() -> str | None:
    names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
    return next(filter(None, map(shutil.which, names)), None)


def above_standard(descriptor: int) -> int:
    """Move a descriptor out of the way of 3 and 4."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10)
    os.close(descriptor)
    return moved


class Chromium:
    """A headless browser; one process for many pages."""

    def __init__(self, program: str) -> None:
        self.profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        commands, self.writing = map(above_standard, os.pipe())
        self.reading, answers = map(above_standard, os.pipe())
        flags = [*FLAGS, f"--user-data-dir={self.profile.name}"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")  # which root cannot have
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(commands), str(answers), program, *flags],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self.buffer = b""
        self.number = 0
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Give a command and wait for its answer; events that come meanwhile are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.writing, data) :]
        deadline = time.monotonic() + 60
        while True:
            answer = self.receive(deadline)
            if answer.get("id") != self.number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.reading], [], [], max(0, deadline - time.monotonic()))
            part = os.read(self.reading, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError("Chromium does not answer")
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path, fragment: str = "", **options: Any) -> "Page":
        return Page(self, path, fragment, **options)

    def close(self) -> None:
        try:
            self.send("Browser.close")
            self.process.wait(10)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.writing)
        os.close(self.reading)
        self.profile.cleanup()


class Page:
    """One tab with one page, in a browser context of its own.

    Args:
        browser: The browser.
        path: HTML file.
        fragment: What follows ``#`` in its address.
        size: Width and height of the window.
        dark: Whether the system prefers dark colours.
        before: Script to run in the page before its own.
    """

    def __init__(
        self,
        browser: Chromium,
        path: Path,
        fragment: str = "",
        *,
        size: tuple[int, int] = (1200, 800),
        dark: bool = False,
        before: str = "",
    ) -> None:
        self.browser = browser
        self.context = browser.send("Target.createBrowserContext")["browserContextId"]
        target = browser.send(
            "Target.createTarget", url="about:blank", browserContextId=self.context
        )["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.resize(*size)
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.send("Emulation.setEmulatedMedia", features=features)
        if before:
            self.send("Page.addScriptToEvaluateOnNewDocument", source=before)
        self.send("Page.navigate", url=path.as_uri() + (f"#{fragment}" if fragment else ""))
        self.wait_for("window.lgdgcn && lgdgcn.ready")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.send(method, self.session, **parameters)

    def events(self, method: str) -> list[dict[str, Any]]:
        return [
            event["params"]
            for event in self.browser.events
            if event.get("sessionId") == self.session and event.get("method") == method
        ]

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, exceptions, violations of the policy."""
        self.evaluate("0")  # whatever was under way has arrived after this
        said = [
            str(event["args"])
            for event in self.events("Runtime.consoleAPICalled")
            if event["type"] in ("error", "warning", "assert")
        ]
        said += [str(event) for event in self.events("Runtime.exceptionThrown")]
        said += [event["entry"]["text"] for event in self.events("Log.entryAdded")]
        # Chromium itself, when a script reads the drawing back: only the screenshots do
        return [text for text in said if "GPU stall due to ReadPixels" not in text]

    def evaluate(self, expression: str) -> Any:
        answer = self.send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def state(self) -> dict[str, Any]:
        return self.evaluate("lgdgcn.state()")

    def wait_for(self, expression: str, seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not self.evaluate(f"Boolean({expression})"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"never true: {expression}; {self.complaints()}")
            time.sleep(0.02)

    def frame(self) -> None:
        """Wait until everything asked for so far is drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(done))")

    def resize(self, width: int, height: int) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def text(self, selector: str) -> str:
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def middle(self, selector: str) -> tuple[float, float]:
        chosen = json.dumps(selector)
        box = self.evaluate(
            f"(() => {{ const chosen = document.querySelector({chosen});"
            "chosen.scrollIntoView({block: 'nearest'});"
            "return chosen.getBoundingClientRect().toJSON(); })()"
        )
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def node(self, node: int, view: int = 0) -> tuple[float, float]:
        """Where a node is drawn in the window."""
        left, top = self.evaluate(f"lgdgcn.place({node}, {view})")
        box = self.evaluate("document.getElementById('stage').getBoundingClientRect().toJSON()")
        return box["x"] + left, box["y"] + top

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float, modifiers: int = 0) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1, modifiers=modifiers)
        self.frame()

    def press(self, selector: str) -> None:
        """Click the middle of an element."""
        self.click(*self.middle(selector))

    def drag(self, corners: list[tuple[float, float]], modifiers: int = 0) -> None:
        """Press at the first corner, pass the others, let go at the last."""
        button = {"button": "left", "clickCount": 1, "modifiers": modifiers}
        self.mouse("mousePressed", *corners[0], **button)
        for corner in corners[1:]:
            self.mouse("mouseMoved", *corner, buttons=1, **button)
        self.mouse("mouseReleased", *corners[-1], **button)
        self.frame()

    def key(self, key: str) -> None:
        more = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.frame()

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)
        self.frame()

    def screenshot(self, path: Path) -> None:
        self.frame()
        data = self.send("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        self.browser.send("Target.disposeBrowserContext", browserContextId=self.context)
