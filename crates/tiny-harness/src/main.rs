//! tiny-harness.
fn main() {}
