use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn redact(text: &str) -> String {
    Redactor::default().redact(text)
}

#[test]
fn ev19_all_shapes_compile() {
    assert_eq!(Redactor::default().shapes.len(), SHAPES.len());
}

#[test]
fn ev19_known_shapes_go_and_what_stands_around_them_stays() {
    let forty = "a1B2".repeat(10);
    for (text, expected) in [
        (
            format!("bad ghp_{forty}."),
            "bad <redacted:token>.".to_owned(),
        ),
        (format!("x=github_pat_{forty}"), "x=<redacted:token>".into()),
        (
            format!("key sk-ant-api03-{forty}!"),
            "key <redacted:token>!".into(),
        ),
        ("AKIAIOSFODNN7EXAMPLE".into(), "<redacted:token>".into()),
        ("xoxb-123456789012-abcdef".into(), "<redacted:token>".into()),
        (
            "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0abc.c2lnbmF0dXJl end".into(),
            "jwt <redacted:token> end".into(),
        ),
        (
            "fatal: https://mona:hunter2@github.com/octo/repo.git not found".into(),
            "fatal: https://<redacted:url-user>@github.com/octo/repo.git not found".into(),
        ),
        (
            "https://x@y:z@host/p".into(),
            "https://<redacted:url-user>@host/p".into(),
        ),
        (
            "ssh://git@github.com/octo/repo".into(),
            "ssh://<redacted:url-user>@github.com/octo/repo".into(),
        ),
        (
            "> Authorization: Basic bW9uYTpodW50ZXIy\n> Accept: */*".into(),
            "> Authorization: <redacted:authorization>\n> Accept: */*".into(),
        ),
        (
            r#"{"authorization": "token abc", "a": 1}"#.into(),
            r#"{"authorization": "<redacted:authorization>", "a": 1}"#.into(),
        ),
        (
            "curl -H 'Bearer abcdefghijklmnop0123'".into(),
            "curl -H 'Bearer <redacted:authorization>'".into(),
        ),
        (
            "a -----BEGIN RSA PRIVATE KEY-----\nMIIE\nxx\n-----END RSA PRIVATE KEY----- b".into(),
            "a <redacted:private-key> b".into(),
        ),
        (
            "cut -----BEGIN PRIVATE KEY-----\nMIIE".into(),
            "cut <redacted:private-key>".into(),
        ),
        (
            format!("sha256={}", "0a".repeat(32)),
            "<redacted:signature>".into(),
        ),
    ] {
        assert_eq!(redact(&text), expected);
    }
}

#[test]
fn ev19_ordinary_text_and_paths_stay() {
    for text in [
        "cannot read /home/mona/.the-loop/local/inbox.db: permission denied",
        "github:octo/repo#15 mona@example.com",
        "https://github.com/octo/repo/issues/15",
        "bearer of bad news",
        "the author issued basic instructions, sk-1",
        "",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn ev19_values_go_whole_longest_first() {
    let redactor = Redactor::new(
        [
            "abcdefgh",
            "abcdefgh-longer",
            "short",
            "two lines\nof a secret",
        ]
        .map(str::to_owned),
    );
    assert_eq!(
        redactor.redact("x abcdefgh-longer y"),
        "x <redacted:value> y"
    );
    assert_eq!(
        redactor.redact("abcdefghabcdefgh"),
        "<redacted:value><redacted:value>"
    );
    assert_eq!(redactor.redact("short"), "short");
    assert_eq!(redactor.redact("of a secret"), "<redacted:value>");
    assert_eq!(
        redactor.redact("two lines\nof a secret"),
        "<redacted:value>"
    );
    assert!(!format!("{redactor:?}").contains("abcdefgh"));
}

#[test]
fn ev19_a_value_that_looks_like_the_trace_of_another_does_no_harm() {
    let redactor = Redactor::new(["redacted".to_owned(), "secretsecret".to_owned()]);
    assert_eq!(redactor.redact("secretsecret"), "<redacted:value>");
}

#[test]
fn ev19_which_values_are_secret() {
    let env: BTreeMap<String, String> = [
        ("GITHUB_TOKEN", "1"),
        ("my_api_key", "2"),
        ("DB_PASSWD", "3"),
        ("SSH_AUTH_SOCK", "4"),
        ("HOME", "5"),
    ]
    .map(|(k, v)| (k.to_owned(), v.to_owned()))
    .into();
    let file = [("PLAIN".to_owned(), "6".to_owned())];
    let mut values = secret_values(&env, &file);
    values.sort();
    assert_eq!(values, ["1", "2", "3", "4", "6"]);
}

#[test]
fn ev24_what_steers_a_terminal_is_shown() {
    for (text, shown) in [
        ("plain é 漢 🦀", "plain é 漢 🦀"),
        ("a\tb\r\n", "a\\tb\\r\\n"),
        ("\u{1b}]0;x\u{7}", "\\x1b]0;x\\x07"),
        ("\u{9b}31m\u{7f}", "\\u{9b}31m\\x7f"),
        (
            "a\u{202e}b\u{2066}c\u{200b}d\u{feff}",
            "a\\u{202e}b\\u{2066}c\\u{200b}d\\u{feff}",
        ),
        ("\u{e0041}", "\\u{e0041}"),
    ] {
        assert_eq!(visible(text), shown);
    }
}

proptest! {
    #[test]
    fn ev19_no_value_survives(before in ".{0,30}", value in "[!-~]{8,40}", after in ".{0,30}") {
        let redactor = Redactor::new([value.clone()]);
        let text = format!("{before}{value}{after}");
        let left = redactor.redact(&text).replace("<redacted:value>", "\0");
        prop_assert!(!left.contains(&value));
    }

    #[test]
    fn ev24_visible_text_has_no_control_characters(text in any::<String>()) {
        let shown = visible(&text);
        prop_assert!(!shown.chars().any(|c| c.is_control() || is_hidden(c)));
        prop_assert_eq!(visible(&shown), shown);
    }
}
