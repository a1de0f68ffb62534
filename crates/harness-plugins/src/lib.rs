//! harness-plugins.
