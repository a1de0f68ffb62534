//! Tests of the configuration as a whole: a file and an environment in, a configuration or every problem out.

mod accepted;
mod documentation;
mod garbage;
mod problems;

use std::{collections::BTreeMap, fs};

use tempfile::TempDir;

use super::{Config, ConfigProblem, load};

/// A folder with a configuration file, and an environment.
struct Case {
    folder: TempDir,
    env: BTreeMap<String, String>,
    has_file: bool,
}

/// A case with this file, a local model server being configured unless the text says otherwise.
fn file(text: &str) -> Case {
    let case = Case { has_file: true, ..no_file() };
    fs::write(case.folder.path().join("h.toml"), text).expect("the folder is writable");
    case
}

fn no_file() -> Case {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    Case { folder, env: BTreeMap::new(), has_file: false }
}

impl Case {
    fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    fn load(&self) -> Result<Config, Vec<ConfigProblem>> {
        load(self.has_file.then(|| "h.toml".as_ref()), &self.env, self.folder.path())
    }

    /// The configuration of a case that has to be accepted.
    fn accepted(&self) -> Config {
        self.load().unwrap_or_else(|problems| panic!("{}", lines(&problems)))
    }

    /// The problems of a case that has to be refused, one a line, the folder shortened.
    fn problems(&self) -> String {
        let problems = self.load().expect_err("the configuration has problems");
        lines(&problems).replace(&format!("{}/", self.folder.path().display()), "DIR/")
    }
}

fn lines(problems: &[ConfigProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
