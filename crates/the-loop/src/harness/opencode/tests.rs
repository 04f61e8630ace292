use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::Connection;
use the_loop_core::confirm::{AgentState, Composer};
use the_loop_core::time::Timestamp;

use super::*;
use crate::disk::{Disk, OsDisk};
use crate::harness::adapter::Adapter;
use crate::harness::screen::ScreenView;
use crate::harness::testing::{at, marker, world};
use crate::harness::transcript::{Entry, Usage};

/// One screen: name, what was captured, the dialog, the composer asked for the marker, the state.
type Seen = (
    &'static str,
    &'static str,
    Option<&'static str>,
    Composer,
    Option<AgentState>,
);

macro_rules! seen {
    ($name:literal, $dialog:expr, $composer:expr, $state:expr) => {
        (
            $name,
            include_str!(concat!("../screens/opencode-1.18.33/", $name, ".txt")),
            $dialog,
            $composer,
            $state,
        )
    };
}

const IDLE: Option<AgentState> = Some(AgentState::Idle);
const WORKING: Option<AgentState> = Some(AgentState::Working);
const MENU: Option<AgentState> = Some(AgentState::Waiting(WaitingKind::Dialog));

const SCREENS: [Seen; 21] = [
    seen!("draft", None, Composer::Draft, IDLE),
    seen!("draft-home", None, Composer::Draft, IDLE),
    seen!("idle", None, Composer::Empty, IDLE),
    seen!("ours", None, Composer::Ours, IDLE),
    seen!("ours-home", None, Composer::Ours, IDLE),
    seen!("palette", None, Composer::Unknown, MENU),
    seen!("permission", Some("permission"), Composer::Unknown, None),
    seen!(
        "permission-always",
        Some("permission-always"),
        Composer::Unknown,
        None
    ),
    seen!("question", Some("question"), Composer::Unknown, None),
    seen!("queued", None, Composer::Empty, WORKING),
    seen!("ready", None, Composer::Empty, IDLE),
    seen!("retry", None, Composer::Empty, WORKING),
    seen!("shell", None, Composer::Draft, IDLE),
    seen!("small-draft", None, Composer::Draft, IDLE),
    seen!("small-interrupting", None, Composer::Empty, WORKING),
    // No model is known yet: nothing would be submitted.
    seen!("small-loading", None, Composer::Empty, None),
    seen!("small-palette", None, Composer::Unknown, MENU),
    seen!(
        "small-permission",
        Some("permission"),
        Composer::Unknown,
        None
    ),
    seen!("small-question", Some("question"), Composer::Unknown, None),
    seen!("small-slash", None, Composer::Draft, IDLE),
    seen!("working", None, Composer::Empty, WORKING),
];

fn screen(captured: &str) -> ScreenView {
    ScreenView::parse(captured, "OC | Done.", false, at(0))
}

#[test]
fn di27_screens_of_the_real_program_are_read_as_a_person_reads_them() {
    let opencode = Adapter::opencode();
    for (name, captured, dialog, composer, state) in SCREENS {
        let screen = screen(captured);
        let found = opencode.known_dialog(&screen).map(|d| d.name.as_str());
        assert_eq!(found, dialog, "{name}");
        assert_eq!(
            opencode.composer(&screen, Some(&marker())),
            composer,
            "{name}"
        );
        let told = screen_state(&screen).map(|(state, _)| state);
        assert_eq!(told, state, "{name}");
    }
}

#[test]
fn di27_a_paste_that_is_not_shown_is_nobodys_until_told() {
    let [small] = SCREENS
        .map(|(name, captured, ..)| (name == "small-draft").then_some(captured))
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()[..]
    else {
        panic!("the screen is there")
    };
    let pasted = screen(&small.replace("half a thought", "[Pasted ~2 lines] "));
    let opencode = Adapter::opencode();
    assert_eq!(opencode.composer(&pasted, None), Composer::Draft);
    assert_eq!(
        opencode.composer(&pasted, Some(&marker())),
        Composer::Unknown
    );
    let with_words = screen(&small.replace("half a thought", "[Pasted ~2 lines] and more"));
    assert_eq!(
        opencode.composer(&with_words, Some(&marker())),
        Composer::Draft
    );
}

const CONVERSATION: &str = "ses_dd01c3642ffeBGaABoNrGpVwnu";
const TABLES: &str = include_str!("conversation.sql");

