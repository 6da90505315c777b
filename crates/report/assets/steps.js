// Plays the lanes in step: one clock, each lane shows the part that has happened.
(() => {
  const $ = (s, e = document) => e.querySelector(s), $$ = (s, e = document) => [...e.querySelectorAll(s)];
  const LEFT = 56, RIGHT = 632, TOP = 8, BOTTOM = 368;
  const slider = $("#time"), end = +slider.max, go = $("#go");
  const lanes = $$(".scene").map((e) => ({
    e, svg: $("svg", e), head: $(".head", e),
    steps: $$("g[data-c]", e).map((g) => ({ g, c: +g.dataset.c, s: +g.dataset.s, d: +g.dataset.d, y: +g.dataset.y, what: g.dataset.w, pid: g.dataset.p, why: g.dataset.why })),
    idle: $$(".idle", e).map((p) => ({ p, f: p.dataset.f / 1e6, t: p.dataset.t / 1e6, why: $("title", p).textContent })),
  }));
  const x = (t) => LEFT + (t / end) * (RIGHT - LEFT);
  const stops = [...new Set([0, end, ...lanes.flatMap((l) => [...l.steps.flatMap((s) => [s.s, s.d]), ...l.idle.map((i) => i.f)])])].filter((t) => t >= 0).sort((a, b) => a - b);
  lanes.forEach((l, i) => {
    const ns = "http://www.w3.org/2000/svg", clip = document.createElementNS(ns, "clipPath"), rect = document.createElementNS(ns, "rect");
    clip.id = "past" + i;
    rect.setAttribute("y", -20); rect.setAttribute("height", 460); rect.setAttribute("x", 0);
    clip.append(rect); l.svg.append(clip); l.rect = rect;
    [...l.steps.map((s) => s.g), ...l.idle.map((d) => d.p), l.head].forEach((e) => e && e.setAttribute("clip-path", `url(#past${i})`));
  });
  const show = (t) => {
    slider.value = t;
    $("#clock").textContent = t.toFixed(3) + " ms";
    for (const l of lanes) {
      l.rect.setAttribute("width", x(t));
      $(".clock", l.svg).setAttribute("d", `M${x(t)} ${TOP}V${BOTTOM}`);
      const waiting = l.steps.filter((s) => s.c >= 0 && s.c <= t && (s.s < 0 || s.s > t)), at = l.steps.filter((s) => s.s >= 0 && s.s <= t && (s.d < 0 || s.d > t));
      const idle = l.idle.find((i) => i.f <= t && i.t > t), last = l.steps.filter((s) => s.s >= 0 && s.s <= t).sort((a, b) => b.s - a.s)[0];
      const by = {};
      waiting.forEach((s) => { by[s.pid] = (by[s.pid] || 0) + 1; });
      const told = Object.entries(by).map(([p, n]) => `${n} of ${p}`).join(", ");
      $(".now", l.e).textContent = `waiting: ${told || "none"}; ` + (at.length ? `at the device: ${at.map((s) => `${s.what} of ${s.pid}`).join(", ")}` : idle ? "held idle" : "the device has nothing to do");
      $(".because", l.e).textContent = idle ? idle.why : last ? last.why : "";
      const dot = $(".at", l.svg);
      dot.setAttribute("cx", last ? x(t) : -9); dot.setAttribute("cy", last ? last.y : -9);
    }
  };
  let running = 0, before = 0;
  const stop = () => { cancelAnimationFrame(running); running = 0; go.textContent = "Play"; go.setAttribute("aria-pressed", "false"); };
  const tick = (now) => {
    const t = Math.min(end, +slider.value + Math.max(0, now - before) * +$("#speed").value);
    before = now;
    show(t);
    if (t >= end) stop(); else running = requestAnimationFrame(tick);
  };
  const play = () => {
    if (running) return stop();
    if (+slider.value >= end) show(0);
    go.textContent = "Pause"; go.setAttribute("aria-pressed", "true");
    before = performance.now();
    running = requestAnimationFrame(tick);
  };
  const step = (way) => {
    stop();
    const t = +slider.value, next = way > 0 ? stops.find((s) => s > t + 1e-9) : stops.findLast((s) => s < t - 1e-9);
    show(next ?? (way > 0 ? end : 0));
  };
  go.onclick = play;
  $("#step").onclick = () => step(1);
  $("#back").onclick = () => step(-1);
  const parts = $("#parts"), there = $("#there");
  if (parts) { there.hidden = false; there.onclick = () => { stop(); show(+parts.dataset.t); }; }
  slider.oninput = () => { const t = +slider.value; stop(); show(t); };
  addEventListener("keydown", (e) => {
    if (e.target.closest("select, input, button") && e.key === " ") return;
    const act = { " ": play, ArrowRight: () => step(1), ArrowLeft: () => step(-1), Home: () => { stop(); show(0); }, End: () => { stop(); show(end); } }[e.key];
    if (act && !e.target.closest("select")) { e.preventDefault(); act(); }
  });
  $("#play").hidden = false; $(".keys").hidden = false;
  show(end);
})();
