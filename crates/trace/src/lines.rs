//! Lines of a text of any length, in constant memory.

use std::io::{BufRead, BufReader, Read};

/// Longer lines are cut off here, and counted.
const LONGEST: u64 = 1 << 16;

/// Lines with their numbers.
pub(crate) struct Lines<'a> {
    from: BufReader<Box<dyn Read + 'a>>,
    bytes: Vec<u8>,
    lossy: String,
    /// The number of the line that was read last, from 1.
    pub(crate) number: u64,
    /// Whether it was longer than is read.
    pub(crate) cut: bool,
    /// Whether it ended with the file and not with a line break.
    pub(crate) open_end: bool,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(from: Box<dyn Read + 'a>) -> Lines<'a> {
        Lines {
            from: BufReader::with_capacity(1 << 16, from),
            bytes: Vec::new(),
            lossy: String::new(),
            number: 0,
            cut: false,
            open_end: false,
        }
    }

    /// The next line without its end.
    pub(crate) fn next(&mut self) -> std::io::Result<Option<&str>> {
        self.bytes.clear();
        let read = (&mut self.from).take(LONGEST).read_until(b'\n', &mut self.bytes)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        let whole = self.bytes.last() == Some(&b'\n');
        self.cut = !whole && read as u64 == LONGEST;
        self.open_end = !whole && !self.cut;
        if self.cut {
            self.skip_rest()?;
        }
        while matches!(self.bytes.last(), Some(b'\n' | b'\r')) {
            self.bytes.pop();
        }
        match std::str::from_utf8(&self.bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => {
                self.lossy = String::from_utf8_lossy(&self.bytes).into_owned();
                Ok(Some(&self.lossy))
            }
        }
    }

    fn skip_rest(&mut self) -> std::io::Result<()> {
        loop {
            let buffer = self.from.fill_buf()?;
            let (n, end) = match buffer.iter().position(|b| *b == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            self.from.consume(n);
            if end {
                return Ok(());
            }
        }
    }
}
