//! Notes what engines read differently in a single member, or refuse.

use crate::model::{AmbiguousForm, Entry, ImagePath};

use super::attribute;
use super::header::HeaderFields;
use super::pax::Records;
use super::spelling::Spelling;
use super::{TarInput, TarReader};

/// Longest name in a directory, in bytes (Linux, `NAME_MAX`).
const LONGEST_NAME: usize = 255;

/// A PAX global header. Some engines take it for a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalHeader {
    /// Path of its name.
    pub path: ImagePath,
    /// Spelling of its name.
    pub spelling: Spelling,
    /// Offset of the header in the stream.
    pub offset: u64,
}

impl<R: TarInput> TarReader<'_, R> {
    /// Notes the forms of a member. `size` is that of its header or of a record.
    pub(super) fn note_forms(&mut self, entry: &Entry, fields: &HeaderFields, records: &Records, size: i64) {
        let mut note = |form| self.ambiguities.push(form, self.member_offset, entry.path.clone());
        match fields.flag {
            b'1' if size != 0 => note(AmbiguousForm::HardLinkWithSize),
            b'3' | b'4' if !fits_in_32_bits(fields.device) => note(AmbiguousForm::DeviceNumber),
            0 | b'0'..=b'6' => {}
            b'S' => note(AmbiguousForm::GnuSparse),
            _ => note(AmbiguousForm::UnknownTypeFlag),
        }
        let name = records.sparse_name().or(records.name()).unwrap_or(&fields.name);
        self.member_spelling = Spelling::of(name);
        if self.member_spelling.leaves_root() {
            note(AmbiguousForm::NameOutsideRoot);
        }
        if name.len() > LONGEST_NAME && entry.path.components().any(|part| part.len() > LONGEST_NAME) {
            note(AmbiguousForm::NameTooLong);
        }
        if records.is_empty() {
            return;
        }
        if records.is_repeated {
            note(AmbiguousForm::PaxRepeated);
        }
        if records.is_contradictory() {
            note(AmbiguousForm::PaxWithGnuName);
        }
        for (name, value) in records.attributes() {
            self.hides_lower |= attribute::hides_lower(name, value, &entry.kind);
            if let Some(form) = attribute::form(name, value, &entry.kind) {
                note(form);
            }
        }
    }

    /// Notes a PAX global header at an offset.
    pub(super) fn note_global(&mut self, fields: &HeaderFields, records: &Records, is_behind_extended: bool, at: u64) {
        let name = records.name().unwrap_or(&fields.name);
        let path = ImagePath::normalise(name);
        let mut note = |form| self.ambiguities.push(form, at, path.clone());
        if is_behind_extended {
            note(AmbiguousForm::PaxGlobalAfterExtended);
        }
        if ["path", "linkpath", "size"].iter().any(|key| records.get(key).is_some()) {
            note(AmbiguousForm::PaxGlobalRecord);
        }
        if records.verify().is_err() {
            note(AmbiguousForm::PaxGlobalMalformed);
        }
        note(AmbiguousForm::PaxGlobal);
        self.globals.push(GlobalHeader { path, spelling: Spelling::of(name), offset: at });
    }
}

fn fits_in_32_bits((major, minor): (i64, i64)) -> bool {
    [major, minor].into_iter().all(|number| u32::try_from(number).is_ok())
}
