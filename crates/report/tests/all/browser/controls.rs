//! The page's controls.

use serde_json::json;

use super::Stage;

/// Rows of the overview and of all strips that are shown, as text.
const TEXT: &str =
    "[...document.querySelectorAll('#mx tr, .strip tr')].filter(e => !e.closest('[hidden]'))
    .map(e => e.textContent.replace(/\\s+/g, ' ').trim())";
/// Measures that are shown.
const SHOWN: &str =
    "[...document.querySelectorAll('#mx tr[data-m]')].filter(e => !e.closest('[hidden]')).length";
/// The table of totals by heading.
const TOTALS: &str = "(() => { const head = [...document.querySelectorAll('#totals thead th')].map(e => e.textContent.trim());
    return [...document.querySelectorAll('#totals tbody tr')].map(tr => [...tr.children].map((e, k) => head[k] + '=' + e.textContent.trim()).join('; ')); })()";
/// A number that differs when anything that is seen differs.
const LOOK: &str = "(() => { let h = 2166136261;
    const take = (t) => { for (let i = 0; i < t.length; i++) h = Math.imul(h ^ t.charCodeAt(i), 16777619); };
    take(document.documentElement.className);
    for (const e of document.querySelectorAll('main *')) {
        if (e.closest('form') || e.closest('#answer')) continue;
        const r = e.getClientRects()[0], style = r && getComputedStyle(e);
        if (r) take(e.tagName + (e.getAttribute('class') || '') + (e.getAttribute('d') || '') + style.visibility + [r.x, r.width, r.height].map(Math.round).join());
    }
    document.querySelectorAll('main > section, main > div').forEach((e) => take(e.innerText));
    return h; })()";

/// Opens all folds.
pub(crate) fn open_all(stage: &mut Stage) {
    stage.browser.eval(
        "document.querySelectorAll('main details:not(.pop)').forEach(e => { e.open = true; })",
    );
}

fn pop(stage: &mut Stage, name: &str) {
    stage.browser.eval(&format!(
        "(() => {{ document.querySelectorAll('.pop').forEach(e => {{ e.open = false; }});
            const e = document.querySelector({name:?}), d = e && e.closest('.pop'); if (d) d.open = true; }})()"
    ));
}

fn press(stage: &mut Stage, selector: &str) {
    pop(stage, selector);
    stage.browser.click(selector);
    stage.quiet(selector);
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
    stage.browser.eval("document.querySelector('#undo').click()");
    assert_eq!(stage.browser.text("location.hash"), "", "reset clears the address");
}

/// The script draws the same text as the program wrote.
pub(crate) fn redraws_the_same(stage: &mut Stage, name: &str) {
    let written = stage.browser.texts(TEXT);
    assert!(!written.is_empty(), "{name}");
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
    stage
        .browser
        .eval("document.querySelectorAll('main .fold details').forEach(e => { e.open = true; })");
    clear(stage);
    let first = stage.browser.number(LOOK);
    boxes(stage);
    choices(stage);
    fields(stage);
    runs(stage);
    overview(stage);
    downloads(stage);
    clear(stage);
    pop(stage, "h1");
    // The measure that was opened is marked for a moment.
    stage
        .browser
        .eval("document.querySelectorAll('.flash').forEach(e => e.classList.remove('flash'))");
    assert_eq!(stage.browser.number(LOOK), first, "reset brings everything back");
    assert_eq!(stage.browser.eval("document.querySelectorAll('.hi').length"), 0);
}

/// What must be chosen before a control has something to do.
fn prepare(stage: &mut Stage, control: &str) {
    match control {
        "ftt" | "ftb" => {
            set(stage, "a", "'0'");
            set(stage, "b", "'1'");
        }
        "rev" => set(stage, "rro", "'n'"),
        "clg" => {
            set(stage, "kind", "'l'");
            set(stage, "all", "true");
        }
        _ => {}
    }
}

fn boxes(stage: &mut Stage) {
    let names = stage.browser.texts(
        "[...document.forms[0].elements].filter(e => e.type === 'checkbox' && e.name).map(e => e.name)",
    );
    assert!(names.len() > 14, "{names:?}");
    for name in names {
        prepare(stage, &name);
        let before = stage.browser.number(LOOK);
        let hash = stage.browser.text("location.hash");
        press(stage, &format!("#ctl [name={name}]"));
        assert_ne!(stage.browser.number(LOOK), before, "{name} changes nothing");
        assert_ne!(stage.browser.text("location.hash"), hash, "{name} is not in the address");
        press(stage, &format!("#ctl [name={name}]"));
        assert_eq!(stage.browser.number(LOOK), before, "{name}, and back");
        clear(stage);
    }
}

