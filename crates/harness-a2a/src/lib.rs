//! harness-a2a.
