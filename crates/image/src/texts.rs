//! The texts of an image together: each layer may have as many as an honest image has.

use std::sync::atomic::{AtomicU64, Ordering};

use layer::scan::LayerScan;
use model::Limits;

use super::ImageError;
use super::plan::over;

/// Bytes of the texts of the layers that were scanned so far.
#[derive(Debug, Default)]
pub(super) struct KeptTexts(AtomicU64);

impl KeptTexts {
    /// Adds those of a layer.
    pub(super) fn add(&self, scan: &LayerScan, limits: &Limits) -> Result<(), ImageError> {
        let own = scan.text_bytes();
        let all = self.0.fetch_add(own, Ordering::Relaxed).saturating_add(own);
        if all > limits.texts {
            return Err(over(format!("the texts of the layers have {all} bytes"), "texts", limits.texts));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use model::Found;

    #[test]
    fn layers_share_the_limit() {
        let text = |size: usize| vec![Ok(Found::Text(vec![b'x'; size].into()))];
        let scan = LayerScan { found: BTreeMap::from([(0, text(30)), (1, text(30))]), ..LayerScan::empty() };
        let (texts, limits) = (KeptTexts::default(), Limits { texts: 100, ..Limits::default() });
        texts.add(&scan, &limits).unwrap();
        let error = texts.add(&scan, &limits).unwrap_err().to_string();
        assert!(error.contains("the texts of the layers have 120 bytes, the limit is 100"), "{error}");
    }
}
