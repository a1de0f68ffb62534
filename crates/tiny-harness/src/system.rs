//! The outside world as ports: the clock and fresh ids of this process.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::SystemTime,
};

use harness_model::Timestamp;
use harness_ports::{Clock, IdSource};

/// The system's clock; never goes backwards within the process.
#[derive(Debug, Default)]
pub(crate) struct SystemClock {
    latest: AtomicI64,
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "this is the one place where time comes from")]
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let millis = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
        let before = self.latest.fetch_max(millis, Ordering::Relaxed);
        Timestamp::from_millis(millis.max(before))
    }
}

/// Random UUIDs.
#[derive(Debug, Default)]
pub(crate) struct RandomIds;

impl IdSource for RandomIds {
    fn fresh(&self) -> String {
        uuid::Uuid::new_v4().to_string()
    }
}

/// Name of the user at this machine, for asserting who talks; `None` when the environment does not say.
pub(crate) fn user_name(env: &std::collections::BTreeMap<String, String>) -> Option<String> {
    let name = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|key| env.get(*key))?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}
