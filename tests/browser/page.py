#!/usr/bin/env python3
"""Drives the HTML page in Chromium: every control is clicked, no console error, hostile names are inert.

Usage: tests/browser/page.py PAGE-PROGRAM OUTPUT-FOLDER
PAGE-PROGRAM is the example `page` of iosched-report (`cargo build -p iosched-report --example page`); screenshots
and pages go into OUTPUT-FOLDER. Needs Debian's chromium and chromium-driver.
"""

import base64
import pathlib
import subprocess
import sys

from driver import Browser

PAGES = {
    "linux-4.12": ["published", "linux-4.12"],
    "linux-3.12": ["published", "linux-3.12"],
    "synthetic": ["synthetic", "4", "5"],
    "hostile": ["hostile"],
}

TEXT = """return [...document.querySelectorAll('section.w figure.t')].filter(e => !e.closest('[hidden]'))
    .map(e => e.innerText.replace(/\\s+/g, ' ').trim())"""
SHOWN = "return [...document.querySelectorAll('figure.t')].filter(e => !e.closest('[hidden]')).length"
TOTALS = """return [...document.querySelectorAll('#totals tbody tr')]
    .map(tr => [...tr.children].map(td => td.innerText.trim()))"""


def set_value(browser, name, value):
    browser.run(
        """const e = document.forms[0].elements[arguments[0]];
        e.type === 'checkbox' ? e.checked = arguments[1] : e.value = arguments[1];
        e.dispatchEvent(new Event('input', {bubbles: true}))""",
        name,
        value,
    )


def check(condition, message):
    if not condition:
        raise SystemExit(f"FAILED: {message}")


def quiet(browser, where):
    errors = browser.errors()
    check(not errors, f"{where}: {errors}")


def every_control(browser, name):
    """Clicks each box and button, chooses each option, types into each field; the page must stay in one piece."""
    before = browser.run(TEXT)
    for box in browser.run("return [...document.forms[0].elements].filter(e => e.type === 'checkbox' && e.name).map(e => e.name)"):
        for _ in range(2):
            browser.click(f"#form [name={box}]")
            quiet(browser, f"{name}: {box}")
    for select in browser.run("return [...document.querySelectorAll('#form select')].map(e => [e.name, [...e.options].map(o => o.value)])"):
        first = browser.run("return document.forms[0].elements[arguments[0]].value", select[0])
        for value in [*select[1], first]:
            set_value(browser, select[0], value)
            quiet(browser, f"{name}: {select[0]}={value}")
    browser.run("document.querySelector('#clear').click()")
    after = browser.run(TEXT)
    check(before == after, f"{name}: the script draws other text than the program: {[(a, b) for a, b in zip(before, after) if a != b][:2]}")
    for button in ("hi", "up", "down"):
        for run in (0, 1):
            browser.click(f"#runs [data-{button}='{run}']")
    browser.click("#runs [data-show='1']")
    browser.click("#invert")
    browser.click("#invert")
    browser.type("#runs [data-cost='0']", "12.5")
    for button in ("csv", "json"):
        browser.click(f"#{button}")
    quiet(browser, f"{name}: buttons")
    browser.click(".legend li")
    browser.click("#clear")
    check(browser.run("return location.hash") == "", f"{name}: reset clears the address")
    check(browser.run(TEXT) == before, f"{name}: reset restores the page")


