//! Work-item refs, slugs, targets and the other names (ST-1 to ST-10).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// The host that is never written in a ref.
pub const DEFAULT_HOST: &str = "github.com";
/// The provider of the embedded tracker.
pub const LOCAL_PROVIDER: &str = "local";
/// The provider of GitHub and its enterprise hosts.
pub const GITHUB_PROVIDER: &str = "github";

/// A ticket or pull request: `<provider>:[<host>/]<owner>/<repo>#<number>` (state page, section 1).
///
/// Two refs are equal when their spelling is; two spellings of one item share an
/// [`identity key`](WorkItemRef::key).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkItemRef {
    provider: String,
    repo: RepoRef,
    number: u64,
}

/// A repository on a host. `host` is `github.com` for GitHub itself and empty for the embedded tracker.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RepoRef {
    /// Host name with an optional port; empty for the embedded tracker.
    pub host: String,
    /// Owner part, checked.
    pub owner: String,
    /// Repository part, checked.
    pub name: String,
}

/// Why a text is not a ref. `Display` is the words in the parentheses of the error message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefError {
    /// No `provider:` in front, or one that is misspelt.
    #[error("it must start with a provider, such as github:")]
    Provider,
    /// A browser URL; carries the ref it means when it can be told.
    #[error("a URL is not a ref")]
    Url(Option<String>),
    /// Not two or three parts before `#`.
    #[error("expected owner/repo or host/owner/repo before #")]
    Parts,
    /// The first of three parts is no host.
    #[error("{0:?} is not a host name")]
    Host(String),
    /// The number is missing, zero, signed, too large or not ASCII digits.
    #[error("the number must be 1 to 18446744073709551615 in ASCII digits")]
    Number,
    /// `..` in a part.
    #[error("{0} contains \"..\"")]
    DotDot(&'static str),
    /// A part begins with `-`, is `.`, empty, too long or has characters outside the set.
    #[error(
        "{0} must be 1 to 100 of letters, digits, \".\", \"_\", \"-\" and not begin with \"-\""
    )]
    Part(&'static str),
    /// A repository that ends in `.git` would be a second name of the same one.
    #[error("repo ends in .git")]
    DotGit,
}

impl RefError {
    /// What to write instead, for the `hint:` line.
    pub fn hint(&self) -> String {
        if let RefError::Url(Some(meant)) = self {
            return format!("the ref of that page is {meant}");
        }
        "expected <provider>:[<host>/]<owner>/<repo>#<number>, for example github:octo/repo#15"
            .to_owned()
    }
}

impl WorkItemRef {
    /// Builds a ref from parts that came from elsewhere, checking each as the parser does.
    pub fn new(provider: &str, repo: RepoRef, number: u64) -> Result<Self, RefError> {
        check_provider(provider)?;
        if number == 0 {
            return Err(RefError::Number);
        }
        if (provider == LOCAL_PROVIDER) != repo.host.is_empty() {
            return Err(RefError::Host(repo.host));
        }
        Ok(Self {
            provider: provider.to_owned(),
            repo,
            number,
        })
    }

    /// Provider part.
    pub fn provider(&self) -> &str {
        &self.provider
    }
    /// Repository part.
    pub fn repo(&self) -> &RepoRef {
        &self.repo
    }
    /// Number part, at least 1.
    pub fn number(&self) -> u64 {
        self.number
    }
    /// Is this an item of the embedded tracker?
    pub fn is_local(&self) -> bool {
        self.provider == LOCAL_PROVIDER
    }
    /// Does this provider have a tracker? Others can be listed and reset, never started.
    pub fn has_tracker(&self) -> bool {
        self.provider == LOCAL_PROVIDER || self.provider == GITHUB_PROVIDER
    }

    /// The identity key (ST-4): two spellings with one key are one item.
    pub fn key(&self) -> ItemKey {
        ItemKey(self.to_string().to_ascii_lowercase())
    }

    /// The plain slug (ST-6), before a collision is looked at.
    pub fn slug(&self) -> Slug {
        let plain = squeeze(&format!(
            "{}-{}-{}",
            self.provider,
            self.path(),
            self.number
        ));
        if plain.len() <= 200 {
            Slug(plain)
        } else {
            Slug(format!("{}~{}", &plain[..191], self.suffix()))
        }
    }

