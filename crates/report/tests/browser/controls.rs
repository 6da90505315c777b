//! The page's controls.

use serde_json::json;

use super::Stage;

/// Titles, units and rows of all charts that are shown, as text.
const TEXT: &str =
    "[...document.querySelectorAll('section.w figure.t')].filter(e => !e.closest('[hidden]'))
    .map(e => e.innerText.replace(/\\s+/g, ' ').trim())";
/// Charts that are shown.
const SHOWN: &str =
    "[...document.querySelectorAll('figure.t')].filter(e => !e.closest('[hidden]')).length";
/// The table of totals by heading.
const TOTALS: &str = "(() => { const shown = (q) => [...document.querySelectorAll(q)].filter(e => !e.hidden).map(e => e.innerText.trim());
    const head = shown('#totals thead th');
    return [...document.querySelectorAll('#totals tbody tr')].map((tr, i) => shown(`#totals tbody tr:nth-child(${i + 1}) > *`)
        .map((text, k) => head[k] + '=' + text).join('; ')); })()";
/// A number that differs when anything that is seen differs.
const LOOK: &str = "(() => { let h = 2166136261;
    const take = (t) => { for (let i = 0; i < t.length; i++) h = Math.imul(h ^ t.charCodeAt(i), 16777619); };
    take(document.body.className);
    for (const e of document.querySelectorAll('main *')) {
        const r = e.getClientRects()[0];
        if (r) take(e.tagName + (e.getAttribute('class') || '') + (e.getAttribute('d') || '') + [r.x + scrollX, r.y + scrollY, r.width, r.height].map(Math.round).join());
    }
    take(document.querySelector('main').innerText + document.querySelector('#shown').textContent);
    return h; })()";

/// Opens all groups of controls.
pub(crate) fn open_all(stage: &mut Stage) {
    stage
        .browser
        .eval("document.querySelectorAll('#side details').forEach(e => { e.open = true; })");
}

/// Gives a control a value, as a person's choice would.
pub(crate) fn set(stage: &mut Stage, name: &str, value: &str) {
    stage.browser.eval(&format!(
        "(() => {{ const e = document.forms[0].elements[{name:?}];
            if (e.type === 'checkbox') e.checked = {value}; else e.value = {value};
            e.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"
    ));
    stage.quiet(&format!("{name} = {value}"));
}

fn clear(stage: &mut Stage) {
    stage.browser.click("#clear");
    assert_eq!(stage.browser.text("location.hash"), "", "reset clears the address");
}

/// The script draws the same text as the program wrote.
pub(crate) fn redraws_the_same(stage: &mut Stage, name: &str) {
    let written = stage.browser.texts(TEXT);
    assert!(!written.is_empty(), "{name}");
    open_all(stage);
    clear(stage);
    let drawn = stage.browser.texts(TEXT);
    for (w, d) in written.iter().zip(&drawn) {
        assert_eq!(w, d, "{name}");
    }
    assert_eq!(written.len(), drawn.len(), "{name}");
    stage.quiet(name);
}

/// Clicks each box and button, chooses each option, types into each field. Each must change what is seen, and
/// resetting must bring the first look back.
pub(crate) fn every_control(stage: &mut Stage) {
    open_all(stage);
    stage.browser.click("#clear");
    let first = stage.browser.number(LOOK);
    boxes(stage);
    choices(stage);
    fields(stage);
    runs(stage);
    downloads(stage);
    clear(stage);
    assert_eq!(stage.browser.number(LOOK), first, "reset brings everything back");
    assert_eq!(stage.browser.eval("document.querySelectorAll('.hi').length"), 0);
}

/// What must be chosen before a control has something to do.
fn prepare(stage: &mut Stage, control: &str) {
    match control {
        "ftt" | "dif" => {
            set(stage, "a", "'0'");
            set(stage, "b", "'1'");
        }
        "ppd" => {
            stage.browser.type_into("#runs [data-cost='0']", "12.5");
        }
        "rev" => set(stage, "rro", "'n'"),
        "clg" => {
            set(stage, "kind", "'l'");
            set(stage, "cts", "true");
            set(stage, "all", "true");
        }
        _ => {}
    }
}

