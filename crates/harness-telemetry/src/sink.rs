//! Where lines go. A line is written whole, under a lock, before the event returns: the last words of a process that
//! dies are on record.

use std::{
    fs::{File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
    sync::{Mutex, PoisonError},
};

use crate::LogCapture;

/// Only the owner may read logs: they name tasks and people.
const FILE_MODE: u32 = 0o600;

#[derive(Debug)]
pub(crate) enum Sink {
    Stderr,
    File(Mutex<File>),
    Memory(LogCapture),
}

impl Sink {
    /// Appends to a file; an existing one becomes private too.
    pub(crate) fn file(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).mode(FILE_MODE).open(path)?;
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        Ok(Self::File(Mutex::new(file)))
    }

    /// Writes a line that ends with its line break. What cannot be written is lost: there is nowhere left to say so.
    pub(crate) fn write(&self, line: &str) {
        let written = match self {
            Self::Stderr => io::stderr().lock().write_all(line.as_bytes()),
            Self::File(file) => {
                file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())
            }
            Self::Memory(capture) => {
                capture.push(line);
                Ok(())
            }
        };
        drop(written);
    }

    /// Makes sure that a file is on disk.
    pub(crate) fn flush(&self) {
        if let Self::File(file) = self {
            drop(file.lock().unwrap_or_else(PoisonError::into_inner).sync_data());
        }
    }
}
