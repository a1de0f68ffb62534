//! Models that answer from files: a script, or what another model said before.

use super::{
    models::{Replay, Scripted},
    providers::{Candidate, ProviderKind, REPLAY, SCRIPTED, Tables},
    reader::{Reader, Table},
    section::Section,
};

/// `[model.scripted]`.
pub(super) fn scripted<'a>(
    reader: &mut Reader<'a>,
    model: &Table<'a>,
    tables: &mut Tables,
) -> Option<Candidate<'a>> {
    let table = reader.table(model, SCRIPTED);
    if !table.is_present() {
        return None;
    }
    let section: Scripted = reader.section(&table, &[]);
    tables.push(("model.scripted".to_owned(), section.show()));
    let usable = if !table.has("path") || section.path.is_file() {
        Ok(ProviderKind::Scripted { path: section.path })
    } else {
        Err((
            format!("there is no file {}", section.path.display()),
            "write the path of a file of turns; relative paths start where tiny-harness is started"
                .to_owned(),
        ))
    };
    Some(Candidate { name: SCRIPTED.to_owned(), table, usable })
}

/// `[model.replay]`.
pub(super) fn replay<'a>(
    reader: &mut Reader<'a>,
    model: &Table<'a>,
    tables: &mut Tables,
) -> Option<Candidate<'a>> {
    let table = reader.table(model, REPLAY);
    if !table.is_present() {
        return None;
    }
    let section: Replay = reader.section(&table, &[]);
    tables.push(("model.replay".to_owned(), section.show()));
    let usable = if !table.has("path") || section.path.is_dir() {
        Ok(ProviderKind::Replay { path: section.path })
    } else {
        Err((
            format!("there is no folder {}", section.path.display()),
            "write the folder that `record` filled; relative paths start where tiny-harness is started"
                .to_owned(),
        ))
    };
    Some(Candidate { name: REPLAY.to_owned(), table, usable })
}
