//! Files whose names hold a `*`.

use camino::{Utf8Path, Utf8PathBuf};

use crate::disk::{Disk, Kind};

/// Directory entries that one look goes through; further ones are not seen.
const ENTRIES_MAX: usize = 20_000;

/// A file that fits a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// Which file.
    pub path: Utf8PathBuf,
    /// What stands for the last `*`, the shortest that fits; empty without one.
    pub star: String,
    /// When it was made, Unix milliseconds, where the file system tells.
    pub created_ms: Option<i64>,
    /// Its last change, Unix milliseconds.
    pub modified_ms: i64,
}

/// The files that fit an absolute path in which `*` stands for any characters of one name. What cannot
/// be read does not fit; links are not followed below the pattern's first `*`.
pub fn files(disk: &dyn Disk, pattern: &str) -> Vec<Match> {
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    let last_star = parts.iter().rposition(|part| part.contains('*'));
    let mut left = ENTRIES_MAX;
    let mut places = vec![(Utf8PathBuf::from("/"), String::new())];
    for (at, part) in parts.iter().enumerate() {
        if !part.contains('*') {
            for (dir, _) in &mut places {
                dir.push(part);
            }
            continue;
        }
        let mut next = Vec::new();
        for (dir, _) in &places {
            for name in disk.list(dir).unwrap_or_default() {
                if left == 0 {
                    break;
                }
                left -= 1;
                let star = fits(part, &name);
                let star = star.map(|star| if last_star == Some(at) { star } else { "" });
                if let Some(star) = star {
                    next.push((dir.join(&name), star.to_owned()));
                }
            }
        }
        places = next;
    }
    let found = places.into_iter().filter_map(|(path, star)| {
        let meta = disk.meta(&path).ok().flatten()?;
        (meta.kind == Kind::File).then_some(Match {
            star,
            created_ms: meta.created_ms,
            modified_ms: meta.modified_ms,
            path,
        })
    });
    found.collect()
}

/// Does the name fit? Answers what stands for the pattern's last `*`.
fn fits<'a>(pattern: &str, name: &'a str) -> Option<&'a str> {
    let Some((head, tail)) = pattern.rsplit_once('*') else {
        return (pattern == name).then_some("");
    };
    let middle = name.strip_suffix(tail)?;
    // The last one takes as little as fits, so its beginning is sought from the right.
    let starts = middle.char_indices().map(|(at, _)| at).rev();
    let mut starts = std::iter::once(middle.len()).chain(starts);
    let start = starts.find(|start| fits(head, &middle[..*start]).is_some())?;
    Some(&middle[start..])
}

/// The file of a pattern that changed last; of equals the last by name.
pub fn newest(disk: &dyn Disk, pattern: &str) -> Option<Utf8PathBuf> {
    let found = files(disk, pattern).into_iter();
    found.max_by_key(|file| file.modified_ms).map(|f| f.path)
}

/// A pattern as a path can be told in it: no `*` of a path's own would be taken for ours.
pub fn literal(path: &Utf8Path) -> Option<&str> {
    (!path.as_str().contains('*')).then_some(path.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::testing::world;

    #[test]
    fn di33_a_star_stands_for_a_part_of_one_name() {
        assert_eq!(fits("a-*.jsonl", "a-17.jsonl"), Some("17"));
        assert_eq!(fits("*", "x"), Some("x"));
        assert_eq!(fits("a-*-*.j", "a-1-2-3.j"), Some("3"));
        assert_eq!(fits("a-*.jsonl", "b-17.jsonl"), None);
        assert_eq!(fits("a-*.jsonl", "a-17.json"), None);
        assert_eq!(fits("a*a", "a"), None);
    }

    #[test]
    fn di33_files_are_found_through_directories_with_stars() {
        let (_dir, path, world) = world();
        for file in ["s/1/x-a.log", "s/2/x-b.log", "s/2/y-c.log", "s/x-d.log"] {
            let file = path.join(file);
            world.disk.create_dir_all(file.parent().unwrap()).unwrap();
            world.disk.append(&file, b"x\n").unwrap();
        }
        let mut stars: Vec<String> = files(&*world.disk, &format!("{path}/s/*/x-*.log"))
            .into_iter()
            .map(|found| found.star)
            .collect();
        stars.sort();
        assert_eq!(stars, ["a", "b"]);
        assert_eq!(files(&*world.disk, &format!("{path}/none/*")), []);
        let one = files(&*world.disk, &format!("{path}/s/x-d.log"));
        assert_eq!(one.len(), 1);
    }
}
