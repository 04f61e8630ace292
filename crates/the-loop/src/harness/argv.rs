//! Command lines of harnesses (DI-33): made from a declaration, and read back.

use the_loop_core::ids::HarnessSessionId;

use super::adapter::{Adapter, LaunchContext};

impl Adapter {
    /// Arguments of a new conversation.
    pub fn spawn_argv(&self, context: &LaunchContext<'_>, prompt: Option<&str>) -> Vec<String> {
        self.argv(&self.declaration().spawn, context, prompt)
    }

    /// Arguments that take up the recorded conversation.
    pub fn resume_argv(&self, context: &LaunchContext<'_>, prompt: Option<&str>) -> Vec<String> {
        self.argv(&self.declaration().resume, context, prompt)
    }

    /// Declared words, then the operator's, then the prompt. A word is filled in once: what was filled
    /// in is never looked at again.
    fn argv(
        &self,
        declared: &[String],
        context: &LaunchContext<'_>,
        prompt: Option<&str>,
    ) -> Vec<String> {
        let id = context.session_id.map_or("", HarnessSessionId::as_str);
        let values = [
            ("session_id", id),
            ("settings_file", context.settings_file.as_str()),
            ("mail_dir", context.mail_dir.as_str()),
            ("cwd", context.cwd.as_str()),
            ("slug", context.slug.as_str()),
        ];
        let mut argv: Vec<String> = declared.iter().map(|word| fill(word, &values)).collect();
        argv.extend(context.harness_args.iter().cloned());
        if let Some(prompt) = prompt {
            let words = self.declaration().prompt_args.iter();
            argv.extend(words.map(|word| fill(word, &[("prompt", prompt)])));
        }
        argv
    }

    /// The conversation that a command line of this harness names, where it is one of its declared ones.
    pub fn id_in_argv(&self, argv: &[String]) -> Option<HarnessSessionId> {
        let templates = [&self.declaration().resume, &self.declaration().spawn];
        templates.into_iter().find_map(|template| {
            let starts = argv.windows(template.len().max(1));
            starts.into_iter().find_map(|words| id_in(template, words))
        })
    }
}

/// The id that stands in these words where the template has it. Words that are filled in with
/// something else are passed over.
fn id_in(template: &[String], words: &[String]) -> Option<HarnessSessionId> {
    const ID: &str = "{session_id}";
    let mut id = None;
    for (template, word) in template.iter().zip(words) {
        if let Some((before, after)) = template.split_once(ID) {
            let inner = word.strip_prefix(before)?.strip_suffix(after)?;
            id = Some(HarnessSessionId::parse(inner)?);
        } else if !template.contains('{') && template != word {
            return None;
        }
    }
    id
}

/// Fills in words in braces, each once and from left to right; other braces stay as they are.
pub(super) fn fill(word: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(open) = rest.find('{') {
        filled.push_str(&rest[..open]);
        rest = &rest[open..];
        let found = values.iter().find_map(|(name, value)| {
            let after = rest.strip_prefix('{')?.strip_prefix(name)?;
            Some((value, after.strip_prefix('}')?))
        });
        if let Some((value, after)) = found {
            filled.push_str(value);
            rest = after;
        } else {
            filled.push('{');
            rest = &rest[1..];
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn di33_words_are_filled_in_once_and_other_braces_stay() {
        let values = [("cwd", "/x/{session_id}"), ("session_id", "abc")];
        assert_eq!(fill("{cwd}", &values), "/x/{session_id}");
        assert_eq!(fill("a{session_id}b{session_id}", &values), "aabcbabc");
        assert_eq!(fill("{\"a\":{session_id}}", &values), "{\"a\":abc}");
        assert_eq!(fill("{", &values), "{");
    }

    #[test]
    fn di23_the_id_is_read_back_from_a_command_line() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let claude = Adapter::claude();
        let id = |line: &str| {
            let id = claude.id_in_argv(&words(line));
            id.map(|id| id.as_str().to_owned())
        };
        let spawned = "claude --session-id u-1 --settings /x.json --model m -- text";
        assert_eq!(id(spawned), Some("u-1".to_owned()));
        let resumed = "node /usr/bin/claude --resume u-2 --settings /x.json";
        assert_eq!(id(resumed), Some("u-2".to_owned()));
        assert_eq!(id("claude --continue"), None);
        assert_eq!(id("claude"), None);
        assert_eq!(id("claude --resume ../x --settings /x.json"), None);
    }
}
