//! Tags for bios: a thread gets one at once, sleeps for one, or asks only whether there is one.

use iosched_types::{Bio, Flags, Op, ReqId};

use super::Mq;
use crate::core::Core;
use crate::core::rules::segments;
use crate::outbox::Submit;
use crate::state;
use crate::steps::{plug, run};
use crate::timeline::Timeline;

impl Mq {
    /// A request with its tag, and whether the queue ran meanwhile. Otherwise the answer to the submission: the thread
    /// sleeps for a tag, or did not want to wait for one.
    #[inline(always)]
    pub(super) fn allocate(
        &mut self,
        core: &mut Core,
        tl: &mut Timeline,
        bio: &Bio,
        flush: bool,
    ) -> Result<(ReqId, bool), Submit> {
        let h = self.hctx_of(bio.cpu);
        let woken = self.hctx[h].tags().take_asked(bio.thread);
        let (shallow, at_once) = match woken {
            // A thread that was woken starts over where it went to sleep: the queue runs before it tries.
            Some(asked) => (asked, None),
            None => {
                let shallow = tag_limit(core, tl, bio, flush);
                (shallow, self.hctx[h].tags().get(shallow))
            }
        };
        let tag = match at_once {
            Some(tag) => tag,
            None => self.wait_for_tag(core, tl, h, bio, shallow)?,
        };
        let elv = !core.sched.none() && !flush;
        let start = if core.stamps { tl.now } else { 0 };
        let (id, r) = core.reqs.add_bio(bio, segments(bio.sectors), start);
        r.tag = tag;
        r.hctx = h as u16;
        r.state = if elv { state::ELV } else { 0 };
        if let Some(wbt) = core.throttle.get() {
            wbt.track(bio, r);
        }
        if elv && core.sched.hooks().prepare {
            core.hook_mut(tl, |s, c| s.prepare(c, id));
        }
        Ok((id, at_once.is_none()))
    }

    /// The kernel runs the queue and tries once more before the thread sleeps. A bio that must not wait is refused
    /// without either.
    #[cold]
    fn wait_for_tag(
        &mut self,
        core: &mut Core,
        tl: &mut Timeline,
        h: usize,
        bio: &Bio,
        shallow: Option<u32>,
    ) -> Result<u32, Submit> {
        if bio.flags.has(Flags::NOWAIT) {
            return Err(Submit::WouldBlock);
        }
        let place = self.hctx[h].tags().next_place();
        plug::flush(core, self, tl, bio.thread);
        self.ask_run(core, h);
        run::deferred(core, self, tl);
        let tags = self.hctx[h].tags();
        tags.get(shallow).ok_or_else(|| {
            tags.sleep(bio.thread, shallow, place);
            Submit::Blocked
        })
    }
}

/// How much of the tags this request may use. Asked once, however long the thread then sleeps.
#[inline(always)]
fn tag_limit(core: &mut Core, tl: &mut Timeline, bio: &Bio, flush: bool) -> Option<u32> {
    if !core.sched.hooks().limit_depth || (flush && !core.profile.mq.limit_flushes) {
        return None;
    }
    if bio.op == Op::Read && !core.sched.hooks().limit_reads {
        debug_assert_eq!(core.hook(tl, |s, c| s.limit_depth(c, bio.op, bio.flags, bio.task)), None);
        return None;
    }
    core.hook(tl, |s, c| s.limit_depth(c, bio.op, bio.flags, bio.task))
}
