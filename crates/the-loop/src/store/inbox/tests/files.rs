//! The file: whose it is, its version, its damage (ST-14, ST-60, ST-61).

use rusqlite::Connection;

use super::*;
use crate::store::inbox::schema::{Check, STEPS};

/// A database of version 1 as it was released, with rows. It is never edited.
const VERSION_1: &str = include_str!("version_1.sql");

fn make(bench: &Bench, sql: &str) {
    OsDisk.create_dir_all(bench.path.parent().unwrap()).unwrap();
    let connection = Connection::open(&bench.path).unwrap();
    connection.execute_batch(sql).unwrap();
}

fn number(path: &Utf8Path, sql: &str) -> i64 {
    let connection = Connection::open(path).unwrap();
    connection.query_row(sql, (), |row| row.get(0)).unwrap()
}

#[test]
fn st60_a_new_database_says_whose_it_is_and_nobody_else_may_read_it() {
    let bench = Bench::new();
    let opened = Inbox::open(&bench.world, &bench.path).unwrap();
    assert!(opened.created);
    assert_eq!(opened.migrated, None);
    opened.inbox.accept(&comment("a")).unwrap();
    for suffix in ["", "-wal", "-shm"] {
        let path = Utf8PathBuf::from(format!("{}{suffix}", bench.path));
        let meta = OsDisk.meta(&path).unwrap().unwrap();
        assert_eq!(meta.mode, 0o600, "{path}");
    }
    assert_eq!(number(&bench.path, "PRAGMA application_id"), 0x746C_6F70);
    assert_eq!(number(&bench.path, "PRAGMA user_version"), 1);
    assert_eq!(number(&bench.path, "PRAGMA auto_vacuum"), 2);
    let mode: String = Connection::open(&bench.path)
        .unwrap()
        .query_row("PRAGMA journal_mode", (), |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
    let of_the_writer = opened.inbox.write(|connection| {
        let number = |sql| connection.query_row(sql, (), |row| row.get::<_, i64>(0));
        let timeout = number("PRAGMA busy_timeout")?;
        Ok((
            number("PRAGMA synchronous")?,
            number("PRAGMA foreign_keys")?,
            timeout,
        ))
    });
    assert_eq!(of_the_writer, Ok((2, 1, 10_000)));
    drop(opened);
    let again = Inbox::open(&bench.world, &bench.path).unwrap();
    assert!(!again.created);
    assert_eq!(ids(&again.inbox), ["guid-a"]);
}

#[test]
fn st60_two_processes_that_make_it_at_once_make_one() {
    for _ in 0..10 {
        let bench = Bench::new();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (mut world, path) = (bench.world.clone(), bench.path.clone());
                world.clock = Clock::System;
                std::thread::spawn(move || Inbox::open(&world, &path).unwrap())
            })
            .collect();
        let opened: Vec<Opened> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        assert_eq!(opened.iter().filter(|o| o.created).count(), 1);
    }
}

#[test]
fn st60_a_database_of_version_1_is_read_and_carried_on() {
    let bench = Bench::new();
    make(&bench, VERSION_1);
    let opened = Inbox::open(&bench.world, &bench.path).unwrap();
    assert!(!opened.created);
    assert_eq!(opened.migrated, None);
    let inbox = opened.inbox;
    assert_eq!(
        ids(&inbox),
        ["72d3162e-0001", "72d3162e-0002", "72d3162e-0003"]
    );
    let work = inbox.items_with_work(bench.now()).unwrap();
    assert_eq!(work[0].item, item("github:Octo/Repo#1"));
    let open = inbox.open_outcomes(&key(A)).unwrap();
    assert_eq!(
        open[0].marker.as_ref().unwrap().as_str(),
        "dlv-00112233445566aa"
    );
    assert_eq!(open[0].delivery.as_ref().unwrap().event, "issue_comment");
    assert_eq!(inbox.unrouted(bench.now()).unwrap()[0].seq, 3);
    let mut known = comment("x");
    known.content_key = "github/github.com/comment/IC_kwDO1/created".to_owned();
    assert!(matches!(
        inbox.accept(&known).unwrap(),
        Accepted::Duplicate { seq: 1, .. }
    ));
    assert_eq!(
        new_seq(inbox.accept(&comment("new")).unwrap()),
        41,
        "no seq is used twice"
    );
    assert_eq!(inbox.watermark(&key(B)).unwrap().unwrap().through_seq, 40);
    assert!(
        inbox
            .parked(&Scope::Item(item(B)))
            .unwrap()
            .unwrap()
            .is_in_force()
    );
    walk(
        &inbox,
        1,
        A,
        &[State::Sending, State::Pasted, State::Confirmed],
    );
}

