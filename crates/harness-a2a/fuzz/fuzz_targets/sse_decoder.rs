//! Any bytes as an event stream, in whatever chunks.
#![no_main]

#[path = "../../src/client/sse_decoder.rs"]
mod sse_decoder;
#[path = "../../tests/it/untrusted_stream.rs"]
mod untrusted_stream;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| untrusted_stream::check(bytes));
