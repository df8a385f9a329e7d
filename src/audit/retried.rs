//! Requests to a store that are tried again: many workers meet a store that is busy.

use std::thread;
use std::time::Duration;

use layer::store::ObjectFolder;

use super::AuditError;

/// Attempts at one request, beyond those of the store's client.
const ATTEMPTS: u32 = 4;

/// The first pause; it doubles.
const PAUSE: Duration = Duration::from_millis(200);

/// Tries a request several times.
pub(super) fn retried<T>(
    store: &ObjectFolder,
    mut request: impl FnMut() -> Result<T, String>,
) -> Result<T, AuditError> {
    let mut attempt = 0;
    loop {
        match request() {
            Ok(done) => return Ok(done),
            Err(_) if attempt + 1 < ATTEMPTS => thread::sleep(PAUSE * (1 << attempt)),
            Err(why) => return Err(AuditError::Store { place: store.to_string(), why }),
        }
        attempt += 1;
    }
}
