//! Tools of `cargo xtask tools` that are not there.

/// Says that a test is skipped.
///
/// # Panics
/// When `HARNESS_REQUIRE_TOOLS` is `1`: then nothing may be skipped.
#[expect(clippy::disallowed_methods, reason = "test switch, read where the test runs")]
#[expect(clippy::print_stderr, reason = "a skipped test has to be seen")]
pub(crate) fn report_absent(tool: &str, script: &str) {
    let required = std::env::var("HARNESS_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
    assert!(!required, "{tool} is not installed: run `python3 {script}`");
    eprintln!("SKIPPED: {tool} is not installed; `python3 {script}` installs it");
}
