//! The server against a simulated kernel that follows the header. It hands out tags, copies data its own way, and
//! refuses every step that the driver would refuse.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::time::Duration;

use iosched_devices::DeviceSpec;
use nix::libc;

use super::control::{Answers, Control};
use super::driver::{Form, Side, Ublk};
use super::wire::{self, Ask, CONTROL, DESCRIPTOR, DevInfo, Params, Turn, feature};
use super::{mark, remove_by};
use crate::emulate::clockwork::Clockwork;
use crate::emulate::data::{DataMode, DataStore};
use crate::emulate::port::{Bell, MAX_TRANSFER};
use crate::emulate::queue::{Carrier, Queue};
use crate::emulate::serve::Shared;
use crate::sys::ring::{Command, Memory};

const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH: u32 = 2;
const DISCARD: u32 = 3;
const WRITE_SAME: u32 = 4;
const WRITE_ZEROES: u32 = 5;
const FUA: u32 = 1 << 13;

/// What a user of the disk asks for, and gets.
#[derive(Clone, Debug)]
struct Io {
    op_flags: u32,
    sector: u64,
    data: Vec<u8>,
    result: Option<i32>,
}

fn io(op_flags: u32, sector: u64, data: Vec<u8>) -> Io {
    Io { op_flags, sector, data, result: None }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Nobody,
    /// The server waits for a request.
    Fetched,
    /// The server has the I/O of this number.
    Busy(usize),
    Aborted,
}

#[derive(Debug)]
struct State {
    form: Form,
    ios: Vec<Io>,
    next: usize,
    tags: Vec<Tag>,
    memory: Vec<u8>,
    completions: VecDeque<(u64, i32)>,
    queued: bool,
    most_busy: usize,
}

impl State {
    fn slot(&self, queue: u16, tag: u16) -> usize {
        usize::from(queue) * usize::from(self.form.depth) + usize::from(tag)
    }

    fn io_of(&self, queue: u16, tag: u16) -> &Io {
        match self.tags[self.slot(queue, tag)] {
            Tag::Busy(i) => &self.ios[i],
            other => panic!("tag {tag} of queue {queue} is {other:?}"),
        }
    }

    /// Hands requests to tags that wait, a barrier (a flush here) only when all before are done.
    fn hand_out(&mut self) {
        for slot in 0..self.tags.len() {
            let Some(io) = self.ios.get(self.next) else { return };
            let busy = self.tags.iter().filter(|t| matches!(t, Tag::Busy(_))).count();
            let before_done = self.ios[..self.next].iter().all(|i| i.result.is_some());
            let after_flush = self.next > 0 && self.ios[self.next - 1].op_flags & 0xFF == FLUSH;
            if (io.op_flags & 0xFF == FLUSH || after_flush) && !before_done {
                return;
            }
            if self.tags[slot] != Tag::Fetched {
                continue;
            }
            if io.op_flags & 0xFF == WRITE && !self.form.user_copy {
                let start = slot * MAX_TRANSFER as usize;
                let data = self.ios[self.next].data.clone();
                self.memory[start..start + data.len()].copy_from_slice(&data);
            }
            self.tags[slot] = Tag::Busy(self.next);
            self.most_busy = self.most_busy.max(busy + 1);
            self.next += 1;
            self.completions.push_back((slot as u64, 0));
        }
    }

    fn done(&mut self, slot: usize, result: i32) {
        let Tag::Busy(i) = self.tags[slot] else { panic!("answer for {:?}", self.tags[slot]) };
        let io = &mut self.ios[i];
        assert_eq!(io.result, None, "one answer");
        if io.op_flags & 0xFF == READ && result > 0 && !self.form.user_copy {
            let start = slot * MAX_TRANSFER as usize;
            let len = io.data.len();
            io.data.copy_from_slice(&self.memory[start..start + len]);
        }
        io.result = Some(result);
    }
}

#[derive(Clone, Debug)]
struct Fake {
    state: Rc<RefCell<State>>,
    null: Rc<File>,
}

impl Fake {
    fn new(form: Form, ios: Vec<Io>) -> Fake {
        let slots = usize::from(form.queues) * usize::from(form.depth);
        let state = State {
            form,
            ios,
            next: 0,
            tags: vec![Tag::Nobody; slots],
            memory: vec![0; slots * MAX_TRANSFER as usize],
            completions: VecDeque::new(),
            queued: false,
            most_busy: 0,
        };
        let null = Rc::new(File::open("/dev/null").unwrap());
        Fake { state: Rc::new(RefCell::new(state)), null }
    }

