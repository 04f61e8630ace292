//! Where checkouts lie, what their branches are called and where they are cloned from
//! (DI-45 to DI-48). Texts in, texts out: nothing here looks at a disk.

use std::fmt;

use crate::config::{CloneProtocol, Settings};
use crate::delivery::Delivery;
pub use crate::event::{SavedWhy, Strategy};
use crate::ids::{RepoRef, Slug, WorkItemRef};

#[cfg(test)]
mod tests;

/// What a new checkout starts from (DI-46).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartFrom {
    /// A ticket: a branch of its own from the repository's default branch.
    DefaultBranch,
    /// A pull request whose head branch, in this very repository, is known.
    PullHead(String),
    /// A pull request from a fork, or one of which only the number is known (first seen by a
    /// comment): the read-only `refs/pull/N/head`, on a branch of the item's own.
    PullRef,
}

impl StartFrom {
    /// What the delivery that asks for a checkout of this item says of it; without one, and for an item that
    /// it only names, a ticket is taken for granted.
    pub fn of(item: &WorkItemRef, delivery: Option<&Delivery>) -> Self {
        let Some(delivery) = delivery.filter(|delivery| delivery.item.key() == item.key()) else {
            return Self::DefaultBranch;
        };
        match delivery.pull_facts() {
            Some(pull) => match &pull.head_ref {
                Some(head) if pull.is_own_branch => Self::PullHead(head.clone()),
                Some(_) | None => Self::PullRef,
            },
            None if delivery.facts.is_pull_request => Self::PullRef,
            None => Self::DefaultBranch,
        }
    }
}

/// The directory of the shared clone, below the workspace root.
pub fn shared_clone_path(repo: &RepoRef) -> String {
    format!("{}/{}/{}", repo.host_dir(), repo.owner, repo.name)
}

/// The directory of an item's checkout, below the workspace root; `None` has none.
pub fn checkout_path(strategy: Strategy, repo: &RepoRef, slug: &Slug) -> Option<String> {
    match strategy {
        Strategy::Worktree => Some(format!(".worktrees/{}/{slug}", shared_clone_path(repo))),
        Strategy::Clone => Some(format!(".work-items/{slug}/{}", shared_clone_path(repo))),
        Strategy::None => None,
    }
}

/// The workspace root that `path` lies under, when `path` is exactly where this item's checkout
/// belongs. This is what licenses a removal: any other path is not ours.
pub fn workspace_of<'a>(
    path: &'a str,
    strategy: Strategy,
    repo: &RepoRef,
    slug: &Slug,
) -> Option<&'a str> {
    let below = checkout_path(strategy, repo, slug)?;
    let root = path.strip_suffix(&below)?.strip_suffix('/')?;
    (is_plain(root) && is_below(root, path)).then_some(root)
}

/// Is `path` strictly below `root`, by its text? Both absolute, without `.`, `..` or empty parts;
/// a `/` at the end of the root
/// aside; anything else is not.
pub fn is_below(root: &str, path: &str) -> bool {
    let above = root.strip_suffix('/').unwrap_or(root);
    (is_plain(root) || is_plain(above))
        && is_plain(path)
        && path
            .strip_prefix(above)
            .is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
}

fn is_plain(path: &str) -> bool {
    path == "/"
        || path.strip_prefix('/').is_some_and(|rest| {
            rest.split('/')
                .all(|part| !matches!(part, "" | "." | "..") && !part.contains('\0'))
        })
}

/// The name, beside a repository's directory, under which a checkout is made before it is renamed to
/// its place, and to which one is renamed before it is removed (DI-46). `~` is in no part of a ref,
/// so it is nobody else's name.
pub fn making_name(repo: &RepoRef, hex: &str) -> String {
    format!("{}~{hex}", repo.name)
}

/// Is this a name that [`making_name`] gave for `repo`? Then what is there was never handed to a
/// session, or was saved already.
pub fn is_making_name(repo: &RepoRef, name: &str) -> bool {
    name.strip_prefix(&repo.name)
        .and_then(|rest| rest.strip_prefix('~'))
        .is_some_and(|hex| {
            hex.len() == 8
                && hex
                    .bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        })
}

/// May this text be a branch of ours? The rules of `git check-ref-format --branch`, because a pull
/// request's head name is a stranger's. At most 200 bytes.
pub fn is_branch_name(name: &str) -> bool {
    let part_ok = |part: &str| {
        !part.is_empty() && !part.starts_with('.') && part.strip_suffix(".lock").is_none()
    };
    let char_ok = |c: char| {
        !c.is_ascii_control() && !matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\')
    };
    !name.starts_with('-')
        && name.len() <= 200
        && !matches!(name, "@" | "HEAD")
        && !name.ends_with('.')
        && !name.contains("..")
        && !name.contains("@{")
        && name.chars().all(char_ok)
        && name.split('/').all(part_ok)
}

/// Where a repository is cloned from: a URL or an absolute path, checked so that git can take it for
/// nothing else.
#[derive(Clone, PartialEq, Eq)]
pub struct CloneSource(String);

/// Why something is no place to clone from. A person has to change the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// Empty, begins with `-`, has control characters, or names a transport helper.
    #[error("{0:?} is neither a git URL nor an absolute path")]
    Shape(String),
    /// A repository of the embedded tracker that is not declared.
    #[error("tracker.local.repos has no entry for {0}")]
    Undeclared(String),
}

