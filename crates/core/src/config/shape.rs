//! Shapes of strings, each with the words that say what it must be.

use crate::ids::RepoRef;

/// A shape that a string must have.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// What the message says after "must be".
    pub words: &'static str,
    /// Whether a text has the shape.
    pub fits: fn(&str) -> bool,
    /// An ECMA-262 expression for the JSON schema, where one says the same or nearly so.
    pub pattern: Option<&'static str>,
    /// The words it may be, where they are a closed list.
    pub choices: &'static [&'static str],
}

/// Any text without a NUL or a line break.
pub const LINE: Shape = Shape {
    words: "one line of text",
    fits: one_line,
    pattern: None,
    choices: &[],
};
/// A [`LINE`] that is not empty.
pub const WORD: Shape = Shape {
    words: "a line of text that is not empty",
    fits: |s| !s.trim().is_empty() && one_line(s),
    pattern: Some("\\S"),
    choices: &[],
};
/// A control keyword: at most 60 characters, one line; `""` switches it off.
pub const KEYWORD: Shape = Shape {
    words: "one line of at most 60 characters",
    fits: |s| s.chars().count() <= 60 && one_line(s) && (s.is_empty() || !s.trim().is_empty()),
    pattern: None,
    choices: &[],
};
/// An argument of a program.
pub const ARGUMENT: Shape = Shape {
    words: "text that is not empty and has no NUL",
    fits: |s| !s.is_empty() && !s.contains('\0'),
    pattern: Some("."),
    choices: &[],
};
/// `X.Y.Z` in digits.
pub const VERSION: Shape = Shape {
    words: "a version such as 1.0.0",
    fits: |s| super::version::parse(s).is_some(),
    pattern: Some("^[0-9]+\\.[0-9]+\\.[0-9]+$"),
    choices: &[],
};
/// The name of a variable.
pub const VARIABLE: Shape = Shape {
    words: "the name of a variable",
    fits: super::envfile::is_name,
    pattern: Some("^[A-Za-z_][A-Za-z0-9_]*$"),
    choices: &[],
};
/// The name of a variable, or the beginning of some and a `*`.
pub const PASS: Shape = Shape {
    words: "the name of a variable or PREFIX_*",
    fits: |s| super::envfile::is_name(s.strip_suffix('*').unwrap_or(s)),
    pattern: Some("^[A-Za-z_][A-Za-z0-9_]*\\*?$"),
    choices: &[],
};
/// An entry of `authorizedUsers`.
pub const LOGIN: Shape = Shape {
    words: "a login, name[bot] or id:NUMBER",
    fits: is_login,
    pattern: Some("^(id:[0-9]+|[A-Za-z0-9][A-Za-z0-9_.-]*(\\[bot\\])?)$"),
    choices: &[],
};
/// The name of tmux's socket.
pub const SOCKET: Shape = Shape {
    words: "letters, digits, \".\", \"_\" and \"-\"",
    fits: |s| {
        s.len() <= 64
            && s.bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
            && !matches!(s, "." | "..")
    },
    pattern: Some("^[A-Za-z0-9._-]*$"),
    choices: &[],
};
/// The name of a host.
pub const HOST: Shape = Shape {
    words: "a host name such as ghe.corp.example",
    fits: |s| RepoRef::new(s, "o", "r").is_ok() && !s.is_empty(),
    pattern: None,
    choices: &[],
};
/// `OWNER/REPO`.
pub const REPO: Shape = Shape {
    words: "OWNER/REPO",
    fits: |s| s.split('/').count() == 2 && RepoRef::parse(s).is_ok(),
    pattern: Some("^[^/]+/[^/]+$"),
    choices: &[],
};
/// `OWNER/REPO` or `HOST/OWNER/REPO`.
pub const REPO_OF_HOST: Shape = Shape {
    words: "OWNER/REPO or HOST/OWNER/REPO",
    fits: |s| RepoRef::parse(s).is_ok(),
    pattern: Some("^([^/]+/)?[^/]+/[^/]+$"),
    choices: &[],
};
/// `HOST` or `HOST/OWNER/REPO`.
pub const HOST_OR_REPO: Shape = Shape {
    words: "HOST or HOST/OWNER/REPO",
    fits: |s| match s.split('/').count() {
        1 => (HOST.fits)(s),
        3 => RepoRef::parse(s).is_ok(),
        _ => false,
    },
    pattern: None,
    choices: &[],
};
/// An address to listen on.
pub const ADDRESS: Shape = Shape {
    words: "an IP address or localhost",
    fits: |s| s == "localhost" || s.parse::<std::net::IpAddr>().is_ok(),
    pattern: None,
    choices: &[],
};
/// The path of the receiver.
pub const URL_PATH: Shape = Shape {
    words: "a path that begins with / and has no ?",
    fits: |s| {
        s.starts_with('/')
            && s.len() <= 512
            && s.bytes()
                .all(|b| b.is_ascii_graphic() && !matches!(b, b'?' | b'#'))
    },
    pattern: Some("^/[^?#]*$"),
    choices: &[],
};
/// A path (CF-6).
pub const PATH: Shape = Shape {
    words: "a path on one line, absolute, relative or below ~/",
    fits: |s| !s.is_empty() && is_path(s),
    pattern: Some("."),
    choices: &[],
};
/// A path, or `""` for none.
pub const PATH_OR_NONE: Shape = Shape {
    words: "\"\" or a path on one line, absolute, relative or below ~/",
    fits: is_path,
    pattern: None,
    choices: &[],
};
/// From where a repository of the embedded tracker is cloned.
pub const SOURCE: Shape = Shape {
    words: "a path or a git URL without a password",
    fits: |s| {
        if super::paths::is_git_url(s) {
            is_safe_url(s)
        } else {
            (PATH.fits)(s) && !s.starts_with('-')
        }
    },
    pattern: Some("."),
    choices: &[],
};
/// From where repositories of a host are cloned.
pub const CLONE_URL: Shape = Shape {
    words: "a git URL without a password, or an absolute path; {owner} and {repo} are filled in",
    fits: |s| {
        let filled = s.replace("{owner}", "o").replace("{repo}", "r");
        let placed = super::paths::is_git_url(s) && is_safe_url(s);
        !filled.contains(['{', '}']) && one_line(s) && (placed || s.starts_with('/'))
    },
    pattern: Some("."),
    choices: &[],
};
/// Address of an API: https, or http where nothing leaves the machine.
pub const API_URL: Shape = Shape {
    words: "an https address without user and query, or an http one of this machine itself",
    fits: is_api_url,
    pattern: None,
    choices: &[],
};
/// The same, or none.
pub const API_URL_OR_NONE: Shape = Shape {
    words: "an https address without user and query, or an http one of this machine itself, or empty",
    fits: |s| s.is_empty() || is_api_url(s),
    pattern: None,
    choices: &[],
};
/// A program, or none.
pub const WORD_OR_NONE: Shape = Shape {
    words: "one word, or empty",
    fits: |s| s.is_empty() || (WORD.fits)(s),
    pattern: None,
    choices: &[],
};
/// An emoji of the palette, or none.
pub const REACTION: Shape = Shape {
    words: "one of +1, -1, laugh, confused, heart, hooray, rocket, eyes or \"\"",
    fits: |s| s.is_empty() || PALETTE.contains(&s),
    pattern: Some("^(\\+1|-1|laugh|confused|heart|hooray|rocket|eyes)?$"),
    choices: PALETTE,
};
/// An event of GitHub's that this program can be told of.
pub const GITHUB_EVENT: Shape = Shape {
    words: "an event the receiver knows",
    fits: |s| GITHUB_EVENTS.contains(&s),
    pattern: None,
    choices: GITHUB_EVENTS,
};
/// The name of a harness; which there are is looked at across keys.
pub const HARNESS: Shape = Shape {
    words: "a name of small letters, digits and \"-\", beginning with a letter, of at most 32 characters",
    fits: |s| {
        s.len() <= 32
            && s.bytes().next().is_some_and(|b| b.is_ascii_lowercase())
            && s.bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    },
    pattern: Some("^[a-z][a-z0-9-]{0,31}$"),
    choices: &[],
};
/// `OWNER/REPO` or `HOST/OWNER/REPO`.
pub const ANY_REPO: Shape = Shape {
    words: "OWNER/REPO or HOST/OWNER/REPO",
    fits: |s| matches!(s.split('/').count(), 2 | 3) && RepoRef::parse(s).is_ok(),
    pattern: Some("^[^/]+/[^/]+(/[^/]+)?$"),
    choices: &[],
};
/// A variable that a harness may be given: none of our own.
pub const PANE_VARIABLE: Shape = Shape {
    words: "the name of a variable that does not begin with THE_LOOP_",
    fits: |s| super::envfile::is_name(s) && !s.starts_with("THE_LOOP_"),
    pattern: Some("^(?!THE_LOOP_)[A-Za-z_][A-Za-z0-9_]*$"),
    choices: &[],
};
/// The value of a variable.
pub const VALUE: Shape = Shape {
    words: "text without a NUL",
    fits: |s| !s.contains('\0'),
    pattern: None,
    choices: &[],
};

