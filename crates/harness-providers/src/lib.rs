//! harness-providers.
