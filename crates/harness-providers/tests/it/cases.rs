//! The adverse cases: what servers do that no reference mentions. Each has a number and runs on every wire on which it
//! can happen, streamed and whole, against a server that checks every request.

mod errors;
mod finishes;
mod replayed;
mod streams;
mod tool_calls;

use std::panic::Location;

use futures::future::BoxFuture;

use crate::{
    fake_server::{FakeServer, Reply},
    outcome::{describe, provider_on, request, run},
    wires::{ALL, Wire},
};

/// One case.
struct Case {
    number: u8,
    what: &'static str,
    wires: &'static [Wire],
    run: fn(Wire) -> BoxFuture<'static, ()>,
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> =
        [streams::CASES, tool_calls::CASES, errors::CASES, finishes::CASES, replayed::CASES]
            .into_iter()
            .flat_map(|cases| {
                cases.iter().map(|(number, what, wires, run)| Case {
                    number: *number,
                    what,
                    wires,
                    run: *run,
                })
            })
            .collect();
    cases.sort_by_key(|case| case.number);
    cases
}

/// A row of a table of cases.
type Row = (u8, &'static str, &'static [Wire], fn(Wire) -> BoxFuture<'static, ()>);

#[expect(clippy::print_stdout, reason = "a failing run says which case it was")]
async fn run_all(wire: Wire) {
    for case in cases().iter().filter(|case| case.wires.contains(&wire)) {
        println!("case {}: {}", case.number, case.what);
        (case.run)(wire).await;
    }
}

#[tokio::test]
async fn on_chat_completions() {
    run_all(Wire::Chat).await;
}

#[tokio::test]
async fn on_responses() {
    run_all(Wire::Responses).await;
}

#[tokio::test]
async fn on_messages() {
    run_all(Wire::Messages).await;
}

#[test]
fn no_case_is_missing() {
    let numbers: Vec<u8> = cases().iter().map(|case| case.number).collect();
    assert_eq!(numbers, (1..=33).collect::<Vec<u8>>());
    assert!(cases().iter().all(|case| !case.wires.is_empty()));
    assert_eq!(ALL.len(), 3);
}

/// What the provider makes of a reply, whichever form it asked for.
#[track_caller]
fn check(wire: Wire, reply: &Reply, expected: &str) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        for stream in [true, false] {
            let server = FakeServer::start(reply.clone()).await;
            let outcome = run(&provider_on(wire, &server.base_url, stream), request()).await;
            assert_eq!(describe(&outcome), expected, "at {caller}, {wire:?}, stream: {stream}\n{outcome:?}");
            assert_eq!(server.requests().len(), 1, "nothing is retried inside");
        }
    }
}

/// The same for several replies that mean the same.
#[track_caller]
fn check_all(wire: Wire, replies: &[Reply], expected: &str) -> impl Future<Output = ()> {
    let caller = Location::caller();
    let checks: Vec<_> = replies.iter().map(|reply| check(wire, reply, expected)).collect();
    async move {
        assert!(!checks.is_empty(), "at {caller}");
        for check in checks {
            check.await;
        }
    }
}
