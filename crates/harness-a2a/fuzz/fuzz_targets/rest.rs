//! Any bytes as a request of the HTTP+JSON binding: its first line and its body.
#![no_main]
#![expect(dead_code, reason = "the drivers are shared with tests that use all of them")]

#[path = "../../tests/it/fake_engine.rs"]
mod fake_engine;
#[path = "../../tests/it/untrusted.rs"]
mod untrusted;

use std::cell::RefCell;

thread_local! {
    static SERVER: RefCell<untrusted::Requests> = RefCell::new(untrusted::Requests::new());
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| SERVER.with_borrow_mut(|server| server.rest(bytes)));