/// A home with the real program's rows in its database, and a connection that writes as it does.
fn home() -> (tempfile::TempDir, Utf8PathBuf, Connection) {
    let (dir, home, _) = world();
    let path = home.join(".local/share/opencode/opencode.db");
    OsDisk.create_dir_all(path.parent().unwrap()).unwrap();
    let writer = Connection::open(&path).unwrap();
    writer.execute_batch("PRAGMA journal_mode = WAL").unwrap();
    writer.execute_batch(TABLES).unwrap();
    (dir, path, writer)
}

fn rows(path: &Utf8Path) -> database::Rows {
    let id = HarnessSessionId::parse(CONVERSATION).unwrap();
    database::Rows::new(path.to_owned(), id)
}

fn part(writer: &Connection, id: &str, message: &str, session: &str, made: i64, data: &str) {
    let sql = "INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?4, ?5)";
    writer
        .execute(sql, rusqlite::params![id, message, session, made, data])
        .unwrap();
}

fn message(writer: &Connection, id: &str, session: &str, made: i64, data: &str) {
    let sql = "INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4)";
    writer
        .execute(sql, rusqlite::params![id, session, made, data])
        .unwrap();
}

fn prompt(writer: &Connection, n: i64, text: &str) {
    let made = 1_796_100_000_000 + n;
    message(
        writer,
        &format!("msg_{n}"),
        CONVERSATION,
        made,
        r#"{"role":"user"}"#,
    );
    let data = json!({"type": "text", "text": text}).to_string();
    part(
        writer,
        &format!("prt_{n}"),
        &format!("msg_{n}"),
        CONVERSATION,
        made,
        &data,
    );
}

fn markers(entries: &[Entry]) -> Vec<String> {
    let told = entries.iter().flat_map(|entry| match entry {
        Entry::Prompt { markers, .. } => markers.clone(),
        _ => Vec::new(),
    });
    told.map(|marker| marker.to_string()).collect()
}

fn counted(entries: &[Entry]) -> Usage {
    let mut sum = Usage::default();
    for entry in entries {
        if let Entry::Answer { usage, .. } = entry {
            sum += *usage;
        }
    }
    sum
}

#[test]
fn di29_di37_prompts_ends_and_tokens_are_read_once() {
    let (_dir, path, writer) = home();
    let mut rows = rows(&path);
    let first = rows.read(&OsDisk).unwrap();
    let told: Vec<String> = (0..7).map(|n| format!("dlv-9f3c0a1b2d4e5f6{n}")).collect();
    assert_eq!(markers(&first), told);
    assert_eq!(
        first[0],
        Entry::Prompt {
            at: at(1_796_099_787_637),
            markers: vec![marker()]
        },
        "at the time at which it was taken"
    );
    let all = Usage {
        input: 6 * 14,
        output: 6 * 7,
        cache_read: 6 * 4,
        cache_write: 0,
    };
    assert_eq!(counted(&first), all);
    let last = first.last().unwrap();
    let interrupted = Entry::Answer {
        at: at(1_796_099_860_727),
        ends_turn: true,
        usage: Usage::default(),
    };
    assert_eq!(*last, interrupted, "an end without a step");
    assert_eq!(rows.read(&OsDisk).unwrap(), []);

    prompt(
        &writer,
        1,
        "the-loop delivery dlv-00000000000000aa for local:o/r#1: x\nmore",
    );
    let more = rows.read(&OsDisk).unwrap();
    assert_eq!(markers(&more), ["dlv-00000000000000aa"]);
    assert_eq!(more.len(), 1);
    assert_eq!(rows.growth().modified_ms, 1_796_100_000_001);
    assert!(rows.mentions(&OsDisk, "dlv-00000000000000aa").unwrap());
    assert!(!rows.mentions(&OsDisk, "dlv-00000000000000ab").unwrap());
}

#[test]
fn di31_a_queued_prompt_is_worked_on_after_the_step_before_it() {
    let (_dir, path, writer) = home();
    let mut rows = rows(&path);
    rows.read(&OsDisk).unwrap();
    message(
        &writer,
        "msg_b",
        CONVERSATION,
        1_796_100_000_000,
        r#"{"role":"assistant","time":{"created":1796100000000}}"#,
    );
    let began = Entry::Answer {
        at: at(1_796_100_000_000),
        ends_turn: false,
        usage: Usage::default(),
    };
    assert_eq!(rows.read(&OsDisk).unwrap(), [began]);
}

