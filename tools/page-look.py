#!/usr/bin/env python3
"""Look at pages in a headless browser: tools/page-look.py [--shots DIR] PAGE.html...

Each page is laid out at widths of 400 and 1400 pixels, light and dark. A line for everything that is wrong: a message
of the console, a request, a page that is wider than the window, text of too little contrast (WCAG AA: 4.5 to 1, large
text 3), a picture without a title. Status 1 then; 3 when there is no browser that runs here. --shots keeps pictures.
$FPA_CHROMIUM names the browser; else chromium, chromium-browser or google-chrome. The browser is driven through its
DevTools pipe: Python's own library is enough."""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

WIDTHS = (400, 1400)
SCHEMES = ("light", "dark")
SECONDS = 60

# What a page says of itself: its width, texts of little contrast, pictures without a title.
LOOK = """(() => {
  const wrong = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    const wide = [...document.querySelectorAll('body *')].find(e => e.getBoundingClientRect().right > root.clientWidth + 1
        && !e.closest('.scroll'));
    wrong.push(`is ${root.scrollWidth} pixels wide, because of ${wide ? wide.outerHTML.slice(0, 90) : '?'}`);
  }
  const parse = c => { const n = c.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const part = v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; };
  const light = c => .2126 * part(c[0]) + .7152 * part(c[1]) + .0722 * part(c[2]);
  const paper = parse(getComputedStyle(document.body).backgroundColor);
  const told = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || e.closest('title,style')) continue;
    const s = getComputedStyle(e);
    const ink = parse(e.closest('svg') ? s.fill : s.color);
    const [a, b] = [light(ink), light(paper)].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05), size = parseFloat(s.fontSize);
    const large = size >= 24 || (size >= 18.66 && s.fontWeight >= 700);
    const kind = `${s.color} ${s.fill} ${large}`;
    if (ratio < (large ? 3 : 4.5) && !told.has(kind)) {
      told.add(kind);
      wrong.push(`has a contrast of ${ratio.toFixed(2)}: ${walker.currentNode.data.trim().slice(0, 40)}`);
    }
  }
  for (const svg of document.querySelectorAll('svg'))
    if (!svg.querySelector('title')) wrong.push('has a picture without a title');
  return JSON.stringify({wrong, height: root.scrollHeight});
})()"""


class Browser:
    """One browser process, and one tab of it."""

    def __init__(self, program, profile):
        self.to_read, to_browser = os.pipe()
        from_browser, self.to_write = os.pipe()
        words = [program, "--headless=new", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage",
                 "--hide-scrollbars", "--no-default-browser-check", "--disable-background-networking",
                 f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
        if os.geteuid() == 0:
            words.insert(1, "--no-sandbox")  # Chromium refuses root with it

        def adopt():  # the browser reads descriptor 3 and writes to 4
            high = [os.dup2(fd, at) for fd, at in ((from_browser, 60), (to_browser, 61))]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=adopt)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.events = b"", 0, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = None
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")

    def message(self):
        while b"\0" not in self.buffer:
            more = os.read(self.to_read, 1 << 16)
            if not more:
                raise OSError("the browser ended")
            self.buffer += more
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def ask(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if getattr(self, "session", None):
            request["sessionId"] = self.session
        os.write(self.to_write, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise OSError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def wait(self, method):
        while not any(event["method"] == method for event in self.events):
            answer = self.message()
            if "method" in answer:
                self.events.append(answer)

    def close(self):
        self.process.kill()
        self.process.wait()


def event_text(event, page):
    """What an event tells that is wrong, or None."""
    kind, of = event["method"], event["params"]
    if kind == "Runtime.consoleAPICalled":
        return "writes to the console: " + str(of["args"][:1])
    if kind == "Runtime.exceptionThrown":
        return "throws " + of["exceptionDetails"]["text"]
    if kind == "Log.entryAdded":
        return f"{of['entry']['level']}: {of['entry']['text']}"
    if kind == "Network.requestWillBeSent" and of["request"]["url"] != page and not of["request"]["url"].startswith("data:"):
        return "asks for " + of["request"]["url"]
    return None


def look(browser, path, shots):
    page = path.resolve().as_uri()
    wrong = []
    for width in WIDTHS:
        for scheme in SCHEMES:
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            browser.ask("Emulation.setDeviceMetricsOverride", **size)
            browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            browser.events = []
            browser.ask("Page.navigate", url=page)
            browser.wait("Page.loadEventFired")
            found = json.loads(browser.ask("Runtime.evaluate", expression=LOOK)["result"]["value"])
            texts = found["wrong"] + [text for event in browser.events if (text := event_text(event, page))]
            wrong += [f"{path.name}, {width} pixels, {scheme}: {text}" for text in texts]
            if shots:
                size["height"] = found["height"]
                browser.ask("Emulation.setDeviceMetricsOverride", **size)
                data = browser.ask("Page.captureScreenshot", format="png")["data"]
                shot = pathlib.Path(shots) / f"{path.stem}-{width}-{scheme}.png"
                shot.write_bytes(base64.b64decode(data))
    return wrong


def main(words):
    shots = None
    if words[:1] == ["--shots"]:
        shots, words = words[1], words[2:]
        os.makedirs(shots, exist_ok=True)
    if not words:
        print(__doc__, file=sys.stderr)
        return 2
    for word in words:
        if not os.path.exists(word):
            print(f"page-look: {word}: there is no such page", file=sys.stderr)
            return 2
    names = [os.environ["FPA_CHROMIUM"]] if os.environ.get("FPA_CHROMIUM") else \
        ["chromium", "chromium-browser", "google-chrome"]
    program = next((found for name in names if (found := shutil.which(name))), None)
    if not program:
        print("page-look: no browser: " + ", ".join(names), file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory(prefix="fpac-look-", ignore_cleanup_errors=True) as profile:
        try:
            browser = Browser(program, profile)
        except OSError as error:
            print(f"page-look: {program} does not run here: {error}", file=sys.stderr)
            return 3
        try:
            wrong = [text for word in words for text in look(browser, pathlib.Path(word), shots)]
        finally:
            browser.close()
    print("\n".join(wrong) if wrong else f"page-look: {len(words)} pages, nothing is wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
