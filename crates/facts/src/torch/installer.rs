//! The program that installed torch: the one that can repair the installation.

use model::Fact;

use super::super::words::Installer;
use super::super::{Context, pattern};
use super::is_library;

// The line about the file INSTALLER in the record of a wheel (PyPA, "Recording installed projects").
pattern!(LINE, r"(?m)^[^,\r\n]*\.dist-info/INSTALLER,sha256=([A-Za-z0-9_-]{43}),");

/// SHA-256 digests of that file, in the record's encoding: URL-safe Base64 without padding.
const CONTENTS: &[(&[u8], Installer)] = &[
    // "pip" with and without a line break, then the same for uv and conda.
    (b"zuuue4knoyJ-UwPPXg8fezS7VCrXJQrAP7zeNuwvFQg", Installer::Pip),
    (b"_tUDi_L0J6suyE-FiB8QPA6Ubo1iUrhzH5mrDLV3Kdk", Installer::Pip),
    (b"LDjFKbbqirilWXGia_0Uo3lsFc1zKP416eimZah7jNw", Installer::Uv),
    (b"5hhM4Q4mYTT9z6QB6PGpUAW81PGNFrYrdXMj4oM_6ak", Installer::Uv),
    (b"vDMCLty3Y5_1M1W06R2t5QoLvwKZ7-thcdHsC6UCnPw", Installer::Conda),
    (b"0O3uFfkbQG8_mXJuROuZC-bjT9A0W1K5EMVo4O72oqg", Installer::Conda),
];

/// The owner of torch's libraries decides, since conda packages and Debian packages may contain a wheel's metadata;
/// then the wheel's record. Absent where neither says.
pub(super) fn installer(context: &Context<'_>, record: &Fact<&[u8]>) -> Fact<Installer> {
    let library = context.torch_libraries(|name| is_library(name, b"libtorch_python"));
    let owners = library.value().into_iter().flatten().flat_map(|library| context.packages.owners(&library.path));
    for owner in owners {
        for (package, installer) in [("(conda)", Installer::Conda), ("(dpkg)", Installer::Apt)] {
            if owner.ends_with(package) {
                return Fact::seen(installer, library.sites().iter().cloned());
            }
        }
    }
    record.clone().and_then(|bytes, at| match recorded(bytes) {
        Some(value) => Fact::Seen { value, at },
        None => Fact::Absent,
    })
}

fn recorded(record: &[u8]) -> Option<Installer> {
    let digest = LINE.captures(record)?.get(1)?.as_bytes();
    CONTENTS.iter().find(|(known, _)| *known == digest).map(|(_, installer)| *installer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_names_the_installer_by_the_digest_of_its_file() {
        let record = |digest: &str| {
            format!(
                "torch-2.9.0.dist-info/METADATA,sha256=zuuue4knoyJ-UwPPXg8fezS7VCrXJQrAP7zeNuwvFQg,9\n\
                 torch-2.9.0.dist-info/INSTALLER,sha256={digest},2\r\n"
            )
        };
        for (digest, expected) in [
            ("zuuue4knoyJ-UwPPXg8fezS7VCrXJQrAP7zeNuwvFQg", Some(Installer::Pip)),
            ("5hhM4Q4mYTT9z6QB6PGpUAW81PGNFrYrdXMj4oM_6ak", Some(Installer::Uv)),
            ("0O3uFfkbQG8_mXJuROuZC-bjT9A0W1K5EMVo4O72oqg", Some(Installer::Conda)),
            ("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", None),
            ("short", None),
        ] {
            assert_eq!(recorded(record(digest).as_bytes()), expected, "{digest}");
        }
        assert_eq!(recorded(b"torch-2.9.0.dist-info/INSTALLER,,\n"), None);
    }
}
