//! Tests of plugin loading on real folders.

mod containment;
#[expect(clippy::unwrap_used, reason = "a fixture that cannot be made fails its test")]
mod fixture;
mod garbage;
mod loading;
