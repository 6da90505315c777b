//! The server answers from the store and from nothing else.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test with a client")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use iosched_report::Server;
use iosched_results::store::{Document, Store};

use crate::synthetic;

fn ask(address: SocketAddr, request: &str) -> String {
    let mut s = TcpStream::connect(address).unwrap();
    s.write_all(request.as_bytes()).unwrap();
    let mut out = String::new();
    s.read_to_string(&mut out).unwrap();
    out
}

fn get(address: SocketAddr, target: &str) -> String {
    ask(address, &format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
}

#[test]
fn lists_shows_compares_and_refuses() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.db");
    std::fs::write(dir.path().join("secret"), "secret").unwrap();
    let mut store = Store::open(&path).unwrap();
    for name in ["first run", "<script>second"] {
        let doc = Document::of(name, synthetic::records(2, 2, 2));
        store.import(&doc.experiments[0]).unwrap();
    }
    let before = std::fs::read(&path).unwrap();
    let server = Server::bind(&path, 0).unwrap();
    let at = server.address();
    assert!(at.ip().is_loopback());
    std::thread::spawn(move || server.run());

    let list = get(at, "/");
    assert!(list.starts_with("HTTP/1.1 200") && list.contains("first run"));
    assert!(list.contains("&lt;script&gt;second") && !list.contains("<script>"));
    let found = get(at, "/?q=first");
    assert!(found.contains("first run") && !found.contains("second"));
    assert!(get(at, "/experiment/1").contains("first run"));
    assert!(get(at, "/experiment/1?live=5").contains("http-equiv=\"refresh\" content=\"5\""));
    let both = get(at, "/compare?a=1&b=2");
    assert!(both.contains("A: none@6.12") && both.contains("B: none@6.12"));

    for target in [
        "/experiment/3",
        "/experiment/-1",
        "/experiment/1%27",
        "/../secret",
        "/secret",
        "/r.db",
        "/experiment/../../secret",
        "//secret",
        "/compare?a=1",
        "http://localhost/",
        "/%2e%2e/secret",
    ] {
        let out = get(at, target);
        assert!(out.starts_with("HTTP/1.1 404"), "{target}: {}", &out[..60]);
        assert!(!out.contains("SQLite format"), "{target}");
    }
    let post = "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert!(ask(at, post).starts_with("HTTP/1.1 405"));
    let stranger = "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    assert!(ask(at, stranger).starts_with("HTTP/1.1 403"));
    let head = ask(at, "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n"));
    assert!(ask(at, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
    assert_eq!(std::fs::read(&path).unwrap(), before, "reading changed nothing");
}
