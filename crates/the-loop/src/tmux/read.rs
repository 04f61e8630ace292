//! What tmux prints, read whole or not at all (DI-13).

use std::collections::BTreeMap;
use std::fmt;

use the_loop_core::ids::TmuxTarget;
use the_loop_core::probe::TmuxState;
use the_loop_core::time::Timestamp;

use super::Spot;

/// The field separator of format output; it cannot occur in a session name, and titles are last.
const SEP: char = '\t';

/// What is asked of a pane.
pub(super) const PANE_FORMAT: &str = "P\t#{session_name}\t#{pane_pid}\t#{pane_id}\t#{pane_width}\t#{pane_height}\t#{pane_dead}\t#{pane_dead_status}\t#{pane_in_mode}\t#{window_activity}\t#{pane_title}";
/// What is asked of a client; its pane is the one that its keys go to.
pub(super) const CLIENT_FORMAT: &str =
    "C\t#{client_readonly}\t#{client_activity}\t#{session_name}\t#{pane_id}";

/// What stands before what a pane shows.
pub(super) const SCREEN_FORMAT: &str = "S\t#{pane_id}";

/// A pane as tmux numbers it, `%5`. One server gives a number once; another server begins anew, so that it
/// means something only together with its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PaneId(u32);

impl PaneId {
    /// Reads `%5`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('%')?;
        let plain = digits.bytes().all(|b| b.is_ascii_digit());
        Some(Self(digits.parse().ok().filter(|_| plain)?))
    }
}

impl fmt::Display for PaneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

/// One pane, as a listing tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pane {
    /// Name of its session.
    pub session: String,
    /// Its process's pid; 0 where tmux no longer tells the one of a dead pane (3.8).
    pub pid: i32,
    /// Its number.
    pub id: PaneId,
    /// Columns and rows.
    pub size: (usize, usize),
    /// Its process has ended.
    pub dead: bool,
    /// Exit status of a dead pane, when it exited.
    pub exit_status: Option<i32>,
    /// It is in copy mode or another mode.
    pub in_mode: bool,
    /// Last output in its window, Unix seconds; `None` where tmux does not tell.
    pub output_at: Option<i64>,
    /// Title the program set: untrusted text.
    pub title: String,
}

/// All panes of the server by session, or why tmux did not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    panes: BTreeMap<String, Vec<Pane>>,
}

impl Snapshot {
    /// Panes of a session; empty when there is none of that exact name.
    pub fn panes(&self, target: &TmuxTarget) -> &[Pane] {
        self.panes.get(target.as_str()).map_or(&[], Vec::as_slice)
    }
    /// Live, dead or absent: a snapshot always knows.
    pub fn state(&self, target: &TmuxTarget) -> TmuxState {
        state_of(self.panes(target))
    }
    /// Sessions whose name has the shape of ours.
    pub fn targets(&self) -> impl Iterator<Item = TmuxTarget> + '_ {
        self.panes
            .keys()
            .filter_map(|name| TmuxTarget::parse(name).filter(|target| target.as_str() == name))
    }
    /// Is there any session at all?
    pub fn is_empty(&self) -> bool {
        self.panes.is_empty()
    }
}

/// Live, dead or absent, from all panes of a session.
pub(super) fn state_of(panes: &[Pane]) -> TmuxState {
    if panes.is_empty() {
        TmuxState::Absent
    } else if panes.iter().all(|pane| pane.dead) {
        TmuxState::Dead
    } else {
        TmuxState::Live
    }
}

/// The agent's pane among those of its session: the one whose process is the recorded one, else a live one
/// of which `is_ours` says so, else a dead one that does not tell its process. Where no process was ever
/// recorded (registered by hand, or by an earlier release), the oldest one is it. A pane that somebody opened
/// beside the agent's never is (DI-13).
pub fn agent_pane(
    panes: &[Pane],
    recorded: Option<i32>,
    is_ours: impl Fn(i32) -> bool,
) -> Option<&Pane> {
    let by_pid = panes.iter().find(|pane| Some(pane.pid) == recorded);
    let by_mark = || panes.iter().find(|pane| !pane.dead && is_ours(pane.pid));
    let untold = panes.iter().filter(|pane| pane.dead && pane.pid == 0);
    let oldest = || panes.iter().min_by_key(|pane| pane.id);
    let found = by_pid
        .or_else(by_mark)
        .or_else(|| untold.min_by_key(|pane| pane.id));
    if recorded.is_none() {
        found.or_else(oldest)
    } else {
        found
    }
}

/// Somebody attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// It can only watch.
    pub read_only: bool,
    /// Last activity, Unix seconds.
    pub active_at: i64,
    /// Its keys go to the pane looked at.
    pub here: bool,
}

/// What a pane shows right now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The pane looked at.
    pub pane: Pane,
    /// Another pane of the session has a living process.
    pub others_live: bool,
    /// The visible rows as captured, with their styles (`harness::screen` reads them).
    pub text: String,
    /// Who is attached to the session, or has the pane in front in another one.
    pub clients: Vec<Client>,
}

