//! What git says of the files of a checkout.

use std::collections::HashSet;

use camino::Utf8Path;

use super::call::{Git, GitError};

/// One line of `git ls-files -v --stage`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Staged {
    pub mode: String,
    pub object: String,
    pub stage: u8,
    /// git does not look at the file: `--assume-unchanged`, `--skip-worktree`, a sparse checkout.
    pub hidden: Hidden,
    pub path: Vec<u8>,
}

/// Whether git looks at a tracked file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hidden {
    No,
    AssumedUnchanged,
    Skipped,
}

/// What `git status` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    pub changed: u64,
    pub untracked: u64,
    /// Paths whose file is to be taken as it is now.
    pub present: Vec<Vec<u8>>,
    /// Tracked paths whose file is gone.
    pub gone: Vec<Vec<u8>>,
    /// Paths of `git add --intent-to-add`: in the index, but nothing is staged.
    pub intended: HashSet<Vec<u8>>,
    /// Repositories inside that are not tracked.
    pub nested: Vec<Vec<u8>>,
}

impl Git {
    /// What is changed and untracked. Nothing is written, not even what git learns by looking.
    pub(super) fn status(&self, path: &Utf8Path) -> Result<Status, GitError> {
        let args = [
            "-c",
            "core.untrackedCache=false",
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--ignored=no",
            "--ignore-submodules=none",
            "--no-renames",
        ];
        Ok(parse_status(&self.ask(self.slow_call(path, args))?))
    }

    /// Every tracked file, as it is staged.
    pub(super) fn staged(&self, path: &Utf8Path) -> Result<Vec<Staged>, String> {
        let args = ["ls-files", "-v", "--stage", "-z"];
        let said = self.ask(self.slow_call(path, args));
        parse_staged(&said.map_err(|e| e.to_string())?)
    }
}

/// Reads `git status --porcelain=v2 -z`.
fn parse_status(bytes: &[u8]) -> Status {
    let mut status = Status::default();
    let mut records = bytes.split(|b| *b == 0);
    while let Some(record) = records.next() {
        // Words before the path, by the first letter of the record.
        let words = match record.first() {
            Some(b'1') => 8,
            Some(b'2') => {
                records.next();
                9
            }
            Some(b'u') => 10,
            Some(b'?') => 1,
            Some(_) | None => continue,
        };
        let mut parts = record.splitn(words + 1, |b| *b == b' ');
        let kind = parts.next().unwrap_or_default();
        if kind == b"?" {
            let path = parts.next().unwrap_or_default();
            status.untracked += 1;
            match path.strip_suffix(b"/") {
                Some(path) => {
                    status.nested.push(path.to_vec());
                    status.present.push(path.to_vec());
                }
                None => status.present.push(path.to_vec()),
            }
            continue;
        }
        let xy = parts.next().unwrap_or_default();
        let path = parts.nth(words - 2).unwrap_or_default().to_vec();
        status.changed += 1;
        match xy.get(1) {
            Some(b'.') | None => {}
            Some(b'D') if kind == b"1" => status.gone.push(path),
            Some(b'A') if kind == b"1" => {
                status.intended.insert(path.clone());
                status.present.push(path);
            }
            Some(_) => status.present.push(path),
        }
    }
    status
}

/// Reads `git ls-files -v --stage -z`.
fn parse_staged(bytes: &[u8]) -> Result<Vec<Staged>, String> {
    let mut found = Vec::new();
    for record in bytes.split(|b| *b == 0).filter(|r| !r.is_empty()) {
        let tab = record.iter().position(|b| *b == b'\t');
        let parsed = tab.and_then(|tab| {
            let words = std::str::from_utf8(&record[..tab]).ok()?;
            let mut words = words.split(' ');
            let tag = words.next()?.chars().next()?;
            Some(Staged {
                mode: words.next()?.to_owned(),
                object: words.next()?.to_owned(),
                stage: words.next()?.parse().ok()?,
                hidden: if tag.eq_ignore_ascii_case(&'S') {
                    Hidden::Skipped
                } else if tag.is_ascii_lowercase() {
                    Hidden::AssumedUnchanged
                } else {
                    Hidden::No
                },
                path: record[tab + 1..].to_vec(),
            })
        });
        found.push(parsed.ok_or("git ls-files said something unknown")?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_records_of_every_kind() {
        let said = b"# branch.oid x\x001 M. N... 100644 100644 100644 a b staged only\x00\
            1 .M N... 100644 100644 100644 a b two words\x00\
            1 .D N... 100644 100644 000000 a b gone\x00\
            1 D. N... 100644 000000 000000 a b staged gone\x00\
            1 .A N... 000000 000000 100644 0 0 intended\x00\
            2 R. N... 100644 100644 100644 a b R100 new\x00old\x00\
            u UU N... 100644 100644 100644 100644 a b c both\x00\
            u UD N... 100644 100644 000000 100644 a b c theirs gone\x00\
            ? odd \n\xff name\x00? nested/\x00";
        let status = parse_status(said);
        assert_eq!((status.changed, status.untracked), (8, 2));
        let present: Vec<&[u8]> = status.present.iter().map(Vec::as_slice).collect();
        assert_eq!(
            present,
            [
                b"two words".as_slice(),
                b"intended",
                b"both",
                b"theirs gone",
                b"odd \n\xff name",
                b"nested"
            ]
        );
        assert_eq!(status.gone, [b"gone".to_vec()]);
        assert!(status.intended.contains(b"intended".as_slice()));
        assert_eq!(status.nested, [b"nested".to_vec()]);
    }

    #[test]
    fn staged_files_and_their_flags() {
        let said = b"H 100644 aa 0\tone\x00h 100755 bb 0\ttwo\tx\x00S 120000 cc 0\tthree\x00M 100644 dd 2\tfour\x00";
        let staged = parse_staged(said).unwrap();
        let flags: Vec<_> = staged.iter().map(|s| (s.hidden, s.stage)).collect();
        assert_eq!(
            flags,
            [
                (Hidden::No, 0),
                (Hidden::AssumedUnchanged, 0),
                (Hidden::Skipped, 0),
                (Hidden::No, 2)
            ]
        );
        assert_eq!(staged[1].path, b"two\tx");
        assert!(parse_staged(b"nonsense\x00").is_err());
    }
}
