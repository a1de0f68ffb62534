//! The product from the outside: the built program as real processes, real tool servers, real kills.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail the test they help")]

mod api;
mod cli_agent;
mod cli_config;
mod cli_demo;
mod crash_demo;
mod crash_drain;
mod crash_first_message;
mod crash_large_results;
mod crash_postgres;
mod crash_streams;
mod finished_tasks;
mod garbage_requests;
mod garbage_setup;
mod http_tools;
#[path = "../../../harness-a2a/tests/it/issuer.rs"]
mod issuer;
mod local_model;
mod operations;
mod races;
mod rig;
mod second_agent;
mod sign_in;
mod stored;
mod temporal_crash;
mod temporal_crash_demo;
mod temporal_crash_estate;
mod temporal_crash_stop;
mod temporal_crash_upgrade;
mod temporal_operations;
mod temporal_rig;
mod temporal_switch;
mod temporal_usage;
mod tool_servers;
mod traces;
