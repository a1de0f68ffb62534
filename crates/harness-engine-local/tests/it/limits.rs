//! What only this engine promises: its own limits.
