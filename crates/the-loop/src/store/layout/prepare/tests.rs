//! Making a root fit for use.

use std::time::Duration;

use super::*;
use crate::clock::Clock;
use crate::store::testing::Place;

fn mode(place: &Place, path: &Utf8Path) -> u32 {
    place.world.disk.meta(path).unwrap().unwrap().mode
}

#[test]
fn st14_directories_are_private_and_a_loose_local_is_tightened() {
    let place = Place::new();
    let layout = &place.layout;
    for dir in [
        layout.root(),
        layout.local_dir(),
        layout.locks_dir(),
        layout.logs_dir(),
    ] {
        assert_eq!(mode(&place, &dir), 0o700, "{dir}");
    }
    place
        .world
        .disk
        .set_mode(&layout.local_dir(), 0o755)
        .unwrap();
    layout.ensure(&place.world).unwrap();
    assert_eq!(
        mode(&place, &layout.local_dir()),
        0o755,
        "only the daemon tightens"
    );
    assert!(layout.prepare(&place.world).unwrap().tightened);
    assert_eq!(mode(&place, &layout.local_dir()), 0o700);
    assert!(!layout.prepare(&place.world).unwrap().tightened);
    assert_eq!(mode(&place, &layout.instance()), 0o600);
}

#[test]
fn st14_a_local_half_of_another_user_is_refused() {
    let place = Place::new();
    let disk = place.world.disk.as_ref();
    let ours = disk.meta(&place.layout.local_dir()).unwrap().unwrap().uid;
    place.layout.check_owner(disk, ours).unwrap();
    let refused = place.layout.check_owner(disk, ours + 1).unwrap_err();
    assert!(matches!(refused, LayoutError::Foreign { owner, .. } if owner == ours));
    disk.remove_dir_all(&place.layout.local_dir()).unwrap();
    place.put(&place.layout.local_dir(), b"");
    let refused = place.layout.check_owner(disk, ours).unwrap_err();
    assert!(matches!(refused, LayoutError::NotADirectory { .. }));
}

#[test]
fn st20_names_of_temporaries() {
    for name in [
        "github-octo-repo-15.json.1a2b3c4d.tmp",
        "github-a-b-c-1~96674c03.json.1a2b3c4d.tmp",
        "github-octo-repo-15.settings.json.1a2b3c4d.tmp",
        "github-octo-repo-15-20260301T091244Z.json.1a2b3c4d.tmp",
        "index.json.00000000.tmp",
        "3.json.00000000.tmp",
        "tmpab_9xyz0.tmp",
    ] {
        assert!(is_temporary(name), "{name}");
    }
    for name in [
        "github-octo-repo-15.json",
        "github-octo-repo-15.json.tmp",
        "github-octo-repo-15.json.1A2B3C4D.tmp",
        "notes.json.1a2b3c4d.tmp",
        "github-octo-repo-15.1a2b3c4d.tmp",
        "instance.1a2b3c4d.tmp",
        "tmpab.tmp",
        "tmp-éééé.tmp",
        ".tmp",
    ] {
        assert!(!is_temporary(name), "{name}");
    }
}

#[test]
fn st20_old_temporaries_of_ours_go_and_others_stay() {
    let place = Place::with_clock(Clock::manual(Clock::System.now()));
    let layout = &place.layout;
    let ours = [
        layout
            .local_dir()
            .join("github-octo-repo-15.json.1a2b3c4d.tmp"),
        layout.local_dir().join("tmpabcdefgh.tmp"),
        layout.portable_dir().join("index.json.1a2b3c4d.tmp"),
        layout.tickets_dir().join("octo/repo/1.json.1a2b3c4d.tmp"),
    ];
    let others = [
        layout.local_dir().join("notes.tmp"),
        layout.root().join("x-1.json.1a2b3c4d.tmp"),
        layout.tickets_dir().join("1.json.1a2b3c4d.tmp"),
    ];
    for path in ours.iter().chain(&others) {
        place.put(path, b"{");
    }
    let young = layout.prepare(&place.world).unwrap();
    assert!(young.swept.is_empty() && young.left.is_empty());
    place.world.clock.advance(Duration::from_secs(602));
    let mut swept = layout.prepare(&place.world).unwrap().swept;
    swept.sort_unstable();
    let mut expected = ours.to_vec();
    expected.sort_unstable();
    assert_eq!(swept, expected);
    for path in &others {
        assert!(place.text(path).is_some(), "{path}");
    }
}

#[test]
fn the_instance_is_made_once_and_kept() {
    let place = Place::new();
    let layout = &place.layout;
    assert_eq!(layout.instance_if_there(&place.world).unwrap(), None);
    let id = layout.instance_id(&place.world).unwrap();
    assert_eq!(id.len(), 16);
    assert_eq!(place.text(&layout.instance()).unwrap(), format!("{id}\n"));
    assert_eq!(layout.prepare(&place.world).unwrap().instance, id);
    place.put(&layout.instance(), b"0123456789abcdef");
    assert_eq!(
        layout.instance_id(&place.world).unwrap(),
        "0123456789abcdef"
    );
    for bad in ["", "0123456789ABCDEF\n", "0123", &"0".repeat(100)] {
        place.put(&layout.instance(), bad.as_bytes());
        let refused = layout.instance_id(&place.world).unwrap_err();
        assert!(matches!(refused, LayoutError::Instance { .. }), "{bad:?}");
        assert_eq!(place.text(&layout.instance()).unwrap(), bad);
    }
}

#[test]
fn commands_that_need_the_instance_at_once_get_the_same() {
    let mut place = Place::with_clock(Clock::System);
    place.world.ids = crate::ids::Ids::Random;
    let ids: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| place.layout.instance_id(&place.world).unwrap()))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}
