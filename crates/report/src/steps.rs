//! A scenario under several schedulers, played in step: queue, head and device over time, with the reason of each decision.
//!
//! The picture is complete without its script and on paper; the script covers the part that has not happened yet.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::html::{hash, squeeze};
use crate::svg::{Svg, escape, ticks};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 632.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 368.0;
/// Colours of processes; more share the last.
const COLORS: usize = 5;

/// A request under one scheduler. Times in ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// `R1000+8`.
    pub what: String,
    /// Process.
    pub pid: u32,
    /// What it is called: `pid 3`, `film`.
    pub who: String,
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u32,
    /// How long it had waited when the clock began.
    pub before: u64,
    /// When it came to the scheduler; 0 of one that had come before.
    pub came: Option<u64>,
    /// When the scheduler gave it to the device.
    pub sent: Option<u64>,
    /// When it was done.
    pub done: Option<u64>,
    /// Why it was sent then.
    pub why: String,
}

/// What one scheduler did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lane {
    /// Scheduler.
    pub name: String,
    /// Requests.
    pub steps: Vec<Step>,
    /// Times in which it held the device idle: from, to, why.
    pub idle: Vec<(u64, u64, String)>,
}

/// The page of a scenario: a lane a scheduler, one clock.
#[must_use]
pub fn steps(title: &str, lanes: &[Lane]) -> String {
    let frame = Frame::of(lanes);
    let mut body = String::new();
    for l in lanes {
        let _ = write!(
            body,
            "<section class=\"scene\"><h2>{}</h2>{}<p class=\"now\" aria-live=\"polite\"></p><p class=\"because\"></p></section>",
            escape(&l.name),
            picture(l, &frame)
        );
    }
    let script = squeeze(include_str!("../assets/steps.js"));
    let css =
        squeeze(include_str!("../assets/page.css")) + &squeeze(include_str!("../assets/steps.css"));
    include_str!("../assets/steps.html")
        .replace("{title}", &escape(title))
        .replace("{hash}", &hash(&script))
        .replace("{css}", &css)
        .replace("{key}", &key(lanes, &frame.colors))
        .replace("{part}", &parting(lanes))
        .replace("{totals}", &totals(lanes))
        .replace("{end}", &format!("{:.3}", frame.end as f64 / 1e6))
        .replace("{script}", &script)
        .replace("{lanes}", &body)
}

/// What a lane sent, in order.
fn order(lane: &Lane) -> Vec<(u64, &Step)> {
    let mut sent: Vec<(u64, &Step)> =
        lane.steps.iter().filter_map(|s| Some((s.sent?, s))).collect();
    sent.sort_by_key(|s| s.0);
    sent
}

