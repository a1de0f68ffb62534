//! Lines of a transcript as text in two columns: who, then what.

use harness_model::{one_line, truncate_chars};

use crate::transcript::Line;

/// Columns for who speaks.
const WHO: usize = 16;
/// The same on a terminal with fewer columns than [`NARROW`].
const WHO_NARROW: usize = 8;
const NARROW: usize = 60;
/// Columns between who and what: a mark with a space on each side.
const MARK: usize = 3;
/// Columns that words get at least, however narrow the terminal is.
const WORDS_MIN: usize = 16;

/// Lays lines out. On a terminal words are wrapped; elsewhere lines are as long as they are.
#[derive(Clone, Debug)]
pub(crate) struct Painter {
    pub(crate) agent: String,
    who: usize,
    /// Columns for what is said; `None`: as many as it takes.
    words: Option<usize>,
    /// The answer that is being written, while its line is open.
    open: Option<Wrap>,
}

impl Painter {
    /// Paints what `agent` does, on a terminal of so many columns.
    pub(crate) fn new(agent: &str, columns: Option<usize>) -> Self {
        let who = if columns.is_some_and(|columns| columns < NARROW) { WHO_NARROW } else { WHO };
        let words = columns.map(|columns| columns.saturating_sub(who + MARK).max(WORDS_MIN));
        Self { agent: truncate_chars(&one_line(agent), who), who, words, open: None }
    }

    /// The text of a line, line ends included; an answer that is being written stays open.
    pub(crate) fn paint(&mut self, line: &Line) -> String {
        if let Line::AnswerDelta(delta) = line {
            return self.answer(delta);
        }
        let end = if self.open.take().is_some() { "\n" } else { "" };
        let text = match line {
            Line::AnswerDelta(_) | Line::AnswerEnd => String::new(),
            Line::State(state) => self.row("", "──", state),
            Line::Agent(words) => self.said(&self.agent, words),
            Line::Tool { name, summary, state, duration_ms } => self.tool(name, summary, state, *duration_ms),
            Line::Plan { done, steps } => self.plan(*done, steps),
            Line::Asked { question, options } => {
                let options = options.iter().map(|option| self.row("", " ", &format!("  - {option}")));
                self.row(&self.agent, "?", question) + &options.collect::<String>()
            }
            Line::Artifact { name, parts } => {
                let parts = parts.iter().map(|part| self.row("", " ", part));
                self.row("artifact", "·", name) + &parts.collect::<String>()
            }
        };
        format!("{end}{text}")
    }

    /// Words of somebody.
    pub(crate) fn said(&self, who: &str, words: &str) -> String {
        self.row(who, "›", words)
    }

    /// Where somebody is about to type.
    pub(crate) fn prompt(&self, who: &str) -> String {
        self.gutter(who, "›")
    }

    fn gutter(&self, who: &str, mark: &str) -> String {
        format!("{:>width$} {mark} ", truncate_chars(&one_line(who), self.who), width = self.who)
    }

    fn row(&self, who: &str, mark: &str, words: &str) -> String {
        let mut wrap = Wrap::new(self.words, self.who + MARK);
        format!("{}{}\n", self.gutter(who, mark), wrap.push(words))
    }

    fn answer(&mut self, delta: &str) -> String {
        let begun = if self.open.is_some() { String::new() } else { self.gutter(&self.agent, "›") };
        let fresh = Wrap::new(self.words, self.who + MARK);
        begun + &self.open.get_or_insert(fresh).push(delta)
    }

    fn tool(&self, name: &str, summary: &str, state: &str, duration_ms: Option<u64>) -> String {
        let mark = match state {
            "succeeded" => "✓".to_owned(),
            other => format!("✗ {}", other.replace('_', " ")),
        };
        let time = duration_ms.map(|ms| format!("  {ms} ms")).unwrap_or_default();
        let ended = format!("  {mark}{time}");
        let taken = name.chars().count() + ended.chars().count() + "()".len();
        let room = self.words.map_or(usize::MAX, |words| words.saturating_sub(taken));
        // A detail that has to be cut to a few characters says nothing.
        let summary = match summary.chars().count() {
            0 => String::new(),
            long if long > room && room < WORDS_MIN => String::new(),
            _ => format!("({})", truncate_chars(summary, room)),
        };
        self.row("tool", "·", &format!("{name}{summary}{ended}"))
    }

