//! Trust in certificates. Those here are self-signed and marked as CA certificates, as `openssl req -x509` writes them;
//! they share one key.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;

use super::*;
use crate::source::SourceErrorKind;

const KEY: &str = include_str!("certs/self-signed.key");
/// For 127.0.0.1, until 2120.
const GOOD: &str = include_str!("certs/self-signed.crt");
/// For 127.0.0.1, until 2021.
const EXPIRED: &str = include_str!("certs/expired.crt");
/// For another name.
const MISNAMED: &str = include_str!("certs/misnamed.crt");

/// A server that presents `certificate`, and that requires [`GOOD`] as a client certificate if `mutual`.
fn server(certificate: &str, mutual: bool) -> Server {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = builder.unwrap();
    let builder = if mutual {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(GOOD.as_bytes()).unwrap()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        builder.with_client_cert_verifier(verifier)
    } else {
        builder.with_no_client_auth()
    };
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let config = builder.with_single_cert(chain, PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap()).unwrap();
    Server::start_with(Some(Arc::new(config)), |_| Reply::new(200, MANIFEST.as_bytes()))
}

fn connect(server: &Server, folder: Option<&Path>, tls_verify: bool) -> Result<StoredDocument, SourceError> {
    let options = AccessOptions { cert_dir: folder.map(Path::to_owned), tls_verify, ..options() };
    open_patiently(
        &format!("{}/a/b", server.host()).parse().unwrap(),
        &options,
        &RegistryContacts::default(),
        Patience::default(),
    )?
    .top()
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

#[test]
fn only_known_certificates_are_trusted() {
    let all = folder(&[("a.crt", GOOD), ("b.crt", EXPIRED), ("c.crt", MISNAMED), ("README", "")]);
    connect(&server(GOOD, false), Some(all.path()), true).unwrap();
    let none = folder(&[]);
    for (certificate, known, why) in [
        (GOOD, &none, "issued by an authority that this machine does not trust\n  help: "),
        (EXPIRED, &all, "expired"),
        (MISNAMED, &all, "is for other names: registry.example\n  help: "),
    ] {
        let server = server(certificate, false);
        let error = connect(&server, Some(known.path()), true).unwrap_err();
        assert!(error.kind() == SourceErrorKind::Invalid && error.to_string().contains(why), "{error}");
        // No request was sent, with or without TLS.
        assert!(server.asked("/v2/").is_empty());
        connect(&server, None, false).unwrap();
    }
}

#[test]
fn a_required_client_certificate_is_requested() {
    let server = server(GOOD, true);
    let error = connect(&server, Some(folder(&[("ca.crt", GOOD)]).path()), true).unwrap_err().to_string();
    assert!(error.contains("help: pass a folder with a client certificate"), "{error}");
    let keyless = folder(&[("ca.crt", GOOD), ("client.cert", GOOD)]);
    let error = connect(&server, Some(keyless.path()), true).unwrap_err().to_string();
    assert!(error.contains("client.key is missing"), "{error}");
}

#[test]
fn folders_of_certificates_are_checked() {
    let server = server(GOOD, false);
    let error = connect(&server, Some(Path::new("/nowhere")), true).unwrap_err();
    assert_eq!(error.kind(), SourceErrorKind::Io, "{error}");
    let error = connect(&server, Some(folder(&[("ca.crt", "text")]).path()), true).unwrap_err().to_string();
    assert!(error.contains("ca.crt contains no certificate in PEM format"), "{error}");
}
