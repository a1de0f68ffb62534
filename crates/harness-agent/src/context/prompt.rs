//! The system prompt: named sections that plugins may extend or replace as a whole.

/// A system prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemPrompt {
    /// Text before the first heading.
    preamble: String,
    /// Sections in the order they were written: lower-case name and body.
    sections: Vec<(String, String)>,
}

/// Text that a plugin adds to one section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptExtension {
    /// Who adds it, for error messages.
    pub id: String,
    /// The section.
    pub section: String,
    /// The text.
    pub body: String,
}

/// Why an extension was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("prompt {id} extends section {section:?}, which the system prompt does not have (it has: {known})")]
pub struct PromptProblem {
    /// The extension.
    pub id: String,
    /// The section it names.
    pub section: String,
    /// The sections there are.
    pub known: String,
}

impl SystemPrompt {
    /// The prompt that ships with the harness.
    pub fn builtin() -> Self {
        Self::parse(include_str!("system_prompt.md"))
    }

    /// Reads a prompt: headings of level two split it into sections.
    pub fn parse(text: &str) -> Self {
        let mut prompt = Self { preamble: String::new(), sections: Vec::new() };
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("## ") {
                prompt.sections.push((name.trim().to_lowercase(), String::new()));
                continue;
            }
            let body = prompt.sections.last_mut().map_or(&mut prompt.preamble, |(_, body)| body);
            body.push_str(line);
            body.push('\n');
        }
        prompt.preamble = prompt.preamble.trim().to_owned();
        for (_, body) in &mut prompt.sections {
            *body = body.trim().to_owned();
        }
        prompt
    }

    /// Adds text to the end of a section, after a blank line.
    /// Errors: the section does not exist; the prompt stays as it was.
    pub fn extend(&mut self, extension: &PromptExtension) -> Result<(), PromptProblem> {
        let wanted = extension.section.to_lowercase();
        let known = self.sections.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        match self.sections.iter_mut().find(|(name, _)| *name == wanted) {
            Some((_, body)) => {
                body.push_str("\n\n");
                body.push_str(extension.body.trim());
                Ok(())
            }
            None => Err(PromptProblem { id: extension.id.clone(), section: wanted, known }),
        }
    }

    /// The prompt as text.
    pub fn render(&self) -> String {
        let mut blocks = Vec::with_capacity(self.sections.len() + 1);
        if !self.preamble.is_empty() {
            blocks.push(self.preamble.clone());
        }
        blocks.extend(self.sections.iter().map(|(name, body)| format!("## {name}\n\n{body}")));
        blocks.join("\n\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_builtin_prompt_has_its_sections_in_order() {
        let names: Vec<String> = SystemPrompt::builtin().sections.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["role", "task", "participants", "tools", "skills", "agents", "rules"]);
    }

    #[test]
    fn extensions_go_to_the_end_of_their_section() {
        let mut prompt = SystemPrompt::parse("hello\n## Rules\n\none\n## more\ntwo\n");
        let extension = |section: &str| PromptExtension {
            id: "p".to_owned(),
            section: section.to_owned(),
            body: "three\n".to_owned(),
        };
        prompt.extend(&extension("rules")).unwrap();
        assert_eq!(prompt.render(), "hello\n\n## rules\n\none\n\nthree\n\n## more\n\ntwo");
        let problem = prompt.extend(&extension("nope")).unwrap_err();
        assert_eq!(problem.known, "rules, more");
    }
}