/// A step that no release has taken yet.
const NEXT: &str =
    "CREATE TABLE later (x INTEGER) STRICT; INSERT INTO meta VALUES ('later', 'yes', 0);";

#[test]
fn st60_an_older_version_is_copied_and_then_brought_up_to_date() {
    let bench = Bench::new();
    make(&bench, VERSION_1);
    let local = bench.path.parent().unwrap().to_owned();
    OsDisk
        .create_new(&local.join("inbox.db.v0.bak"), b"older", 0o600)
        .unwrap();
    OsDisk
        .create_new(&local.join("inbox.db.vx.bak"), b"not ours", 0o600)
        .unwrap();
    let steps = [STEPS[0], NEXT];
    let open = || Inbox::open_with(&bench.world, &bench.path, Check::Whole, &steps).unwrap();
    let opened = open();
    let backup = local.join("inbox.db.v1.bak");
    let expected = Migrated {
        from: 1,
        to: 2,
        backup: backup.clone(),
    };
    assert_eq!(opened.migrated, Some(expected));
    assert_eq!(ids(&opened.inbox).len(), 3);
    assert_eq!(opened.inbox.meta("later").unwrap().unwrap().0, "yes");
    drop(opened);
    assert_eq!(number(&bench.path, "PRAGMA user_version"), 2);
    assert_eq!(number(&backup, "PRAGMA user_version"), 1);
    assert_eq!(number(&backup, "SELECT count(*) FROM deliveries"), 3);
    assert_eq!(OsDisk.meta(&backup).unwrap().unwrap().mode, 0o600);
    let kept = OsDisk.list(&local).unwrap();
    let backups: Vec<&String> = kept.iter().filter(|name| name.contains(".bak")).collect();
    assert_eq!(backups, ["inbox.db.v1.bak", "inbox.db.vx.bak"]);
    assert_eq!(open().migrated, None);

    // The release before may look, and says both numbers when it would have to write.
    let error = Inbox::open(&bench.world, &bench.path).unwrap_err();
    assert_eq!(error, InboxError::Newer { found: 2, known: 1 });
    let reader = Inbox::open_read_only(&bench.world, &bench.path)
        .unwrap()
        .unwrap();
    assert_eq!(ids(&reader).len(), 3);
}

#[test]
fn st60_a_migration_that_fails_leaves_the_old_version() {
    for step in [NEXT, "CREATE TABLE broken (; "] {
        let bench = Bench::new();
        make(&bench, VERSION_1);
        if step == NEXT {
            bench
                .disk
                .watch(|_, _| Err(io::Error::other("no space left on device")));
        }
        let steps = [STEPS[0], step];
        Inbox::open_with(&bench.world, &bench.path, Check::Whole, &steps).unwrap_err();
        bench.disk.watch(|_, work| work());
        let opened = Inbox::open(&bench.world, &bench.path).unwrap();
        assert_eq!(ids(&opened.inbox).len(), 3);
    }
}

#[test]
fn st60_somebody_elses_database_is_left_alone() {
    let bench = Bench::new();
    for (name, sql) in [
        ("no-id.db", "CREATE TABLE theirs (x)"),
        (
            "other-id.db",
            "PRAGMA application_id = 7; CREATE TABLE theirs (x)",
        ),
    ] {
        let path = bench.path.with_file_name(name);
        OsDisk.create_dir_all(path.parent().unwrap()).unwrap();
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let before = OsDisk.read(&path, 1 << 20).unwrap();
        for error in [
            Inbox::open(&bench.world, &path).unwrap_err(),
            Inbox::open_read_only(&bench.world, &path).unwrap_err(),
        ] {
            assert!(matches!(error, InboxError::Foreign { .. }), "{error:?}");
        }
        assert_eq!(OsDisk.read(&path, 1 << 20).unwrap(), before);
    }
    let directory = bench.path.with_file_name("directory.db");
    OsDisk.create_dir_all(&directory).unwrap();
    let error = Inbox::open(&bench.world, &directory).unwrap_err();
    assert!(matches!(error, InboxError::Foreign { .. }));
}

