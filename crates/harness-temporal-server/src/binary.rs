//! Which program is run: the chosen one, the one on PATH, the one that was fetched before, or one that is fetched now.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

use crate::{BinaryError, fetch};

/// Name of the program on PATH.
const PROGRAM: &str = "temporal";
/// Who else could change something: the group's and everybody's right to write.
const OTHERS_WRITE: u32 = 0o022;

/// Where the program may come from, in this order: `binary_path`, `temporal` in `search_path`, `download_dir`, and as the
/// last resort a download into it. The first that is there is run; when it does not work, no other is tried.
#[derive(Clone, Debug, Default)]
pub struct BinarySource {
    /// The one that was chosen. Then nothing else is looked at.
    pub binary_path: Option<PathBuf>,
    /// The value of `PATH`. Entries that are not absolute are passed over.
    pub search_path: Option<OsString>,
    /// The folder of fetched programs; see [`default_download_dir`]. Without one nothing is fetched.
    pub download_dir: Option<PathBuf>,
}

/// The usual folder of fetched programs: `$XDG_CACHE_HOME/tiny-harness/temporal`, else `~/.cache/tiny-harness/temporal`.
/// Takes the values of `XDG_CACHE_HOME` and `HOME`; those that are empty or not absolute count as not set.
pub fn default_download_dir(xdg_cache_home: Option<&OsStr>, home: Option<&OsStr>) -> Option<PathBuf> {
    let absolute = |value: Option<&OsStr>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute(xdg_cache_home).or_else(|| Some(absolute(home)?.join(".cache")))?;
    Some(cache.join("tiny-harness").join("temporal"))
}

impl BinarySource {
    /// The program that would be run, when it need not be fetched.
    pub fn at_hand(&self) -> Option<PathBuf> {
        self.look().ok().flatten()
    }

    /// Finds the program that a start would run, without fetching anything; `None`: a start would fetch it first.
    /// Errors: a start would refuse what is there.
    pub fn look(&self) -> Result<Option<PathBuf>, BinaryError> {
        if self.binary_path.is_some() {
            return self.chosen().transpose();
        }
        if let Some(path) = self.search_path.as_deref().and_then(on_path) {
            return Ok(Some(path));
        }
        let Some(folder) = self.download_dir.as_deref() else { return Ok(None) };
        if !exists(folder)? {
            return Ok(None);
        }
        check_owner(folder)?;
        let cached = folder.join(fetch::file_name());
        if exists(&cached)? { trusted(cached).map(Some) } else { Ok(None) }
    }

    fn chosen(&self) -> Option<Result<PathBuf, BinaryError>> {
        let path = self.binary_path.as_ref()?;
        let runs = is_executable(path);
        Some(if runs { Ok(path.clone()) } else { Err(BinaryError::NotExecutable { path: path.clone() }) })
    }

    /// Finds the program, or fetches it; the latter may take minutes.
    pub(crate) async fn find(&self) -> Result<PathBuf, BinaryError> {
        if let Some(chosen) = self.chosen() {
            return chosen;
        }
        if let Some(path) = self.search_path.as_deref().and_then(on_path) {
            return Ok(path);
        }
        let Some(folder) = &self.download_dir else {
            return Err(BinaryError::Fetch { cause: "there is no folder to put it into".to_owned() });
        };
        make_folder(folder)?;
        check_owner(folder)?;
        let cached = folder.join(fetch::file_name());
        if !exists(&cached)? {
            fetch::fetch(&cached).await.map_err(|cause| BinaryError::Fetch { cause })?;
        }
        trusted(cached)
    }
}

fn trusted(cached: PathBuf) -> Result<PathBuf, BinaryError> {
    check_owner(&cached)?;
    if is_executable(&cached) { Ok(cached) } else { Err(BinaryError::NotExecutable { path: cached }) }
}

fn on_path(search_path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(search_path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(PROGRAM))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) && access(path, Access::EXEC_OK).is_ok()
}

fn exists(path: &Path) -> Result<bool, BinaryError> {
    // A link that leads nowhere is there too, and is then refused.
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(BinaryError::DownloadDir { path: path.to_path_buf(), source }),
    }
}

fn make_folder(folder: &Path) -> Result<(), BinaryError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|source| BinaryError::DownloadDir { path: folder.to_path_buf(), source })
}

/// Refuses what somebody else owns or can change.
fn check_owner(path: &Path) -> Result<(), BinaryError> {
    let untrusted = |why| Err(BinaryError::Untrusted { path: path.to_path_buf(), why });
    let metadata = fs::symlink_metadata(path)
        .map_err(|source| BinaryError::DownloadDir { path: path.to_path_buf(), source })?;
    if metadata.is_symlink() {
        return untrusted("is a link");
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return untrusted("belongs to another user");
    }
    if metadata.mode() & OTHERS_WRITE != 0 {
        return untrusted("can be written by others");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_at_hand_is_what_would_be_run() {
        let folder = tempfile::tempdir().unwrap();
        let source = |search: &Path, cache: &Path| BinarySource {
            binary_path: None,
            search_path: Some(search.into()),
            download_dir: Some(cache.to_path_buf()),
        };
        let (search, cache) = (folder.path().join("search"), folder.path().join("cache"));
        let program = |path: PathBuf| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            assert_eq!(source(&search, &cache).at_hand(), None, "it cannot be run yet");
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
            path
        };
        let cached = program(cache.join(fetch::file_name()));
        assert_eq!(source(&search, &cache).at_hand(), Some(cached));
        let found = search.join(PROGRAM);
        fs::create_dir_all(&search).unwrap();
        fs::copy(source(&search, &cache).at_hand().unwrap(), &found).unwrap();
        assert_eq!(source(&search, &cache).at_hand(), Some(found));
    }

    #[test]
    fn the_usual_folder_needs_an_absolute_home() {
        let folder = |cache: Option<&str>, home: Option<&str>| {
            default_download_dir(cache.map(OsStr::new), home.map(OsStr::new))
        };
        assert_eq!(folder(Some("/c"), Some("/h")), Some("/c/tiny-harness/temporal".into()));
        assert_eq!(folder(Some("c"), Some("/h")), Some("/h/.cache/tiny-harness/temporal".into()));
        assert_eq!(folder(Some(""), Some("/h")), Some("/h/.cache/tiny-harness/temporal".into()));
        assert_eq!(folder(None, Some("")), None);
        assert_eq!(folder(None, None), None);
    }
}
