//! Tags for bios: a thread gets one at once, sleeps for one, or asks only whether there is one.

use iosched_types::{Bio, Flags, Op, ReqId};

use crate::merge::segments;
use crate::queue::{Queue, Submit};
use crate::state;
use crate::timeline::Timeline;

impl Queue {
    /// A request with its tag, and whether the queue ran meanwhile. Otherwise the answer to the submission: the thread
    /// sleeps for a tag, or did not want to wait for one.
    #[inline(always)]
    pub(crate) fn mq_allocate(
        &mut self,
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
                let shallow = self.tag_limit(tl, bio, flush);
                (shallow, self.hctx[h].tags().get(shallow))
            }
        };
        let tag = match at_once {
            Some(tag) => tag,
            None => self.mq_wait_for_tag(tl, h, bio, shallow)?,
        };
        let elv = !self.none && !flush;
        let (id, r) = self.reqs.add_bio(bio, segments(bio.sectors), tl.now);
        r.tag = tag;
        r.hctx = h as u16;
        r.state = if elv { state::ELV } else { 0 };
        if self.wbt.is_some() {
            self.wbt_track(bio, id);
        }
        if elv && self.hooks.prepare {
            self.hook_mut(tl, |s, c| s.prepare(c, id));
        }
        Ok((id, at_once.is_none()))
    }

    /// The kernel runs the queue and tries once more before the thread sleeps. A bio that must not wait is refused
    /// without either.
    #[cold]
    fn mq_wait_for_tag(
        &mut self,
        tl: &mut Timeline,
        h: usize,
        bio: &Bio,
        shallow: Option<u32>,
    ) -> Result<u32, Submit> {
        if bio.flags.has(Flags::NOWAIT) {
            return Err(Submit::WouldBlock);
        }
        let place = self.hctx[h].tags().next_place();
        self.task_sleeps(tl, bio.thread);
        self.ask_run(h);
        self.run_deferred(tl);
        let tags = self.hctx[h].tags();
        tags.get(shallow).ok_or_else(|| {
            tags.sleep(bio.thread, shallow, place);
            Submit::Blocked
        })
    }

    /// How much of the tags this request may use. Asked once, however long the thread then sleeps.
    #[inline(always)]
    fn tag_limit(&mut self, tl: &mut Timeline, bio: &Bio, flush: bool) -> Option<u32> {
        if !self.hooks.limit_depth || (flush && !self.profile.mq.limit_flushes) {
            return None;
        }
        if bio.op == Op::Read && !self.hooks.limit_reads {
            debug_assert_eq!(
                self.hook(tl, |s, c| s.limit_depth(c, bio.op, bio.flags, bio.task)),
                None
            );
            return None;
        }
        self.hook(tl, |s, c| s.limit_depth(c, bio.op, bio.flags, bio.task))
    }
}
