//! TLS settings: which certificates are trusted.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

use super::certs::HostCerts;
use crate::source::SourceError;

/// The TLS settings for a registry; also returns true if this machine has no CA certificates at all.
pub(super) fn settings(certs: HostCerts, verify: bool) -> Result<(ClientConfig, bool), SourceError> {
    let provider = Arc::new(ring::default_provider());
    let HostCerts { authorities, client } = certs;
    let trust = if verify {
        // This fails only if no authority is trusted. That is reported when a server presents a certificate: plain HTTP
        // needs none.
        let system = Verifier::new_with_extra_roots(authorities.iter().cloned(), Arc::clone(&provider));
        system.map_or(Trust::Nobody, |system| Trust::Known { system, own: authorities })
    } else {
        Trust::Anyone
    };
    let nobody = matches!(trust, Trust::Nobody);
    let unusable = |error: Error| SourceError::invalid(format!("setting up TLS: {error}"));
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Judge { trust, provider }));
    let config = match client {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(unusable)?,
        None => builder.with_no_client_auth(),
    };
    Ok((config, nobody))
}

#[derive(Debug)]
enum Trust {
    /// This machine has no CA certificates.
    Nobody,
    /// The user disabled verification.
    Anyone,
    /// The CA certificates of the system and of `certs.d`.
    Known { system: Verifier, own: Vec<CertificateDer<'static>> },
}

#[derive(Debug)]
struct Judge {
    trust: Trust,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let (system, own) = match &self.trust {
            Trust::Nobody => return Err(CertificateError::UnknownIssuer.into()),
            Trust::Anyone => return Ok(ServerCertVerified::assertion()),
            Trust::Known { system, own } => (system, own),
        };
        let verdict = system.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verdict {
            // A server that presents exactly the certificate that certs.d trusts. Docker's guide to a registry with a
            // self-signed certificate leads to this, because `openssl req -x509` marks it as a CA certificate. webpki
            // reports this error after it has checked the dates; only the name remains to be checked.
            Err(Error::InvalidCertificate(error)) if is_authority(&error) => {
                if !own.contains(end_entity) {
                    return Err(CertificateError::UnknownIssuer.into());
                }
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// webpki's `CaUsedAsEndEntity`, for which rustls has no variant.
fn is_authority(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(other) if other.0.to_string() == "CaUsedAsEndEntity")
}