fn choices(stage: &mut Stage) {
    let options = stage.browser.texts(
        "[...document.querySelectorAll('#ctl select')].flatMap(e => [...e.options].filter(o => !o.selected).map(o => e.name + '=' + o.value))",
    );
    assert!(options.len() > 30, "{options:?}");
    // Those that agree with the look that is there, or need company.
    let alike = ["a=", "b=", "rro=d", "sro=u", "sro=t", "sro=l"];
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
        let selector = format!("#ctl [name={name}]");
        pop(stage, &selector);
        stage.browser.type_into(&selector, "workload 01, startup");
        stage.quiet(name);
        let after = stage.browser.number(SHOWN);
        assert!(0.0 < after && after < before, "{name}: {after} of {before}");
        clear(stage);
    }
}

/// Hiding, order, highlights, names, notes and costs, kept in the address.
fn runs(stage: &mut Stage) {
    let order = "[...document.querySelectorAll('#mx thead .sc')].map(e => e.textContent.trim())";
    let before = stage.browser.texts(order);
    press(stage, "#runs [data-up='1']");
    assert_eq!(stage.browser.texts(order)[0], before[1], "moved up");
    press(stage, "#runs [data-down='1']");
    assert_eq!(stage.browser.texts(order), before, "moved up and down");
    press(stage, "#runs [data-show='1']");
    assert_eq!(stage.browser.texts(order).len(), before.len() - 1, "hidden");
    press(stage, "#invert");
    assert_eq!(stage.browser.texts(order), before[1..2], "inverted");
    press(stage, "#invert");
    press(stage, "#runs [data-hi='0']");
    for (field, text) in [("name", "my <b>disk</b>"), ("note", "cold cache"), ("cost", "12.5")] {
        let selector = format!("#runs [data-{field}='2']");
        pop(stage, &selector);
        stage.browser.type_into(&selector, text);
        stage.quiet(field);
    }
    assert!(stage.browser.texts(order).iter().any(|n| n.contains("my <b>disk</b>")), "renamed");
    let marked =
        "document.querySelector('#mx thead sup').closest('th').title.includes('cold cache')";
    assert_eq!(stage.browser.eval(marked), true, "annotated");
    set(stage, "view", "'ppd'");
    let priced =
        "[...document.querySelectorAll('#mx td span')].filter(e => e.textContent !== '–').length";
    assert!(stage.browser.number(priced) > 3.0, "values per cost");
    let hash = stage.browser.text("location.hash");
    assert!(hash.contains("hi=0") && hash.contains("cold+cache"), "{hash}");
    let address = stage.browser.text("location.href");
    let text = stage.browser.texts(TEXT);
    stage.browser.open(&address);
    assert_eq!(stage.browser.texts(TEXT), text, "the address holds the state");
    clear(stage);
    set(stage, "a", "'0'");
    set(stage, "b", "'3'");
    let (list, rule) = ("#difference tbody tr", "#difference .sh p");
    let said = stage.browser.text(&format!("document.querySelector({rule:?}).textContent"));
    let rows = stage.browser.number(&format!("document.querySelectorAll({list:?}).length"));
    assert!(rows > 2.0 && said.contains(&format!("{rows} of")), "{said}");
    clear(stage);
    stage
        .browser
        .eval("document.querySelectorAll('main .fold details').forEach(e => { e.open = true; })");
}

/// Arrow keys and Enter in the overview, a click on a scheduler's name.
fn overview(stage: &mut Stage) {
    let focus = "(() => { const e = document.activeElement; return e.tagName + (e.parentNode.dataset.m || e.closest('[id]').id); })()";
    stage.browser.eval("document.querySelector('#mx td').focus()");
    let first = stage.browser.text(focus);
    stage.browser.key("ArrowDown");
    let second = stage.browser.text(focus);
    assert!(first.starts_with("TD") && second.starts_with("TD") && first != second, "{second}");
    stage.browser.key("Enter");
    let opened = stage.browser.text(focus);
    assert_eq!(opened, second.replacen("TD", "H3", 1), "Enter opens the measure");
    assert_eq!(stage.browser.text("location.hash.slice(1)"), second[2..], "and says so");
    stage.browser.eval("history.replaceState(null, '', location.pathname)");
    let before = stage.browser.number(LOOK);
    stage.browser.click("#mx th[data-b='2']");
    assert!(stage.browser.text("location.hash").contains("base=2"), "a name becomes the base");
    assert_ne!(stage.browser.number(LOOK), before);
    clear(stage);
}

