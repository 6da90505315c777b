//! A headless Chromium, driven over its debugging pipe: no driver, no port, no library.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// A browser that says nothing for so long is stuck; only a broken one takes a fraction of it.
const PATIENCE: Duration = Duration::from_secs(300);

const SWITCHES: [&str; 14] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--window-size=1300,1000",
    "--remote-debugging-pipe",
];

/// The browser of this machine, by its usual names.
pub(crate) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    std::env::split_paths(&path)
        .flat_map(|dir| names.map(|n| dir.join(n)))
        .find(|program| program.is_file())
}

/// A browser with one tab.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: Option<String>,
    last: u64,
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts the program; what it prints goes to `log`.
    pub(crate) fn start(program: &Path, log: &Path) -> Browser {
        let profile = tempfile::tempdir().unwrap();
        // The browser reads commands from descriptor 3 and writes answers to 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >&2", "sh"])
            .arg(program)
            .args(SWITCHES)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .env("HOME", profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(log).unwrap())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let out = child.stdout.take().unwrap();
        let (send, from) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(out).split(0) {
                let parsed = message.ok().and_then(|m| serde_json::from_slice(&m).ok());
                if parsed.is_none_or(|m| send.send(m).is_err()) {
                    return;
                }
            }
        });
        let mut browser = Browser {
            child,
            to,
            from,
            session: None,
            last: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(String::from);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Accessibility.enable"] {
            browser.call(domain, json!({}));
        }
        browser
    }

    /// One command and its result; panics on the browser's error.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.ask(method, params).unwrap_or_else(|e| panic!("{method}: {e}"))
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if let Some(s) = &self.session {
            message["sessionId"] = json!(s);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).expect("the browser runs");
        loop {
            let answer = self.receive();
            if answer["id"] == self.last {
                let error = &answer["error"];
                return if error.is_null() {
                    Ok(answer["result"].clone())
                } else {
                    Err(error.clone())
                };
            }
        }
    }

    fn receive(&mut self) -> Value {
        let message = self.from.recv_timeout(PATIENCE).expect("the browser answers");
        if message["method"].is_string() {
            self.events.push(message.clone());
        }
        message
    }

    /// Waits for an event that fits, among those that came already, too.
    pub(crate) fn wait(&mut self, method: &str, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let at = self.events.iter().position(|e| e["method"] == method && fits(&e["params"]));
            if let Some(i) = at {
                return self.events.remove(i)["params"].clone();
            }
            self.receive();
        }
    }

    /// Opens an address and waits until it is loaded.
    pub(crate) fn open(&mut self, url: &str) {
        self.events.retain(|e| e["method"] != "Page.loadEventFired");
        // Away first: only the part behind the # may differ, and that alone loads nothing.
        for address in ["about:blank", url] {
            let answer = self.call("Page.navigate", json!({ "url": address }));
            assert!(answer["errorText"].is_null(), "{address}: {answer}");
            self.wait("Page.loadEventFired", |_| true);
        }
    }

    /// The value of an expression.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", params);
        let problem = &answer["exceptionDetails"];
        assert!(problem.is_null(), "{expression}: {problem}");
        answer["result"]["value"].clone()
    }

    /// The value of an expression; `None` while the page is loading itself again.
    pub(crate) fn try_eval(&mut self, expression: &str) -> Option<Value> {
        let params = json!({ "expression": expression, "returnByValue": true });
        let answer = self.ask("Runtime.evaluate", params).ok()?;
        answer["exceptionDetails"].is_null().then(|| answer["result"]["value"].clone())
    }

    pub(crate) fn number(&mut self, expression: &str) -> f64 {
        self.eval(expression).as_f64().unwrap_or_else(|| panic!("{expression} is no number"))
    }

    pub(crate) fn text(&mut self, expression: &str) -> String {
        self.eval(expression).as_str().unwrap_or_else(|| panic!("{expression} is no text")).into()
    }

    pub(crate) fn texts(&mut self, expression: &str) -> Vec<String> {
        let value = self.eval(expression);
        let list = value.as_array().unwrap_or_else(|| panic!("{expression} is no list"));
        list.iter().map(|v| v.as_str().unwrap_or_default().to_string()).collect()
    }

    /// Presses the mouse on the first match, which must be there to be seen and not be covered.
    pub(crate) fn click(&mut self, selector: &str) {
        let place = self.eval(&format!(
            "(() => {{ const e = document.querySelector({selector:?});
                if (!e) return 'absent';
                e.scrollIntoView({{ block: 'center', behavior: 'instant' }});
                const r = e.getClientRects()[0];
                if (!r) return 'not shown';
                const x = r.x + r.width / 2, y = r.y + r.height / 2, hit = document.elementFromPoint(x, y);
                return e === hit || e.contains(hit) || hit && hit.contains(e) && hit.closest('label') ? [x, y] : 'covered'; }})()"
        ));
        let at = place.as_array().unwrap_or_else(|| panic!("{selector}: {place}"));
        for kind in ["mousePressed", "mouseReleased"] {
            let event =
                json!({ "type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Types into the first match, as from a keyboard.
    pub(crate) fn type_into(&mut self, selector: &str, text: &str) {
        self.click(selector);
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Presses a key: `Tab`, `Enter`, ` `, `/`, …
    pub(crate) fn key(&mut self, key: &str) {
        let (code, number) = match key {
            "Tab" => ("Tab", 9),
            "Enter" => ("Enter", 13),
            "ArrowDown" => ("ArrowDown", 40),
            "Escape" => ("Escape", 27),
            "/" => ("Slash", 191),
            _ => ("Space", 32),
        };
        let text = match key {
            "Enter" => "\r",
            " " => " ",
            "/" => "/",
            _ => "",
        };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "code": code, "text": text,
                "windowsVirtualKeyCode": number });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Exceptions, console messages and browser messages at the level of a warning or above, since last asked.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        // The answer to this comes after all that was said before.
        self.eval("0");
        let complaint = |e: &Value| {
            let p = &e["params"];
            let serious = |level: &Value| ["warning", "error", "assert"].iter().any(|w| level == w);
            match e["method"].as_str() {
                Some("Runtime.exceptionThrown") => Some(p["exceptionDetails"].to_string()),
                Some("Runtime.consoleAPICalled") if serious(&p["type"]) => Some(p.to_string()),
                Some("Log.entryAdded") if serious(&p["entry"]["level"]) => Some(p.to_string()),
                _ => None,
            }
        };
        let out = self.events.iter().filter_map(complaint).collect();
        self.events.retain(|e| complaint(e).is_none());
        out
    }

    /// The whole page down to 6,000 pixels.
    pub(crate) fn screenshot(&mut self, file: &Path) {
        let size = self.call("Page.getLayoutMetrics", json!({}))["cssContentSize"].clone();
        let height = size["height"].as_f64().unwrap().clamp(1.0, 6_000.0);
        let clip = json!({ "x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1 });
        let params = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let picture = self.call("Page.captureScreenshot", params);
        std::fs::write(file, base64(picture["data"].as_str().unwrap())).unwrap();
    }

    /// The page as it is printed.
    pub(crate) fn print(&mut self, file: &Path) {
        let pdf = self
            .call("Page.printToPDF", json!({ "printBackground": true, "preferCSSPageSize": true }));
        std::fs::write(file, base64(pdf["data"].as_str().unwrap())).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its own processes end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn base64(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => Some(u32::from(c - b'A')),
        b'a'..=b'z' => Some(u32::from(c - b'a') + 26),
        b'0'..=b'9' => Some(u32::from(c - b'0') + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for four in text.as_bytes().chunks(4) {
        let known: Vec<u32> = four.iter().filter_map(|c| value(*c)).collect();
        let all = known.iter().zip([18, 12, 6, 0]).fold(0, |n, (v, shift)| n | v << shift);
        out.extend(&all.to_be_bytes()[1..known.len().max(1)]);
    }
    out
}
