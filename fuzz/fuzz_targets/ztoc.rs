//! A zTOC of a real layer, whatever it says: the layer is read by it, or as a whole, or is called damaged, and no more is found than
//! the zTOC has room for.
#![no_main]

use std::io::{Cursor, Read};
use std::num::NonZeroUsize;
use std::ops::Range;

use ncclcheck::model::{Limits, NoProgress, Progress as _};
use unpack::pipe::Cancel;
use ncclcheck::layer::scan::{Annotations, Partly, Ranged, scan_partly};

const LAYER: &[u8] = include_bytes!("../../fixtures/soci/layer.tar.gz");

libfuzzer_sys::fuzz_target!(|ztoc: &[u8]| {
    let (annotations, cancel) = (Annotations::new(), Cancel::default());
    let open = |range: Range<u64>| {
        let bytes = LAYER.get(range.start as usize..range.end as usize).expect("no range leads out of the layer");
        Ok(Some(Box::new(Cursor::new(bytes)) as Box<dyn Read + Send>))
    };
    let threads = NonZeroUsize::MIN;
    let size = LAYER.len() as u64;
    let blob = Ranged { annotations: &annotations, ztoc: Some(ztoc), size, open: &open, cost: 0, threads };
    if let Ok(Partly::Scanned { scan, .. }) = scan_partly(&blob, &Limits::default(), &*NoProgress.begin("layer", None), &cancel) {
        let names: usize = scan.entries.iter().map(|entry| entry.path.as_bytes().len()).sum();
        assert!(names <= ztoc.len() && scan.entries.len() <= ztoc.len() / 4);
    }
});