/// The buttons give files that hold what they say.
fn downloads(stage: &mut Stage) {
    let dir = stage.dir.join("downloads");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let allow = json!({ "behavior": "allow", "downloadPath": dir, "eventsEnabled": true });
    stage.browser.call("Browser.setDownloadBehavior", allow);
    for (button, name) in [
        ("#csv", "iosched.csv"),
        ("#json", "iosched.json"),
        ("#sum", "iosched-summary.csv"),
        ("#txt", "iosched.txt"),
        ("#xml", "composite.xml"),
    ] {
        press(stage, button);
        stage.browser.wait("Browser.downloadProgress", |p| p["state"] == "completed");
        stage.quiet(button);
        let text = std::fs::read_to_string(dir.join(name)).unwrap();
        match name.rsplit_once('.').unwrap().1 {
            "json" => {
                let data: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert!(data["tests"].as_array().unwrap().len() > 10);
            }
            "xml" => {
                let read = iosched_results::pts::from_pts("composite.xml", &text).unwrap();
                assert!(read.runs.len() == 5 && read.tests.len() > 8, "{} tests", read.tests.len());
                let samples = read.tests.iter().flat_map(|t| &t.cells).map(|c| c.samples.len());
                assert_eq!(samples.max(), Some(5));
            }
            "txt" => assert!(text.contains("Read throughput") && text.contains(" n=5"), "{text}"),
            _ => assert!(
                text.starts_with("device,scheduler,") && text.lines().count() > 40,
                "{name}"
            ),
        }
    }
}

/// Pictures of the views that are not there from the start.
pub(crate) fn views(stage: &mut Stage) {
    for (name, value) in [("kind", "v"), ("kind", "x"), ("kind", "l"), ("view", "pct")] {
        set(stage, name, &format!("{value:?}"));
        stage.browser.screenshot(&stage.dir.join(format!("synthetic-{name}-{value}.png")));
        clear(stage);
    }
    // Vertical bars have a height even where other charts would be dots.
    set(stage, "kind", "'v'");
    let flat = "[...document.querySelectorAll('.vert tbody tr:not(.ax):not(.na)')].filter(e => e.getClientRects().length && !e.querySelector('.bar s')).length";
    assert_eq!(stage.browser.number(flat), 0.0, "columns without a bar");
    clear(stage);
    // A lost round leaves a gap, and the others stay where they are.
    set(stage, "kind", "'l'");
    set(stage, "all", "true");
    let moves = "Math.max(...[...document.querySelectorAll('svg.rounds path.l')].filter(e => e.getClientRects().length).map(e => (e.getAttribute('d').match(/M/g) || []).length))";
    let gaps = stage.browser.number(moves);
    set(stage, "clg", "true");
    assert!(gaps > 1.0 && stage.browser.number(moves) == 1.0, "{gaps} pieces, then one");
    clear(stage);
    set(stage, "a", "'0'");
    set(stage, "b", "'3'");
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
    for (filter, left) in [("hlc", 3.0), ("spr", 2.0), ("hnr", 10.0), ("hni", 11.0)] {
        set(stage, filter, "true");
        assert_eq!(stage.browser.number(SHOWN), left, "{filter}");
        if filter == "spr" {
            let titles = stage.browser.texts(TEXT).join("\n");
            assert!(titles.contains("Read Compiled Tree") && titles.contains("Initial Create"));
        }
        clear(stage);
    }
    let sorted = |mut v: Vec<String>| {
        v.sort();
        v
    };
    assert_eq!(sorted(column(stage, "run")), ["CFQ", "Deadline", "Noop"]);
    assert_eq!(sorted(column(stage, "geometric mean")), ["148.7", "148.7", "150"]);
    assert_eq!(sorted(column(stage, "wins")), ["2", "4", "5"]);
    assert_eq!(sorted(column(stage, "losses")), ["3", "4", "4"]);
    let compile =
        "[...document.querySelectorAll('.me')].find(e => e.innerText.startsWith('Compile'))
        .querySelector('tbody .v').firstChild.textContent";
    let with: f64 = stage.browser.text(compile).parse().unwrap();
    set(stage, "rol", "true");
    let without: f64 = stage.browser.text(compile).parse().unwrap();
    assert!((with - 75.9).abs() < 0.06 && (without - 71.15).abs() < 0.06, "{with}, {without}");
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
    clear(stage);
    for (to, ends) in [("best", "Math.max"), ("worst", "Math.min")] {
        set(stage, "view", &format!("{to:?}"));
        let one = format!(
            "[...document.querySelectorAll('#mx tr[data-m]')].every(tr => {ends}(...[...tr.querySelectorAll('td')].map(e => parseFloat(e.textContent))) === 1)"
        );
        assert_eq!(stage.browser.eval(&one), true, "normalised to the {to}");
    }
    clear(stage);
}

