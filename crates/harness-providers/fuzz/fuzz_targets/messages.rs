//! Any bytes as the answer of a server that speaks Messages, streamed and whole.

#![no_main]

use harness_providers::{Api, CapturedResponse};

libfuzzer_sys::fuzz_target!(|body: &[u8]| {
    for media_type in ["text/event-stream", "application/json"] {
        let _answer = CapturedResponse::ok(media_type, body).read(Api::Messages);
    }
});
