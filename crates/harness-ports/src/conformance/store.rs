//! What every store must do. [`crate::store_conformance`] makes a test of each case.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed case")]

mod content;
mod deletion;
mod fixtures;
mod follow;
mod listing;
mod log;
mod records;
mod tasks;
mod workflows;
mod writes;

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::Store;

pub use content::blocks_are_kept_at_every_size;
pub use deletion::{
    a_census_counts_what_is_there, a_deleted_task_leaves_nothing,
    blocks_go_with_the_last_task_that_keeps_them, followers_of_a_deleted_task_end,
    nothing_brings_half_of_a_deleted_task_back, only_what_has_ended_is_deleted_by_age,
    the_oldest_tasks_come_in_pages,
};
pub use follow::{
    a_follower_that_comes_back_misses_nothing, an_idle_follower_is_woken,
    followers_of_every_speed_see_every_entry_once, followers_of_many_tasks_are_kept_apart,
};
pub use listing::{
    a_cursor_is_stable_when_tasks_are_added, listings_are_ordered_and_paged, listings_count_up_to_a_limit,
    listings_filter, listings_follow_the_record,
};
pub use log::{
    a_publish_key_works_once, entries_are_numbered_without_gaps, logs_are_read_in_pages,
    nothing_follows_the_end_of_a_task, readers_see_whole_batches,
};
pub use records::{
    a_record_is_replaced_only_as_it_was_read, old_records_are_deleted_by_kind, records_are_deleted,
    records_of_every_task_are_read_in_pages, records_replace_and_stay_in_order,
};
pub use tasks::{artifacts_are_folded, history_returns_the_newest, the_status_knows_its_entry};
pub use workflows::{
    activities_are_kept_until_removed, deliveries_are_known_once, snapshots_replace_and_shorten_the_tail,
    timers_come_in_the_order_they_are_due,
};
pub use writes::{
    a_commit_that_is_given_up_happens_whole_or_not_at_all, a_conflict_fails_its_batch_alone,
    batches_are_atomic, conditions_are_checked, reopening_keeps_everything,
};

/// Where the store of one case lives. Each case gets one with nothing in it.
pub trait StoreHome: Send + Sync {
    /// Opens the store; it is not open when this is called.
    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>>;

    /// Ends the open store as an orderly end of the process does.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Makes one test of each case of the store suite. The expression makes a [`conformance::store::StoreHome`] with a
/// store that has nothing in it.
///
/// [`conformance::store::StoreHome`]: crate::conformance::store::StoreHome
#[macro_export]
macro_rules! store_conformance {
    ($home:expr) => {
        $crate::store_conformance! { $home;
            a_census_counts_what_is_there
            a_commit_that_is_given_up_happens_whole_or_not_at_all
            a_conflict_fails_its_batch_alone
            a_cursor_is_stable_when_tasks_are_added
            a_deleted_task_leaves_nothing
            a_follower_that_comes_back_misses_nothing
            a_publish_key_works_once
            a_record_is_replaced_only_as_it_was_read
            activities_are_kept_until_removed
            an_idle_follower_is_woken
            artifacts_are_folded
            batches_are_atomic
            blocks_are_kept_at_every_size
            blocks_go_with_the_last_task_that_keeps_them
            conditions_are_checked
            deliveries_are_known_once
            entries_are_numbered_without_gaps
            followers_of_a_deleted_task_end
            followers_of_every_speed_see_every_entry_once
            followers_of_many_tasks_are_kept_apart
            history_returns_the_newest
            listings_are_ordered_and_paged
            listings_count_up_to_a_limit
            listings_filter
            listings_follow_the_record
            logs_are_read_in_pages
            nothing_brings_half_of_a_deleted_task_back
            nothing_follows_the_end_of_a_task
            old_records_are_deleted_by_kind
            only_what_has_ended_is_deleted_by_age
            readers_see_whole_batches
            records_are_deleted
            records_of_every_task_are_read_in_pages
            records_replace_and_stay_in_order
            reopening_keeps_everything
            snapshots_replace_and_shorten_the_tail
            the_oldest_tasks_come_in_pages
            the_status_knows_its_entry
            timers_come_in_the_order_they_are_due
        }
    };
    ($home:expr; $($case:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let home = $home;
                $crate::conformance::store::$case(&home).await;
            }
        )*
    };
}