#[test]
fn di25_only_a_persons_own_prompts_bear_markers() {
    let (_dir, path, writer) = home();
    let mut rows = rows(&path);
    rows.read(&OsDisk).unwrap();
    let line = "the-loop delivery dlv-00000000000000aa for local:o/r#1: x";
    let text = json!({"type": "text", "text": line}).to_string();
    let made = 1_796_100_000_000;
    message(
        &writer,
        "msg_a",
        CONVERSATION,
        made,
        r#"{"role":"assistant","time":{}}"#,
    );
    part(&writer, "prt_a", "msg_a", CONVERSATION, made, &text);
    message(&writer, "msg_b", CONVERSATION, made, r#"{"role":"user"}"#);
    let made_up = json!({"type": "text", "text": line, "synthetic": true}).to_string();
    part(&writer, "prt_b", "msg_b", CONVERSATION, made, &made_up);
    let tool = json!({"type": "tool", "state": {"output": line}}).to_string();
    part(&writer, "prt_c", "msg_b", CONVERSATION, made, &tool);
    let sql = "INSERT INTO session SELECT 'ses_child', project_id, workspace_id, id, slug, directory, path, title, version, \
        share_url, summary_additions, summary_deletions, summary_files, summary_diffs, metadata, cost, tokens_input, \
        tokens_output, tokens_reasoning, tokens_cache_read, tokens_cache_write, revert, permission, agent, model, \
        time_created, time_updated, time_compacting, time_archived FROM session";
    writer.execute(sql, []).unwrap();
    message(&writer, "msg_d", "ses_child", made, r#"{"role":"user"}"#);
    part(&writer, "prt_d", "msg_d", "ses_child", made, &text);
    let step = json!({"type": "step-finish", "reason": "stop",
        "tokens": {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}}});
    part(
        &writer,
        "prt_e",
        "msg_d",
        "ses_child",
        made + 1,
        &step.to_string(),
    );

    let told = rows.read(&OsDisk).unwrap();
    assert_eq!(markers(&told), Vec::<String>::new());
    let usage = Usage {
        input: 1,
        output: 5,
        cache_read: 4,
        cache_write: 5,
    };
    let of_a_sub_agent = Entry::Answer {
        at: at(made + 1),
        ends_turn: false,
        usage,
    };
    assert!(
        told.contains(&of_a_sub_agent),
        "its cost is this conversation's: {told:?}"
    );
    assert!(rows.mentions(&OsDisk, "dlv-00000000000000aa").unwrap());
}

#[test]
fn di37_rows_that_take_the_numbers_of_deleted_ones_are_not_missed() {
    let (_dir, path, writer) = home();
    let mut rows = rows(&path);
    let first = rows.read(&OsDisk).unwrap();
    // A person takes back the last three prompts and says something else.
    writer
        .execute_batch("DELETE FROM part WHERE rowid > 20; DELETE FROM message WHERE rowid > 9")
        .unwrap();
    prompt(
        &writer,
        1,
        "the-loop delivery dlv-00000000000000aa for local:o/r#1: x",
    );
    let more = rows.read(&OsDisk).unwrap();
    assert!(markers(&more).contains(&"dlv-00000000000000aa".to_owned()));
    assert_eq!(counted(&more), Usage::default(), "nothing is counted twice");
    assert_ne!(counted(&first), Usage::default());
}

#[test]
fn di43_a_database_that_cannot_be_read_is_not_an_empty_one() {
    let (_dir, path, writer) = home();
    let mut absent = rows(&path.with_file_name("other.db"));
    assert_eq!(absent.read(&OsDisk).unwrap(), []);
    assert!(!absent.mentions(&OsDisk, "dlv-").unwrap());
    assert!(!path.with_file_name("other.db").exists(), "it is not made");

    let mut drifted = rows(&path);
    drifted.read(&OsDisk).unwrap();
    writer
        .execute_batch("ALTER TABLE part RENAME COLUMN data TO content")
        .unwrap();
    drifted.read(&OsDisk).unwrap_err();
    drifted.mentions(&OsDisk, "dlv-").unwrap_err();
    writer
        .execute_batch("ALTER TABLE part RENAME COLUMN content TO data")
        .unwrap();
    drifted.read(&OsDisk).unwrap();

    OsDisk
        .write_atomic(
            &path.with_file_name("text.db"),
            b"no database at all, but quite some text",
            false,
        )
        .unwrap();
    rows(&path.with_file_name("text.db"))
        .read(&OsDisk)
        .unwrap_err();
}

#[test]
fn di43_another_database_at_the_same_path_is_opened_anew() {
    let (_dir, path, writer) = home();
    let mut rows = rows(&path);
    rows.read(&OsDisk).unwrap();
    drop(writer);
    let fresh = path.with_file_name("fresh.db");
    let writer = Connection::open(&fresh).unwrap();
    writer.execute_batch(TABLES).unwrap();
    prompt(
        &writer,
        1,
        "the-loop delivery dlv-00000000000000aa for local:o/r#1: x",
    );
    drop(writer);
    for left in ["opencode.db-wal", "opencode.db-shm"] {
        OsDisk.remove(&path.with_file_name(left)).unwrap();
    }
    OsDisk.rename(&fresh, &path).unwrap();
    let told = markers(&rows.read(&OsDisk).unwrap());
    assert_eq!(told.last().unwrap(), "dlv-00000000000000aa");
    assert_eq!(told.len(), 8, "from its beginning");
    assert!(
        rows.restarted(),
        "what was counted of the other one does not count"
    );
}

fn place(home: &Utf8Path, env: &[(&str, &str)]) -> Place {
    let mut all = BTreeMap::from([
        ("HOME".to_owned(), home.to_string()),
        (
            "THE_LOOP_WORK_ITEM".to_owned(),
            "local:octo/repo#15".to_owned(),
        ),
    ]);
    all.extend(env.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
    Place {
        session_id: None,
        cwd: "/tmp/oc/repo".into(),
        hook_file: home.join("none"),
        env: Arc::new(all),
    }
}

#[test]
fn di33_the_id_is_that_of_the_conversation_begun_here_with_a_prompt_of_ours() {
    let (_dir, path, writer) = home();
    let home = path
        .as_str()
        .strip_suffix("/.local/share/opencode/opencode.db")
        .unwrap();
    let home = Utf8Path::new(home);
    let (_other, _, world) = world();
    let learn = |place: &Place, since: Timestamp| {
        learn_id(&Learning {
            world: &world,
            place,
            since,
            screen: None,
            told: None,
            taken: &[],
            rivals: &[],
        })
        .map(|id| id.as_str().to_owned())
    };
    let begun = at(1_796_099_787_000);
    let here = place(home, &[]);
    assert_eq!(learn(&here, begun).as_deref(), Some(CONVERSATION));
    assert_eq!(
        learn(&here, at(1_796_099_788_000)),
        None,
        "it was begun by an earlier process"
    );
    let elsewhere = Place {
        cwd: "/tmp/oc".into(),
        ..place(home, &[])
    };
    assert_eq!(learn(&elsewhere, begun), None);
    let of_another = place(home, &[("THE_LOOP_WORK_ITEM", "local:octo/repo#1")]);
    assert_eq!(
        learn(&of_another, begun),
        None,
        "two items can share a checkout"
    );
    writer.execute_batch("UPDATE part SET data = json_set(data, '$.text', 'hello') WHERE rowid IN (1, 5, 6, 13, 21, 25, 26)").unwrap();
    assert_eq!(learn(&here, begun), None, "a person began it");
}

#[test]
fn di34_the_database_is_where_the_panes_environment_places_it() {
    let home = Utf8Path::new("/home/ada");
    let of = |env: &[(&str, &str)]| database(&place(home, env)).map(|path| path.to_string());
    assert_eq!(
        of(&[]).as_deref(),
        Some("/home/ada/.local/share/opencode/opencode.db")
    );
    assert_eq!(
        of(&[("XDG_DATA_HOME", "/data")]).as_deref(),
        Some("/data/opencode/opencode.db")
    );
    assert_eq!(
        of(&[("OPENCODE_DB", "/x/y.db")]).as_deref(),
        Some("/x/y.db")
    );
    assert_eq!(
        of(&[("OPENCODE_DB", "y.db")]).as_deref(),
        Some("/home/ada/.local/share/opencode/y.db")
    );
    assert_eq!(of(&[("OPENCODE_DB", ":memory:")]), None);
}
