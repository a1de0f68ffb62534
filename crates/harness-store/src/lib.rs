//! harness-store.
