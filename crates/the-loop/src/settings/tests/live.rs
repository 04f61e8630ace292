//! CF-34, CF-35: a daemon follows its file.

use super::Machine;
use crate::settings::{Live, Look, Overrides, load};

fn live(machine: &Machine) -> Live {
    let loaded = load(&machine.world, None, &Overrides::default()).unwrap();
    Live::new(&machine.world, &loaded, Overrides::default())
}

fn reloaded(look: Look) -> (Vec<String>, Vec<String>) {
    match look {
        Look::Reloaded {
            changed,
            restart_required,
            ..
        } => (changed, restart_required),
        Look::Unchanged | Look::Rejected { .. } => panic!("{look:?}"),
    }
}

#[test]
fn cf34_a_change_is_taken_over_as_a_whole() {
    let machine = Machine::new();
    machine.config("routing: {enabled: false}\n");
    let live = live(&machine);
    assert_eq!(live.poll(), Look::Unchanged);
    machine.config(
        "routing: {enabled: true, authorizedUsers: [octo]}\nwebhooks: {ghWebhook: {port: 9000}}\n",
    );
    let before = live.current();
    let (changed, restart) = reloaded(live.poll());
    assert_eq!(
        changed,
        [
            "routing.enabled",
            "routing.authorizedUsers",
            "webhooks.ghWebhook.port"
        ]
    );
    assert_eq!(restart, ["webhooks.ghWebhook.port"]);
    assert!(!before.routing.enabled && live.current().routing.enabled);
    assert_eq!(
        live.current().webhooks.gh_webhook.port,
        8787,
        "waits for the restart"
    );
    assert_eq!(live.restart_needed(), ["webhooks.ghWebhook.port"]);
    assert_eq!(live.poll(), Look::Unchanged);
    machine.config("routing: {enabled: true, authorizedUsers: [octo]}\n");
    assert_eq!(reloaded(live.poll()).0, ["webhooks.ghWebhook.port"]);
    assert!(live.restart_needed().is_empty());
}

#[test]
fn cf34_touching_the_file_changes_nothing_and_a_signal_always_reads() {
    let machine = Machine::new();
    machine.config("routing: {enabled: true}\n");
    let live = live(&machine);
    machine.config("routing: {enabled: true}\n");
    assert_eq!(live.poll(), Look::Unchanged);
    assert_eq!(live.reload(), Look::Unchanged);
    machine.config("routing: {enabled: true} # said otherwise\n");
    assert_eq!(reloaded(live.reload()), (vec![], vec![]));
}

#[test]
fn cf34_a_new_state_root_waits_with_all_that_lies_below_it() {
    let machine = Machine::new();
    machine.config("state: {root: /srv/a}\n");
    let live = live(&machine);
    machine.config("state: {root: /srv/b}\n");
    let (changed, restart) = reloaded(live.poll());
    let moved = [
        "state.root",
        "routing.registryDir",
        "webhooks.ghWebhook.pidfile",
        "eventLog.path",
    ];
    assert_eq!(
        (changed, restart),
        (
            moved.map(str::to_owned).into(),
            moved.map(str::to_owned).into()
        )
    );
    assert_eq!(live.current().routing.registry_dir, "/srv/a/local");
}

#[test]
fn cf35_a_broken_edit_leaves_the_running_settings_in_force() {
    let machine = Machine::new();
    let good = "routing: {enabled: true}\n";
    let path = machine.config(good);
    let live = live(&machine);
    machine.config("routing:\n  enabled: yes\n");
    let error = "~/.the-loop/cli-config.yaml:2:12: `routing.enabled` must be true or false, found the \
                 string \"yes\" (write true)";
    let rejected = Look::Rejected {
        line: Some(2),
        error: error.to_owned(),
    };
    assert_eq!(live.poll(), rejected);
    assert!(live.current().routing.enabled);
    assert_eq!(live.pending().unwrap().error, error);
    assert_eq!(live.reload(), Look::Unchanged, "once per content");
    machine.world.disk.remove(&path).unwrap();
    let gone = "no configuration at ~/.the-loop/cli-config.yaml";
    assert_eq!(
        live.poll(),
        Look::Rejected {
            line: None,
            error: gone.to_owned()
        }
    );
    assert_eq!(live.poll(), Look::Unchanged);
    assert!(
        live.current().routing.enabled,
        "a vanished file is no default"
    );
    machine.config(good);
    assert_eq!(reloaded(live.poll()), (vec![], vec![]));
    assert_eq!(live.pending(), None);
}

#[test]
fn cf34_without_a_file_there_is_nothing_to_follow() {
    let machine = Machine::new();
    let live = live(&machine);
    machine.config("routing: {enabled: true}\n");
    assert_eq!((live.reload(), live.path()), (Look::Unchanged, None));
}
