//! `read_result`: a slice of a kept result, or the places in it where a text occurs.

use harness_model::{CodedError, TaskId, clean_field, codes, limits};
use harness_ports::{ActivityFailure, Store};
use serde_json::{Map, Value};

use super::{Reply, argument, kept::KeptResult};
use crate::blocks;

/// Bytes of a line up to which a match shows the whole of it.
const WHOLE_LINE_BYTES: usize = 400;
/// Bytes on each side of a match in a longer line.
const AROUND_BYTES: usize = 160;
/// Places that one search returns.
const PLACES_MAX: usize = 100;
/// Bytes left for the words above the content.
const WORDS_BYTES: usize = 256;
/// Bytes of content that one call returns.
const CONTENT_BYTES_MAX: usize = limits::READ_RESULT_BYTES_MAX;

pub(super) async fn run(
    store: &dyn Store,
    task_id: &TaskId,
    arguments: &Map<String, Value>,
) -> Result<Reply, ActivityFailure> {
    let handle = argument(arguments, "handle");
    let Some(kept) = KeptResult::find(store, task_id, handle).await? else {
        let handle = clean_field(handle, Some(64)).text;
        let text = format!("this task has no kept result {handle:?}; use the handle of a preview");
        return Ok(Reply::error(&CodedError::new(codes::RESULT_UNKNOWN, text)));
    };
    let text = blocks::text(store, &kept.text).await?;
    let number = |key: &str| arguments.get(key).and_then(Value::as_u64).map(saturated);
    let offset = number("offset").unwrap_or(0);
    if offset > text.len() || (offset == text.len() && offset > 0) {
        let reason = format!("offset {offset} is behind the end: {} has {} bytes", kept.handle, text.len());
        return Ok(Reply::error(&CodedError::new(codes::TOOL_INVALID_ARGUMENTS, reason)));
    }
    let start = text.floor_char_boundary(offset);
    let found = match argument(arguments, "search") {
        "" => slice(&text, start, number("length").unwrap_or(CONTENT_BYTES_MAX)),
        wanted => search(&text, start, wanted),
    };
    Ok(Reply::text(found))
}

fn saturated(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The bytes from `start` on, whole characters, and where to go on.
fn slice(text: &str, start: usize, length: usize) -> String {
    let wanted = start.saturating_add(length.clamp(1, CONTENT_BYTES_MAX)).min(text.len());
    let mut end = text.floor_char_boundary(wanted);
    if end == start {
        // Less than one character was asked for; none at all would never come to an end.
        end = text.ceil_char_boundary(wanted);
    }
    let next = if end < text.len() { format!("next offset {end}") } else { "this is the end".to_owned() };
    format!("[bytes {start} to {end} of {}; {next}]\n{}", text.len(), &text[start..end])
}

/// The places from `start` on where `wanted` occurs, upper and lower case alike, and where to go on.
fn search(text: &str, start: usize, wanted: &str) -> String {
    // Lower-casing ASCII alone leaves every offset as it is.
    let (haystack, needle) = (text.to_ascii_lowercase(), wanted.to_ascii_lowercase());
    let mut found =
        Found { text, lines_before: 0, counted_to: 0, shown_to: start, places: String::new(), count: 0 };
    let mut next = None;
    for (at, matched) in haystack.get(start..).unwrap_or_default().match_indices(&needle) {
        let at = start + at;
        if at < found.shown_to && found.count > 0 {
            continue;
        }
        if !found.show(at, matched.len()) {
            next = Some(at);
            break;
        }
    }
    let shown_wanted = clean_field(wanted, Some(80)).text;
    let end = match next {
        Some(at) => format!("there are more; go on with offset {at}"),
        None => "there are no more".to_owned(),
    };
    format!("[{} places with \"{shown_wanted}\" from byte {start} on; {end}]\n{}", found.count, found.places)
}

/// The places found so far.
struct Found<'a> {
    text: &'a str,
    lines_before: usize,
    counted_to: usize,
    /// End of what the last place shows; matches before it are seen already.
    shown_to: usize,
    places: String,
    count: usize,
}

