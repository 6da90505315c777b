//! A small web server over the results store: read-only, on this machine only.
//!
//! It answers `GET` and `HEAD` of a handful of addresses, all of them made from the store: no part of a request
//! is ever used as a file name. It listens on 127.0.0.1 and refuses requests for any other host name, so that no
//! web page can reach it by pointing its own name here. HTTP/1.1 by hand because two verbs, four addresses and
//! one header are all there is.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use iosched_results::store::{Store, StoreError};

mod pages;
mod verdicts;

/// Longest request head.
const HEAD: usize = 8 * 1024;
/// Most connections served at once; more are told to come back.
const CONNECTIONS: usize = 16;
/// How long a client may take in all to send its head.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a client may take in all to take the answer.
const TAKING: Duration = Duration::from_secs(20);
/// Bytes sent at a time.
const PIECE: usize = 64 * 1024;

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port is taken or not allowed.
    #[error(
        "cannot listen on 127.0.0.1:{port}: {source}; choose another port with --port, or 0 for any"
    )]
    Listen {
        /// As asked for.
        port: u16,
        /// The system's word.
        source: io::Error,
    },
    /// The results file cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A server that listens but does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    store: Arc<PathBuf>,
    address: SocketAddr,
}

impl Server {
    /// Opens the store once to see that it can be read, and listens. Port 0 takes any free one.
    ///
    /// # Errors
    /// [`ServeError`].
    pub fn bind(store: &Path, port: u16) -> Result<Server, ServeError> {
        Store::open_read_only(store)?;
        let listen = |source| ServeError::Listen { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        Ok(Server { listener, store: Arc::new(store.to_path_buf()), address })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until the process ends.
    pub fn run(&self) {
        let busy = Arc::new(AtomicUsize::new(0));
        for stream in self.listener.incoming() {
            let Ok(stream) = stream else { continue };
            if busy.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS {
                busy.fetch_sub(1, Ordering::SeqCst);
                let _ = send(&stream, &Answer::text(503, "busy, try again"), false);
                continue;
            }
            let (store, guard) = (Arc::clone(&self.store), Busy(Arc::clone(&busy)));
            #[allow(
                clippy::disallowed_methods,
                reason = "a slow client must not hold up the others"
            )]
            std::thread::spawn(move || {
                let _guard = guard;
                // A client that went away is nobody's concern.
                let _ = serve_one(&stream, &store);
            });
        }
    }
}

/// Serves the store until the process ends; `ready` is told the address once the server listens.
///
/// # Errors
/// [`ServeError`]: the store cannot be read or the port not be had.
pub fn serve(store: &Path, port: u16, ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let server = Server::bind(store, port)?;
    ready(server.address());
    server.run();
    Ok(())
}

/// Counts a connection down when it ends, also by a panic.
struct Busy(Arc<AtomicUsize>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What goes back.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    mime: &'static str,
    body: String,
}

impl Answer {
    fn html(body: String) -> Answer {
        Answer { status: 200, mime: "text/html; charset=utf-8", body }
    }

    fn text(status: u16, body: &str) -> Answer {
        Answer { status, mime: "text/plain; charset=utf-8", body: format!("{body}\n") }
    }
}

/// A request that passed the rules.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    path: String,
    query: Vec<(String, String)>,
    head_only: bool,
}

/// The end of the time a client has.
#[derive(Clone, Copy, Debug)]
struct Deadline(Instant);

impl Deadline {
    #[allow(clippy::disallowed_methods, reason = "a server waits by the clock on the wall")]
    fn after(time: Duration) -> Deadline {
        Deadline(Instant::now() + time)
    }

