//! `/proc/stat` (ticks per CPU state) and `/proc/PID/stat` (ticks of one process).

/// Ticks of all CPUs together, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// user, nice, system, idle, iowait, irq, softirq, steal.
    pub states: [u64; 8],
}

impl CpuTicks {
    /// Everything but idle, iowait and steal.
    #[must_use]
    pub fn busy(&self) -> u64 {
        let [user, nice, system, _, _, irq, softirq, _] = self.states;
        [user, nice, system, irq, softirq].iter().fold(0, |a, b| a.saturating_add(*b))
    }

    /// Sum over all states.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.states.iter().fold(0, |a, b| a.saturating_add(*b))
    }

    /// Ticks taken by the hypervisor.
    #[must_use]
    pub fn steal(&self) -> u64 {
        self.states[7]
    }

    /// What happened since an earlier reading.
    #[must_use]
    pub fn since(&self, before: &CpuTicks) -> CpuTicks {
        CpuTicks {
            states: std::array::from_fn(|i| self.states[i].saturating_sub(before.states[i])),
        }
    }
}

/// The first line of `/proc/stat`.
#[must_use]
pub fn parse_cpu(text: &str) -> Option<CpuTicks> {
    let line = text.lines().find(|l| l.starts_with("cpu "))?;
    let mut ticks = CpuTicks::default();
    let mut n = 0;
    for (slot, word) in ticks.states.iter_mut().zip(line.split_whitespace().skip(1)) {
        *slot = word.parse().ok()?;
        n += 1;
    }
    (n >= 4).then_some(ticks)
}

/// One process of `/proc/PID/stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcStat {
    /// Process id.
    pub pid: u32,
    /// Name, without the parentheses.
    pub comm: String,
    /// What it does: `R`, `S`, `D`, `T` (stopped), `Z` …
    pub state: char,
    /// Parent.
    pub ppid: u32,
    /// User and system ticks of the process itself.
    pub ticks: u64,
    /// User and system ticks of children it waited for.
    pub child_ticks: u64,
    /// Its nice value.
    pub nice: i64,
}

/// Reads `/proc/PID/stat`; the name may contain spaces and parentheses.
#[must_use]
pub fn parse_process(text: &str) -> Option<ProcStat> {
    let (open, close) = (text.find('(')?, text.rfind(')')?);
    let pid = text[..open].trim().parse().ok()?;
    let comm = text.get(open + 1..close)?.to_string();
    let rest: Vec<&str> = text[close + 1..].split_whitespace().collect();
    let field = |i: usize| rest.get(i).and_then(|w| w.parse::<i64>().ok());
    let sum = |a: i64, b: i64| a.max(0).saturating_add(b.max(0)) as u64;
    Some(ProcStat {
        pid,
        comm,
        state: rest.first().and_then(|w| w.chars().next()).unwrap_or_default(),
        ppid: u32::try_from(field(1)?).ok()?,
        ticks: sum(field(11)?, field(12)?),
        child_ticks: sum(field(13)?, field(14)?),
        nice: field(16)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_both_files() {
        let t = parse_cpu("cpu  100 5 50 1000 20 1 2 3 0 0\ncpu0 1 1 1 1\n").unwrap();
        assert_eq!((t.busy(), t.total(), t.steal()), (158, 1181, 3));
        let p = parse_process(
            "42 (kworker/0:1 (x) y) S 2 0 0 0 -1 69238880 0 0 0 0 7 9 1 2 20 0 1 0 13 0 0",
        )
        .unwrap();
        assert_eq!((p.pid, p.ppid, p.ticks, p.child_ticks, p.nice), (42, 2, 16, 3, 0));
        assert_eq!(p.comm, "kworker/0:1 (x) y");
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in ".{0,200}", n in proptest::collection::vec(any::<i64>(), 0..60)) {
            let _ = (parse_cpu(&text), parse_process(&text));
            let numbers = n.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
            let _ = (parse_cpu(&format!("cpu {numbers}")), parse_process(&format!("1 (a) S {numbers}")));
        }
    }
}
