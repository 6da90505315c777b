//! Load files of dbench: operations of a file server's client, one a line.

use std::collections::BTreeMap;

use iosched_types::Diagnostic;
use iosched_types::nearest::did_you_mean;

/// A name of the load, by its place in [`Load::names`].
pub(super) type Name = u32;
/// What the load calls an open file.
pub(super) type Handle = u32;

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Deltree(Name),
    Mkdir(Name),
    /// Opens a file or directory, with the bits and the disposition of SMB.
    Create {
        name: Name,
        directory: bool,
        disposition: u8,
        handle: Handle,
    },
    Close(Handle),
    Read {
        handle: Handle,
        at: u64,
        len: u32,
    },
    Write {
        handle: Handle,
        at: u64,
        len: u32,
    },
    Flush(Handle),
    Unlink(Name),
    Rename(Name, Name),
    Find(Name),
    QueryPath(Name),
    QueryFile(Handle),
    QueryFs,
    SetFile(Handle),
    Lock,
    Unlock,
}

/// The words of a load file, and how many words follow each, without the status.
const WORDS: &[(&str, usize)] = &[
    ("Deltree", 1),
    ("Mkdir", 1),
    ("NTCreateX", 4),
    ("Close", 1),
    ("ReadX", 3),
    ("WriteX", 3),
    ("Flush", 1),
    ("Unlink", 1),
    ("Rename", 2),
    ("FIND_FIRST", 1),
    ("QUERY_PATH_INFORMATION", 1),
    ("QUERY_FILE_INFORMATION", 1),
    ("QUERY_FS_INFORMATION", 0),
    ("SET_FILE_INFORMATION", 1),
    ("LockX", 1),
    ("UnlockX", 1),
    ("Rmdir", 1),
    ("Sleep", 1),
];

/// What a client does, again and again.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) ops: Vec<Op>,
    /// Relative names, with `client1` where each client puts a name of its own.
    pub(super) names: Vec<String>,
}

impl Load {
    /// Reads a load file.
    pub(super) fn parse(file: &str, text: &str) -> Result<Load, Diagnostic> {
        let mut reader = Reader { known: BTreeMap::new(), load: Load::default() };
        for (i, line) in text.lines().enumerate() {
            let words = split(line);
            // Newer files begin each line with a time; dbench 4 goes on without waiting for it.
            let timed = words.first().is_some_and(|(_, w)| w.parse::<f64>().is_ok());
            let words = &words[usize::from(timed).min(words.len())..];
            if words.first().is_none_or(|(_, w)| w.starts_with('#')) {
                continue;
            }
            reader.operation(words).map_err(|(column, message)| {
                let end =
                    line[column..].find(char::is_whitespace).map_or(line.len(), |n| column + n);
                let wrong = Diagnostic::at_span(file, line, column..end, message);
                Diagnostic { line: i + 1, ..wrong }
            })?;
        }
        if reader.load.ops.is_empty() {
            let help =
                "a line is an operation, its words and a status, as in the client.txt of dbench";
            return Err(Diagnostic::file(file, "the load has no operation").with_help(help));
        }
        Ok(reader.load)
    }

    /// The names of a client.
    pub(super) fn names_of(&self, client: u64) -> Vec<String> {
        let own = format!("client{client}");
        let part = |p: &str| if p == "client1" { own.clone() } else { p.to_string() };
        let name = |n: &String| n.split('/').map(part).collect::<Vec<_>>().join("/");
        self.names.iter().map(name).collect()
    }
}

/// Words with where they begin; a word in quotes may have spaces.
fn split(line: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(skip) = line[at..].find(|c: char| !c.is_whitespace()) {
        at += skip;
        let rest = &line[at..];
        let (word, len) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let end = quoted.find('"').unwrap_or(quoted.len());
                (&quoted[..end], (end + 2).min(rest.len()))
            }
            None => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                (&rest[..end], end)
            }
        };
        words.push((at, word));
        at += len;
    }
    words
}

type Wrong = (usize, String);

struct Reader<'a> {
    known: BTreeMap<&'a str, Name>,
    load: Load,
}