    #[allow(clippy::disallowed_methods, reason = "a server waits by the clock on the wall")]
    fn left(self) -> io::Result<Duration> {
        let left = self.0.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

fn serve_one(mut stream: &TcpStream, store: &Path) -> io::Result<()> {
    let until = Deadline::after(PATIENCE);
    let mut head = Vec::new();
    let mut part = [0u8; 1024];
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        // A byte now and then does not make the time longer.
        stream.set_read_timeout(Some(until.left()?))?;
        let n = stream.read(&mut part)?;
        if n == 0 || head.len() + n > HEAD {
            let why = if n == 0 { (400, "incomplete request") } else { (431, "request too long") };
            return send(stream, &Answer::text(why.0, why.1), false);
        }
        head.extend_from_slice(&part[..n]);
    }
    match parse(&head) {
        Ok(r) => send(stream, &pages::answer(store, &r), r.head_only),
        Err(a) => send(stream, &a, false),
    }
}

fn send(mut stream: &TcpStream, a: &Answer, head_only: bool) -> io::Result<()> {
    let word = match a.status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    };
    let head = format!(
        "HTTP/1.1 {} {word}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\nContent-Security-Policy: {}\r\n\r\n",
        a.status,
        a.mime,
        a.body.len(),
        crate::html::policy()
    );
    let until = Deadline::after(TAKING);
    let body = if head_only { &[][..] } else { a.body.as_bytes() };
    for piece in [head.as_bytes()].into_iter().chain(body.chunks(PIECE)) {
        let mut rest = piece;
        while !rest.is_empty() {
            stream.set_write_timeout(Some(until.left()?))?;
            match stream.write(rest)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                n => rest = &rest[n..],
            }
        }
    }
    stream.flush()
}

fn parse(head: &[u8]) -> Result<Request, Answer> {
    let bad = |why| Answer::text(400, why);
    let text = std::str::from_utf8(head).map_err(|_| bad("the request is not UTF-8"))?;
    let mut lines = text.split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [verb, target, version] = words[..] else { return Err(bad("not an HTTP request")) };
    if !version.starts_with("HTTP/1.") {
        return Err(bad("not HTTP/1"));
    }
    if verb != "GET" && verb != "HEAD" {
        return Err(Answer::text(405, "this server only shows results: GET"));
    }
    let host =
        lines.filter_map(|l| l.split_once(':')).find(|(k, _)| k.eq_ignore_ascii_case("host"));
    let host = host.map(|(_, v)| v.trim()).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    if !["127.0.0.1", "localhost"].contains(&name) {
        return Err(Answer::text(403, "ask for 127.0.0.1 or localhost"));
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = query.split('&').filter(|p| !p.is_empty()).map(|p| {
        let (k, v) = p.split_once('=').unwrap_or((p, ""));
        (decode(k), decode(v))
    });
    Ok(Request { path: path.into(), query: query.collect(), head_only: verb == "HEAD" })
}

/// Undoes `%20` and `+`; what is not UTF-8 becomes the replacement character.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let hex = bytes.get(i + 1..i + 3).and_then(|h| std::str::from_utf8(h).ok());
        let code = hex.filter(|_| bytes[i] == b'%').and_then(|h| u8::from_str_radix(h, 16).ok());
        match (bytes[i], code) {
            (_, Some(c)) => {
                out.push(c);
                i += 2;
            }
            (b'+', _) => out.push(b' '),
            (c, _) => out.push(c),
        }
        i += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn get(target: &str, host: &str) -> Result<Request, Answer> {
        parse(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
    }

    #[test]
    fn only_this_machine_is_asked() {
        assert!(get("/", "127.0.0.1:8080").is_ok());
        assert!(get("/", "localhost").is_ok());
        for host in ["evil.example", "evil.example:8080", "", "127.0.0.1.evil.example"] {
            assert_eq!(get("/", host).unwrap_err().status, 403, "{host}");
        }
        let post = b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        assert_eq!(parse(post).unwrap_err().status, 405);
    }

    #[test]
    fn queries_are_decoded() {
        let r = get("/?q=a%20b+c%zz&x", "localhost").unwrap();
        assert_eq!(r.query, [("q".into(), "a b c%zz".into()), ("x".into(), String::new())]);
    }

    proptest! {
        #[test]
        fn no_request_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "\\PC{0,80}") {
            let _ = parse(&bytes);
            let _ = decode(&text);
            let _ = get(&text, "localhost");
        }
    }
}