/// Names for screen readers, order and reach of the keyboard, contrast.
pub(crate) fn accessible(stage: &mut Stage) {
    // The first Tab reaches the link that skips the controls.
    stage.browser.key("Tab");
    let first = "document.activeElement.className + ' ' + (document.activeElement.getClientRects()[0].x >= 0)";
    assert_eq!(stage.browser.text(first), "skip true", "the skip link is first, and seen");
    keys(stage);
    open_all(stage);
    stage.browser.eval("document.querySelectorAll('.pop').forEach(e => { e.open = true; })");
    names(stage);
    let charts = "[...document.querySelectorAll('main svg')].every(e => e.closest('[aria-hidden]') || e.getAttribute('aria-hidden') || e.getAttribute('aria-label') || e.querySelector('title').textContent)
        && [...document.querySelectorAll('.strip')].every(e => e.querySelector('caption').textContent)
        && document.querySelector('#mx caption').textContent.length > 20";
    assert_eq!(stage.browser.eval(charts), true, "every picture and table has a name");
    for scheme in ["light", "dark"] {
        stage.browser.scheme(scheme);
        let poor = stage.browser.texts(CONTRAST);
        assert!(poor.is_empty(), "{scheme}: too little contrast: {poor:#?}");
    }
    stage.quiet("accessible");
}

/// A fold, a box and the pop-ups by the keyboard alone.
fn keys(stage: &mut Stage) {
    stage.browser.eval("document.querySelector('.pop summary').focus()");
    stage.browser.key("Enter");
    assert_eq!(stage.browser.eval("document.querySelector('.pop').open"), true, "Enter opens it");
    stage.browser.eval("document.forms[0].elements.hni.focus()");
    stage.browser.key(" ");
    assert_eq!(stage.browser.text("location.hash"), "#?hni=1", "a box by the space bar");
    stage.browser.key("Escape");
    assert_eq!(
        stage.browser.eval("document.querySelector('.pop').open"),
        false,
        "Escape closes it"
    );
    stage.browser.eval("document.activeElement.blur()");
    stage.browser.key("/");
    assert_eq!(stage.browser.text("document.activeElement.name"), "oss", "a slash filters");
    stage.browser.eval("document.querySelector('#undo').click()");
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

/// Texts that do not fit where they stand: cut by their box, or laid over the page's edge.
pub(crate) const CUT: &str = "(() => {
    const out = new Set();
    for (const e of document.querySelectorAll('main *, header *, footer *')) {
        if (!e.getClientRects().length || e.closest('.scroll, .mxw, .vh, select, svg, #ctl, .ax') || e.children.length && !e.matches('td, th, summary')) continue;
        const style = getComputedStyle(e), clipped = style.overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1;
        const beyond = e.getBoundingClientRect().right > document.documentElement.clientWidth + 1;
        if (clipped && !e.matches('summary small') || beyond) out.add(e.tagName + '.' + e.className + ' ' + e.textContent.trim().slice(0, 40));
    }
    for (const tr of document.querySelectorAll('.strip tbody tr:not(.ax):not(.na)')) {
        const cells = [...tr.children].filter((e) => e.getClientRects().length && e.textContent.trim());
        const boxes = cells.map((e) => { const r = document.createRange(); r.selectNodeContents(e); return r.getBoundingClientRect(); });
        boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
            if (a.right > b.left + 1 && b.right > a.left + 1 && a.bottom > b.top + 4 && b.bottom > a.top + 4) out.add('overlap: ' + tr.textContent.trim().slice(0, 60));
        }));
    }
    return [...out].slice(0, 12); })()";

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
        if (!n.data.trim() || !e.getClientRects().length || getComputedStyle(e).opacity === '0' || e.closest('script, style, .vh, option')) continue;
        const style = getComputedStyle(e), ink = e.closest('svg') ? style.fill : style.color;
        const [a, b] = [lum(rgb(ink).slice(0, 3)), lum(under(e).slice(0, 3))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) out.add(((a + 0.05) / (b + 0.05)).toFixed(2) + ' ' + e.tagName + '.' + e.className + ' ' + n.data.trim().slice(0, 30));
    }
    return [...out].slice(0, 20); })()";
