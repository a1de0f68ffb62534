//! What a demo must not forget when it is killed: the ids of its messages and the answers that were given.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use harness_ports::IdSource;
use serde::{Deserialize, Serialize};

use super::io_failure;
use crate::{failure::Failure, system::RandomIds};

const FILE: &str = "demo.json";

/// One run of the demo, over all its restarts.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Session {
    /// Every message id begins with this.
    id: String,
    /// Answers given, by number of the question.
    answers: BTreeMap<u32, String>,
    #[serde(skip)]
    file: PathBuf,
}

impl Session {
    /// A new run; once saved it replaces the one before.
    pub(super) fn begin(state: &Path) -> Self {
        Self { id: RandomIds.fresh(), answers: BTreeMap::new(), file: state.join(FILE) }
    }

    /// The run that is there.
    pub(super) fn load(state: &Path) -> Result<Self, Failure> {
        let file = state.join(FILE);
        let text = std::fs::read_to_string(&file).map_err(|_| {
            Failure::general(format!(
                "there is no demo to go on with in {}; leave out --resume",
                state.display()
            ))
        })?;
        let session: Self = serde_json::from_str(&text).map_err(|e| {
            Failure::general(format!("{} is damaged ({e}); leave out --resume", file.display()))
        })?;
        Ok(Self { file, ..session })
    }

    /// Id of the complaint (0), or of the answer to a question (from 1).
    pub(super) fn message_id(&self, number: u32) -> String {
        format!("{}-{number}", self.id)
    }

    /// The answer that was given to a question.
    pub(super) fn answer(&self, number: u32) -> Option<String> {
        self.answers.get(&number).cloned()
    }

    /// Writes an answer down, before it is sent.
    pub(super) fn keep_answer(&mut self, number: u32, answer: &str) -> Result<(), Failure> {
        self.answers.insert(number, answer.to_owned());
        self.save()
    }

    /// Written beside and moved into place: a crash leaves the old file or the new one, never half of one.
    pub(super) fn save(&self) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).map_err(|e| Failure::general(e.to_string()))?;
        let beside = self.file.with_extension("json.new");
        std::fs::write(&beside, text).map_err(|e| io_failure("write", &beside, &e))?;
        std::fs::rename(&beside, &self.file).map_err(|e| io_failure("write", &self.file, &e))
    }
}