fn boxes(stage: &mut Stage) {
    let names = stage.browser.texts(
        "[...document.forms[0].elements].filter(e => e.type === 'checkbox' && e.name).map(e => e.name)",
    );
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        prepare(stage, &name);
        let before = stage.browser.number(LOOK);
        let hash = stage.browser.text("location.hash");
        stage.browser.click(&format!("#form [name={name}]"));
        stage.quiet(&name);
        assert_ne!(stage.browser.number(LOOK), before, "{name} changes nothing");
        assert_ne!(stage.browser.text("location.hash"), hash, "{name} is not in the address");
        stage.browser.click(&format!("#form [name={name}]"));
        stage.quiet(&name);
        assert_eq!(stage.browser.number(LOOK), before, "{name}, and back");
        clear(stage);
    }
}

fn choices(stage: &mut Stage) {
    let options = stage.browser.texts(
        "[...document.querySelectorAll('#form select')].flatMap(e => [...e.options].filter(o => !o.selected).map(o => e.name + '=' + o.value))",
    );
    // Those that agree with the look that is there, or need company.
    let alike = ["a=", "b=", "rro=d", "rro=n", "rro=p", "sro=", "suite=", "grp=s", "nor="];
    for option in options {
        let (name, value) = option.split_once('=').unwrap();
        let before = stage.browser.number(LOOK);
        set(stage, name, &format!("{value:?}"));
        let same = stage.browser.number(LOOK) == before;
        assert!(!same || alike.iter().any(|a| option.starts_with(a)), "{option} changes nothing");
        clear(stage);
    }
}

fn fields(stage: &mut Stage) {
    for name in ["oss", "noss"] {
        let before = stage.browser.number(SHOWN);
        stage.browser.type_into(&format!("#form [name={name}]"), "workload 01, startup");
        stage.quiet(name);
        let after = stage.browser.number(SHOWN);
        assert!(0.0 < after && after < before, "{name}: {after} of {before}");
        clear(stage);
    }
}

fn runs(stage: &mut Stage) {
    let order = "[...document.querySelectorAll('#totals tbody th')].map(e => e.innerText.trim())";
    let before = stage.browser.texts(order);
    for button in ["[data-up='1']", "[data-down='1']"] {
        stage.browser.click(&format!("#runs {button}"));
        stage.quiet(button);
        if button.contains("up") {
            assert_eq!(stage.browser.texts(order)[0], before[1], "moved up");
        }
    }
    assert_eq!(stage.browser.texts(order), before, "moved up and down");
    stage.browser.click("#runs [data-show='1']");
    assert_eq!(stage.browser.texts(order).len(), before.len() - 1, "hidden");
    stage.browser.click("#invert");
    assert_eq!(stage.browser.texts(order), before[1..2], "inverted");
    stage.browser.click("#invert");
    for click in ["#runs [data-hi='0']", ".legend li[data-r='2']"] {
        stage.browser.click(click);
    }
    assert_eq!(stage.browser.text("location.hash").matches("hi=0.2").count(), 1, "highlighted");
    let address = stage.browser.text("location.href");
    let look = stage.browser.number(LOOK);
    stage.browser.open(&address);
    open_all(stage);
    assert_eq!(stage.browser.number(LOOK), look, "the address holds the state");
    clear(stage);
    // Two runs that are left are compared without being chosen.
    for r in 2..before.len() {
        stage.browser.click(&format!("#runs [data-show='{r}']"));
    }
    set(stage, "dif", "true");
    assert!(stage.browser.number("document.querySelectorAll('#difference tbody tr').length") > 5.0);
    clear(stage);
}