/// Rows that an agent's input line leaves to its frame, at least, and columns likewise.
const FRAME: usize = 4;

impl View {
    /// What a pane shows, when nobody asked who looks at it.
    pub(super) fn shown(pane: Pane, text: String) -> Self {
        Self {
            pane,
            others_live: false,
            text,
            clients: Vec::new(),
        }
    }

    /// Did somebody who may write use a key in this very pane less than so many seconds ago? (DI-27)
    pub fn is_typed_into(&self, now: Timestamp, quiet_seconds: u32) -> bool {
        let quiet = i64::from(quiet_seconds) * 1000;
        let mut writers = self.clients.iter().filter(|c| c.here && !c.read_only);
        writers.any(|client| now.unix_ms() - client.active_at * 1000 < quiet)
    }

    /// Is the pane too small to show this text whole in an input line? Then what is there of it cannot be
    /// told from somebody else's words.
    pub fn is_too_small_for(&self, text: &str) -> bool {
        let (columns, rows) = self.pane.size;
        let columns = columns.saturating_sub(FRAME).max(1);
        let needed = text
            .lines()
            .map(|line| line.chars().count().div_ceil(columns).max(1));
        needed.sum::<usize>() + FRAME > rows
    }
}

/// Pid and pane of a session just made.
pub(super) fn read_made(text: &str) -> Option<(i32, PaneId)> {
    let (pid, pane) = text.trim().split_once(' ')?;
    Some((pid.parse().ok()?, PaneId::parse(pane)?))
}

fn read_pane(line: &str) -> Option<Pane> {
    let mut fields = line.splitn(11, SEP);
    (fields.next()? == "P").then_some(())?;
    let session = fields.next()?.to_owned();
    let pid = fields.next()?.parse();
    let id = PaneId::parse(fields.next()?)?;
    let size = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let dead = fields.next()? == "1";
    Some(Pane {
        session,
        pid: if dead { pid.unwrap_or(0) } else { pid.ok()? },
        id,
        size,
        dead,
        exit_status: fields.next()?.parse().ok(),
        in_mode: fields.next()? != "0",
        output_at: fields.next()?.parse().ok(),
        title: fields.next()?.to_owned(),
    })
}

/// A listing, whole or not at all: a line that cannot be read makes the answer unknown. A title may
/// hold a line break; its continuation does not look like a pane and belongs to the line before.
pub(super) fn read_panes(text: &str) -> Option<Snapshot> {
    let mut snapshot = Snapshot::default();
    for line in text.lines().filter(|line| line.starts_with("P\t")) {
        let pane = read_pane(line)?;
        snapshot
            .panes
            .entry(pane.session.clone())
            .or_default()
            .push(pane);
    }
    let unreadable = snapshot.panes.is_empty() && !text.trim().is_empty();
    (!unreadable).then_some(snapshot)
}

/// Listing, clients and text. Without a pane asked for, the captured one is in front in its session, which
/// the oldest is as long as nobody opened another.
pub(super) fn read_view(text: &str, spot: &Spot) -> Option<View> {
    let mut panes: Vec<Pane> = Vec::new();
    let mut attached = Vec::new();
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n') {
        if let Some(pane) = read_pane(line).filter(|p| p.session == spot.target.as_str()) {
            panes.push(pane);
        } else if let Some(client) = read_client(line) {
            attached.push(client);
        } else {
            break;
        }
        rest = after;
    }
    let at = match spot.pane {
        Some(id) => panes.iter().position(|pane| pane.id == id)?,
        None => 0,
    };
    let pane = (at < panes.len()).then(|| panes.swap_remove(at))?;
    let clients = attached.into_iter().filter_map(|client| {
        let here = client.pane == pane.id;
        (here || client.session == spot.target.as_str()).then_some(Client {
            read_only: client.read_only,
            active_at: client.active_at,
            here,
        })
    });
    Some(View {
        clients: clients.collect(),
        others_live: panes.iter().any(|pane| !pane.dead),
        pane,
        text: rest.to_owned(),
    })
}

/// What panes show, each behind a line of its own that names it. Captured text holds no tabs, so that it
/// cannot look like one.
pub(super) fn read_screens(text: &str) -> BTreeMap<PaneId, String> {
    let mut screens: BTreeMap<PaneId, String> = BTreeMap::new();
    let mut current = None;
    for line in text.split_inclusive('\n') {
        let begins = line.trim_end_matches('\n').strip_prefix("S\t");
        match (begins.and_then(PaneId::parse), current) {
            (Some(pane), _) => {
                current = Some(pane);
                screens.insert(pane, String::new());
            }
            (None, Some(pane)) => screens.entry(pane).or_default().push_str(line),
            (None, None) => {}
        }
    }
    // The last one may have been cut off before its text.
    screens.retain(|_, text| !text.is_empty());
    screens
}

struct Attached {
    read_only: bool,
    active_at: i64,
    session: String,
    pane: PaneId,
}