    fn plan(&self, done: usize, steps: &[(String, String)]) -> String {
        let mut text = self.row("plan", "·", &format!("{done} of {} steps done", steps.len()));
        for (state, name) in steps {
            let mark = match state.as_str() {
                "done" => "●",
                "active" => "◐",
                "failed" => "✗",
                _ => "○",
            };
            text.push_str(&self.row("", " ", &format!("{mark} {name}")));
        }
        text
    }
}

/// Text that arrives in pieces, broken between words; further lines begin where the first one does.
#[derive(Clone, Debug)]
struct Wrap {
    columns: Option<usize>,
    indent: usize,
    /// Whether a word has come.
    begun: bool,
    /// Columns of the line that are taken.
    column: usize,
    /// Spaces and line ends that come out once something follows them.
    held: String,
}

impl Wrap {
    fn new(columns: Option<usize>, indent: usize) -> Self {
        Self { columns, indent, begun: false, column: 0, held: String::new() }
    }

    fn push(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let is_space = |ch: char| ch == ' ' || ch == '\n';
            let end = rest.find(|ch| is_space(ch) != is_space(first)).unwrap_or(rest.len());
            let (piece, after) = rest.split_at(end);
            rest = after;
            if is_space(first) {
                self.held.push_str(piece);
            } else {
                self.word(piece, &mut out);
            }
        }
        out
    }

    fn word(&mut self, word: &str, out: &mut String) {
        let held = std::mem::take(&mut self.held);
        let (line_ends, spaces) = match held.rsplit_once('\n') {
            Some((before, spaces)) if self.begun => (before.matches('\n').count() + 1, spaces),
            Some((_, spaces)) => (0, spaces),
            None => (0, held.as_str()),
        };
        self.begun = true;
        let length = word.chars().count();
        let too_long = |columns: usize| self.column + spaces.len() + length > columns;
        let wraps =
            line_ends == 0 && self.column > 0 && !spaces.is_empty() && self.columns.is_some_and(too_long);
        if line_ends > 0 || wraps {
            out.push_str(&"\n".repeat(line_ends.max(1)));
            out.push_str(&" ".repeat(self.indent));
            self.column = 0;
        }
        if !wraps {
            out.push_str(spaces);
            self.column += spaces.len();
        }
        out.push_str(word);
        self.column += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(columns: usize, pieces: &[&str]) -> String {
        let mut wrap = Wrap::new(Some(columns), 2);
        pieces.iter().map(|piece| wrap.push(piece)).collect()
    }

    #[test]
    fn words_are_wrapped_between_words_wherever_the_pieces_are_cut() {
        let whole = "one two three four";
        for cut in 1..whole.len() {
            let (a, b) = whole.split_at(cut);
            let text = wrapped(9, &[a, b]);
            let words: Vec<&str> = text.split_whitespace().collect();
            assert_eq!(words, ["one", "two", "three", "four"], "{text:?}");
        }
        assert_eq!(wrapped(9, &[whole]), "one two\n  three\n  four");
        assert_eq!(wrapped(9, &["one ", "two ", "three ", "four"]), "one two\n  three\n  four");
        assert_eq!(wrapped(4, &["a muchlongerword b"]), "a\n  muchlongerword\n  b", "words stay whole");
    }

    #[test]
    fn line_ends_between_pieces_are_kept_and_those_at_the_end_are_not() {
        assert_eq!(wrapped(80, &["\n\na\n", "\nb", "\n\n"]), "a\n\n  b");
        assert_eq!(wrapped(80, &["- x\n", "  - y"]), "- x\n    - y", "indented text stays indented");
    }

    #[test]
    fn a_narrow_terminal_gets_narrow_lines() {
        let mut painter = Painter::new("Nimbus support", Some(40));
        let lines = [
            Line::State("WORKING".to_owned()),
            Line::Tool {
                name: "orders.get_order".to_owned(),
                summary: "order_id: 48213".to_owned(),
                state: "succeeded".to_owned(),
                duration_ms: Some(7),
            },
            Line::AnswerDelta("I am sorry about ".to_owned()),
            Line::AnswerDelta("the cracked jar.".to_owned()),
            Line::AnswerEnd,
            Line::Asked {
                question: "Would you like a replacement?".to_owned(),
                options: vec!["yes".to_owned()],
            },
        ];
        let text: String = lines.iter().map(|line| painter.paint(line)).collect();
        insta::assert_snapshot!(text, @r"
                 ── WORKING
            tool · orders.get_order  ✓  7 ms
        Nimbus … › I am sorry about the cracked
                   jar.
        Nimbus … ? Would you like a replacement?
                     - yes
        ");
    }
}