/// The reactions that GitHub has.
pub const PALETTE: &[&str] = &[
    "+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes",
];
/// Every event that has an effect (IN-7).
pub const GITHUB_EVENTS: &[&str] = &[
    "issues",
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "pull_request_review_thread",
    "workflow_run",
    "check_run",
    "check_suite",
    "status",
];
/// The harnesses of this release, by name.
pub const HARNESSES: &[&str] = &["claude", "codex", "opencode", "cursor", "gemini", "demo"];

fn one_line(text: &str) -> bool {
    !text.contains(['\0', '\n', '\r'])
}

fn is_login(text: &str) -> bool {
    if let Some(number) = text.strip_prefix("id:") {
        return number.parse::<u64>().is_ok_and(|n| n > 0)
            && number.bytes().all(|b| b.is_ascii_digit());
    }
    let name = text.strip_suffix("[bot]").unwrap_or(text);
    let first = name
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphanumeric());
    first
        && name.len() <= 100
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// One line, no `~name`: another user's home is not looked up.
fn is_path(text: &str) -> bool {
    let own_home = text
        .strip_prefix('~')
        .is_none_or(|rest| rest.is_empty() || rest.starts_with('/'));
    one_line(text) && own_home && text.len() <= 4096
}

/// A URL that cannot be taken for an option and carries no password (CF-45).
fn is_safe_url(text: &str) -> bool {
    let user = text
        .split_once("://")
        .and_then(|(scheme, rest)| Some((scheme, rest.split('/').next()?.rsplit_once('@')?.0)));
    let password =
        user.is_some_and(|(scheme, user)| user.contains(':') || scheme.starts_with("http"));
    one_line(text) && !text.starts_with('-') && !password && text.len() <= 4096
}

