//! The product from the outside: the built program as real processes, real tool servers, real kills.

mod api;
mod crash_demo;
mod crash_first_message;
mod crash_streams;
mod finished_tasks;
mod http_tools;
mod rig;
mod stored;
mod tool_servers;