fn ms(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

/// The first decision in which the lanes differ, with a button that goes there.
fn parting(lanes: &[Lane]) -> String {
    let orders: Vec<Vec<(u64, &Step)>> = lanes.iter().map(order).collect();
    let Some(longest) = orders.iter().map(Vec::len).max().filter(|_| lanes.len() > 1) else {
        return String::new();
    };
    let what = |o: &Vec<(u64, &Step)>, i: usize| o.get(i).map(|s| s.1.what.clone());
    let differs = |i: &usize| orders.iter().any(|o| what(o, *i) != what(&orders[0], *i));
    let Some(at) = (0..longest).find(differs) else {
        return "<p>All send the requests in one order.</p>".into();
    };
    let time = orders.iter().filter_map(|o| Some(o.get(at)?.0)).min().unwrap_or(0);
    let each = lanes.iter().zip(&orders).map(|(l, o)| match o.get(at) {
        Some((t, s)) => {
            format!("<b>{}</b> sends {} at {}", escape(&l.name), escape(&s.what), ms(*t))
        }
        None => format!("<b>{}</b> sends nothing more", escape(&l.name)),
    });
    format!(
        "<p id=\"parts\" data-t=\"{}\">They part at decision {}: {}. <button type=\"button\" id=\"there\" hidden>Go there</button></p>",
        time as f64 / 1e6,
        at + 1,
        each.collect::<Vec<_>>().join(", ")
    )
}

/// What it came to, a line a lane.
fn totals(lanes: &[Lane]) -> String {
    let mut rows = String::new();
    for l in lanes {
        let sent = order(l);
        let jumps = sent.windows(2).map(|w| {
            let from = w[0].1.sector + u64::from(w[0].1.sectors);
            from.abs_diff(w[1].1.sector)
        });
        let waits: Vec<u64> = l
            .steps
            .iter()
            .filter_map(|s| Some(s.done?.saturating_sub(s.came?) + s.before))
            .collect();
        let mean = waits.iter().sum::<u64>().checked_div(waits.len() as u64);
        let idle: u64 = l.idle.iter().map(|(from, to, _)| to.saturating_sub(*from)).sum();
        let done = l.steps.iter().filter_map(|s| s.done).max();
        let or = |t: Option<u64>| t.map_or("–".into(), ms);
        let _ = write!(
            rows,
            "<tr><th scope=\"row\">{}</th><td>{} of {}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&l.name),
            waits.len(),
            l.steps.len(),
            or(done),
            or(mean),
            or(waits.iter().max().copied()),
            ms(idle),
            short(jumps.sum()),
        );
    }
    format!(
        "<div class=\"scroll\"><table class=\"dt\"><thead><tr><th scope=\"col\">scheduler</th><th scope=\"col\">done</th><th scope=\"col\">all by</th><th scope=\"col\">mean wait</th><th scope=\"col\">longest wait</th><th scope=\"col\">held idle</th><th scope=\"col\">sectors between requests</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

/// The frame that all lanes share.
struct Frame {
    end: u64,
    low: u64,
    high: u64,
    colors: BTreeMap<u32, usize>,
}

impl Frame {
    fn of(lanes: &[Lane]) -> Frame {
        let all = || lanes.iter().flat_map(|l| &l.steps);
        let times = all().flat_map(|s| [s.came, s.sent, s.done]).flatten();
        let idle = lanes.iter().flat_map(|l| l.idle.iter().map(|i| i.1));
        let mut pids: Vec<u32> = all().map(|s| s.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        let low = all().map(|s| s.sector).min().unwrap_or(0);
        let high = all().map(|s| s.sector + u64::from(s.sectors)).max().unwrap_or(1);
        Frame {
            end: times.chain(idle).max().unwrap_or(0).max(1),
            low,
            high: high.max(low + 1),
            colors: pids.into_iter().enumerate().map(|(i, p)| (p, i.min(COLORS - 1))).collect(),
        }
    }

    fn x(&self, t: u64) -> f64 {
        LEFT + t as f64 / self.end as f64 * (RIGHT - LEFT)
    }

    fn y(&self, sector: u64) -> f64 {
        let part = (sector - self.low.min(sector)) as f64 / (self.high - self.low) as f64;
        BOTTOM - 6.0 - part * (BOTTOM - TOP - 12.0)
    }
}

fn picture(lane: &Lane, f: &Frame) -> String {
    let mut svg = Svg::new(
        WIDTH as u32,
        HEIGHT as u32,
        "steps",
        &format!("{}: requests by sector over time", lane.name),
    );
    let ms = f.end as f64 / 1e6;
    for v in ticks(0.0, ms, 6) {
        let at = f.x((v * 1e6) as u64);
        svg.line("rule", (at, TOP), (at, BOTTOM));
        svg.text((at, BOTTOM + 18.0), "middle", &format!("{v} ms"));
    }
    for s in [f.low, f.high] {
        svg.text((LEFT - 6.0, f.y(s) + 4.0), "end", &short(s));
    }
    let mut out = svg.finish();
    let mut inner = String::new();
    for (from, to, why) in &lane.idle {
        let (a, b) = (f.x(*from), f.x(*to));
        let _ = write!(
            inner,
            "<path class=\"idle\" data-f=\"{}\" data-t=\"{}\" d=\"M{a:.1} {TOP}H{b:.1}V{BOTTOM}H{a:.1}z\"><title>{}</title></path>",
            from,
            to,
            escape(why)
        );
    }
    inner += &head(lane, f);
    for s in &lane.steps {
        inner += &life(s, f);
    }
    inner += "<path class=\"clock\" d=\"\"/><circle class=\"at\" r=\"5\" cx=\"-9\" cy=\"-9\"/>";
    out.insert_str(out.len() - "</svg>".len(), &inner);
    out
}

/// The way of the head: from one request that is sent to the next.
fn head(lane: &Lane, f: &Frame) -> String {
    let mut sent = order(lane);
    sent.dedup_by_key(|s| (s.0, s.1.sector));
    let points = sent.iter().flat_map(|(t, s)| {
        let end = s.done.unwrap_or(*t);
        [(f.x(*t), f.y(s.sector)), (f.x(end), f.y(s.sector + u64::from(s.sectors)))]
    });
    let line: Vec<String> = points.map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    match line.is_empty() {
        true => String::new(),
        false => format!("<path class=\"head\" d=\"M{}\"/>", line.join("L")),
    }
}

/// A request: a thin line while it waits, a thick one at the device.
fn life(s: &Step, f: &Frame) -> String {
    let Some(came) = s.came else { return String::new() };
    let sent = s.sent.unwrap_or(f.end);
    let (y, color) = (f.y(s.sector), f.colors.get(&s.pid).copied().unwrap_or(COLORS - 1));
    let ms = |t: Option<u64>| t.map_or("-".into(), |t| format!("{:.3} ms", t as f64 / 1e6));
    let told = format!(
        "{} of {}: came {}, sent {}, done {}. {}",
        s.what,
        s.who,
        ms(s.came),
        ms(s.sent),
        ms(s.done),
        s.why
    );
    let number = |t: Option<u64>| t.map_or(-1.0, |t| t as f64 / 1e6);
    let served = match (s.sent, s.done) {
        (Some(a), Some(b)) => {
            format!("<path class=\"serve\" d=\"M{:.1} {y:.1}H{:.1}\"/>", f.x(a), f.x(b))
        }
        _ => String::new(),
    };
    format!(
        "<g class=\"p{color}\" tabindex=\"-1\" data-c=\"{}\" data-s=\"{}\" data-d=\"{}\" data-w=\"{}\" data-p=\"{}\" data-y=\"{:.1}\" data-why=\"{}\"><title>{}</title><path class=\"wait\" d=\"M{:.1} {y:.1}H{:.1}\"/>{served}</g>",
        number(s.came),
        number(s.sent),
        number(s.done),
        escape(&s.what),
        escape(&s.who),
        y,
        escape(&s.why),
        escape(&told),
        f.x(came),
        f.x(sent).max(f.x(came) + 1.0),
    )
}

/// `1.2 M` sectors.
fn short(sector: u64) -> String {
    match sector {
        0..=9_999 => sector.to_string(),
        10_000..=9_999_999 => format!("{:.1} k", sector as f64 / 1e3),
        _ => format!("{:.1} M", sector as f64 / 1e6),
    }
}

fn key(lanes: &[Lane], colors: &BTreeMap<u32, usize>) -> String {
    let mut out = String::new();
    let called = |pid: u32| {
        let of = lanes.iter().flat_map(|l| &l.steps).find(|s| s.pid == pid);
        of.map_or_else(String::new, |s| escape(&s.who).to_string())
    };
    for (pid, color) in colors.iter().take(COLORS - 1) {
        let _ = write!(out, "<span><i class=\"p{color}\"></i>{}</span>", called(*pid));
    }
    match colors.len() {
        0..COLORS => {}
        COLORS => {
            let last = colors.keys().next_back().copied().unwrap_or_default();
            let _ = write!(out, "<span><i class=\"p{}\"></i>{}</span>", COLORS - 1, called(last));
        }
        n => {
            let _ = write!(
                out,
                "<span><i class=\"p{}\"></i>{} others</span>",
                COLORS - 1,
                n + 1 - COLORS
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(name: &str, order: [u64; 2]) -> Lane {
        let step = |sector: u64| {
            let n = order.iter().position(|s| *s == sector).unwrap_or(0) as u64;
            Step {
                what: format!("R{sector}+8"),
                pid: sector as u32,
                who: format!("pid {sector}"),
                sector,
                sectors: 8,
                before: 0,
                came: Some(0),
                sent: Some(n * 5_000_000),
                done: Some((n + 1) * 5_000_000),
                why: "the <next> one".into(),
            }
        };
        Lane {
            name: name.into(),
            steps: vec![step(1000), step(9000)],
            idle: vec![(5_000_000, 6_000_000, "waits for pid 1".into())],
        }
    }

    #[test]
    fn each_request_and_wait_is_drawn_once_in_each_lane() {
        let page = steps("a <b>", &[lane("none", [1000, 9000]), lane("bfq", [9000, 1000])]);
        assert_eq!(page.matches("class=\"serve\"").count(), 4);
        assert_eq!(page.matches("class=\"idle\"").count(), 2);
        assert_eq!(page.matches("class=\"scene\"").count(), 2);
        let parts = "They part at decision 1: <b>none</b> sends R1000+8 at 0.000 ms, <b>bfq</b> sends R9000+8";
        assert!(page.contains(parts), "{page}");
        let total = "<th scope=\"row\">none</th><td>2 of 2</td><td>10.000 ms</td><td>7.500 ms</td><td>10.000 ms</td><td>1.000 ms</td><td>7992</td>";
        assert!(page.contains(total), "{page}");
        assert!(page.contains("the &lt;next&gt; one") && !page.contains("<next>"));
        assert!(page.contains("a &lt;b&gt;") && page.contains("max=\"10.000\""), "{page}");
        let script = page.split("<script>").nth(1).unwrap().split("</script>").next().unwrap();
        assert!(page.contains(&hash(script)), "the policy allows the script that is there");
    }

    #[test]
    fn nothing_is_a_page_too() {
        assert!(steps("empty", &[]).contains("</html>"));
        let unsent = Step { what: "R8+8".into(), came: Some(5), ..Step::default() };
        let lane =
            Lane { name: "x".into(), steps: vec![unsent, Step::default()], idle: Vec::new() };
        assert!(steps("pending", &[lane]).contains("sent -, done -"));
    }
}
