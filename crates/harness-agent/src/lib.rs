//! harness-agent.