/// The buttons give files that hold what they say.
fn downloads(stage: &mut Stage) {
    let dir = stage.dir.join("downloads");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let allow = json!({ "behavior": "allow", "downloadPath": dir, "eventsEnabled": true });
    stage.browser.call("Browser.setDownloadBehavior", allow);
    for (button, name) in
        [("#csv", "iosched.csv"), ("#json", "iosched.json"), ("a[download]", "iosched-summary.csv")]
    {
        stage.browser.click(button);
        stage.browser.wait("Browser.downloadProgress", |p| p["state"] == "completed");
        stage.quiet(button);
        let text = std::fs::read_to_string(dir.join(name)).unwrap();
        if name.ends_with("json") {
            let data: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert!(data["tests"].as_array().unwrap().len() > 10);
        } else {
            assert!(text.starts_with("device,scheduler,") && text.lines().count() > 50, "{name}");
        }
    }
}

/// Pictures of the views that are not there from the start.
pub(crate) fn views(stage: &mut Stage) {
    for (name, value) in [("kind", "v"), ("kind", "x"), ("kind", "l"), ("grp", "w")] {
        set(stage, name, &format!("{value:?}"));
        stage.browser.screenshot(&stage.dir.join(format!("synthetic-{name}-{value}.png")));
        clear(stage);
    }
    set(stage, "a", "'0'");
    set(stage, "b", "'3'");
    set(stage, "dif", "true");
    set(stage, "sdt", "true");
    stage.browser.screenshot(&stage.dir.join("synthetic-difference.png"));
    stage.quiet("views");
}

fn column(stage: &mut Stage, head: &str) -> Vec<String> {
    let rows = stage.browser.texts(TOTALS);
    let of = |row: &String| {
        let cell = row.split("; ").find_map(|c| c.strip_prefix(head)?.strip_prefix('='));
        cell.unwrap_or_else(|| panic!("no {head} in {row}")).to_string()
    };
    rows.iter().map(of).collect()
}

/// Filters and means against the reference viewer's figures for linux-3.12 (three runs, eleven tests).
pub(crate) fn figures(stage: &mut Stage) {
    open_all(stage);
    for (filter, left) in [("hlc", 3.0), ("spr", 2.0), ("hnr", 10.0), ("hni", 11.0)] {
        set(stage, filter, "true");
        assert_eq!(stage.browser.number(SHOWN), left, "{filter}");
        if filter == "spr" {
            let titles = stage.browser.texts(TEXT.replace("figure.t", "h3").as_str()).join("\n");
            assert!(titles.contains("Read Compiled Tree") && titles.contains("Initial Create"));
        }
        clear(stage);
    }
    assert_eq!(column(stage, "run"), ["Deadline", "CFQ", "Noop"]);
    assert_eq!(column(stage, "geometric mean"), ["150", "148.7", "148.7"]);
    assert_eq!(column(stage, "wins"), ["5", "4", "2"]);
    assert_eq!(column(stage, "losses"), ["4", "4", "3"]);
    set(stage, "rol", "true");
    let compile = "[...document.querySelectorAll('section.w')].find(e => e.innerText.includes('Test: Compile'))
        .querySelector('[data-r=\"0\"] .num').innerText";
    let value: f64 = stage.browser.text(compile).parse().unwrap();
    assert!((value - 71.15).abs() < 0.01, "without the outlier {value}");
    clear(stage);
    set(stage, "oss", "'php,apache'");
    assert_eq!(stage.browser.number(SHOWN), 2.0, "titles with these words");
    set(stage, "noss", "'PHP'");
    assert_eq!(stage.browser.number(SHOWN), 1.0, "and without that");
    clear(stage);
    set(stage, "a", "'0'");
    set(stage, "b", "'1'");
    set(stage, "ftt", "true");
    let faster = stage.browser.number(SHOWN);
    assert!(0.0 < faster && faster < 11.0, "only where A is better: {faster}");
    set(stage, "ftt", "false");
    for (to, ends) in [("b", "Math.max"), ("w", "Math.min")] {
        set(stage, "nor", &format!("{to:?}"));
        let one = format!(
            "[...document.querySelectorAll('figure.t')].every(f => {ends}(...[...f.querySelectorAll('.num')].map(e => parseFloat(e.firstChild.textContent))) === 1)"
        );
        assert_eq!(stage.browser.eval(&one), true, "normalised to {to}");
    }
    clear(stage);
}

