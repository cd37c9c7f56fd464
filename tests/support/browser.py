"""A browser for the tests: Chromium without a window, spoken to over two pipes, nothing installed.

Chromium reads commands of the DevTools protocol from file descriptor 3 and writes answers to 4,
each a JSON text that ends in a zero byte.
"""

import base64
import fcntl
import itertools
import json
import os
import select
import signal
import tempfile
import time
from pathlib import Path

import numpy as np

KEYS = {"Enter": 13, "Space": 32, "ArrowDown": 40, "ArrowRight": 39, "Tab": 9, "Escape": 27}
TEXTS = {"Enter": "\r", "Space": " "}
PATIENCE = 240.0  # seconds for an answer, of a busy machine too
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)

READABLE = 4.5  # contrast of text that WCAG asks for

# Contrast of an element's text with what is behind it.
CONTRAST = """
(selector => {
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = node => {
    const color = rgb(getComputedStyle(node).backgroundColor);
    return color.length === 4 && color[3] === 0 ? behind(node.parentElement) : color;
  };
  const node = document.querySelector(selector);
  const style = getComputedStyle(node);
  const ink = light(rgb(node.namespaceURI.includes("svg") ? style.fill : style.color));
  const paper = light(behind(node.closest("svg") ? node.closest("div") : node));
  return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
})(%r)
"""


class Browser:
    """One page in one process."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs, self.commands = (_away(fd) for fd in os.pipe())
        self.answers, theirs_too = (_away(fd) for fd in os.pipe())
        command = [program, *FLAGS, f"--user-data-dir={self.profile.name}", "about:blank"]
        self.process = os.posix_spawn(
            program,
            command,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, theirs, 3),
                (os.POSIX_SPAWN_DUP2, theirs_too, 4),
            ],
            setpgroup=0,
        )
        os.close(theirs)
        os.close(theirs_too)
        self.numbers = itertools.count(1)
        self.session = None
        self.unread = b""
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def close(self):
        os.close(self.commands)  # Chromium ends with the pipe
        for _ in range(50):
            if os.waitpid(self.process, os.WNOHANG)[0]:
                break
            time.sleep(0.1)
        else:
            os.killpg(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        os.close(self.answers)
        self.profile.cleanup()

    def call(self, method, **arguments):
        """Result of a command."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": arguments}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _read(self):
        until = time.monotonic() + PATIENCE
        while b"\0" not in self.unread:
            ready, _, _ = select.select([self.answers], [], [], max(0.0, until - time.monotonic()))
            part = os.read(self.answers, 2**16) if ready else b""
            if not part:
                raise RuntimeError("the browser does not answer.")
            self.unread += part
        text, self.unread = self.unread.split(b"\0", 1)
        return json.loads(text)

    def run(self, script):
        """Value of an expression in the page."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"]["description"])
        return found["result"].get("value")

    def open(self, place, width=1200, height=900, scheme="light"):
        """Open a file or an address, and wait until it is drawn."""
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media="", features=features)
        self.call("Page.navigate", url="about:blank")
        is_address = str(place).startswith("http")
        self.call("Page.navigate", url=place if is_address else Path(place).as_uri())
        self.wait("location.protocol !== 'about:' && document.readyState === 'complete'")
        self.settle()

    def wait(self, condition):
        """Wait until an expression in the page is true."""
        until = time.monotonic() + PATIENCE
        while not self.run(condition):
            assert time.monotonic() < until, f"never true: {condition}"
            time.sleep(0.02)

    def settle(self):
        """Wait until what has changed is drawn, and colors do not change any more."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        self.run(
            "Promise.allSettled(document.getAnimations()"
            ".filter(each => each instanceof CSSTransition)"
            ".map(each => each.finished)).then(() => 0)"
        )

    def complaints(self):
        """Errors and warnings of the console, policy violations, exceptions."""
        self.run("0")
        found = []
        for event in self.events:
            arguments = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(arguments["exceptionDetails"]["text"])
            elif event.get("method") == "Log.entryAdded":
                found.append(arguments["entry"]["text"])
            elif event.get("method") == "Runtime.consoleAPICalled":
                found.append(str(arguments["args"]))
        return found

    def click(self, selector):
        """Press the mouse in the middle of an element."""
        self.run(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")
        self.settle()
        box = self.run(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])"
            f"(document.querySelector({selector!r}).getBoundingClientRect())"
        )
        self.point("mouseMoved", *box)
        for kind in ("mousePressed", "mouseReleased"):
            self.point(kind, *box, button="left", clickCount=1)
        self.settle()

    def point(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def press(self, key):
        """Press and release a key."""
        code = KEYS[key]
        for kind in ("keyDown", "keyUp"):
            more = {"text": TEXTS[key]} if key in TEXTS and kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=TEXTS.get(key, key).replace("\r", "Enter"),
                code=key,
                windowsVirtualKeyCode=code,
                **more,
            )
        self.settle()

    def photograph(self, path, full=True):
        """Write a picture of the page, all of it or what the window shows."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        options = {"captureBeyondViewport": True, "clip": {**size, "scale": 1}} if full else {}
        found = self.call("Page.captureScreenshot", format="png", **options)
        Path(path).write_bytes(base64.b64decode(found["data"]))


def assert_painted(browser, picture, selector, n_elements):
    """Check that a picture of the whole page has a drawing where each of the elements is."""
    from matplotlib.image import imread

    pixels = np.rint(255 * imread(picture)[..., :3]).astype(int)
    boxes = browser.run(
        f"[...document.querySelectorAll({selector!r})].map(e => e.getBoundingClientRect())"
        ".map(({x, y, width, height}) => [x + scrollX, y + scrollY, width, height])"
    )
    assert len(boxes) == n_elements
    for x, y, width, height in np.rint(boxes).astype(int).tolist():
        inside = pixels[y : y + height, x : x + width].reshape(-1, 3)
        colours, counts = np.unique(inside, axis=0, return_counts=True)
        # Lines and text on a background: many colours, and no element that is empty or all ink.
        assert len(colours) > 10, (selector, x, y)
        assert 0.3 < counts.max() / counts.sum() < 0.995, (selector, x, y)


def _away(fd):
    """The same file under a number that is not in Chromium's way."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(fd)
    return moved
