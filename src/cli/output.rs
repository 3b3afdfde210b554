//! Where answers go.

use crate::Failure;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Standard output, or a new file.
///
/// Errors: the file exists, or cannot be made.
pub fn open(path: Option<&Path>) -> Result<Box<dyn Write>, Failure> {
    let Some(path) = path else { return Ok(Box::new(BufWriter::new(std::io::stdout().lock()))) };
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => Ok(Box::new(BufWriter::new(file))),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(Failure::Input(format!(
            "--output {}: the file exists, and nothing is written over; name another",
            path.display()
        ))),
        Err(error) => Err(Failure::Input(format!("--output {}: {error}", path.display()))),
    }
}

/// Writes to standard output.
pub fn stdout(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = open(None)?;
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}
