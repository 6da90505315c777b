// The page is complete without this script; it filters, sorts, rescales and draws again.
(() => {
const $ = (q, e = document) => e.querySelector(q), $$ = (q, e = document) => [...e.querySelectorAll(q)], root = document.documentElement;
const D = JSON.parse($("#data").textContent), R = draw(D), { esc, plain, scale, value, change } = R, form = $("#ctl"), F = form.elements;
const N = D.schedulers.length, TEXTS = ["name", "note", "cost"];
// What the form cannot hold: order, hidden and highlighted schedulers, their names, notes and costs.
const blank = () => ({ ord: D.schedulers.map((_, i) => i), hide: new Set(), hi: new Set(), name: {}, note: {}, cost: {} });
let S = blank();
const on = (n) => F[n].checked;
const rows = D.panels.flatMap((p) => p.rows.map((r) => [p, r])), place = new Map(rows.map(([p, r]) => [r[0], [p, r]]));
const state = () => ({ ...S, base: +F.base.value, view: F.view.value, kind: F.kind.value, sp: F.sp.value, best: on("best"), trn: on("trn"), rol: on("rol"), clg: on("clg"), scalar: on("scalar") });
const words = (text) => text.toLowerCase().split(",").map((w) => w.trim()).filter(Boolean);
const raw = (t, r) => { const c = t.v[r]; return c.v == null ? null : on("rol") && !c.cens ? c.t ?? (c.s ? R.trimmed(c.s) : c.v) : c.v; };
const beats = (t, a, b) => { const x = raw(t, a), y = raw(t, b); return x != null && y != null && (t.b > 0 ? x > y : x < y); };
const passes = (i) => {
  const t = D.tests[i], w = D.workloads[t.w], f = (c) => t.f.includes(c), a = F.a.value, b = F.b.value;
  // What is shown of it: the heading of its panel, its own, and what stands small beside them.
  const [p, row] = place.get(i) || [{}, []], text = [w.t, t.t, p.t, p.sub, row[2], row[3]].filter(Boolean).join(" ").toLowerCase();
  const yes = words(F.oss.value), no = words(F.noss.value), two = a !== "" && b !== "";
  return (f("h") || on("all")) && !f("2") && !(on("hnr") && f("n")) && !(on("hni") && f("i")) && !(on("hlc") && f("l")) && !(on("spr") && !f("*")) &&
    (!yes.length || yes.some((x) => text.includes(x))) && !no.some((x) => text.includes(x)) && (F.suite.value === "" || w.s.includes(+F.suite.value)) &&
    !(on("ftt") && two && !beats(t, +a, +b)) && !(on("ftb") && two && !beats(t, +b, +a));
};
const complete = (t, runs) => runs.every((r) => raw(t, r) > 0);
// Of a workload's total and its reads and writes means count one: the total where only one of these is shown.
const counted = (tests) => {
  const part = (t) => t.m === "read.bw" || t.m === "write.bw", of = (t, f) => tests.filter((o) => o.w === t.w && f(o)).length, sum = (t) => t.m === "total.bw";
  return tests.filter((t) => sum(t) ? of(t, part) < 2 : !(part(t) && of(t, sum) && of(t, part) < 2));
};
const geo = (tests, runs) => {
  const c = counted(tests).filter((t) => complete(t, runs));
  return [c.length, runs.map((r) => Math.exp(c.reduce((a, t) => a + Math.log(t.b > 0 ? raw(t, r) : 100 / raw(t, r)), 0) / c.length))];
};
const table = (head, body, left) => `<div class="scroll"><table class="dt${left ? " left" : ""}"><thead><tr>${head.map((h) => `<th scope="col">${esc(h)}</th>`).join("")}</tr></thead><tbody>${body.map(([h, ...c]) => `<tr><th scope="row">${esc(h)}</th>${c.map((x) => typeof x === "object" ? x.html : `<td>${esc(x)}</td>`).join("")}</tr>`).join("")}</tbody></table></div>`;
const runName = (r) => (D.devices.length > 1 ? D.devices[D.runs[r].d] + ": " : "") + (S.name[R.sched(r)] || D.schedulers[R.sched(r)]);
// The reference viewer's means, over every measure that is shown, fio's second figure included.
const totals = (shown, runs) => {
  const tests = counted(shown);
  const head = ["run"], cols = [], add = (h, f) => { head.push(h); cols.push(f); }, [n, g] = geo(tests, runs);
  add("geometric mean", (r, i) => n > 1 ? plain(g[i]) : "–");
  [...new Set(tests.filter((t) => R.rate(t)).map((t) => t.u))].forEach((u) => {
    const c = tests.filter((t) => t.u === u && t.b > 0 && complete(t, runs));
    if (c.length > 3) add("harmonic mean, " + u, (r) => { const x = c.length / c.reduce((a, t) => a + 1 / raw(t, r), 0), s = scale(x, u); return plain(x / s[0]) + " " + s[1]; });
  });
  const first = (sign) => runs.map((r) => tests.filter((t) => { const v = runs.filter((i) => t.v[i].v != null).map((i) => [i, sign * t.b * raw(t, i)]); return v.length && v.reduce((a, b) => (b[1] > a[1] ? b : a))[0] === r; }).length);
  const w = first(1), l = first(-1);
  add("wins", (r, i) => w[i]); add("losses", (r, i) => l[i]);
  add("measures", (r) => shown.filter((t) => t.v[r].v != null).length + " of " + shown.length);
  add("trials", (r) => D.runs[r].trials); add("date", (r) => D.runs[r].date || "–"); add("duration", (r) => D.runs[r].dur ? plain(D.runs[r].dur) + " s" : "–");
  if (Object.keys(S.cost).length) add("geometric mean per cost", (r, i) => S.cost[R.sched(r)] ? plain(g[i] / S.cost[R.sched(r)]) : "–");
  $("#totals").parentNode.outerHTML = table(head, runs.map((r, i) => [runName(r), ...cols.map((f) => String(f(r, i)))]));
  $("#tot table").id = "totals";
  const body = D.suites.map((s, i) => [s, ...geo(tests.filter((t) => D.workloads[t.w].s.includes(i)), runs)]).filter((x) => x[1] > 1);
  $("#suites").innerHTML = body.length > 1 ? "<h4>Geometric means per suite</h4>" + table(["suite (measures)", ...runs.map(runName)], body.map(([s, n, g]) => [`${s} (${n})`, ...g.map(plain)])) : "";
};
// Every figure that is shown, run by run; written only while somebody looks.
const detailed = (list, runs, st) => {
  const box = $("#det");
  if (!box.open) return;
  const body = list.flatMap((i) => {
    const t = D.tests[i], cells = runs.map((r) => [r, R.cell(t, r, st)]).filter(([, c]) => c.v != null);
    return cells.map(([r, c]) => {
      const all = cells.filter(([q]) => D.runs[q].d === D.runs[r].d).map(([, x]) => x.v), best = t.b > 0 ? Math.max(...all) : Math.min(...all);
      const f = (x) => c.n > 1 && x != null ? R.figure(t, x) : "–";
      return [D.workloads[t.w].t + ": " + t.t, runName(r), R.figure(t, c.v), best > 0 && c.v > 0 ? R.decimals(100 * (t.b > 0 ? c.v / best : best / c.v), 1) + " %" : "–", String(c.n), f(c.sd), f(c.se), f(c.mn), f(c.mx)];
    });
  });
  $("div", box).innerHTML = table(["measure", "run", "mean", "of the best", "n", "SD", "SE", "smallest", "largest"], body);
};
// Two runs: differences of 2 % or more, the largest first.
const SMALL = 0.02, LETTERS = { n: "no measurable difference", e: "not enough data", i: "invalid" };
const difference = (list) => {
  const box = $("#difference"), a = F.a.value, b = F.b.value;
  box.hidden = a === "" || b === "" || a === b;
  if (box.hidden) { box.innerHTML = ""; return; }
  const found = list.map((i) => { const t = D.tests[i], x = raw(t, +a), y = raw(t, +b); const k = !on("rol") && D.runs[+a].d === D.runs[+b].d && t.v[+b].q && t.v[+b].q[+a] || y / x; return { t, x, y, title: D.workloads[t.w].t + ": " + t.t, q: x > 0 && y > 0 ? t.b * Math.log(k) : null }; });
  const far = found.filter((o) => o.q != null && Math.abs(Math.expm1(o.q)) >= SMALL).sort((p, q) => Math.abs(q.q) - Math.abs(p.q)), near = found.filter((o) => o.q != null && !far.includes(o)), none = found.length - far.length - near.length;
  const most = Math.max(SMALL, ...far.map((o) => Math.abs(o.q)));
  const body = far.map(({ t, x, y, q, title }) => {
    const letter = t.v[+b].p && D.runs[+a].d === D.runs[+b].d ? t.v[+b].p[+a] : ".", sure = /[bw]/i.test(letter), half = Math.abs(q) / most * 50;
    const bar = `<td class="mid"><div><i class="${sure ? (q > 0 ? "up" : "down") : ""}" style="left:${(q > 0 ? 50 : 50 - half).toFixed(1)}%;width:${half.toFixed(1)}%"></i></div></td>`;
    const [xs, ys] = [+a, +b].map((r) => R.atLeast(t.v[r]));
    return [title, xs + R.figure(t, x), ys + R.figure(t, y), { html: bar }, (sure ? (q > 0 ? "B better by " : "A better by ") + (xs || ys ? "~" : "") : "≈ ") + change(Math.exp(Math.abs(q))).replace("+", "") + (sure ? "" : " apart, " + (LETTERS[letter] || "not tested"))];
  });
  box.innerHTML = `<div class="sh"><h2>A against B</h2><p>${esc(runName(+a))} and ${esc(runName(+b))}: ${far.length} of ${count(found.length, "measure")} differ${found.length === 1 ? "s" : ""} by 2 % or more. Colour: measurably.</p></div>` + (body.length ? table(["measure", "A", "B", "A better ← → B better", "in words"], body) : "") +
    (near.length ? `<p class="sm">Less than 2 % apart: ${esc(near.map((o) => o.title).join("; "))}.</p>` : "") + (none ? `<p class="sm">${none === 1 ? "1 measure lacks" : none + " measures lack"} a figure of A or B.</p>` : "");
};
const autoOrder = (tests) => {
  const o = F.rro.value, idx = D.schedulers.map((_, i) => i), date = (s) => (D.runs.find((r) => r.s === s) || {}).date || "";
  if (o === "n") S.ord = idx.sort((x, y) => R.name(x, S).localeCompare(R.name(y, S)));
  if (o === "d") S.ord = idx.sort((x, y) => date(x).localeCompare(date(y)));
  if (o === "p") {
    const mine = D.runs.map((_, i) => i), g = new Map();
    D.devices.forEach((_, d) => { const rs = mine.filter((r) => D.runs[r].d === d), [, v] = geo(tests, rs); rs.forEach((r, k) => g.set(R.sched(r), (g.get(R.sched(r)) || 0) + Math.log(v[k] || 1))); });
    S.ord = idx.sort((x, y) => (g.get(y) || 0) - (g.get(x) || 0));
  }
  if (!o && auto) S.ord = blank().ord;
  auto = !!o || on("cmv");
  if (on("cmv")) { const fam = (s) => D.schedulers[s].split(/[@ ]/)[0], was = [...S.ord]; S.ord = was.slice().sort((x, y) => was.findIndex((z) => fam(z) === fam(x)) - was.findIndex((z) => fam(z) === fam(y)) || was.indexOf(x) - was.indexOf(y)); }
  if (on("rev")) { S.ord = [...S.ord].reverse(); auto = true; }
};
let auto = false;
const runList = () => {
  const ul = $("#runs");
  S.ord.forEach((s) => ul.append($(`li[data-s="${s}"]`, ul)));
  $$("[data-show]", ul).forEach((e) => { e.checked = !S.hide.has(+e.dataset.show); });
  $$("[data-hi]", ul).forEach((e) => e.setAttribute("aria-pressed", S.hi.has(+e.dataset.hi)));
  TEXTS.forEach((k) => $$(`[data-${k}]`, ul).forEach((e) => { if (document.activeElement !== e) e.value = S[k][e.dataset[k]] ?? ""; }));
  $$(".nm", ul).forEach((e) => { const s = +e.closest("li").dataset.s; e.textContent = S.name[s] || D.schedulers[s]; });
};
const sorters = { t: (x, y) => D.workloads[x.w].t.localeCompare(D.workloads[y.w].t) || x.t.localeCompare(y.t), q: (x, y) => (y.q || 0) - (x.q || 0), u: (x, y) => x.u.localeCompare(y.u) || x.w - y.w, l: (x, y) => (D.workloads[y.w].d || 0) - (D.workloads[x.w].d || 0) || x.w - y.w };
const strips = (i, title, st) => D.devices.map((n, d) => `<div class="one"${D.devices.length > 1 ? ` data-d="${R.esc(n)}"` : ""}>${R.strip(D.tests[i], title, d, st)}</div>`).join("");
// The answers are not judged anew here: they say whom they count although it is hidden, and which base they have.
const own = (s) => D.names[s].own || D.schedulers[s];
const again = (e, cls, text) => { let p = $("." + cls.split(" ").join("."), e); if (!text) { if (p) p.remove(); return; } if (!p) { p = document.createElement("p"); p.className = cls; e.append(p); } p.innerHTML = text; };
const answered = (st) => {
  const judge = $("#judge"), counted = [...S.hide].filter((s) => $(`#answer [data-c="${s}"]`));
  judge.hidden = !counted.length;
  judge.innerHTML = "The answers above count hidden schedulers." + (D.stored ? ` To judge the others by themselves: <code>iosched results edit ${esc(D.stored)} ${counted.map((s) => "--hide " + esc(quote(own(s)))).join(" ")}</code>` : "");
  $$("#answer [data-n]").forEach((e) => { const s = +e.dataset.n; e.textContent = S.name[s] || D.schedulers[s]; e.classList.toggle("off", S.hide.has(s)); });
  $$("#answer [data-a]").forEach((e) => { const s = +e.dataset.a; e.dataset.was ??= e.textContent; e.textContent = S.name[s] || e.dataset.was; e.classList.toggle("off", S.hide.has(s)); });
  $$("#answer .adv [data-win]").forEach((a) => { const c = $(".chip", a), lost = S.hide.has(+a.dataset.win); c.dataset.was ??= c.textContent; c.textContent = lost ? "hidden here" : c.dataset.was; c.classList.toggle("lost", lost); });
  $$("#answer .goal").forEach((g) => {
    const win = g.dataset.win === undefined ? -1 : +g.dataset.win, lost = S.hide.has(win), vs = $(".vs [data-n]", g), chip = $(".chip", g), called = (s) => esc(S.name[s] || D.schedulers[s]);
    $$("[data-c]", g).forEach((e) => { const s = +e.dataset.c, n = $(".nm", e); e.classList.toggle("off", S.hide.has(s)); e.classList.toggle("hi", S.hi.has(s)); if (n) { n.textContent = R.clipped(R.name(s, S)); $("title", e).textContent = R.name(s, S); } });
    const gone = [...new Set($$("[data-c].off", g).map((e) => +e.dataset.c))].filter((s) => s !== win);
    chip.dataset.was ??= chip.textContent; chip.textContent = lost ? "winner hidden" : chip.dataset.was; chip.classList.toggle("lost", lost);
    $$(".big:not(.moot), .why:not(.moot)", g).forEach((e) => { e.hidden = lost; });
    again($("div", g), "big moot", lost && `No winner among those shown: <b>${called(win)}</b>, which leads, is hidden.`);
    again(g, "why moot", !lost && gone.length && `Judged with ${gone.map(called).join(", ")}, hidden here.`);
    if (vs) again(vs.closest("div"), "sm other", +vs.dataset.n !== st.base && `not against ${esc(R.name(st.base, S))}, the base of the tables below`);
  });
};
// The dispatch pictures of a device, played in step: what has not happened yet is covered.
$$(".wplay").forEach((p, n) => {
  const [go, bar, out] = [$("button", p), $("input", p), $("output", p)], end = +p.dataset.end, ns = "http://www.w3.org/2000/svg";
  let rects, running = 0, before = 0;
  const made = () => rects ??= $$("svg.way", p.nextElementSibling).map((s, i) => {
    const clip = document.createElementNS(ns, "clipPath"), rect = document.createElementNS(ns, "rect");
    clip.id = `w${n}-${i}`; rect.setAttribute("height", 176); clip.append(rect); s.append(clip);
    $$("path[class^=p]", s).forEach((e) => e.setAttribute("clip-path", `url(#${clip.id})`));
    return rect;
  });
  const show = (v) => { bar.value = v; out.textContent = `${R.sig(v * end)} s`; made().forEach((r) => r.setAttribute("width", v >= 1 ? 320 : 40 + v * 276)); };
  const stop = () => { cancelAnimationFrame(running); running = 0; go.textContent = "Play"; go.setAttribute("aria-pressed", "false"); };
  const tick = (now) => { const v = Math.min(1, +bar.value + Math.max(0, now - before) / 8000); before = now; show(v); if (v < 1) running = requestAnimationFrame(tick); else stop(); };
  go.onclick = () => { if (running) return stop(); if (+bar.value >= 1) show(0); go.textContent = "Pause"; go.setAttribute("aria-pressed", "true"); before = performance.now(); running = requestAnimationFrame(tick); };
  bar.oninput = () => { const v = +bar.value; stop(); show(v); };
  p.hidden = false;
});
// Names that a reader gave, in keys and tables of the folds.
let called = false;
const relabel = (st) => {
  const given = Object.keys(S.name).length > 0;
  if (!given && !called) return;
  called = given;
  $$(".fold [data-r], #answer .key [data-r]").forEach((e) => {
    const rs = e.dataset.r.split(" ").map(Number), svg = e.tagName === "SPAN" && $("svg", e);
    if (e.tagName === "TH") e.textContent = R.name(R.sched(rs[0]), st);
    else if (svg) { e.replaceChildren(svg); svg.insertAdjacentHTML("afterend", R.names(rs, st)); }
    else { const n = e.tagName === "TR" ? e.cells[0] : e.tagName === "FIGURE" ? $("p.sm", e) : null; if (n) n.innerHTML = R.names(rs, st); }
  });
};
// Averages of curves, in the place of their pictures.
const averages = (st) => $$(".fold figure").forEach((f) => {
  const of = $$(".key [data-v]", f), was = $(".avg", f);
  if (was) was.remove();
  if (!st.scalar || !of.length) return;
  const t = document.createElement("table");
  t.className = "dt avg";
  t.innerHTML = `<thead><tr><th scope="col">scheduler</th><th class="wide"><span class="vh">chart</span></th><th scope="col">average</th></tr></thead><tbody>` + of.map((e) => `<tr data-r="${e.dataset.r}"><th scope="row">${R.names(e.dataset.r.split(" ").map(Number), st)}</th><td aria-hidden="true"><div class="sh100"><span style="width:${e.dataset.w}%;background:var(--${e.className.split(" ")[0]})"></span></div></td><td>${esc(e.dataset.v)}</td></tr>`).join("") + "</tbody>";
  f.append(t);
});
const solo = D.devices.length === 1 ? " solo" : D.devices.length > 2 ? " many" : "";
const better = (t) => (t.b > 0 ? "more" : "less") + " is better" + (t.u && !R.behind(t.u) ? ", in " + esc(t.u) : "");
// Measures in another order, or all of them, are drawn in one list.
const drawn = (list, st) => {
  const box = $("#drawn"), sro = sorters[F.sro.value], cts = on("cts"), apart = !!sro || cts || on("all");
  box.hidden = !apart;
  if (!apart) { box.innerHTML = ""; return false; }
  const order = sro ? [...list].sort((a, b) => sro(D.tests[a], D.tests[b])) : list, m = new Map();
  order.forEach((i) => { const t = D.tests[i], k = cts ? t.k : D.workloads[t.w].t + ": " + t.t; m.set(k, [...(m.get(k) || []), i]); });
  const heads = D.devices.map((d, i) => `<div class="dh${i ? " only1" : ""}"><b>${esc(d)}</b><span>mean</span><span class="cih">95 % interval</span><span><span class="hw"></span> <span class="basename"></span></span><span>n</span></div>`).join("");
  box.innerHTML = `<section class="wk"><div class="sh"><h2>Measures</h2></div><div class="pair dhs${solo}">${heads}</div>` + [...m].map(([k, is]) => `<div class="me">${is.map((i, n) => { const t = D.tests[i], w = D.workloads[t.w].t, one = cts && is.every((x) => D.tests[x].t === t.t), head = one ? t.t : k; return `<h3>${n ? "" : esc(head) + " "}<small>${is.length > 1 || one ? esc(one ? w : w === k ? t.t : w + ", " + t.t) + "; " : ""}${better(t)}</small></h3><div class="pair${solo}">${strips(i, t.t, st)}</div>`; }).join("")}</div>`).join("") + "</section>";
  return true;
};
const HOW = { "": [": twice the rate or half the time is 2", "times better than"], raw: [": the ratio of the values as measured", "against"], pct: [": the change of the values as measured", "against"], abs: [": the values, coloured by the comparison", "against"], best: ["; figures are the part of the best in each row", "coloured against"], worst: ["; figures are times the worst in each row", "coloured against"], core: ["; rates for each core of the machine, all else as measured", "coloured against"], ghz: ["; rates for each GHz of the machine's clock, all else as measured", "coloured against"], ppd: ["; values for each unit of cost", "coloured against"] };
const SPREAD = { "": "95 % interval", se: "± standard error", sd: "± deviation", mm: "range" };
// Beyond so many columns the overview takes the whole width.
const FEW = 11, count = (n, word) => n + " " + word + (n === 1 ? "" : "s");
const apply = () => {
  const every = D.tests.map((_, i) => i), list = every.filter(passes), tests = every.filter((i) => D.tests[i].f.includes("2") ? D.tests[i].f.includes("h") && filterless() : passes(i)).map((i) => D.tests[i]);
  autoOrder(tests); runList();
  const st = state(), shown = new Set(list), runs = D.devices.flatMap((_, d) => R.runsOf(d, st));
  root.classList.toggle("scalar", st.scalar); relabel(st); averages(st); root.dataset.kind = st.kind === "l" && st.scalar ? "" : st.kind;
  const left = D.panels.map((p) => [p, p.rows.filter((r) => shown.has(r[0]) && D.tests[r[0]].v.some((c) => c.v != null))]).filter(([, l]) => l.length);
  const mx = $("#mx");
  mx.innerHTML = R.matrix(left, st); mx.classList.toggle("trn", st.trn); mx.classList.toggle("few", !st.trn && runs.length <= FEW); mx.style.setProperty("--cols", runs.length); mx.dataset.view = st.view; roving();
  const apart = drawn(list, st);
  D.panels.forEach((p) => {
    let n = 0;
    p.rows.forEach((r) => {
      const e = document.getElementById(r[1]);
      if (!e || !e.classList.contains("me")) return;
      e.hidden = apart || !shown.has(r[0]);
      if (!e.hidden) { n++; $$(".pair > .one", e).forEach((x, d) => { x.innerHTML = R.strip(D.tests[r[0]], r[2], d, st); }); }
    });
    const sec = document.getElementById("w-" + p.id), none = !p.rows.some((r) => D.tests[r[0]].f.includes("h"));
    sec.hidden = !n && !(none && !on("hni") && !apart && left.length === D.panels.filter((q) => q.rows.length).length);
  });
  $$(".fold [data-r], .sweep [data-r]").forEach((e) => { const rs = e.dataset.r.split(" ").map(Number); e.style.display = rs.every((r) => S.hide.has(R.sched(r))) ? "none" : ""; e.classList.toggle("hi", rs.some((r) => S.hi.has(R.sched(r)))); });
  $$(".fold table").forEach((t) => $$("thead th[data-r]", t).forEach((th) => { const k = th.cellIndex, off = th.style.display; $$("tbody tr", t).forEach((tr) => { if (tr.cells[k]) tr.cells[k].style.display = off; }); }));
  answered(st); totals(tests, runs); detailed(list, runs, st); difference(list);
  $$(".basename").forEach((e) => { e.textContent = R.name(st.base, st); });
  $$(".cih").forEach((e) => { e.textContent = SPREAD[st.sp]; });
  [$("#how").textContent, $("#what").textContent] = HOW[st.view];
  $$(".hw").forEach((e) => { e.textContent = ["raw", "pct"].includes(st.view) ? "against" : "times better than"; });
  const all = D.tests.filter((t) => t.f.includes("h") && !t.f.includes("2")).length;
  $("#count").textContent = (list.length === all ? count(all, "measure") : `${list.length} of ${count(on("all") ? D.tests.length : all, "measure")}`) + (S.hide.size ? `, ${N - S.hide.size} of ${count(N, "scheduler")}` : "");
  keep(); remember();
};
// The command that makes names, notes and hiding permanent.
const quote = (x) => /^[\w@.,:+/-]+$/.test(x) ? x : "'" + x.replace(/'/g, "'\\''") + "'";
const keep = () => {
  const parts = [];
  for (const s of S.hide) parts.push("--hide " + quote(own(s)));
  for (const [s, v] of Object.entries(S.name)) parts.push("--label " + quote(own(s) + "=" + v));
  for (const [s, v] of Object.entries(S.note)) parts.push("--annotate " + quote(own(s) + "=" + v));
  $("#keep").hidden = !D.stored || !parts.length;
  $("#keepit").textContent = "iosched results edit " + D.stored + " " + parts.join(" ");
};
const filterless = () => !F.oss.value && !F.noss.value && !["hnr", "hni", "hlc", "spr", "ftt", "ftb"].some(on) && F.suite.value === "";
// State and address: only what differs from the first look.
const initial = {};
[...F].forEach((e) => { if (e.name) initial[e.name] = e.type === "checkbox" ? e.defaultChecked : e.value; });
let settled = null;
const remember = () => {
  const p = new URLSearchParams();
  for (const e of F) if (e.name) { const v = e.type === "checkbox" ? e.checked : e.value; if (v !== initial[e.name]) p.set(e.name, e.type === "checkbox" ? +v : v); }
  if (!auto && !S.ord.every((r, i) => r === i)) p.set("ord", S.ord.join("."));
  if (S.hide.size) p.set("hide", [...S.hide].join("."));
  if (S.hi.size) p.set("hi", [...S.hi].join("."));
  TEXTS.forEach((k) => { const kept = Object.entries(S[k]); if (kept.length) p.set(k, JSON.stringify(Object.fromEntries(kept))); });
  const q = p.toString(), at = location.hash.slice(1).split("?")[0];
  $("#undo").hidden = !q;
  if (q !== settled) { settled = q; history.replaceState(null, "", at || q ? "#" + at + (q ? "?" + q : "") : location.pathname + location.search); }
};
const restore = () => {
  const [at, q = ""] = location.hash.slice(1).split("?"), p = new URLSearchParams(q), has = (s) => D.schedulers[s] !== undefined;
  const ints = (k) => (p.get(k) || "").split(".").filter((x) => /^\d+$/.test(x)).map(Number).filter(has);
  form.reset(); S = blank();
  for (const e of F) if (e.name && p.has(e.name)) e.type === "checkbox" ? (e.checked = p.get(e.name) === "1") : (e.value = p.get(e.name));
  for (const e of F) if (e.tagName === "SELECT" && e.selectedIndex < 0) e.value = initial[e.name];
  const ord = [...new Set(ints("ord"))];
  if (ord.length === N) S.ord = ord;
  S.hide = new Set(ints("hide")); S.hi = new Set(ints("hi"));
  TEXTS.forEach((k) => { try { for (const [s, v] of Object.entries(JSON.parse(p.get(k) || "{}"))) if (has(s) && (k === "cost" ? +v > 0 : typeof v === "string" && v)) S[k][s] = k === "cost" ? +v : v; } catch { /* an address somebody cut short */ } });
  return decodeURIComponent(at);
};
const open = (id) => { const e = id && document.getElementById(id); if (e) { const d = e.closest("details"); if (d) d.open = true; e.scrollIntoView(); } };
const toggle = (set, s) => { set.has(s) ? set.delete(s) : set.add(s); };
form.addEventListener("submit", (e) => e.preventDefault());
form.addEventListener("input", (e) => {
  const d = e.target.dataset, v = e.target.value;
  if (d.show) toggle(S.hide, +d.show);
  TEXTS.forEach((k) => { if (d[k]) (k === "cost" ? +v > 0 : v) ? (S[k][d[k]] = k === "cost" ? +v : v) : delete S[k][d[k]]; });
  apply();
});
const save = (name, type, text) => {
  const a = document.createElement("a");
  a.download = name; a.href = URL.createObjectURL(new Blob([text], { type }));
  document.body.append(a); a.click(); a.remove();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
};
const field = (x) => { x = String(x); if (/^[=+\-@\t\r']/.test(x) && !/^-?[\d.]+(e[-+]?\d+)?$/.test(x)) x = "'" + x; return /[",\n\r'#]/.test(x) ? `"${x.replace(/"/g, '""')}"` : x; };
// A run's scheduler as it was measured, without what a reader or the page calls it.
const measured = (r) => r.own || own(r.s);
// Which rounds ended at a limit: those with the largest values.
const limits = (c) => { const all = (c.s || [c.v]).map((_, k) => k); return c.cens ? new Set(all.sort((a, b) => (c.s || [])[b] - (c.s || [])[a]).slice(0, c.cens)) : new Set(); };
const csv = (out) => out.map((r) => r.map(field).join(",")).join("\n") + "\n";
const each = (f) => D.tests.forEach((t) => D.runs.forEach((r, i) => f(t, r, i, t.v[i])));
const OUT = {
  // As `iosched results import` reads it: a row for each measured value. Measures that have no rounds here are left out.
  csv: () => { const out = [["device", "scheduler", "kernel", "workload", "repetition", "metric", "unit", "better", "value", "status"]]; each((t, r, i, c) => { const over = limits(c); (c.s || (c.v != null && c.n === 1 ? [c.v] : [])).forEach((x, k) => out.push([D.devices[r.d], measured(r), r.kernel, D.workloads[t.w].t, c.r ? c.r[k] : k + 1, t.m, t.u, t.b > 0 ? "higher" : "lower", (over.has(k) ? ">" : "") + x, "complete"])); }); save("iosched.csv", "text/csv", csv(out)); },
  sum: () => { const st = state(), out = [["device", "scheduler", "workload", "measure", "unit", "better", "n", "mean", "ci95_low", "ci95_high", "se", "sd", "min", "max"]]; each((t, r, i) => { const c = R.cell(t, i, { ...st, view: "" }); out.push([D.devices[r.d], D.schedulers[r.s], D.workloads[t.w].t, t.m, t.u, t.b > 0 ? "higher" : "lower", ...["n", "v", "lo", "hi", "se", "sd", "mn", "mx"].map((k) => c[k] ?? "")]); }); save("iosched-summary.csv", "text/csv", csv(out)); },
  json: () => save("iosched.json", "application/json", $("#data").textContent),
  txt: () => { const st = state(); save("iosched.txt", "text/plain", [$("h1").innerText, ...$$("#answer .adv article").map((a) => `\n${$("h2", a).innerText}\n  ${$(".big", a).innerText}`), ...$$("#answer article:has(.goal)").map((a) => "\n" + $("h2", a).innerText + "\n" + $$(".goal", a).map((g) => `  ${$(".k", g).innerText}: ${$(".big:not([hidden])", g).innerText}${$$(".why:not([hidden])", g).map((e) => "\n    " + e.innerText).join("")}`).join("\n")), ...D.tests.map((t, i) => i).filter(passes).map((i) => { const t = D.tests[i]; return `\n${D.workloads[t.w].t}: ${t.t} (${better(t)})\n` + D.runs.map((r, k) => { const c = R.cell(t, k, st), s = R.standing(t, k, st); return S.hide.has(r.s) ? "" : `  ${runName(k).padEnd(32)} ${c.v == null ? "no value: " + c.why : R.figure(t, c.v).padEnd(12) + (c.lo != null ? ` [${R.figure(t, c.lo)}, ${R.figure(t, c.hi)}]` : "") + ` n=${c.n}${c.se ? " SE " + R.figure(t, c.se) : ""}` + (s[1] ? `  ${change(s[1])} ${R.words(s[0])}` : "")}\n`; }).join(""); })].join("\n") + "\n"); },
  // The result format of the reference suite, which `iosched results import` reads, too.
  xml: () => {
    const el = (n, x) => `<${n}>${esc(x).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd").replaceAll("&#39;", "'")}</${n}>`;
    const sys = D.runs.map((r, i) => `<System>${el("Identifier", runName(i).slice(0, 128))}${el("Hardware", D.devices[r.d])}${el("Software", "Kernel: " + r.kernel)}${el("User", "")}${el("TimeStamp", r.date || "")}${el("TestClientVersion", "")}${el("Notes", S.note[r.s] || "")}${el("JSON", JSON.stringify({ "iosched-device": D.devices[r.d], "iosched-scheduler": measured(r), "iosched-kernel": r.kernel }))}</System>`).join("\n");
    const slug = (x) => x.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
    const res = D.tests.filter((t) => t.f.includes("h")).map((t) => `<Result>${el("Identifier", `iosched/${slug(D.workloads[t.w].t)}-1.0.0`)}${el("Title", D.workloads[t.w].t.slice(0, 50).padEnd(2, "-"))}${el("AppVersion", "")}${el("Arguments", "")}${el("Description", t.m)}${el("Scale", t.u)}${el("Proportion", t.b > 0 ? "HIB" : "LIB")}${el("DisplayFormat", "BAR_GRAPH")}<Data>${D.runs.map((r, i) => { const c = t.v[i]; return `<Entry>${el("Identifier", runName(i).slice(0, 128))}${el("Value", c.v ?? "")}${el("RawString", (c.s || []).join(":"))}${el("JSON", JSON.stringify({ error: c.v == null ? c.why || "" : undefined, "iosched-rounds": c.r && c.r.map((k) => [k, 0]), "iosched-title": D.workloads[t.w].t, "iosched-censored": c.cens ? c.cens < c.n && c.s ? c.s.map((_, k) => limits(c).has(k)) : true : undefined }))}</Entry>`; }).join("")}</Data></Result>`).join("\n");
    save("composite.xml", "application/xml", `<?xml version="1.0"?>\n<PhoronixTestSuite>\n<Generated>${el("Title", $("h1").innerText.slice(0, 126))}${el("LastModified", "")}${el("TestClient", "iosched")}${el("Description", "")}</Generated>\n${sys}\n${res}\n</PhoronixTestSuite>\n`);
  },
  pdf: () => print(),
};
form.addEventListener("click", (e) => {
  const b = e.target.closest("button");
  if (!b) return;
  const d = b.dataset, move = (s, by) => { const i = S.ord.indexOf(s), j = i + by; if (j >= 0 && j < N) { [S.ord[i], S.ord[j]] = [S.ord[j], S.ord[i]]; F.rro.value = ""; auto = false; } };
  if (OUT[b.id]) return OUT[b.id]();
  if (d.hi) toggle(S.hi, +d.hi);
  else if (d.up) move(+d.up, -1);
  else if (d.down) move(+d.down, 1);
  else if (b.id === "invert") S.hide = new Set(S.ord.filter((s) => !S.hide.has(s)));
  else if (b.id === "undo") { form.reset(); S = blank(); auto = false; }
  apply();
});
// The overview: arrow keys walk, Enter and a click open the measure, a scheduler's name makes it the base.
const roving = () => { const c = $("#mx td"); if (c) c.tabIndex = 0; };
const go = (tr) => {
  const a = $("a", tr), id = a && a.getAttribute("href").slice(1), e = id && document.getElementById(id);
  if (!e) return;
  const q = location.hash.split("?")[1];
  history.replaceState(null, "", "#" + id + (q ? "?" + q : ""));
  e.scrollIntoView(); e.classList.remove("flash"); void e.offsetWidth; e.classList.add("flash");
  const h = $("h3", e); if (h) h.focus({ preventScroll: true });
};
const mx = $("#mx");
mx.addEventListener("keydown", (e) => {
  const cell = e.target.closest("td");
  if (!cell) return;
  const tr = cell.parentNode, k = [...tr.children].indexOf(cell), all = $$("tbody tr:not(.wl, .h)", mx), up = { ArrowUp: -1, ArrowDown: 1 }[e.key];
  let t;
  if (e.key === "ArrowRight") t = cell.nextElementSibling;
  else if (e.key === "ArrowLeft") t = cell.previousElementSibling;
  else if (up) { const r = all[all.indexOf(tr) + up]; t = r && (r.children[k] || r.lastElementChild); }
  else if (e.key === "Enter") { go(tr); return; } else return;
  e.preventDefault();
  if (t && t.matches("td")) { cell.tabIndex = -1; t.tabIndex = 0; t.focus(); }
});
mx.addEventListener("click", (e) => {
  const th = e.target.closest("th[data-b]");
  if (th) { F.base.value = th.dataset.b; apply(); return; }
  const tr = e.target.closest("tr[data-m]");
  if (tr) { e.preventDefault(); go(tr); }
});
$("#det").addEventListener("toggle", apply);
document.addEventListener("click", (e) => $$(".pop[open]").forEach((d) => d.contains(e.target) || (d.open = false)));
document.addEventListener("keydown", (e) => {
  if (e.key === "Escape") { const d = $(".pop[open]"); if (d) { d.open = false; $("summary", d).focus(); } }
  if (e.key === "/" && !/INPUT|SELECT|TEXTAREA/.test(e.target.tagName)) { e.preventDefault(); F.oss.focus(); }
});
$("#theme").addEventListener("click", (e) => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  e.currentTarget.setAttribute("aria-pressed", String(!dark));
});
addEventListener("hashchange", () => { const id = restore(); apply(); open(id); });
root.classList.add("js");
const id = restore();
if (location.hash.includes("?")) apply();
else { roving(); $("#count").textContent = count(D.tests.filter((t) => t.f.includes("h") && !t.f.includes("2")).length, "measure"); }
open(id);
})();
