//! Nothing becomes the new longest file. The ratchet holds the longest lengths so far, of code and of
//! tests; it is only ever turned down.

use std::fs;

use anyhow::{Context, Result};
use camino::Utf8Path;

use crate::files::Text;

const RATCHET: &str = "crates/xtask/longest.txt";

/// The longest lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Longest {
    code: usize,
    tests: usize,
}

/// Every file that is longer than the longest was.
pub fn check(root: &Utf8Path, files: &[Text]) -> Result<Vec<String>> {
    let held = read(root)?;
    let now = longest(files);
    if now.code < held.code || now.tests < held.tests {
        println!("tidy: the longest files became shorter; `cargo xtask tidy --ratchet` keeps that");
    }
    Ok(too_long(files, held))
}

/// Turns the ratchet down to the present lengths; never up.
pub fn write(root: &Utf8Path, files: &[Text]) -> Result<()> {
    let now = longest(files);
    let held = read(root).unwrap_or(now);
    let text = format!(
        "code {}\ntests {}\n",
        now.code.min(held.code),
        now.tests.min(held.tests)
    );
    fs::write(root.join(RATCHET), text).context(RATCHET)
}

fn read(root: &Utf8Path) -> Result<Longest> {
    let text = fs::read_to_string(root.join(RATCHET)).context(RATCHET)?;
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|number| number.trim().parse().ok());
        number.with_context(|| format!("{RATCHET} has no number for {name}"))
    };
    Ok(Longest {
        code: number("code")?,
        tests: number("tests")?,
    })
}

fn longest(files: &[Text]) -> Longest {
    let of = |tests: bool| {
        let lengths = rust(files).filter(|(_, is_test, _)| *is_test == tests);
        lengths.map(|(_, _, lines)| lines).max().unwrap_or(0)
    };
    Longest {
        code: of(false),
        tests: of(true),
    }
}

fn too_long(files: &[Text], held: Longest) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, is_test, lines) in rust(files) {
        let most = if is_test { held.tests } else { held.code };
        if lines > most {
            faults.push(format!(
                "{path}: {lines} lines, longer than the longest file was ({most}); split it by topic"
            ));
        }
    }
    faults
}

fn rust(files: &[Text]) -> impl Iterator<Item = (&str, bool, usize)> {
    let rust = files
        .iter()
        .filter(|file| file.path.strip_suffix(".rs").is_some());
    rust.map(|file| {
        let is_test = file.path.contains("/tests/") || file.path.ends_with("/tests.rs");
        (file.path.as_str(), is_test, file.text.lines().count())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_longest_file_is_a_fault_and_the_ratchet_never_turns_up() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        fs::create_dir_all(root.join("crates/xtask")).unwrap();
        fs::write(root.join(RATCHET), "code 2\ntests 5\n").unwrap();
        let file = |lines: usize| Text {
            path: "crates/a/src/b.rs".to_owned(),
            text: "x\n".repeat(lines),
        };
        assert!(check(root, &[file(2)]).unwrap().is_empty());
        assert_eq!(check(root, &[file(3)]).unwrap().len(), 1);
        write(root, &[file(3)]).unwrap();
        assert_eq!(read(root).unwrap(), Longest { code: 2, tests: 0 });
        write(root, &[file(1)]).unwrap();
        assert_eq!(read(root).unwrap().code, 1);
    }
}
