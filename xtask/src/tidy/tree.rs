//! The text files of the repository.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::session::Failure;

/// What holds no sources of ours. `.git` is a file in a second working tree.
const SKIPPED: &[&str] = &[".git", ".state", ".tools", "node_modules", "target"];
/// Bytes of the largest file that is looked at; lock files and captures may be larger.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// One text file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceFile {
    /// Path from the root, with `/` between its parts.
    pub(crate) path: String,
    /// What is in it.
    pub(crate) text: String,
}

impl SourceFile {
    /// The file name without directories.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// All of them, sorted by path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    files: Vec<SourceFile>,
}

impl Tree {
    /// Reads the repository; files that are not UTF-8 text are left out.
    pub(crate) fn read(root: &Path) -> Result<Self, Failure> {
        let mut files = Vec::new();
        let mut directories = vec![PathBuf::new()];
        while let Some(directory) = directories.pop() {
            let unreadable =
                |error: std::io::Error| Failure::new(format!("cannot read {}: {error}", directory.display()));
            for entry in fs::read_dir(root.join(&directory)).map_err(unreadable)? {
                let entry = entry.map_err(unreadable)?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if SKIPPED.contains(&name.as_str()) {
                    continue;
                }
                let kind = entry.file_type().map_err(unreadable)?;
                let path = directory.join(&name);
                if kind.is_dir() {
                    directories.push(path);
                } else if kind.is_file() && entry.metadata().map_err(unreadable)?.len() <= FILE_BYTES_MAX {
                    let bytes = fs::read(root.join(&path)).map_err(unreadable)?;
                    if let Ok(text) = String::from_utf8(bytes) {
                        files.push(SourceFile { path: path.to_string_lossy().replace('\\', "/"), text });
                    }
                }
            }
        }
        Ok(Self::of(files))
    }

    fn of(mut files: Vec<SourceFile>) -> Self {
        files.sort_by(|left, right| left.path.cmp(&right.path));
        Self { files }
    }

    /// A tree of these paths and texts.
    #[cfg(test)]
    pub(crate) fn fixture(files: &[(&str, &str)]) -> Self {
        let file =
            |(path, text): &(&str, &str)| SourceFile { path: (*path).to_owned(), text: (*text).to_owned() };
        Self::of(files.iter().map(file).collect())
    }

    /// Every file.
    pub(crate) fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter()
    }

    /// The files with this extension.
    pub(crate) fn with_extension(&self, extension: &str) -> impl Iterator<Item = &SourceFile> {
        let suffix = format!(".{extension}");
        self.files.iter().filter(move |file| file.path.ends_with(&suffix))
    }

    /// The file at this path.
    pub(crate) fn get(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_repository() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let tree = Tree::read(root).unwrap();
        assert_eq!(tree.get("xtask/src/tidy/tree.rs").unwrap().name(), "tree.rs");
        assert!(
            tree.files().all(|file| !file.path.starts_with("target/") && !file.path.starts_with(".git/"))
        );
    }
}
