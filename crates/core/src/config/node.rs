//! A document as a tree in which every node knows where it stands. Whoever reads the text builds it;
//! everything here only looks at it.

use std::fmt;

/// A place in a file; both count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pos {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

impl fmt::Display for Pos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it begins.
    pub pos: Pos,
    /// What it is.
    pub value: Value,
}

/// What a node is, by the YAML 1.2 core schema, booleans being `true` and `false` alone (CF-11).
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing, `~` or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// Another number, with the text it was written as; not-a-number when it is not finite, so that it is
    /// in no range.
    Number(f64, String),
    /// A string.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping; a name may stand in it twice.
    Map(Vec<Member>),
}

/// One `name: value` of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The name's text.
    pub name: String,
    /// Where the name begins.
    pub pos: Pos,
    /// Its value.
    pub value: Node,
}

impl Value {
    /// What a plain scalar is.
    pub fn plain(text: &str) -> Self {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
            "true" => return Value::Bool(true),
            "false" => return Value::Bool(false),
            _ => {}
        }
        if let Some((digits, radix)) = whole_number(text) {
            let int = i128::from_str_radix(digits, radix);
            return int.map_or_else(|_| number(text), Value::Int);
        }
        if is_decimal(text) || is_not_finite(text) {
            return number(text);
        }
        Value::Text(text.to_owned())
    }

    /// Nodes in this value, itself included.
    pub fn nodes(&self) -> usize {
        1 + match self {
            Value::List(items) => items.iter().map(|item| item.value.nodes()).sum(),
            Value::Map(members) => members.iter().map(|m| 1 + m.value.value.nodes()).sum(),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Number(..) | Value::Text(_) => 0,
        }
    }

    /// Levels of nesting in this value; 0 for a scalar.
    pub fn levels(&self) -> usize {
        let inner = |values: &mut dyn Iterator<Item = &Value>| {
            1 + values.map(Value::levels).max().unwrap_or(0)
        };
        match self {
            Value::List(items) => inner(&mut items.iter().map(|item| &item.value)),
            Value::Map(members) => inner(&mut members.iter().map(|m| &m.value.value)),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Number(..) | Value::Text(_) => 0,
        }
    }
}

fn number(text: &str) -> Value {
    Value::Number(text.parse().unwrap_or(f64::NAN), text.to_owned())
}

/// The sign and digits of a whole number, and their base; `None` when it is none.
fn whole_number(text: &str) -> Option<(&str, u32)> {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let fits = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
            return fits.then_some((digits, radix));
        }
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let fits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    fits.then_some((text, 10))
}

fn is_decimal(text: &str) -> bool {
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match body.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (body, None),
    };
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['-', '+']).unwrap_or(e);
        !e.is_empty() && digits(e)
    });
    digits(whole) && digits(part) && !(whole.is_empty() && part.is_empty()) && exponent_fits
}

fn is_not_finite(text: &str) -> bool {
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    matches!(body, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}
