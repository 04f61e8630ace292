use super::*;

#[test]
fn di25_the_first_line_is_exact_and_one_line() {
    let item = GITHUB.parse().unwrap();
    assert_eq!(
        first_line(&marker(), &item, "issue_comment created"),
        "the-loop delivery dlv-9f3c0a1b2d4e5f60 for github:octo/repo#15: issue_comment created"
    );
    let long = first_line(
        &marker(),
        &item,
        &format!("reply from a\n\tb\u{1b}[31m{}", "x".repeat(200)),
    );
    assert!(
        long.ends_with(&format!(": reply from a b{}", "x".repeat(66))),
        "{long}"
    );
}

#[test]
fn di25_markers_are_read_at_line_beginnings_only() {
    let m = "dlv-9f3c0a1b2d4e5f60";
    for (text, found) in [
        (format!("the-loop delivery {m} for x: y"), 1),
        (
            format!("a\nthe-loop delivery {m} for x\r\nthe-loop delivery {m} for z"),
            2,
        ),
        (format!("a\rthe-loop delivery {m} for x"), 1),
        (format!(" the-loop delivery {m} for x"), 0),
        (format!("> the-loop delivery {m} for x"), 0),
        (format!("The-loop delivery {m} for x"), 0),
        (format!("the-loop delivery {m}"), 0),
        (format!("the-loop delivery  {m} for x"), 0),
        (format!("the-loop delivery x {m} for x"), 0),
        ("the-loop delivery dlv-9F3C0A1B2D4E5F60 for x".to_owned(), 0),
        ("the-loop delivery dlv-1 for x".to_owned(), 0),
        (m.to_owned(), 0),
    ] {
        assert_eq!(markers_in(&text).len(), found, "{text:?}");
    }
}

#[test]
fn di26_what_may_not_be_pasted_goes() {
    for (text, pasted) in [
        ("plain\ntext ü 😀", "plain\ntext ü 😀"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\tb", "a    b"),
        ("a\u{1b}[201~b\u{1b}[1;31mc", "abc"),
        ("a\u{9b}31mb", "ab"),
        ("a\u{1b}]0;title\u{7}b", "a0;titleb"),
        ("a\u{1b}(Bb\u{1b}7c\u{1b}", "abc"),
        ("a\u{1b}\u{1b}[Ab", "ab"),
        ("a\u{1b}[12é", "aé"),
        ("a\u{0}\u{7f}\u{85}b", "ab"),
        (
            "a\u{202e}\u{200b}\u{feff}\u{2066}\u{ad}\u{e0041}\u{61c}b",
            "ab",
        ),
        ("path\\", "path\\ "),
        ("path\\\nx", "path\\\nx"),
    ] {
        assert_eq!(for_paste(text), pasted, "{text:?}");
    }
    assert!(is_clean("fine\ntext"));
    for text in ["a@b", "a\tb", "a\rb", "a\\", "a\u{1b}"] {
        assert!(!is_clean(text), "{text:?}");
    }
}

#[test]
fn in61_hidden_text_is_removed_and_said() {
    for (text, shown, went) in [
        ("a\tb\nc", "a\tb\nc", false),
        ("a\r\nb", "a\nb", false),
        ("a<!-- x\ny -->b", "ab", true),
        ("a\n<!-- x", "a\n", true),
        ("a\n  > <!-- x\ny", "a\n  > ", true),
        ("use `<!--` to open\none", "use `<!--` to open\none", false),
        ("use <!-- and --> x", "use  x", true),
        ("<!-->a<!--->b", "ab", true),
        (
            "a\u{200b}b\u{2060}\u{2064}\u{2069}\u{ad}\u{202a}\u{feff}\u{e007f}",
            "ab",
            true,
        ),
        ("a\u{7}\u{1b}\u{9b}\u{7f}b", "ab", true),
        ("<!\u{200b}-- x -->b", "b", true),
    ] {
        assert_eq!(strip_hidden(text), (shown.to_owned(), went), "{text:?}");
    }
    let (json, _) =
        fenced(prompt_with(&delivery(GITHUB, comment("a\u{200b}")), EVENT, None).text());
    assert_eq!(json["hidden_text_removed"], Value::Bool(true));
    let (json, _) = fenced(prompt_with(&delivery(GITHUB, comment("a")), EVENT, None).text());
    assert_eq!(json.get("hidden_text_removed"), None);
}

#[test]
fn in61_words_that_were_changed_are_marked() {
    let mut words = comment("a");
    if let Effect::Text(text) = &mut words {
        text.edited = true;
    }
    let (json, _) = fenced(prompt_with(&delivery(GITHUB, words), EVENT, None).text());
    assert_eq!(json["edited"], Value::Bool(true));
    let (json, _) = fenced(prompt_with(&delivery(GITHUB, comment("a")), EVENT, None).text());
    assert_eq!(json.get("edited"), None);
}

/// Quadratic work on these would not end within the test's time.
#[test]
fn in61_removal_is_linear() {
    let n = 1 << 19;
    strip_hidden(&"<!--".repeat(n));
    strip_hidden(&"x<!--".repeat(n));
    strip_hidden(&"<!--x-->".repeat(n));
    for_paste(&"\u{1b}]".repeat(n));
    for_paste(&"\u{1b}[1".repeat(n));
}
