//! Every event has a place in the code that makes it (EV-4). A name nobody writes yet is in the list of
//! reserved names and has no variant.

use std::collections::HashSet;

use regex::Regex;
use the_loop_core::event::CATALOGUE;

use crate::files::Text;

/// Every variant that nobody makes.
pub fn check(files: &[Text]) -> Vec<String> {
    let Ok(made) = Regex::new(r"\bLogEvent::([A-Z]\w*)\s*\{\s*(?:\.\.\s*\})?") else {
        return vec!["the pattern of the event check is broken".to_owned()];
    };
    let shipped = files
        .iter()
        .filter(|file| file.path.starts_with("crates/the-loop/src/"));
    let code = shipped.filter_map(Text::product_code);
    let mut seen: HashSet<&str> = HashSet::new();
    for found in code.flat_map(|code| made.captures_iter(code)) {
        // `LogEvent::Name { .. }` reads one and makes none.
        let reads = found.get(0).is_some_and(|all| all.as_str().ends_with('}'));
        if let Some(name) = found.get(1).filter(|_| !reads) {
            seen.insert(name.as_str());
        }
    }
    CATALOGUE
        .iter()
        .filter(|event| !seen.contains(event.variant))
        .map(|event| {
            format!(
                "{} (LogEvent::{}) is never written",
                event.name, event.variant
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ev4_an_event_that_is_only_read_is_not_written() {
        let file = |text: &str| Text {
            path: "crates/the-loop/src/a.rs".to_owned(),
            text: text.to_owned(),
        };
        let all = CATALOGUE.len();
        let variant = CATALOGUE[0].variant;
        let reads = format!("if let LogEvent::{variant} {{ .. }} = e {{}}\n");
        assert_eq!(check(&[file(&reads)]).len(), all);
        let makes = format!("log(LogEvent::{variant} {{ a: 1 }});\n");
        assert_eq!(check(&[file(&makes)]).len(), all - 1);
    }
}
