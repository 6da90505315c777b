"use strict";
// The page is complete without this script; it filters, sorts, rescales and draws bars again.
(() => {
const $ = (q, e = document) => e.querySelector(q), $$ = (q, e = document) => [...e.querySelectorAll(q)];
const D = JSON.parse($("#data").textContent), form = $("#form"), F = form.elements;
// What the form cannot hold: order, hidden and highlighted runs, costs.
const blank = () => ({ ord: D.runs.map((_, i) => i), hide: new Set(), hi: new Set(), cost: {} });
let S = blank();
const make = (tag, attrs = {}, ...kids) => {
  const e = document.createElement(tag);
  for (const k in attrs) if (attrs[k] != null) k.startsWith("--") ? e.style.setProperty(k, attrs[k]) : e.setAttribute(k, attrs[k]);
  e.append(...kids.filter((k) => k != null));
  return e;
};
// Numbers, by the same rules as the program that wrote the page.
const plain = (x) => {
  if (x === 0) return "0";
  if (!Number.isFinite(x)) return "–";
  const n = Math.min(6, Math.max(0, 3 - Math.floor(Math.log10(Math.abs(x)))));
  let [a, b] = x.toFixed(n).split(".");
  b = (b || "").replace(/0+$/, "");
  return a.replace(/\B(?=(\d{3})+$)/g, ",") + (b && "." + b);
};
const UNITS = { ns: [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]], "B/s": [[1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"], [1, "B/s"]] };
const scale = (top, unit) => {
  const t = Object.hasOwn(UNITS, unit) && UNITS[unit];
  return t ? t.find((u) => Math.abs(top) >= u[0]) || t[3] : [1, unit];
};
const change = (r) => {
  const p = (r - 1) * 100;
  if (Math.abs(p) >= 1000) return "×" + plain(r);
  if (Math.abs(p) < 0.05) return "±0 %";
  return (p < 0 ? "−" : "+") + Math.abs(p).toFixed(Math.abs(p) >= 9.95 ? 0 : 1) + " %";
};
const WORDS = { b: "better", w: "worse", n: "no measurable difference", e: "not enough data", i: "invalid", B: "better (exact)", W: "worse (exact)", N: "level (exact)" };
const sched = (r) => D.schedulers[D.runs[r].s];
const on = (n) => F[n].checked;
// The reference rule: samples farther than 1.5 SD from the mean are left out.
const mean = (v) => v.reduce((a, b) => a + b, 0) / v.length;
const deviation = (s) => { const m = mean(s); return Math.sqrt(s.reduce((a, x) => a + (x - m) ** 2, 0) / Math.max(1, s.length - 1)); };
const trimmed = (s) => {
  const m = mean(s), sd = deviation(s);
  const kept = s.filter((x) => Math.abs(x - m) <= 1.5 * sd);
  return kept.length ? mean(kept) : m;
};
const raw = (t, r) => {
  const c = t.v[r];
  if (c.v == null) return null;
  return on("rol") && !c.cens ? c.t ?? (c.s ? trimmed(c.s) : c.v) : c.v;
};
const shownRuns = () => S.ord.filter((r) => !S.hide.has(r));
// The factor from raw to shown values of a run: cost and normalisation; inverted where less is better.
const view = (t, runs) => {
  const paid = on("ppd");
  const priced = (r) => {
    const v = raw(t, r), c = S.cost[r];
    if (v == null) return null;
    return paid ? (c > 0 ? (t.b > 0 ? v / c : v * c) : null) : v;
  };
  const nor = F.nor.value;
  if (!nor) return { of: priced, unit: t.u + (paid ? (t.b > 0 ? " per cost" : " × cost") : ""), b: t.b, map: (r, x) => paid ? (t.b > 0 ? x / S.cost[r] : x * S.cost[r]) : x };
  const good = (x) => (t.b > 0 ? x : 1 / x);
  const all = runs.map(priced).filter((v) => v > 0).map(good);
  const ref = nor === "b" ? Math.max(...all) : nor === "w" ? Math.min(...all) : good(priced(+nor));
  const of = (r) => { const v = priced(r); return v > 0 && ref > 0 && Number.isFinite(ref) ? good(v) / ref : null; };
  return { of, unit: "", b: 1, norm: 1, map: (r, x) => (x > 0 && raw(t, r) ? of(r) * good(x) / good(raw(t, r)) : null) };
};
const baseOf = (r) => D.runs.findIndex((x) => x.d === D.runs[r].d && x.s === +F.base.value);
const verdict = (t, r) => {
  const b = baseOf(r), c = t.v[r];
  if (b < 0) return ["", ""];
  if (b === r) return ["base", ""];
  const letter = c.p ? c.p[b] : ".", x = raw(t, b), w = WORDS[letter] || "";
  return [(x > 0 ? change(raw(t, r) / x) + (w && " ") : "") + w, letter === "." ? "" : "v" + letter.toLowerCase()];
};
const words = (text) => text.toLowerCase().split(",").map((w) => w.trim()).filter(Boolean);
const beats = (t, a, b) => { const x = raw(t, a), y = raw(t, b); return x != null && y != null && (t.b > 0 ? x > y : x < y); };
const passes = (t) => {
  const w = D.workloads[t.w], f = (c) => t.f.includes(c), text = (w.t + " " + w.a + " " + t.t + " " + t.m).toLowerCase();
  const yes = words(F.oss.value), no = words(F.noss.value), a = F.a.value, b = F.b.value;
  return (f("h") || on("all")) && !(on("hnr") && f("n")) && !(on("hni") && f("i")) && !(on("hlc") && f("l")) && !(on("spr") && !f("*")) &&
    (!yes.length || yes.some((x) => text.includes(x))) && !no.some((x) => text.includes(x)) &&
    (F.suite.value === "" || w.s.includes(+F.suite.value)) && !(on("ftt") && a !== "" && b !== "" && !beats(t, +a, +b));
};
// Quartiles by linear interpolation; whiskers reach the smallest and the largest sample.
const boxPlot = (s, pc) => {
  const q = (p) => { const i = p * (s.length - 1), k = Math.floor(i); return s[k] + (i - k) * ((s[k + 1] ?? s[k]) - s[k]); };
  const at = [0, 0.25, 0.5, 0.75, 1].map((p) => pc(q(p)));
  return [make("s", { "--l": at[0], "--w": (at[4] - at[0]).toFixed(2) }), make("i", { class: "box", "--l": at[1], "--w": (at[3] - at[1]).toFixed(2) }), make("s", { class: "mid", "--l": at[2] })];
};
// Rows of bars for one test.
const rows = (t, runs, top, by, v) => runs.map((r) => {
  const c = t.v[r], x = v.of(r), cls = ["s" + (D.runs[r].s % 12)], pc = (y) => Math.min(100, Math.max(0, y / top * 100)).toFixed(1);
  const name = F.grp.value === "s" && D.devices.length > 1 ? D.devices[D.runs[r].d] : sched(r);
  const tr = make("tr", { "data-r": r }, make("th", { scope: "row" }, name));
  if (S.hi.has(r)) cls.push("hi");
  if (x == null) {
    tr.append(make("td", { class: "why", colspan: 3 }, c.v == null ? "incomplete: " + c.why : on("ppd") && !(S.cost[r] > 0) ? "no cost given" : "no figure"));
  } else {
    const box = F.kind.value === "x" && c.s && c.s.length > 2 && c.s.map((s) => v.map(r, s)).sort((p, q) => p - q);
    const div = make("div", {}, ...(box ? boxPlot(box, pc) : [make("i", { "--v": pc(x) })])), num = make("td", { class: "num" }, (c.cens ? ">" : "") + plain(x / by));
    if (c.lo != null && !on("rol")) {
      const [lo, hi] = [v.map(r, c.lo), v.map(r, c.hi)].sort((p, q) => p - q);
      if (lo != null && hi != null) {
        div.append(make("b", { "--l": pc(lo), "--w": (pc(hi) - pc(lo)).toFixed(2) }));
        div.title = `n = ${c.n}, 95 % CI ${plain(lo / by)} to ${plain(hi / by)}${c.how ? ` (${c.how})` : ""}`;
        num.append(make("small", {}, "±" + plain((hi - lo) / 2 / by)));
      }
    }
    (c.s || []).forEach((s, i) => { const y = v.map(r, s); if (y != null) div.append(make("u", { "--x": pc(y), class: (c.o || []).includes(i) ? "out" : null })); });
    const [text, shade] = verdict(t, r);
    if (shade) cls.push(shade);
    tr.append(make("td", { class: "track" }, div), num, make("td", { class: "ver" }, text));
  }
  tr.className = cls.join(" ");
  return tr;
});
const extent = (t, runs, v) => Math.max(0, ...runs.flatMap((r) => {
  const c = t.v[r], x = v.of(r);
  return x == null ? [0] : [x, ...(c.hi != null && !on("rol") ? [v.map(r, c.hi), v.map(r, c.lo)] : []), ...(c.s || []).map((s) => v.map(r, s))];
})) || 1;
const groups = (runs) => {
  if (F.grp.value !== "s" && D.devices.length < 2) return [["", runs]];
  const key = F.grp.value === "s" ? sched : (r) => D.devices[D.runs[r].d], m = new Map();
  if (F.grp.value === "s" && D.devices.length < 2) return [["", runs]];
  runs.forEach((r) => m.set(key(r), [...(m.get(key(r)) || []), r]));
  return [...m];
};
const bars = (parts, runs, vertical) => {
  const views = parts.map(([, t]) => view(t, runs)), top = Math.max(...parts.map(([, t], i) => extent(t, runs, views[i])));
  const unit = views[0].norm ? [1, "normalised"] : scale(top, views[0].unit);
  const table = make("table", { class: "bars" + (vertical ? " vert" : "") },
    make("thead", { class: "sr" }, make("tr", {}, ...["scheduler", "bar", "value", "against " + D.schedulers[+F.base.value]].map((h) => make("th", { scope: "col" }, h)))));
  parts.forEach(([head, t], i) => groups(runs).forEach(([g, rs]) => {
    const name = [head, g].filter(Boolean).join(" – ");
    table.append(make("tbody", {}, name && make("tr", { class: "group" }, make("th", { colspan: 4, scope: "colgroup" }, name)), ...rows(t, rs, top, unit[0], views[i])));
  }));
  return [table, (unit[1] ? unit[1] + ", " : "") + (views[0].b > 0 ? "more" : "less") + " is better"];
};
// Lines: one per run; over the options of a condensed graph, else over the repetitions.
const svg = (tag, attrs, text) => {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const k in attrs) e.setAttribute(k, attrs[k]);
  if (text != null) e.textContent = text;
  return e;
};
const lines = (parts, runs) => {
  const views = parts.map(([, t]) => view(t, runs)), many = parts.length > 1;
  const series = runs.map((r) => many ? parts.map((p, i) => views[i].of(r)) : (parts[0][1].v[r].s || [raw(parts[0][1], r)]).map((s) => s == null ? null : views[0].map(r, s)));
  const top = Math.max(...series.flat().filter((x) => x != null), 0) || 1, n = Math.max(...series.map((s) => s.length), 2);
  const unit = views[0].norm ? [1, "normalised"] : scale(top, views[0].unit);
  const X = (i) => 84 + i / (n - 1) * 530, Y = (y) => 226 - y / top * 210;
  const root = svg("svg", { viewBox: "0 0 640 280", class: "lines", role: "img", "aria-label": parts[0][1].t });
  for (let i = 0; i <= 4; i++) {
    const y = Y(top * i / 4);
    root.append(svg("path", { class: "rule", d: `M84 ${y}H620` }), svg("text", { x: 78, y: y + 4, "text-anchor": "end" }, plain(top * i / 4 / unit[0])));
  }
  for (let i = 0; i < n; i++) if (i % Math.ceil(n / 12) === 0) root.append(svg("text", { x: X(i), y: 246, "text-anchor": "middle" }, i + 1));
  root.append(svg("text", { x: 345, y: 272, "text-anchor": "middle" }, many ? "option, by its number below" : "repetition"));
  series.forEach((s, k) => {
    const r = runs[k], g = svg("g", { class: "s" + (D.runs[r].s % 12) + (S.hi.has(r) ? " hi" : ""), "data-r": r });
    let d = "";
    const bridge = on("clg");
    s.forEach((y, i) => { if (y != null) d += (d && (bridge || s[i - 1] != null) ? "L" : "M") + X(i).toFixed(1) + " " + Y(y).toFixed(1) + (s.length < 2 || s[i - 1] == null && s[i + 1] == null ? "h4" : ""); });
    g.append(svg("path", { class: "l", d }), svg("title", {}, D.runs[r].n));
    root.append(g);
  });
  const key = make("ul", { class: "legend" }, ...runs.map((r) => make("li", { "data-r": r, class: S.hi.has(r) ? "hi" : null }, make("i", { class: "dot s" + (D.runs[r].s % 12) }), D.runs[r].n)));
  const box = make("div", {}, key, root);
  if (many) box.append(make("ol", { class: "small" }, ...parts.map((p) => make("li", {}, p[0]))));
  return [box, unit[1] + (unit[1] ? ", " : "") + (views[0].b > 0 ? "more" : "less") + " is better"];
};
const FLAGS = [["n", "noisy"], ["i", "incomplete"], ["l", "little change"]];
const figure = (title, parts, runs, ids) => {
  const [body, unit] = F.kind.value === "l" ? lines(parts, runs) : bars(parts, runs, F.kind.value === "v");
  const tags = FLAGS.filter(([c]) => parts.some(([, t]) => t.f.includes(c))).map(([, w]) => make("span", { class: "tag" }, w));
  const cap = make("figcaption", {}, make("h4", {}, title), " ", make("span", {}, unit));
  tags.forEach((t) => cap.append(" ", t));
  return make("figure", { class: "t", "data-t": ids }, cap, body);
};
const sorters = {
  t: (x, y) => D.workloads[x.w].t.localeCompare(D.workloads[y.w].t) || x.t.localeCompare(y.t),
  q: (x, y) => (y.q || 0) - (x.q || 0),
  u: (x, y) => x.u.localeCompare(y.u),
};
const table = (head, body, caption) => make("div", { class: "scroll" }, make("table", { class: "flat" }, caption && make("caption", {}, caption),
  make("thead", {}, make("tr", {}, ...head.map((h) => make("th", { scope: "col" }, h)))),
  make("tbody", {}, ...body.map(([h, ...c]) => make("tr", {}, make("th", { scope: "row" }, h), ...c.map((x) => x instanceof Node ? x : make("td", {}, x)))))));
const complete = (t, runs) => runs.every((r) => raw(t, r) > 0);
const geo = (tests, runs) => {
  const c = tests.filter((t) => complete(t, runs));
  return [c.length, runs.map((r) => Math.exp(c.reduce((a, t) => a + Math.log(t.b > 0 ? raw(t, r) : 100 / raw(t, r)), 0) / c.length))];
};
const RATE = /\/|per|fps|bps|iops/i;
const totals = (tests, runs) => {
  const head = ["run"], cols = [], add = (h, f) => { head.push(h); cols.push(f); };
  const [n, g] = geo(tests, runs);
  if (on("sgm") && n > 1) add("geometric mean", (r, i) => plain(g[i]));
  if (on("shm")) {
    const units = [...new Set(tests.filter((t) => t.b > 0 && RATE.test(t.u)).map((t) => t.u))];
    units.forEach((u) => {
      const c = tests.filter((t) => t.u === u && t.b > 0 && complete(t, runs));
      if (c.length > 3) add("harmonic mean, " + u, (r) => { const x = c.length / c.reduce((a, t) => a + 1 / raw(t, r), 0), s = scale(x, u); return plain(x / s[0]) + " " + s[1]; });
    });
  }
  if (on("swl")) {
    const place = (sign) => runs.map((r) => tests.filter((t) => {
      const v = D.runs.map((_, i) => i).filter((i) => runs.includes(i) && t.v[i].v != null).map((i) => [i, sign * t.b * raw(t, i)]);
      return v.length && v.reduce((a, b) => (b[1] > a[1] ? b : a))[0] === r;
    }).length);
    const w = place(1), l = place(-1);
    add("wins", (r, i) => w[i]); add("losses", (r, i) => l[i]);
  }
  add("charts with a figure", (r) => tests.filter((t) => t.v[r].v != null).length + " of " + tests.length);
  add("trials", (r) => D.runs[r].trials);
  if (on("rdt")) { add("date", (r) => D.runs[r].date || "–"); add("duration", (r) => D.runs[r].dur ? plain(D.runs[r].dur) + " s" : "–"); }
  const t = table(head, runs.map((r, i) => [D.runs[r].n, ...cols.map((f) => String(f(r, i)))]), "Totals");
  $$("tbody tr", t).forEach((tr, i) => { tr.dataset.r = runs[i]; tr.classList.toggle("hi", S.hi.has(runs[i])); tr.firstChild.prepend(make("i", { class: "dot s" + (D.runs[runs[i]].s % 12) })); });
  t.firstChild.id = "totals";
  $("#totals").parentNode.replaceWith(t);
  const suites = $("#suites");
  suites.replaceChildren();
  if (on("sts")) {
    const body = D.suites.map((s, i) => [s, ...geo(tests.filter((t) => D.workloads[t.w].s.includes(i)), runs)]).filter((x) => x[1] > 1);
    suites.append(body.length ? table(["suite (charts)", ...runs.map((r) => D.runs[r].n)], body.map(([s, n, g]) => [`${s} (${n})`, ...g.map(plain)]), "Geometric means per suite") : make("p", { class: "small" }, "No suite has two complete charts."));
  }
};
const overview = (tests, runs) => $$("figure.overview").forEach((fig) => {
  const mine = runs.filter((r) => D.runs[r].d === +fig.dataset.d), ids = new Set(tests.map((t) => D.tests.indexOf(t)));
  fig.hidden = !mine.length;
  $$("[data-r]", fig).forEach((e) => { e.hidden = S.hide.has(+e.dataset.r); e.classList.toggle("hi", S.hi.has(+e.dataset.r)); });
  $$("tr[data-t]", fig).forEach((e) => { e.hidden = !ids.has(+e.dataset.t); });
});
const detailed = (tests, runs) => {
  const box = $("#detailed");
  box.hidden = !on("sdt");
  if (box.hidden) return;
  const body = tests.map((t) => {
    const v = runs.map((r) => raw(t, r)), known = v.filter((x) => x != null), top = Math.max(...known, 0), [by, u] = scale(top, t.u);
    const best = t.b > 0 ? top : Math.min(...known), worst = t.b > 0 ? Math.min(...known) : top;
    return [`${D.workloads[t.w].t}: ${t.t}${u && ` [${u}]`}`, ...runs.map((r, i) => {
      const c = t.v[r], x = v[i];
      if (x == null) return make("td", { class: "why" }, c.why || "–");
      const sd = c.sd ?? (c.s && !c.cens ? deviation(c.s) : null), more = sd != null ? ` SD ${plain(sd / by)} SE ${plain(sd / Math.sqrt(c.n) / by)}` : "";
      return make("td", { class: x === best ? "best" : x === worst ? "worst" : null }, (c.cens ? ">" : "") + plain(x / by) + " ", make("small", {}, `${plain((t.b > 0 ? x / best : best / x) * 100)} % n=${c.n}${more}`));
    })];
  });
  box.replaceChildren(make("h2", {}, "Detailed table"), table(["chart", ...runs.map((r) => D.runs[r].n)], body));
};
const difference = (tests, runs) => {
  const box = $("#difference"), two = F.a.value === "" && F.b.value === "" && runs.length === 2;
  const [a, b] = two ? runs.map(String) : [F.a.value, F.b.value];
  box.hidden = !on("dif");
  if (box.hidden) return;
  box.replaceChildren(make("h2", {}, "Difference"));
  if (a === "" || b === "" || a === b) return box.append(make("p", {}, "Choose two runs, A and B, or hide all but two."));
  const found = tests.map((t) => ({ t, x: raw(t, +a), y: raw(t, +b) })).map((o) => ({ ...o, q: o.x > 0 && o.y > 0 ? Math.log(o.t.b > 0 ? o.y / o.x : o.x / o.y) : null }));
  found.sort((p, q) => Math.abs(q.q || 0) - Math.abs(p.q || 0));
  const most = Math.max(0.02, ...found.map((o) => Math.abs(o.q || 0)));
  const body = found.map(({ t, x, y, q }) => {
    const c = t.v[+b], letter = c.p ? c.p[+a] : ".", w = WORDS[letter] || (D.runs[+a].d === D.runs[+b].d ? "" : "different devices, not judged");
    const name = `${D.workloads[t.w].t}: ${t.t}`;
    if (q == null) return [name, "–", "–", "", "incomplete"];
    const apart = change(Math.exp(Math.abs(q))).slice(1);
    const [by, u] = scale(Math.max(x, y), t.u), half = Math.abs(q) / most * 50;
    const cls = "wbWB".includes(letter) ? (q > 0 ? "up" : "down") : "flatc";
    const bar = make("i", { class: cls }); bar.style.left = (q > 0 ? 50 : 50 - half) + "%"; bar.style.width = half + "%";
    return [name, `${plain(x / by)} ${u}`, `${plain(y / by)} ${u}`, make("td", { class: "mid" }, make("div", {}, bar)), "wbWB".includes(letter) ? (q >= 0 ? "B better by " : "A better by ") + apart : apart + " apart" + (w ? ": " + w : "")];
  });
  const t = table(["chart", "A: " + D.runs[+a].n, "B: " + D.runs[+b].n, "A better ← → B better", "in words"], body);
  t.firstChild.classList.add("diff");
  box.append(make("p", { class: "small" }, "Bars in colour are significant, grey ones are not."), t);
};
const autoOrder = (tests) => {
  const o = F.rro.value, idx = D.runs.map((_, i) => i);
  if (o === "n") S.ord = idx.sort((x, y) => D.runs[x].n.localeCompare(D.runs[y].n));
  if (o === "d") S.ord = idx.sort((x, y) => D.runs[x].date.localeCompare(D.runs[y].date));
  if (o === "p") { const [, g] = geo(tests.filter((t) => complete(t, idx)), idx); S.ord = idx.sort((x, y) => (g[y] || 0) - (g[x] || 0)); }
  if (o && on("rev")) S.ord.reverse();
};
const runList = () => {
  const ul = $("#runs");
  S.ord.forEach((r) => ul.append($(`li[data-r="${r}"]`, ul)));
  $$("[data-show]", ul).forEach((e) => { e.checked = !S.hide.has(+e.dataset.show); });
  $$("[data-hi]", ul).forEach((e) => e.setAttribute("aria-pressed", S.hi.has(+e.dataset.hi)));
  $$("[data-cost]", ul).forEach((e) => { const v = S.cost[e.dataset.cost]; if (document.activeElement !== e) e.value = v ?? ""; });
};
const apply = () => {
  const tests = D.tests.filter(passes);
  autoOrder(tests);
  runList();
  const runs = shownRuns(), cls = document.body.classList;
  ["ci", "smp", "sig", "pct"].forEach((n) => cls.toggle("no" + n, !on(n)));
  cls.toggle("hasHi", S.hi.size > 0);
  $("#shown").textContent = `${tests.length} of ${D.tests.length} charts, ${runs.length} of ${D.runs.length} runs`;
  totals(tests, runs); overview(tests, runs); difference(tests, runs); detailed(tests, runs);
  const sro = sorters[F.sro.value], cond = on("cts") || F.grp.value === "w", drawn = $("#drawn"), apart = !!sro || cond;
  drawn.hidden = !apart;
  drawn.replaceChildren();
  const list = sro ? [...tests].sort(sro) : tests, id = (t) => D.tests.indexOf(t);
  if (apart) {
    const box = make("div", { class: "charts" });
    if (cond) {
      const m = new Map();
      list.forEach((t) => m.set(t.k, [...(m.get(t.k) || []), t]));
      m.forEach((ts, k) => box.append(figure(k, ts.map((t) => [ts.length > 1 || D.workloads[t.w].t !== k ? D.workloads[t.w].t : "", t]), runs, ts.map(id).join(" "))));
    } else list.forEach((t) => box.append(figure(`${D.workloads[t.w].t}: ${t.t}`, [["", t]], runs, id(t))));
    drawn.append(box);
  }
  $$("section.w").forEach((sec) => {
    const mine = list.filter((t) => t.w === +sec.dataset.w);
    const none = !D.tests.some((t) => t.w === +sec.dataset.w);
    sec.hidden = !mine.length && !(none && !on("hni"));
    $(`#side nav a[data-w="${sec.dataset.w}"]`).parentNode.hidden = sec.hidden;
    $(".charts", sec).replaceChildren(...(apart ? [] : mine.map((t) => figure(t.t, [["", t]], runs, id(t)))));
    $$(".pictures [data-r]", sec).forEach((e) => { e.style.display = S.hide.has(+e.dataset.r) ? "none" : ""; e.classList.toggle("hi", S.hi.has(+e.dataset.r)); });
  });
  remember();
};
// State and address.
const ordDefault = () => S.ord.every((r, i) => r === i);
let settled = "";
const remember = () => {
  const p = new URLSearchParams();
  for (const e of F) {
    if (!e.name) continue;
    if (e.type === "checkbox") { if (e.checked !== e.defaultChecked) p.set(e.name, +e.checked); }
    else if (e.value !== (e.tagName === "SELECT" ? initial[e.name] : "")) p.set(e.name, e.value);
  }
  if (!ordDefault() && !F.rro.value) p.set("ord", S.ord.join("."));
  if (S.hide.size) p.set("hide", [...S.hide].join("."));
  if (S.hi.size) p.set("hi", [...S.hi].join("."));
  const cost = Object.entries(S.cost).map(([r, c]) => r + ":" + c).join("_");
  if (cost) p.set("cost", cost);
  const text = p.toString();
  if (text !== settled) { settled = text; history.replaceState(null, "", text ? "#" + text : location.pathname + location.search); }
};
const initial = {};
$$("select", form).forEach((e) => { initial[e.name] = e.value; });
const restore = () => {
  const p = new URLSearchParams(location.hash.slice(1)), has = (r) => D.runs[r] !== undefined;
  const ints = (k) => (p.get(k) || "").split(".").filter((x) => /^\d+$/.test(x)).map(Number).filter(has);
  form.reset();
  S = blank();
  for (const e of F) if (e.name && p.has(e.name)) e.type === "checkbox" ? (e.checked = p.get(e.name) === "1") : (e.value = p.get(e.name));
  $$("select", form).forEach((e) => { if (e.selectedIndex < 0) e.value = initial[e.name]; });
  const ord = [...new Set(ints("ord"))];
  if (ord.length === D.runs.length) S.ord = ord;
  S.hide = new Set(ints("hide")); S.hi = new Set(ints("hi"));
  (p.get("cost") || "").split("_").forEach((x) => { const m = /^(\d+):(.+)$/.exec(x); if (m && has(+m[1]) && +m[2] > 0) S.cost[m[1]] = +m[2]; });
};
const toggle = (set, r) => { set.has(r) ? set.delete(r) : set.add(r); };
form.addEventListener("submit", (e) => e.preventDefault());
form.addEventListener("input", (e) => {
  const d = e.target.dataset;
  if (d.show) toggle(S.hide, +d.show);
  if (d.cost) +e.target.value > 0 ? (S.cost[d.cost] = +e.target.value) : delete S.cost[d.cost];
  if (e.target.name === "rro" && !e.target.value) S.ord = blank().ord;
  apply();
});
const save = (name, type, text) => {
  const a = make("a", { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
  document.body.append(a); a.click(); a.remove();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
};
const field = (x) => { x = String(x); if (/^[=+\-@\t\r]/.test(x) && !/^-?[\d.]+(e[-+]?\d+)?$/.test(x)) x = "'" + x; return /[",\n\r']/.test(x) ? `"${x.replace(/"/g, '""')}"` : x; };
form.addEventListener("click", (e) => {
  const b = e.target.closest("button");
  if (!b) return;
  const d = b.dataset;
  const move = (r, by) => { const i = S.ord.indexOf(r), j = i + by; if (j >= 0 && j < S.ord.length) { [S.ord[i], S.ord[j]] = [S.ord[j], S.ord[i]]; F.rro.value = ""; } };
  if (d.hi) toggle(S.hi, +d.hi);
  else if (d.up) move(+d.up, -1);
  else if (d.down) move(+d.down, 1);
  else if (b.id === "invert") S.hide = new Set(S.ord.filter((r) => !S.hide.has(r)));
  else if (b.id === "clear") { form.reset(); S = blank(); }
  else if (b.id === "json") return save("iosched.json", "application/json", $("#data").textContent);
  else if (b.id === "csv") {
    const out = [["device", "scheduler", "workload", "measure", "unit", "sample", "value"]];
    D.tests.forEach((t) => D.runs.forEach((r, i) => (t.v[i].s || (t.v[i].v != null ? [t.v[i].v] : [])).forEach((x, k) => out.push([D.devices[r.d], sched(i), D.workloads[t.w].t, t.m, t.u, k + 1, x]))));
    return save("iosched.csv", "text/csv", out.map((r) => r.map(field).join(",")).join("\n") + "\n");
  }
  apply();
});
// Legends highlight.
const pick = (e) => { const li = e.target.closest(".legend li"); if (li && (e.type === "click" || e.key === "Enter" || e.key === " ")) { e.preventDefault(); toggle(S.hi, +li.dataset.r); apply(); } };
document.addEventListener("click", pick);
document.addEventListener("keydown", pick);
$$(".legend li").forEach((e) => { e.tabIndex = 0; e.setAttribute("role", "button"); });
addEventListener("hashchange", () => { if (/[=]/.test(location.hash) || !location.hash) { restore(); apply(); } });
const box = $("#controls");
box.hidden = false;
box.open = innerWidth > 820;
$("#drawn").hidden = true;
$$("#totals [data-if]").forEach((e) => { e.hidden = !on(e.dataset.if); });
if (location.hash.includes("=")) { restore(); apply(); } else { $("#shown").textContent = `${D.tests.filter(passes).length} of ${D.tests.length} charts, ${D.runs.length} of ${D.runs.length} runs`; }
})();
