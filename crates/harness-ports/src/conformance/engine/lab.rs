//! What the suite needs to know about an engine under test.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;

use crate::{ActivityHost, Engine, Store, WorkflowDefinition};

/// One durable world: a store that outlives the engines that are opened over it, one after another.
pub trait EngineLab: Send + Sync {
    /// Starts an engine, as a process does. At most one lives at a time.
    fn open(&self, plan: LifePlan) -> BoxFuture<'_, Box<dyn EngineLife>>;

    /// How many workflows make a crowd where a fast engine takes this many. Fewer for an engine that is not built for
    /// speed, so that the suite ends.
    fn crowd(&self, fast: usize) -> usize {
        fast
    }
}

/// How one life of a process goes.
pub struct LifePlan {
    /// Runs the activities.
    pub activities: Arc<dyn ActivityHost>,
    /// The workflow types.
    pub workflows: Vec<Arc<dyn WorkflowDefinition>>,
    /// What goes wrong.
    pub trouble: Trouble,
}

impl std::fmt::Debug for LifePlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LifePlan").field("trouble", &self.trouble).finish_non_exhaustive()
    }
}

/// What goes wrong in one life. Commits of the engine are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// The process dies before this commit.
    DieBefore(u64),
    /// The process dies right after this commit.
    DieAfter(u64),
    /// These commits fail.
    Fail {
        /// The first one.
        first: u64,
        /// The last one.
        last: u64,
    },
}

/// An engine in one life of a process.
pub trait EngineLife: Send + Sync {
    /// The engine.
    fn engine(&self) -> Arc<dyn Engine>;

    /// The store, free of trouble, for reading what became durable.
    fn store(&self) -> Arc<dyn Store>;

    /// How many workflows have state in memory now.
    fn workflows_in_memory(&self) -> usize;

    /// Ends when the process has died of its planned trouble; never, if none strikes.
    fn died(&self) -> BoxFuture<'_, ()>;

    /// Stops in good order within `grace`. Returns whether everything ended by itself.
    fn drain(&self, grace: Duration) -> BoxFuture<'_, bool>;

    /// Ends the life at once, as a kill does; nothing more is written. Returns when the next life may be opened.
    fn kill(self: Box<Self>) -> BoxFuture<'static, ()>;
}