    /// Queue and tag of a place in the character device, which must be the tag's first byte.
    fn place(at: u64) -> (u16, u16) {
        let at = at - 0x8000_0000;
        assert_eq!(at & ((1 << 25) - 1), 0);
        ((at >> 41) as u16, (at >> 25) as u16)
    }
}

impl Side for Fake {
    fn file(&self) -> BorrowedFd<'_> {
        self.null.as_fd()
    }

    fn descriptor(&self, queue: u16, tag: u16) -> [u8; DESCRIPTOR] {
        let state = self.state.borrow();
        let io = state.io_of(queue, tag);
        let mut b = [0; DESCRIPTOR];
        b[..4].copy_from_slice(&io.op_flags.to_ne_bytes());
        b[4..8].copy_from_slice(&((io.data.len() / 512) as u32).to_ne_bytes());
        b[8..16].copy_from_slice(&io.sector.to_ne_bytes());
        b
    }

    fn fetch(&self, at: u64, to: &mut [u8]) -> io::Result<()> {
        let (queue, tag) = Fake::place(at);
        let state = self.state.borrow();
        assert!(state.form.user_copy, "only where it was offered");
        to.copy_from_slice(&state.io_of(queue, tag).data);
        Ok(())
    }

    fn store(&self, at: u64, from: &[u8]) -> io::Result<()> {
        let (queue, tag) = Fake::place(at);
        let mut state = self.state.borrow_mut();
        assert!(state.form.user_copy, "only where it was offered");
        let slot = state.slot(queue, tag);
        let Tag::Busy(i) = state.tags[slot] else { panic!("data for nobody") };
        state.ios[i].data.copy_from_slice(from);
        Ok(())
    }
}

/// The ring's memory is the server's own, so that it can be lent out.
#[derive(Debug)]
struct Carried(Fake, Vec<u8>);

impl Carried {
    fn with<T>(&mut self, f: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.0.state.borrow_mut();
        std::mem::swap(&mut state.memory, &mut self.1);
        let out = f(&mut state);
        std::mem::swap(&mut state.memory, &mut self.1);
        out
    }
}

impl Carrier for Carried {
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.1
    }

    fn command(&mut self, _: BorrowedFd<'_>, command: Command, user: u64) -> io::Result<()> {
        self.with(|state| {
            let form = state.form;
            let queue = u16::from_ne_bytes([command.args[0], command.args[1]]);
            let tag = u16::from_ne_bytes([command.args[2], command.args[3]]);
            let result = i32::from_ne_bytes(command.args[4..8].try_into().unwrap());
            let slot = state.slot(queue, tag);
            assert!(queue < form.queues && tag < form.depth && slot as u64 == user);
            let start = slot * MAX_TRANSFER as usize;
            let memory = match form.user_copy {
                true => Memory::None,
                false => Memory::Argument { at: 8, part: start..start + MAX_TRANSFER as usize },
            };
            assert_eq!(command.memory, memory);
            if command.op == Turn::Fetch.number(form.encoded) {
                assert_eq!(state.tags[slot], Tag::Nobody, "a tag is fetched once");
            } else {
                assert_eq!(command.op, Turn::CommitAndFetch.number(form.encoded));
                state.done(slot, result);
            }
            state.tags[slot] = Tag::Fetched;
            state.queued = true;
        });
        Ok(())
    }

    fn watch(&mut self, _: BorrowedFd<'_>, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        self.with(|state| {
            state.queued = false;
            // The disk is shown when the last tag was fetched.
            if state.tags.iter().all(|t| *t != Tag::Nobody) {
                state.hand_out();
            }
        });
        Ok(())
    }

    fn wait(&mut self, _: Option<Duration>) -> io::Result<()> {
        self.submit()?;
        self.with(|state| {
            let all_done = state.ios.iter().all(|i| i.result.is_some());
            if all_done && state.completions.is_empty() {
                // Stopped: every tag comes back.
                for slot in 0..state.tags.len() {
                    assert_eq!(state.tags[slot], Tag::Fetched);
                    state.tags[slot] = Tag::Aborted;
                    state.completions.push_back((slot as u64, -libc::ENODEV));
                }
            }
        });
        Ok(())
    }

    fn ready(&mut self) -> bool {
        self.with(|state| !state.completions.is_empty())
    }

    fn has_queued(&mut self) -> bool {
        self.with(|state| state.queued)
    }

    fn take(&mut self) -> Option<(u64, i32)> {
        self.with(|state| state.completions.pop_front())
    }
}