impl Found<'_> {
    /// Adds the place of a match; `false` when there is no room for it.
    fn show(&mut self, at: usize, matched: usize) -> bool {
        self.lines_before += self.text[self.counted_to..at].bytes().filter(|byte| *byte == b'\n').count();
        self.counted_to = at;
        let line_start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = self.text[at..].find('\n').map_or(self.text.len(), |newline| at + newline);
        let whole = line_end - line_start <= WHOLE_LINE_BYTES;
        let (from, to) = if whole {
            (line_start, line_end)
        } else {
            let from = self.text.floor_char_boundary(at.saturating_sub(AROUND_BYTES)).max(line_start);
            let to = self.text.ceil_char_boundary((at + matched + AROUND_BYTES).min(line_end));
            (from, to)
        };
        let (before, after) = (dots(from > line_start), dots(to < line_end));
        let shown = &self.text[from..to];
        let place = format!("line {}, byte {at}: {before}{shown}{after}\n", self.lines_before + 1);
        if self.count == PLACES_MAX || self.places.len() + place.len() > CONTENT_BYTES_MAX - WORDS_BYTES {
            return false;
        }
        self.places.push_str(&place);
        self.shown_to = to;
        self.count += 1;
        true
    }
}

fn dots(cut: bool) -> &'static str {
    if cut { "…" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_follow_one_another_without_a_gap() {
        let text = "ü€😀 and so on\n".repeat(9_000);
        let (mut read, mut at) = (String::new(), 0);
        loop {
            let answer = slice(&text, at, usize::MAX);
            let (words, content) = answer.split_once('\n').unwrap();
            assert!(content.len() <= CONTENT_BYTES_MAX);
            read.push_str(content);
            match words.split("next offset ").nth(1) {
                Some(next) => at = next.trim_end_matches(']').parse().unwrap(),
                None => break,
            }
        }
        assert_eq!(read, text);
    }

    #[test]
    fn a_slice_is_never_empty() {
        assert_eq!(slice("😀b", 0, 1), "[bytes 0 to 4 of 5; next offset 4]\n😀");
    }

    #[test]
    fn matches_say_line_and_byte() {
        let text = "alpha\nBeta alpha\ngamma\nALPHA beta";
        assert_eq!(
            search(text, 0, "alpha"),
            "[3 places with \"alpha\" from byte 0 on; there are no more]\nline 1, byte 0: alpha\n\
             line 2, byte 11: Beta alpha\nline 4, byte 23: ALPHA beta\n"
        );
        assert!(search(text, 12, "alpha").starts_with("[1 places"));
        assert!(search(text, 0, "delta").starts_with("[0 places"));
    }

    #[test]
    fn one_long_line_shows_what_is_around() {
        let text = format!("{}needle{}needle{}", "ü".repeat(50_000), "x".repeat(90_000), "ü".repeat(50_000));
        let answer = search(&text, 0, "needle");
        assert!(answer.starts_with("[2 places"), "{answer}");
        assert!(answer.contains("byte 100000: …ü"), "{answer}");
        assert!(answer.len() < 2_000);
    }

    #[test]
    fn searches_are_bounded_and_go_on() {
        let text = "a needle in every line of a text\n".repeat(10_000);
        let (mut at, mut seen, mut rounds) = (0, 0, 0);
        loop {
            let answer = search(&text, at, "needle");
            assert!(answer.len() <= CONTENT_BYTES_MAX);
            seen += answer.lines().count() - 1;
            rounds += 1;
            match answer.lines().next().unwrap().split("offset ").nth(1) {
                Some(next) => at = next.trim_end_matches(']').parse().unwrap(),
                None => break,
            }
        }
        assert_eq!((seen, rounds), (10_000, 100));
    }
}
