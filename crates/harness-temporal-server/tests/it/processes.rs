//! What the machine knows about processes, asked past the code under test.

use std::{fs, net::SocketAddr, path::PathBuf, time::Duration};

use harness_temporal_server::{BinarySource, ServerOptions, State};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{net::TcpStream, time::sleep};

/// A server of this program on this file.
pub(crate) fn on_file(binary: impl Into<PathBuf>, database: impl Into<PathBuf>) -> ServerOptions {
    ServerOptions::new(chosen(binary), State::File(database.into()))
}

/// A server of this program in memory.
pub(crate) fn in_memory(binary: impl Into<PathBuf>) -> ServerOptions {
    ServerOptions::new(chosen(binary), State::InMemory)
}

fn chosen(binary: impl Into<PathBuf>) -> BinarySource {
    BinarySource { binary_path: Some(binary.into()), ..BinarySource::default() }
}

/// The servers that were told to listen on this address.
pub(crate) fn servers_at(address: SocketAddr) -> Vec<i32> {
    let wanted = format!("--port={}", address.port());
    all()
        .into_iter()
        .filter(|pid| command_line(*pid).iter().skip(1).any(|argument| *argument == wanted))
        .collect()
}

/// The one server at this address. The watcher beside it is a shell.
pub(crate) fn server_at(address: SocketAddr) -> i32 {
    let servers: Vec<i32> = servers_at(address).into_iter().filter(|pid| name(*pid) != "sh").collect();
    assert_eq!(servers.len(), 1, "one server at {address}");
    servers[0]
}

/// The watcher of a server: its child.
pub(crate) fn watcher_of(server: i32) -> i32 {
    let is_child = |pid: &i32| status(*pid, "PPid:").is_some_and(|parent| parent == server.to_string());
    let children: Vec<i32> = all().into_iter().filter(is_child).collect();
    assert_eq!(children.len(), 1, "one watcher of {server}");
    children[0]
}

pub(crate) fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

/// Whether a process runs; one that is dead and waits for its parent does not.
pub(crate) fn is_alive(pid: i32) -> bool {
    status(pid, "State:").is_some_and(|state| !state.starts_with('Z'))
}

/// Waits until this is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if is_so() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("it never was so: {what}");
}

/// Whether anything listens there.
pub(crate) async fn answers(address: SocketAddr) -> bool {
    TcpStream::connect(address).await.is_ok()
}

/// Addresses that a process listens on, as the kernel writes them: IPv4 first, IPv6 after it.
pub(crate) fn listening(pid: i32) -> Vec<String> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let open: Vec<String> = open
        .filter_map(|entry| Some(fs::read_link(entry.ok()?.path()).ok()?.to_string_lossy().into_owned()))
        .collect();
    let tables = ["tcp", "tcp6"]
        .map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default());
    let sockets =
        tables.iter().flat_map(|table| table.lines()).map(|line| line.split_whitespace().collect::<Vec<_>>());
    sockets
        .filter(|fields| fields[3] == "0A" && open.contains(&format!("socket:[{}]", fields[9])))
        .map(|fields| fields[1].to_owned())
        .collect()
}

fn all() -> Vec<i32> {
    let names = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}

fn command_line(pid: i32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

fn name(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

fn status(pid: i32, key: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(status.lines().find_map(|line| line.strip_prefix(key))?.trim().to_owned())
}
