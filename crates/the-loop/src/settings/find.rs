//! Which file (CF-1 to CF-5).

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::config::paths::{Places, expand};
use the_loop_core::config::problem::Problem;

use super::fault::tilde;
use crate::disk::Kind;
use crate::process::Call;
use crate::world::World;

/// The variable that names the file.
pub const CONFIG_VARIABLE: &str = "THE_LOOP_CLI_CONFIG";
const NAME: &str = "cli-config.yaml";
const DIR: &str = ".the-loop";

/// Where a file may come from, first wins (CF-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `--config`.
    Flag,
    /// `THE_LOOP_CLI_CONFIG`.
    Env,
    /// `./.the-loop/cli-config.yaml`.
    CurrentDir,
    /// `~/.the-loop/cli-config.yaml`.
    Home,
}

impl Place {
    /// As messages call it.
    pub fn words(self) -> &'static str {
        match self {
            Place::Flag => "--config",
            Place::Env => CONFIG_VARIABLE,
            Place::CurrentDir => "current directory",
            Place::Home => "home directory",
        }
    }
}

/// The file in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Absolute.
    pub path: Utf8PathBuf,
    /// How it was found.
    pub place: Place,
}

/// One place that was looked at, for `config path --all`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Which.
    pub place: Place,
    /// Its file; none when the place names none.
    pub path: Option<Utf8PathBuf>,
    /// Whether it is the one.
    pub taken: bool,
    /// Why it was or was not taken.
    pub why: String,
}

/// What the search came to. A file that was named is found even when it is not there: that is a
/// fault, never a silent default (CF-3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The file in use; none for built-in defaults.
    pub found: Option<Found>,
    /// Every place, in order.
    pub candidates: Vec<Candidate>,
    /// A file that was passed over for its safety (CF-2).
    pub warnings: Vec<Problem>,
}

impl Search {
    fn look(&mut self, place: Place, path: Option<Utf8PathBuf>, verdict: Verdict) {
        let usable = matches!(verdict, Verdict::Usable);
        let taken = usable && self.found.is_none();
        let why = match verdict {
            Verdict::Usable if taken => "taken".to_owned(),
            Verdict::Usable => "an earlier one is taken".to_owned(),
            Verdict::NotNamed => "not set".to_owned(),
            Verdict::Absent => "not there".to_owned(),
            Verdict::Refused(why) => why.to_owned(),
            Verdict::SameAsHome => "it is the one in the home directory".to_owned(),
            Verdict::NoHome => "no home directory is known".to_owned(),
        };
        if let (true, Some(path)) = (taken, path.clone()) {
            self.found = Some(Found { path, place });
        }
        self.candidates.push(Candidate {
            place,
            path,
            taken,
            why,
        });
    }
}

