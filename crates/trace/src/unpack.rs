//! Compressed input, known by its first bytes.

use std::io::{self, Cursor, Read};

/// Bytes that a format is found by.
pub const HEAD: usize = 1 << 16;
/// A compressed file in a compressed file in … ends here.
const DEEPEST: u32 = 3;

/// The beginning of a stream and all of it.
pub struct Peeked<'a> {
    /// Up to [`HEAD`] bytes.
    pub head: Vec<u8>,
    /// The stream from its beginning.
    pub all: Box<dyn Read + 'a>,
    /// How it was compressed, from the outside in.
    pub packed: Vec<&'static str>,
}

fn peek<'a>(mut from: Box<dyn Read + 'a>) -> io::Result<(Vec<u8>, Box<dyn Read + 'a>)> {
    let mut head = Vec::new();
    (&mut from).take(HEAD as u64).read_to_end(&mut head)?;
    let all = Box::new(Cursor::new(head.clone()).chain(from));
    Ok((head, all))
}

/// Unpacks what is compressed.
///
/// # Errors
/// Those of reading; a broken beginning of a compressed file is one.
pub fn unpack<'a>(from: Box<dyn Read + 'a>) -> io::Result<Peeked<'a>> {
    let (mut head, mut all) = peek(from)?;
    let mut packed = Vec::new();
    for _ in 0..DEEPEST {
        let Some(name) = packing(&head) else { break };
        packed.push(name);
        (head, all) = peek(open(name, all)?)?;
    }
    Ok(Peeked { head, all, packed })
}

/// The name of the compression that begins so.
#[must_use]
pub fn packing(head: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 4] = [
        (b"\x1f\x8b", "gzip"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\xfd7zXZ\0", "xz"),
        (b"BZh", "bzip2"),
    ];
    known.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, name)| *name)
}

#[cfg(feature = "packed")]
fn open<'a>(name: &str, from: Box<dyn Read + 'a>) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match name {
        "gzip" => Box::new(flate2::read::MultiGzDecoder::new(from)),
        "zstd" => Box::new(frames::Frames::new(from)),
        "xz" => Box::new(lzma_rust2::XzReader::new(from, true)),
        _ => Box::new(bzip2::read::MultiBzDecoder::new(from)),
    })
}

#[cfg(not(feature = "packed"))]
fn open<'a>(name: &str, _: Box<dyn Read + 'a>) -> io::Result<Box<dyn Read + 'a>> {
    Err(io::Error::other(format!("compressed with {name}; unpack it first")))
}

#[cfg(feature = "packed")]
mod frames {
    use std::io::{self, BufRead, BufReader, Read};

    use ruzstd::decoding::FrameDecoder;
    use ruzstd::decoding::StreamingDecoder;

    type Source<'a> = BufReader<Box<dyn Read + 'a>>;

    enum State<'a> {
        Between(Source<'a>),
        Inside(Box<StreamingDecoder<Source<'a>, FrameDecoder>>),
        Over,
    }

    /// A zstd file: frames behind one another (`pzstd`, and files joined by `cat`).
    pub(super) struct Frames<'a>(State<'a>);

    impl<'a> Frames<'a> {
        pub(super) fn new(from: Box<dyn Read + 'a>) -> Frames<'a> {
            Frames(State::Between(BufReader::with_capacity(1 << 16, from)))
        }
    }

    impl Read for Frames<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            loop {
                match std::mem::replace(&mut self.0, State::Over) {
                    State::Over => return Ok(0),
                    State::Between(mut source) => {
                        if source.fill_buf()?.is_empty() {
                            return Ok(0);
                        }
                        let inside = StreamingDecoder::new(source).map_err(io::Error::other)?;
                        self.0 = State::Inside(Box::new(inside));
                    }
                    State::Inside(mut inside) => {
                        let n = inside.read(into)?;
                        if n > 0 || into.is_empty() {
                            self.0 = State::Inside(inside);
                            return Ok(n);
                        }
                        self.0 = State::Between(inside.into_inner());
                    }
                }
            }
        }
    }
}