#[test]
fn st61_damage_is_found_at_start_and_the_file_stays() {
    let bench = Bench::new();
    let inbox = bench.open();
    for n in 0..200 {
        let mut delivery = comment(&n.to_string());
        delivery.facts.title = Some("x".repeat(500));
        drop(inbox.accept_later(delivery));
    }
    inbox.accept(&comment("last")).unwrap();
    drop(inbox);
    let mut bytes = OsDisk.read(&bench.path, 1 << 30).unwrap();
    // Whole pages in the middle of the tree, and the shape of the page that leads to them.
    for at in (4096 * 2..bytes.len()).step_by(4096) {
        bytes[at..at + 64].fill(0xff);
    }
    OsDisk.write_atomic(&bench.path, &bytes, false).unwrap();
    let error = Inbox::open(&bench.world, &bench.path).unwrap_err();
    assert!(
        matches!(&error, InboxError::Damaged { path, .. } if *path == bench.path),
        "{error:?}"
    );
    assert!(!error.may_pass());
    assert_eq!(OsDisk.read(&bench.path, 1 << 30).unwrap(), bytes);

    OsDisk
        .write_atomic(&bench.path, &[b'?'; 5000], false)
        .unwrap();
    for error in [
        Inbox::open(&bench.world, &bench.path).unwrap_err(),
        Inbox::open_read_only(&bench.world, &bench.path).unwrap_err(),
    ] {
        assert!(matches!(error, InboxError::Damaged { .. }), "{error:?}");
    }
}

#[test]
fn st61_a_missing_database_is_nothing_to_look_at_and_made_anew_to_write() {
    let bench = Bench::new();
    let look = || Inbox::open_read_only(&bench.world, &bench.path).unwrap();
    assert!(look().is_none());
    assert_eq!(
        OsDisk.meta(&bench.path).unwrap(),
        None,
        "looking makes nothing"
    );
    OsDisk.create_dir_all(bench.path.parent().unwrap()).unwrap();
    OsDisk.create_new(&bench.path, b"", 0o600).unwrap();
    assert!(look().is_none(), "what a crash left while it was made");
    assert!(Inbox::open(&bench.world, &bench.path).unwrap().created);
    assert!(look().is_some());
}

#[test]
fn what_is_left_to_do_is_found_without_reading_what_is_remembered() {
    let bench = Bench::new();
    let inbox = bench.open();
    let plan = |sql: String| -> String {
        inbox
            .read(|connection| {
                let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
                let lines = statement.query_map((), |row| row.get::<_, String>(3))?;
                Ok(lines.collect::<Result<Vec<_>, _>>()?.join("\n"))
            })
            .unwrap()
    };
    let open = rows::open_outcome("o.");
    let plan_of_outcomes = plan(format!(
        "SELECT o.seq FROM outcomes o JOIN deliveries d ON d.seq = o.seq WHERE {open}"
    ));
    assert!(
        plan_of_outcomes.contains("outcomes_open"),
        "{plan_of_outcomes}"
    );
    let unfinished = rows::unfinished_outcome("");
    let plan_of_work = plan(format!(
        "SELECT item_key, min(seq) FROM outcomes WHERE {unfinished} GROUP BY item_key"
    ));
    assert!(plan_of_work.contains("outcomes_open"), "{plan_of_work}");
    let plan_of_deliveries = plan(format!(
        "SELECT d.seq FROM deliveries d WHERE {} AND d.state = 'accepted' ORDER BY d.seq",
        rows::OPEN_DELIVERY
    ));
    assert!(
        plan_of_deliveries.contains("deliveries_open"),
        "{plan_of_deliveries}"
    );
}

#[test]
fn a_row_of_a_newer_release_does_not_stop_the_others() {
    let bench = Bench::new();
    let inbox = bench.open();
    for name in ["strange", "unreadable", "fine"] {
        inbox.accept(&comment(name)).unwrap();
    }
    inbox
        .write(|connection| {
            connection.execute_batch(
                "UPDATE deliveries SET ingress = 'pigeon' WHERE seq = 1;
                 UPDATE deliveries SET body = CAST('{\"effect\": 1}' AS BLOB) WHERE seq = 2;",
            )?;
            Ok(())
        })
        .unwrap();
    let rows = inbox.unrouted(bench.now()).unwrap();
    assert_eq!(rows.len(), 2);
    assert!(matches!(rows[0].delivery, Err(BodyFault::Unreadable(_))));
    assert!(rows[1].delivery.is_ok());
    let error = inbox.show("1").unwrap_err();
    assert!(
        matches!(error, InboxError::Unreadable { seq: 1, .. }),
        "{error:?}"
    );
}
