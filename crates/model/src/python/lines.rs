//! The logical lines of Python code (The Python Language Reference, 2.1).

/// Reads logical lines, without comments and blank lines. A long string is left out of its line.
#[derive(Debug)]
pub struct PythonLines<'t> {
    rest: &'t [u8],
    line: Vec<u8>,
    /// The number of the line, and of the one behind it.
    numbers: [usize; 2],
}

impl<'t> PythonLines<'t> {
    /// Reads a text.
    pub const fn new(text: &'t [u8]) -> Self {
        Self { rest: text, line: Vec::new(), numbers: [1, 1] }
    }

    /// The number of the line that was read last, from 1.
    pub const fn number(&self) -> usize {
        self.numbers[0]
    }

    /// The next line and its indentation.
    pub fn next_line(&mut self) -> Option<(usize, &str)> {
        loop {
            let indent = self.indent();
            if self.rest.is_empty() {
                return None;
            }
            self.line.clear();
            let text = self.rest;
            self.gather();
            let taken = text.get(..text.len() - self.rest.len()).unwrap_or_default();
            self.numbers = [self.numbers[1], self.numbers[1] + memchr::memchr_iter(b'\n', taken).count()];
            if !self.line.trim_ascii().is_empty() {
                // A line in another encoding has no import that counts.
                return Some((indent, std::str::from_utf8(&self.line).unwrap_or_default().trim()));
            }
        }
    }

    /// Takes the blanks at the beginning; a tab counts up to the next multiple of eight.
    fn indent(&mut self) -> usize {
        let mut indent = 0;
        while let Some((first, rest)) = self.rest.split_first() {
            match first {
                b' ' => indent += 1,
                b'\t' => indent = (indent / 8 + 1) * 8,
                _ => break,
            }
            self.rest = rest;
        }
        indent
    }

    /// Takes one logical line: brackets, long strings and backslashes continue it.
    fn gather(&mut self) {
        let mut depth = 0_usize;
        while let Some((&byte, rest)) = self.rest.split_first() {
            match byte {
                b'"' | b'\'' => {
                    self.string(byte);
                    continue;
                }
                b'#' => {
                    let end = memchr::memchr(b'\n', self.rest).unwrap_or(self.rest.len());
                    self.rest = self.rest.get(end..).unwrap_or_default();
                    continue;
                }
                b'\\' => {
                    self.rest = rest.strip_prefix(b"\r").unwrap_or(rest);
                    self.rest = self.rest.strip_prefix(b"\n").unwrap_or(self.rest);
                    self.line.push(b' ');
                    continue;
                }
                b'\n' if depth == 0 => {
                    self.rest = rest;
                    return;
                }
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.line.push(if byte.is_ascii_whitespace() { b' ' } else { byte });
            self.rest = rest;
        }
    }

    /// Takes a string. Only a short one is kept: no condition compares another.
    fn string(&mut self, quote: u8) {
        let long = [quote; 3];
        if let Some(rest) = self.rest.strip_prefix(&long) {
            self.rest = rest;
            self.line.extend([quote; 6]);
            while let Some(at) = memchr::memchr2(quote, b'\\', self.rest) {
                let found = self.rest.get(at..).unwrap_or_default();
                let length = if found.starts_with(&long) { 3 } else { 1 + usize::from(found.first() == Some(&b'\\')) };
                self.rest = found.get(length..).unwrap_or_default();
                if length == 3 {
                    return;
                }
            }
            self.rest = &[];
            return;
        }
        self.line.push(quote);
        self.rest = self.rest.get(1..).unwrap_or_default();
        while let Some((&byte, rest)) = self.rest.split_first() {
            match byte {
                // The string is not closed.
                b'\n' => break,
                b'\\' => {
                    self.line.push(byte);
                    self.line.extend(rest.first());
                    self.rest = rest.get(1..).unwrap_or_default();
                    continue;
                }
                _ => {}
            }
            self.line.push(byte);
            self.rest = rest;
            if byte == quote {
                return;
            }
        }
        self.line.push(quote);
    }
}
