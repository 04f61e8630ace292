//! Documents made from code: the schema, the references. `--check` is what a check run asks.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};
use camino::Utf8Path;
use the_loop_core::{config, event};

/// Where the command reference is; nothing else is in there.
const COMMANDS_DIR: &str = "docs/commands";

/// Writes every document, or says which is not what the code says.
pub fn run(root: &Utf8Path, check: bool) -> Result<()> {
    let mut stale = Vec::new();
    let documents = documents();
    for (path, text) in &documents {
        let file = root.join(path);
        if fs::read_to_string(&file).ok().as_ref() == Some(text) {
            continue;
        }
        stale.push(path.clone());
        if !check {
            let dir = file.parent().context("a document has a directory")?;
            fs::create_dir_all(dir).with_context(|| dir.to_string())?;
            fs::write(&file, text).with_context(|| file.to_string())?;
        }
    }
    for path in left_over(root, &documents) {
        if !check {
            fs::remove_file(root.join(&path)).with_context(|| path.clone())?;
        }
        stale.push(path);
    }
    match (stale.as_slice(), check) {
        ([], _) => println!("codegen: {} documents are up to date", documents.len()),
        (stale, false) => println!("codegen: wrote {}", stale.join(", ")),
        (stale, true) => bail!(
            "not what the code says: {}; run `cargo xtask codegen`",
            stale.join(", ")
        ),
    }
    Ok(())
}

fn documents() -> BTreeMap<String, String> {
    let mut documents =
        BTreeMap::from([("docs/events.md".to_owned(), event::catalogue_markdown())]);
    for (path, text) in config::generated() {
        documents.insert(path.to_owned(), text);
    }
    for (name, text) in the_loop::cli::docs::reference_markdown() {
        documents.insert(format!("{COMMANDS_DIR}/{name}"), text);
    }
    documents
}

/// Pages of commands that are no longer there.
fn left_over(root: &Utf8Path, documents: &BTreeMap<String, String>) -> Vec<String> {
    let Ok(entries) = root.join(COMMANDS_DIR).read_dir_utf8() else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name().to_owned());
    let mut paths: Vec<String> = names.map(|name| format!("{COMMANDS_DIR}/{name}")).collect();
    paths.retain(|path| !documents.contains_key(path));
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn se17_cf43_ev4_documents_are_named_once_and_not_empty() {
        let documents = documents();
        assert!(documents.contains_key("docs/commands/sessions.md"));
        assert!(documents.contains_key("docs/configuration.md"));
        assert!(documents.values().all(|text| text.ends_with('\n')));
    }

    #[test]
    fn a_page_of_a_command_that_went_is_left_over() {
        let root = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(root.path()).unwrap();
        fs::create_dir_all(root.join(COMMANDS_DIR)).unwrap();
        fs::write(root.join(COMMANDS_DIR).join("gone.md"), "# gone\n").unwrap();
        let left = left_over(root, &documents());
        assert_eq!(left, vec!["docs/commands/gone.md".to_owned()]);
    }
}
