//! Which branch a new checkout gets, and from where (DI-46).

use camino::Utf8Path;
use the_loop_core::workspace::{StartFrom, is_branch_name};

use super::call::{Git, GitError};
use super::{WorkspaceError, WorkspaceRequest};

/// How many names are tried when the item's own branch is checked out elsewhere.
const OTHER_NAMES_MAX: u32 = 9;

/// The branch of a new checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub branch: String,
    pub from: From,
    /// What a person should know about it.
    pub note: Option<String>,
}

/// Where the branch comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// It is there already.
    Existing,
    /// Made from the branch of that name at the remote, and follows it.
    Remote(String),
    /// Made from a commit; follows nothing, so that nothing is pushed anywhere by accident.
    Commit(String),
    /// The repository has no commit yet.
    Nothing,
}

impl Git {
    /// The commit that a ref means; `None` when there is no such ref.
    pub(super) fn commit_of(
        &self,
        repository: &Utf8Path,
        name: &str,
    ) -> Result<Option<String>, GitError> {
        let commit = format!("{name}^{{commit}}");
        let args = ["rev-parse", "--quiet", "--verify", &commit];
        self.ask_whether(self.call(repository, args))
    }

    /// Chooses for a repository that was just cloned or fetched. `taken`: branches that other
    /// worktrees hold. Existing branches are moved forward when they are behind, never back.
    pub(super) fn choose(
        &self,
        repository: &Utf8Path,
        request: &WorkspaceRequest,
        taken: &[String],
        just_cloned: bool,
        give_way: &dyn Fn() -> bool,
    ) -> Result<Choice, WorkspaceError> {
        let mut note = None;
        let base = match &request.start {
            StartFrom::DefaultBranch => None,
            StartFrom::PullHead(head) => match self.remote_branch(repository, head)? {
                Some(_) if !taken.contains(head) => {
                    return self.named(repository, head, None, note);
                }
                Some(commit) => {
                    note = Some(format!(
                        "{head} is checked out elsewhere, so a branch of its own starts from it"
                    ));
                    Some(commit)
                }
                None => self.pull_ref(repository, request, give_way)?,
            },
            StartFrom::PullRef => self.pull_ref(repository, request, give_way)?,
        };
        let base = if base.is_some() {
            base
        } else {
            if request.start != StartFrom::DefaultBranch {
                note = Some(
                    "the pull request's commits cannot be fetched; started from the default branch"
                        .to_owned(),
                );
            }
            self.default_base(repository, just_cloned, give_way)?
        };
        let own = request.slug.branch();
        if !taken.contains(&own) {
            return self.named(repository, &own, base, note);
        }
        let work_so_far = self.commit_of(repository, &format!("refs/heads/{own}"))?;
        let other = (2..=OTHER_NAMES_MAX)
            .map(|n| format!("{own}-{n}"))
            .find(|name| !taken.contains(name));
        match other {
            Some(other) => {
                let note = format!("{own} is checked out elsewhere, so this is {other}");
                self.named(repository, &other, work_so_far.or(base), Some(note))
            }
            None => Err(WorkspaceError::NeedsOperator(format!(
                "{own} and its substitutes are checked out elsewhere: git -C {repository} worktree list shows where"
            ))),
        }
    }

    /// A branch by this name: the one that is there, else the remote's, else a new one from `base`.
    fn named(
        &self,
        repository: &Utf8Path,
        branch: &str,
        base: Option<String>,
        note: Option<String>,
    ) -> Result<Choice, WorkspaceError> {
        let remote = self.remote_branch(repository, branch)?;
        let local = self.commit_of(repository, &format!("refs/heads/{branch}"))?;
        let from = match (local, &remote, base) {
            (Some(local), remote, base) => {
                if let Some(newer) = remote.clone().or(base) {
                    self.forward(repository, branch, &local, &newer)?;
                }
                From::Existing
            }
            (None, Some(_), _) => From::Remote(branch.to_owned()),
            (None, None, Some(commit)) => From::Commit(commit),
            (None, None, None) => From::Nothing,
        };
        Ok(Choice {
            branch: branch.to_owned(),
            from,
            note,
        })
    }

