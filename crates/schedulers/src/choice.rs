//! The choice between two requests of one queue: CFQ, BFQ and the anticipatory scheduler share its cost
//! model (forward distance is free, a short way back costs a factor, anything else waits for the next
//! sweep).

use iosched_types::{Flags, ReqId, Request, Requests, Sector};

/// How going backwards is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeekRule {
    /// Longest way back that still counts as reachable, in sectors (`back_seek_max`).
    pub back_max: Sector,
    /// Cost factor of a way back against the same way forward (`back_seek_penalty`).
    pub back_penalty: u64,
    /// A request with this flag wins before positions are compared: `PRIO` for CFQ from 2.6.3x on, `META` for BFQ,
    /// `NONE` where no such rule exists.
    pub urgent: Flags,
}

impl SeekRule {
    /// From the sysfs values: `back_seek_max` in KiB, `back_seek_penalty` as it is.
    #[must_use]
    pub fn from_sysfs(back_seek_max_kib: i64, back_seek_penalty: i64, urgent: Flags) -> SeekRule {
        SeekRule {
            back_max: 2 * u64::try_from(back_seek_max_kib).unwrap_or(0),
            back_penalty: u64::try_from(back_seek_penalty).unwrap_or(1),
            urgent,
        }
    }

    /// Cost of reaching `start` from `last`; `None` when only the next sweep gets there ("wrapped").
    #[must_use]
    pub fn cost(&self, start: Sector, last: Sector) -> Option<u64> {
        if start >= last {
            Some(start - last)
        } else if start.saturating_add(self.back_max) >= last {
            Some((last - start).saturating_mul(self.back_penalty))
        } else {
            None
        }
    }

    /// The better of two requests when the head stands at `last`. If one is missing, the other.
    ///
    /// In order: sync before async, urgent before not, reachable before wrapped, lower cost, and on equal
    /// cost the higher start. Two wrapped requests: the lower start, so that the next sweep is a full one.
    /// Complete ties keep `a`.
    #[must_use]
    pub fn choose(
        &self,
        reqs: &Requests,
        a: Option<ReqId>,
        b: Option<ReqId>,
        last: Sector,
    ) -> Option<ReqId> {
        let (Some(x), Some(y)) = (a, b) else { return a.or(b) };
        if x == y || !self.second_is_better(&reqs[x], &reqs[y], last) { a } else { b }
    }

    /// The same by position alone, for queues in which no request is more urgent than another (2.6.18,
    /// where flags of writes do not count).
    #[must_use]
    pub fn choose_by_position(
        &self,
        reqs: &Requests,
        a: Option<ReqId>,
        b: Option<ReqId>,
        last: Sector,
    ) -> Option<ReqId> {
        let (Some(x), Some(y)) = (a, b) else { return a.or(b) };
        let better = x != y && self.second_is_nearer(reqs[x].sector, reqs[y].sector, last);
        if better { b } else { a }
    }

    fn second_is_better(&self, a: &Request, b: &Request, last: Sector) -> bool {
        if a.is_sync() != b.is_sync() {
            return b.is_sync();
        }
        if self.urgent != Flags::NONE {
            let (ua, ub) = (a.flags.has(self.urgent), b.flags.has(self.urgent));
            if ua != ub {
                return ub;
            }
        }
        self.second_is_nearer(a.sector, b.sector, last)
    }

    fn second_is_nearer(&self, a: Sector, b: Sector, last: Sector) -> bool {
        match (self.cost(a, last), self.cost(b, last)) {
            (None, None) => b < a,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (Some(ca), Some(cb)) if ca == cb => b > a,
            (Some(ca), Some(cb)) => cb < ca,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_types::Op;

    fn winner(rule: &SeekRule, last: Sector, first: Request, second: Request) -> Sector {
        let mut reqs = Requests::default();
        let (a, b) = (reqs.add(first), reqs.add(second));
        let won = rule.choose(&reqs, Some(a), Some(b), last);
        let other_way = rule.choose(&reqs, Some(b), Some(a), last);
        assert_eq!(won, other_way, "the choice must not depend on the order of the arguments");
        reqs[won.unwrap()].sector
    }

    fn reads(last: Sector, first: Sector, second: Sector) -> Sector {
        let rule = SeekRule::from_sysfs(16384, 2, Flags::NONE);
        winner(&rule, last, Request::new(Op::Read, first, 8), Request::new(Op::Read, second, 8))
    }

    #[test]
    fn equal_cost_takes_the_higher_start() {
        assert_eq!(reads(100_000, 67_232, 165_536), 165_536);
        assert_eq!(reads(1000, 1100, 950), 1100);
    }

    #[test]
    fn one_sector_beyond_the_limit_is_wrapped_and_loses_to_anything_reachable() {
        assert_eq!(reads(100_000, 67_231, 1_000_000), 1_000_000);
    }

    #[test]
    fn a_short_way_back_beats_a_longer_way_forward() {
        assert_eq!(reads(1000, 1100, 960), 960);
    }

    #[test]
    fn of_two_wrapped_requests_the_next_sweep_starts_with_the_lower() {
        assert_eq!(reads(10_000_000, 500, 900_000), 500);
    }

    #[test]
    fn sync_beats_async_and_urgent_beats_near() {
        let rule = SeekRule::from_sysfs(16384, 2, Flags::PRIO);
        let near = Request::new(Op::Write, 1000, 8);
        let far = Request::new(Op::Read, 900_000, 8);
        assert_eq!(winner(&rule, 1000, near, far.clone()), 900_000);
        let near = Request::new(Op::Read, 1000, 8);
        assert_eq!(winner(&rule, 1000, near.clone(), far.clone()), 1000);
        let mut urgent = far;
        urgent.flags = Flags::PRIO;
        assert_eq!(winner(&rule, 1000, near, urgent), 900_000);
    }

    #[test]
    fn a_missing_request_leaves_the_other() {
        let rule = SeekRule::from_sysfs(0, 1, Flags::NONE);
        let mut reqs = Requests::default();
        let a = reqs.add(Request::new(Op::Read, 5, 8));
        assert_eq!(rule.choose(&reqs, Some(a), None, 0), Some(a));
        assert_eq!(rule.choose(&reqs, None, Some(a), 0), Some(a));
        assert_eq!(rule.choose(&reqs, None, None, 0), None);
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let rule = SeekRule { back_max: u64::MAX, back_penalty: u64::MAX, urgent: Flags::NONE };
        assert_eq!(rule.cost(0, u64::MAX), Some(u64::MAX));
    }
}
