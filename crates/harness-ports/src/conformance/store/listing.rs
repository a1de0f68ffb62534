//! Listings: order, filters, pages.

use harness_model::{TaskId, TaskState};

use super::{
    StoreHome,
    fixtures::{at, commit, put_task, record},
};
use crate::{Store, TaskCursor, TaskFields, TaskPage, TaskQuery};

/// Everything, in pages of this size.
fn everything(limit: usize) -> TaskQuery {
    TaskQuery {
        visible_to: None,
        context_id: None,
        state: None,
        status_since: None,
        after: None,
        limit,
        fields: TaskFields::BARE,
    }
}

fn ids(page: &TaskPage) -> Vec<&str> {
    page.tasks.iter().map(|task| task.record.task_id.as_str()).collect()
}

/// All pages from a query on.
async fn walk(store: &dyn Store, mut query: TaskQuery) -> Vec<TaskId> {
    let mut found = Vec::new();
    loop {
        let page = store.tasks(query.clone()).await.unwrap();
        assert!(page.tasks.len() <= query.limit);
        found.extend(page.tasks.into_iter().map(|task| task.record.task_id));
        match page.next {
            Some(next) => query.after = Some(next),
            None => return found,
        }
    }
}

/// Newest status first, greater id first among equals, whatever the size of the pages.
pub async fn listings_are_ordered_and_paged(home: &dyn StoreHome) {
    let store = home.open().await;
    assert!(store.tasks(everything(5)).await.unwrap().tasks.is_empty());
    let states = [TaskState::Working, TaskState::Completed, TaskState::InputRequired];
    let mut expected = Vec::new();
    for n in 0..40_usize {
        // Several tasks share a time, over different states.
        let (id, status_at) = (format!("t{:02}", n * 7 % 40), i64::try_from(n / 6).unwrap());
        commit(&*store, vec![put_task(record(&id, "c", states[n % 3], status_at, &["ann"]))]).await;
        expected.push((status_at, TaskId::from(id)));
    }
    expected.sort_by(|a, b| b.cmp(a));
    let expected: Vec<TaskId> = expected.into_iter().map(|(_, id)| id).collect();
    for limit in [1, 3, 7, 39, 40, 100] {
        for visible_to in [None, Some("ann".into())] {
            let query = TaskQuery { visible_to, ..everything(limit) };
            assert_eq!(walk(&*store, query).await, expected, "pages of {limit}");
        }
    }
    let page = store.tasks(everything(40)).await.unwrap();
    assert_eq!((page.next, page.total), (None, 40), "a full last page says that it is the last");
}

/// Each filter, and all of them together.
pub async fn listings_filter(home: &dyn StoreHome) {
    let store = home.open().await;
    let tasks = [
        record("t1", "c1", TaskState::Working, 10, &["ann"]),
        record("t2", "c1", TaskState::Working, 20, &["ann", "ben"]),
        record("t3", "c2", TaskState::Working, 30, &["ben"]),
        record("t4", "c1", TaskState::Failed, 40, &["ann", "ben"]),
        record("t5", "c1", TaskState::Working, 50, &["ben"]),
        record("t6", "p/ann", TaskState::Working, 60, &["*"]),
        record("t7", "c1", TaskState::Working, 50, &["ann"]),
        record("t8", "c2", TaskState::Working, 50, &["ben"]),
    ];
    commit(&*store, tasks.into_iter().map(put_task).collect()).await;
    let check = async |query: TaskQuery, expected: &[&str]| {
        let page = store.tasks(query.clone()).await.unwrap();
        assert_eq!(ids(&page), expected, "{query:?}");
        assert_eq!(page.total, expected.len() as u64, "{query:?}");
    };
    let all = everything(9);
    let query = |visible_to: Option<&str>, context: Option<&str>, state, since: Option<i64>| TaskQuery {
        visible_to: visible_to.map(Into::into),
        context_id: context.map(Into::into),
        state,
        status_since: since.map(at),
        ..all.clone()
    };
    let working = Some(TaskState::Working);
    check(query(None, None, None, None), &["t6", "t8", "t7", "t5", "t4", "t3", "t2", "t1"]).await;
    check(query(Some("ann"), None, None, None), &["t7", "t4", "t2", "t1"]).await;
    check(query(Some("nobody"), None, None, None), &[]).await;
    check(query(Some("*"), None, None, None), &["t6"]).await;
    check(query(None, Some("c2"), None, None), &["t8", "t3"]).await;
    check(query(None, None, Some(TaskState::Failed), None), &["t4"]).await;
    check(query(None, None, Some(TaskState::Canceled), None), &[]).await;
    check(query(None, None, None, Some(30)), &["t6", "t8", "t7", "t5", "t4", "t3"]).await;
    check(query(Some("ben"), Some("c1"), None, None), &["t5", "t4", "t2"]).await;
    check(query(Some("ben"), Some("c1"), working, Some(20)), &["t5", "t2"]).await;
    check(query(Some("ben"), None, working, Some(30)), &["t8", "t5", "t3"]).await;
}

