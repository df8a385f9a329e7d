//! Hides GPU code, which makes up most of CUDA's libraries, from extractors that search for data of the host code. They
//! need not search it, and a medium that can skip it need not read it.

use std::ops::Range;

use model::{BoundsError, Found, Gap, GpuCode};

use super::super::extract::Collect;
use super::super::sections::ElfSections;
use super::walker::{Visit, Walker};

/// Passes the bytes outside of containers to another extractor, for which the containers are holes.
pub(in super::super) struct Outside<C> {
    path: String,
    walker: Walker,
    pass: Pass<C>,
}

struct Pass<C> {
    inner: C,
    /// The beginning of the first damaged container, and the position of the damage.
    damage: Option<(u64, u64)>,
}

impl<C> Outside<C> {
    pub(in super::super) fn new(path: String, inner: C) -> Self {
        Self { path, walker: Walker::default(), pass: Pass { inner, damage: None } }
    }
}

impl<C: Collect> Visit for Pass<C> {
    fn outside(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        self.inner.push(offset, bytes)
    }

    fn container(&mut self, _place: Range<u64>, _code: GpuCode) {}

    fn damaged(&mut self, place: Range<u64>, at: u64) {
        self.damage.get_or_insert((place.start, at));
    }
}

impl<C: Collect> Collect for Outside<C> {
    fn sections(&mut self, sections: &ElfSections) {
        self.pass.inner.sections(sections);
    }

    fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        self.walker.push(offset, bytes, &mut self.pass)
    }

    fn next(&self, at: u64) -> Option<u64> {
        self.pass.inner.next(self.walker.next(at))
    }

    fn finish(mut self: Box<Self>) -> Result<Option<Found>, Gap> {
        self.walker.finish(&mut self.pass).map_err(|error| Gap::new(format!("{}: {error}", self.path)))?;
        let Pass { inner, damage } = self.pass;
        match (Box::new(inner).finish()?, damage) {
            // The finding may lie in bytes that were mistaken for GPU code.
            (None, Some((start, at))) => Err(Gap::new(format!(
                "{}: not searched from {start:#x} on: the GPU code there is damaged at {at:#x}",
                self.path
            ))),
            (found, _) => Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::container;
    use super::*;

    #[derive(Default)]
    struct Shown(Vec<u8>, Vec<u64>);

    impl Collect for Shown {
        fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
            self.0.extend_from_slice(bytes);
            self.1.extend(offset..offset + bytes.len() as u64);
            Ok(())
        }

        fn finish(self: Box<Self>) -> Result<Option<Found>, Gap> {
            Ok(Some(Found::Text(
                [self.0, self.1.iter().flat_map(|place| place.to_le_bytes()).collect()].concat().into(),
            )))
        }
    }

    fn shown(library: &[u8], size: usize) -> Result<Option<Found>, Gap> {
        let mut outside = Box::new(Outside::new("lib".to_owned(), Shown::default()));
        let mut at = 0;
        // Simulates a medium that reads only the requested bytes.
        while let Some(next) =
            outside.next(at).and_then(|next| usize::try_from(next).ok()).filter(|n| *n < library.len())
        {
            let start = next / size * size;
            let end = (start + size).min(library.len());
            outside.push(start as u64, &library[start..end]).unwrap();
            at = end as u64;
        }
        outside.finish()
    }

    #[test]
    fn the_visible_bytes_do_not_depend_on_chunks_or_skipped_ranges() {
        let code = container(&[(2, 90, 0, 3000), (1, 90, 0, 8)]);
        let library = [&b"before"[..], &code, b"\x50\xed\x55\xba\x01\0\x10\0 between", &code, b"behind"].concat();
        let whole = shown(&library, library.len()).unwrap();
        let Some(Found::Text(text)) = &whole else { panic!("{whole:?}") };
        assert!(text.starts_with(b"before\x50\xed\x55\xba\x01\0\x10\0 betweenbehind"), "{text:?}");
        for size in 1..400 {
            assert_eq!(shown(&library, size).unwrap(), whole, "pieces of {size}");
        }
    }
}