    /// Moves a branch that nothing holds from `old` to `newer`, when that loses nothing.
    fn forward(
        &self,
        repository: &Utf8Path,
        branch: &str,
        old: &str,
        newer: &str,
    ) -> Result<(), WorkspaceError> {
        if old == newer {
            return Ok(());
        }
        let args = ["merge-base", "--is-ancestor", old, newer];
        if self.ask_whether(self.call(repository, args))?.is_some() {
            let name = format!("refs/heads/{branch}");
            let update = self.call(repository, ["update-ref", &name, newer, old]);
            self.ask_mending(update, &|| false)?;
        }
        Ok(())
    }

    /// Is this commit in what the checkout has now? `commit` may be anything that came in: what is no full
    /// hash is in none, and neither is what git knows nothing of.
    pub fn has_commit(&self, checkout: &Utf8Path, commit: &str) -> bool {
        let is_hash =
            matches!(commit.len(), 40 | 64) && commit.bytes().all(|b| b.is_ascii_hexdigit());
        let args = ["merge-base", "--is-ancestor", commit, "HEAD"];
        is_hash && matches!(self.ask_whether(self.call(checkout, args)), Ok(Some(_)))
    }

    /// The commit of a remote branch, as last fetched; `None` also for what cannot be a branch name.
    pub(super) fn remote_branch(
        &self,
        repository: &Utf8Path,
        branch: &str,
    ) -> Result<Option<String>, GitError> {
        if !is_branch_name(branch) {
            return Ok(None);
        }
        self.commit_of(repository, &format!("refs/remotes/origin/{branch}"))
    }

    /// Fetches the head of a pull request, from wherever it was pushed; `None` when the remote has no
    /// such ref (it is no GitHub, or the number is none of its pull requests).
    fn pull_ref(
        &self,
        repository: &Utf8Path,
        request: &WorkspaceRequest,
        give_way: &dyn Fn() -> bool,
    ) -> Result<Option<String>, WorkspaceError> {
        let kept = format!("refs/the-loop/pull/{}", request.item.number());
        let spec = format!("+refs/pull/{}/head:{kept}", request.item.number());
        let args = ["fetch", "--quiet", "--no-tags", "origin", &spec];
        match self.ask_mending(self.network_call(repository, args), give_way) {
            Ok(_) => Ok(self.commit_of(repository, &kept)?),
            Err(e) if e.to_string().contains("couldn't find remote ref") => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The commit of the remote's default branch; `None` when the repository is empty.
    fn default_base(
        &self,
        repository: &Utf8Path,
        just_cloned: bool,
        give_way: &dyn Fn() -> bool,
    ) -> Result<Option<String>, WorkspaceError> {
        const KEPT: &str = "refs/remotes/origin/HEAD";
        if just_cloned && let Some(commit) = self.commit_of(repository, KEPT)? {
            return Ok(Some(commit));
        }
        let args = ["ls-remote", "--symref", "origin", "HEAD"];
        let said = self.ask_patiently(self.network_call(repository, args), give_way)?;
        let (named, commit) = parse_remote_head(&said);
        if let Some(branch) = named
            && let Some(commit) = self.remote_branch(repository, branch)?
        {
            return Ok(Some(commit));
        }
        if let Some(commit) = commit
            && let Some(commit) = self.commit_of(repository, commit)?
        {
            return Ok(Some(commit));
        }
        // The remote's HEAD names a branch that is not there.
        for branch in ["main", "master"] {
            if let Some(commit) = self.remote_branch(repository, branch)? {
                return Ok(Some(commit));
            }
        }
        let args = [
            "for-each-ref",
            "--count=1",
            "--format=%(objectname)",
            "refs/remotes/origin",
        ];
        let first = self.ask_text(self.call(repository, args))?;
        Ok((!first.is_empty()).then_some(first))
    }
}

/// The branch and the commit in the answer of `git ls-remote --symref origin HEAD`.
fn parse_remote_head(said: &str) -> (Option<&str>, Option<&str>) {
    let (mut branch, mut commit) = (None, None);
    for line in said.lines() {
        let Some((left, "HEAD")) = line.split_once('\t') else {
            continue;
        };
        match left.strip_prefix("ref: refs/heads/") {
            Some(name) => branch = Some(name),
            None => commit = Some(left),
        }
    }
    (branch, commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remotes_head_is_read_with_and_without_a_branch() {
        let said = "ref: refs/heads/trunk\tHEAD\n3f1c\tHEAD\n";
        assert_eq!(parse_remote_head(said), (Some("trunk"), Some("3f1c")));
        assert_eq!(parse_remote_head("3f1c\tHEAD\n"), (None, Some("3f1c")));
        assert_eq!(parse_remote_head(""), (None, None));
    }
}
