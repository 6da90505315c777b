//! What the steps that both block layers share ask of the one they run on.

use iosched_schedulers::BlockPath;
use iosched_types::ReqId;

use crate::core::Core;
use crate::core::runs::Run;
use crate::timeline::Timeline;

/// A block layer. The steps are generic over it, so nothing is looked up in a run.
pub(crate) trait Path: Sized {
    /// Which one.
    const KIND: BlockPath;

    /// Ticks that a switch to another scheduler takes beyond the drain.
    const GRACE_TICKS: u64;

    /// The driver takes what it can.
    fn run(&mut self, core: &mut Core, tl: &mut Timeline, run: Run);

    /// A thread hands over what it had plugged. The list is not empty.
    fn unplugged(&mut self, core: &mut Core, tl: &mut Timeline, list: &[ReqId]);

    /// Sends a request to the driver around the scheduler.
    fn bypass(&mut self, core: &mut Core, id: ReqId, at_head: bool);

    /// Gives back what the request was allocated with. It is about to be gone.
    fn release(&mut self, core: &mut Core, id: ReqId);

    /// Whether the old scheduler has nothing left to do.
    fn drained(core: &Core) -> bool;
}
