//! When a chain's next I/O is due, and how it goes to the queue.

use iosched_block::Submit;
use iosched_types::{Bio, Flags, Nanos, Op};
use iosched_workloads::replay::{Mode, NONE, Rule, Step};

use super::{Chains, Lane, On, Slot, State};
use crate::events::HostEvent;

impl Chains {
    /// Lets a chain go on until it waits.
    pub(super) fn run_lane(&mut self, on: &mut On<'_>, number: u32) {
        let state = self.lanes[number as usize].state;
        match state {
            State::Ready => {}
            State::Blocked if self.resume(on, number) => {}
            // It was woken for two reasons.
            State::Blocked | State::Waiting | State::Timer | State::Ended => return,
        }
        loop {
            let lane = &self.lanes[number as usize];
            if lane.next == NONE {
                return self.end(on, number);
            }
            let step = self.recording.steps[lane.next as usize];
            let due = lane.due.or_else(|| self.due(on.tl.now, lane, &step));
            self.lanes[number as usize].due = due;
            match due {
                None => return self.sleep(on, number, State::Waiting),
                Some(due) if due > on.tl.now => {
                    on.tl.events.push(due, HostEvent::Chain(number).into());
                    return self.sleep(on, number, State::Timer);
                }
                Some(due) => {
                    if !self.issue(on, number, &step, due) {
                        return;
                    }
                }
            }
        }
    }

    fn sleep(&mut self, on: &mut On<'_>, number: u32, state: State) {
        let lane = &mut self.lanes[number as usize];
        lane.state = state;
        // It works until the next bio of its plug is ready.
        if lane.plugged && state == State::Timer {
            return;
        }
        let thread = lane.thread;
        on.queue.task_sleeps(on.tl, thread);
        on.end_call();
    }

    /// All steps are issued; with the last completion the task ends.
    fn end(&mut self, on: &mut On<'_>, number: u32) {
        let lane = &mut self.lanes[number as usize];
        if lane.under_way > 0 {
            return self.sleep(on, number, State::Waiting);
        }
        lane.state = State::Ended;
        self.alive -= 1;
        let (task, writeback) = (lane.task, lane.writeback);
        if writeback {
            return;
        }
        self.unended[task as usize] -= 1;
        if self.unended[task as usize] == 0 {
            let id = self.ids[task as usize];
            on.queue.task_exited(on.tl, id);
        }
    }

    /// A recorded time in a replay that waits for nothing.
    fn by_clock(&self, at: Nanos) -> Nanos {
        match self.mode {
            Mode::Scaled(x) => self.start.saturating_add((at as f64 * x) as Nanos),
            _ => self.start.saturating_add(at),
        }
    }

    /// When the next step of a chain is due; `None`: not before something else is done.
    fn due(&self, now: Nanos, lane: &Lane, step: &Step) -> Option<Nanos> {
        match self.mode {
            Mode::AsRecorded | Mode::Scaled(_) => Some(self.by_clock(step.at)),
            Mode::Closed(n) => (lane.under_way < n.unwrap_or(lane.most)).then_some(now),
            Mode::Dependent => self.dependent(now, lane, step),
        }
    }

    fn dependent(&self, now: Nanos, lane: &Lane, step: &Step) -> Option<Nanos> {
        let steps = &self.recording.steps;
        let before = if lane.last == NONE { 0 } else { steps[lane.last as usize].at };
        match step.rule {
            Rule::Clock => {
                let waits = lane.writeback && lane.under_way >= lane.most;
                (!waits).then(|| self.by_clock(step.at))
            }
            Rule::Previous => Some(lane.begun + (step.at - before)),
            Rule::Completion | Rule::Other => {
                let flush = step.op == Op::Flush || step.flags.has(Flags::PREFLUSH);
                let busy = if flush { lane.under_way } else { lane.waited };
                let room = step.rule == Rule::Other || busy <= u32::from(step.busy);
                (room && self.is_done(step.after)).then(|| {
                    let from = steps[step.after as usize].done.max(before);
                    // It was done while the chain slept for a tag, and the recorded pause has that sleep in it.
                    let since = match step.rule {
                        Rule::Completion => lane.completed.max(lane.begun).min(now),
                        _ => now,
                    };
                    since + step.at.saturating_sub(from)
                })
            }
        }
    }

    /// The step behind this one comes under the same plug.
    fn is_followed(&self, step: &Step) -> bool {
        step.plugged
            && match self.mode {
                Mode::AsRecorded | Mode::Scaled(_) => true,
                Mode::Closed(_) => false,
                Mode::Dependent => {
                    let next = &self.recording.steps[step.next as usize];
                    next.rule == Rule::Previous || self.lanes_keep_time(next)
                }
            }
    }

    /// Writeback comes at its times, under plugs, too.
    fn lanes_keep_time(&self, step: &Step) -> bool {
        step.rule == Rule::Clock && !step.is_waited_for()
    }

