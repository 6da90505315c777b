"""The few WebDriver commands the page's tests need, over chromedriver, with Python's own library only."""

import base64
import json
import re
import subprocess
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """A headless Chromium."""

    def __init__(self, *, javascript=True, dark=False, width=1300, height=1000):
        self.process = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                self.port = int(found[1])
                break
        args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},{height}"]
        if dark:
            args.append("--force-dark-mode")
        prefs = {} if javascript else {"profile.managed_default_content_settings.javascript": 2}
        options = {"args": args, "prefs": prefs}
        capabilities = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        value = self.post("/session", {"capabilities": {"alwaysMatch": capabilities}}, bare=True)
        self.session = value["sessionId"]

    def post(self, path, body, *, bare=False):
        """One command; raises with the driver's message."""
        path = path if bare else f"/session/{self.session}{path}"
        data = json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def open(self, url):
        self.post("/url", {"url": url})

    def run(self, script, *args):
        return self.post("/execute/sync", {"script": script, "args": list(args)})

    def click(self, selector):
        """A real click on the first match, scrolled into view."""
        element = self.post("/element", {"using": "css selector", "value": selector})[ELEMENT]
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", {ELEMENT: element})
        self.post(f"/element/{element}/click", {})

    def type(self, selector, text):
        element = self.post("/element", {"using": "css selector", "value": selector})[ELEMENT]
        self.post(f"/element/{element}/value", {"text": text})

    def cdp(self, command, **params):
        return self.post("/goog/cdp/execute", {"cmd": command, "params": params})

    def errors(self):
        """What the console said at level SEVERE or WARNING since last asked."""
        log = self.post("/se/log", {"type": "browser"})
        return [entry["message"] for entry in log if entry["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, path, *, whole=False):
        """The window, or the whole page down to 6000 px."""
        params = {"format": "png"}
        if whole:
            size = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}
            params |= {"captureBeyondViewport": True, "clip": clip}
        path.write_bytes(base64.b64decode(self.cdp("Page.captureScreenshot", **params)["data"]))

    def close(self):
        try:
            request = urllib.request.Request(f"http://127.0.0.1:{self.port}/session/{self.session}", method="DELETE")
            urllib.request.urlopen(request, timeout=30).close()
        finally:
            self.process.terminate()
            self.process.wait(timeout=30)