    /// The slug of the item that came second to a colliding name (ST-8).
    pub fn suffixed_slug(&self) -> Slug {
        let plain = squeeze(&format!(
            "{}-{}-{}",
            self.provider,
            self.path(),
            self.number
        ));
        let head = if plain.len() <= 200 {
            &plain[..]
        } else {
            &plain[..191]
        };
        Slug(format!("{head}~{}", self.suffix()))
    }

    /// First 8 hex digits of SHA-256 of the identity key.
    fn suffix(&self) -> String {
        hex::encode(Sha256::digest(self.key().as_str().as_bytes()))[..8].to_owned()
    }

    fn path(&self) -> String {
        match self.repo.host.as_str() {
            "" | DEFAULT_HOST => format!("{}/{}", self.repo.owner, self.repo.name),
            host => format!("{host}/{}/{}", self.repo.owner, self.repo.name),
        }
    }

    /// The page of this item in a browser, for providers that have one (ST-3).
    pub fn url(&self) -> Option<String> {
        (self.provider == GITHUB_PROVIDER).then(|| {
            format!(
                "https://{}/{}/{}/issues/{}",
                self.repo.host, self.repo.owner, self.repo.name, self.number
            )
        })
    }
}

/// Every run of characters outside `[A-Za-z0-9._-]` becomes one `-`.
fn squeeze(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_run = false;
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') {
            out.push(c);
            in_run = false;
        } else if !in_run {
            out.push('-');
            in_run = true;
        }
    }
    out
}

impl fmt::Display for WorkItemRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}#{}", self.provider, self.path(), self.number)
    }
}

impl FromStr for WorkItemRef {
    type Err = RefError;

    fn from_str(text: &str) -> Result<Self, RefError> {
        let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
        if text.starts_with("https://") || text.starts_with("http://") {
            return Err(RefError::Url(ref_of_url(text)));
        }
        let (provider, rest) = text.split_once(':').ok_or(RefError::Provider)?;
        check_provider(provider)?;
        let (path, digits) = rest.rsplit_once('#').ok_or(RefError::Number)?;
        let number = parse_number(digits)?;
        let parts: Vec<&str> = path.split('/').collect();
        let (host, owner, name) = match parts[..] {
            [owner, name] => {
                let host = if provider == LOCAL_PROVIDER {
                    ""
                } else {
                    DEFAULT_HOST
                };
                (host.to_owned(), owner, name)
            }
            [host, owner, name] if provider != LOCAL_PROVIDER => (check_host(host)?, owner, name),
            _ => return Err(RefError::Parts),
        };
        let repo = RepoRef::new(&host, owner, name)?;
        Ok(Self {
            provider: provider.to_owned(),
            repo,
            number,
        })
    }
}

impl Serialize for WorkItemRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WorkItemRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl RepoRef {
    /// Checks host (may be empty for the embedded tracker), owner and name.
    pub fn new(host: &str, owner: &str, name: &str) -> Result<Self, RefError> {
        let host = if host.is_empty() {
            String::new()
        } else {
            check_host(host)?
        };
        check_part("owner", owner)?;
        check_part("repo", name)?;
        if name.to_ascii_lowercase().ends_with(".git") {
            return Err(RefError::DotGit);
        }
        Ok(Self {
            host,
            owner: owner.to_owned(),
            name: name.to_owned(),
        })
    }

    /// `owner/repo` or `host/owner/repo`, the latter for hosts other than `github.com`.
    pub fn parse(text: &str) -> Result<Self, RefError> {
        let parts: Vec<&str> = text.split('/').collect();
        match parts[..] {
            [owner, name] => Self::new(DEFAULT_HOST, owner, name),
            [host, owner, name] => Self::new(host, owner, name),
            _ => Err(RefError::Parts),
        }
    }

    /// `owner/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    /// Host, owner and name folded for comparison and for lock names.
    pub fn key(&self) -> String {
        format!("{}/{}/{}", self.host, self.owner, self.name).to_ascii_lowercase()
    }

