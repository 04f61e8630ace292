//! Somebody at a terminal: a window of another private tmux server, in which a program runs as in a terminal
//! emulator. It is typed into, resized and read.

use std::process::Output;

use super::rig::Rig;

/// Columns and rows of an ordinary terminal.
pub const USUAL: (u16, u16) = (100, 30);

pub struct Person<'a> {
    rig: &'a Rig,
    name: String,
}

impl<'a> Person<'a> {
    /// Opens a terminal of this size that runs these words.
    pub fn runs(rig: &'a Rig, (columns, rows): (u16, u16), words: &[&str]) -> Self {
        let free: &[&str] = &["env", "-u", "TMUX", "-u", "TMUX_PANE"];
        Self::runs_inside(rig, (columns, rows), &[free, words].concat())
    }

    /// The same for a terminal that is itself a window of that person's own tmux.
    pub fn runs_inside(rig: &'a Rig, (columns, rows): (u16, u16), words: &[&str]) -> Self {
        let person = Self {
            rig,
            name: format!("person-{}", rig.fresh()),
        };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let size = ["new-session", "-d", "-x", &columns, "-y", &rows];
        let named = ["-s", &person.name, "--"];
        let told = person.outer(&[&size[..], &named[..], words].concat());
        assert!(told.status.success(), "{told:?}");
        person
    }

    /// Opens a terminal and attaches to the agents' server in it; waits until it is attached.
    pub fn attaches(rig: &'a Rig, size: (u16, u16), words: &[&str]) -> Self {
        let before = clients(rig);
        let attach = ["tmux", "-L", &rig.socket, "attach-session"];
        let person = Self::runs(rig, size, &[&attach[..], words].concat());
        rig.until("a client", || (clients(rig) > before).then_some(()));
        person
    }

    fn outer(&self, args: &[&str]) -> Output {
        self.rig.outer(args)
    }

    fn pane(&self) -> String {
        format!("={}:", self.name)
    }

    pub fn types(&self, keys: &[&str]) {
        let pane = self.pane();
        let told = self.outer(&[&["send-keys", "-t", &pane][..], keys].concat());
        assert!(told.status.success(), "{told:?}");
    }

    pub fn resizes(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let told = self.outer(&[
            "resize-window",
            "-t",
            &self.pane(),
            "-x",
            &columns,
            "-y",
            &rows,
        ]);
        assert!(told.status.success(), "{told:?}");
    }

    /// What the terminal shows.
    pub fn screen(&self) -> String {
        let told = self.outer(&["capture-pane", "-p", "-t", &self.pane()]);
        String::from_utf8_lossy(&told.stdout).into_owned()
    }

    /// Waits until the terminal shows these words.
    pub fn sees(&self, words: &str) {
        let seen = || self.screen().contains(words).then_some(());
        self.rig.until(&format!("{words:?} on a terminal"), seen);
    }

    /// Waits until the program has ended.
    pub fn is_done(&self) {
        let gone = || {
            !self
                .outer(&["has-session", "-t", &format!("={}", self.name)])
                .status
                .success()
        };
        self.rig
            .until("the end of a program", || gone().then_some(()));
    }
}

/// How many clients the agents' server has.
pub fn clients(rig: &Rig) -> usize {
    let told = rig.tmux(&["list-clients", "-F", "x"]);
    String::from_utf8_lossy(&told.stdout).lines().count()
}
