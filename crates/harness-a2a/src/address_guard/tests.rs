//! What the guard lets through, in every notation that it has to know.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::{io::AsyncReadExt, net::TcpListener};

use super::*;

fn check(text: &str) -> Result<String, ForbiddenUrl> {
    AddressGuard::default().check(text).map(|url| url.to_string())
}

#[test]
fn public_urls_pass() {
    for url in [
        "https://hooks.example/a?b=c",
        "http://93.184.215.14:8080/",
        "https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/",
        "https://100.128.0.1/",
        "https://172.32.0.1/",
        "http://[::ffff:93.184.215.14]/",
        "http://[64:ff9b::93.184.215.14]/",
    ] {
        assert!(check(url).is_ok(), "{url}");
    }
}

#[test]
fn addresses_that_are_not_public_are_refused_in_every_notation() {
    for host in [
        // Private, loopback, link-local, metadata, shared, reserved.
        "10.1.2.3",
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "0.1.2.3",
        "169.254.169.254",
        "100.100.100.200",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.0.1",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        // The same in other notations.
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "%31%32%37.0.0.1",
        "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
        "127\u{3002}0\u{3002}0\u{3002}1",
        "127.0.0.1.",
        "0",
        "0xA9FEA9FE",
        // IPv6, and IPv4 inside of it.
        "[::]",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::1]",
        "[2002:7f00:1::]",
        "[2001::1]",
        "[2001:db8::1]",
        "[3fff::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[100::1]",
        "[5f00::1]",
        // Names of the machine itself.
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
    ] {
        assert_eq!(check(&format!("http://{host}/x")), Err(ForbiddenUrl::Address), "{host}");
    }
}

#[test]
fn other_urls_are_refused_for_what_they_are() {
    for (url, reason) in [
        ("ftp://hooks.example/", ForbiddenUrl::Scheme),
        ("file:///etc/passwd", ForbiddenUrl::Scheme),
        ("gopher://hooks.example/", ForbiddenUrl::Scheme),
        ("javascript:alert(1)", ForbiddenUrl::Scheme),
        ("http://ada@hooks.example/", ForbiddenUrl::Credentials),
        ("http://:pw@hooks.example/", ForbiddenUrl::Credentials),
        ("http://hooks.example@127.0.0.1/", ForbiddenUrl::Credentials),
        ("", ForbiddenUrl::Invalid),
        ("/relative", ForbiddenUrl::Invalid),
        ("http://", ForbiddenUrl::Invalid),
        ("http://[::1", ForbiddenUrl::Invalid),
        ("http://[fe80::1%25eth0]/", ForbiddenUrl::Invalid),
        ("http://1.2.3.4.5/", ForbiddenUrl::Invalid),
    ] {
        assert_eq!(check(url), Err(reason), "{url}");
    }
    assert_eq!(check(&format!("http://h.example/{}", "x".repeat(3_000))), Err(ForbiddenUrl::Invalid));
}

#[test]
fn what_is_allowed_passes() {
    let guard = AddressGuard::allowing(&["Hooks.internal", "10.1.0.0/16", "::1", "fd00::/8"]).unwrap();
    for (url, passes) in [
        ("http://10.1.255.1/", true),
        ("http://10.2.0.1/", false),
        ("http://[::ffff:10.1.0.1]/", true),
        ("http://[::1]/", true),
        ("http://[fd12::1]/", true),
        ("http://127.0.0.1/", false),
        ("http://hooks.internal/", true),
        ("http://localhost/", false),
    ] {
        assert_eq!(guard.check(url).is_ok(), passes, "{url}");
    }
    let private = IpAddr::from([192, 168, 1, 1]);
    assert!(guard.admits("hooks.internal", private) && guard.admits("HOOKS.internal.", private));
    assert!(!guard.admits("other.internal", private) && !guard.admits("x.hooks.internal", private));
    assert!(AddressGuard::allowing(&["localhost"]).unwrap().check("http://localhost:1/").is_ok());
    for wrong in ["", "http://x/", "10.0.0.0/33", "fd00::/129", "10.0.0.0/x", "a b"] {
        let error = AddressGuard::allowing(&[wrong]).unwrap_err();
        assert_eq!(error, InvalidAllowedAddress { entry: wrong.to_owned() });
    }
}

/// A name that is public when it is checked and this machine when it is called.
#[tokio::test]
async fn a_name_that_changes_its_mind_leads_nowhere() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let lookup: resolver::Lookup = Arc::new(move |host| {
        assert_eq!(host, "rebinding.example");
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 0, 0, 1])]) })
    });
    let url = format!("http://rebinding.example:{port}/");
    let call = async |guard: AddressGuard| {
        let url = guard.check(&url).unwrap();
        let resolver = GuardedResolver::new(guard, Arc::clone(&lookup));
        let client = client_builder(Duration::from_secs(5)).dns_resolver(Arc::new(resolver));
        client.build().unwrap().get(url).timeout(Duration::from_secs(5)).send().await.unwrap_err()
    };
    let error = call(AddressGuard::default()).await;
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    let mut forbidden = false;
    while let Some(inner) = cause {
        forbidden |= inner.downcast_ref::<ForbiddenUrl>() == Some(&ForbiddenUrl::Address);
        cause = inner.source();
    }
    assert!(forbidden, "{error:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // The same call, allowed, reaches the listener: it was the guard that stopped it.
    let allowed = AddressGuard::allowing(&["rebinding.example"]).unwrap();
    let accepted = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = [0; 16];
        assert!(stream.read(&mut bytes).await.unwrap() > 0);
    };
    tokio::join!(call(allowed), accepted);
}