    /// The directory name of the host below a workspace root: a `:` is written `_` (DI-45).
    pub fn host_dir(&self) -> String {
        if self.host.is_empty() {
            "local".to_owned()
        } else {
            self.host.replace(':', "_")
        }
    }
}

impl fmt::Display for RepoRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.as_str() {
            "" | DEFAULT_HOST => write!(f, "{}/{}", self.owner, self.name),
            host => write!(f, "{host}/{}/{}", self.owner, self.name),
        }
    }
}

fn check_provider(provider: &str) -> Result<(), RefError> {
    let mut bytes = provider.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_lowercase());
    let rest = bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if first && rest && provider.len() <= 32 {
        Ok(())
    } else {
        Err(RefError::Provider)
    }
}

fn parse_number(digits: &str) -> Result<u64, RefError> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(RefError::Number);
    }
    match digits.parse::<u64>() {
        Ok(0) | Err(_) => Err(RefError::Number),
        Ok(number) => Ok(number),
    }
}

/// A dotted DNS name with an optional port, or a bare name with one; at most 253 characters.
/// Returned in lower case.
fn check_host(host: &str) -> Result<String, RefError> {
    let bad = || RefError::Host(host.to_owned());
    let (name, port) = match host.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (host, None),
    };
    if let Some(port) = port {
        let digits =
            !port.is_empty() && port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
        if !digits || port.starts_with('0') || port.parse::<u16>().is_err() {
            return Err(bad());
        }
    }
    let labels: Vec<&str> = name.split('.').collect();
    let label_ok = |label: &&str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let shaped = labels.iter().all(label_ok) && (labels.len() > 1 || port.is_some());
    if shaped && host.len() <= 253 {
        Ok(host.to_ascii_lowercase())
    } else {
        Err(bad())
    }
}

fn check_part(which: &'static str, part: &str) -> Result<(), RefError> {
    if part.contains("..") {
        return Err(RefError::DotDot(which));
    }
    let charset = part
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    if part.is_empty() || part.len() > 100 || part == "." || part.starts_with('-') || !charset {
        return Err(RefError::Part(which));
    }
    Ok(())
}

/// The ref that an issue or pull-request page means, when the URL is one.
fn ref_of_url(url: &str) -> Option<String> {
    let rest = url.split_once("://")?.1;
    let rest = rest.split(['?', '#']).next()?;
    let parts: Vec<&str> = rest.trim_end_matches('/').split('/').collect();
    let [host, owner, name, kind, number] = parts[..] else {
        return None;
    };
    if kind != "issues" && kind != "pull" {
        return None;
    }
    let repo = RepoRef::new(host, owner, name).ok()?;
    let item = WorkItemRef::new(GITHUB_PROVIDER, repo, parse_number(number).ok()?).ok()?;
    Some(item.to_string())
}

/// The identity of a work item: its canonical ref in ASCII lower case (ST-4).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemKey(String);

impl ItemKey {
    /// The key as text, as the inbox stores it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// Takes a key that the inbox gave back. Not a parser: only [`WorkItemRef::key`] makes keys.
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for ItemKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The file-safe form of a ref; the only thing paths and tmux names are built from (ST-6).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slug(String);

impl Slug {
    /// The slug as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads a slug from a file name without its extension (ST-34); `None` for a stranger's.
    pub fn from_file_stem(stem: &str) -> Option<Self> {
        let (head, suffix) = match stem.rsplit_once('~') {
            Some((head, suffix)) => (head, Some(suffix)),
            None => (stem, None),
        };
        let charset = |s: &str| {
            s.bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
        };
        let hex8 = |s: &str| {
            s.len() == 8
                && s.bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        if head.is_empty() || !charset(head) || !suffix.is_none_or(hex8) || stem.len() > 240 {
            return None;
        }
        let numbered = head.rsplit_once('-').is_some_and(|(h, n)| {
            !h.is_empty() && !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())
        });
        let cut = head.len() == 191 && suffix.is_some();
        (numbered || cut).then(|| Self(stem.to_owned()))
    }

    /// The slug without its collision suffix, in lower case, `.` as `_`: the name of the lock that
    /// colliding items share (ST-8, ST-23).
    pub fn folded(&self) -> String {
        let head = self.0.split('~').next().unwrap_or(&self.0);
        head.to_ascii_lowercase().replace('.', "_")
    }