/// A task moves with its record: state, time, context and participants.
pub async fn listings_follow_the_record(home: &dyn StoreHome) {
    let store = home.open().await;
    let visible_to = |who: &str| TaskQuery { visible_to: Some(who.into()), ..everything(9) };
    let in_context = |id: &str| TaskQuery { context_id: Some(id.into()), ..everything(9) };
    commit(&*store, vec![put_task(record("t", "c1", TaskState::Working, 10, &["ann", "ben"]))]).await;
    commit(&*store, vec![put_task(record("u", "c1", TaskState::Working, 20, &["ann"]))]).await;
    assert_eq!(ids(&store.tasks(visible_to("ann")).await.unwrap()), ["u", "t"]);
    commit(&*store, vec![put_task(record("t", "c1", TaskState::Working, 25, &["ann", "ben"]))]).await;
    assert_eq!(ids(&store.tasks(visible_to("ann")).await.unwrap()), ["t", "u"]);
    commit(&*store, vec![put_task(record("t", "c1", TaskState::Failed, 30, &["ann", "eve"]))]).await;
    assert_eq!(ids(&store.tasks(visible_to("ann")).await.unwrap()), ["t", "u"]);
    assert_eq!(ids(&store.tasks(visible_to("eve")).await.unwrap()), ["t"]);
    assert!(store.tasks(visible_to("ben")).await.unwrap().tasks.is_empty());
    let mut renamed = record("t", "c2", TaskState::Failed, 30, &["eve"]);
    renamed.extension.name = "renamed".to_owned();
    commit(&*store, vec![put_task(renamed)]).await;
    assert_eq!(ids(&store.tasks(visible_to("ann")).await.unwrap()), ["u"]);
    assert_eq!(ids(&store.tasks(in_context("c1")).await.unwrap()), ["u"]);
    let moved = store.tasks(in_context("c2")).await.unwrap();
    assert_eq!((ids(&moved), moved.tasks[0].record.extension.name.as_str()), (vec!["t"], "renamed"));
    assert_eq!(store.tasks(everything(9)).await.unwrap().total, 2);
}

/// Tasks that are added or change while somebody pages do not shift what comes after the cursor.
pub async fn a_cursor_is_stable_when_tasks_are_added(home: &dyn StoreHome) {
    let store = home.open().await;
    for n in 0..10 {
        commit(&*store, vec![put_task(record(&format!("t{n}"), "c", TaskState::Working, n, &[]))]).await;
    }
    let mut query = everything(4);
    let first = store.tasks(query.clone()).await.unwrap();
    assert_eq!(ids(&first), ["t9", "t8", "t7", "t6"]);
    assert_eq!(first.next, Some(TaskCursor { status_at: at(6), task_id: "t6".into() }));
    commit(&*store, vec![put_task(record("newer", "c", TaskState::Working, 100, &[]))]).await;
    commit(&*store, vec![put_task(record("t8", "c", TaskState::Completed, 101, &[]))]).await;
    commit(&*store, vec![put_task(record("t6", "c", TaskState::Completed, 102, &[]))]).await;
    query.after = first.next;
    let second = store.tasks(query.clone()).await.unwrap();
    assert_eq!(ids(&second), ["t5", "t4", "t3", "t2"]);
    assert_eq!(second.total, 11, "the total does not depend on the cursor");
    query.after = second.next;
    assert_eq!(ids(&store.tasks(query).await.unwrap()), ["t1", "t0"]);
}

/// The total is exact up to 10,000 and stays there.
pub async fn listings_count_up_to_a_limit(home: &dyn StoreHome) {
    const TASKS: usize = 10_050;
    let store = home.open().await;
    for chunk in (0..TASKS).collect::<Vec<_>>().chunks(2_000) {
        let writes = chunk.iter().map(|n| {
            let state = if n % 2 == 0 { TaskState::Working } else { TaskState::Completed };
            put_task(record(&format!("t{n:05}"), "c", state, 7, &["ann"]))
        });
        commit(&*store, writes.collect()).await;
    }
    let page = store.tasks(everything(50)).await.unwrap();
    assert_eq!((page.tasks.len(), page.total), (50, 10_000));
    let working =
        TaskQuery { visible_to: Some("ann".into()), state: Some(TaskState::Working), ..everything(50) };
    assert_eq!(store.tasks(working).await.unwrap().total, 5_025);
}