fn read_client(line: &str) -> Option<Attached> {
    let mut fields = line.split(SEP);
    (fields.next()? == "C").then_some(())?;
    let client = Attached {
        read_only: fields.next()? == "1",
        active_at: fields.next()?.parse().ok()?,
        session: fields.next()?.to_owned(),
        pane: PaneId::parse(fields.next()?)?,
    };
    fields.next().is_none().then_some(client)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pane(id: u32, pid: i32, dead: bool) -> Pane {
        Pane {
            session: "loop-a".to_owned(),
            pid,
            id: PaneId(id),
            size: (200, 50),
            dead,
            exit_status: None,
            in_mode: false,
            output_at: None,
            title: String::new(),
        }
    }

    #[test]
    fn di13_the_agents_pane_is_told_by_its_process_never_by_its_place() {
        let found = |panes: &[Pane], pid, ours: i32| {
            agent_pane(panes, pid, |pid| pid == ours).map(|pane| pane.id.0)
        };
        let panes = [pane(4, 40, false), pane(7, 70, false), pane(2, 20, true)];
        assert_eq!(found(&panes, Some(70), 0), Some(7), "the recorded process");
        assert_eq!(found(&panes, Some(20), 40), Some(2), "also when it ended");
        assert_eq!(found(&panes, Some(99), 40), Some(4), "a marked process");
        assert_eq!(
            found(&panes, Some(99), 20),
            None,
            "a dead one proves nothing"
        );
        assert_eq!(
            found(&panes, Some(99), 0),
            None,
            "somebody else's are left alone"
        );
        assert_eq!(
            found(&panes, None, 0),
            Some(2),
            "never recorded: the oldest"
        );
        assert_eq!(found(&[], Some(1), 1), None);
        let untold = [pane(3, 0, true), pane(5, 50, false)];
        assert_eq!(found(&untold, Some(99), 0), Some(3), "tmux 3.8");
    }

    #[test]
    fn di13_a_dead_pane_without_a_process_is_dead_and_a_live_one_without_is_unreadable() {
        let target = TmuxTarget::parse("loop-a").unwrap();
        let dead = "P\tloop-a\t\t%0\t80\t24\t1\t3\t0\t\ttitle\n";
        let snapshot = read_panes(dead).unwrap();
        assert_eq!(snapshot.state(&target), TmuxState::Dead);
        assert_eq!(snapshot.panes(&target)[0].exit_status, Some(3));
        let live = "P\tloop-a\t\t%0\t80\t24\t0\t\t0\t\ttitle\n";
        assert_eq!(read_panes(live), None);
    }

    #[test]
    fn di12_a_spot_is_exact_in_session_and_pane() {
        let target = TmuxTarget::parse("loop-a").unwrap();
        assert_eq!(Spot::from(&target).to_string(), "=loop-a:");
        let pane = PaneId::parse("%12");
        let spot = Spot { target, pane };
        assert_eq!(spot.to_string(), "=loop-a:.%12");
        for bad in ["", "%", "12", "%-1", "%1x", "%99999999999"] {
            assert_eq!(PaneId::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn di27_a_client_counts_where_its_keys_go() {
        let target = TmuxTarget::parse("loop-a").unwrap();
        let text = "P\tloop-a\t40\t%4\t80\t24\t0\t\t0\t\tt\nP\tloop-a\t70\t%7\t80\t12\t0\t\t1\t\tu\n\
                    C\t0\t100\tloop-a\t%4\nC\t1\t200\tloop-a\t%7\nC\t0\t300\tmine\t%7\n\
                    C\t0\t400\tmine\t%9\nC\tis how the screen begins\n";
        let spot = Spot {
            target,
            pane: PaneId::parse("%7"),
        };
        let view = read_view(text, &spot).unwrap();
        assert_eq!((view.pane.id, view.pane.in_mode), (PaneId(7), true));
        assert!(view.others_live);
        assert_eq!(view.text, "C\tis how the screen begins\n");
        assert!(view.is_too_small_for(&"x".repeat(800)) && !view.is_too_small_for("x"));
        let at = |seconds: i64| Timestamp::from_unix_ms(seconds * 1000);
        assert!(
            view.is_typed_into(at(309), 10),
            "in a session that shows it too"
        );
        assert!(!view.is_typed_into(at(310), 10));
        let seen: Vec<_> = view.clients.iter().map(|c| (c.active_at, c.here)).collect();
        assert_eq!(seen, [(100, false), (200, true), (300, true)]);
        let gone = Spot {
            pane: PaneId::parse("%5"),
            ..spot
        };
        assert_eq!(read_view(text, &gone), None);
    }

    #[test]
    fn di31_what_several_panes_show_is_told_apart() {
        let text = "S\t%3\nfirst row\n\nS\t%12\nS\t is text, and P\tloop-a\n";
        let screens = read_screens(text);
        let shown = |id: u32| screens.get(&PaneId(id)).map(String::as_str);
        assert_eq!(shown(3), Some("first row\n\n"));
        assert_eq!(shown(12), Some("S\t is text, and P\tloop-a\n"));
        assert_eq!(read_screens(""), BTreeMap::new());
        assert_eq!(
            read_screens("S\t%3\n"),
            BTreeMap::new(),
            "it went away before its text"
        );
    }
}
