//! CF-13, DI-33: what may be declared of a harness.

use super::document::{checked, only, problems};

#[test]
fn cf13_a_name_that_is_no_harness_is_a_fault() {
    let there = "there are claude, cursor, demo";
    let names = the_loop_core::config::shape::HARNESSES.join(", ");
    let line = |at: &str, key: &str, found: &str| {
        format!("F:{at}: `routing.{key}` names no harness: {there}; found \"{found}\"")
            .replace("claude, cursor, demo", &names)
    };
    only(
        "routing: {defaultHarness: nobody}",
        &line("1:11", "defaultHarness", "nobody"),
    );
    only(
        "routing: {harnessArgs: {nobody: [-x]}}",
        &line("1:25", "harnessArgs.nobody", "nobody"),
    );
    only(
        "routing: {repoHarness: {octo/repo: nobody}}",
        &line("1:25", "repoHarness.octo/repo", "nobody"),
    );
    let near = problems("routing: {defaultHarness: cluade}");
    assert!(near[0].ends_with("(did you mean `claude`?)"), "{near:?}");
    let declared = "routing: {defaultHarness: mine, harnessArgs: {mine: [-x]}, \
                    repoHarness: {octo/repo: mine}, harnesses: {mine: {command: mine}}}";
    assert!(problems(declared).is_empty(), "{:?}", problems(declared));
}

#[test]
fn di33_a_declaration_is_checked_strictly() {
    for (fields, words) in [
        ("{}", "`routing.harnesses.mine.command` is required"),
        (
            "{command: ./mine}",
            "must be a name on the pane's PATH or an absolute path",
        ),
        (
            "{command: m, zzz: 1}",
            "unknown key `routing.harnesses.mine.zzz`",
        ),
        (
            "{command: m, spawn: ['{sesion_id}']}",
            "holds {sesion_id}, which is not filled in there",
        ),
        (
            "{command: m, spawn: ['{prompt}']}",
            "holds {prompt}, which is not filled in there",
        ),
        (
            "{command: m, spawn: ['{session_id}']}",
            "holds {session_id}, and `sessionId` is not assigned",
        ),
        (
            "{command: m, sessionId: assigned}",
            "must hold {session_id}: `sessionId` is assigned",
        ),
        (
            "{command: m, resume: [--last]}",
            "`routing.harnesses.mine.resume` must hold {session_id}",
        ),
        (
            "{command: m, promptArgs: [-i]}",
            "`routing.harnesses.mine.promptArgs` must hold {prompt}",
        ),
        (
            "{command: m, sessionId: maybe}",
            "must be one of assigned, file, screen, none",
        ),
        (
            "{command: m, sessionId: file, sessionIdPattern: /a/b}",
            "must be a path with *",
        ),
        (
            "{command: m, sessionId: screen, sessionIdPattern: abc}",
            "must have one group",
        ),
        (
            "{command: m, sessionId: screen, sessionIdPattern: '(a'}",
            "is no expression: ",
        ),
        (
            "{command: m, sessionIdPattern: x}",
            "needs `sessionId: file` or `sessionId: screen`",
        ),
        (
            "{command: m, signals: {ready: yes-please}}",
            "is no signal: expected hook:NAME",
        ),
        (
            "{command: m, signals: {idle: 'screen:('}}",
            "`routing.harnesses.mine.signals.idle` is no signal",
        ),
        (
            "{command: m, signals: {over: 'hook:X'}}",
            "unknown key `routing.harnesses.mine.signals.over`",
        ),
        (
            "{command: m, confirm: 'title:x'}",
            "`routing.harnesses.mine.confirm` is not understood",
        ),
        ("{command: m, confirm: transcript}", "needs a `transcript`"),
        (
            "{command: m, transcript: '/x/{slug}'}",
            "holds {slug}, which is not filled in there",
        ),
        (
            "{command: m, composerEmpty: '('}",
            "`routing.harnesses.mine.composerEmpty` is no expression",
        ),
        (
            "{command: m, dialogs: [{name: d}]}",
            "`routing.harnesses.mine.dialogs[0].screen` is required",
        ),
        (
            "{command: m, dialogs: [{screen: d}]}",
            "`routing.harnesses.mine.dialogs[0].name` is required",
        ),
        (
            "{command: m, dialogs: [{name: d, screen: '['}]}",
            "dialogs[0].screen` is no expression",
        ),
        (
            "{command: m, dialogs: [d]}",
            "`routing.harnesses.mine.dialogs[0]` must be a mapping",
        ),
        (
            "{command: m, dialogs: {}}",
            "`routing.harnesses.mine.dialogs` must be a list",
        ),
        (
            "{command: m, submitDelayMs: 10}",
            "must be between 50 and 10000",
        ),
        (
            "{command: m, env: {THE_LOOP_INSTANCE: x}}",
            "does not begin with THE_LOOP_",
        ),
    ] {
        let lines = problems(&format!("routing: {{harnesses: {{mine: {fields}}}}}"));
        assert_eq!(lines.len(), 1, "{fields}: {lines:?}");
        assert!(lines[0].starts_with("F:1:"), "{lines:?}");
        assert!(lines[0].contains(words), "{fields}: {lines:?}");
    }
    let bad_name = problems("routing: {harnesses: {Mine: {command: m}}}");
    assert!(
        bad_name[0].contains("a name of small letters"),
        "{bad_name:?}"
    );
}

#[test]
fn di33_single_fields_of_a_built_in_harness_can_be_changed() {
    let text = "routing: {harnesses: {claude: {submitDelayMs: 200, confirm: transcript}}}";
    assert!(problems(text).is_empty(), "{:?}", problems(text));
    let harness = &checked(text).settings.routing.harnesses["claude"];
    assert_eq!(harness.submit_delay_ms, Some(200));
    assert_eq!(harness.spawn, None);
}
