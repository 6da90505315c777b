//! `nginx` and `apache`: a server of one page on this machine's own address, and ab.

use std::net::TcpListener;

use iosched_workloads::programs::Params;
use nix::sys::signal::Signal;

use super::{At, Plan, Read, Recipe, Seen, Server, Tool, number, only_defaults, only_text};
use crate::error::{Error, Result};

/// The client. It is the first tool: it prints the figures.
const AB: Tool =
    Tool { name: "ab", folders: &[], package: "apache2-utils", version: ("-V", &[2, 3]) };
/// Root's path has this folder, that of others may have not.
const FOLDERS: &[&str] = &["/usr/sbin"];
const USERS: &[&str] = &["www-data", "nobody"];

/// nginx.
pub(super) static NGINX: Recipe = Recipe {
    workload: "nginx",
    tools: &[
        AB,
        Tool { name: "nginx", folders: FOLDERS, package: "nginx", version: ("-v", &[1, 0]) },
    ],
    users: USERS,
    server: Some("nginx"),
    tree: None,
    can: |p| can(p, "nginx"),
    plan: nginx,
    figures,
};

/// Apache.
pub(super) static APACHE: Recipe = Recipe {
    workload: "apache",
    // 2.4 has the modules that are loaded.
    tools: &[
        AB,
        Tool { name: "apache2", folders: FOLDERS, package: "apache2", version: ("-v", &[2, 4]) },
    ],
    users: USERS,
    server: Some("apache2"),
    tree: None,
    can: apache_can,
    plan: apache,
    figures,
};

/// Where Debian has Apache's modules.
const MODULES: &str = "/usr/lib/apache2/modules";
const PAGE: &str = "test.html";

fn nginx(p: &Params, at: &At<'_>) -> Result<Plan> {
    let port = free_port()?;
    let dir = at.dir.display();
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String = kinds.map(|k| format!("  {k}_temp_path {dir}/{k};\n")).concat();
    let text = format!(
        "daemon off;\nworker_processes {};\npid {dir}/nginx.pid;\nerror_log {dir}/error.log;\n\
         events {{ worker_connections {}; }}\nhttp {{\n{temporary}  access_log {dir}/access.log;\n  \
         server {{ listen 127.0.0.1:{port} backlog={}; root {dir}/pages; }}\n}}\n",
        p.count("workers"),
        // The listening socket and files take some. nginx begins to close idle connections before it has used all of them.
        p.count("c") + p.count("c").max(100),
        backlog(p),
    );
    let settings = at.put("nginx.conf", &text)?;
    let log = at.file("error.log");
    plan(p, at, port, at.command("nginx", &["-e", &log, "-c", &settings]))
}

/// ab counts in 32 bits, and takes of a larger number what fits.
fn can(p: &Params, workload: &str) -> Result<()> {
    only_defaults(p, workload, &["cpu", "client"])?;
    if p.count("n") > i32::MAX as u64 {
        return Err(only_text(&format!("ab makes at most {} requests", i32::MAX)));
    }
    Ok(())
}

fn apache_can(p: &Params) -> Result<()> {
    can(p, "apache")?;
    match p.count("workers") {
        0..=20_000 => Ok(()),
        _ => Err(only_text("Apache has at most 20,000 threads a process")),
    }
}

fn apache(p: &Params, at: &At<'_>) -> Result<Plan> {
    let threads = p.count("workers");
    let port = free_port()?;
    let dir = at.dir.display();
    let text = format!(
        "ServerRoot {dir}\nServerName localhost\nListen 127.0.0.1:{port}\nListenBacklog {}\nPidFile {dir}/apache.pid\n\
         DefaultRuntimeDir {dir}\nErrorLog {dir}/error.log\nDocumentRoot {dir}/pages\n\
         LoadModule mpm_event_module {MODULES}/mod_mpm_event.so\n\
         LoadModule authz_core_module {MODULES}/mod_authz_core.so\n\
         LogFormat \"%h %l %u %t \\\"%r\\\" %>s %O\" common\nCustomLog {dir}/access.log common\n\
         ServerLimit 1\nStartServers 1\nThreadLimit {threads}\nThreadsPerChild {threads}\n\
         MaxRequestWorkers {threads}\nMinSpareThreads 1\nMaxSpareThreads {threads}\n",
        backlog(p),
    );
    let settings = at.put("apache.conf", &text)?;
    plan(p, at, port, at.command("apache2", &["-f", &settings, "-D", "FOREGROUND"]))
}

fn plan(p: &Params, at: &At<'_>, port: u16, server: Vec<String>) -> Result<Plan> {
    let pages = at.own.join("pages");
    std::fs::create_dir(&pages).map_err(|e| Error::io("creating", &pages, e))?;
    at.put(&format!("pages/{PAGE}"), &"x".repeat(p.bytes("page") as usize))?;
    let url = format!("http://127.0.0.1:{port}/{PAGE}");
    let (n, c) = (p.count("n").to_string(), p.count("c").min(p.count("n")).to_string());
    let ready = at.command("ab", &["-q", "-n", "1", "-c", "1", &url]);
    let server = Server { run: server, ready, stop: Signal::SIGTERM };
    let run = vec![at.command("ab", &["-q", "-n", &n, "-c", &c, &url])];
    // A line for each request.
    let log = Some(("access.log", p.count("n")));
    Ok(Plan { server: Some(server), run, log, ..Plan::default() })
}

/// Connections that may wait for the server: what both servers have by themselves, unless more come at a time. Those that
/// find no room try again after a second.
fn backlog(p: &Params) -> u64 {
    p.count("c").max(511)
}

/// A port that nobody uses now. Somebody may take it meanwhile; then the server says so.
fn free_port() -> Result<u16> {
    let io = |e| Error::io("looking for a free port of", "127.0.0.1", e);
    let socket = TcpListener::bind(("127.0.0.1", 0)).map_err(io)?;
    Ok(socket.local_addr().map_err(io)?.port())
}

/// ab's rate, if as many requests as were asked for were all answered with the page.
fn figures(printed: &str, p: &Params, _: Seen) -> Read {
    let value = |begins: &str| {
        let line = printed.lines().find(|l| l.starts_with(begins))?;
        number(line.split_once(':')?.1)
    };
    let whole = value("Failed requests") == Some(0.0)
        && value("Non-2xx responses").is_none()
        && value("Complete requests") == Some(p.count("n") as f64)
        && value("Document Length") == Some(p.bytes("page") as f64);
    let rate = value("Requests per second").filter(|_| whole)?;
    Some(vec![("requests per second", rate)])
}
