//! The decoders of all wires with the seeds of the fuzz targets, changed in many ways, and with streams that are made to
//! cost memory.

use std::{fs, path::Path};

use harness_providers::{Api, CapturedResponse};

const APIS: [(&str, Api); 3] = [
    ("chat_completions", Api::ChatCompletions),
    ("responses", Api::Responses { encrypted_reasoning: true }),
    ("messages", Api::Messages),
];
const FORMS: [&str; 2] = ["text/event-stream", "application/json"];
/// Changed forms of each seed; the fuzz targets try many more.
const MUTANTS: u64 = 200;
const MIB: usize = 1 << 20;

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Reads a body in both forms; a panic is what these tests look for.
fn read(api: Api, body: &[u8]) -> usize {
    let answers = FORMS.map(|form| CapturedResponse::ok(form, body).read(api));
    answers.iter().filter(|answer| answer.is_ok()).count()
}

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap()
    }
}

/// A seed with some bytes changed, removed, repeated, or mixed with those of another one.
fn mutant(seed: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    const PIECES: [&[u8]; 10] =
        [b"null", b"[]", b"{}", b"-1", b"1e400", b"\"", b"\n\n", b"\\u0000", b"\xff", b"data: "];
    let mut bytes = seed.to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len());
        let end = (at + numbers.below(60)).min(bytes.len());
        match numbers.below(5) {
            0 if at < bytes.len() => bytes[at] ^= 1 << numbers.below(8),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            3 => drop(bytes.splice(at..end, PIECES[numbers.below(PIECES.len())].iter().copied())),
            _ => {
                let from = numbers.below(other.len());
                let to = (from + numbers.below(200)).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
        }
    }
    bytes
}

#[test]
fn seeds_are_answers_and_their_mutants_end_well() {
    for (target, api) in APIS {
        let seeds = seeds(target);
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
        let (mut understood, mut answers) = (0, 0);
        for (at, seed) in seeds.iter().enumerate() {
            understood += usize::from(read(api, seed) > 0);
            for _ in 0..MUTANTS {
                let other = &seeds[(at + 1 + numbers.below(seeds.len())) % seeds.len()];
                answers += read(api, &mutant(seed, other, &mut numbers));
            }
        }
        // All but the errors among the seeds, and many of the mutants: these tests reach the decoders.
        assert!(
            understood >= seeds.len() - 4 && understood >= 5,
            "{target}: {understood} of {}",
            seeds.len()
        );
        assert!(answers > seeds.len() * 20, "{target}: {answers}");
    }
}

