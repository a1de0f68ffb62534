//! Hosts workflows over the journal of a store: what an event is, in which order events come, what they cause, and that
//! all of it becomes durable together. Who runs the activities and who watches the clock is the matter of a [`Driver`]:
//! a future of this process, or an engine for many machines.
//!
//! A workflow that has something to do is driven by one *actor*, a future that takes what is queued for the workflow,
//! applies it, commits everything it caused in one batch, performs the commands, and ends when nothing is left. Between
//! two things to do there is no future, only a few warm states in memory; everything else is rows in the store.
//!
//! Several processes may host the workflows of one store. The journal decides between them: an event is appended at the
//! next free position or not at all, and who comes too late reads again and decides anew.

mod activity_run;
mod actor;
mod batch;
mod driver;
mod host;
mod hosted;
mod input;
mod instance;
mod options;
mod outbox;
mod registry;
mod work;

pub use activity_run::{Cut, run_activity};
pub use driver::{Changes, Driver, Found};
pub use host::{Host, HostParts};
pub use options::HostOptions;
pub use outbox::{is_outbound, send as send_outbound};
pub use work::{ActivityWork, TimerWork, Work};
