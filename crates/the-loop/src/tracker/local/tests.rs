//! Tickets in their files.

use the_loop_core::record::{CloseReason, EditedField};

use super::*;
use crate::store::testing::{Place, at, item};

fn tracker(place: &Place) -> LocalTracker {
    LocalTracker::new(&place.world, &place.layout)
}

fn repo() -> RepoRef {
    RepoRef::new("", "octo", "repo").unwrap()
}

/// Makes a ticket as a verb does.
fn new_ticket(place: &Place, title: &str) -> Ticket {
    let tracker = tracker(place);
    let lock = tracker.lock_numbers().unwrap();
    let item = tracker.next_ref(&lock, &repo()).unwrap();
    let ticket = Ticket::new(&item, title, "body", "ada", place.world.clock.now());
    assert!(tracker.create(&lock, &ticket).unwrap());
    ticket
}

#[test]
fn st65_numbers_are_the_highest_plus_one() {
    let place = Place::new();
    let refs: Vec<_> = (0..3)
        .map(|_| new_ticket(&place, "t").item.to_string())
        .collect();
    assert_eq!(
        refs,
        [
            "local:octo/repo#1",
            "local:octo/repo#2",
            "local:octo/repo#3"
        ]
    );
    place
        .world
        .disk
        .remove(&place.layout.ticket(&item("local:octo/repo#2")))
        .unwrap();
    assert_eq!(new_ticket(&place, "t").item.number(), 4);
    // A file that cannot be read has its number all the same; other names have none.
    let dir = place.layout.tickets_dir().join("octo/repo");
    for name in ["9.json", "x.json", "011.json", "12.json.bak", "0.json"] {
        place.put(&dir.join(name), b"{");
    }
    assert_eq!(new_ticket(&place, "t").item.number(), 10);
    place.put(&dir.join(format!("{}.json", u64::MAX)), b"{");
    let tracker = tracker(&place);
    let lock = tracker.lock_numbers().unwrap();
    let spent = tracker.next_ref(&lock, &repo()).unwrap_err();
    assert!(matches!(spent, TicketError::NumbersSpent(_)), "{spent}");
}

#[test]
fn st65_owner_and_repository_match_without_case() {
    let place = Place::new();
    new_ticket(&place, "first");
    let tracker = tracker(&place);
    let found = tracker.get(&item("local:Octo/REPO#1")).unwrap().unwrap();
    assert_eq!(found.item, item("local:octo/repo#1"));
    let lock = tracker.lock_numbers().unwrap();
    let shouted = RepoRef::new("", "OCTO", "Repo").unwrap();
    let next = tracker.next_ref(&lock, &shouted).unwrap();
    assert_eq!(next.number(), 2);
    let second = Ticket::new(&next, "second", "", "ada", at("2026-03-01T09:00:00Z"));
    tracker.create(&lock, &second).unwrap();
    assert_eq!(
        place
            .files()
            .iter()
            .filter(|f| f.starts_with("tickets/octo/repo/"))
            .count(),
        2
    );
    assert_eq!(tracker.list(Some(&shouted)).unwrap().tickets.len(), 2);
}

#[test]
fn st65_numbers_are_given_once_to_many_at_once() {
    let mut place = Place::with_clock(crate::clock::Clock::System);
    place.world.ids = crate::ids::Ids::Random;
    let numbers = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let number = new_ticket(&place, "t").item.number();
                    numbers.lock().unwrap().push(number);
                }
            });
        }
    });
    let mut numbers = numbers.into_inner().unwrap();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
}

#[test]
fn st66_changes_that_are_applied_twice_count_once() {
    let place = Place::new();
    let ticket = new_ticket(&place, "before");
    let tracker = tracker(&place);
    let it = &ticket.item;
    let label = "the-loop: auto-execute".to_owned();
    let edited = EntryKind::Edited {
        field: EditedField::Title,
        old: "before".to_owned(),
    };
    let reason = CloseReason::Completed;
    let changes = [
        TicketChange::Created(Box::new(ticket.clone())),
        TicketChange::Entry(tracker.entry("ada", EntryKind::Labeled { label })),
        TicketChange::Entry(tracker.comment("ada", "the-loop start")),
        TicketChange::Edit {
            entry: tracker.entry("ada", edited),
            text: "after".to_owned(),
        },
        TicketChange::Entry(tracker.entry("ada", EntryKind::Closed { reason })),
    ];
    assert!(!tracker.apply(it, &changes[0]).unwrap(), "it is there");
    for change in &changes[1..] {
        assert!(tracker.apply(it, change).unwrap());
    }
    let text = place.text(&place.layout.ticket(it)).unwrap();
    for change in &changes {
        assert!(!tracker.apply(it, change).unwrap());
    }
    assert_eq!(place.text(&place.layout.ticket(it)).unwrap(), text);
    let now = tracker.get(it).unwrap().unwrap();
    assert_eq!(now.title, "after");
    assert_eq!(now.entries.len(), 4);
    assert_eq!(now.state.as_str(), "closed");
}

#[test]
fn st66_a_new_ticket_is_made_from_its_delivery_after_a_crash() {
    let place = Place::new();
    let tracker = tracker(&place);
    let it = item("local:octo/repo#1");
    let mut ticket = Ticket::new(&it, "t", "b", "ada", at("2026-03-01T09:00:00Z"));
    ticket.apply(&tracker.comment("ada", "the-loop start"), None);
    let change = TicketChange::Created(Box::new(ticket.clone()));
    assert!(tracker.apply(&it, &change).unwrap());
    assert_eq!(tracker.get(&it).unwrap().unwrap(), ticket);
    // An entry that the file lacks is added to it.
    ticket.apply(&tracker.comment("ada", "more"), None);
    let change = TicketChange::Created(Box::new(ticket.clone()));
    assert!(tracker.apply(&it, &change).unwrap());
    assert_eq!(tracker.get(&it).unwrap().unwrap().entries.len(), 2);
    // A different ticket has the number: it stays what it is.
    let other = Ticket::new(&it, "other", "", "bob", at("2026-03-01T10:00:00Z"));
    let before = place.text(&place.layout.ticket(&it));
    let taken = tracker.apply(&it, &TicketChange::Created(Box::new(other)));
    assert!(matches!(taken, Err(TicketError::Taken(_))));
    assert_eq!(place.text(&place.layout.ticket(&it)), before);
}

