//! A comparison run again, as a page of its own: two joined dots for each published figure.

use iosched_report::svg::{Svg, escape};
use iosched_types::units::three_digits;

use super::render::explanations;
use super::{Cell, Direction, Reproduced, Verdict};

/// Width of a picture, of the names at its left, of the figures at its right; height of a row.
const WIDTH: u32 = 640;
const LEFT: f64 = 108.0;
const RIGHT: f64 = 130.0;
const ROW: f64 = 24.0;
/// Ratios at the ends of the axis at least.
const LEAST: f64 = 0.5;
const MOST: f64 = 2.0;

const CSS: &str = "\
:root{color-scheme:light dark;--bg:#fff;--fg:#1f2328;--mute:#59636e;--line:#d1d9e0;--hair:#e6eaef;--acc:#0969da;--bad:#9c4a00}\
@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--mute:#9198a1;--line:#30363d;--hair:#21262d;--acc:#4493f8;--bad:#ffb566}}\
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);\
font:14px/20px system-ui,-apple-system,\"Segoe UI\",Roboto,\"Liberation Sans\",sans-serif;font-variant-numeric:tabular-nums}\
main{max-width:1400px;margin:0 auto;padding:24px}h1{font-size:28px;line-height:32px;margin:0 0 8px}\
h2{font-size:20px;line-height:24px;margin:32px 0 8px}h3{font-size:14px;margin:0}p{margin:0 0 8px;max-width:80ch}\
.big{font-size:16px;line-height:24px}.mute,small{color:var(--mute);font-size:12px;line-height:16px}\
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,560px),1fr));gap:24px 48px}\
figure{margin:0;border-top:1px solid var(--line);padding-top:8px}svg{display:block;max-width:100%;overflow:visible}\
svg text{font-size:12px;fill:var(--mute);font-family:inherit}svg .fg text{fill:var(--fg)}svg :is(.bad,.lost) text{fill:var(--bad)}svg .bad text{font-weight:600}\
svg path{stroke:var(--hair);fill:none}svg .one{stroke:var(--mute)}svg .join{stroke:var(--line);stroke-width:3}\
svg .p path,svg path.p{stroke:var(--mute);stroke-width:9;stroke-linecap:round}\
svg .o path,svg path.o{stroke:var(--acc);stroke-width:9;stroke-linecap:round}\
svg path.r{stroke:var(--fg);stroke-width:3;stroke-linecap:round}\
ul{list-style:none;margin:0;padding:0}li{border-top:1px solid var(--hair);padding:8px 0;display:grid;grid-template-columns:112px 1fr;gap:0 16px}\
li b{font-weight:600}li.disagree b{color:var(--bad)}li.agree b{color:var(--acc)}\
.k{display:inline-block;width:9px;height:9px;border-radius:5px;margin:0 4px 0 12px}.k.p{background:var(--mute)}.k.o{background:var(--acc)}.k.r{background:var(--fg);width:3px;border-radius:2px}\
@media(max-width:600px){li{grid-template-columns:1fr}main{padding:16px}}\
@media print{.grid{grid-template-columns:1fr 1fr}figure{break-inside:avoid}}";

impl Reproduced {
    /// The page.
    #[must_use]
    pub fn page(&self, title: &str) -> String {
        let mut out = format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <title>{0} run again</title><style>{CSS}</style><main><h1>{0}, run again</h1>\
             <p class=\"mute\">{1}</p><p class=\"big\">{2}</p>\
             <p class=\"mute\"><i class=\"k p\"></i>published<i class=\"k o\"></i>iosched{4}. Each figure is a multiple of \
             that of the base scheduler; the axis is logarithmic.{3}</p>",
            escape(&self.name),
            escape(title),
            escape(&self.answer()),
            escape(&self.counted()),
            if self.kernel.is_some() { "<i class=\"k r\"></i>the kernel itself" } else { "" }
        );
        for r in &self.remarks {
            out.push_str(&format!("<p class=\"mute\">{}</p>", escape(r)));
        }
        out.push_str("<h2>Figures</h2><div class=\"grid\">");
        let mut at = 0;
        while let Some(first) = self.cells.get(at) {
            let same = |c: &&Cell| c.test == first.test && c.device == first.device;
            let n = self.cells[at..].iter().take_while(same).count();
            out.push_str(&figure(&self.cells[at..at + n]));
            at += n;
        }
        out.push_str("</div><h2>Claims</h2><ul>");
        for c in &self.claims {
            let (class, word) = match c.verdict {
                Verdict::Agree => ("agree", "borne out"),
                Verdict::Disagree => ("disagree", "contradicted"),
                Verdict::NotMeasurable => ("", "not measurable"),
            };
            out.push_str(&format!(
                "<li class=\"{class}\"><b>{word}</b><div>{}<br><small>{}</small></div></li>",
                escape(&c.claim),
                escape(&c.evidence)
            ));
        }
        out.push_str("</ul></main></html>\n");
        out
    }
}

