//! What a container writes: the lines of its program, and the end of everything else.

use super::super::lines::Lines;
use super::super::tail::Tail;
use super::super::wire::events;

/// The output of a container, as it comes.
pub(super) struct ContainerOutput<'l> {
    lines: Lines,
    tail: Tail,
    has_begun: bool,
    sink: &'l mut dyn FnMut(&[u8]),
}

impl<'l> ContainerOutput<'l> {
    /// Passes each line of standard output to `sink`.
    pub(super) fn new(sink: &'l mut dyn FnMut(&[u8])) -> Self {
        Self { lines: Lines::default(), tail: Tail::default(), has_begun: false, sink }
    }

    /// Returns true once the program has written a line of its protocol.
    pub(super) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Takes bytes of standard output. Returns an error for output that is too long to be a probe's.
    pub(super) fn stdout(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Self { lines, tail, has_begun, sink } = self;
        if !*has_begun {
            // What runs before the program explains itself on either stream.
            tail.push(bytes);
        }
        let had_begun = *has_begun;
        lines.push(bytes, &mut |line| {
            *has_begun |= events::is_of_protocol(line);
            sink(line);
        })?;
        if *has_begun && !had_begun {
            *tail = Tail::default();
        }
        Ok(())
    }

    /// Takes bytes of standard error.
    pub(super) fn stderr(&mut self, bytes: &[u8]) {
        self.tail.push(bytes);
    }

    /// The end of standard error, or of all output before a line of the protocol.
    pub(super) fn end(self) -> String {
        self.tail.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_streams_explain_why_a_program_does_not_begin() {
        let mut seen = 0;
        let mut sink = |_: &[u8]| {};
        let mut output = ContainerOutput::new(&mut sink);
        output.stdout(b"starting\n").unwrap();
        output.stderr(b"cannot\n");
        output.stdout(b"no line").unwrap();
        assert!(!output.has_begun());
        assert_eq!(output.end(), "starting\ncannot\nno line");

        let mut count = |_: &[u8]| seen += 1;
        let mut output = ContainerOutput::new(&mut count);
        output.stdout(b"banner\n{\"ncclcheck\": 1, \"ev").unwrap();
        assert!(!output.has_begun());
        output.stdout(b"ent\": \"hello\"}\n").unwrap();
        output.stderr(b"a warning\n");
        output.stdout(b"noise\n").unwrap();
        assert!(output.has_begun());
        assert_eq!(output.end(), "a warning\n");
        assert_eq!(seen, 3);
    }
}