#[test]
fn in56_reactions_stay_on_the_comment() {
    let place = Place::new();
    let it = new_ticket(&place, "t").item;
    let tracker = tracker(&place);
    let comment = tracker.comment("ada", "hello");
    let id = comment.id.clone();
    tracker.apply(&it, &TicketChange::Entry(comment)).unwrap();
    assert!(tracker.add_reaction(&it, &id, "eyes").unwrap());
    assert!(!tracker.add_reaction(&it, &id, "eyes").unwrap());
    assert!(tracker.add_reaction(&it, &id, "rocket").unwrap());
    let text = place.text(&place.layout.ticket(&it)).unwrap();
    assert!(text.contains("\"reactions\": [\n        \"eyes\",\n        \"rocket\"\n      ]"));
    let missing = tracker.add_reaction(&it, "nobody", "eyes");
    assert!(matches!(missing, Err(TicketError::NoComment { .. })));
    let unknown = tracker.add_reaction(&item("local:octo/repo#9"), &id, "eyes");
    assert!(matches!(unknown, Err(TicketError::Unknown(_))));
}

#[test]
fn entry_ids_are_ordered_by_time() {
    let place = Place::new();
    let tracker = tracker(&place);
    let first = tracker.comment(OWN_ACTOR, "a");
    place.world.clock.advance(Duration::from_millis(1));
    let second = tracker.comment(OWN_ACTOR, "b");
    assert!(first.id < second.id);
    assert_eq!(first.actor, "the-loop");
}

#[test]
fn st31_a_broken_ticket_is_named_and_the_others_go_on() {
    let place = Place::new();
    new_ticket(&place, "good");
    let broken = place.layout.ticket(&item("local:octo/repo#2"));
    place.put(&broken, b"{\"ref\": \"local:octo/repo#2\",\n \"title\": 1}");
    let tracker = tracker(&place);
    let listed = tracker.list(None).unwrap();
    assert_eq!(listed.tickets.len(), 1);
    let fault = listed.problems[0].to_string();
    assert!(fault.contains("2.json: not a ticket ("), "{fault}");
    let change = TicketChange::Entry(tracker.comment("ada", "x"));
    for error in [
        tracker
            .apply(&item("local:octo/repo#2"), &change)
            .unwrap_err(),
        tracker.get(&item("local:octo/repo#2")).unwrap_err().into(),
    ] {
        assert!(
            matches!(error, TicketError::Store(StoreError::Fault(_))),
            "{error}"
        );
    }
    assert!(tracker.apply(&item("local:octo/repo#1"), &change).unwrap());
    assert!(place.text(&broken).unwrap().contains("\"title\": 1"));
}

#[test]
fn st10_a_file_that_holds_another_ref_is_not_the_ticket() {
    let place = Place::new();
    let ticket = Ticket::new(
        &item("local:octo/repo#7"),
        "t",
        "",
        "ada",
        at("2026-03-01T09:00:00Z"),
    );
    let file = place.layout.ticket(&item("local:octo/repo#1"));
    place.put(&file, &ticket.to_bytes());
    let tracker = tracker(&place);
    assert!(tracker.get(&item("local:octo/repo#1")).unwrap().is_none());
    assert!(tracker.list(None).unwrap().tickets.is_empty());
    let mine = Ticket::new(
        &item("local:octo/repo#1"),
        "m",
        "",
        "ada",
        at("2026-03-01T09:00:00Z"),
    );
    let lock = tracker.lock_numbers().unwrap();
    let taken = tracker.create(&lock, &mine);
    assert!(matches!(taken, Err(TicketError::Taken(_))));
    assert_eq!(tracker.next_ref(&lock, &repo()).unwrap().number(), 2);
}

#[test]
fn tickets_of_other_providers_are_none_of_ours() {
    let place = Place::new();
    let tracker = tracker(&place);
    let foreign = item("github:octo/repo#1");
    assert!(tracker.get(&foreign).unwrap().is_none());
    let ticket = Ticket::new(&foreign, "t", "", "ada", at("2026-03-01T09:00:00Z"));
    let lock = tracker.lock_numbers().unwrap();
    let refused = tracker.create(&lock, &ticket);
    assert!(matches!(refused, Err(TicketError::NotLocal(_))));
    assert!(tracker.list(None).unwrap().tickets.is_empty());
}

#[test]
fn tickets_are_listed_by_repository_and_number() {
    let place = Place::new();
    for text in [
        "local:octo/repo#10",
        "local:octo/repo#9",
        "local:Acme/x#1",
        "local:octo/a#3",
    ] {
        let ticket = Ticket::new(&item(text), "t", "", "ada", at("2026-03-01T09:00:00Z"));
        place.put(&place.layout.ticket(&ticket.item), &ticket.to_bytes());
    }
    let all = tracker(&place).list(None).unwrap().tickets;
    let refs: Vec<_> = all.iter().map(|t| t.item.to_string()).collect();
    let expected = [
        "local:Acme/x#1",
        "local:octo/a#3",
        "local:octo/repo#9",
        "local:octo/repo#10",
    ];
    assert_eq!(refs, expected);
}
