use super::*;

fn at(minute: i64) -> Timestamp {
    Timestamp::from_unix_ms(minute * 60_000)
}

fn actor(login: &str) -> Actor {
    Actor {
        login: login.to_owned(),
        id: None,
        bot: false,
    }
}

fn said(minute: i64, login: &str, body: &str) -> Said {
    Said {
        id: format!("IC_{minute}"),
        body: body.to_owned(),
        author: Some(actor(login)),
        at: at(minute),
        is_edited: false,
    }
}

fn chosen(thread: &[Said], change: impl Fn(&mut FirstSight<'_>)) -> Vec<usize> {
    let authorized = AuthorizedUsers::new(["octocat"]);
    let keywords = Keywords::default();
    let mut facts = FirstSight {
        keywords: &keywords,
        authorized: &authorized,
        over_until: None,
        has_control: false,
        session_since: None,
    };
    change(&mut facts);
    first_sight(thread, &facts)
}

#[test]
fn in41_a_cursor_never_goes_back_and_settles_on_the_newest_change() {
    let next = |before, newest: i64, answered: i64| {
        cursor(at(before), Some(at(newest)), Some(at(answered)))
    };
    assert_eq!(cursor(at(8), None, Some(at(90))), at(8));
    // What changed just now is read again: it may have had company that does not show yet.
    assert_eq!(next(5, 10, 10), at(8));
    assert_eq!(next(5, 10, 11), at(9));
    assert_eq!(next(5, 10, 12), at(10));
    assert_eq!(next(5, 10, 99), at(10));
    assert_eq!(next(9, 10, 10), at(9));
    // A host whose clock is behind its own rows.
    assert_eq!(next(5, 10, 7), at(5));
    // One that does not say what time it is.
    assert_eq!(cursor(at(5), Some(at(10)), None), at(8));
}

#[test]
fn in45_of_a_first_sight_only_the_last_command_counts() {
    let thread = [
        said(1, "octocat", "the-loop start"),
        said(2, "octocat", "just words"),
        said(3, "octocat", "the-loop start"),
        said(4, "mallory", "the-loop stop"),
        said(5, "octocat", "> the-loop stop"),
        said(6, "octocat", "more words"),
    ];
    assert_eq!(chosen(&thread, |_| {}), [2]);
    assert_eq!(chosen(&thread, |f| f.has_control = true), [0; 0]);
    assert_eq!(chosen(&thread, |f| f.over_until = Some(at(2))), [2]);
    assert_eq!(chosen(&thread, |f| f.over_until = Some(at(3))), [0; 0]);
}

#[test]
fn in45_an_edited_command_counts_for_nothing_and_no_earlier_one_takes_its_place() {
    let mut thread = [
        said(1, "octocat", "the-loop start"),
        said(2, "octocat", "the-loop start"),
    ];
    thread[1].is_edited = true;
    assert_eq!(chosen(&thread, |_| {}), [0; 0]);
}

#[test]
fn in45_a_command_of_an_agent_a_bot_or_nobody_is_none() {
    let mut agent = said(1, "octocat", "the-loop start");
    agent.body = format!("{AGENT_COMMENT_MARK}\nthe-loop start");
    let mut nobody = said(2, "octocat", "the-loop start");
    nobody.author = None;
    let mut bot = said(3, "octocat", "the-loop start");
    bot.author.as_mut().unwrap().bot = true;
    let two = said(4, "octocat", "the-loop start\nthe-loop stop");
    assert_eq!(chosen(&[agent, nobody, bot, two], |_| {}), [0; 0]);
}

#[test]
fn in45_what_was_said_since_a_session_lives_is_told_to_it() {
    let thread = [
        said(1, "octocat", "before"),
        said(2, "octocat", "the-loop start"),
        said(3, "octocat", "after"),
        said(4, "mallory", "judged by the guards"),
    ];
    let told = |f: &mut FirstSight<'_>| {
        f.has_control = true;
        f.session_since = Some(at(2));
    };
    assert_eq!(chosen(&thread, told), [2, 3]);
    let reset = |f: &mut FirstSight<'_>| {
        told(f);
        f.over_until = Some(at(3));
    };
    assert_eq!(chosen(&thread, reset), [3]);
}

/// Every combination of what the gate looks at, against the rule in its own words.
#[test]
fn in46_the_gate_is_open_only_where_somebody_authorised_stands_behind_it() {
    let authorized = AuthorizedUsers::new(["octocat"]);
    let commands = [
        None,
        Some((ControlCommand::Start, "octocat")),
        Some((ControlCommand::Start, "mallory")),
        Some((ControlCommand::Stop, "octocat")),
        Some((ControlCommand::Pause, "octocat")),
        Some((ControlCommand::Cleanup, "octocat")),
    ];
    let (octocat, mallory) = (actor("octocat"), actor("mallory"));
    let authors = [None, Some(&octocat), Some(&mallory)];
    let bools = [false, true];
    for (recorded, author) in commands.iter().flat_map(|c| authors.map(|a| (*c, a))) {
        for bits in 0..16_u8 {
            let bit = |n: u8| bools[usize::from(bits >> n & 1)];
            let presence = Presence {
                is_armed_by_label: bit(0),
                is_owned: bit(1),
                gave_up: bit(2),
                recorded,
                start_required: bit(3),
                author,
                authorized: &authorized,
            };
            let command = recorded.map(|(command, _)| command);
            let wanted = bit(0)
                && !bit(1)
                && !bit(2)
                && match command {
                    None => !bit(3),
                    Some(command) => command == ControlCommand::Start,
                };
            let by_command = recorded.is_some_and(|(_, who)| who == "octocat");
            let by_author = author.is_some_and(|who| who.login == "octocat");
            let expected = match (wanted, by_command || by_author) {
                (false, _) => Gate::Closed,
                (true, true) => Gate::Open(octocat.clone()),
                (true, false) => Gate::AskWhoLabelled,
            };
            assert_eq!(gate(&presence), expected, "{presence:?}");
        }
    }
}

#[test]
fn in44_a_ledger_keeps_the_newest_words_each_once_and_all_else_as_it_was() {
    let empty: Map = serde_json::from_str(r#"{"spawn": {"gaveUp": true}}"#).unwrap();
    let mut ledger = with_seen(&empty, "IC_0").unwrap();
    assert_eq!(ledger["spawn"]["gaveUp"], true);
    assert_eq!(with_seen(&ledger, "IC_0"), None);
    for n in 1..=SEEN_MAX {
        ledger = with_seen(&ledger, &format!("IC_{n}")).unwrap();
    }
    let seen = ledger[SEEN].as_array().unwrap();
    assert_eq!((seen.len(), &seen[0]), (SEEN_MAX, &"IC_1".into()));
    // What is no list is begun anew.
    let odd: Map = serde_json::from_str(r#"{"seenComments": 7}"#).unwrap();
    assert_eq!(
        with_seen(&odd, "IC_0").unwrap()[SEEN],
        serde_json::json!(["IC_0"])
    );
}
