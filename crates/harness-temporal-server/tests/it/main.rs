//! A real Temporal CLI as the child of a real process: started, shared, refused, killed.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and its processes talk"
)]

mod binaries;
mod life;
mod logs;
mod orphans;
mod processes;
mod refusals;
mod state;
