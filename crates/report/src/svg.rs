//! A small writer of SVG: every text is escaped, every number short.

use std::fmt::Write;

/// Text as XML content or attribute value. Characters that XML forbids become the replacement character.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A coordinate: one decimal at most, no trailing zero.
fn short(x: f64) -> String {
    let text = format!("{x:.1}");
    let text = text.strip_suffix(".0").map_or(text.as_str(), |t| t);
    if text == "-0" { "0".into() } else { text.into() }
}

/// A picture under construction.
#[derive(Clone, Debug)]
pub struct Svg {
    out: String,
}

impl Svg {
    /// A picture of `width` × `height` user units with a title for those who cannot see it.
    #[must_use]
    pub fn new(width: u32, height: u32, class: &str, title: &str) -> Svg {
        let (class, title) = (escape(class), escape(title));
        let out = format!(
            "<svg viewBox=\"0 0 {width} {height}\" class=\"{class}\" role=\"img\"><title>{title}</title>"
        );
        Svg { out }
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x, y, u, v) = (short(from.0), short(from.1), short(to.0), short(to.1));
        let _ = write!(self.out, "<path class=\"{}\" d=\"M{x} {y}L{u} {v}\"/>", escape(class));
    }

    /// A text; `anchor` is `start`, `middle` or `end`.
    pub fn text(&mut self, at: (f64, f64), anchor: &str, text: &str) {
        let (x, y) = (short(at.0), short(at.1));
        let _ = write!(
            self.out,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{}\">{}</text>",
            escape(anchor),
            escape(text)
        );
    }

    /// Opens a group with a class and a `data-r` attribute, by which the page's script finds it.
    pub fn open(&mut self, class: &str, runs: &[usize]) {
        let _ = write!(self.out, "<g class=\"{}\"", escape(class));
        if !runs.is_empty() {
            let runs = runs.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
            let _ = write!(self.out, " data-r=\"{runs}\"");
        }
        self.out.push('>');
    }

    /// Closes a group.
    pub fn close(&mut self) {
        self.out.push_str("</g>");
    }

    /// A line through points, in whole units and relative moves (a third of the size of absolute ones).
    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        self.path(class, points, false);
    }

    /// Dots at points: lines of no length, which round caps draw as dots.
    pub fn dots(&mut self, class: &str, points: &[(f64, f64)]) {
        self.path(class, points, true);
    }

    fn path(&mut self, class: &str, points: &[(f64, f64)], dots: bool) {
        let mut d = String::new();
        let mut last: Option<(i64, i64)> = None;
        for (x, y) in points {
            let (x, y) = (x.round() as i64, y.round() as i64);
            match last {
                Some(l) if l == (x, y) => continue,
                None => {
                    let _ = write!(d, "M{x} {y}{}", if dots { "h0" } else { "l" });
                }
                Some((lx, ly)) => {
                    let (dx, dy) = (x - lx, y - ly);
                    let gap = if dy < 0 { "" } else { " " };
                    if dots {
                        let _ = write!(d, "m{dx}{gap}{dy}h0");
                    } else {
                        let before = if dx < 0 || d.ends_with('l') { "" } else { " " };
                        let _ = write!(d, "{before}{dx}{gap}{dy}");
                    }
                }
            }
            last = Some((x, y));
        }
        if d.ends_with('l') {
            d.pop();
        }
        if !d.is_empty() {
            let _ = write!(self.out, "<path class=\"{}\" d=\"{d}\"/>", escape(class));
        }
    }

    /// A filled rectangle with a title that shows under the pointer.
    pub fn block(&mut self, class: &str, at: (f64, f64), size: (f64, f64), title: &str) {
        let (x, y, w, h) = (short(at.0), short(at.1), short(size.0), short(size.1));
        let _ = write!(
            self.out,
            "<rect class=\"{}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\">",
            escape(class)
        );
        if !title.is_empty() {
            let _ = write!(self.out, "<title>{}</title>", escape(title));
        }
        self.out.push_str("</rect>");
    }

    /// The picture as a file of its own: name space, white ground, style.
    #[must_use]
    pub fn finish_alone(self, style: &str) -> String {
        let svg = self.finish();
        let Some((head, rest)) = svg.split_once('>') else { return svg };
        let head = head.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"", 1);
        let ground = "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>";
        format!("{head}><style>{style}</style>{ground}{rest}\n")
    }

    /// The finished picture.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.out.push_str("</svg>");
        self.out
    }
}

/// Round numbers for the ticks of a linear axis: 1, 2 or 5 times a power of ten, at most `most + 1` of them.
#[must_use]
pub fn ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let span = high - low;
    if !(span > 0.0 && span.is_finite()) {
        return vec![low];
    }
    let raw = span / most.max(1) as f64;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].iter().map(|m| m * power).find(|s| *s >= raw * 0.999_999);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hostile_text_is_inert() {
        let mut s = Svg::new(10, 10, "x\" onload=\"alert(1)", "</title><script>");
        s.text((0.0, 0.0), "start", "<script>alert(1)</script>\u{0}");
        let out = s.finish();
        assert!(!out.contains("<script"), "{out}");
        assert!(!out.contains("\" onload"), "{out}");
        assert!(!out.contains('\u{0}'));
    }

    #[test]
    fn relative_paths() {
        let mut s = Svg::new(1, 1, "", "");
        s.polyline("a", &[(1.0, 2.0), (3.0, 1.0), (2.0, 5.0), (2.0, 5.2)]);
        s.dots("b", &[(1.0, 2.0), (4.0, 4.0)]);
        s.polyline("c", &[(1.0, 1.0)]);
        let out = s.finish();
        assert!(out.contains("d=\"M1 2l2-1-1 4\""), "{out}");
        assert!(out.contains("d=\"M1 2h0m3 2h0\""), "{out}");
        assert!(out.contains("d=\"M1 1\""), "{out}");
    }

    proptest! {
        #[test]
        fn a_path_ends_where_its_points_do(
            points in proptest::collection::vec((0i32..700, 0i32..400), 1..50),
        ) {
            let mut s = Svg::new(1, 1, "", "");
            let f: Vec<(f64, f64)> = points.iter().map(|p| (f64::from(p.0), f64::from(p.1))).collect();
            s.polyline("a", &f);
            let out = s.finish();
            let d = out.split(" d=\"").nth(1).and_then(|r| r.split('"').next()).unwrap();
            let numbers: Vec<i32> = d
                .replace('-', " -")
                .split(|c: char| c != '-' && !c.is_ascii_digit())
                .filter(|w| !w.is_empty())
                .map(|w| w.parse().unwrap())
                .collect();
            let sum = |k: usize| numbers.iter().skip(k).step_by(2).sum::<i32>();
            prop_assert_eq!((sum(0), sum(1)), *points.last().unwrap());
        }

        #[test]
        fn ticks_lie_within(low in -1e6f64..1e6, span in 1e-6f64..1e9) {
            let t = ticks(low, low + span, 5);
            prop_assert!(t.len() <= 6);
            prop_assert!(t.iter().all(|x| *x >= low - span * 1e-6 && *x <= low + span * 1.000_001));
        }
    }
}
