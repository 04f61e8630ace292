//! How many items may act on tmux, git and agents at once (DI-5).

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// A counting semaphore. A slot is held while something is acted on, never while something is waited for.
#[derive(Clone, Debug)]
pub struct Slots(Arc<(Mutex<usize>, Condvar)>);

/// A held slot; dropping it gives it back.
#[derive(Debug)]
pub struct Slot(Slots);

impl Slots {
    /// `count` slots, at least one.
    pub fn new(count: usize) -> Self {
        Self(Arc::new((Mutex::new(count.max(1)), Condvar::new())))
    }

    /// Waits for a slot.
    pub fn take(&self) -> Slot {
        let (free, given_back) = &*self.0;
        let mut free = free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = given_back
                .wait(free)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        Slot(self.clone())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let (free, given_back) = &*self.0.0;
        *free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        given_back.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn di5_a_slot_comes_back_when_it_is_dropped() {
        let slots = Slots::new(1);
        let first = slots.take();
        let waiting = std::thread::spawn({
            let slots = slots.clone();
            move || drop(slots.take())
        });
        assert!(!waiting.is_finished());
        drop(first);
        waiting.join().unwrap();
    }
}
