//! The manual lists exactly the keys that the program reads.

use std::{fs, path::PathBuf};

use super::file;
use crate::config::reference;

const BEGIN: &str = "<!-- reference: written by `UPDATE=1 cargo test -p tiny-harness config` -->\n";
const END: &str = "<!-- end of reference -->\n";

#[test]
fn the_manual_has_the_reference_of_this_build() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let manual = fs::read_to_string(&path).unwrap();
    let (before, rest) = manual.split_once(BEGIN).expect("the manual has the opening mark");
    let (found, after) = rest.split_once(END).expect("the manual has the closing mark");
    let expected = format!("\n{}", markdown());
    if found != expected && std::env::var_os("UPDATE").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(found, expected, "docs/configuration.md is out of date; run with UPDATE=1");
}

/// Every key of the reference is read, in its table, with its default or an example.
#[test]
fn every_key_of_the_reference_is_known() {
    for table in reference::tables() {
        for key in table.keys {
            let header = match (table.path, table.path.strip_suffix("[]")) {
                ("", _) => String::new(),
                (_, Some(list)) => format!("[[{list}]]"),
                (path, None) => format!("[{}]", path.replace("NAME", "invoke_tool")),
            };
            let misspelt = format!("{header}\n{}_x = 1\n", key.name);
            let problems = file(&misspelt).problems();
            let advised = problems.contains(&format!("did you mean `{}`?", key.name))
                || problems.contains("secrets come from the environment only")
                || key.name.len() < 4;
            assert!(advised, "{}.{}: {problems}", table.path, key.name);
            let known = file(&format!("{header}\n{} = 1\n", key.name)).load();
            let unknown =
                known.err().unwrap_or_default().into_iter().find(|p| p.message.starts_with("unknown"));
            assert_eq!(unknown, None, "{}.{}", table.path, key.name);
        }
    }
}

/// The reference as Markdown: a heading, a paragraph and a table of keys for each table.
fn markdown() -> String {
    let mut text = String::new();
    for table in reference::tables() {
        let heading = match table.path {
            "" => "Top of the file".to_owned(),
            path => match path.strip_suffix("[]") {
                Some(list) => format!("`[[{list}]]`"),
                None => format!("`[{path}]`"),
            },
        };
        text.push_str(&format!("### {heading}\n\n{}\n\n", table.about));
        text.push_str("| Key | Value | Default | Meaning |\n|---|---|---|---|\n");
        for key in table.keys {
            text.push_str(&format!("| `{}` | {} | {} | {} |\n", key.name, key.kind, key.default, key.doc));
        }
        text.push('\n');
    }
    text
}
