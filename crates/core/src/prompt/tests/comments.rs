use super::*;
use crate::control::{Command, Keywords, Spoken};
use crate::ids::TmuxTarget;

#[test]
fn in58_comments_end_with_signature_and_mark_once() {
    let end = "\n\n_the-loop, on behalf of the operator_\n\n<!-- the-loop:agent-comment -->";
    assert_eq!(comment::sign("hello\n"), format!("hello{end}"));
    assert_eq!(
        comment::sign(&comment::sign("hello")),
        format!("hello{end}")
    );
    let marked = comment::mark("hello");
    assert_eq!(comment::mark(&marked), marked);
    assert!(marked.contains(AGENT_COMMENT_MARK));
    let target = TmuxTarget::parse("loop-github-octo-repo-15").unwrap();
    assert_eq!(
        comment::announcement("claude", &target, "the-loop"),
        format!(
            "A session is working on this.\n\n- session `loop-github-octo-repo-15`, claude\n\
             - watch: `tmux -L the-loop attach -r -t =loop-github-octo-repo-15`\n\
             - join: `tmux -L the-loop attach -t =loop-github-octo-repo-15`{end}"
        )
    );
    assert!(comment::waiting("permission", &target, "").contains("- join: `tmux attach -t =loop-"));
    assert_eq!(
        comment::ambiguous(&[Command::Start, Command::Stop]),
        format!(
            "This comment holds more than one command (start, stop). Nothing was done. Please send one \
             command on a line of its own.{end}"
        )
    );
    let gave_up = comment::gave_up(None, 3, "every attempt failed", "trk-1");
    assert!(gave_up.starts_with(
        "Delivery trk-1 could not be delivered after 3 attempts (every attempt failed).\n"
    ));
}

#[test]
fn in58_a_keyword_stands_only_in_the_comment_about_a_limit() {
    let item: WorkItemRef = LOCAL.parse().unwrap();
    let keywords = Keywords::default();
    let target = TmuxTarget::parse("loop-local-octo-repo-3").unwrap();
    let parked = comment::parked(
        "more than 60 deliveries in an hour",
        keywords.phrase(Command::Resume),
        &item,
    );
    assert_eq!(keywords.read(&parked), Spoken::Command(Command::Resume));
    for text in [
        comment::parked("more than 60 deliveries in an hour", None, &item),
        comment::announcement("claude", &target, "the-loop"),
        comment::ambiguous(Command::ALL),
        comment::gave_up(
            Some("https://github.com/o/r/issues/1#issuecomment-1"),
            3,
            "no answer",
            "d",
        ),
        comment::waiting("question", &target, "the-loop"),
    ] {
        assert_eq!(keywords.read(&text), Spoken::Text, "{text}");
    }
}
