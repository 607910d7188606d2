//! Where the program speaks: standard output, standard error and the log file.

use crate::ShaperError;
use platform::clock;
use platform::process::{append_without_blocking, print_without_blocking};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use units::Timestamp;

/// Writes lines; nothing here can stop the program.
#[derive(Debug)]
pub struct Log {
    file: Option<File>,
    start: Timestamp,
}

impl Log {
    /// Opens the file, if one is asked for.
    ///
    /// # Errors
    /// When it cannot be opened for appending.
    pub fn open(path: Option<&Path>) -> Result<Self, ShaperError> {
        let open = |path: &Path| {
            append_without_blocking(path)
                .map_err(|source| ShaperError::Log { path: path.display().to_string(), source })
        };
        let file = path.map(open).transpose()?;
        let mut log = Self { file, start: clock::now() };
        log.write(&format!("started at {:.3} s after 1970-01-01 UTC", clock::wall_now().as_secs_f64()));
        Ok(log)
    }

    /// A result: to standard output, unless that would block, and to the file.
    pub fn result(&mut self, text: &str) {
        print_without_blocking(&io::stdout(), text);
        for line in text.lines() {
            self.write(line);
        }
    }

    /// An event worth a look: to standard error, unless that would block, and to the file.
    pub fn event(&mut self, text: &str) {
        print_without_blocking(&io::stderr(), &format!("shaper: {text}\n"));
        self.write(text);
    }

    /// A detail: to the file alone.
    pub fn write(&mut self, line: &str) {
        let Some(file) = &mut self.file else { return };
        let stamp = (clock::now() - self.start).as_secs_f64();
        match file.write_all(format!("{stamp:10.3} {line}\n").as_bytes()) {
            Ok(()) => {}
            // A named pipe whose reader is slow loses lines.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                // Shaping is worth more than its log.
                self.file = None;
                let text = format!("shaper: the log file is given up: {error}\n");
                print_without_blocking(&io::stderr(), &text);
            }
        }
    }
}
