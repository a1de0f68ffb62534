//! What each command does, one file each.

pub(crate) mod bench;
pub(crate) mod chat;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod mcp_demo;
pub(crate) mod purge;
pub(crate) mod schedules;
pub(crate) mod serve;
pub(crate) mod tasks;
pub(crate) mod worker;
