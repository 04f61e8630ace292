//! Exit codes (SE-4).

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exit(pub u8);

impl Exit {
    /// Done, or a question answered.
    pub const OK: Self = Self(0);
    /// Not found, nothing to do, refused, busy, or a part failed.
    pub const FAILED: Self = Self(1);
    /// Flag, ref, selector, or an unusable configuration.
    pub const USAGE: Self = Self(2);

    /// 0 when `ok`, else 1.
    pub fn of(ok: bool) -> Self {
        if ok { Self::OK } else { Self::FAILED }
    }

    /// The worse of two.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.max(other)
    }
}
