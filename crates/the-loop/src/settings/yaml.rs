//! Text to a tree with places, by the strict rules of CF-11.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span};
use the_loop_core::config::node::{Member, Node, Pos, Value};
use the_loop_core::config::problem::Problem;

/// Bytes of a document.
pub const DOCUMENT_BYTES_MAX: u64 = 1 << 20;
/// Levels of nesting.
const LEVELS_MAX: usize = 64;
/// Nodes after aliases are filled in.
const NODES_MAX: usize = 10_000;

/// A document as far as it could be read.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Its top node; none when it is empty.
    pub root: Option<Node>,
    /// What is wrong with its form. A tree beside a problem is what could be read before it.
    pub problems: Vec<Problem>,
}

/// Reads a document.
pub fn parse(bytes: &[u8]) -> Document {
    if bytes.len() as u64 > DOCUMENT_BYTES_MAX {
        return Document {
            root: None,
            problems: vec![Problem::form(
                Pos { line: 1, column: 1 },
                "the document is larger than 1 MiB",
            )],
        };
    }
    let (text, cut) = match std::str::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(e) => {
            let valid = std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or_default();
            let message = "not valid YAML: this is not UTF-8 text";
            (valid, Some(Problem::form(end_of(valid), message)))
        }
    };
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let step = match event {
            Ok((event, span)) => builder.take(event, span),
            // What the scanner says about a text that was cut short is not the operator's problem.
            Err(_) if cut.is_some() => Err(Stop),
            Err(e) => {
                let mark = e.marker();
                let pos = pos_of(mark.line(), mark.col());
                let message = format!("not valid YAML: {}", e.info());
                builder.problems.push(Problem::form(pos, message));
                Err(Stop)
            }
        };
        if step.is_err() {
            break;
        }
    }
    let mut document = builder.finish();
    document.problems.extend(cut);
    document
}

fn end_of(text: &str) -> Pos {
    let line = text.matches('\n').count();
    let last = text.rsplit('\n').next().unwrap_or(text);
    pos_of(line + 1, last.chars().count())
}

/// A place from a line that counts from 1 and a column that counts from 0.
fn pos_of(line: usize, column: usize) -> Pos {
    Pos {
        line: u32::try_from(line.max(1)).unwrap_or(u32::MAX),
        column: u32::try_from(column + 1).unwrap_or(u32::MAX),
    }
}

/// Nothing more is read.
struct Stop;

/// A collection whose end has not come yet.
enum Open {
    List {
        pos: Pos,
        anchor: usize,
        items: Vec<Node>,
    },
    Map {
        pos: Pos,
        anchor: usize,
        members: Vec<Member>,
        name: Name,
    },
}

