//! Interrupts of a command in front (SE-15).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

/// Sets `stop` at the first SIGINT or SIGTERM; a second one ends the process at once. Without the
/// handler a signal simply ends the process, so a failure to set it up is no failure of the command.
pub fn on_interrupt(stop: &Arc<AtomicBool>) {
    let stop = Arc::clone(stop);
    let _ = std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            if let Ok(runtime) = runtime {
                runtime.block_on(watch(&stop));
            }
        });
}

async fn watch(stop: &AtomicBool) {
    let (Ok(mut int), Ok(mut term)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return;
    };
    loop {
        let code = tokio::select! {
            _ = int.recv() => 130,
            _ = term.recv() => 143,
        };
        if stop.swap(true, Ordering::SeqCst) {
            std::process::exit(code);
        }
    }
}
