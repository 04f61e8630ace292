use super::*;
use crate::delivery::{Actor, Ending, Ingress, ItemFacts, PullFacts, Text};
use crate::time::Timestamp;

fn item(text: &str) -> WorkItemRef {
    text.parse().unwrap()
}

fn owner(text: &str, pulls: &[&str], branch: &str) -> Owner {
    Owner {
        item: item(text),
        pulls: pulls.iter().map(|pull| item(pull).key()).collect(),
        branch: Some(branch.to_owned()),
    }
}

fn words() -> Effect {
    Effect::Text(Text {
        comment_id: None,
        body: "words".to_owned(),
        author: None,
        html_url: None,
        created_at: None,
        decision: None,
    })
}

/// Something about pull request 30 with this branch and these closing keywords.
fn pull(branch: &str, closes: &[&str], effect: Effect) -> Delivery {
    let login = "stranger".to_owned();
    Delivery {
        delivery_id: "d".to_owned(),
        content_key: "k".to_owned(),
        numeric_key: None,
        ingress: Ingress::Webhook,
        item: item("github:octo/repo#30"),
        event: "pull_request".to_owned(),
        action: None,
        actor: Some(Actor {
            login,
            id: None,
            bot: false,
        }),
        received_at: Timestamp::from_unix_ms(0),
        facts: ItemFacts::default(),
        pull: Some(PullFacts {
            head_ref: Some(branch.to_owned()),
            is_own_branch: true,
            closes: closes.iter().map(|text| item(text)).collect(),
            ..PullFacts::default()
        }),
        place: None,
        effect,
        entries: vec![],
    }
}

struct Wish<'a> {
    owners: &'a [Owner],
    trusts_author: bool,
    is_command: bool,
}

const NOBODY: Wish<'static> = Wish {
    owners: &[],
    trusts_author: true,
    is_command: false,
};

fn routed(delivery: &Delivery, wish: &Wish<'_>) -> Routed {
    route(&Facts {
        delivery,
        owners: wish.owners,
        trusts_author: wish.trusts_author,
        is_command: wish.is_command,
    })
}

fn targets(delivery: &Delivery, wish: &Wish<'_>) -> Vec<String> {
    let routed = routed(delivery, wish);
    routed
        .targets
        .iter()
        .map(|t| t.to_string().replace("github:octo/repo", ""))
        .collect()
}

#[test]
fn in14_in20_the_rows_of_the_router_s_table() {
    let both = pull("issue-16-x", &["github:octo/repo#15"], Effect::Opened);
    assert_eq!(targets(&both, &NOBODY), ["#16"]);
    let owners = [
        owner("github:octo/repo#15", &[], "a"),
        owner("github:octo/repo#16", &[], "b"),
    ];
    let live = Wish {
        owners: &owners,
        ..NOBODY
    };
    assert_eq!(targets(&both, &live), ["#16", "#15"]);
    let text = pull("issue-16-x", &["github:octo/repo#15"], words());
    assert_eq!(targets(&text, &live), ["#16", "#15"]);
    let command = Wish {
        is_command: true,
        ..live
    };
    assert_eq!(targets(&text, &command), ["#16"]);
    let other = pull("x", &["github:other/repo#3"], words());
    assert_eq!(targets(&other, &NOBODY), ["github:other/repo#3"]);
    assert_eq!(targets(&pull("x", &[], words()), &NOBODY), ["#30"]);
    let itself = pull("issue-30", &["github:octo/repo#30"], words());
    assert_eq!(targets(&itself, &NOBODY), ["#30"]);
}

#[test]
fn in14_a_session_that_lists_a_pull_request_or_has_its_branch_comes_first() {
    let recorded = [owner("github:octo/repo#15", &["github:octo/repo#30"], "a")];
    let wish = Wish {
        owners: &recorded,
        ..NOBODY
    };
    assert_eq!(
        targets(&pull("x", &["github:octo/repo#20"], words()), &wish),
        ["#15"]
    );
    let presence = pull("x", &["github:octo/repo#20"], Effect::Presence);
    assert_eq!(targets(&presence, &wish), ["#15"]);
    let branch = [owner("github:octo/repo#15", &[], "loop/x")];
    let wish = Wish {
        owners: &branch,
        ..NOBODY
    };
    assert_eq!(targets(&pull("loop/x", &[], words()), &wish), ["#15"]);
    let mut fork = pull("loop/x", &[], words());
    fork.pull.as_mut().unwrap().is_own_branch = false;
    assert_eq!(targets(&fork, &wish), ["#30"]);
    let elsewhere = [owner("github:other/repo#15", &[], "loop/x")];
    let wish = Wish {
        owners: &elsewhere,
        ..NOBODY
    };
    assert_eq!(targets(&pull("loop/x", &[], words()), &wish), ["#30"]);
}

