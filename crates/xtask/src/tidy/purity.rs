//! Core decides and does nothing else: no I/O, no clock, no randomness, no environment.

use crate::files::Text;

const CORE: &str = "crates/core/src/";

/// Ways out of a pure function.
const OUTSIDE: [&str; 16] = [
    "std::env",
    "std::fs",
    "std::io",
    "std::net::Tcp",
    "std::net::Udp",
    "ToSocketAddrs",
    "std::os",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime",
    "Timestamp::now",
    "Zoned::now",
    "println!",
    "static mut",
    "thread_local!",
];

/// What core may depend on. Each works on values only.
const MAY_USE: [&str; 10] = [
    "hex",
    "jiff",
    "minijinja",
    "regex",
    "schemars",
    "serde",
    "serde_json",
    "sha2",
    "strsim",
    "thiserror",
];

/// Every way out that core takes.
pub fn check(files: &[Text]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with(CORE)) {
        let code = file.product_code().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            let said = line.trim_start();
            if said.starts_with("//") {
                continue;
            }
            for word in OUTSIDE.iter().filter(|word| said.contains(**word)) {
                let at = number + 1;
                faults.push(format!("{}:{at}: core uses {word}", file.path));
            }
        }
    }
    faults
}

/// Every dependency of core beyond the list.
pub fn dependencies(files: &[Text]) -> Vec<String> {
    let manifest = files.iter().find(|f| f.path == "crates/core/Cargo.toml");
    let Some(manifest) = manifest else {
        return vec!["crates/core has no manifest".to_owned()];
    };
    let section = manifest.text.split("[dependencies]\n").nth(1);
    let lines = section.unwrap_or_default().lines();
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#') && !MAY_USE.contains(name))
        .map(|name| format!("crates/core/Cargo.toml: core may not depend on {name}"))
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
    fn core_that_looks_at_the_world_is_a_fault_and_words_about_it_are_not() {
        let looks = file("crates/core/src/a.rs", "fn f() { std::fs::read(\"x\"); }\n");
        assert_eq!(check(&[looks]).len(), 1);
        let says = file("crates/core/src/a.rs", "/// Never std::fs.\nfn f() {}\n");
        assert!(check(&[says]).is_empty());
    }

    #[test]
    fn a_dependency_beyond_the_list_is_a_fault() {
        let text = "[dependencies]\nserde.workspace = true\ntokio.workspace = true\n\n[dev-dependencies]\ninsta = \"1\"\n";
        let faults = dependencies(&[file("crates/core/Cargo.toml", text)]);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains("tokio"));
    }
}
