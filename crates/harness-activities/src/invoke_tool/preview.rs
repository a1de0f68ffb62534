//! What the model sees of a text that is too large for it: what is missing and how to get it, the head, the tail. Pure.

use std::ops::Range;

use harness_model::limits;

/// Bytes for the words around head and tail.
const WORDS_BYTES: usize = 512;
/// Bytes of head and tail together.
const SHOWN_BYTES: usize = limits::TOOL_RESULT_PREVIEW_BYTES - WORDS_BYTES;
/// Of these, bytes of the tail; beginnings tell more than ends.
const TAIL_BYTES: usize = SHOWN_BYTES / 4;

/// A preview of at most `limits::TOOL_RESULT_PREVIEW_BYTES` bytes.
pub(super) fn of(text: &str, lines: u64, handle: &str) -> String {
    if text.len() <= SHOWN_BYTES {
        return format!("[Kept as {handle}, {} bytes; all of it follows.]\n{text}", text.len());
    }
    let (head, tail) = (head(text, SHOWN_BYTES - TAIL_BYTES), tail(text, TAIL_BYTES));
    let left_out = tail.start - head.end;
    format!(
        "[Too large to show whole: {total} bytes, {lines} lines, kept as {handle}. Left out below: {left_out} bytes, from \
         byte {from} to byte {to}. Read on with read_result {{\"handle\":\"{handle}\",\"offset\":{from}}} or find a text \
         with read_result {{\"handle\":\"{handle}\",\"search\":\"...\"}}.]\n{head}\n[... {left_out} bytes left out ...]\n{tail}",
        total = text.len(),
        from = head.end,
        to = tail.start,
        head = &text[head.clone()],
        tail = &text[tail.clone()],
    )
}

/// Lines of a text; an unfinished last one counts.
pub(super) fn lines(text: &str) -> u64 {
    text.lines().count() as u64
}

/// The beginning: whole lines when the last whole one ends in the second half of the room.
fn head(text: &str, room: usize) -> Range<usize> {
    let end = text.floor_char_boundary(room);
    match text[..end].rfind('\n') {
        Some(newline) if newline >= room / 2 => 0..newline + 1,
        Some(_) | None => 0..end,
    }
}

/// The end: whole lines when the first whole one begins in the first half of the room.
fn tail(text: &str, room: usize) -> Range<usize> {
    let start = text.ceil_char_boundary(text.len() - room);
    match text[start..].find('\n') {
        Some(newline) if newline < room / 2 && start + newline + 1 < text.len() => {
            start + newline + 1..text.len()
        }
        Some(_) | None => start..text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preview(text: &str) -> String {
        let preview = of(text, lines(text), "r0123456789");
        assert!(preview.len() <= limits::TOOL_RESULT_PREVIEW_BYTES, "{}", preview.len());
        preview
    }

    #[test]
    fn whole_lines_where_there_are_lines() {
        let text: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
        let preview = preview(&text);
        let mut lines = preview.lines();
        let first = lines.next().unwrap();
        assert!(
            first.contains(&format!("{} bytes, 20000 lines, kept as r0123456789", text.len())),
            "{first}"
        );
        assert_eq!(lines.next(), Some("line 0"));
        assert!(lines.all(|line| line.starts_with("[... ") || line.is_empty() || line.starts_with("line ")));
        assert!(preview.ends_with("line 19999\n"));
    }

    #[test]
    fn one_long_line_is_cut_between_characters() {
        let text = "ü€😀".repeat(40_000);
        let preview = preview(&text);
        assert!(preview.contains("bytes left out"));
        assert!(preview.ends_with('😀'));
    }

    #[test]
    fn what_is_left_out_is_what_is_not_shown() {
        let text = "x".repeat(300_000);
        let preview = preview(&text);
        let from: usize =
            preview.split("\"offset\":").nth(1).unwrap().split('}').next().unwrap().parse().unwrap();
        let to: usize = preview.split("to byte ").nth(1).unwrap().split('.').next().unwrap().parse().unwrap();
        let shown = preview.lines().skip(1).filter(|line| line.starts_with('x')).map(str::len).sum::<usize>();
        assert_eq!(shown, text.len() - (to - from));
    }

    #[test]
    fn numbers_of_any_size_fit() {
        let text = "y".repeat(limits::TOOL_RESULT_BYTES_MAX);
        let preview = of(&text, u64::MAX, "r0123456789");
        assert!(preview.len() <= limits::TOOL_RESULT_PREVIEW_BYTES);
    }
}
