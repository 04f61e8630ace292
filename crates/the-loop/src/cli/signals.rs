//! Interrupts of a command in front (SE-15).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use tokio::signal::unix::{SignalKind, signal};

use super::exit::Exit;

/// Whether somebody wants the command to end, and by which signal.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
    code: Arc<AtomicU8>,
}

impl Interrupt {
    /// Begins to listen: the first SIGINT or SIGTERM sets the flag, a second one ends the process at
    /// once. Without the handler a signal simply ends the process, so a failure to set it up is no
    /// failure of the command.
    pub fn listen() -> Self {
        let interrupt = Self::default();
        let heard = interrupt.clone();
        let _ = std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                if let Ok(runtime) = runtime {
                    runtime.block_on(watch(&heard));
                }
            });
        interrupt
    }

    /// True from the first signal on.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.flag
    }

    /// The exit code: 130 or 143 when a signal came, else the command's own.
    pub fn exit(&self, own: Exit) -> Exit {
        match self.code.load(Ordering::SeqCst) {
            0 => own,
            code => Exit(code),
        }
    }
}

async fn watch(heard: &Interrupt) {
    let (Ok(mut int), Ok(mut term)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return;
    };
    loop {
        let code: u8 = tokio::select! {
            _ = int.recv() => 130,
            _ = term.recv() => 143,
        };
        if heard.flag.swap(true, Ordering::SeqCst) {
            std::process::exit(i32::from(code));
        }
        heard.code.store(code, Ordering::SeqCst);
    }
}
