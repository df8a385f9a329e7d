//! Parts of a layer that container engines read differently, or that some of them refuse.

use serde::{Deserialize, Serialize};

use super::ImagePath;

/// Declares the forms, with their names in reports and in `rules/tables/forms.yaml`.
macro_rules! forms {
    ($($(#[doc = $about:literal])+ $form:ident $name:literal,)*) => {
        /// Forms that engines read differently or refuse. The table `forms` holds what each engine makes of them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum AmbiguousForm {
            $($(#[doc = $about])+ #[serde(rename = $name)] $form,)*
        }

        impl AmbiguousForm {
            /// All forms.
            pub const ALL: &'static [Self] = &[$(Self::$form),*];

            /// The stable name, in lower case with dashes.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$form => $name,)*
                }
            }
        }
    };
}

forms! {
    /// A hard link whose size field is not zero: some readers expect content after the header, others a header.
    HardLinkWithSize "hard-link-with-size",
    /// Two PAX extended headers for one member.
    PaxRepeated "pax-repeated",
    /// A PAX record and a GNU header give the member different names or link targets.
    PaxWithGnuName "pax-with-gnu-name",
    /// A PAX global header between an extended header and its member.
    PaxGlobalAfterExtended "pax-global-after-extended",
    /// A record of a PAX global header that POSIX applies to all following members.
    PaxGlobalRecord "pax-global-record",
    /// A PAX global header, which some engines take for a member.
    PaxGlobal "pax-global",
    /// A PAX global header with the name of another one, or of a member.
    PaxGlobalTwice "pax-global-twice",
    /// A PAX global header with a record that engines cannot parse.
    PaxGlobalMalformed "pax-global-malformed",
    /// A type flag that engines do not unpack.
    UnknownTypeFlag "unknown-type-flag",
    /// A sparse file in the old GNU format.
    GnuSparse "gnu-sparse",
    /// A name that leads out of the root.
    NameOutsideRoot "name-outside-root",
    /// A component of a name that is longer than Linux allows.
    NameTooLong "name-too-long",
    /// The root as something else than a directory.
    RootAsFile "root-as-file",
    /// The root as something else than a directory, by a name such as `/` or `..`.
    RootReplaced "root-replaced",
    /// A device number that does not fit in 32 bits.
    DeviceNumber "device-number",
    /// A character device with the number 0:0, which overlayfs takes for a whiteout.
    WhiteoutDevice "whiteout-device",
    /// An extended attribute that controls overlayfs.
    OverlayAttribute "overlay-attribute",
    /// The same path twice.
    DuplicatePath "duplicate-path",
    /// A directory whose place a symbolic link takes that leads nowhere.
    LinkReplacesDirectory "link-replaces-directory",
    /// An entry below a file of the same layer.
    EntryBelowFile "entry-below-file",
    /// An entry below a symbolic link of the same layer to something that the layer does not have.
    EntryBelowMissingTarget "entry-below-missing-target",
    /// An entry below a symbolic link of the same layer whose target leads out of the root.
    EntryBelowLinkOut "entry-below-link-out",
    /// An entry below symbolic links of the same layer that lead in a circle.
    EntryBelowLinkLoop "entry-below-link-loop",
    /// An entry below a directory of a lower layer, for which this layer has no entry.
    UndescribedDirectory "undescribed-directory",
    /// An extended attribute that controls overlayfs mounted by an ordinary user.
    UserOverlayAttribute "user-overlay-attribute",
    /// An extended attribute that Linux does not know.
    UnknownAttribute "unknown-attribute",
    /// An extended attribute that Linux refuses.
    RefusedAttribute "refused-attribute",
    /// A user's attribute of something that has no such attributes.
    AttributeOfSpecial "attribute-of-special",
    /// A whiteout of a path that the same layer wrote before.
    WhiteoutAfterEntry "whiteout-after-entry",
    /// An entry below a path that the same layer whites out before.
    EntryBelowWhiteout "entry-below-whiteout",
    /// A whiteout of a directory that the same layer writes after it.
    WhiteoutBeforeDirectory "whiteout-before-directory",
    /// An opaque whiteout of the root.
    OpaqueRoot "opaque-root",
    /// A whiteout without the name of what it hides.
    WhiteoutWithoutName "whiteout-without-name",
    /// A hard link to a file that the same layer has not written before.
    HardLinkOutsideLayer "hard-link-outside-layer",
    /// A hard link to a directory of the same layer.
    HardLinkToDirectory "hard-link-to-directory",
    /// A hard link to what a whiteout of the same layer hides.
    HardLinkToWhiteout "hard-link-to-whiteout",
    /// A hard link with another mode than its file.
    HardLinkMode "hard-link-mode",
    /// An entry below a link of a lower layer, which becomes a directory.
    EntryBelowLowerLink "entry-below-lower-link",
    /// The layer's tar and its table of contents differ.
    TocDifference "toc-difference",
}

/// A part of a layer's tar that engines read differently, or that some refuse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ambiguity {
    /// The form.
    pub form: AmbiguousForm,
    /// Offset of the header in the uncompressed tar, in bytes; `None` if the form has none.
    pub offset: Option<u64>,
    /// The member concerned.
    pub path: ImagePath,
}

/// The ambiguities of a layer, in the order of their offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ambiguities {
    /// The first [`Self::MOST`] ambiguities.
    pub kept: Vec<Ambiguity>,
    /// Number of further ambiguities. What they concern is not known.
    pub more: u64,
}

impl Ambiguities {
    /// Maximum number of ambiguities kept of a layer.
    pub const MOST: usize = 1000;

    /// Adds an ambiguity, or counts it.
    pub fn push(&mut self, form: AmbiguousForm, offset: impl Into<Option<u64>>, path: ImagePath) {
        if self.kept.len() < Self::MOST {
            self.kept.push(Ambiguity { form, offset: offset.into(), path });
        } else {
            self.more += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguities_beyond_the_bound_are_counted() {
        let mut all = Ambiguities::default();
        for offset in 0..Ambiguities::MOST as u64 + 2 {
            all.push(AmbiguousForm::PaxRepeated, offset, "a".into());
        }
        assert_eq!((all.kept.len(), all.more), (Ambiguities::MOST, 2));
        assert_eq!(all.kept.last().and_then(|last| last.offset), Some(999));
    }
}
