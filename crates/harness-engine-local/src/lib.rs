//! harness-engine-local.