const BYTES: u64 = 4 << 20;

/// Serves a list of I/Os until the device is stopped; the list with its results, and most in flight at once.
fn served(form: Form, ios: Vec<Io>) -> (Vec<Io>, usize) {
    let model = "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"4MiB\"\nlat_ns=20000\npar=8\n";
    let device = DeviceSpec::from_toml("t", model).unwrap().build().unwrap();
    let store = DataStore::open(&DataMode::Memory, BYTES).unwrap();
    let (bell, pull) = Bell::new().unwrap();
    let shared = Shared::new(Clockwork::new(device), store, bell, false);
    let fake = Fake::new(form, ios);
    let memory = std::mem::take(&mut fake.state.borrow_mut().memory);
    let carrier = Carried(fake.clone(), memory);
    let mut port = Queue::by(carrier, Ublk::new(fake.clone(), form), pull).unwrap();
    shared.serve(&mut port).unwrap();
    drop(port);
    let state = fake.state.borrow();
    assert!(state.tags.iter().all(|t| *t == Tag::Aborted));
    (state.ios.clone(), state.most_busy)
}

fn forms() -> impl Iterator<Item = Form> {
    let form = |(encoded, user_copy)| Form { queues: 2, depth: 3, encoded, user_copy };
    [(true, true), (true, false), (false, false)].into_iter().map(form)
}

#[test]
fn data_goes_both_ways_through_every_tag_in_every_form() {
    for form in forms() {
        let block = |i: u64| (0..8192u64).map(|b| (i * 37 + b / 512) as u8).collect::<Vec<u8>>();
        let mut ios: Vec<Io> = (0..40).map(|i| io(WRITE | FUA, i * 16, block(i))).collect();
        ios.push(io(FLUSH, 0, Vec::new()));
        ios.extend((0..40).rev().map(|i| io(READ, i * 16, vec![0xEE; 8192])));
        let (ios, most) = served(form, ios);
        assert_eq!(most, 6, "all tags of both queues");
        for i in 0..40 {
            assert_eq!(ios[i as usize].result, Some(8192));
            let read = &ios[80 - i as usize];
            assert_eq!(read.result, Some(8192));
            assert!(read.data == block(i), "block {i} in {form:?}");
        }
        assert_eq!(ios[40].result, Some(0), "the flush");
    }
}

#[test]
fn discarded_places_read_as_zeros_and_what_is_not_known_is_refused() {
    for form in forms() {
        let barrier = || io(FLUSH, 0, Vec::new());
        let ios = vec![
            io(WRITE, 0, vec![7; 65_536]),
            barrier(),
            io(DISCARD, 16, vec![0; 8192]),
            io(WRITE_ZEROES, 64, vec![0; 4096]),
            io(WRITE_SAME, 96, vec![1; 512]),
            barrier(),
            io(READ, 0, vec![0xEE; 65_536]),
            io(READ, 0, vec![0; 2 * MAX_TRANSFER as usize]),
        ];
        let (ios, _) = served(form, ios);
        let results: Vec<_> = ios.iter().filter_map(|i| i.result).collect();
        let too_long = -libc::EINVAL;
        assert_eq!(results, [65_536, 0, 0, 0, -libc::EOPNOTSUPP, 0, 65_536, too_long]);
        let zeros = |at: usize| (8192..16_384).contains(&at) || (32_768..36_864).contains(&at);
        let read = ios[6].data.iter().enumerate();
        assert!(read.clone().all(|(at, b)| *b == if zeros(at) { 0 } else { 7 }), "{form:?}");
    }
}

/// A control device that keeps one device, as the driver does.
#[derive(Default)]
struct Controlled {
    features: Option<u64>,
    most_queues: u16,
    device: Option<DevInfo>,
    started: bool,
    asked: Vec<u32>,
    params: Option<[u8; 64]>,
}

fn no(errno: i32) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(errno))
}