/// Names for screen readers, order and reach of the keyboard, contrast.
pub(crate) fn accessible(stage: &mut Stage) {
    // The first Tab reaches the link that skips the controls.
    stage.browser.key("Tab");
    let first = "document.activeElement.className + ' ' + (document.activeElement.getClientRects()[0].x >= 0)";
    assert_eq!(stage.browser.text(first), "skip true", "the skip link is first, and seen");
    open_all(stage);
    keys(stage);
    names(stage);
    let charts = "[...document.querySelectorAll('.pictures svg')].every(e => e.querySelector('title').textContent)
        && [...document.querySelectorAll('.pictures')].every(p => p.querySelector('table'))
        && [...document.querySelectorAll('figure.overview')].every(f => f.querySelector('details.alt table'))";
    assert_eq!(stage.browser.eval(charts), true, "every picture has a name, every chart a table");
    for scheme in ["light", "dark"] {
        stage.browser.scheme(scheme);
        let poor = stage.browser.texts(CONTRAST);
        assert!(poor.is_empty(), "{scheme}: too little contrast: {poor:#?}");
    }
    stage.quiet("accessible");
}

/// A legend and a box by the keyboard alone.
fn keys(stage: &mut Stage) {
    stage.browser.eval("document.querySelector('.legend li').focus()");
    stage.browser.key("Enter");
    assert_eq!(stage.browser.text("location.hash"), "#hi=0", "a legend by Enter");
    stage.browser.eval("document.querySelector('.legend li').focus()");
    stage.browser.key(" ");
    assert_eq!(stage.browser.text("location.hash"), "", "and off by the space bar");
    stage.browser.eval("document.forms[0].elements.hni.focus()");
    stage.browser.key(" ");
    assert_eq!(stage.browser.text("location.hash"), "#hni=1", "a box by the space bar");
    stage.browser.click("#clear");
}

/// Every control has a name.
fn names(stage: &mut Stage) {
    let tree = stage.browser.call("Accessibility.getFullAXTree", json!({}));
    let mut seen = 0;
    for node in tree["nodes"].as_array().unwrap() {
        let role = node["role"]["value"].as_str().unwrap_or_default();
        let control =
            ["button", "checkbox", "combobox", "textbox", "searchbox", "spinbutton", "link"];
        if control.contains(&role) && node["ignored"] != true {
            seen += 1;
            let name = node["name"]["value"].as_str().unwrap_or_default();
            assert!(!name.trim().is_empty(), "a {role} without a name: {node}");
        }
    }
    assert!(seen > 40, "{seen} controls");
}

/// Texts whose contrast is below WCAG's 4.5 : 1.
const CONTRAST: &str = "(() => {
    const rgb = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
    const lum = (c) => { const [r, g, b] = c.map((x) => { x /= 255; return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const under = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] > 0.99) return c; }
        return rgb(getComputedStyle(document.documentElement).backgroundColor); };
    const out = new Set(), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let n; n = walk.nextNode();) {
        const e = n.parentElement;
        if (!n.data.trim() || !e.getClientRects().length || getComputedStyle(e).opacity === '0' || e.closest('script, style, .sr, option')) continue;
        const style = getComputedStyle(e), ink = e.closest('svg') ? style.fill : style.color;
        const [a, b] = [lum(rgb(ink).slice(0, 3)), lum(under(e).slice(0, 3))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) out.add(((a + 0.05) / (b + 0.05)).toFixed(2) + ' ' + e.tagName + '.' + e.className + ' ' + n.data.trim().slice(0, 30));
    }
    return [...out].slice(0, 20); })()";
