//! Checks, generated documents and benchmarks: the one door for what a check run calls.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for a terminal, which talks by printing"
)]

mod bench;
mod codegen;
mod files;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Checks, generated documents and benchmarks of the-loop.
#[derive(Debug, Parser)]
#[command(name = "xtask")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Checks what the compiler cannot: layers, purity, lengths, events that nobody writes.
    Tidy {
        /// Writes the present lengths of the longest files into the ratchet.
        #[arg(long)]
        ratchet: bool,
    },
    /// Writes the documents that are made from code.
    Codegen {
        /// Writes nothing; fails when a document is not what the code says.
        #[arg(long)]
        check: bool,
    },
    /// Measures the release binary and prints ratios.
    Bench {
        /// Only these parts.
        #[arg(value_enum)]
        parts: Vec<bench::Part>,
    },
}

fn main() -> ExitCode {
    match run(Args::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> anyhow::Result<()> {
    let root = files::workspace_root()?;
    match task {
        Task::Tidy { ratchet } => tidy::run(&root, ratchet),
        Task::Codegen { check } => codegen::run(&root, check),
        Task::Bench { parts } => bench::run(&root, &parts),
    }
}
