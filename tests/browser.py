"""Pages in the system's Chromium, driven through a pipe by the DevTools protocol. No browser is downloaded.

A test asks for `CHROMIUM` and skips with `WITHOUT` where there is none.
"""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WITHOUT = "no Chromium on this machine: install the package `chromium` to look at pages"
LIMIT = 60  # seconds for an answer
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip


class Page:
    """One page of a running browser. `errors`: what it threw, logged as an error, or could not load."""

    def __init__(self, read, write):
        self._read, self._write, self._left = read, write, b""
        self._count, self._events, self.session, self.errors = 0, [], None, []

    def ask(self, method, **params):
        """The result of a DevTools command."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        return self._until(lambda said: said.get("id") == self._count)["result"]

    def wait(self, method):
        """Wait for an event, which may have come before the answer to the command that brought it."""
        if method not in self._events:
            self._until(lambda said: said.get("method") == method)

    def open(self, path, width=1280, height=900, dark=False, query=""):
        """Load a file, in a window of so many CSS pixels. query: what stands behind a question mark in its address."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self._events.clear()
        self.ask("Page.navigate", url=Path(path).resolve().as_uri() + query)
        self.wait("Page.loadEventFired")

    def run(self, script):
        """The value of a JavaScript expression, as JSON; a promise's value once it is there."""
        said = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in said:
            raise AssertionError(f"{script}: {said['exceptionDetails']['exception'].get('description')}")
        return said["result"].get("value")

    def screenshot(self, path, whole=True):
        """Write what is seen, or the whole page, as a PNG."""
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def pdf(self, path):
        """Write the page as it is printed."""
        Path(path).write_bytes(base64.b64decode(self.ask("Page.printToPDF", preferCSSPageSize=True)["data"]))

    def _until(self, wanted):
        end = time.monotonic() + LIMIT
        while True:
            while b"\0" not in self._left:
                if not select.select([self._read], [], [], max(0.0, end - time.monotonic()))[0]:
                    raise TimeoutError(f"Chromium did not answer within {LIMIT} s")
                more = os.read(self._read, 1 << 20)
                if not more:
                    raise EOFError("Chromium has ended")
                self._left += more
            message, _, self._left = self._left.partition(b"\0")
            said = json.loads(message)
            self._note(said)
            if "error" in said:
                raise RuntimeError(said["error"]["message"])
            if wanted(said):
                return said

    def _note(self, said):
        about = said.get("params", {})
        self._events.append(said.get("method"))
        if said.get("method") == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif said.get("method") == "Runtime.consoleAPICalled" and about["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(x.get("value", x.get("description"))) for x in about["args"]))
        elif said.get("method") == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.errors.append(about["entry"]["text"])


@contextlib.contextmanager
def browser():
    """A page of a browser that is started here and ended here."""
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # Chromium reads commands from descriptor 3 and answers on descriptor 4
        process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", CHROMIUM, *FLAGS,
             f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in), os.close(theirs_out)
        try:
            page = Page(ours_in, ours_out)
            target = page.ask("Target.createTarget", url="about:blank")["targetId"]
            page.session = page.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log"):
                page.ask(f"{domain}.enable")
            yield page
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(ours_in), os.close(ours_out)


def page_errors(path, width=1280, script=None):
    """What goes wrong in a page of that width: console errors, images that are missing, text wider than the window.

    script: an expression of JavaScript that is a list of further faults, empty where all is well.
    """
    with browser() as page:
        page.open(path, width)
        return [*page.errors, *faults(page), *(page.run(script) or [] if script else [])]


def faults(page):
    """Images that are missing and what is wider than the window, in the page that is open."""
    return page.run(
        """(async () => {
        await Promise.all([...document.images].map((image) => image.decode().catch(() => 0)));
        const found = [...document.images].filter((image) => !image.naturalWidth)
            .map((image) => "no image: " + (image.alt || image.src.slice(0, 80)));
        const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
        return wide > 0 ? [...found, `${wide} pixels wider than the window`] : found;
    })()"""
    )


def small_pictures(page):
    """Pictures of content that are narrower than 100 pixels, in the page that is open; icons and badges aside."""
    return page.run(
        """(() => [...document.querySelectorAll("article img:not(.toggler)")]
        .filter((image) => image.getClientRects().length && !image.closest(".sd-badge"))
        .filter((image) => image.getBoundingClientRect().width < 100)
        .map((image) => `${Math.round(image.getBoundingClientRect().width)} pixels: ${image.alt || image.src}`))()"""
    )


def cut_off(page):
    """What stands beyond the right edge of the window and in no box that scrolls, in the page that is open."""
    return page.run(
        """(async () => {
        if (window.MathJax) await MathJax.startup.promise;
        await new Promise((next) => setTimeout(next));
        const scrolls = (one) => ["auto", "scroll"].includes(getComputedStyle(one).overflowX);
        const boxed = (one) => one && one.tagName !== "ARTICLE" && (scrolls(one) || boxed(one.parentElement));
        return [...document.querySelectorAll("article *:not(mjx-assistive-mml, mjx-assistive-mml *)")]
            .filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !boxed(one))
            .filter((one) => ![...one.children].some((x) => x.getBoundingClientRect().right > innerWidth + 1))
            .map((one) => `cut off: ${one.tagName} ${one.textContent.slice(0, 40)}`);
    })()"""
    )


def broken_words(page):
    """Words that stand on two lines, in the page that is open: runs of letters and digits outside of code blocks."""
    return page.run(
        """(() => {
        const found = [], range = document.createRange();
        const page = document.querySelector("article") || document.body;
        const walker = document.createTreeWalker(page, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
            const node = walker.currentNode;
            if (node.parentElement.closest("pre, script, style, svg, mjx-container")) continue;
            range.selectNodeContents(node);
            if (range.getClientRects().length < 2) continue;
            for (const word of node.data.matchAll(/[\\p{L}\\p{N}]{2,}/gu)) {
                range.setStart(node, word.index);
                range.setEnd(node, word.index + word[0].length);
                const tops = [...range.getClientRects()].filter((x) => x.width > 0).map((x) => x.top);
                if (Math.max(...tops) - Math.min(...tops) > 3) found.push(word[0]);
            }
        }
        return found;
    })()"""
    )
