//! The checker: a tree against the table of keys, giving settings and every problem (CF-11 to CF-14).

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::key::{Entry, Key, Kind, join};
use super::moved::{self, Later};
use super::node::{Member, Node, Pos, Value};
use super::problem::{PROBLEMS_MAX, Problem, found_text, key_part};
use super::shape::{self, Shape};
use super::{Settings, rules, suggest};

mod faults;

/// What came of a document.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The values that can be used, defaults in place of the rest; paths as written. Only to be used
    /// as a whole when there is no problem; the commands that go on with a broken document take
    /// single values from it (SE-12).
    pub settings: Settings,
    /// Where the keys that the document sets stand.
    pub positions: BTreeMap<String, Pos>,
    /// All that is wrong, in file order, at most [`PROBLEMS_MAX`].
    pub problems: Vec<Problem>,
    /// All that deserves a look but stops nothing, in file order.
    pub warnings: Vec<Problem>,
}

/// Checks a document; `None` is an empty one. `earlier` are problems that its reader found already;
/// without `home` a path may not begin with `~`.
pub fn check(root: Option<&Node>, earlier: Vec<Problem>, home: bool) -> Checked {
    let mut checker = Checker {
        problems: earlier,
        positions: BTreeMap::new(),
        home,
    };
    let mut document = Map::new();
    match root.map(|node| (&node.value, node.pos)) {
        None | Some((Value::Null, _)) => {}
        Some((Value::Map(members), _)) => {
            document = checker.section(&[], &Settings::keys(), members);
        }
        Some((
            Value::Bool(_) | Value::Int(_) | Value::Number(..) | Value::Text(_) | Value::List(_),
            pos,
        )) => {
            let message = "the document must be a mapping at the top";
            checker.problems.push(Problem::form(pos, message));
        }
    }
    let settings = match serde_json::from_value::<Settings>(Json::Object(document)) {
        Ok(settings) => settings,
        Err(e) => {
            let message = format!("the document was checked but cannot be used: {e}");
            checker.problems.push(Problem::whole(message));
            Settings::default()
        }
    };
    checker.version(root, &settings);
    checker
        .problems
        .extend(rules::problems(&settings, &checker.positions));
    checker.problems.sort_by_key(|problem| problem.pos);
    checker.problems.truncate(PROBLEMS_MAX);
    let warnings = rules::warnings(&settings, &checker.positions);
    Checked {
        settings,
        positions: checker.positions,
        problems: checker.problems,
        warnings,
    }
}

struct Checker {
    problems: Vec<Problem>,
    positions: BTreeMap<String, Pos>,
    home: bool,
}

/// The path that a message shows.
fn shown(parts: &[String]) -> String {
    parts
        .iter()
        .fold(String::new(), |path, part| join(&path, &shown_part(part)))
}

/// A name, with the number of an entry where it is a list's.
fn shown_part(part: &str) -> String {
    let entry = part.strip_suffix(']').and_then(|p| p.rsplit_once('['));
    match entry.filter(|(_, index)| index.parse::<usize>().is_ok()) {
        Some((name, index)) => format!("{}[{index}]", key_part(name)),
        None => key_part(part),
    }
}

/// A whole number in digits, however long.
fn is_digits(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.bytes().all(|b| b.is_ascii_digit())
}

fn below(parts: &[String], name: &str) -> Vec<String> {
    let mut inner = parts.to_vec();
    inner.push(name.to_owned());
    inner
}

