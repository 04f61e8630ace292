use super::*;
use crate::answers::{Answers, PullSeen};
use crate::ci::RunTry;
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

fn person(login: &str) -> Actor {
    Actor {
        login: login.to_owned(),
        id: None,
        bot: false,
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
        edited: false,
    })
}

/// Something about pull request 30 with this branch and these closing keywords.
fn pull(branch: &str, closes: &[&str], effect: Effect) -> Delivery {
    Delivery {
        delivery_id: "d".to_owned(),
        content_key: "k".to_owned(),
        numeric_key: None,
        ingress: Ingress::Webhook,
        item: item("github:octo/repo#30"),
        event: "pull_request".to_owned(),
        action: None,
        actor: Some(person("maintainer")),
        received_at: Timestamp::from_unix_ms(0),
        facts: ItemFacts {
            author: Some(person("author")),
            ..ItemFacts::default()
        },
        pull: Some(PullFacts {
            head_ref: Some(branch.to_owned()),
            is_own_branch: true,
            closes: closes.iter().map(|text| item(text)).collect(),
            ..PullFacts::default()
        }),
        place: None,
        asked: None,
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

fn with<T>(delivery: &Delivery, wish: &Wish<'_>, then: impl FnOnce(&Facts<'_>) -> T) -> T {
    let authorized = AuthorizedUsers::new(if wish.trusts_author {
        &["author"][..]
    } else {
        &[]
    });
    then(&Facts {
        delivery,
        owners: wish.owners,
        authorized: &authorized,
        own_account: None,
        is_command: wish.is_command,
    })
}

fn routed(delivery: &Delivery, wish: &Wish<'_>) -> Routed {
    with(delivery, wish, route)
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
fn in26_in14_a_pull_request_of_another_repository_belongs_to_its_item_and_ends_alone() {
    let owners = [owner("github:octo/a#12", &["github:octo/b#12"], "x")];
    let wish = Wish {
        owners: &owners,
        ..NOBODY
    };
    let elsewhere = |effect| {
        let mut delivery = pull("x", &[], effect);
        delivery.item = item("github:octo/b#12");
        delivery
    };
    assert_eq!(targets(&elsewhere(words()), &wish), ["github:octo/a#12"]);
    let closed = elsewhere(Effect::Close {
        ending: Ending::Closed,
        at: None,
        moved_to: None,
    });
    assert_eq!(targets(&closed, &wish), ["github:octo/b#12"]);
    assert_eq!(routed(&closed, &wish).owner, Some(item("github:octo/a#12")));
}

#[test]
fn in14_a_recorded_item_comes_before_one_that_the_body_names() {
    let owners = [
        owner("github:octo/repo#20", &[], "b"),
        owner("github:octo/repo#15", &["github:octo/repo#30"], "a"),
    ];
    let wish = Wish {
        owners: &owners,
        ..NOBODY
    };
    let both = pull("x", &["github:octo/repo#20"], words());
    assert_eq!(targets(&both, &wish), ["#15", "#20"]);
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

fn comment_on_pull(closes: &[&str]) -> Delivery {
    let mut comment = pull("x", closes, words());
    let shown = comment.pull.as_mut().unwrap();
    shown.head_ref = None;
    shown.is_own_branch = false;
    shown.is_partial = true;
    comment.facts.is_pull_request = true;
    comment
}

fn seen(number: u64, author: &str, branch: &str, closes: &[&str]) -> PullSeen {
    PullSeen {
        item: item(&format!("github:octo/repo#{number}")),
        author: Some(person(author)),
        facts: PullFacts {
            head_ref: Some(branch.to_owned()),
            is_own_branch: true,
            closes: closes.iter().map(|text| item(text)).collect(),
            ..PullFacts::default()
        },
    }
}

fn failed_check(pulls: &[u64], branch: &str) -> Delivery {
    let mut delivery = pull("x", &[], words());
    delivery.item = item(&format!("github:octo/repo#{}", pulls[0]));
    delivery.pull = None;
    delivery.facts = ItemFacts::default();
    delivery.effect = Effect::Check(CheckResult {
        conclusion: "failure".to_owned(),
        head_branch: Some(branch.to_owned()),
        pulls: pulls
            .iter()
            .map(|n| item(&format!("github:octo/repo#{n}")))
            .collect(),
        run: Some(RunTry { id: 8, attempt: 2 }),
        ..CheckResult::default()
    });
    delivery
}

#[test]
fn in18_what_a_comment_does_not_show_is_asked_for_once_and_by_whoever_has_no_owner() {
    let comment = comment_on_pull(&[]);
    let thirty = vec![item("github:octo/repo#30")];
    assert_eq!(with(&comment, &NOBODY, unknown_pulls), thirty);
    let owners = [owner("github:octo/repo#15", &["github:octo/repo#30"], "a")];
    let recorded = Wish {
        owners: &owners,
        ..NOBODY
    };
    assert!(with(&comment, &recorded, unknown_pulls).is_empty());
    // The part that it shows may do.
    let owners = [owner("github:octo/repo#15", &[], "a")];
    let live = Wish {
        owners: &owners,
        ..NOBODY
    };
    let says = comment_on_pull(&["github:octo/repo#15"]);
    assert!(with(&says, &live, unknown_pulls).is_empty());
    assert_eq!(targets(&says, &live), ["#15"]);
    // What is answered counts as if it had been shown.
    let mut answered = comment_on_pull(&[]);
    answered.asked = Some(Box::new(Answers {
        pulls: vec![seen(30, "author", "issue-16", &["github:octo/repo#15"])],
        ..Answers::default()
    }));
    assert!(with(&answered, &NOBODY, unknown_pulls).is_empty());
    assert_eq!(targets(&answered, &NOBODY), ["#16"]);
    assert_eq!(targets(&answered, &live), ["#15"]);
    assert!(!routed(&answered, &live).is_incomplete);
    // Ends, verbs and issues need nothing more.
    for effect in [
        Effect::Start { harness: None },
        Effect::Close {
            ending: Ending::Closed,
            at: None,
            moved_to: None,
        },
    ] {
        let mut delivery = comment_on_pull(&[]);
        delivery.effect = effect;
        assert!(with(&delivery, &NOBODY, unknown_pulls).is_empty());
    }
    let mut issue = comment_on_pull(&[]);
    (issue.pull, issue.facts.is_pull_request) = (None, false);
    assert!(with(&issue, &NOBODY, unknown_pulls).is_empty());
}

#[test]
fn in18_in31_a_check_asks_for_pull_requests_that_no_session_knows() {
    let check = failed_check(&[30, 31], "x");
    assert!(with(&check, &NOBODY, unknown_pulls).is_empty());
    let owners = [owner("github:octo/repo#15", &["github:octo/repo#31"], "a")];
    let wish = Wish {
        owners: &owners,
        ..NOBODY
    };
    let thirty = vec![item("github:octo/repo#30")];
    assert_eq!(with(&check, &wish, unknown_pulls), thirty);
    let mut answered = check.clone();
    answered.asked = Some(Box::new(Answers {
        pulls: vec![seen(30, "author", "x", &["github:octo/repo#16"])],
        ..Answers::default()
    }));
    let owners = [
        owner("github:octo/repo#15", &["github:octo/repo#31"], "a"),
        owner("github:octo/repo#16", &[], "b"),
    ];
    let both = Wish {
        owners: &owners,
        ..NOBODY
    };
    assert_eq!(targets(&answered, &both), ["#16", "#15"]);
    // A stranger's pull request chooses nobody's session (IN-17).
    answered.asked.as_mut().unwrap().pulls[0].author = Some(person("stranger"));
    assert_eq!(targets(&answered, &both), ["#15"]);
    assert_eq!(routed(&answered, &both).untrusted.len(), 1);
    let many: Vec<u64> = (40..90).collect();
    assert_eq!(
        with(&failed_check(&many, "x"), &both, unknown_pulls).len(),
        5
    );
}

#[test]
fn in19_an_item_that_only_a_branch_names_is_asked_for_and_left_out_when_it_is_not_there() {
    let sixteen = vec![item("github:octo/repo#16")];
    let mut delivery = pull("issue-16", &[], words());
    assert_eq!(with(&delivery, &NOBODY, doubtful_items), sixteen);
    for effect in [
        Effect::Notice { changed: vec![] },
        Effect::Close {
            ending: Ending::Closed,
            at: None,
            moved_to: None,
        },
    ] {
        assert!(with(&pull("issue-16", &[], effect), &NOBODY, doubtful_items).is_empty());
    }
    let said = pull("issue-16", &["github:octo/repo#16"], words());
    assert!(with(&said, &NOBODY, doubtful_items).is_empty());
    let owners = [owner("github:octo/repo#15", &["github:octo/repo#30"], "a")];
    let live = Wish {
        owners: &owners,
        ..NOBODY
    };
    assert!(with(&delivery, &live, doubtful_items).is_empty());
    let stranger = Wish {
        trusts_author: false,
        ..NOBODY
    };
    assert!(with(&delivery, &stranger, doubtful_items).is_empty());
    delivery.asked = Some(Box::new(Answers {
        missing: sixteen.clone(),
        ..Answers::default()
    }));
    let routed = routed(&delivery, &NOBODY);
    assert_eq!(routed.targets, [item("github:octo/repo#30")]);
    assert_eq!(routed.missing[0].item, sixteen[0]);
    // A keyword or a record speaks for it as well.
    let mut said = said;
    said.asked.clone_from(&delivery.asked);
    assert_eq!(targets(&said, &NOBODY), ["#16"]);
}

#[test]
fn in33_a_log_is_wanted_for_a_failure_that_somebody_hears_of() {
    let owners = [owner("github:octo/repo#15", &["github:octo/repo#30"], "a")];
    let live = Wish {
        owners: &owners,
        ..NOBODY
    };
    let failed = failed_check(&[30], "x");
    let run = RunTry { id: 8, attempt: 2 };
    assert_eq!(with(&failed, &live, job_wanted), Some(run));
    assert_eq!(with(&failed, &NOBODY, job_wanted), None);
    assert_eq!(with(&failed_check(&[31], "x"), &live, job_wanted), None);
    let mut passed = failed;
    if let Effect::Check(check) = &mut passed.effect {
        check.conclusion = "success".to_owned();
    }
    assert_eq!(with(&passed, &live, job_wanted), None);
}

#[test]
fn in17_the_own_account_may_say_what_its_pull_request_is_for() {
    let delivery = pull("issue-16", &["github:octo/repo#15"], words());
    let nobody = AuthorizedUsers::default();
    let own = person("Author");
    let facts = |own_account| Facts {
        delivery: &delivery,
        owners: &[],
        authorized: &nobody,
        own_account,
        is_command: false,
    };
    let sixteen = [item("github:octo/repo#16")];
    assert_eq!(route(&facts(Some(&own))).targets, sixteen);
    assert_eq!(route(&facts(None)).targets, [item("github:octo/repo#30")]);
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

#[test]
fn in14_what_the_tracker_links_itself_comes_before_branch_and_words_and_asks_for_the_same_trust() {
    let mut linked = pull("issue-16-x", &["github:octo/repo#15"], Effect::Opened);
    if let Some(pull) = &mut linked.pull {
        let items = ["github:octo/repo#17", "github:octo/repo#30"];
        pull.references = items.iter().map(|text| item(text)).collect();
    }
    let named = routed(&linked, &NOBODY);
    assert_eq!(named.targets[0], item("github:octo/repo#17"));
    let stranger = Wish {
        trusts_author: false,
        ..NOBODY
    };
    let named = routed(&linked, &stranger);
    assert_eq!(named.targets[0], item("github:octo/repo#30"));
    let sources: Vec<LinkSource> = named.untrusted[0].sources.clone();
    assert_eq!(sources, [LinkSource::ClosingReference]);
    // Also where only the number is known otherwise.
    if let Some(pull) = &mut linked.pull {
        pull.is_partial = true;
    }
    let owners = [owner("github:octo/repo#17", &[], "a")];
    let live = Wish {
        owners: &owners,
        ..NOBODY
    };
    assert_eq!(targets(&linked, &live)[0], "#17");
}
