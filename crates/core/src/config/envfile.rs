//! The grammar of `env.file` (CF-31).

/// Bytes of the file; a larger one is refused whole.
pub const ENV_FILE_BYTES_MAX: u64 = 256 << 10;

/// Why a file is refused whole (CF-32). Nothing of its text is ever repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnEnvFile {
    /// A NUL byte in it.
    #[error("it is not a text file")]
    NotText,
    /// More than [`ENV_FILE_BYTES_MAX`].
    #[error("it is larger than 256 KiB")]
    TooLarge,
}

/// What a file declares. `Debug` shows names only, so that no value ends up in a log.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EnvFile {
    /// Names and values, each name once with its last value, in the order of first mention.
    pub vars: Vec<(String, String)>,
    /// Numbers of the lines that fit the grammar nowhere, from 1.
    pub bad_lines: Vec<usize>,
}

impl std::fmt::Debug for EnvFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.vars.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("EnvFile")
            .field("names", &names)
            .field("bad_lines", &self.bad_lines)
            .finish()
    }
}

/// Reads a whole file.
pub fn parse(bytes: &[u8]) -> Result<EnvFile, NotAnEnvFile> {
    if bytes.len() as u64 > ENV_FILE_BYTES_MAX {
        return Err(NotAnEnvFile::TooLarge);
    }
    if bytes.contains(&0) {
        return Err(NotAnEnvFile::NotText);
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut out = EnvFile::default();
    for (index, line) in bytes.split(|b| *b == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match std::str::from_utf8(line).ok().and_then(parse_line) {
            Some(Line::Skip) => {}
            Some(Line::Set(name, value)) => {
                match out.vars.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, old)) => *old = value,
                    None => out.vars.push((name, value)),
                }
            }
            None => out.bad_lines.push(index + 1),
        }
    }
    Ok(out)
}

/// Is this the name of a variable: `[A-Za-z_][A-Za-z0-9_]*`?
pub fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

enum Line {
    Skip,
    Set(String, String),
}

const BLANKS: [char; 2] = [' ', '\t'];

fn parse_line(line: &str) -> Option<Line> {
    let line = line.trim_start_matches(BLANKS);
    if line.is_empty() || line.starts_with('#') {
        return Some(Line::Skip);
    }
    let assignment = match line.strip_prefix("export") {
        Some(rest) if rest.starts_with(BLANKS) => rest.trim_start_matches(BLANKS),
        Some(_) | None => line,
    };
    let (name, value) = assignment.split_once('=')?;
    let value = parse_value(value)?;
    is_name(name).then(|| Line::Set(name.to_owned(), value))
}

fn parse_value(text: &str) -> Option<String> {
    if let Some(rest) = text.strip_prefix('"') {
        let (value, after) = double_quoted(rest)?;
        return nothing_follows(after).then_some(value);
    }
    if let Some(rest) = text.strip_prefix('\'') {
        let (value, after) = rest.split_once('\'')?;
        return nothing_follows(after).then(|| value.to_owned());
    }
    let comment = text
        .match_indices('#')
        .map(|(at, _)| at)
        .find(|at| text[..*at].ends_with(BLANKS));
    let value = comment
        .map_or(text, |at| &text[..at])
        .trim_end_matches(BLANKS);
    // A blank right after `=` would make it unclear whether it belongs to the value.
    (!value.starts_with(BLANKS)).then(|| value.to_owned())
}

/// The value up to the closing quote, and what follows it.
fn double_quoted(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((out, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                '\\' => out.push('\\'),
                '"' => out.push('"'),
                other => out.extend(['\\', other]),
            },
            other => out.push(other),
        }
    }
    None
}

fn nothing_follows(text: &str) -> bool {
    let rest = text.trim_start_matches(BLANKS);
    rest.is_empty() || rest.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(line: &str) -> Option<(String, String)> {
        let file = parse(line.as_bytes()).unwrap();
        file.vars.into_iter().next()
    }

    #[test]
    fn cf31_lines_that_set_a_value() {
        for (line, value) in [
            ("A=b", "b"),
            ("export A=b", "b"),
            ("export\t A=b", "b"),
            ("  A=b  ", "b"),
            ("A=", ""),
            ("A=   ", ""),
            ("A= # only a comment", ""),
            ("A=b # comment", "b"),
            ("A=b#c", "b#c"),
            ("A=#c", "#c"),
            ("A=a b\t# c", "a b"),
            ("A=b=c", "b=c"),
            ("A=$HOME `x` ${Y}", "$HOME `x` ${Y}"),
            (r#"A="a\n\t\r\\\" \x #"  # c"#, "a\n\t\r\\\" \\x #"),
            (r#"A="b"#, "\u{0}none"),
            ("A='a\\n \"$x\" #'", "a\\n \"$x\" #"),
            ("A=\"\"#c", ""),
            ("A=it's", "it's"),
            ("\u{feff}A=b\r", "b"),
        ] {
            let expected = (value != "\u{0}none").then(|| ("A".to_owned(), value.to_owned()));
            assert_eq!(one(line), expected, "{line:?}");
        }
    }

    #[test]
    fn cf31_lines_that_fit_nothing_are_told_by_number() {
        let text =
            "# c\n\n1A=b\nA =b\nA= b\nB=\"x\nC='x\nD=\"x\" y\nnothing\nexport\nÄ=1\n=x\nOK=1\n";
        let file = parse(text.as_bytes()).unwrap();
        assert_eq!(file.bad_lines, [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(file.vars, [("OK".to_owned(), "1".to_owned())]);
        let file = parse(b"A=\xff\xfe\nB=1").unwrap();
        assert_eq!(file.bad_lines, [1]);
    }

    #[test]
    fn cf31_the_last_of_two_wins() {
        let file = parse(b"A=1\nB=2\nA=\n").unwrap();
        let expected = [("A", ""), ("B", "2")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(file.vars, expected);
    }

    #[test]
    fn cf32_a_file_that_is_no_text_is_refused_whole() {
        assert_eq!(parse(b"A=1\nB=\0\n"), Err(NotAnEnvFile::NotText));
        let large = vec![b'#'; 256 * 1024 + 1];
        assert_eq!(parse(&large), Err(NotAnEnvFile::TooLarge));
        assert!(parse(&large[1..]).is_ok());
    }

    #[test]
    fn cf33_no_value_is_shown() {
        let file = parse(b"TOKEN=hunter2").unwrap();
        let shown = format!("{file:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("hunter2"));
    }

    proptest! {
        #[test]
        fn cf31_any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            if let Ok(file) = parse(&bytes) {
                let lines = bytes.split(|b| *b == b'\n').count();
                prop_assert!(file.bad_lines.iter().all(|n| (1..=lines).contains(n)));
                prop_assert!(file.vars.iter().all(|(name, _)| is_name(name)));
            }
        }

        #[test]
        fn cf31_what_is_quoted_comes_back(value in "[^\u{0}\n\r]*") {
            let mut quoted = String::new();
            for c in value.chars() {
                if matches!(c, '"' | '\\') {
                    quoted.push('\\');
                }
                quoted.push(c);
            }
            prop_assert_eq!(one(&format!("A=\"{quoted}\" # c")), Some(("A".to_owned(), value)));
        }

        #[test]
        fn cf31_single_quotes_are_literal(value in "[^\u{0}\n\r']*") {
            prop_assert_eq!(one(&format!("export A='{value}'")), Some(("A".to_owned(), value)));
        }
    }
}
