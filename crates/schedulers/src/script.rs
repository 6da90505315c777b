//! Golden scenarios: a few lines of requests in, the order of dispatch and its reasons out.
//!
//! ```
//! let out = iosched_schedulers::script::play("
//!     scheduler noop@3.12
//!     at 0 insert R900 W100+16 R500
//!     at 0 drain
//! ").unwrap();
//! let want = "0 R900: oldest request\n0 W100: oldest request\n0 R500: oldest request\n0 -\n";
//! assert_eq!(out, want);
//! ```
//!
//! | line | meaning |
//! |---|---|
//! | `scheduler NAME` | `family@generation`, first line |
//! | `set NAME=VALUE …` | tunables, before the first `at` |
//! | `at MS insert REQUEST …` | inserts requests: `R1000`, `W100+16` (sectors), `R100:rt/0` (priority), `W100!` (synchronous) |
//! | `at MS pull N` | dispatches up to N requests, each completing at once |
//! | `at MS hold N` | dispatches up to N requests that stay in flight |
//! | `at MS complete NAME …` | completes requests in flight |
//! | `at MS drain` | dispatches until nothing comes, each completing at once |
//!
//! Where nothing comes, the output says `-`.

use std::fmt::Write;

use iosched_types::{Flags, IoPrio, Nanos, Op, ReqId, Request, units};

use crate::api::Dispatch;
use crate::testing::Bench;

/// Plays a scenario.
///
/// # Errors
/// The line that could not be understood.
pub fn play(script: &str) -> Result<String, String> {
    let mut p = Player::default();
    for line in script.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            p.line(line).ok_or_else(|| format!("cannot play \"{line}\""))?;
        }
    }
    Ok(p.out)
}

#[derive(Default)]
struct Player {
    scheduler: String,
    tunables: Vec<(String, i64)>,
    bench: Option<Bench>,
    in_flight: Vec<ReqId>,
    out: String,
}

impl Player {
    fn line(&mut self, line: &str) -> Option<()> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "scheduler" => self.scheduler = rest.into(),
            "set" => {
                for word in rest.split_whitespace() {
                    let (name, value) = word.split_once('=')?;
                    self.tunables.push((name.into(), value.parse().ok()?));
                }
            }
            "at" => {
                let (ms, rest) = rest.split_once(' ')?;
                let now = units::nanos_from_ms(ms.parse().ok()?)?;
                self.act(now, ms, rest)?;
            }
            _ => return None,
        }
        Some(())
    }

    fn bench(&mut self) -> &mut Bench {
        let (name, set) = (&self.scheduler, &self.tunables);
        self.bench.get_or_insert_with(|| {
            let set: Vec<(&str, i64)> = set.iter().map(|(n, v)| (n.as_str(), *v)).collect();
            Bench::new(name, &set)
        })
    }

    fn act(&mut self, now: Nanos, ms: &str, rest: &str) -> Option<()> {
        let (verb, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        match verb {
            "insert" => {
                for word in rest.split_whitespace() {
                    let r = request(word)?;
                    self.bench().insert_request(now, r);
                }
            }
            "pull" => (0..rest.parse::<u32>().ok()?).for_each(|_| {
                self.pull(now, ms, true);
            }),
            "hold" => (0..rest.parse::<u32>().ok()?).for_each(|_| {
                self.pull(now, ms, false);
            }),
            "complete" => {
                for name in rest.split_whitespace() {
                    let bench = self.bench.as_ref()?;
                    let at = self.in_flight.iter().position(|&id| bench.name(id) == name)?;
                    let id = self.in_flight.remove(at);
                    self.bench().complete(now, id);
                }
            }
            "drain" => while self.pull(now, ms, true) {},
            _ => return None,
        }
        Some(())
    }

    fn pull(&mut self, now: Nanos, ms: &str, complete: bool) -> bool {
        let bench = self.bench();
        let got = bench.dispatch(now);
        let why = bench.out.why.as_mut().map(|w| std::mem::take(&mut w.notes)).unwrap_or_default();
        let why: Vec<String> = why.into_iter().map(|(_, text)| text).collect();
        let name = match got {
            Dispatch::Request(id) => bench.name(id),
            _ => "-".into(),
        };
        let colon = if why.is_empty() { "" } else { ": " };
        let _ = writeln!(self.out, "{ms} {name}{colon}{}", why.join(" | "));
        let Dispatch::Request(id) = got else { return false };
        match complete {
            true => self.bench().complete(now, id),
            false => self.in_flight.push(id),
        }
        true
    }
}

/// `R1000`, `W100+16`, `R100:rt/0`, `W100!`.
fn request(word: &str) -> Option<Request> {
    let (word, sync) = word.strip_suffix('!').map_or((word, false), |w| (w, true));
    let (word, prio) = word.split_once(':').map_or((word, None), |(w, p)| (w, Some(p)));
    let mut chars = word.chars();
    let op = Op::from_letter(chars.next()?)?;
    let (sector, sectors) = chars.as_str().split_once('+').unwrap_or((chars.as_str(), "8"));
    let mut r = Request::new(op, sector.parse().ok()?, sectors.parse().ok()?);
    if let Some(prio) = prio {
        r.prio = IoPrio::parse(prio)?;
    }
    if sync {
        r.flags = Flags::SYNC;
    }
    Some(r)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_flight_is_completed_by_name() {
        let out = play(
            "scheduler noop@3.12\nat 0 insert R1 R2\nat 1.5 hold 3 # comment\nat 2 complete R2 R1",
        )
        .unwrap();
        assert_eq!(out, "1.5 R1: oldest request\n1.5 R2: oldest request\n1.5 -\n");
    }

    #[test]
    fn nonsense_is_named() {
        for bad in ["jump", "at 0 fly", "at x pull 1", "at 0 insert Q1", "at 0 insert R1:be/9"] {
            let script = format!("scheduler noop@3.12\n{bad}");
            assert_eq!(play(&script), Err(format!("cannot play \"{bad}\"")));
        }
    }
}
