//! What a process listens on, as the kernel knows it.

use std::{
    collections::HashSet,
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// State of a TCP socket that listens, in the kernel's tables.
const LISTEN: &str = "0A";

/// The TCP addresses that a process listens on. `None` where the kernel does not say: not Linux, or the process is gone.
pub(crate) fn of(pid: i32) -> Option<Vec<SocketAddr>> {
    let sockets = sockets(pid)?;
    let mut listening = Vec::new();
    // Those of the network that the process is in, which need not be ours.
    for table in ["tcp", "tcp6"] {
        // Without IPv6 there is only one of them.
        let Ok(text) = fs::read_to_string(format!("/proc/{pid}/net/{table}")) else { continue };
        listening.extend(text.lines().filter_map(|line| listener(line, &sockets)));
    }
    Some(listening)
}

/// Inodes of the sockets that a process has open.
fn sockets(pid: i32) -> Option<HashSet<String>> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let names = open.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    let inode = |name: &str| Some(name.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned());
    Some(names.filter_map(|name| inode(name.to_str()?)).collect())
}

/// The local address in a line of `/proc/net/tcp` or `tcp6`, if one of these sockets listens there.
fn listener(line: &str, sockets: &HashSet<String>) -> Option<SocketAddr> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    if *state != LISTEN || !sockets.contains(*inode) {
        return None;
    }
    let (ip, port) = local.split_once(':')?;
    Some(SocketAddr::new(parse_ip(ip)?, u16::from_str_radix(port, 16).ok()?))
}

/// Words of 32 bits in the machine's own byte order, as hexadecimal digits.
fn parse_ip(digits: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(digits.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes());
    match digits.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let octets: Vec<u8> = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            let ip = Ipv6Addr::from(<[u8; 16]>::try_from(octets).ok()?);
            Some(ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    fn own() -> Vec<SocketAddr> {
        of(rustix::process::getpid().as_raw_nonzero().get()).unwrap()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_listener_is_seen_until_it_is_closed() {
        let narrow = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let wide = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
        let (narrow_at, wide_at) = (narrow.local_addr().unwrap(), wide.local_addr().unwrap());
        assert!(own().contains(&narrow_at) && own().contains(&wide_at));
        assert!(narrow_at.ip().is_loopback() && !wide_at.ip().is_loopback());
        drop(wide);
        assert!(!own().contains(&wide_at));
    }

    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        let words = |ip: [u8; 16]| -> String {
            ip.chunks(4).map(|word| format!("{:08X}", u32::from_ne_bytes(word.try_into().unwrap()))).collect()
        };
        assert_eq!(parse_ip(&words(Ipv6Addr::LOCALHOST.octets())), Some(Ipv6Addr::LOCALHOST.into()));
        let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
        assert_eq!(parse_ip(&words(mapped.octets())), Some(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(parse_ip("0100007"), None);
        assert_eq!(parse_ip("é100007F"), None);
    }
}