/// Which half of a member comes next in a mapping.
enum Name {
    /// A name.
    Wanted,
    /// The value of this one.
    Known(String, Pos),
    /// The value of a name that was refused.
    Refused,
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    root: Option<Node>,
    anchors: HashMap<usize, (Value, Option<String>)>,
    nodes: usize,
    documents: usize,
    problems: Vec<Problem>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Stop> {
        let pos = pos_of(span.start.line(), span.start.col());
        match event {
            Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentEnd
            | Event::Comment(..)
            | Event::Anchor(..) => Ok(()),
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return self.stop(pos, "a second document begins here; only one is read");
                }
                Ok(())
            }
            Event::UnresolvedAlias(_) => self.stop(pos, "this alias names nothing"),
            Event::Alias(id) => self.alias(id, pos),
            Event::Scalar(text, style, anchor, tag) => {
                self.tag(tag.is_some(), pos);
                let value = match style {
                    ScalarStyle::Plain => Value::plain(&text),
                    ScalarStyle::SingleQuoted
                    | ScalarStyle::DoubleQuoted
                    | ScalarStyle::Literal
                    | ScalarStyle::Folded => Value::Text(text.to_string()),
                };
                self.count(1, pos)?;
                if matches!(style, ScalarStyle::Plain) && text == "<<" && self.wants_name() {
                    self.problem(pos, "merge keys (`<<`) are not read");
                    self.refuse_name();
                    return Ok(());
                }
                self.complete(value, pos, anchor, Some(text.into_owned()));
                Ok(())
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.tag(tag.is_some(), pos);
                let items = Vec::new();
                self.push(Open::List { pos, anchor, items })
            }
            Event::MappingStart(_, anchor, tag) => {
                self.tag(tag.is_some(), pos);
                self.push(Open::Map {
                    pos,
                    anchor,
                    members: Vec::new(),
                    name: Name::Wanted,
                })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.close();
                Ok(())
            }
            // The scanner's own list of events is open.
            _ => self.stop(pos, "this is not read"),
        }
    }

    fn problem(&mut self, pos: Pos, message: &str) {
        self.problems.push(Problem::form(pos, message));
    }

    fn stop(&mut self, pos: Pos, message: &str) -> Result<(), Stop> {
        self.problem(pos, message);
        Err(Stop)
    }

    fn tag(&mut self, is_there: bool, pos: Pos) {
        if is_there {
            self.problem(pos, "tags are not read");
        }
    }

    fn count(&mut self, more: usize, pos: Pos) -> Result<(), Stop> {
        self.nodes += more;
        if self.nodes > NODES_MAX {
            return self.stop(pos, "more than 10,000 values");
        }
        Ok(())
    }

    fn push(&mut self, open: Open) -> Result<(), Stop> {
        let pos = match &open {
            Open::List { pos, .. } | Open::Map { pos, .. } => *pos,
        };
        self.count(1, pos)?;
        if self.open.len() >= LEVELS_MAX {
            return self.stop(pos, "nested deeper than 64 levels");
        }
        self.open.push(open);
        Ok(())
    }

    fn alias(&mut self, id: usize, pos: Pos) -> Result<(), Stop> {
        let Some((value, text)) = self.anchors.get(&id).cloned() else {
            return self.stop(pos, "this alias stands inside what it names");
        };
        self.count(value.nodes(), pos)?;
        if self.open.len() + value.levels() > LEVELS_MAX {
            return self.stop(pos, "nested deeper than 64 levels");
        }
        self.complete(value, pos, 0, text);
        Ok(())
    }

    fn wants_name(&self) -> bool {
        let wants = |open: &Open| {
            let Open::Map { name, .. } = open else {
                return false;
            };
            matches!(name, Name::Wanted)
        };
        self.open.last().is_some_and(wants)
    }

    fn refuse_name(&mut self) {
        if let Some(Open::Map { name, .. }) = self.open.last_mut() {
            *name = Name::Refused;
        }
    }

    /// Puts a value that is complete where it belongs. `text` is that of a scalar, for a name.
    fn complete(&mut self, value: Value, pos: Pos, anchor: usize, text: Option<String>) {
        if anchor != 0 {
            self.anchors.insert(anchor, (value.clone(), text.clone()));
        }
        let node = Node { pos, value };
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { members, name, .. }) => match std::mem::replace(name, Name::Wanted) {
                Name::Known(known, at) => members.push(Member {
                    name: known,
                    pos: at,
                    value: node,
                }),
                Name::Refused => {}
                Name::Wanted => {
                    if let Some(text) = text {
                        *name = Name::Known(text, pos);
                    } else {
                        *name = Name::Refused;
                        let message = "the name of a value must be plain text";
                        self.problems.push(Problem::form(pos, message));
                    }
                }
            },
        }
    }

    fn close(&mut self) {
        match self.open.pop() {
            Some(Open::List { pos, anchor, items }) => {
                self.complete(Value::List(items), pos, anchor, None);
            }
            Some(Open::Map {
                pos,
                anchor,
                members,
                ..
            }) => self.complete(Value::Map(members), pos, anchor, None),
            None => {}
        }
    }

    /// Closes the mappings that a fault left open, so that what stands before it can be used; half a
    /// list would say something else than the whole one.
    fn finish(mut self) -> Document {
        while let Some(open) = self.open.last() {
            if matches!(open, Open::List { .. }) {
                self.open.pop();
            } else {
                self.close();
            }
        }
        Document {
            root: self.root,
            problems: self.problems,
        }
    }
}
