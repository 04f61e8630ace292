//! Words that may not be in the repository, and texts that may not be in a path.

use regex::Regex;

use crate::files::Text;

/// Who may build a path from parts of a ref: the one module that knows the rules (ST-6).
const PATH_MAKERS: [&str; 1] = ["crates/the-loop/src/store/layout.rs"];

/// Places looked at by a person and found harmless, with why.
const LOOKED_AT: [(&str, &str, &str); 2] = [
    (
        "crates/the-loop/src/git/sweep.rs",
        "&place.repo().name",
        "the name passed the parser of refs, and only directories that are listed there are entered",
    ),
    (
        "crates/the-loop/src/store/files.rs",
        "item.number()",
        "a number, in the directory of tickets the layout gave",
    ),
];

/// A decision is one page.
const PAGE_LINES: usize = 60;

/// Unfinished code, and what belongs to the machine something was written on.
pub fn check(files: &[Text]) -> Vec<String> {
    let patterns = [
        (r"\b(?:todo|unimplemented)!\(", "unfinished code"),
        (
            r"(?:^|[^\w.:$}~-])/(?:work|root|home/(?:ubuntu|runner))(?:/\w|\b)",
            "a path of one machine",
        ),
        (
            r"\b(?:registry\.npmjs|registry\.yarnpkg|static\.crates|index\.crates|static\.rust-lang|deb\.debian|archive\.ubuntu)\.",
            "the host of a registry",
        ),
    ];
    let mut faults = Vec::new();
    for (pattern, what) in patterns {
        let Ok(pattern) = Regex::new(pattern) else {
            faults.push(format!("the pattern for {what} is broken"));
            continue;
        };
        for file in files.iter().filter(|file| !is_this(&file.path)) {
            for (number, line) in file.text.lines().enumerate() {
                if pattern.is_match(line) {
                    faults.push(format!("{}:{}: {what}", file.path, number + 1));
                }
            }
        }
    }
    faults
}

/// This file has the words it looks for; a lock file has what cargo puts there.
fn is_this(path: &str) -> bool {
    path == "crates/xtask/src/tidy/words.rs" || path == "Cargo.lock"
}

/// Text of a caller joined to a path anywhere but in the modules that make paths (ST-6). This sees what
/// a line says, not what flows into it: it catches the habit, and the parser of refs is the wall.
pub fn joined_paths(files: &[Text]) -> Vec<String> {
    let Ok(join) = Regex::new(r"\.join\(([^;\n]*)") else {
        return vec!["the pattern for joins is broken".to_owned()];
    };
    let caller_text = [
        "owner",
        ".name",
        "number()",
        "title",
        "body",
        "login",
        "actor",
        "branch()",
        "item.",
        "item)",
        "reference",
        "summary",
        "prompt",
    ];
    let mut faults = Vec::new();
    let shipped = files.iter().filter(|file| {
        file.path.starts_with("crates/the-loop/src/") && !PATH_MAKERS.contains(&file.path.as_str())
    });
    for file in shipped {
        let code = file.product_code().unwrap_or_default();
        for found in join.captures_iter(code) {
            let argument = &found[1];
            let known = LOOKED_AT
                .iter()
                .any(|(path, what, _)| *path == file.path && argument.contains(what));
            if !known && caller_text.iter().any(|word| argument.contains(word)) {
                faults.push(format!(
                    "{}: joins {argument} to a path; ask the layout for it (ST-6)",
                    file.path
                ));
            }
        }
    }
    faults
}

/// Decisions longer than a page.
pub fn decisions(files: &[Text]) -> Vec<String> {
    let decisions = files.iter().filter(|file| {
        file.path.starts_with("docs/decisions/") && file.path.strip_suffix(".md").is_some()
    });
    decisions
        .filter(|file| file.text.lines().count() > PAGE_LINES)
        .map(|file| format!("{}: longer than a page", file.path))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> Text {
        let (path, text) = (path.to_owned(), text.to_owned());
        Text { path, text }
    }

    #[test]
    fn words_of_one_machine_and_unfinished_code_are_faults() {
        let faults = |text: &str| check(&[file("README.md", text)]).len();
        assert_eq!(faults("see /work/thing/x"), 1);
        assert_eq!(faults("    todo!()"), 1);
        assert_eq!(faults("from https://registry.npmjs.org/"), 1);
        assert_eq!(faults("the work item, $HOME/work/octo and ~/work/x"), 0);
    }

    #[test]
    fn st6_parts_of_a_ref_are_joined_by_the_layout_only() {
        let text = "let p = dir.join(&item.repo().owner);\n";
        assert_eq!(
            joined_paths(&[file("crates/the-loop/src/git/a.rs", text)]).len(),
            1
        );
        assert!(joined_paths(&[file("crates/the-loop/src/store/layout.rs", text)]).is_empty());
        let slug = "let p = dir.join(slug.as_str());\n";
        assert!(joined_paths(&[file("crates/the-loop/src/git/a.rs", slug)]).is_empty());
    }

    #[test]
    fn a_decision_is_one_page() {
        let long = file("docs/decisions/a.md", &"x\n".repeat(PAGE_LINES + 1));
        assert_eq!(decisions(&[long]).len(), 1);
    }
}
