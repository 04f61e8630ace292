//! Why an operation did not do what was asked.

use std::error::Error;

/// What kind of failure it is; the kind alone sets the exit code (SE-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A flag, ref, selector or value that cannot be meant. Exit 2.
    Usage,
    /// Nobody knows the thing asked for. Exit 1.
    NotFound,
    /// It is known, and this is not done to it. Exit 1.
    Refused,
    /// There was nothing to do; no error, said without a word in front. Exit 1.
    Nothing,
    /// Another process is at it; a later try can help. Exit 1.
    Busy,
    /// It was tried in vain. Exit 1.
    Failed,
}

impl Kind {
    /// The exit code.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::NotFound | Self::Refused | Self::Nothing | Self::Busy | Self::Failed => 1,
        }
    }
}

/// A failure in the words of SE-6: what failed, why, and what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OpError {
    /// What kind.
    pub kind: Kind,
    /// What failed: lower case, no final stop.
    pub message: String,
    /// Why, outermost first.
    pub causes: Vec<String>,
    /// Next steps, at most three.
    pub hints: Vec<String>,
}

impl OpError {
    /// A failure without causes and hints.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
        }
    }
    /// A [`Kind::Usage`].
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }
    /// A [`Kind::NotFound`].
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, message)
    }
    /// A [`Kind::Refused`].
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(Kind::Refused, message)
    }
    /// A [`Kind::Failed`] for the reason that `source` and its chain give.
    pub fn failed(message: impl Into<String>, source: &dyn Error) -> Self {
        Self::new(Kind::Failed, message).because(source)
    }
    /// A [`Kind::Failed`] whose message is the error itself; its chain are the causes.
    pub fn of(error: &dyn Error) -> Self {
        let mut made = Self::new(Kind::Failed, error.to_string());
        if let Some(source) = error.source() {
            made = made.because(source);
        }
        made
    }
    /// With a reason and its chain.
    #[must_use]
    pub fn because(mut self, source: &dyn Error) -> Self {
        let mut next = Some(source);
        while let Some(error) = next {
            let words = error.to_string();
            // A transparent error says what its source says.
            if self.causes.last() != Some(&words) {
                self.causes.push(words);
            }
            next = error.source();
        }
        self
    }
    /// With a next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn se6_a_chain_is_told_once() {
        let io = std::io::Error::from_raw_os_error(13);
        let error = OpError::failed("cannot delete the record", &io).hint("look at its owner");
        assert_eq!(error.causes, vec![io.to_string()]);
        assert_eq!(error.kind.exit_code(), 1);
        assert_eq!(OpError::usage("bad").kind.exit_code(), 2);
    }
}