    /// The tmux session name of this item (ST-7).
    pub fn target(&self) -> TmuxTarget {
        TmuxTarget(format!("loop-{}", self.0.replace('.', "_")))
    }

    /// The branch of a new item's checkout (DI-46).
    pub fn branch(&self) -> String {
        format!("loop/{}", self.0.replace('~', "-"))
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a tmux session of ours. Only names of this shape are ever signalled or killed (ST-7).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TmuxTarget(String);

impl TmuxTarget {
    /// Accepts a recorded or listed name; `.` and `:` read as `_`. `None` unless it then matches
    /// `^loop-[A-Za-z0-9_~-]+$`.
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.replace(['.', ':'], "_");
        let rest = name.strip_prefix("loop-")?;
        let charset = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'~' | b'-');
        (!rest.is_empty() && rest.bytes().all(charset)).then_some(Self(name))
    }

    /// The session name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `=NAME`, exact, for the commands that take a session.
    pub fn session(&self) -> String {
        format!("={}", self.0)
    }

    /// `=NAME:`, exact, for the commands that take a pane or window.
    pub fn pane(&self) -> String {
        format!("={}:", self.0)
    }
}

impl fmt::Display for TmuxTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of a harness's conversation, checked before it may reach an argv (DI-33).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HarnessSessionId(String);

impl HarnessSessionId {
    /// Accepts `[A-Za-z0-9][A-Za-z0-9._-]{0,127}`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = text.bytes();
        let first = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
        let rest = bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
        (first && rest && text.len() <= 128).then(|| Self(text.to_owned()))
    }
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The mark in a prompt's first line: `dlv-` and 16 lower-case hex digits (DI-25).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Marker(String);

impl Marker {
    /// Makes a marker from 8 random bytes.
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(format!("dlv-{}", hex::encode(bytes)))
    }
    /// Reads a marker; `None` unless it has exactly the shape.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("dlv-")?;
        let hex16 = digits.len() == 16
            && digits
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        hex16.then(|| Self(text.to_owned()))
    }
    /// The marker as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Marker {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("not a delivery marker")
    }
}

