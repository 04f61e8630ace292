//! Closed lists of words, and how a field of an event is typed, written and sampled (EV-3).

use serde_json::Value;

use crate::delivery::Ingress;
use crate::ids::WorkItemRef;
use crate::time::Timestamp;

/// Type of a field, as the catalogue tells it (events page, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// The canonical ref of a work item; text on the line.
    Ref,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
    /// UTC with milliseconds.
    Time,
    /// A word of a closed list.
    Word(&'static WordList),
    /// Several of one kind.
    List(&'static Kind),
}

/// The words of a closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordList {
    /// Words that this version writes.
    pub words: &'static [&'static str],
    /// Words that only logs of earlier versions hold.
    pub older: &'static [&'static str],
}

impl Kind {
    /// The letter of the catalogue: `s i b e t`, with `[]` for a list.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Text | Self::Ref => "s",
            Self::Integer => "i",
            Self::Boolean => "b",
            Self::Time => "t",
            Self::Word(_) => "e",
            Self::List(Self::Integer) => "i[]",
            Self::List(Self::Boolean) => "b[]",
            Self::List(Self::Time) => "t[]",
            Self::List(Self::Word(_)) => "e[]",
            Self::List(Self::Text | Self::Ref | Self::List(_)) => "s[]",
        }
    }

    /// The closed list of a word, or of a list of words.
    pub fn words(self) -> Option<&'static WordList> {
        match self {
            Self::Word(list) => Some(list),
            Self::List(of) => of.words(),
            Self::Text | Self::Ref | Self::Integer | Self::Boolean | Self::Time => None,
        }
    }

    /// Is `value` of this kind? Words of earlier versions count.
    pub fn admits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Ref => value
                .as_str()
                .is_some_and(|s| s.parse::<WorkItemRef>().is_ok()),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Boolean => value.is_boolean(),
            Self::Time => value
                .as_str()
                .is_some_and(|s| s.parse::<Timestamp>().is_ok()),
            Self::Word(list) => value
                .as_str()
                .is_some_and(|s| list.words.contains(&s) || list.older.contains(&s)),
            Self::List(of) => value
                .as_array()
                .is_some_and(|all| all.iter().all(|v| of.admits(v))),
        }
    }
}

/// A type that a field of an event may have.
pub trait FieldValue: Sized {
    /// What the catalogue says of it.
    const KIND: Kind;
    /// May the field be left out?
    const OPTIONAL: bool = false;
    /// The value on the line; `None` leaves the field out, since a line never holds `null` (EV-2).
    fn value(&self) -> Option<Value>;
    /// A value for the catalogue's example, made from the field's sample text.
    fn sample(text: &str) -> Self;
}

impl FieldValue for String {
    const KIND: Kind = Kind::Text;
    fn value(&self) -> Option<Value> {
        Some(Value::from(self.as_str()))
    }
    fn sample(text: &str) -> Self {
        text.to_owned()
    }
}

impl FieldValue for WorkItemRef {
    const KIND: Kind = Kind::Ref;
    fn value(&self) -> Option<Value> {
        Some(Value::from(self.to_string()))
    }
    fn sample(text: &str) -> Self {
        match text.parse() {
            Ok(item) => item,
            Err(why) => panic!("the sample {text:?} is no ref: {why}"),
        }
    }
}

impl FieldValue for bool {
    const KIND: Kind = Kind::Boolean;
    fn value(&self) -> Option<Value> {
        Some(Value::from(*self))
    }
    fn sample(text: &str) -> Self {
        text == "true"
    }
}

impl FieldValue for Timestamp {
    const KIND: Kind = Kind::Time;
    fn value(&self) -> Option<Value> {
        Some(Value::from(self.millis()))
    }
    fn sample(text: &str) -> Self {
        text.parse().unwrap_or(Timestamp::from_unix_ms(0))
    }
}

macro_rules! integers {
    ($($ty:ty)*) => {$(
        impl FieldValue for $ty {
            const KIND: Kind = Kind::Integer;
            fn value(&self) -> Option<Value> {
                Some(Value::from(*self))
            }
            fn sample(text: &str) -> Self {
                text.parse().unwrap_or(1)
            }
        }
    )*};
}
integers!(u16 u32 u64 i32);

impl<T: FieldValue> FieldValue for Option<T> {
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;
    fn value(&self) -> Option<Value> {
        self.as_ref().and_then(FieldValue::value)
    }
    fn sample(text: &str) -> Self {
        Some(T::sample(text))
    }
}

impl<T: FieldValue> FieldValue for Vec<T> {
    const KIND: Kind = Kind::List(&T::KIND);
    fn value(&self) -> Option<Value> {
        Some(Value::Array(
            self.iter().filter_map(FieldValue::value).collect(),
        ))
    }
    fn sample(text: &str) -> Self {
        vec![T::sample(text)]
    }
}

/// Declares closed lists of words: an enum each, with its words, a parser and its place in lines.
macro_rules! words {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident { $($variant:ident = $word:literal),+ $(,)? } $(older { $($older:literal),+ })?
    )+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $(#[doc = concat!("`", $word, "`")] $variant,)+
        }

        impl $name {
            /// Every word, in the catalogue's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The list as the catalogue shows it.
            pub const LIST: $crate::event::WordList = $crate::event::WordList {
                words: &[$($word),+],
                older: &[$($($older),+)?],
            };
            /// The word on the line.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
            /// Reads a word that this version writes.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|w| w.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::event::FieldValue for $name {
            const KIND: $crate::event::Kind = $crate::event::Kind::Word(&Self::LIST);
            fn value(&self) -> Option<serde_json::Value> {
                Some(serde_json::Value::from(self.as_str()))
            }
            fn sample(_text: &str) -> Self {
                Self::ALL[0]
            }
        }
    )+};
}
pub(crate) use words;

impl FieldValue for Ingress {
    const KIND: Kind = Kind::Word(&WordList {
        words: &[
            "webhook", "poll", "backfill", "tracker", "cli", "api", "channel",
        ],
        older: &[],
    });
    fn value(&self) -> Option<Value> {
        Some(Value::from(self.as_str()))
    }
    fn sample(_text: &str) -> Self {
        Self::Webhook
    }
}
