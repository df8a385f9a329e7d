//! Certificates for one registry, from `certs.d` folders (containers-certs.d(5); Docker reads the same layout): `*.crt`
//! are CA certificates to trust, `NAME.cert` and `NAME.key` are a client certificate and its key.

use model::open_configured;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::source::{AccessOptions, SourceError, read_bounded};

/// Maximum size of a certificate file in bytes.
const LARGEST_FILE: u64 = 16 << 20;

/// The certificates of a registry from `certs.d` folders.
#[derive(Debug, Default)]
pub(super) struct HostCerts {
    /// CA certificates to trust in addition to the system's.
    pub(super) authorities: Vec<CertificateDer<'static>>,
    /// The client certificate with its chain, and its key.
    pub(super) client: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
}

impl HostCerts {
    /// Reads the given folder, or all default ones for `host` (which includes a port).
    pub(super) fn find(host: &str, options: &AccessOptions) -> Result<Self, SourceError> {
        let mut certs = Self::default();
        if let Some(folder) = &options.cert_dir {
            certs.read_folder(folder).map_err(|error| error.named(folder))?;
            return Ok(certs);
        }
        for folder in usual_folders(options).into_iter().map(|folder| folder.join(host)) {
            match certs.read_folder(&folder) {
                // A default folder that is missing or unreadable is skipped.
                Err(CertificateFolderError::Folder(error))
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {}
                result => result.map_err(|error| error.named(&folder))?,
            }
        }
        Ok(certs)
    }

    fn read_folder(&mut self, folder: &Path) -> Result<(), CertificateFolderError> {
        let entries = fs::read_dir(folder)
            .and_then(Iterator::collect::<io::Result<Vec<_>>>)
            .map_err(CertificateFolderError::Folder)?;
        let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        files.sort();
        for file in files {
            match file.extension().and_then(|extension| extension.to_str()) {
                Some("crt") => self.authorities.append(&mut authorities(&file)?),
                Some("cert") if self.client.is_none() => self.client = Some(client(&file)?),
                _ => {}
            }
        }
        Ok(())
    }
}

/// A failure to read a folder.
enum CertificateFolderError {
    Folder(io::Error),
    File(SourceError),
}

impl From<SourceError> for CertificateFolderError {
    fn from(error: SourceError) -> Self {
        Self::File(error)
    }
}

impl CertificateFolderError {
    fn named(self, folder: &Path) -> SourceError {
        match self {
            Self::Folder(error) => SourceError::io(format!("reading the certificates in {}", folder.display()), error),
            Self::File(error) => error,
        }
    }
}

pub(super) fn usual_folders(options: &AccessOptions) -> Vec<PathBuf> {
    let home = super::credentials::home(&options.environment).map(|home| home.join(".config/containers/certs.d"));
    home.into_iter().chain(["/etc/containers/certs.d", "/etc/docker/certs.d"].map(PathBuf::from)).collect()
}

fn authorities(file: &Path) -> Result<Vec<CertificateDer<'static>>, SourceError> {
    let certificates = certificates(file)?;
    let mut store = RootCertStore::empty();
    for certificate in &certificates {
        let wrong = |error| SourceError::invalid(format!("{} is not a CA certificate: {error}", file.display()));
        store.add(certificate.clone()).map_err(wrong)?;
    }
    Ok(certificates)
}

fn client(file: &Path) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), SourceError> {
    let key_file = file.with_extension("key");
    if !key_file.exists() {
        return Err(SourceError::invalid(format!(
            "the client certificate {} has no key: {} is missing",
            file.display(),
            key_file.display()
        ))
        .with_hint("a CA certificate must be named *.crt".to_owned()));
    }
    let wrong = |error| SourceError::invalid(format!("{} contains no usable private key: {error}", key_file.display()));
    let key = PrivateKeyDer::from_pem_slice(&read(&key_file)?).map_err(wrong)?;
    Ok((certificates(file)?, key))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, SourceError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(file)?).collect();
    let found =
        found.map_err(|error| SourceError::invalid(format!("{} is not a PEM file: {error}", file.display())))?;
    if found.is_empty() {
        return Err(SourceError::invalid(format!("{} contains no certificate in PEM format", file.display())));
    }
    Ok(found)
}

fn read(file: &Path) -> Result<Vec<u8>, SourceError> {
    let what = format!("reading {}", file.display());
    let opened = open_configured(file).map_err(|error| SourceError::io(&what, error))?;
    read_bounded(opened, LARGEST_FILE, &what)
}
