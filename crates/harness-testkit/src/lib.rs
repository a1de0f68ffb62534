//! harness-testkit.
