//! The `oom-ledger` command: reads files, asks the core, writes its answer.
//!
//! Exit codes: 0 answered; 1 the answer is "does not fit" under `--check`; 2 the input cannot be used.

mod args;
mod batch;
mod checkpoint;
mod estimate;
mod imports;
mod list;
mod output;
mod read;
mod scenario;

use args::{Cli, Command};
use clap::{CommandFactory, Parser};
use std::io::Write;
use std::process::ExitCode;

/// Why a command ended without an answer.
enum Failure {
    /// The input cannot be used; the sentence says why.
    Input(String),
    /// The answer could not be written.
    Write(std::io::Error),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Write(error)
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = match cli.command {
        Command::Estimate(args) => estimate::run(&args),
        Command::Read(args) => read::run(&args),
        Command::List { what } => list::run(what).map(|()| 0),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "oom-ledger", &mut script);
            output::stdout(&script).map(|()| 0)
        }
        Command::Man { command } => man(command.as_deref()).map(|()| 0),
    };
    let sentence = match ended {
        Ok(code) => return ExitCode::from(code),
        // The reader has seen enough (`| head`): nobody is left to tell.
        Err(Failure::Write(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            return ExitCode::SUCCESS;
        }
        Err(Failure::Write(error)) => format!("cannot write: {error}"),
        Err(Failure::Input(sentence)) => sentence,
    };
    let _ = writeln!(std::io::stderr().lock(), "oom-ledger: {sentence}");
    ExitCode::from(2)
}

/// The manual page of the program, or of one of its commands.
fn man(name: Option<&str>) -> Result<(), Failure> {
    let mut program = Cli::command();
    program.build();
    let page = match name {
        None => program,
        Some(name) => program.find_subcommand(name).cloned().ok_or_else(|| {
            let names: Vec<_> = program.get_subcommands().map(clap::Command::get_name).collect();
            Failure::Input(format!("there is no command \"{name}\"; accepted: {}", names.join(", ")))
        })?,
    };
    let mut roff = Vec::new();
    clap_mangen::Man::new(page).render(&mut roff)?;
    output::stdout(&roff)
}
