//! The file of `--json`: opened before the run, so that a bad path costs no minute of measuring.

use super::{Exit, Failure};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// An open file that waits for its document. Dropped without one, it leaves the folder as it was.
#[derive(Debug)]
pub(super) struct JsonFile {
    path: PathBuf,
    file: File,
    /// Made by us, and hence ours to remove if nothing gets into it.
    created: bool,
    written: bool,
}

impl JsonFile {
    /// Opens `path` for writing; what is in it stays until there is something new.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            let what = "--json - is not possible: standard output has the table";
            return Err(Failure::new(Exit::Usage, what).help("name a file, such as --json run.json"));
        }
        let created = !path.exists();
        match OpenOptions::new().write(true).create(true).truncate(false).open(path) {
            Ok(file) => Ok(Self { path: path.to_owned(), file, created, written: false }),
            Err(error) => Err(failure(path, &error)),
        }
    }

    /// Replaces the content.
    pub(super) fn write(mut self, document: &str) -> Result<(), Failure> {
        self.replace(document).map_err(|error| failure(&self.path, &error))?;
        self.written = true;
        Ok(())
    }

    fn replace(&mut self, document: &str) -> io::Result<()> {
        let is_regular = self.file.metadata()?.is_file();
        if is_regular {
            self.file.set_len(0)?;
        }
        self.file.write_all(document.as_bytes())?;
        // A full disk or quota may show only here.
        if is_regular { self.file.sync_all() } else { Ok(()) }
    }
}

impl Drop for JsonFile {
    fn drop(&mut self) {
        if self.created && !self.written {
            // Nothing better can be done than leaving an empty file.
            drop(fs::remove_file(&self.path));
        }
    }
}

fn failure(path: &Path, error: &io::Error) -> Failure {
    Failure::new(
        Exit::NotWritten,
        format!("the run document cannot be written to {}: {error}", path.display()),
    )
    .help("give --json a file in a folder that exists, that you may write to and that has room")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("accel-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_run_without_a_result_leaves_the_folder_as_it_was() {
        let folder = folder("unwritten");
        let (new, old) = (folder.join("new.json"), folder.join("old.json"));
        fs::write(&old, "before").unwrap();
        drop(JsonFile::open(&new).unwrap());
        drop(JsonFile::open(&old).unwrap());
        assert!(!new.exists());
        assert_eq!(fs::read_to_string(&old).unwrap(), "before");
        JsonFile::open(&old).unwrap().write("x").unwrap();
        assert_eq!(fs::read_to_string(&old).unwrap(), "x");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_bad_path_fails_at_once_and_a_full_disk_at_the_end() {
        let error = JsonFile::open(Path::new("/nonexistent/run.json")).unwrap_err();
        assert_eq!(error.exit, Exit::NotWritten);
        let error = JsonFile::open(Path::new("/dev/full")).unwrap().write("x").unwrap_err();
        assert!(error.to_string().contains("No space left on device"), "{error}");
    }
}
