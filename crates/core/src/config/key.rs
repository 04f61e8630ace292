//! What is known of one configuration key: the row from which the checker, the JSON schema, the
//! reference page and the suggestions for a misspelt key all come (CF-43).

use super::shape::Shape;

/// When a changed value takes effect (the `live` column of the configuration page).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// From the next delivery, cycle or request.
    Yes,
    /// For sessions started or relaunched afterwards.
    New,
    /// After the daemon restarted.
    Start,
    /// It changes nothing that runs.
    Never,
}

impl Live {
    /// The word of the `live` column.
    pub fn word(self) -> &'static str {
        match self {
            Live::Yes => "yes",
            Live::New => "new",
            Live::Start => "start",
            Live::Never => "never",
        }
    }
}

/// From where a relative path is taken (CF-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFrom {
    /// The base directory.
    Base,
    /// The configuration file's own directory: `env.file` and every key that ends in `File`.
    FileDir,
}

/// What a value must be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number, both ends included.
    Int {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// A number, both ends included.
    Number {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
    },
    /// A string of one shape.
    Text(Shape),
    /// A path; `""` where `optional` says that none is a value.
    Path {
        /// From where it is taken when relative.
        from: PathFrom,
        /// Whether `""` is a value.
        optional: bool,
    },
    /// One of some words.
    Choice(&'static [&'static str]),
    /// A list of strings of one shape.
    List(Shape),
    /// A mapping from names of one shape to something each.
    Map {
        /// What the document calls a name, as in `harnessArgs.<name>`.
        name: &'static str,
        /// Shape of the names.
        keys: Shape,
        /// What each one holds.
        value: Entry,
        /// How many there may be.
        max: usize,
    },
    /// A list of mappings with fixed keys.
    Rows {
        /// What each one holds.
        keys: fn() -> Vec<Key>,
        /// How many there may be.
        max: usize,
    },
    /// A mapping with fixed keys.
    Section(fn() -> Vec<Key>),
}

/// What an entry of a mapping with free names holds.
#[derive(Clone, Copy, Debug)]
pub enum Entry {
    /// A string of one shape.
    Text(Shape),
    /// A list of strings of one shape.
    List(Shape),
    /// A mapping with fixed keys.
    Section(fn() -> Vec<Key>),
}

/// One key of one section.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The field's name in Rust, as written.
    pub field: &'static str,
    /// What its value must be.
    pub kind: Kind,
    /// When a change takes effect.
    pub live: Live,
    /// What it means: the field's doc comment.
    pub doc: &'static str,
}

impl Key {
    /// The name in the document: camel case.
    pub fn name(&self) -> String {
        let field = self.field.strip_prefix("r#").unwrap_or(self.field);
        let mut out = String::with_capacity(field.len());
        let mut up = false;
        for c in field.chars() {
            if c == '_' {
                up = true;
            } else if up {
                out.push(c.to_ascii_uppercase());
                up = false;
            } else {
                out.push(c);
            }
        }
        out
    }
}

/// A key of the whole document with its full path, such as `routing.tmux.binary`.
#[derive(Clone, Debug)]
pub struct KeyRow {
    /// Full path; a free name is written `<name>`.
    pub path: String,
    /// The key itself.
    pub key: Key,
}

/// Every key of a section and of those below it, sections themselves left out, in document order.
pub fn rows(prefix: &str, keys: &[Key]) -> Vec<KeyRow> {
    let mut out = Vec::new();
    for key in keys {
        let path = join(prefix, &key.name());
        match key.kind {
            Kind::Section(inner) => out.extend(rows(&path, &inner())),
            Kind::Map {
                name,
                value: Entry::Section(inner),
                ..
            } => {
                let inside = rows(&format!("{path}.<{name}>"), &inner());
                out.push(KeyRow { path, key: *key });
                out.extend(inside);
            }
            Kind::Rows { keys, .. } => {
                let inside = rows(&format!("{path}[]"), &keys());
                out.push(KeyRow { path, key: *key });
                out.extend(inside);
            }
            Kind::Bool
            | Kind::Int { .. }
            | Kind::Number { .. }
            | Kind::Text(_)
            | Kind::Path { .. }
            | Kind::Choice(_)
            | Kind::List(_)
            | Kind::Map { .. } => out.push(KeyRow { path, key: *key }),
        }
    }
    out
}

/// `prefix.name`, or `name` at the top.
pub fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        name.to_owned()
    } else {
        format!("{prefix}.{name}")
    }
}

/// Declares a section: its type, its defaults and the rows of its keys, from one text.
macro_rules! section {
    (
        $(#[doc = $section_doc:literal])*
        $name:ident {
            $( $(#[doc = $doc:literal])* $field:ident : $ty:ty = $default:expr, $kind:expr, $live:ident; )*
        }
    ) => {
        $(#[doc = $section_doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        pub struct $name {
            $( $(#[doc = $doc])* pub $field: $ty, )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        impl $name {
            /// The keys of this section, in document order.
            pub fn keys() -> Vec<$crate::config::key::Key> {
                vec![ $( $crate::config::key::Key {
                    field: stringify!($field),
                    kind: $kind,
                    live: $crate::config::key::Live::$live,
                    doc: concat!($($doc, "\n"),*),
                }, )* ]
            }
        }
    };
}

/// Declares a closed list of words a key may hold.
macro_rules! choice {
    (
        $(#[doc = $doc:literal])*
        $name:ident = $default:ident { $( $(#[doc = $word_doc:literal])* $variant:ident = $word:literal, )* }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $( $(#[doc = $word_doc])* #[serde(rename = $word)] $variant, )*
        }

        impl $name {
            /// Every word, in document order.
            pub const WORDS: &'static [&'static str] = &[ $($word),* ];

            /// The word in the document.
            pub fn word(self) -> &'static str {
                match self {
                    $( Self::$variant => $word, )*
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::$default
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

pub(crate) use {choice, section};
