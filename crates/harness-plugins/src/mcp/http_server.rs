//! Servers behind a URL.

use std::{collections::BTreeMap, net::IpAddr};

use http::{HeaderName, HeaderValue, Uri};

use super::{Fields, McpTransport, ServerError};
use crate::report::quoted;

pub(super) fn read(fields: &Fields) -> Result<McpTransport, ServerError> {
    fields.only(&["type", "url", "headers"])?;
    let url = fields.required("url")?;
    check_url(url).map_err(|reason| ServerError::invalid(format!("url {reason}")))?;
    let mut headers = BTreeMap::new();
    for (name, value) in fields.map("headers")? {
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| ServerError::invalid(format!("headers: {} is not a header name", quoted(name))))?;
        HeaderValue::from_str(value).map_err(|_| {
            ServerError::invalid(format!("headers: the value of {} is not valid", quoted(name)))
        })?;
        if headers.insert(parsed.as_str().to_owned(), value.to_owned()).is_some() {
            return Err(ServerError::invalid(format!("headers: {} is given twice", quoted(name))));
        }
    }
    Ok(McpTransport::StreamableHttp { url: url.to_owned(), headers })
}

/// Values are never repeated in the reason: a URL may hold a password.
fn check_url(url: &str) -> Result<(), &'static str> {
    let lower = url.to_ascii_lowercase();
    if !lower.starts_with("https://") && !lower.starts_with("http://") {
        return Err("must begin with `https://` or `http://`");
    }
    if url.contains('#') {
        return Err("must not have a fragment (`#`)");
    }
    let uri: Uri = url.parse().map_err(|_| "is not a valid URL")?;
    let authority = uri.authority().ok_or("has no host")?;
    if authority.as_str().contains('@') {
        return Err("must not hold a user name or password");
    }
    if authority.host().is_empty() {
        return Err("has no host");
    }
    if uri.scheme_str() == Some("http") && !is_loopback(authority.host()) {
        return Err("must be `https` unless the host is literally localhost or a loopback address");
    }
    Ok(())
}

/// Decided by the text of the host, never by a name server.
fn is_loopback(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        for url in [
            "https://deploy.example.com/mcp",
            "HTTPS://x",
            "http://localhost:8080/mcp?x=1",
            "http://127.0.0.9/",
            "http://[::1]:9/mcp",
        ] {
            assert_eq!(check_url(url), Ok(()), "{url}");
        }
        for url in [
            "http://example.com",
            "http://localhost.evil.invalid/",
            "http://127.0.0.1.evil.invalid",
            "https:example.com",
            "https://",
            "ftp://x",
            "file:///etc/passwd",
            "https://user:pass@x/",
            "https://x/#f",
            "https://x y/",
            "https://${PLUGIN_ROOT}/",
        ] {
            assert!(check_url(url).is_err(), "{url}");
        }
    }
}
