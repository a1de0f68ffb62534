//! harness-mcp.
