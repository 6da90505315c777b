"use strict";
// Draws strips and the overview from the numbers in the page: the same rules as the program that wrote it.
const draw = (D) => {
const esc = (s) => String(s).replace(/[&<>"']/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[c]);
// The same figures as an earlier run's are written once.
D.tests.forEach((t) => t.v.forEach((c, i) => {
  if (typeof c === "number") c = t.v[i] = { ...t.v[c] };
  if (c.x && !c.s) { c.lo = c.hi = c.mn = c.mx = c.v; c.sd = 0; c.how = 3; if (t.f.includes("h")) c.s = Array(c.n).fill(c.v); }
  if (c.q && c.q.length < c.p.length) c.q = [...Array(c.p.length - c.q.length).fill(0), ...c.q];
}));
// Numbers.
const decimals = (x, n) => { const [a, b] = x.toFixed(n).split("."); return (a.replace(/\B(?=(\d{3})+$)/g, ",") + (b ? "." + b : "")).replace("-", "−"); };
const plain = (x) => {
  if (x === 0 || !Number.isFinite(x)) return x === 0 ? "0" : "–";
  const n = Math.min(6, Math.max(0, 3 - Math.floor(Math.log10(Math.abs(x))))), t = decimals(x, n);
  return t.includes(".") ? t.replace(/\.?0+$/, "") : t;
};
const sig = (x, more = 0) => {
  if (x === 0 || !Number.isFinite(x)) return x === 0 ? "0" : "–";
  const a = Math.abs(x);
  return decimals(x, more + (a >= 99.95 ? 0 : a >= 9.995 ? 1 : a >= 0.9995 ? 2 : a >= 0.0995 ? 3 : Math.min(9, 2 - Math.floor(Math.log10(a)))));
};
// Two numbers with the digits that tell one from the other.
const apart = (lo, hi, f) => { for (let k = 0; k <= 6; k++) if (f(lo, k) !== f(hi, k)) return [f(lo, k), f(hi, k)]; return [f(lo, 0), f(hi, 0)]; };
const tick = (x) => { const t = sig(x); return t.includes(".") ? t.replace(/\.?0+$/, "") : t; };
const UNITS = { ns: [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]], us: [[1e6, "s"], [1e3, "ms"], [1, "µs"], [1e-3, "ns"]], "B/s": [[1073741824, "GiB/s"], [1048576, "MiB/s"], [1024, "KiB/s"], [1, "B/s"]] };
// A unit that other programs spell out, as it stands behind a number.
const WORD = { Seconds: "s", seconds: "s", Milliseconds: "ms", milliseconds: "ms", Microseconds: "µs", microseconds: "µs" }, word = (unit) => Object.hasOwn(WORD, unit) ? WORD[unit] : unit;
const table = (unit) => Object.hasOwn(UNITS, unit) && UNITS[unit];
const scale = (top, unit) => { const t = table(unit); return t ? t.find((u) => Math.abs(top) >= u[0] * 0.9995) || t[3] : [1, word(unit)]; };
const shared = (v, unit) => { const t = table(unit), hi = Math.max(...v), lo = Math.min(...v); return t ? t.find((u) => hi >= u[0] && lo >= u[0] * 0.1) || null : [1, word(unit)]; };
// A long unit stands in the heading, not behind each value.
const behind = (w) => [...w].length > 5 ? "" : w;
const ratio = (q) => q === Infinity ? "∞" : decimals(q, q >= 99.95 ? 0 : q >= 9.995 ? 1 : q >= 0.0995 ? 2 : q > 0 && q < 1e-3 ? Math.min(9, -Math.floor(Math.log10(q))) : 3);
// A name that may go on in the next line behind a sign, and one with both of its ends.
const wrappable = (n) => { const out = esc(n).replace("mq-deadline", "mq-<wbr>deadline").replace(/[,(=]/g, "$&<wbr>"); return n.includes("=") ? out.replace(/_/g, "_<wbr>") : out; };
const clipped = (n) => { const all = [...n]; return all.length <= 12 ? n : all.slice(0, 5).join("") + "…" + all.slice(-5).join(""); };
const change = (q) => {
  const p = (q - 1) * 100, a = Math.abs(p);
  return a < 0.05 ? "±0 %" : q >= 1.995 ? ratio(q) + "×" : (p < 0 ? "−" : "+") + decimals(a, a >= 9.95 ? 0 : 1) + " %";
};
const jain = (t) => t.m === "fairness.jain";
const value = (x, unit) => { const [by, w] = scale(x, unit); return sig(x / by) + (w ? " " + w : ""); };
const figure = (t, x) => { if (jain(t)) return decimals(x, 3); const [by, w] = scale(x, t.u); return (sig(x / by) + " " + behind(w)).trimEnd(); };
// Samples.
const mean = (v) => v.reduce((a, b) => a + b, 0) / v.length;
const deviation = (s) => { const m = mean(s); return Math.sqrt(s.reduce((a, x) => a + (x - m) ** 2, 0) / Math.max(1, s.length - 1)); };
// The reference rule: samples farther than 1.5 SD from the mean are left out.
const trimmed = (s) => { const m = mean(s), sd = deviation(s), kept = s.filter((x) => Math.abs(x - m) <= 1.5 * sd); return kept.length ? mean(kept) : m; };
const near = (x, y) => Math.abs(x - y) <= 5e-4 * Math.abs(y);
const same = (a, b) => {
  if (a.v == null || b.v == null || a.n !== b.n || a.cens !== b.cens || (a.s || []).length !== (b.s || []).length) return false;
  return a.s ? a.s.every((x, i) => near(x, b.s[i])) : a.v === b.v && a.mn === b.mn && a.mx === b.mx && a.sd === b.sd;
};
const single = !D.tests.some((t) => t.v.some((c) => c.n > 1));
const sched = (r) => D.runs[r].s, now = (r) => !!D.names[sched(r)].now;
const plural = { core: "cores", ghz: "ghz" };
// By what a run's values are divided: cores, clock, cost; 1 where nothing is asked, 0 where it is not known.
// More cores do not make a wait longer, nor shares smaller: only rates are divided by them.
const rate = (t) => t.b > 0 && /\/|per|fps|bps|iops/i.test(t.u);
const share = (t, r, st) => st.view === "ppd" ? +st.cost[sched(r)] || 0 : plural[st.view] && rate(t) ? D.runs[r][plural[st.view]] || 0 : 1;
// A cell as shown: without outliers, per core …
const cell = (t, r, st) => {
  const c = t.v[r], k = share(t, r, st);
  if (c.v == null) return { why: c.why || "not measured" };
  if (!k) return { why: st.view === "ppd" ? "no cost given" : "not recorded" };
  const f = (x) => x == null ? x : t.b > 0 ? x / k : x * k, s = (c.s || []).map(f);
  const v = f(st.rol && !c.cens ? c.t ?? (c.s ? trimmed(c.s) : c.v) : c.v), sd = c.n > 1 && !c.cens ? f(c.sd ?? (c.s ? deviation(c.s) : null)) : null;
  return { n: c.n, v, lo: f(c.lo), hi: f(c.hi), s, r: c.r || s.map((_, i) => i + 1), sd, se: sd == null ? null : sd / Math.sqrt(c.n), mn: s.length ? Math.min(...s) : f(c.mn ?? c.v), mx: s.length ? Math.max(...s) : f(c.mx ?? c.v), how: c.how ? D.how[c.how] : "", cens: c.cens, starved: c.starved, noisy: c.noisy };
};
const name = (s, st) => st.name[s] || D.names[s].n;
const baseOf = (r, st) => D.runs.findIndex((x) => x.d === D.runs[r].d && x.s === st.base);
// Rounds beyond a limit count as the limit: the figure is at least so much, and a ratio only about so.
const atLeast = (c) => c.cens ? "> " : "";
// How a run stands to the base: [class, ratio, only about].
const standing = (t, r, st) => {
  const b = baseOf(r, st), c = t.v[r], x = cell(t, r, st);
  if (b < 0) return ["lone"];
  if (x.v == null) return ["na"];
  if (b === r) return ["base", 1];
  const plainly = share(t, r, st) === share(t, b, st);
  if (same(c, t.v[b]) && plainly) return ["eq", 1];
  const y = cell(t, b, st).v;
  const letter = c.n < 2 || t.v[b].n < 2 ? "." : (c.p && c.p[b]) || ".";
  if (y == null) return ["lone"];
  // Something is infinitely more than nothing. Below zero differences are judged, and there is no ratio.
  if (!(y > 0) || x.v < 0) return [/b/i.test(letter) ? "b4" : /w/i.test(letter) ? "o4" : letter === "n" ? "nd" : /[ei]/.test(letter) ? "few" : "lone", y === 0 && x.v > 0 ? Infinity : undefined];
  const q = (!st.rol && plainly && letter !== "." && c.q && c.q[b]) || x.v / y, o = t.b > 0 ? q : 1 / q, about = !!(c.cens || t.v[b].cens);
  if (letter === ".") return ["lone", q, about];
  if (letter === "n") return ["nd", q, about];
  if (letter === "e" || letter === "i") return ["few", q, about];
  if (Math.abs(o - 1) < 0.01 || !/[bw]/i.test(letter)) return ["tiny", q, about];
  const l = Math.abs(Math.log2(o));
  return [(/b/i.test(letter) ? "b" : "o") + (l < 0.32 ? 1 : l < 1 ? 2 : l < 2.5 ? 3 : 4), q, about];
};
const WORDS = { base: "base", eq: "identical to the base in every round", nd: "no measurable difference", few: "not enough data to tell", tiny: "measurable, below 1 %", lone: "one value, no test possible", na: "no value" };
const words = (c) => WORDS[c] || (c[0] === "b" ? "measurably better" : "measurably worse");
const sign = ([c, , about]) => c === "nd" || c === "few" ? "≈ " : about ? "~" : "";
const against = (t, s, st) => { const [c, q] = s; return c === "base" ? "base" : c === "eq" ? "=" : q == null ? "" : sign(s) + (st.view === "pct" ? change(q) : ratio(st.view === "raw" ? q : oriented(t, q))); };
const least = (c) => ` title="at least: ${c.starved ? "a round with too few I/Os for this percentile counts as the longest wait" : "a round that stopped at its limit counts as the limit"}"`;
// Of one value the sign says it. There is no column for more.
const beyond = (c) => !c.cens || single ? "" : `<abbr${least(c)}>${c.cens} of ${c.n} ${c.starved ? "starved" : "at limit"}</abbr>`;
const oriented = (t, q) => t.b > 0 ? q : 1 / q;
const names = (rs, st) => {
  const a = rs.filter(now), b = rs.filter((r) => !now(r)), word = (r) => wrappable(name(sched(r), st)), list = (v) => v.map(word).join(" = ");
  // Those that lived until the same kernel say it once.
  const last = (r) => a.length ? "" : D.names[sched(r)].until, until = (r) => last(r) ? ` <small>until ${esc(last(r))}</small>` : "";
  const old = b.every((r) => last(r) === last(b[0])) ? list(b) + (b.length ? until(b[0]) : "") : b.map((r) => word(r) + until(r)).join(" = ");
  return list(a) + (b.length ? `<span class="old">${a.length ? " = " : ""}${old}</span>` : "");
};
const ids = (rs) => rs.join(" ");
// Runs of a device in the chosen order, without those that are hidden.
const runsOf = (d, st) => st.ord.flatMap((s) => st.hide.has(s) ? [] : D.runs.map((_, i) => i).filter((i) => D.runs[i].d === d && D.runs[i].s === s));
const groups = (t, rs, st) => {
  const out = [];
  rs.forEach((r) => { const g = out.find((g) => same(t.v[g[0]], t.v[r]) && share(t, g[0], st) === share(t, r, st)); g ? g.push(r) : out.push([r]); });
  return out;
};
const ticks = (max) => {
  if (!(max > 0) || !Number.isFinite(max)) return [0];
  const p = 10 ** Math.floor(Math.log10(max)), f = max / p, step = (f <= 1.5 ? 0.5 : f <= 3 ? 1 : f <= 5 ? 2 : 5) * p, out = [];
  for (let i = 0; i * step <= max + step * 1e-6; i++) out.push(i * step);
  return out;
};
const axis = (t, cells, st) => {
  const have = cells.filter((c) => c.v != null), means = have.map((c) => c.v);
  if (!means.length) return null;
  const all = have.flatMap((c) => [c.v, ...c.s, c.mx]), pos = all.filter((x) => x > 0), hi = Math.max(...all, 0), lo = Math.min(...pos);
  const least = Math.min(...means), far = least > 0 && Math.max(...means) / least > 30, unit = far ? null : shared(means, t.u);
  if ((far && st.kind !== "b" && st.kind !== "v" || st.kind === "g") && pos.length === all.length) {
    const a = Math.floor(Math.log10(lo)), z = Math.max(Math.ceil(Math.log10(hi)), a + 1);
    let tk = [];
    for (let e = a; e <= z; e++) tk.push(10 ** e);
    const every = Math.ceil((tk.length - 1) / 2);
    tk = tk.filter((_, i) => i % every === 0);
    return { log: true, tk, unit, at: (v) => Math.min(100, Math.max(0, (Math.log10(Math.max(v, 1e-300)) - a) / (z - a) * 100)) };
  }
  const by = unit ? unit[0] : 1, tk = ticks(hi / by).map((x) => x * by), top = Math.max(tk.at(-1) || 1, hi) * 1.02;
  return { log: false, tk, unit, at: (v) => Math.min(100, Math.max(0, v / top * 100)) };
};
const label = (t, ax, i) => {
  const x = ax.tk[i];
  if (x === 0) return "0";
  if (ax.unit) return tick(x / ax.unit[0]) + (i === ax.tk.length - 1 && behind(ax.unit[1]) ? `<q> ${esc(behind(ax.unit[1]))}</q>` : "");
  const [by, u] = scale(x, t.u), w = behind(u);
  return tick(x / by) + (w ? " " + esc(w) : "");
};
const shown = (t, ax, x, more = 0) => { const [by, w] = ax.unit || scale(x, t.u); return [jain(t) ? decimals(x, 3 + more) : sig(x / by, more), behind(w)]; };
// The ends of the interval that was asked for.
const ends = (c, st) => st.rol ? null : st.sp === "se" ? c.se != null && [c.v - c.se, c.v + c.se] : st.sp === "sd" ? c.sd != null && [c.v - c.sd, c.v + c.sd] : st.sp === "mm" ? c.n > 1 && [c.mn, c.mx] : c.lo != null && [c.lo, c.hi];
const P = (x) => { const t = x.toFixed(1); return t.endsWith(".0") ? t.slice(0, -2) : t; };
const chart = (c, ax, st) => {
  const at = (x) => P(ax.at(x)), dots = ax.log || st.kind === "d", ci = ends(c, st), box = st.kind === "x" && c.s.length > 2;
  let h = ax.tk.map((x) => `<u style="left:${at(x)}%"></u>`).join("");
  if (box) {
    const s = [...c.s].sort((a, b) => a - b), q = (p) => { const i = p * (s.length - 1), k = Math.floor(i); return s[k] + (i - k) * ((s[k + 1] ?? s[k]) - s[k]); };
    const w = (a, b) => `left:${at(a)}%;width:${P(ax.at(b) - ax.at(a))}%`;
    return h + `<s class="wk1" style="${w(q(0), q(1))}"></s><s class="bx" style="${w(q(0.25), q(0.75))}"></s><s class="md" style="left:${at(q(0.5))}%;width:0"></s>`;
  }
  if (!dots) h += `<s style="width:${at(c.v)}%;--h:${at(c.v)}%"></s>`;
  if (c.n > 1 && ci && ci[0] < ci[1]) {
    if (ax.at(c.mx) - ax.at(c.mn) < 4) h += `<b class="t" style="left:${at(c.v)}%"></b>`;
    else {
      const every = Math.max(1, Math.ceil(c.s.length / 40));
      if (c.s.length > 1) h += c.s.filter((_, i) => i % every === 0).map((x) => `<i style="left:${at(x)}%"></i>`).join("");
      else h += `<a style="left:${at(c.mn)}%;width:${P(ax.at(c.mx) - ax.at(c.mn))}%"></a>`;
      h += `<b style="left:${at(ci[0])}%;width:${P(ax.at(ci[1]) - ax.at(ci[0]))}%"></b>`;
    }
  }
  return dots ? h + `<em style="left:${at(c.v)}%"></em>` : h;
};
const spread = (t, ax, c) => {
  if (c.n < 2) return "";
  const v = (x) => shown(t, ax, x).filter(Boolean).join(" ");
  return [c.se != null && `SE ${v(c.se)}`, c.sd != null && `SD ${v(c.sd)}`, `${v(c.mn)} to ${v(c.mx)}`, c.how].filter(Boolean).join(", ");
};
const marked = (rs, st) => rs.some((r) => st.hi.has(sched(r))) ? " hi" : "";
const line = (t, g, ax, st) => {
  const c = cell(t, g[0], st), nm = names(g, st);
  if (c.v == null) return `<tr class="na" data-r="${ids(g)}"><th scope="row">${nm}</th><td colspan="5" class="why">no value: ${esc(c.why)}</td></tr>`;
  const all = g.map((r) => standing(t, r, st)), s = all.find((x) => x[0] === "base") || all[0], [num, w] = shown(t, ax, c.v), ci = ends(c, st);
  const text = c.n < 2 || !ci ? "" : ci[0] === ci[1] ? "exact" : apart(...ci, (x, more) => shown(t, ax, x, more)[0]).join(" – ");
  const noisy = c.noisy ? ' <abbr title="standard deviation above 6 % of the mean">noisy</abbr>' : beyond(c);
  return `<tr class="${s[0]}${g.some(now) ? "" : " hist"}${marked(g, st)}" data-r="${ids(g)}"><th scope="row">${nm}</th><td class="bar" aria-hidden="true"><div>${chart(c, ax, st)}</div></td><td class="v"${c.cens && single ? least(c) : ""}>${c.cens ? "&gt;&#8239;" : ""}${num}<span>${w ? " " + esc(w) : ""}</span></td><td class="ci" title="${esc(spread(t, ax, c))}">${text}${noisy}</td><td class="ch" title="${words(s[0])}">${against(t, s, st)}</td><td class="n">${single ? "" : c.n}</td></tr>`;
};
// Lines over the rounds: each value at its round, a gap where one is missing.
const lines = (t, title, gs, st) => {
  const cs = gs.map((g) => cell(t, g[0], st)), have = cs.filter((c) => c.v != null);
  if (!have.length) return "";
  const pts = (c) => c.s.length ? c.s.map((v, i) => [c.r[i], v]) : [[1, c.v]], all = have.flatMap(pts);
  const n = Math.max(2, ...all.map((p) => p[0])), unit = shared(all.map((p) => p[1]), t.u) || scale(Math.max(...all.map((p) => p[1])), t.u), tk = ticks(Math.max(...all.map((p) => p[1])) / unit[0]), top = Math.max(tk.at(-1), ...all.map((p) => p[1] / unit[0])) * unit[0] || 1;
  const X = (i) => 64 + (i - 1) / (n - 1) * 560, Y = (v) => 168 - v / top * 156, every = Math.ceil(n / 12);
  let h = `<svg viewBox="0 0 640 200" class="rounds" role="img" aria-label="${esc(title)}, ${esc(D.devices[D.runs[gs[0][0]].d])}, round by round">`;
  tk.forEach((y, i) => { h += `<path class="rule" d="M64 ${Y(y * unit[0]).toFixed(1)}H632"/><text x="58" y="${(Y(y * unit[0]) + 4).toFixed(1)}" text-anchor="end">${tick(y)}${i === tk.length - 1 && unit[1] ? " " + esc(unit[1]) : ""}</text>`; });
  for (let i = 1; i <= n; i += every) h += `<text x="${X(i).toFixed(1)}" y="188" text-anchor="middle">${i}</text>`;
  gs.forEach((g, k) => {
    if (cs[k].v == null) return;
    let d = "", last = null;
    pts(cs[k]).forEach(([i, v]) => { d += (last == null || (!st.clg && i - last > 1) ? "M" : "L") + X(i).toFixed(1) + " " + Y(v).toFixed(1); if (last == null || (!st.clg && i - last > 1)) d += "h.1"; last = i; });
    h += `<g class="s${sched(g[0]) % 8}${marked(g, st)}" data-r="${ids(g)}"><path class="l${g.some(now) ? "" : " gone"}" stroke-linecap="round" d="${d}"/></g>`;
  });
  const key = gs.map((g, k) => cs[k].v == null ? "" : `<span class="s${sched(g[0]) % 8}"><svg width="24" height="8" aria-hidden="true"><path class="l${g.some(now) ? "" : " gone"}" d="M0 4H24"/></svg>${names(g, st)}</span>`).join("");
  return h + `</svg><div class="key">${key}</div>`;
};
const strip = (t, title, d, st) => {
  let gs = groups(t, runsOf(d, st), st);
  if (st.best) gs.sort((a, b) => { const x = cell(t, a[0], st).v, y = cell(t, b[0], st).v; return x == null ? (y == null ? 0 : 1) : y == null ? -1 : (y - x) * t.b; });
  if (st.kind === "l" && !st.scalar) return lines(t, title, gs, st);
  const ax = axis(t, gs.map((g) => cell(t, g[0], st)), st);
  if (!ax) return "";
  const vert = st.kind === "v" ? " vert" : "";
  let h = `<table class="strip${ax.log ? " log" : ""}${vert}"><caption class="vh">${esc(title)}, ${esc(D.devices[d])}</caption><colgroup><col class="c1"><col><col class="c3"><col class="c4"><col class="c5"><col class="c6"></colgroup><thead class="vh"><tr>${["scheduler", "chart", "mean", "95 % interval", "against " + esc(name(st.base, st)), "n"].map((x) => `<th scope="col">${x}</th>`).join("")}</tr></thead><tbody>`;
  gs.forEach((g) => { h += line(t, g, ax, st); });
  h += `<tr class="ax" aria-hidden="true"><td></td><td><div>${ax.tk.map((x, i) => `<span style="left:${P(ax.at(x))}%">${label(t, ax, i)}</span>`).join("")}</div></td><td colspan="4">${ax.log ? "log axis, no bars" : ""}</td></tr>`;
  return h + "</tbody></table>";
};
// What a cell of the overview says.
const text = (t, r, s, rs, st) => {
  const v = cell(t, r, st).v;
  if (v == null) return "–";
  if (["abs", "core", "ghz", "ppd"].includes(st.view)) return figure(t, v);
  if (st.view === "best" || st.view === "worst") {
    const all = rs.map((x) => cell(t, x, st).v).filter((x) => x > 0).map((x) => oriented(t, x)), ref = Math[st.view === "best" ? "max" : "min"](...all);
    return v > 0 ? ratio(oriented(t, v) / ref) : "–";
  }
  if (s[0] === "base") return atLeast(t.v[r]) + figure(t, v);
  if (s[0] === "eq") return st.view === "pct" ? "0 %" : "=";
  if (s[1] == null) return "–";
  return sign(s) + (st.view === "pct" ? change(s[1]) : ratio(st.view === "raw" ? s[1] : oriented(t, s[1])));
};
const breakable = (n) => wrappable(n).replace("anticipatory", "antici&shy;patory");
const td = (t, g, rs, st, cls) => {
  const b = g.find((r) => sched(r) === st.base), r = b ?? g[0], s = standing(t, r, st), c = cell(t, r, st), note = st.note[sched(r)];
  const tip = g.map((x) => name(sched(x), st)).join(" = ") + (c.v == null ? "" : ": " + atLeast(c) + figure(t, c.v)) + "; " + words(s[0]) + (note ? "; " + note : "");
  return `<td class="${cls}${s[0]}${g.length > 1 ? " mrg" : ""}" ${g.length > 1 ? `colspan="${g.length}" ` : ""}tabindex="-1" title="${esc(tip)}"><span>${esc(text(t, r, s, rs, st))}</span></td>`;
};
const runs_in_a_row = (t, rs, st) => {
  const out = [];
  rs.forEach((r) => { const g = out.at(-1); g && same(t.v[g[0]], t.v[r]) && now(g[0]) === now(r) && share(t, g[0], st) === share(t, r, st) ? g.push(r) : out.push([r]); });
  return out;
};
// `rows`: [panel, [row, …]] with row = [test, id, title, sub, title with sub where needed].
// Devices side by side, or below each other where that would be too many columns, as in matrix.rs.
const blocks = (C) => {
  const all = C.flat().length, out = [];
  let taken = 0;
  C.forEach((c, d) => {
    if (!c.length) return;
    taken += c.length;
    if (out.length && (all <= 18 || taken <= 14)) out.at(-1).push(d); else { out.push([d]); taken = c.length; }
  });
  return out;
};
const blockHeads = (C, g, n, of, st) => {
  const tr = n ? '<tr class="h">' : "<tr>";
  let h = (n ? `<tbody class="${of} hd">` : "<thead>") + tr + '<th class="rl" rowspan="3">Measure</th>';
  g.forEach((d) => { h += `<th class="dev d${d}" colspan="${C[d].length}" scope="colgroup">${esc(D.devices[d])}</th>`; });
  h += "</tr>" + tr;
  g.forEach((d) => {
    const c = C[d];
    // Runs of those that the kernel has, and of those it has not, in the order shown.
    for (let k = 0; k < c.length;) { let n = 1; while (k + n < c.length && now(c[k + n]) === now(c[k])) n++; h += `<th class="grp d${d}${k ? "" : " fst"}${now(c[k]) ? "" : " old"}" colspan="${n}" scope="colgroup">${now(c[k]) ? "in this kernel" : "not in this kernel"}</th>`; k += n; }
  });
  return h + "</tr>" + tr + g.map((d) => C[d].map((r, k) => `<th class="sc d${d}${now(r) ? "" : " old"}${k ? "" : " fst"}${sched(r) === st.base ? " isb" : ""}${marked([r], st)}" scope="col" data-b="${sched(r)}" title="click: compare with ${esc(D.schedulers[sched(r)])}${st.note[sched(r)] ? "; " + esc(st.note[sched(r)]) : ""}">${breakable(name(sched(r), st))}${st.note[sched(r)] ? "<sup>*</sup>" : ""}${!now(r) && D.names[sched(r)].until ? ` <small>to ${esc(D.names[sched(r)].until)}</small>` : ""}</th>`).join("")).join("") + "</tr>" + (n ? "</tbody>" : "</thead>");
};
const matrix = (rows, st) => {
  const C = D.devices.map((_, d) => runsOf(d, st));
  if (st.trn) return transposed(rows, C, st);
  const G = blocks(C), wide = (g) => g.reduce((n, d) => n + C[d].length, 0), widest = G.reduce((a, b) => (a && wide(a) >= wide(b) ? a : b), null) ?? [];
  let h = '<caption class="vh">Every measure of every scheduler against the base; arrow keys walk the cells, Enter opens the measure</caption><colgroup><col class="cl">' + widest.map((d) => '<col class="cf">' + "<col>".repeat(C[d].length - 1)).join("") + "</colgroup>";
  G.forEach((g, n) => {
    const of = G.length > 1 ? g.map((d) => "d" + d).join(" ") : "";
    h += blockHeads(C, g, n, of, st);
    rows.forEach(([p, list]) => {
      h += `<tbody${of ? ` class="${of}"` : ""}><tr class="wl"><th colspan="${1 + wide(g)}" scope="rowgroup">${esc(p.t)}</th></tr>`;
      list.forEach(([i, id, own, , title = own]) => {
        const t = D.tests[i];
        h += `<tr data-m="${esc(id)}"><th class="rl" scope="row"><a href="#${esc(id)}">${esc(title)}</a></th>` + g.map((d) => runs_in_a_row(t, C[d], st).map((m, k) => td(t, m, C[d], st, `d${d} ${k ? "" : "fst "}`)).join("")).join("") + "</tr>";
      });
      h += "</tbody>";
    });
  });
  return h;
};
const transposed = (rows, C, st) => {
  const M = rows.flatMap(([, l]) => l);
  let h = '<thead><tr><th class="rl" rowspan="2">Scheduler</th>' + rows.map(([p, l]) => `<th class="dev" colspan="${l.length}" scope="colgroup">${esc(p.t)}</th>`).join("") + "</tr><tr>" + M.map(([, id, own, , title = own]) => `<th class="sc" scope="col"><a href="#${esc(id)}">${esc(title)}</a></th>`).join("") + "</tr></thead>";
  C.forEach((c, d) => {
    h += `<tbody><tr class="wl"><th colspan="${M.length + 1}" scope="rowgroup">${esc(D.devices[d])}</th></tr>` + c.map((r) => `<tr data-s="${sched(r)}"><th class="rl${now(r) ? "" : " old"}" scope="row">${names([r], st)}</th>${M.map(([i]) => td(D.tests[i], [r], c, st, "")).join("")}</tr>`).join("") + "</tbody>";
  });
  return h;
};
return { atLeast, behind, clipped, esc, plain, sig, scale, value, change, figure, cell, standing, words, strip, matrix, runsOf, sched, name, names, rate, trimmed, deviation, decimals };
};