impl Checker {
    /// The members of a mapping, without repeats; each repeat is a problem.
    fn once<'a>(&mut self, parts: &[String], members: &'a [Member]) -> Vec<&'a Member> {
        let mut lines: BTreeMap<&str, u32> = BTreeMap::new();
        let mut out = Vec::new();
        for member in members {
            let Some(line) = lines.get(member.name.as_str()) else {
                lines.insert(&member.name, member.pos.line);
                out.push(member);
                continue;
            };
            let path = shown(&below(parts, &member.name));
            let message = format!(
                "`{path}` is given twice (lines {line} and {})",
                member.pos.line
            );
            self.problems.push(Problem::at(member.pos, &path, message));
        }
        out
    }

    fn section(&mut self, parts: &[String], keys: &[Key], members: &[Member]) -> Map<String, Json> {
        let mut out = Map::new();
        for member in self.once(parts, members) {
            let path = below(parts, &member.name);
            let Some(key) = keys.iter().find(|key| key.name() == member.name) else {
                self.unknown(parts, keys, &path, member);
                continue;
            };
            if let Some(value) = self.value(&path, key, member) {
                self.positions.insert(shown(&path), member.pos);
                out.insert(member.name.clone(), value);
            }
        }
        out
    }

    /// A name that is no key here: gone, of a later release, or never one.
    fn unknown(&mut self, parts: &[String], keys: &[Key], path: &[String], member: &Member) {
        let key = shown(path);
        if let Some((became, hint)) = moved::retired(&path.join("."), &member.name) {
            let message = format!("`{key}` is no longer a key: {became}");
            self.problems
                .push(Problem::at(member.pos, &key, message).hint(hint));
            return;
        }
        match (moved::later(path), &member.value.value) {
            (Some(Later::Section), Value::Map(inner)) if !inner.is_empty() => {
                for inner_member in self.once(path, inner) {
                    self.unknown(path, &[], &below(path, &inner_member.name), inner_member);
                }
            }
            (Some(_), _) => {
                let message =
                    format!("`{key}` is a key of a later release; this one does not read it");
                let problem = Problem::at(member.pos, &key, message).hint("remove the line");
                self.problems.push(problem);
            }
            (None, _) => {
                let hint = suggest::for_unknown_key(&shown(parts), keys, &member.name);
                let message = format!("unknown key `{key}`");
                self.problems
                    .push(Problem::at(member.pos, &key, message).hint(hint));
            }
        }
    }

    fn value(&mut self, path: &[String], key: &Key, member: &Member) -> Option<Json> {
        let node = &member.value;
        match (&key.kind, &node.value) {
            (Kind::Section(inner), Value::Map(members)) => {
                Some(Json::Object(self.section(path, &inner(), members)))
            }
            (Kind::Section(_) | Kind::Map { .. }, Value::Null) => Some(Json::Object(Map::new())),
            (
                Kind::Map {
                    keys, value, max, ..
                },
                Value::Map(members),
            ) => Some(self.free_map(path, keys, value, *max, members)),
            (Kind::Rows { keys, max }, Value::List(items)) => {
                Some(self.rows(path, &member.name, *keys, *max, items))
            }
            (_, Value::Null) => {
                self.nothing(path, key, member.pos);
                None
            }
            (_, _) => self.scalar_or_list(path, &member.name, &key.kind, node),
        }
    }

    /// A value that is no mapping.
    fn scalar_or_list(
        &mut self,
        path: &[String],
        name: &str,
        kind: &Kind,
        node: &Node,
    ) -> Option<Json> {
        match (kind, &node.value) {
            (Kind::Bool, Value::Bool(b)) => Some(Json::Bool(*b)),
            (Kind::Int { min, max }, Value::Int(i)) => {
                let fits = u64::try_from(*i).ok().filter(|i| (min..=max).contains(&i));
                if fits.is_none() {
                    self.out_of_range(path, *min, *max, name, node);
                }
                fits.map(Json::from)
            }
            (Kind::Int { min, max }, Value::Number(_, text)) if is_digits(text) => {
                self.out_of_range(path, *min, *max, name, node);
                None
            }
            (Kind::Number { min, max }, Value::Int(_) | Value::Number(..)) => {
                let number = match &node.value {
                    Value::Int(i) => *i as f64,
                    Value::Number(number, _) => *number,
                    Value::Null
                    | Value::Bool(_)
                    | Value::Text(_)
                    | Value::List(_)
                    | Value::Map(_) => f64::NAN,
                };
                let fits = (f64::from(*min)..=f64::from(*max)).contains(&number);
                if !fits {
                    self.out_of_range(path, u64::from(*min), u64::from(*max), name, node);
                }
                fits.then(|| Json::from(number))
            }
            (Kind::Text(shape), Value::Text(text)) => {
                self.shaped(path, name, shape, text, node.pos)
            }
            (Kind::Path { .. }, Value::Text(text)) if text.starts_with('~') && !self.home => {
                let path = shown(path);
                let message = format!("`{path}` begins with ~, and no home directory is known");
                self.problems.push(Problem::at(node.pos, &path, message));
                None
            }
            (Kind::Path { optional, .. }, Value::Text(text)) => {
                let shape = if *optional {
                    &shape::PATH_OR_NONE
                } else {
                    &shape::PATH
                };
                self.shaped(path, name, shape, text, node.pos)
            }
            (Kind::Choice(words), Value::Text(text)) if words.contains(&text.as_str()) => {
                Some(Json::from(text.as_str()))
            }
            (Kind::Choice(words), _) => {
                self.bad_choice(path, name, words, node);
                None
            }
            (Kind::List(shape), Value::List(items)) => Some(self.list(path, name, shape, items)),
            (
                Kind::Bool
                | Kind::Int { .. }
                | Kind::Number { .. }
                | Kind::Text(_)
                | Kind::Path { .. }
                | Kind::List(_)
                | Kind::Map { .. }
                | Kind::Rows { .. }
                | Kind::Section(_),
                _,
            ) => {
                self.wrong_type(&shown(path), name, kind, node);
                None
            }
        }
    }

    fn shaped(
        &mut self,
        path: &[String],
        name: &str,
        shape: &Shape,
        text: &str,
        pos: Pos,
    ) -> Option<Json> {
        if self.fits(&shown(path), name, shape, text, pos) {
            Some(Json::from(text))
        } else {
            None
        }
    }

    fn fits(&mut self, path: &str, name: &str, shape: &Shape, text: &str, pos: Pos) -> bool {
        let fits = (shape.fits)(text);
        if !fits {
            let what = found_text(name, text);
            let message = format!("`{path}` must be {}, found {what}", shape.words);
            let near = suggest::nearest(text, shape.choices.iter().copied());
            let hint = near.map(|word| format!("did you mean `{word}`?"));
            self.problems
                .push(Problem::at(pos, path, message).maybe_hint(hint));
        }
        fits
    }

    fn list(&mut self, path: &[String], name: &str, shape: &Shape, items: &[Node]) -> Json {
        let mut out = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = format!("{}[{index}]", shown(path));
            match &item.value {
                Value::Text(text) if self.fits(&path, name, shape, text, item.pos) => {
                    out.push(Json::from(text.as_str()));
                }
                Value::Text(_) => {}
                Value::Null
                | Value::Bool(_)
                | Value::Int(_)
                | Value::Number(..)
                | Value::List(_)
                | Value::Map(_) => self.wrong_type(&path, name, &Kind::Text(*shape), item),
            }
        }
        Json::Array(out)
    }

    /// A list of mappings.
    fn rows(
        &mut self,
        path: &[String],
        name: &str,
        keys: fn() -> Vec<Key>,
        max: usize,
        items: &[Node],
    ) -> Json {
        if let Some(extra) = items.get(max) {
            let path = shown(path);
            let message = format!(
                "`{path}` must have at most {max} entries, found {}",
                items.len()
            );
            self.problems.push(Problem::at(extra.pos, &path, message));
        }
        let mut out = Vec::new();
        for (index, item) in items.iter().take(max).enumerate() {
            let mut inner = path.to_vec();
            if let Some(last) = inner.last_mut() {
                *last = format!("{last}[{index}]");
            }
            self.positions.insert(shown(&inner), item.pos);
            match &item.value {
                Value::Map(members) => {
                    out.push(Json::Object(self.section(&inner, &keys(), members)));
                }
                Value::Null
                | Value::Bool(_)
                | Value::Int(_)
                | Value::Number(..)
                | Value::Text(_)
                | Value::List(_) => {
                    self.wrong_type(&shown(&inner), name, &Kind::Section(keys), item);
                }
            }
        }
        Json::Array(out)
    }

    /// A mapping whose names are the operator's own.
    fn free_map(
        &mut self,
        path: &[String],
        names: &Shape,
        value: &Entry,
        max: usize,
        members: &[Member],
    ) -> Json {
        let mut out = Map::new();
        let members = self.once(path, members);
        if let Some(extra) = members.get(max) {
            let path = shown(path);
            let message = format!(
                "`{path}` must have at most {max} entries, found {}",
                members.len()
            );
            self.problems.push(Problem::at(extra.pos, &path, message));
        }
        for member in members.into_iter().take(max) {
            let inner = below(path, &member.name);
            if !self.name_fits(path, names, member) {
                continue;
            }
            let checked = match (value, &member.value.value) {
                (Entry::Section(keys), Value::Map(members)) => {
                    Some(Json::Object(self.section(&inner, &keys(), members)))
                }
                (Entry::Section(_), Value::Null) => Some(Json::Object(Map::new())),
                (_, Value::Null) => {
                    let path = shown(&inner);
                    let message = format!("`{path}` has no value");
                    let problem = Problem::at(member.pos, &path, message);
                    self.problems.push(problem.hint("remove the line"));
                    None
                }
                (entry, _) => {
                    let kind = match entry {
                        Entry::Text(shape) => Kind::Text(*shape),
                        Entry::List(shape) => Kind::List(*shape),
                        Entry::Section(keys) => Kind::Section(*keys),
                    };
                    self.scalar_or_list(&inner, &member.name, &kind, &member.value)
                }
            };
            if let Some(checked) = checked {
                self.positions.insert(shown(&inner), member.pos);
                out.insert(member.name.clone(), checked);
            }
        }
        Json::Object(out)
    }

    fn name_fits(&mut self, path: &[String], names: &Shape, member: &Member) -> bool {
        let fits = (names.fits)(&member.name);
        if !fits {
            let path = shown(path);
            let message = format!(
                "the name {} in `{path}` must be {}",
                found_text("", &member.name),
                names.words
            );
            let near = suggest::nearest(&member.name, names.choices.iter().copied());
            let hint = near.map(|word| format!("did you mean `{word}`?"));
            let problem = Problem::at(member.pos, &path, message);
            self.problems.push(problem.maybe_hint(hint));
        }
        fits
    }
}
