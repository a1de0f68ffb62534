//! The little of Markdown that the commands read: fenced blocks.

/// A fenced block of shell commands that is marked to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The document.
    pub(crate) path: String,
    /// Line of the fence, from 1.
    pub(crate) line: usize,
    /// The commands.
    pub(crate) text: String,
}

/// The blocks of a document whose fence says `sh run`.
pub(crate) fn runnable(path: &str, text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, bool, Block)> = None;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        match open.take() {
            Some((fence, marked, block)) if trimmed.trim_end() == fence => {
                blocks.extend(marked.then_some(block));
            }
            Some((fence, marked, mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some((fence, marked, block));
            }
            None if trimmed.starts_with("```") => {
                let ticks = trimmed.chars().take_while(|ch| *ch == '`').count();
                let (fence, info) = trimmed.split_at(ticks);
                let words: Vec<&str> = info.split_whitespace().collect();
                let block = Block { path: path.to_owned(), line: index + 1, text: String::new() };
                open = Some((fence.to_owned(), words == ["sh", "run"], block));
            }
            None => {}
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marked_blocks_run() {
        let text = "a\n```sh\nno\n```\n```sh run\none\ntwo\n```\n````md\n```sh run\nquoted\n```\n````\n";
        let blocks = runnable("README.md", text);
        let expected = Block { path: "README.md".to_owned(), line: 5, text: "one\ntwo\n".to_owned() };
        assert_eq!(blocks, [expected]);
    }
}
