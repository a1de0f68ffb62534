//! harness-telemetry.
