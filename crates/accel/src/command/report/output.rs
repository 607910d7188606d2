//! Writes the files: whole or not at all.

use crate::command::{Exit, Failure};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a file and says so. A regular file is replaced in one step, so that no reader (a metrics collector, a
/// browser) meets half of it; devices and pipes are written to as they are.
pub(in crate::command) fn write(path: &Path, content: &[u8]) -> Result<String, Failure> {
    replace(path, content).map_err(|error| {
        Failure::new(Exit::NotWritten, format!("{} cannot be written: {error}", path.display()))
            .help("name a file in a folder that exists, that you may write to and that has room")
    })?;
    Ok(format!("wrote {} ({})", path.display(), size(content.len())))
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        // Links are followed: the file they lead to is meant.
        Ok(old) if !old.is_file() => {
            File::options().write(true).truncate(old.is_symlink()).open(path)?.write_all(content)
        }
        _ => {
            let new = new_beside(path);
            let done = store(&new, content).and_then(|()| fs::rename(&new, path));
            if done.is_err() {
                // It may not even exist.
                drop(fs::remove_file(&new));
            }
            done
        }
    }
}

fn store(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(content)?;
    // A full disk or quota may show only here.
    file.sync_all()
}

/// In the same folder, so that it can be renamed; a collector looks only at `*.prom`.
fn new_beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.new", std::process::id()));
    path.with_file_name(name)
}

fn size(bytes: usize) -> String {
    if bytes < 10_000 { format!("{bytes} bytes") } else { format!("{} kB", bytes.div_ceil(1000)) }
}