    /// Issues the next step of a chain; `false` when it fell asleep in it.
    fn issue(&mut self, on: &mut On<'_>, number: u32, step: &Step, due: Nanos) -> bool {
        let followed = self.is_followed(step);
        let now = on.tl.now;
        let lane = &mut self.lanes[number as usize];
        let index = lane.next;
        (lane.last, lane.next, lane.due, lane.begun) = (index, step.next, None, now);
        let from = if self.mode.is_open() { due } else { now };
        self.played.begin(step.task, from);
        let nothing = match step.op {
            Op::Discard => !self.discards,
            Op::Flush => on.queue.drops_flushes(),
            Op::Read | Op::Write => step.sectors == 0,
        };
        if nothing {
            self.played.refused += u64::from(step.op == Op::Discard);
            self.step_done(index, step.awaited);
            return self.sent(on, number, followed);
        }
        if followed && !lane.plugged {
            lane.plugged = true;
            let thread = lane.thread;
            on.queue.start_plug(thread);
        }
        let lane = &mut self.lanes[number as usize];
        lane.under_way += 1;
        lane.waited += u32::from(step.is_waited_for());
        let slot = Slot { step: index, lane: number, pieces: 1, from };
        let id = self.first_id + self.slot(slot);
        let bio = self.bio(on, number, step, id);
        self.send(on, number, bio, followed)
    }

    fn slot(&mut self, slot: Slot) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        }
    }

    fn bio(&self, on: &On<'_>, number: u32, step: &Step, id: u32) -> Bio {
        let lane = &self.lanes[number as usize];
        let sector = match &self.placed {
            None => step.sector,
            Some(on) => on.sector(step.sector, step.sectors),
        };
        Bio {
            id,
            op: step.op,
            flags: step.flags,
            sector: if step.op == Op::Flush { 0 } else { sector },
            sectors: step.sectors,
            task: self.ids[step.task as usize],
            thread: lane.thread,
            prio: on.queue.prio_of_bios(step.prio, 0),
            cgroup: 0,
            cpu: lane.cpu,
        }
    }

    /// Sends a bio, whole or in pieces, and takes the plug off behind the last of a call. `false` when the chain fell
    /// asleep in it.
    fn send(&mut self, on: &mut On<'_>, number: u32, bio: Bio, followed: bool) -> bool {
        if bio.sectors <= self.single {
            return self.submit(on, number, &bio, false) && self.sent(on, number, followed);
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        pieces.extend(on.queue.split(bio));
        self.slots[(bio.id - self.first_id) as usize].pieces = pieces.len() as u32;
        let lane = &mut self.lanes[number as usize];
        let one_by_one = !lane.plugged && bio.sectors <= on.queue.unplugged_sectors();
        if !lane.plugged && !one_by_one {
            lane.plugged = true;
            let thread = lane.thread;
            on.queue.start_plug(thread);
        }
        let mut taken = true;
        for i in 0..pieces.len() {
            taken = self.submit(on, number, &pieces[i], false);
            if !taken {
                self.lanes[number as usize].rest.extend(pieces[i + 1..].iter().rev());
                break;
            }
            if one_by_one {
                on.settle();
            }
        }
        self.pieces = pieces;
        taken && self.sent(on, number, followed)
    }

    /// Submits a bio; `false` when the chain fell asleep.
    fn submit(&mut self, on: &mut On<'_>, number: u32, bio: &Bio, resumed: bool) -> bool {
        if on.queue.submit(on.tl, bio, resumed) == Submit::Blocked {
            let lane = &mut self.lanes[number as usize];
            (lane.state, lane.left) = (State::Blocked, Some(*bio));
            on.end_call();
            return false;
        }
        if self.lanes[number as usize].plugged && on.queue.plugs_device() {
            on.queue.unplug_device(on.tl);
        }
        true
    }

    /// An I/O is submitted.
    fn sent(&mut self, on: &mut On<'_>, number: u32, followed: bool) -> bool {
        let lane = &mut self.lanes[number as usize];
        if followed {
            return true;
        }
        if std::mem::take(&mut lane.plugged) {
            let thread = lane.thread;
            on.queue.finish_plug(on.tl, thread);
        }
        on.end_call();
        true
    }

    /// Goes on with a submission; `false` when the chain fell asleep again.
    fn resume(&mut self, on: &mut On<'_>, number: u32) -> bool {
        let mut resumed = true;
        while let Some(bio) = self.lanes[number as usize].left.take() {
            if !self.submit(on, number, &bio, resumed) {
                return false;
            }
            resumed = false;
            if !self.lanes[number as usize].plugged {
                on.settle();
            }
            let lane = &mut self.lanes[number as usize];
            lane.left = lane.rest.pop();
        }
        let lane = &mut self.lanes[number as usize];
        lane.state = State::Ready;
        let last = self.recording.steps[lane.last as usize];
        let followed = self.is_followed(&last);
        self.sent(on, number, followed)
    }
}