impl CloneSource {
    /// Takes a URL, an scp-like address (`host:path`) or an absolute path.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let bad = || SourceError::Shape(strip_userinfo(text));
        if text.is_empty() || text.starts_with('-') || text.chars().any(char::is_control) {
            return Err(bad());
        }
        let known = ["https", "http", "ssh", "git", "file"];
        let shaped = match text.split_once("://") {
            Some((scheme, rest)) => known.contains(&scheme) && !rest.is_empty(),
            None => text.starts_with('/') || scp_parts(text).is_some(),
        };
        if shaped {
            Ok(Self(text.to_owned()))
        } else {
            Err(bad())
        }
    }

    /// Where the settings say that an item's repository is: for one of the embedded tracker its
    /// entry of `tracker.local.repos` (keys compared without case), for one on GitHub the override of
    /// `integrations.github.cloneUrls`, else the address by `routing.workspace.cloneProtocol`.
    pub fn of(item: &WorkItemRef, settings: &Settings) -> Result<Self, SourceError> {
        let repo = item.repo();
        if item.is_local() {
            let wanted = repo.full_name();
            let mut declared = settings.tracker.local.repos.iter();
            return declared
                .find(|(key, _)| key.eq_ignore_ascii_case(&wanted))
                .map_or(Err(SourceError::Undeclared(wanted.clone())), |(_, text)| {
                    Self::parse(text)
                });
        }
        let github = &settings.integrations.github;
        let url = github
            .clone_url(&repo.host, &repo.owner, &repo.name)
            .unwrap_or_else(|| default_url(repo, settings.routing.workspace.clone_protocol));
        Self::parse(&url)
    }

    /// As git is given it; may hold a password.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As people, records and logs may see it: without the user part.
    pub fn shown(&self) -> String {
        strip_userinfo(&self.0)
    }
}

impl fmt::Debug for CloneSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CloneSource({:?})", self.shown())
    }
}

impl fmt::Display for CloneSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

fn default_url(repo: &RepoRef, protocol: CloneProtocol) -> String {
    let RepoRef { host, owner, name } = repo;
    match protocol {
        CloneProtocol::Https => format!("https://{host}/{owner}/{name}.git"),
        // The port of a host in a ref is that of its web server.
        CloneProtocol::Ssh => {
            let host = host.split(':').next().unwrap_or(host);
            format!("ssh://git@{host}/{owner}/{name}.git")
        }
    }
}

/// `[user@]host:path`, but not `helper::address` and nothing with a `/` before the `:`.
fn scp_parts(text: &str) -> Option<(&str, &str)> {
    let (host, path) = text.split_once(':')?;
    let shaped = !host.is_empty() && !host.contains('/') && !path.is_empty();
    (shaped && !path.starts_with(':')).then_some((host, path))
}

/// A URL or any text with URLs in it, each without its user part: `https://u:p@h/x` becomes
/// `https://h/x`, and a text that is wholly `git@h:x` becomes `h:x`.
pub fn strip_userinfo(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after
            .find(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '\'' | '"'))
            .unwrap_or(after.len());
        let (authority, tail) = after.split_at(end);
        out.push_str(authority.rsplit('@').next().unwrap_or(authority));
        rest = tail;
    }
    out.push_str(rest);
    let scp = !text.contains("://") && !text.contains(char::is_whitespace);
    match scp_parts(text) {
        Some((host, path)) if scp => {
            format!("{}:{path}", host.rsplit('@').next().unwrap_or(host))
        }
        Some(_) | None => out,
    }
}

/// Do two clone addresses name one repository? Protocol, user, `.git` and letter case of a host's
/// repository do not matter; ports do, within one protocol. Paths must be equal.
pub fn same_repository(a: &str, b: &str) -> bool {
    match (Address::of(a), Address::of(b)) {
        (Address::Path(a), Address::Path(b)) => a == b,
        (
            Address::Host {
                scheme: s1,
                host: h1,
                port: p1,
                path: x1,
            },
            Address::Host {
                scheme: s2,
                host: h2,
                port: p2,
                path: x2,
            },
        ) => h1 == h2 && x1 == x2 && (s1 != s2 || p1 == p2),
        (Address::Path(_), Address::Host { .. }) | (Address::Host { .. }, Address::Path(_)) => {
            false
        }
    }
}

enum Address {
    Path(String),
    Host {
        scheme: String,
        host: String,
        port: String,
        path: String,
    },
}

impl Address {
    fn of(text: &str) -> Self {
        let text = strip_userinfo(text);
        let path = |p: &str| {
            let p = p.trim_end_matches('/');
            p.strip_suffix("/.git").unwrap_or(p).to_owned()
        };
        if let Some(p) = text.strip_prefix("file://") {
            return Self::Path(path(p));
        }
        let (scheme, authority, rest) = match text.split_once("://") {
            Some((scheme, rest)) => {
                let (authority, rest) = rest.split_once('/').unwrap_or((rest, ""));
                (scheme, authority, rest)
            }
            None => match scp_parts(&text) {
                Some((host, rest)) if !text.starts_with('/') => ("ssh", host, rest),
                Some(_) | None => return Self::Path(path(&text)),
            },
        };
        let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
        let rest = rest.trim_matches('/');
        Self::Host {
            scheme: scheme.to_ascii_lowercase(),
            host: host.to_ascii_lowercase(),
            port: port.to_owned(),
            path: rest
                .strip_suffix(".git")
                .unwrap_or(rest)
                .to_ascii_lowercase(),
        }
    }
}
