//! Extractors look into files as these go by: they say which they want, and are handed the bytes in order, once.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::model::{BoundsError, Entry, Found, Gap, Limits};

/// Leading bytes that [`Extractor::wants`] gets to see, where the file has so many.
pub(super) const HEAD: usize = 64;

/// Someone who looks into files.
#[derive(Debug)]
pub(super) struct Extractor {
    /// For messages.
    pub(super) name: &'static str,
    /// Whether a file of this name, with these leading bytes, is wanted. Cheap: it is asked for every file.
    pub(super) wants: fn(&Entry, head: &[u8]) -> bool,
    /// Begins with one file.
    pub(super) start: fn(&Entry, &Limits) -> Box<dyn Collect>,
}

/// Looks at one file.
pub(super) trait Collect: Send {
    /// The next bytes. Offsets ascend; what is jumped over is a hole, and reads as zeros, unless [`Self::next`] did not ask
    /// for it. An error is a defect of the extractor, as a panic is: it gets no more bytes.
    fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError>;

    /// The first byte that it needs from `at` on, where the bytes that came end; `None` when it needs no more. What lies
    /// before that byte may come nevertheless.
    fn next(&self, at: u64) -> Option<u64> {
        Some(at)
    }

    /// What was found: `None` when the file turned out not to be of interest, an error when it could not be read.
    fn finish(self: Box<Self>) -> Result<Option<Found>, Gap>;
}

/// A file that can be read from any place on, as long as places ascend.
pub(super) trait FileContent {
    /// Why it cannot be read.
    type Error;

    /// Bytes that hold the one at `place`, and the offset of the first of them; none at the end of the file.
    fn read(&mut self, place: u64) -> Result<(u64, &[u8]), Self::Error>;
}

/// Shows a file to every extractor that wants it, and passes over what none of them needs.
pub(super) fn look<C: FileContent>(
    content: &mut C,
    extractors: &[Extractor],
    entry: &Entry,
    limits: &Limits,
) -> Result<Vec<Result<Found, Gap>>, C::Error> {
    let mut head = Vec::new();
    while head.len() < HEAD {
        let (_, bytes) = content.read(head.len() as u64)?;
        if bytes.is_empty() {
            break;
        }
        head.extend_from_slice(bytes);
    }
    let mut running = Running::start(extractors, entry, &head, 0, limits);
    running.push(0, &head);
    let mut at = head.len() as u64;
    while let Some(place) = running.next(at) {
        let (offset, bytes) = content.read(place)?;
        if bytes.is_empty() {
            break;
        }
        running.push(offset, bytes);
        at = offset + bytes.len() as u64;
    }
    Ok(running.finish())
}

/// The extractors at work on one file.
pub(super) struct Running {
    path: String,
    collectors: Vec<(&'static str, Box<dyn Collect>)>,
    failed: Vec<Gap>,
}

impl Running {
    /// Asks everyone. `head` begins at offset `at`: only at 0 are they leading bytes.
    pub(super) fn start(extractors: &[Extractor], entry: &Entry, head: &[u8], at: u64, limits: &Limits) -> Self {
        let head = if at == 0 { head } else { &[] };
        let collectors = extractors
            .iter()
            .filter(|extractor| (extractor.wants)(entry, head))
            .map(|extractor| (extractor.name, (extractor.start)(entry, limits)))
            .collect();
        Self { path: entry.path.to_string(), collectors, failed: Vec::new() }
    }

    /// The first byte that anybody needs from `at` on.
    pub(super) fn next(&self, at: u64) -> Option<u64> {
        // Who panics here does so again when it is handed bytes, and is told of then.
        let next = |collector: &dyn Collect| catch_unwind(AssertUnwindSafe(|| collector.next(at))).unwrap_or(Some(at));
        self.collectors.iter().filter_map(|(_, collector)| next(&**collector)).min()
    }

    /// Whether nobody wants more.
    pub(super) const fn is_idle(&self) -> bool {
        self.collectors.is_empty()
    }

    /// Hands out bytes. An extractor that fails loses its own answer alone.
    pub(super) fn push(&mut self, offset: u64, bytes: &[u8]) {
        let (path, failed) = (&self.path, &mut self.failed);
        self.collectors.retain_mut(|(name, collector)| {
            let pushed = catch_unwind(AssertUnwindSafe(|| collector.push(offset, bytes)));
            let survived = matches!(pushed, Ok(Ok(())));
            if !survived {
                failed.push(defect(name, path));
            }
            survived
        });
    }

    pub(super) fn finish(self) -> Vec<Result<Found, Gap>> {
        let path = &self.path;
        let answers = self.collectors.into_iter().filter_map(|(name, collector)| {
            let answer = catch_unwind(AssertUnwindSafe(|| collector.finish()));
            answer.unwrap_or_else(|_| Err(defect(name, path))).transpose()
        });
        answers.chain(self.failed.into_iter().map(Err)).collect()
    }
}

fn defect(name: &str, path: &str) -> Gap {
    Gap::new(format!("{path}: the {name} extractor failed"))
        .settled_by("this is a defect of ncclcheck, please report it")
        .of_this_run()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EntryKind, part};

    struct Gather(Vec<u8>);

    impl Collect for Gather {
        fn push(&mut self, _offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
            self.0.extend_from_slice(bytes);
            Ok(())
        }

        fn finish(self: Box<Self>) -> Result<Option<Found>, Gap> {
            Ok(Some(Found::Text(self.0.into())))
        }
    }

    struct LeaveBounds;

    impl Collect for LeaveBounds {
        fn push(&mut self, _offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
            part(bytes, bytes.len() + 1..).map(|_| ())
        }

        fn finish(self: Box<Self>) -> Result<Option<Found>, Gap> {
            Ok(Some(Found::Text(Vec::new().into())))
        }
    }

    #[test]
    fn a_defect_of_an_extractor_costs_its_own_answer_alone() {
        let extractors = [
            Extractor { name: "bounds", wants: |_, _| true, start: |_, _| Box::new(LeaveBounds) },
            Extractor { name: "text", wants: |_, _| true, start: |_, _| Box::new(Gather(Vec::new())) },
        ];
        let entry = Entry { path: "a".into(), kind: EntryKind::File, mode: 0, size: 6 };
        let mut running = Running::start(&extractors, &entry, b"abc", 0, &Limits::default());
        running.push(0, b"abc");
        running.push(3, b"def");
        let [Ok(Found::Text(text)), Err(gap)] = &*running.finish() else { panic!("two answers") };
        assert!(text.starts_with(b"abcdef"));
        assert!(gap.passing && gap.why.ends_with("a: the bounds extractor failed"), "{gap}");
    }
}