impl From<Marker> for String {
    fn from(marker: Marker) -> Self {
        marker.0
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<WorkItemRef, RefError> {
        text.parse()
    }

    #[test]
    fn st1_accepted_refs_take_their_canonical_form() {
        for (text, canonical, slug) in [
            (
                "github:octo/repo#15",
                "github:octo/repo#15",
                "github-octo-repo-15",
            ),
            (
                " github:octo/repo#015\n",
                "github:octo/repo#15",
                "github-octo-repo-15",
            ),
            (
                "github:github.com/octo/repo#15",
                "github:octo/repo#15",
                "github-octo-repo-15",
            ),
            (
                "github:ghe.corp.example/octo/repo#15",
                "github:ghe.corp.example/octo/repo#15",
                "github-ghe.corp.example-octo-repo-15",
            ),
            (
                "github:localhost:3000/octo/repo#15",
                "github:localhost:3000/octo/repo#15",
                "github-localhost-3000-octo-repo-15",
            ),
            (
                "github:octo/.github#1",
                "github:octo/.github#1",
                "github-octo-.github-1",
            ),
            (
                "github:octo/foo.js#15",
                "github:octo/foo.js#15",
                "github-octo-foo.js-15",
            ),
            (
                "local:octo/repo#1",
                "local:octo/repo#1",
                "local-octo-repo-1",
            ),
            ("jira:PROJ/x#3", "jira:PROJ/x#3", "jira-PROJ-x-3"),
        ] {
            let item = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(item.to_string(), canonical);
            assert_eq!(item.slug().as_str(), slug);
        }
    }

    #[test]
    fn st1_rejected_refs() {
        for text in [
            "octo/repo#15",
            "GitHub:o/r#1",
            "git_hub:a/b#1",
            "github:octo/repo",
            "github:octo/#1",
            "github:a/b/c/d#1",
            "github:octo/repo/sub#15",
            "github:localhost/o/r#1",
            "github:octo/repo#1#2",
            "github:octo/repo#0",
            "github:octo/repo#-1",
            "github:octo/repo#１５",
            "github:octo/repo#18446744073709551616",
            "github:/etc/passwd#1",
            "github:../..#1",
            "github:../repo#1",
            "github:a..b/c#1",
            "github:-x/repo#1",
            "github:o\0/r#1",
            "github:o\n/r#1",
            "github:o /r#1",
            "github:é/r#1",
            "github:%2e/r#1",
            "github:a:b/r#1",
            "github:a@b/r#1",
            "local:host:1/o/r#1",
            "https://github.com/octo/repo/issues/15",
            "github:o/r.git#1",
            "",
        ] {
            assert!(parse(text).is_err(), "{text:?} should be refused");
        }
        let hint = parse("https://github.com/octo/repo/pull/15?x=1")
            .unwrap_err()
            .hint();
        assert!(hint.ends_with("github:octo/repo#15"), "{hint}");
        let text = parse("github:../..#1").unwrap_err().to_string();
        assert_eq!(text, "owner contains \"..\"");
    }

    #[test]
    fn st8_a_collision_gets_the_suffix_of_its_identity() {
        let second = parse("github:a/b-c#1").unwrap();
        assert_eq!(second.suffixed_slug().as_str(), "github-a-b-c-1~96674c03");
        assert_eq!(
            second.suffixed_slug().target().as_str(),
            "loop-github-a-b-c-1~96674c03"
        );
        let first = parse("github:a-b/c#1").unwrap();
        assert_eq!(first.slug().folded(), second.suffixed_slug().folded());
        let dotted = parse("github:o/foo.js#15").unwrap();
        let plain = parse("github:o/foo_js#15").unwrap();
        assert_eq!(dotted.slug().folded(), plain.slug().folded());
        assert_eq!(dotted.slug().target(), plain.slug().target());
    }

    #[test]
    fn st6_a_long_slug_is_cut_and_suffixed() {
        let long = parse(&format!("github:{}/{}#1", "o".repeat(100), "r".repeat(100))).unwrap();
        let slug = long.slug();
        assert_eq!(slug.as_str().len(), 200);
        assert_eq!(slug, long.suffixed_slug());
        assert!(Slug::from_file_stem(slug.as_str()).is_some());
    }

    #[test]
    fn st34_file_stems_of_strangers_are_none() {
        for stem in [
            "notes",
            "api-token",
            "github-octo-repo-15~xyz",
            "github-octo-repo-",
            "",
            "-1",
            "a b-1",
        ] {
            assert!(Slug::from_file_stem(stem).is_none(), "{stem}");
        }
        for stem in ["github-octo-repo-15", "github-a-b-c-1~96674c03"] {
            assert!(Slug::from_file_stem(stem).is_some(), "{stem}");
        }
    }

    #[test]
    fn st7_only_our_target_names_are_accepted() {
        assert!(TmuxTarget::parse("loop-a.b:c-1").is_some_and(|t| t.as_str() == "loop-a_b_c-1"));
        for name in ["main", "loop-", "loop-a b", "loop-é-1", "xloop-a-1"] {
            assert!(TmuxTarget::parse(name).is_none(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn st1_the_parser_never_panics(text in "\\PC*") {
            let _ = parse(&text);
        }

        #[test]
        fn st1_parse_of_display_is_the_identity(
            provider in "(github|local|jira)",
            host in proptest::option::of("[a-z]{1,8}\\.[a-z]{2,5}(:[1-9][0-9]{0,3})?"),
            owner in "[A-Za-z0-9_][A-Za-z0-9_-]{0,20}",
            name in "[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}",
            number in 1u64..,
        ) {
            let host = host.filter(|_| provider != "local").map(|h| format!("{h}/")).unwrap_or_default();
            let text = format!("{provider}:{host}{owner}/{name}#{number}");
            if let Ok(item) = parse(&text) {
                prop_assert_eq!(parse(&item.to_string()).unwrap(), item.clone());
                prop_assert!(Slug::from_file_stem(item.slug().as_str()).is_some());
                prop_assert!(TmuxTarget::parse(item.slug().target().as_str()).is_some());
            }
        }
    }
}