impl Reproduced {
    /// What counts, and what is marked for it.
    fn counted(&self) -> String {
        if !self.has_published() {
            return String::new();
        }
        format!(
            " A name in bold brown: the two point different ways. In plain brown: a published difference that is none here. \
             A published difference counts beyond {}.",
            self.noise
        )
    }
}

/// How the name of a cell is marked. What is in no count has no mark.
fn class(c: &Cell) -> &'static str {
    match c.direction {
        Direction::Disagree if c.uncounted.is_some() => "fg",
        Direction::Disagree if c.our_difference => "bad",
        Direction::Disagree => "lost",
        _ => "fg",
    }
}

/// A test on a device: a row for each scheduler.
fn figure(cells: &[Cell]) -> String {
    let Some(first) = cells.first() else { return String::new() };
    let better = match first.higher_is_better {
        Some(true) => ", more is better",
        Some(false) => ", less is better",
        None => "",
    };
    format!(
        "<figure><h3>{}</h3><small>{}, {}{better}</small>{}{}</figure>",
        escape(&first.test),
        escape(&first.device),
        escape(&first.unit),
        picture(cells),
        explanations(cells)
            .iter()
            .map(|(who, why)| format!("<p class=\"mute\">{}: {}</p>", escape(who), escape(why)))
            .collect::<String>()
    )
}

fn picture(cells: &[Cell]) -> String {
    let ratios =
        || cells.iter().flat_map(|c| [c.published_ratio, c.our_ratio, c.kernel_ratio]).flatten();
    let usable = || ratios().filter(|r| *r > 0.0);
    let (low, high) = (usable().fold(LEAST, f64::min), usable().fold(MOST, f64::max));
    let span = f64::from(WIDTH) - LEFT - RIGHT;
    let x = |r: f64| LEFT + (r.max(low) / low).ln() / (high / low).ln() * span;
    let height = 28.0 + ROW * cells.len() as f64;
    let title = format!("{} on {}: published beside iosched", cells[0].test, cells[0].device);
    let mut svg = Svg::new(WIDTH, height as u32, "dots", &title);
    for tick in [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0] {
        if (low..=high).contains(&tick) {
            let class = if tick == 1.0 { "one" } else { "" };
            svg.line(class, (x(tick), 20.0), (x(tick), height));
            svg.text((x(tick), 14.0), "middle", &format!("{tick}×"));
        }
    }
    svg.text((f64::from(WIDTH), 14.0), "end", "published, iosched");
    for (i, c) in cells.iter().enumerate() {
        let y = 32.0 + ROW * i as f64;
        if let (Some(p), Some(o)) = (c.published_ratio, c.our_ratio) {
            svg.line("join", (x(p), y), (x(o), y));
        }
        for (class, ratio) in [("p", c.published_ratio), ("o", c.our_ratio)] {
            if let Some(r) = ratio {
                svg.line(class, (x(r), y), (x(r), y));
            }
        }
        if let Some(r) = c.kernel_ratio {
            svg.line("r", (x(r), y - 8.0), (x(r), y + 8.0));
        }
        svg.open(class(c), &[]);
        svg.text((LEFT - 12.0, y + 4.0), "end", &c.scheduler);
        let number = |v: Option<f64>| v.map_or("–".into(), three_digits);
        let figures = format!("{}, {}", number(c.published), number(c.ours));
        svg.text((f64::from(WIDTH), y + 4.0), "end", &figures);
        svg.close();
    }
    svg.finish()
}