impl Answers for Controlled {
    fn ask(&mut self, number: u32, command: [u8; CONTROL], buffer: &mut [u8]) -> io::Result<()> {
        self.asked.push(number);
        let id = u32::from_ne_bytes(command[..4].try_into().unwrap());
        let data = u64::from_ne_bytes(command[16..24].try_into().unwrap());
        assert_eq!(usize::from(u16::from_ne_bytes([command[6], command[7]])), buffer.len());
        let encoded = self.features.is_some();
        let is = |ask: Ask| number == ask.number(encoded);
        let has = self.device.is_some_and(|d| d.device == id);
        if number == Ask::Features.number(true) {
            let Some(features) = self.features else { return no(libc::EOPNOTSUPP) };
            buffer.copy_from_slice(&features.to_ne_bytes());
        } else if is(Ask::Add) {
            if has {
                return no(libc::EEXIST);
            }
            let mut info = DevInfo::parse(&(&*buffer).try_into().unwrap());
            assert_eq!((info.device, info.flags & !self.features.unwrap_or(0)), (id, 0));
            info.queues = info.queues.min(self.most_queues);
            buffer.copy_from_slice(&info.bytes());
            self.device = Some(info);
        } else if !has {
            return no(libc::ENODEV);
        } else if is(Ask::SetParams) {
            self.params = Some((&*buffer).try_into().unwrap());
        } else if is(Ask::Start) {
            assert!(self.params.is_some() && data == u64::from(std::process::id()));
            self.started = true;
        } else if is(Ask::Stop) {
            if !std::mem::take(&mut self.started) {
                return no(libc::ENODEV);
            }
        } else if is(Ask::DevInfo) {
            buffer.copy_from_slice(&self.device.unwrap().bytes());
        } else {
            assert!(is(Ask::Delete) && !self.started, "{number:#x}");
            self.device = None;
        }
        Ok(())
    }
}

fn wanted() -> DevInfo {
    DevInfo {
        queues: 8,
        depth: 32,
        max_io_bytes: 1 << 20,
        device: 64,
        mark: 99,
        ..DevInfo::default()
    }
}

fn params() -> Params {
    Params {
        bytes: BYTES,
        logical_block: 512,
        max_io_bytes: 1 << 20,
        rotational: false,
        write_cache: true,
        fua: true,
    }
}

#[test]
fn a_device_is_made_shown_and_removed_in_order() {
    let features = feature::CMD_IOCTL_ENCODE | feature::USER_COPY | 1;
    let kernel = Controlled { features: Some(features), most_queues: 2, ..Controlled::default() };
    let mut control = Control::new(kernel);
    let form = control.add(&wanted()).unwrap();
    assert_eq!(form, Form { queues: 2, depth: 32, encoded: true, user_copy: true });
    assert_eq!(control.add(&wanted()).unwrap_err().raw_os_error(), Some(libc::EEXIST));
    control.describe(64, params()).unwrap();
    control.start(64).unwrap();
    control.stop(64).unwrap();
    control.delete(64).unwrap();
    let asks =
        [Ask::Features, Ask::Add, Ask::Add, Ask::SetParams, Ask::Start, Ask::Stop, Ask::Delete];
    let kernel = control.into_kernel();
    assert_eq!(kernel.asked, asks.map(|a| a.number(true)));
    assert_eq!(kernel.params, Some(params().to_bytes()));
}

#[test]
fn the_first_kernels_are_spoken_to_in_their_numbers() {
    let mut control = Control::new(Controlled { most_queues: 8, ..Controlled::default() });
    let form = control.add(&wanted()).unwrap();
    assert_eq!(form, Form { queues: 8, depth: 32, encoded: false, user_copy: false });
    let kernel = control.into_kernel();
    assert_eq!(kernel.asked[1..], [Ask::Add.number(false)]);
    assert_eq!(wire::io(0, 0, 0).len(), 16);
}

#[test]
fn only_what_is_ours_is_removed_and_only_what_is_left() {
    let label = "iosched:1:x";
    let left = |mark, started| {
        let device = DevInfo { mark, ..wanted() };
        Controlled { device: Some(device), started, most_queues: 1, ..Controlled::default() }
    };
    for (started, ours) in [(true, true), (false, true), (true, false)] {
        let mut control = Control::new(left(if ours { mark(label) } else { 1 }, started));
        let done = remove_by(&mut control, 64, mark(label)).unwrap();
        assert_eq!(done.len(), usize::from(ours));
        assert_eq!(control.into_kernel().device.is_none(), ours, "started: {started}");
    }
    let mut control = Control::new(Controlled::default());
    assert!(remove_by(&mut control, 64, mark(label)).unwrap().is_empty(), "it is gone already");
}