enum Verdict {
    Usable,
    NotNamed,
    Absent,
    Refused(&'static str),
    SameAsHome,
    NoHome,
}

/// Looks at every place. `flag` is the value of `--config`.
pub fn find(world: &World, flag: Option<&str>) -> Search {
    let mut search = Search::default();
    for (place, named) in [
        (Place::Flag, flag),
        (Place::Env, world.var(CONFIG_VARIABLE)),
    ] {
        match named {
            Some(named) => search.look(place, Some(named_path(world, named)), Verdict::Usable),
            None => search.look(place, None, Verdict::NotNamed),
        }
    }
    let here = world.cwd.join(DIR).join(NAME);
    let home = world.home.as_ref().map(|home| home.join(DIR).join(NAME));
    let needed = search.found.is_none();
    let verdict = if home.as_ref() == Some(&here) {
        Verdict::SameAsHome
    } else {
        judge_current_dir(world, &here, needed)
    };
    if let (Verdict::Refused(why), true) = (&verdict, needed) {
        let message = format!("ignoring ./{DIR}/{NAME}: {why}");
        let hint = format!("pass --config ./{DIR}/{NAME} if you mean it");
        search.warnings.push(Problem::whole(message).hint(hint));
    }
    search.look(Place::CurrentDir, Some(here), verdict);
    let verdict = match &home {
        None => Verdict::NoHome,
        // A file that cannot be looked at is there: reading it will say what is wrong (CF-3).
        Some(path) => match world.disk.meta(path) {
            Ok(None) => Verdict::Absent,
            Ok(Some(_)) | Err(_) => Verdict::Usable,
        },
    };
    search.look(Place::Home, home, verdict);
    search
}

/// The absolute path of a file that was named by a flag or a variable.
pub(super) fn named_path(world: &World, named: &str) -> Utf8PathBuf {
    let home = world.home.as_deref().map(Utf8Path::as_str);
    expand(named, world.cwd.as_str(), home).into()
}

/// From where the relative paths of a file are taken (CF-5, CF-6).
pub(super) fn places(world: &World, file: Option<&Utf8Path>) -> Places {
    let file_dir = file
        .and_then(Utf8Path::parent)
        .unwrap_or(&world.cwd)
        .to_path_buf();
    let base = match (file, file_dir.file_name(), file_dir.parent()) {
        (Some(_), Some(DIR), Some(parent)) => parent.to_path_buf(),
        _ => file_dir.clone(),
    };
    Places {
        base: base.into_string(),
        file_dir: file_dir.into_string(),
        home: world.home.clone().map(Utf8PathBuf::into_string),
    }
}

/// CF-2: may the file in the current directory be used? Git is not asked unless it is `needed`.
fn judge_current_dir(world: &World, path: &Utf8Path, needed: bool) -> Verdict {
    match world.disk.meta(path) {
        Ok(None) => return Verdict::Absent,
        Ok(Some(_)) if !needed => return Verdict::Usable,
        Ok(Some(_)) => {}
        Err(_) => return Verdict::Refused("it cannot be looked at"),
    }
    match safety(world, path) {
        Ok(None) => Verdict::Usable,
        Ok(Some(why)) => Verdict::Refused(why),
        Err(_) => Verdict::Refused("it cannot be looked at"),
    }
}

/// Why the file may not be used; `None` when it may.
fn safety(world: &World, path: &Utf8Path) -> io::Result<Option<&'static str>> {
    let disk = &world.disk;
    let real = disk.canonicalize(path)?;
    let Some(meta) = disk.meta(&real)?.filter(|meta| meta.kind == Kind::File) else {
        return Ok(Some("it is not a regular file"));
    };
    if meta.uid != rustix::process::geteuid().as_raw() {
        return Ok(Some("it belongs to another user"));
    }
    if meta.mode & 0o022 != 0 {
        return Ok(Some("others may write to it"));
    }
    let lexical_dir = path.parent().unwrap_or(path);
    let dirs = [disk.canonicalize(lexical_dir)?, parent_of(&real)];
    for dir in dirs {
        if disk.meta(&dir)?.is_none_or(|meta| meta.mode & 0o022 != 0) {
            return Ok(Some("others may write to its directory"));
        }
    }
    // The directory or the file may be a link that a repository holds while the target is not in it.
    let dir_is_link = disk
        .meta(lexical_dir)?
        .is_some_and(|m| m.kind == Kind::Link);
    let (asked_in, asked) = if dir_is_link {
        (world.cwd.clone(), DIR)
    } else {
        (lexical_dir.to_path_buf(), NAME)
    };
    let tracked = is_tracked(world, &asked_in, asked)
        || is_tracked(world, &parent_of(&real), real.file_name().unwrap_or(NAME));
    Ok(tracked.then_some("it is tracked by git, and a repository may not configure the daemon"))
}

fn parent_of(path: &Utf8Path) -> Utf8PathBuf {
    path.parent().unwrap_or(path).to_path_buf()
}

/// Does git track `name` in `dir`? Where it gives no answer, a work tree above counts as yes.
fn is_tracked(world: &World, dir: &Utf8Path, name: &str) -> bool {
    // The repository is not trusted yet, so nothing that it configures may run.
    let args = [
        "-c",
        "core.fsmonitor=false",
        "ls-files",
        "--error-unmatch",
        "--",
        name,
    ];
    let mut call = Call::new("git", args).cwd(dir);
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_LITERAL_PATHSPECS",
    ] {
        call.env.insert(name.to_owned(), None);
    }
    match world.processes.run(&call).exit {
        Ok(0) => true,
        Ok(1) => false,
        Ok(_) | Err(_) => dir
            .ancestors()
            .any(|above| !matches!(world.disk.meta(&above.join(".git")), Ok(None))),
    }
}

/// A path as a message shows it.
pub(super) fn shown(world: &World, path: &Utf8Path) -> String {
    tilde(path, world.home.as_deref())
}
