//! The product from the outside: the built program as real processes, real tool servers, real kills.

mod api;
mod crash_demo;
mod rig;
mod stored;
