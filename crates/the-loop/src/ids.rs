//! Random and seeded identifiers.

use std::sync::{Arc, Mutex, PoisonError};

use the_loop_core::ids::Marker;

/// Where random bytes come from.
#[derive(Clone, Debug)]
pub enum Ids {
    /// The operating system.
    Random,
    /// A test's sequence, so that a run can be reproduced.
    Seeded(Arc<Mutex<u64>>),
}

impl Ids {
    /// A reproducible sequence.
    pub fn seeded(seed: u64) -> Self {
        Self::Seeded(Arc::new(Mutex::new(seed)))
    }

    /// `N` random bytes. Without the operating system's randomness nothing here may go on, so a
    /// failure of it ends the process.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut out = [0; N];
        match self {
            Self::Random => {
                if let Err(e) = getrandom::fill(&mut out) {
                    panic!("the operating system gives no random numbers: {e}");
                }
            }
            Self::Seeded(state) => {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                for byte in &mut out {
                    *state = split_mix(*state);
                    *byte = (*state >> 32) as u8;
                }
            }
        }
        out
    }

    /// `2 * N` lower-case hex digits.
    pub fn hex<const N: usize>(&self) -> String {
        hex::encode(self.bytes::<N>())
    }

    /// A random UUID (version 4), as conversation ids are.
    pub fn uuid(&self) -> String {
        uuid::Builder::from_random_bytes(self.bytes())
            .into_uuid()
            .to_string()
    }

    /// A time-ordered UUID (version 7), as entries of a ticket have.
    pub fn ordered_uuid(&self, unix_ms: i64) -> String {
        let ms = u64::try_from(unix_ms).unwrap_or(0);
        uuid::Builder::from_unix_timestamp_millis(ms, &self.bytes())
            .into_uuid()
            .to_string()
    }

    /// A new delivery marker.
    pub fn marker(&self) -> Marker {
        Marker::from_bytes(self.bytes())
    }
}

/// One step of SplitMix64.
fn split_mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
