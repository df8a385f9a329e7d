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
            certs.read_files(files(folder).map_err(|error| failed(folder, error))?)?;
            return Ok(certs);
        }
        for folder in usual_folders(options).into_iter().map(|folder| folder.join(host)) {
            match files(&folder) {
                // A default folder that is missing or unreadable is skipped.
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {}
                found => certs.read_files(found.map_err(|error| failed(&folder, error))?)?,
            }
        }
        Ok(certs)
    }

    fn read_files(&mut self, files: Vec<PathBuf>) -> Result<(), SourceError> {
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

/// The files of a folder, sorted.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

fn failed(folder: &Path, error: io::Error) -> SourceError {
    SourceError::io(format!("reading the certificates in {}", folder.display()), error)
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