#[test]
fn in17_a_stranger_s_pull_request_speaks_for_itself_alone() {
    let owners = [owner("github:octo/repo#15", &[], "a")];
    let wish = Wish {
        owners: &owners,
        trusts_author: false,
        is_command: false,
    };
    let delivery = pull("issue-15", &["github:octo/repo#15"], words());
    assert_eq!(targets(&delivery, &wish), ["#30"]);
    let untrusted = routed(&delivery, &wish).untrusted;
    assert_eq!(untrusted.len(), 1);
    assert_eq!(
        untrusted[0].sources,
        [LinkSource::Branch, LinkSource::Keyword]
    );
    // What a session recorded before stays.
    let recorded = [owner("github:octo/repo#15", &["github:octo/repo#30"], "a")];
    let wish = Wish {
        owners: &recorded,
        ..wish
    };
    assert_eq!(targets(&delivery, &wish), ["#15"]);
    assert!(routed(&delivery, &wish).untrusted.is_empty());
}

#[test]
fn in15_a_branch_of_a_fork_names_nothing() {
    let mut fork = pull("issue-7", &[], words());
    assert_eq!(targets(&fork, &NOBODY), ["#7"]);
    fork.pull.as_mut().unwrap().is_own_branch = false;
    assert_eq!(targets(&fork, &NOBODY), ["#30"]);
}

#[test]
fn in26_a_close_ends_what_was_closed_and_nothing_linked() {
    let owners = [owner("github:octo/repo#15", &["github:octo/repo#30"], "a")];
    let wish = Wish {
        owners: &owners,
        ..NOBODY
    };
    let close = Effect::Close {
        ending: Ending::Closed,
        at: None,
        moved_to: None,
    };
    let closed = pull("issue-15", &[], close);
    assert_eq!(targets(&closed, &wish), ["#30"]);
    assert_eq!(
        routed(&closed, &wish).owner,
        Some(item("github:octo/repo#15"))
    );
}

#[test]
fn in18_a_pull_request_known_by_number_is_incomplete_unless_a_session_knows_it() {
    let mut comment = pull("x", &[], words());
    comment.pull = None;
    comment.facts.is_pull_request = true;
    assert!(routed(&comment, &NOBODY).is_incomplete);
    let owners = [owner("github:octo/repo#15", &["github:octo/repo#30"], "a")];
    let wish = Wish {
        owners: &owners,
        ..NOBODY
    };
    assert!(!routed(&comment, &wish).is_incomplete);
    assert_eq!(targets(&comment, &wish), ["#15"]);
}

#[test]
fn di33_a_label_chooses_the_harness_in_any_case_and_two_choose_none() {
    assert_eq!(harness_label::<&str>(&[]), Ok(None));
    assert_eq!(harness_label(&["bug", "harness", "harness:"]), Ok(None));
    let chosen = Ok(Some("codex".to_owned()));
    assert_eq!(harness_label(&["bug", "harness:codex"]), chosen);
    assert_eq!(harness_label(&["Harness: Codex ", "harness:codex"]), chosen);
    let both = harness_label(&["harness:codex", "harness:demo"]);
    assert_eq!(both, Err(vec!["codex".to_owned(), "demo".to_owned()]));
}

#[test]
fn di46_a_pull_request_starts_from_its_head_and_a_ticket_from_the_default_branch() {
    use crate::workspace::StartFrom;
    let mut delivery = pull("feature", &[], words());
    let own = item("github:octo/repo#30");
    let start = |delivery: &Delivery| StartFrom::of(&own, Some(delivery));
    assert_eq!(start(&delivery), StartFrom::PullHead("feature".to_owned()));
    // An item that it only names is a ticket.
    let other = StartFrom::of(&item("github:octo/repo#15"), Some(&delivery));
    assert_eq!(other, StartFrom::DefaultBranch);
    delivery.pull.as_mut().unwrap().is_own_branch = false;
    assert_eq!(start(&delivery), StartFrom::PullRef);
    delivery.pull = None;
    assert_eq!(start(&delivery), StartFrom::DefaultBranch);
    delivery.facts.is_pull_request = true;
    assert_eq!(start(&delivery), StartFrom::PullRef);
    assert_eq!(StartFrom::of(&own, None), StartFrom::DefaultBranch);
}
