//! harness-activities.
