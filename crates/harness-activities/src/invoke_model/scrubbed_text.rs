//! The text of an answer while it grows: what of it may be shown, and what the log holds already. Pure.

use harness_model::Redactor;

/// Text that is kept raw before the beginning of it is scrubbed for good. Unit: bytes.
const WINDOW_BYTES: usize = 8_192;

/// What the log holds of an artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Logged {
    /// Whether there is anything of it.
    pub(super) begun: bool,
    /// Its text, scrubbed.
    pub(super) text: String,
}

/// An addition to the artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Whether it continues what is there, or starts anew.
    pub(super) append: bool,
    /// The text, scrubbed.
    pub(super) text: String,
}

/// What is left to show once the whole text is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rest {
    /// Whether the log holds the beginning of the text.
    pub(super) streamed: bool,
    /// What comes after that beginning.
    pub(super) tail: String,
}

/// The text of an answer, delta by delta.
///
/// Chunks end where deltas end. A delta whose end might be the beginning of a secret waits for the next one.
#[derive(Debug)]
pub(super) struct ScrubbedText<'a> {
    redactor: &'a Redactor,
    /// Text up to `raw`, scrubbed for good.
    clean: String,
    raw: String,
    /// Ends of deltas within `raw` that no chunk has reached.
    ends: Vec<usize>,
    logged: Logged,
}

impl<'a> ScrubbedText<'a> {
    /// A text of which the log may hold a beginning already, from an earlier try.
    pub(super) fn new(redactor: &'a Redactor, logged: Logged) -> Self {
        Self { redactor, clean: String::new(), raw: String::new(), ends: Vec::new(), logged }
    }

    /// Whether the log holds anything.
    pub(super) fn is_begun(&self) -> bool {
        self.logged.begun
    }

    /// Adds a delta.
    pub(super) fn push(&mut self, delta: &str) {
        self.raw.push_str(delta);
        self.ends.push(self.raw.len());
    }

    /// What may be shown now; `None` when nothing new may be.
    pub(super) fn next_chunk(&mut self) -> Option<Chunk> {
        let settled = self.redactor.settled(&self.raw);
        let ready = self.ends.partition_point(|end| *end <= settled);
        let end = self.ends.drain(..ready).next_back()?;
        let shown = format!("{}{}", self.clean, self.redactor.text(&self.raw[..end]));
        self.forget(end);
        self.addition(&shown)
    }

    /// Notes that a chunk is in the log.
    pub(super) fn committed(&mut self, chunk: Chunk) {
        self.logged.begun = true;
        if chunk.append {
            self.logged.text.push_str(&chunk.text);
        } else {
            self.logged.text = chunk.text;
        }
    }

    /// Compares the whole text, scrubbed, with what the log holds.
    pub(super) fn finish(self, whole: &str) -> Rest {
        match whole.strip_prefix(self.logged.text.as_str()) {
            Some(tail) if self.logged.begun => Rest { streamed: true, tail: tail.to_owned() },
            Some(_) | None => Rest { streamed: false, tail: whole.to_owned() },
        }
    }

    /// What leads from the log to `shown`: nothing while a repeated text has not passed what is there; a new start when
    /// it is another text.
    fn addition(&self, shown: &str) -> Option<Chunk> {
        let append = self.logged.begun;
        match shown.strip_prefix(self.logged.text.as_str()) {
            Some("") => None,
            Some(text) => Some(Chunk { append, text: text.to_owned() }),
            None if self.logged.text.starts_with(shown) => None,
            None => Some(Chunk { append: false, text: shown.to_owned() }),
        }
    }

    /// Scrubs older lines for good, so that a long text is not scrubbed from its start with every delta.
    fn forget(&mut self, end: usize) {
        if end < WINDOW_BYTES {
            return;
        }
        let half = self.raw.floor_char_boundary(end / 2);
        let Some(newline) = self.raw[..half].rfind('\n') else { return };
        let (older, newer) = self.raw[..end].split_at(newline + 1);
        let scrubbed = self.redactor.text(older);
        // A secret may reach across lines: then the cut would show halves of it.
        let apart = format!("{scrubbed}{}", self.redactor.text(newer));
        if apart == self.redactor.text(&self.raw[..end]) {
            self.clean.push_str(&scrubbed);
            self.raw.drain(..=newline);
            self.ends.iter_mut().for_each(|end| *end -= newline + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use harness_model::Secret;

    use super::*;

    fn redactor() -> Redactor {
        Redactor::new([Secret::new("hunter22"), Secret::new("two\nlines")])
    }

    /// Pushes the deltas one at a time, commits what comes, and returns the chunks and the rest.
    fn run(logged: &str, deltas: &[&str]) -> (Vec<String>, Rest) {
        let redactor = redactor();
        let logged = Logged { begun: !logged.is_empty(), text: logged.to_owned() };
        let mut text = ScrubbedText::new(&redactor, logged);
        let mut chunks = Vec::new();
        for delta in deltas {
            text.push(delta);
            if let Some(chunk) = text.next_chunk() {
                chunks.push(format!("{}{}", if chunk.append { "+" } else { "=" }, chunk.text));
                text.committed(chunk);
            }
        }
        let rest = text.finish(&redactor.text(&deltas.concat()));
        (chunks, rest)
    }

    fn rest(streamed: bool, tail: &str) -> Rest {
        Rest { streamed, tail: tail.to_owned() }
    }

    #[test]
    fn chunks_end_where_deltas_end() {
        let (chunks, left) = run("", &["One ", "two ", "three."]);
        assert_eq!(chunks, ["=One ", "+two ", "+three."]);
        assert_eq!(left, rest(true, ""));
    }

    #[test]
    fn a_secret_across_deltas_is_never_shown() {
        let (chunks, left) = run("", &["it is hun", "ter", "22 and ", "password: abc", "defghi ok"]);
        assert_eq!(chunks, ["=it is [REDACTED] and ", "+password: [REDACTED] ok"]);
        assert_eq!(left, rest(true, ""));
    }

    #[test]
    fn a_repeated_text_goes_on_after_what_is_there() {
        let (chunks, left) = run("One two ", &["One ", "two ", "three ", "four"]);
        assert_eq!(chunks, ["+three ", "+four"]);
        assert_eq!(left, rest(true, ""));
        assert_eq!(run("One tw", &["One ", "two "]).0, ["+o "]);
    }

    #[test]
    fn another_text_starts_anew() {
        let (chunks, left) = run("One two ", &["One ", "three "]);
        assert_eq!(chunks, ["=One three "]);
        assert_eq!(left, rest(true, ""));
        assert_eq!(run("One two three", &["One "]), (Vec::new(), rest(false, "One ")));
    }

    #[test]
    fn nothing_streamed_leaves_the_whole_text() {
        assert_eq!(run("", &[]).1, rest(false, ""));
        let redactor = redactor();
        let text = ScrubbedText::new(&redactor, Logged::default());
        assert_eq!(text.finish("all"), rest(false, "all"));
    }

    #[test]
    fn long_texts_are_scrubbed_for_good_without_a_seam() {
        let line = "an ordinary line with hunter22 in it and two\nlines\n";
        let deltas: Vec<&str> = std::iter::repeat_n(line, 400).collect();
        let redactor = redactor();
        let mut text = ScrubbedText::new(&redactor, Logged::default());
        for delta in &deltas {
            text.push(delta);
            let chunk = text.next_chunk().unwrap();
            text.committed(chunk);
            assert!(text.raw.len() < 3 * WINDOW_BYTES);
        }
        assert_eq!(text.finish(&redactor.text(&deltas.concat())), rest(true, ""));
    }
}