/// A credential goes to this address: nothing in it may be taken for another one.
fn is_api_url(text: &str) -> bool {
    let (rest, is_plain) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
        (Some(rest), _) => (rest, false),
        (None, Some(rest)) => (rest, true),
        (None, None) => return false,
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') && !port.contains(']') => (host, Some(port)),
        Some(_) | None => (authority, None),
    };
    let is_loopback = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    let is_name = !host.is_empty()
        && (is_loopback
            || host
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.')));
    let is_clean = text
        .bytes()
        .all(|b| b.is_ascii_graphic() && !matches!(b, b'?' | b'#' | b'@' | b'\\'));
    let has_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    is_name && is_clean && has_port && (!is_plain || is_loopback) && text.len() <= 500
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cf17_a_credential_goes_to_a_plain_address_over_tls_or_stays_here() {
        for fine in [
            "https://api.github.com",
            "https://ghe.corp.example:8443/api/v3/",
            "http://127.0.0.1:4000",
            "http://localhost/api/v3",
            "http://[::1]:80",
        ] {
            assert!((API_URL.fits)(fine), "{fine}");
        }
        for bad in [
            "",
            "api.github.com",
            "http://api.github.com",
            "https://user@api.github.com",
            "https://user:word@api.github.com",
            "https://api.github.com?x=1",
            "https://api.github.com#x",
            "https://",
            "https://a b",
            "https://a:0",
            "https://a:99999",
            "http://127.0.0.1.evil.example",
            "http://localhost@evil.example",
            "https://evil\\.example",
            "ftp://a",
        ] {
            assert!(!(API_URL.fits)(bad), "{bad}");
        }
        assert!((API_URL_OR_NONE.fits)(""));
    }
}
