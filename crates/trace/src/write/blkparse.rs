//! blkparse's text: an I/O as the events Q, D and C, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufWriter, Write};

use iosched_types::{Nanos, Op};

use super::{Form, Sink};
use crate::event::Io;
use crate::trace::Tables;
use crate::words;

pub(super) static FORM: Form = Form {
    name: "blkparse",
    about: "the text of blkparse",
    ending: ".blkparse",
    comments: false,
    begin: |to| {
        Ok(Box::new(Events {
            to: BufWriter::new(to),
            later: BinaryHeap::new(),
            count: 0,
            priorities: false,
        }))
    },
};

/// Events that are written later, at most: an I/O that takes longer than so many others is written out of order.
const MOST: usize = 1 << 18;

struct Events<W: Write> {
    to: BufWriter<W>,
    later: BinaryHeap<Reverse<(Nanos, u64, String)>>,
    count: u64,
    priorities: bool,
}

impl<W: Write> Events<W> {
    fn until(&mut self, time: Nanos) -> io::Result<()> {
        while let Some(Reverse((at, ..))) = self.later.peek() {
            if *at > time && self.later.len() < MOST {
                break;
            }
            if let Some(Reverse((_, _, line))) = self.later.pop() {
                self.to.write_all(line.as_bytes())?;
            }
        }
        Ok(())
    }

    fn put(&mut self, at: Nanos, action: char, letters: &str, io: &Io, tables: &Tables) {
        let disk = match tables.disks.text(io.disk) {
            text if is_number(text) => text.to_string(),
            // blkparse names disks by number.
            _ => format!("0,{}", io.disk.0),
        };
        self.count += 1;
        let mut line = format!(
            "{disk:>7} {:>2} {:>8} {:>5}.{:09} {:>5}  {action} {letters:>3}",
            io.cpu,
            self.count,
            at / 1_000_000_000,
            at % 1_000_000_000,
            io.pid,
        );
        if io.op != Op::Flush {
            line += &format!(" {} + {}", io.offset / 512, io.len.div_ceil(512));
        } else if action == 'C' {
            line += " 0";
        }
        let name = match tables.tasks.text(io.task) {
            _ if action == 'C' => "0",
            "" => "(null)",
            name => name,
        };
        line += &format!(" [{name}]\n");
        self.later.push(Reverse((at, self.count, line)));
    }
}

/// Whether a disk is `major,minor`.
fn is_number(text: &str) -> bool {
    text.split_once(',').is_some_and(|(a, b)| a.parse::<u32>().is_ok() && b.parse::<u32>().is_ok())
}

impl<W: Write> Sink for Events<W> {
    fn io(&mut self, io: &Io, tables: &Tables) -> io::Result<()> {
        self.until(io.queued)?;
        // A flush is a write without data; its command has no operation.
        let (queue, command, done) = match io.op {
            Op::Flush => {
                let write = words::letters(Op::Write, io.flags);
                (format!("F{write}"), "FN".to_string(), write)
            }
            op => {
                let letters = words::letters(op, io.flags);
                (letters.clone(), letters.clone(), letters)
            }
        };
        self.put(io.queued, 'Q', &queue, io, tables);
        if let Some(at) = io.issued.or(io.done) {
            self.put(at, 'D', &command, io, tables);
        }
        if let Some(at) = io.done {
            if io.op == Op::Flush {
                self.put(at, 'C', &command, io, tables);
            }
            self.put(at, 'C', &done, io, tables);
        }
        self.priorities |= io.prio.class != iosched_types::PrioClass::None;
        Ok(())
    }

    fn end(&mut self, _: &Tables) -> io::Result<()> {
        self.until(Nanos::MAX)?;
        self.to.flush()
    }

    fn lost(&self) -> Vec<String> {
        if self.priorities { vec!["priorities".into()] } else { Vec::new() }
    }
}
