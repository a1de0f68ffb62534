//! Which base URLs a model provider may have: a key never leaves the machine in the clear.

use std::net::IpAddr;

use reqwest::Url;

/// Why a base URL is refused. `Display` names the remedy and never repeats the URL, which may hold credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    /// Not `http://host` or `https://host`.
    #[error("must begin with http:// or https:// followed by a host")]
    NotHttp,
    /// Not a URL that can be called.
    #[error("is not a valid URL")]
    Invalid,
    /// User name or password in the URL.
    #[error("must not hold a user name or a password; keys come from the environment")]
    UserInfo,
    /// A query or a fragment, which would end up in the middle of a path.
    #[error("must not hold a query or a fragment")]
    QueryOrFragment,
    /// A key would be sent in the clear to another machine.
    #[error("must be https: a key is set, and plain http is only for localhost, 127.0.0.0/8 and [::1]")]
    PlainHttpWithKey,
}

/// Checks the base URL of a provider. Names are never resolved: only a literal loopback host may get a key over http.
pub fn check_base_url(url: &str, has_key: bool) -> Result<(), BaseUrlError> {
    parse_base_url(url, has_key).map(drop)
}

/// The URL that [`check_base_url`] accepts.
pub(crate) fn parse_base_url(url: &str, has_key: bool) -> Result<Url, BaseUrlError> {
    // URL parsers drop tabs and newlines, turn backslashes into slashes and mend missing slashes; what was checked
    // here has to be what is called.
    if url.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err(BaseUrlError::Invalid);
    }
    let lower = url.to_ascii_lowercase();
    let rest = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://"));
    let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    if authority.is_empty() {
        return Err(BaseUrlError::NotHttp);
    }
    if authority.contains('@') {
        return Err(BaseUrlError::UserInfo);
    }
    let parsed = Url::parse(url).map_err(|_| BaseUrlError::Invalid)?;
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return Err(BaseUrlError::QueryOrFragment);
    }
    if has_key && parsed.scheme() == "http" && !is_literal_loopback(&parsed) {
        return Err(BaseUrlError::PlainHttpWithKey);
    }
    Ok(parsed)
}

fn is_literal_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_is_safe() {
        for (url, has_key) in [
            ("https://api.openai.com/v1", true),
            ("HTTPS://api.openai.com", true),
            ("https://host:8443/a/b/", true),
            ("http://localhost:11434/v1", true),
            ("http://127.0.0.1/v1", true),
            ("http://127.8.8.8:1/v1", true),
            ("http://[::1]:8080/v1", true),
            ("http://10.0.0.7/v1", false),
            ("http://models.internal", false),
        ] {
            assert_eq!(check_base_url(url, has_key), Ok(()), "{url}");
        }
    }

    #[test]
    fn refuses_what_is_not() {
        use BaseUrlError::*;
        for (url, has_key, error) in [
            ("", false, NotHttp),
            ("https:example.com", false, NotHttp),
            ("http:/h", false, NotHttp),
            ("https://", false, NotHttp),
            ("https:///v1", false, NotHttp),
            ("https://?q", false, NotHttp),
            ("ftp://host", false, NotHttp),
            ("//host", false, NotHttp),
            ("https://user@host/v1", false, UserInfo),
            ("https://user:pass@host/v1", true, UserInfo),
            ("http://localhost@evil.invalid/v1", true, UserInfo),
            ("https://host/v1?key=1", true, QueryOrFragment),
            ("https://host/v1#x", true, QueryOrFragment),
            ("https://ho st", false, Invalid),
            ("https://host\\@evil.invalid", false, Invalid),
            ("https://ho\tst", false, Invalid),
            ("https://[::1", false, Invalid),
            ("https://host:99999", false, Invalid),
            ("http://api.openai.com/v1", true, PlainHttpWithKey),
            ("http://localhost.evil.invalid/v1", true, PlainHttpWithKey),
            ("http://127.0.0.1.evil.invalid/v1", true, PlainHttpWithKey),
            ("http://0.0.0.0/v1", true, PlainHttpWithKey),
            ("http://[::2]/v1", true, PlainHttpWithKey),
        ] {
            assert_eq!(check_base_url(url, has_key), Err(error), "{url}");
        }
    }
}
