//! The folder of a plugin: every path stays inside, every read is bounded.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

use crate::limits;

/// Why a path of a package cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PackageError {
    #[error("leads outside of the plugin's folder")]
    Outside,
    #[error("does not exist")]
    Missing,
    #[error("is not a regular file")]
    NotAFile,
    #[error("is not a folder")]
    NotAFolder,
    #[error("is larger than {0} bytes")]
    TooLarge(u64),
    #[error("has more than {0} entries")]
    TooMany(usize),
    #[error("is not UTF-8 text")]
    NotText,
    #[error("cannot be read ({0})")]
    Io(io::ErrorKind),
}

impl From<io::Error> for PackageError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound { Self::Missing } else { Self::Io(error.kind()) }
    }
}

/// A folder that nothing leads out of. The path is absolute and free of symlinks.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    root: PathBuf,
    text: String,
}

impl Package {
    /// Opens an existing folder.
    pub(crate) fn open(folder: &Path) -> Result<Self, PackageError> {
        let root = folder.canonicalize()?;
        if !root.is_dir() {
            return Err(PackageError::NotAFolder);
        }
        let text = root.to_str().ok_or(PackageError::NotText)?.to_owned();
        Ok(Self { root, text })
    }

    /// Absolute path.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The same as text, for placeholders and variables.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether there is an entry of this name, wherever it may lead.
    pub(crate) fn has(&self, relative: &str) -> bool {
        self.root.join(relative).symlink_metadata().is_ok()
    }

    /// Resolves an existing path through its symlinks.
    pub(crate) fn resolve(&self, relative: &str) -> Result<PathBuf, PackageError> {
        self.contain(&self.root.join(relative).canonicalize()?)
    }

    /// Resolves a path to a folder that is made when it is missing; never outside of this one.
    pub(crate) fn ensure_folder(&self, relative: &str) -> Result<PathBuf, PackageError> {
        let mut at = self.root.clone();
        for part in Path::new(relative).components() {
            match part {
                Component::CurDir => continue,
                Component::Normal(name) => at.push(name),
                // `..` is refused even where it would come back: nothing needs it here.
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(PackageError::Outside);
                }
            }
            if at.symlink_metadata().is_err() {
                fs::create_dir(&at)?;
            }
            at = self.contain(&at.canonicalize()?)?;
        }
        if at.is_dir() { Ok(at) } else { Err(PackageError::NotAFolder) }
    }

    /// Reads a text file of at most `bytes_max` bytes; `None` when there is no such entry.
    pub(crate) fn read_text(&self, relative: &str, bytes_max: u64) -> Result<Option<String>, PackageError> {
        if !self.has(relative) {
            return Ok(None);
        }
        let path = self.resolve(relative)?;
        // Asked before opening: opening a pipe would wait for a writer.
        if !path.metadata()?.is_file() {
            return Err(PackageError::NotAFile);
        }
        let mut bytes = Vec::new();
        File::open(&path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > bytes_max {
            return Err(PackageError::TooLarge(bytes_max));
        }
        let text = String::from_utf8(bytes).map_err(|_| PackageError::NotText)?;
        Ok(Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)))
    }

    /// Names in a folder, sorted; `None` when there is no such entry. Names that are not UTF-8 are left out.
    pub(crate) fn list(&self, relative: &str) -> Result<Option<Vec<String>>, PackageError> {
        if !self.has(relative) {
            return Ok(None);
        }
        let path = self.resolve(relative)?;
        if !path.is_dir() {
            return Err(PackageError::NotAFolder);
        }
        let mut names = Vec::new();
        for entry in path.read_dir()? {
            if names.len() == limits::FOLDER_ENTRIES_MAX {
                return Err(PackageError::TooMany(limits::FOLDER_ENTRIES_MAX));
            }
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(Some(names))
    }

    fn contain(&self, resolved: &Path) -> Result<PathBuf, PackageError> {
        if resolved.starts_with(&self.root) { Ok(resolved.to_owned()) } else { Err(PackageError::Outside) }
    }
}
