//! The seeds of the fuzz targets and mutations of them. The numbers come from a fixed beginning: a failure comes again.

use std::{fs, path::Path};

use crate::{untrusted::Requests, untrusted_stream};

/// Mutations of each seed.
const MUTATIONS: usize = 150;
/// Pieces that are worth putting anywhere.
const TOKENS: [&[u8]; 16] = [
    b"null",
    b"-1",
    b"1e999",
    b"\"\"",
    b"{}",
    b"[]",
    b"[[[[[[[[",
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"\r\n\r\n",
    b"\n",
    b"data: ",
    b"%00",
    b"/",
    b"99999999999999999999",
];

/// Numbers by xorshift.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap()
    }
}

/// The seeds of a target, in order.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// A few changes: bytes flipped, cut out, doubled, put in, or taken from another seed.
fn mutated(seed: &[u8], others: &[Vec<u8>], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=numbers.below(3) {
        let (from, to) = (numbers.below(bytes.len() + 1), numbers.below(bytes.len() + 1));
        let (from, to) = (from.min(to), from.max(to));
        let new = match numbers.below(5) {
            0 => bytes[from..to].iter().map(|byte| byte ^ (1 << (from % 8))).collect(),
            1 => Vec::new(),
            2 => bytes[from..to].repeat(2),
            3 => TOKENS[numbers.below(TOKENS.len())].to_vec(),
            _ => {
                let other = &others[numbers.below(others.len())];
                other[numbers.below(other.len() + 1)..].to_vec()
            }
        };
        // Most of what is changed is small, so that the rest still means something.
        let to = if numbers.below(4) == 0 { to } else { to.min(from + 8) };
        bytes.splice(from..to, new);
    }
    bytes
}

fn run(target: &str, mut check: impl FnMut(&[u8])) {
    let seeds = seeds(target);
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for seed in &seeds {
        check(seed);
        for _ in 0..MUTATIONS {
            check(&mutated(seed, &seeds, &mut numbers));
        }
    }
}

#[test]
fn any_json_rpc_request_is_answered() {
    let mut server = Requests::new();
    run("json_rpc", |bytes| server.json_rpc(bytes));
}

#[test]
fn any_rest_request_is_answered() {
    let mut server = Requests::new();
    run("rest", |bytes| server.rest(bytes));
}

#[test]
fn any_stream_is_decoded_the_same_in_any_chunks() {
    run("sse_decoder", untrusted_stream::check);
}
