use super::*;

#[test]
fn di31_what_several_sessions_show_is_told_apart() {
    let text = "P\tloop-a\t11\t0\t\t0\t0\tone\nfirst row\n\nP\tloop-b\t12\t0\t\t0\t1\ttwo\n\
        P\tloop-b\t13\t0\t\t0\t1\tits second pane\nC\tis text here\n";
    let screens = read_screens(text);
    assert_eq!(screens.len(), 2);
    assert_eq!(screens["loop-a"].text, "first row\n\n");
    assert_eq!(screens["loop-a"].pane.title, "one");
    assert_eq!(screens["loop-b"].pane.pid, 12, "the first pane is shown");
    assert_eq!(screens["loop-b"].text, "C\tis text here\n");
    assert_eq!(read_screens(""), BTreeMap::new());
}
