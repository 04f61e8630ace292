//! Manual pages and the command reference, all from the definitions (SE-17).

use clap::{Arg, ArgAction, Command as Clap, CommandFactory};

use super::args::Cli;
use super::context::{Context, Ended};
use super::exit::Exit;
use crate::ops::error::{Kind, OpError};

/// The whole definition, built.
pub fn command() -> Clap {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    command
}

/// `man [COMMAND…]` and `man --dir DIR`.
pub fn man(cx: &mut Context, dir: Option<&str>, words: &[String]) -> Ended {
    let root = command();
    if let Some(dir) = dir {
        let dir = cx.absolute(dir);
        let made = cx.world.disk.create_dir_all(&dir);
        made.map_err(|e| OpError::failed(format!("{dir}: cannot make it"), &e))?;
        for (path, command) in commands(&root) {
            let file = dir.join(format!("{}.1", path.join("-")));
            let page = page(&path, &command)?;
            let written = cx.world.disk.write_atomic(&file, &page, false);
            written.map_err(|e| OpError::failed(format!("{file}: cannot write it"), &e))?;
            let _ = cx.world.disk.set_mode(&file, 0o644);
        }
        return Ok(Exit::OK);
    }
    let wanted: Vec<&str> = words.iter().map(String::as_str).collect();
    let found = commands(&root)
        .into_iter()
        .find(|(path, _)| path[1..] == wanted[..]);
    let Some((path, command)) = found else {
        let words = the_loop_core::redact::visible(&wanted.join(" "));
        let made = OpError::usage(format!("no command is called \"{words}\""));
        return Err(made.hint("the-loop --help").into());
    };
    cx.out.bytes(&page(&path, &command)?);
    Ok(Exit::OK)
}

fn page(path: &[String], command: &Clap) -> Result<Vec<u8>, OpError> {
    let named = command
        .clone()
        .disable_help_subcommand(true)
        .bin_name(path.join(" "))
        .version(env!("CARGO_PKG_VERSION"));
    let mut roff = Vec::new();
    let source = concat!("the-loop ", env!("CARGO_PKG_VERSION"));
    let rendered = clap_mangen::Man::new(named)
        .source(source)
        .render(&mut roff);
    rendered.map_err(|e| OpError::new(Kind::Failed, "cannot make the page").because(&e))?;
    Ok(roff)
}

/// Every command that is shown, with the words that lead to it, the program's name first.
fn commands(root: &Clap) -> Vec<(Vec<String>, Clap)> {
    let mut found = Vec::new();
    collect(&[root.get_name().to_owned()], root, &mut found);
    found
}

fn collect(path: &[String], command: &Clap, found: &mut Vec<(Vec<String>, Clap)>) {
    found.push((path.to_vec(), command.clone()));
    for below in command.get_subcommands() {
        if below.is_hide_set() || below.get_name() == "help" {
            continue;
        }
        let mut path = path.to_vec();
        path.push(below.get_name().to_owned());
        collect(&path, below, found);
    }
}

/// The command reference: one page a group of commands, as (file name, markdown).
pub fn reference_markdown() -> Vec<(String, String)> {
    let root = command();
    let mut pages: Vec<(String, String)> = Vec::new();
    for (path, command) in commands(&root) {
        let file = path.get(1).map_or("the-loop", String::as_str);
        let name = format!("{file}.md");
        let text = section(&path, &command);
        match pages.iter_mut().find(|(known, _)| *known == name) {
            Some((_, page)) => {
                page.push('\n');
                page.push_str(&text);
            }
            None => pages.push((name, text)),
        }
    }
    pages
}

fn section(path: &[String], command: &Clap) -> String {
    let level = if path.len() <= 2 { "#" } else { "##" };
    let mut text = format!("{level} {}\n\n", path.join(" "));
    let about = command.get_long_about().or_else(|| command.get_about());
    if let Some(about) = about {
        text.push_str(&format!("{about}\n\n"));
    }
    let mut named = command.clone().bin_name(path.join(" "));
    let usage = named.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    text.push_str(&format!("```\n{usage}\n```\n"));
    let global = |arg: &&Arg| arg.is_global_set() && path.len() > 1;
    let shown = |arg: &&Arg| {
        let is_help = matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        );
        !arg.is_hide_set() && !is_help && !global(arg)
    };
    let args: Vec<&Arg> = command.get_arguments().filter(shown).collect();
    if !args.is_empty() {
        text.push_str("\n| argument | meaning |\n|---|---|\n");
        for arg in args {
            text.push_str(&argument(arg));
        }
    }
    let below: Vec<&Clap> = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set() && below.get_name() != "help")
        .collect();
    if !below.is_empty() {
        text.push_str("\n| command | |\n|---|---|\n");
        for command in below {
            let about = command.get_about().map(ToString::to_string);
            let row = format!(
                "| `{}` | {} |\n",
                command.get_name(),
                about.unwrap_or_default()
            );
            text.push_str(&row);
        }
    }
    if let Some(after) = command.get_after_long_help() {
        text.push_str(&after_help(&after.to_string()));
    }
    text
}

/// The examples as a block of code, what follows them as text.
fn after_help(after: &str) -> String {
    let mut text = String::from("\n");
    for part in after.split("\n\n") {
        match part.strip_prefix("Examples:\n") {
            Some(examples) => {
                let lines: Vec<&str> = examples
                    .lines()
                    .map(|line| line.strip_prefix("  ").unwrap_or(line))
                    .collect();
                text.push_str(&format!("```sh\n{}\n```\n", lines.join("\n")));
            }
            None => text.push_str(&format!("\n{part}\n")),
        }
    }
    text
}

fn argument(arg: &Arg) -> String {
    let names: Vec<String> = arg
        .get_short()
        .map(|short| format!("-{short}"))
        .into_iter()
        .chain(arg.get_long().map(|long| format!("--{long}")))
        .collect();
    let value = if arg.get_action().takes_values() {
        let names: Vec<String> = arg
            .get_value_names()
            .unwrap_or_default()
            .iter()
            .map(ToString::to_string)
            .collect();
        names.join(" ")
    } else {
        String::new()
    };
    let shown = [names.join(", "), value]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let mut help = help.map(ToString::to_string).unwrap_or_default();
    let defaults: Vec<String> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    if !defaults.is_empty() && arg.get_action().takes_values() {
        help.push_str(&format!(" [default: {}]", defaults.join(" ")));
    }
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    format!("| `{}` | {} |\n", shown.replace('|', "\\|"), cell(&help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn se17_se103_every_command_has_examples_and_a_page() {
        let root = command();
        for (path, command) in commands(&root) {
            let name = path.join(" ");
            assert!(command.get_about().is_some(), "{name} says nothing");
            if command.get_subcommands().any(|c| !c.is_hide_set()) && path.len() > 1 {
                continue;
            }
            let help = command.get_after_long_help();
            let examples = help.map(ToString::to_string).unwrap_or_default();
            assert!(
                examples.starts_with("Examples:\n"),
                "{name} has no examples"
            );
        }
        let pages = reference_markdown();
        assert!(pages.iter().any(|(name, _)| name == "sessions.md"));
        assert!(pages.iter().all(|(name, _)| name != "hook.md"));
    }

    #[test]
    fn se1_the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