def figures(browser):
    """Filters and means against the reference viewer's published figures (linux-3.12: three runs, eleven tests)."""
    set_value(browser, "hlc", True)
    check(browser.run(SHOWN) == 3, "little change leaves three tests")
    set_value(browser, "hlc", False)
    set_value(browser, "spr", True)
    notable = " ".join(browser.run("return [...document.querySelectorAll('section.w:not([hidden]) h3')].map(e => e.innerText)"))
    check("Read Compiled Tree" in notable and "Initial Create" in notable and browser.run(SHOWN) == 2, f"notable: {notable}")
    set_value(browser, "spr", False)
    set_value(browser, "hnr", True)
    check(browser.run(SHOWN) == 10, "one test is noisy")
    set_value(browser, "hnr", False)
    means = {row[0]: row[1] for row in browser.run(TOTALS)}
    check(means == {"Deadline": "150", "CFQ": "148.7", "Noop": "148.7"}, f"geometric means {means}")
    places = {row[0]: (row[3], row[4]) for row in browser.run(TOTALS)}
    check(places == {"Deadline": ("5", "4"), "CFQ": ("4", "4"), "Noop": ("2", "3")}, f"wins and losses {places}")
    set_value(browser, "oss", "php,apache")
    check(browser.run(SHOWN) == 2, "filter by title")
    set_value(browser, "noss", "PHP")
    check(browser.run(SHOWN) == 1, "and not")
    browser.click("#clear")
    set_value(browser, "a", "0")
    set_value(browser, "b", "1")
    set_value(browser, "ftt", True)
    faster = browser.run(SHOWN)
    check(0 < faster < 11, f"only where A is better: {faster}")
    set_value(browser, "ftt", False)
    set_value(browser, "nor", "b")
    top = browser.run("return [...document.querySelectorAll('figure.t')].every(f => [...f.querySelectorAll('.num')].some(e => e.innerText.split('\\n')[0] === '1'))")
    check(top, "normalised to the best, one bar of each chart is 1")
    address = browser.run("return location.href")
    state = browser.run(TEXT)
    browser.open("about:blank")
    browser.open(address)
    check(browser.run(TEXT) == state, "the address holds the state")
    browser.click("#clear")
    quiet(browser, "figures")


def pictures(browser, name, out):
    emulate = lambda scheme: browser.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    for scheme in ("light", "dark"):
        emulate(scheme)
        browser.screenshot(out / f"{name}-{scheme}.png", whole=True)
    emulate("light")
    browser.cdp("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=2, mobile=True)
    wide = browser.run("return document.documentElement.scrollWidth")
    check(wide <= 391, f"{name}: on a phone the page is {wide} px wide")
    browser.screenshot(out / f"{name}-phone.png", whole=True)
    browser.cdp("Emulation.clearDeviceMetricsOverride")
    pdf = browser.cdp("Page.printToPDF", printBackground=False)["data"]
    (out / f"{name}.pdf").write_bytes(base64.b64decode(pdf))


def main():
    program, out = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    for name, words in PAGES.items():
        subprocess.run([program, *words, str(out / f"{name}.html")], check=True)
    browser = Browser()
    try:
        for name in PAGES:
            browser.open((out / f"{name}.html").as_uri())
            quiet(browser, name)
            every_control(browser, name)
            check(browser.run("return window.hacked === undefined && !document.querySelector('img')"), f"{name}: a name became code")
            if name == "linux-3.12":
                figures(browser)
            pictures(browser, name, out)
            print(f"ok {name}")
        browser.open((out / "synthetic.html").as_uri())
        for kind, value in (("kind", "v"), ("kind", "l"), ("grp", "w")):
            set_value(browser, kind, value)
            browser.screenshot(out / f"synthetic-{kind}-{value}.png", whole=True)
        set_value(browser, "kind", "")
        set_value(browser, "a", "0")
        set_value(browser, "b", "3")
        set_value(browser, "dif", True)
        set_value(browser, "sdt", True)
        browser.screenshot(out / "synthetic-difference.png", whole=True)
        quiet(browser, "views")
    finally:
        browser.close()
    browser = Browser(javascript=False)
    try:
        browser.open((out / "synthetic.html").as_uri())
        browser.screenshot(out / "synthetic-no-script.png", whole=True)
        quiet(browser, "without a script")
    finally:
        browser.close()
    print("ok all")


if __name__ == "__main__":
    main()