#[test]
fn captures_are_read_without_a_server() {
    let capture = include_bytes!("captures/llamacpp-messages-tool-stream_true.http");
    let output = CapturedResponse::parse(capture).unwrap().read(Api::Messages).unwrap();
    assert_eq!(output.calls[0].arguments, r#"{"city": "Paris"}"#);
    let overflow = include_bytes!("captures/llamacpp-ctx-overflow.http");
    let error = CapturedResponse::parse(overflow).unwrap().read(Api::ChatCompletions).unwrap_err();
    assert_eq!((error.kind, error.status), (harness_ports::ModelErrorKind::ContextOverflow, Some(400)));
    for nonsense in
        ["", "GET / HTTP/1.1\n\n", "HTTP/1.1\n\n", "HTTP/1.1 200 OK\nno header\n\n", "HTTP/1.1 200 OK"]
    {
        assert!(CapturedResponse::parse(nonsense.as_bytes()).is_none(), "{nonsense}");
    }
}

/// A body that is made to cost many times its size.
struct Hostile {
    what: &'static str,
    /// Repeated with rising numbers in the place of `#` up to a size.
    piece: &'static str,
    size: usize,
    /// Around the pieces.
    frame: [&'static str; 2],
}

impl Hostile {
    fn body(&self) -> Vec<u8> {
        let [begin, end] = self.frame;
        let mut body = begin.as_bytes().to_vec();
        if self.piece.contains('#') {
            for number in 0..self.size / self.piece.len() {
                body.extend_from_slice(self.piece.replace('#', &number.to_string()).as_bytes());
            }
        } else {
            body.extend_from_slice(self.piece.repeat(self.size / self.piece.len()).as_bytes());
        }
        body.extend_from_slice(end.as_bytes());
        body
    }
}

/// What is hostile whatever the wire.
const ANYWHERE: [Hostile; 4] = [
    Hostile { what: "a list of numbers", piece: "1,", size: 3 * MIB, frame: ["{\"content\":[", "1]}"] },
    Hostile {
        what: "an event of lists",
        piece: "[],",
        size: 3 * MIB,
        frame: ["data: {\"delta\":[", "1]}\n\n"],
    },
    Hostile { what: "nesting", piece: "[", size: 3 * MIB, frame: ["", ""] },
    Hostile { what: "no end of a line", piece: "xxxxxxxxxxxxxxxx", size: 5 * MIB, frame: ["data: ", ""] },
];
const ON_CHAT: [Hostile; 4] = [
    Hostile {
        what: "ever new fields",
        piece: "data: {\"choices\":[{\"delta\":{\"k#\":[{},{},{},{},{},{}]}}]}\n\n",
        size: 4 * MIB,
        frame: ["", ""],
    },
    Hostile {
        what: "a list that grows",
        piece: "data: {\"choices\":[{\"delta\":{\"k\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}}]}\n\n",
        size: 4 * MIB,
        frame: ["", ""],
    },
    Hostile {
        what: "ever new fields of a call",
        piece: "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"k#\":{\"a\":[]}}]}}]}\n\n",
        size: 4 * MIB,
        frame: ["", ""],
    },
    Hostile {
        what: "ever new calls",
        piece: "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":#,\"id\":\"#\"}]}}]}\n\n",
        size: 4 * MIB,
        frame: ["", ""],
    },
];
const ON_RESPONSES: [Hostile; 3] = [
    Hostile {
        what: "ever new items",
        piece: "data: {\"type\":\"response.output_item.done\",\"output_index\":#,\"item\":{\"id\":\"#\"}}\n\n",
        size: 4 * MIB,
        frame: ["", ""],
    },
    Hostile {
        what: "arguments without end",
        piece: "data: {\"type\":\"response.function_call_arguments.delta\",\"item_id\":\"a\",\"delta\":\"xxxxxxxxxxxxxxxx\"}\n\n",
        size: 4 * MIB,
        frame: ["", ""],
    },
    Hostile {
        what: "text without end",
        piece: "data: {\"type\":\"response.output_text.delta\",\"delta\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}\n\n",
        size: 3 * MIB,
        frame: ["", "data: {\"type\":\"response.completed\"}\n\n"],
    },
];
const ON_MESSAGES: [Hostile; 3] = [
    Hostile {
        what: "citations without end",
        piece: "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"citations_delta\",\"text\":\"\",\"citation\":{\"a\":[[],[],[]]}}}\n\n",
        size: 4 * MIB,
        frame: ["", ""],
    },
    Hostile {
        what: "ever new fields of a block",
        piece: "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"k#\":\"\",\"text\":\"\"}}\n\n",
        size: 4 * MIB,
        frame: ["", ""],
    },
    Hostile {
        what: "ever new blocks",
        piece: "data: {\"type\":\"content_block_start\",\"index\":#,\"content_block\":{\"type\":\"text\"}}\n\n",
        size: 4 * MIB,
        frame: ["", ""],
    },
];

#[test]
fn hostile_streams_cost_little_on_chat_completions() {
    check_hostile(Api::ChatCompletions, &ON_CHAT);
}

#[test]
fn hostile_streams_cost_little_on_responses() {
    check_hostile(Api::Responses { encrypted_reasoning: true }, &ON_RESPONSES);
}

#[test]
fn hostile_streams_cost_little_on_messages() {
    check_hostile(Api::Messages, &ON_MESSAGES);
}

/// Reads hostile bodies, and where the system tells, holds the memory that this takes to its bound.
fn check_hostile(api: Api, here: &[Hostile]) {
    /// A whole body is held once more, and 200,000 values take up to 20 MiB.
    const GROWTH_MAX: usize = 40 * MIB;
    let anywhere = ANYWHERE.iter().flat_map(|hostile| FORMS.map(|form| (hostile, form)));
    for (hostile, form) in anywhere.chain(here.iter().map(|hostile| (hostile, FORMS[0]))) {
        let response = CapturedResponse::ok(form, hostile.body());
        let before = memory(Memory::Reset);
        let _outcome = response.read(api);
        let growth = memory(Memory::Peak).saturating_sub(before);
        assert!(growth <= GROWTH_MAX, "{} on {}: {} MiB", hostile.what, api.name(), growth / MIB);
    }
}

enum Memory {
    /// Forget the peak and say what is used now.
    Reset,
    /// The peak since then.
    Peak,
}

/// Memory of this process in bytes; 0 where the system does not tell.
fn memory(what: Memory) -> usize {
    let line_start = match what {
        Memory::Reset => {
            let _reset = fs::write("/proc/self/clear_refs", "5").is_ok();
            "VmRSS:"
        }
        Memory::Peak => "VmHWM:",
    };
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(line_start)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).unwrap_or(0) * 1_024
}