impl<'a> Reader<'a> {
    fn operation(&mut self, words: &[(usize, &'a str)]) -> Result<(), Wrong> {
        let [(at, word), rest @ ..] = words else { return Ok(()) };
        let Some((_, needed)) = WORDS.iter().find(|(w, _)| w == word) else {
            let near = did_you_mean(word, WORDS.iter().map(|(w, _)| *w));
            return Err((
                *at,
                format!("there is no operation \"{word}\" {near}").trim_end().into(),
            ));
        };
        if rest.len() < *needed {
            let message = format!("{word} has {needed} words, and here are {}", rest.len());
            return Err((*at, message));
        }
        let op = match *word {
            "Deltree" => Op::Deltree(self.name(rest[0])?),
            "Mkdir" => Op::Mkdir(self.name(rest[0])?),
            "NTCreateX" => Op::Create {
                name: self.name(rest[0])?,
                directory: number(rest[1])? & 1 == 1,
                disposition: number(rest[2])? as u8,
                handle: number(rest[3])? as Handle,
            },
            "Close" => Op::Close(number(rest[0])? as Handle),
            "ReadX" => Op::Read {
                handle: number(rest[0])? as Handle,
                at: number(rest[1])?,
                len: number(rest[2])? as u32,
            },
            "WriteX" => Op::Write {
                handle: number(rest[0])? as Handle,
                at: number(rest[1])?,
                len: number(rest[2])? as u32,
            },
            "Flush" => Op::Flush(number(rest[0])? as Handle),
            "Unlink" => Op::Unlink(self.name(rest[0])?),
            "Rename" => Op::Rename(self.name(rest[0])?, self.name(rest[1])?),
            "FIND_FIRST" => Op::Find(self.name(rest[0])?),
            "QUERY_PATH_INFORMATION" => Op::QueryPath(self.name(rest[0])?),
            "QUERY_FILE_INFORMATION" => Op::QueryFile(number(rest[0])? as Handle),
            "SET_FILE_INFORMATION" => Op::SetFile(number(rest[0])? as Handle),
            "LockX" => Op::Lock,
            "UnlockX" => Op::Unlock,
            "QUERY_FS_INFORMATION" => Op::QueryFs,
            other => return Err((*at, format!("{other} is not simulated"))),
        };
        self.load.ops.push(op);
        Ok(())
    }

    fn name(&mut self, (at, word): (usize, &'a str)) -> Result<Name, Wrong> {
        if let Some(known) = self.known.get(word) {
            return Ok(*known);
        }
        let name = word.trim_start_matches('\\').replace('\\', "/");
        let leaves = name.starts_with('/') || name.split('/').any(|p| p == "..");
        if leaves || name.is_empty() || name.len() > 200 {
            return Err((
                at,
                format!("\"{word}\": a name below the client's directory is expected"),
            ));
        }
        let number = self.load.names.len() as Name;
        self.load.names.push(name);
        self.known.insert(word, number);
        Ok(number)
    }
}

fn number((at, word): (usize, &str)) -> Result<u64, Wrong> {
    let n = match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    };
    let fits = n.filter(|n| *n <= 1 << 40);
    fits.ok_or_else(|| (at, format!("\"{word}\": a number up to 2^40 is expected")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_operations() {
        let text = "# a load\n0.123 NTCreateX \"\\clients\\client1\\a b.txt\" 0x40 0x2 17 NT_STATUS_OK\n\n\
                    WriteX 17 65534 1 1 NT_STATUS_OK\nRename \"\\clients\\client1\\a b.txt\" \"\\x\" NT_STATUS_OK\n";
        let load = Load::parse("l", text).unwrap();
        let create = Op::Create { name: 0, directory: false, disposition: 2, handle: 17 };
        let write = Op::Write { handle: 17, at: 65534, len: 1 };
        assert_eq!(load.ops, [create, write, Op::Rename(0, 1)]);
        assert_eq!(load.names_of(4), ["clients/client4/a b.txt", "x"]);
    }

    #[test]
    fn bad_lines_are_told_with_line_and_column() {
        let wrong = |text: &str| {
            let d = Load::parse("l", text).unwrap_err();
            (d.line, d.column, d.message)
        };
        let (line, column, message) = wrong("Flush 1 OK\nRaedX 1 0 4096 OK");
        assert_eq!((line, column), (2, 1));
        assert!(message.contains("did you mean \"ReadX\"?"), "{message}");
        let (line, column, message) = wrong("ReadX 1 many 4096 OK");
        assert_eq!((line, column), (1, 9));
        assert!(message.contains("a number up to"), "{message}");
        assert!(wrong("ReadX 1").2.contains("ReadX has 3 words, and here are 1"));
        assert!(wrong("Unlink \"\\..\\x\" OK").2.contains("below the client's directory"));
        assert!(wrong("# nothing\n").2.contains("no operation"));
        assert!(wrong("Unlink \"").2.contains("a name below"));
    }
}
