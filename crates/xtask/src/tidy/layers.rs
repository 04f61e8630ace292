//! Nothing points up (`crates/the-loop/src/lib.rs` says which layers there are).

use regex::Regex;

use crate::files::Text;

/// Modules of `the-loop`, the lowest layer first. Modules of one layer may use each other.
const LAYERS: [&[&str]; 6] = [
    &["clock", "disk", "ids", "process"],
    &["world"],
    &["settings", "telemetry"],
    &["git", "harness", "store", "tmux", "tracker"],
    &["engine", "ops", "poll"],
    &["cli", "daemon", "ingress"],
];

const SOURCES: &str = "crates/the-loop/src/";

/// Every import that points up, and every module that is in no layer.
pub fn check(files: &[Text]) -> Vec<String> {
    let (Ok(one), Ok(many)) = (
        Regex::new(r"\b(?:crate|the_loop)::([a-z_]+)"),
        Regex::new(r"\bcrate::\{([^;]*)\};"),
    ) else {
        return vec!["the patterns of the layer check are broken".to_owned()];
    };
    let mut faults = Vec::new();
    for file in files {
        let Some(below) = file.path.strip_prefix(SOURCES) else {
            continue;
        };
        let (Some(module), Some(code)) = (module(below), file.product_code()) else {
            continue;
        };
        let Some(own) = layer(module) else {
            faults.push(format!("{}: module {module} is in no layer", file.path));
            continue;
        };
        let single = one.captures_iter(code).map(|found| found[1].to_owned());
        let grouped = many.captures_iter(code).flat_map(|found| heads(&found[1]));
        for used in single.chain(grouped) {
            if layer(&used).is_some_and(|layer| layer > own) {
                faults.push(format!("{}: {module} points up, to {used}", file.path));
            }
        }
    }
    faults.dedup();
    faults
}

/// The module a file belongs to. The roots of the crate belong to none.
fn module(below: &str) -> Option<&str> {
    let first = below.split('/').next()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (!matches!(name, "lib" | "main")).then_some(name)
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The first words of a group of imports, `a` and `b` of `a::{c, d}, b`.
fn heads(group: &str) -> Vec<String> {
    let mut heads = Vec::new();
    let mut depth = 0;
    let mut head = String::new();
    for c in group.chars().chain([',']) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let name = head.split("::").next().unwrap_or_default().trim();
                heads.push(name.to_owned());
                head.clear();
            }
            _ if depth == 0 => head.push(c),
            _ => {}
        }
    }
    heads
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> Text {
        let path = format!("{SOURCES}{path}");
        let text = text.to_owned();
        Text { path, text }
    }

    #[test]
    fn an_import_that_points_up_is_a_fault_however_it_is_written() {
        let below = "use crate::disk::Disk;\nuse crate::{git::Git, store::{files, lock}};\n";
        assert!(check(&[file("engine/mod.rs", below)]).is_empty());
        let up = check(&[file("store/lock.rs", "use crate::ops::error::OpError;\n")]);
        assert_eq!(up.len(), 1);
        let grouped = check(&[file(
            "git.rs",
            "use crate::{disk::Disk, engine::{Engine, Parts}};\n",
        )]);
        assert_eq!(grouped.len(), 1);
        let inline = check(&[file("disk.rs", "fn f() { crate::store::files::list() }\n")]);
        assert_eq!(inline.len(), 1);
    }

    #[test]
    fn a_new_module_needs_a_layer_and_tests_may_look_anywhere() {
        assert_eq!(check(&[file("poller.rs", "")]).len(), 1);
        assert!(check(&[file("store/tests.rs", "use crate::ops::tickets;\n")]).is_empty());
        let tail = "fn f() {}\n#[cfg(test)]\nmod tests {\n use crate::ops::tickets;\n}\n";
        assert!(check(&[file("store/files.rs", tail)]).is_empty());
    }
}
