//! Connections to an engine: one for each request, with a bound on what the engine sends.
//!
//! The client library keeps an answer in memory whole, whatever its size. Its own transports offer no bound, so this one
//! counts the bytes of each connection as they arrive.

use std::fmt;
use std::fs;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bollard::errors::Error;
use bollard::{API_DEFAULT_VERSION, BollardRequest, Docker};
use hyper::body::Incoming;
use hyper::client::conn::http1::handshake;
use hyper::header::{HOST, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls_platform_verifier::Verifier;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Sleep;
use tokio_rustls::TlsConnector;

use model::{Limits, OverLimit, cause, printable};

use super::endpoint::Address;
use super::engine_error::EngineError;
use crate::source::SourceErrorKind;

/// Time limit of an answer from its first byte to its last. What takes an engine long precedes the first byte.
const ARRIVAL: Duration = Duration::from_mins(1);
/// Bytes that an engine may send before an item of a stream is complete. The HTTP library hands over parts of at most
/// 0.4 MiB and reads one ahead, Docker's frames of a container's output have at most 32 KiB, and a line on the progress
/// of a pull has some hundred bytes. The library parses the line again with each part of it, so the bound is low.
const ITEM: u64 = 2 << 20;

/// A way to an engine.
#[derive(Clone)]
pub(super) struct EngineTransport {
    way: EngineRoute,
    limits: Limits,
}

#[derive(Clone)]
enum EngineRoute {
    Unix(PathBuf),
    /// `HOST:PORT`.
    Tcp(String),
    Tls {
        host: String,
        name: ServerName<'static>,
        config: Arc<ClientConfig>,
    },
}

/// A client for requests whose answers are streams, and what the engine may send before the next item of the stream is
/// complete.
pub struct Streaming {
    /// The client, for one request.
    pub docker: Docker,
    pub(super) allowance: Allowance,
}

impl Streaming {
    /// Notes that an item is complete.
    pub fn renew(&self) {
        self.allowance.renew();
    }
}

/// The bytes that an engine may still send on a connection.
#[derive(Clone, Debug)]
pub(super) struct Allowance {
    left: Arc<AtomicU64>,
    full: u64,
}

impl Allowance {
    fn new(full: u64) -> Self {
        Self { left: Arc::new(AtomicU64::new(full)), full }
    }

    /// Grants the full amount again.
    pub(super) fn renew(&self) {
        self.left.store(self.full, Ordering::Relaxed);
    }

    /// Charges bytes. Returns false if they are too many.
    fn charge(&self, bytes: usize) -> bool {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }
}

impl EngineTransport {
    /// The way to an address, or to the socket that leads there. Connects to nothing.
    pub(super) fn new(address: &Address, tunnel: Option<&Path>, limits: &Limits) -> Result<Self, EngineError> {
        let way = match address {
            Address::Unusable(why) => return Err(EngineError::new(SourceErrorKind::Unreachable, why)),
            Address::Ssh(_) => EngineRoute::Unix(tunnel.unwrap_or(Path::new("")).to_owned()),
            Address::Unix(path) => EngineRoute::Unix(path.into()),
            Address::Http(host) => EngineRoute::Tcp(with_port(host, 80)),
            Address::Tls { host, certificates } => {
                let name = ServerName::try_from(without_port(host).to_owned()).map_err(|_name| {
                    let why = format!("'{}' is not the name of a host", printable(host));
                    EngineError::new(SourceErrorKind::Unreachable, why)
                })?;
                EngineRoute::Tls { host: with_port(host, 443), name, config: Arc::new(settings(certificates)?) }
            }
        };
        Ok(Self { way, limits: limits.clone() })
    }

    /// A client whose answers are documents.
    pub(super) fn client(&self) -> Result<Docker, EngineError> {
        self.docker(None)
    }

    /// A client for one request whose answer is a stream.
    pub(super) fn streaming(&self) -> Result<Streaming, EngineError> {
        let allowance = Allowance::new(ITEM);
        Ok(Streaming { docker: self.docker(Some(allowance.clone()))?, allowance })
    }

    fn docker(&self, allowance: Option<Allowance>) -> Result<Docker, EngineError> {
        let transport = self.clone();
        let send = move |request| send(transport.clone(), allowance.clone(), request);
        let host = match &self.way {
            EngineRoute::Unix(_) => "localhost",
            EngineRoute::Tcp(host) | EngineRoute::Tls { host, .. } => host,
        };
        let docker = Docker::connect_with_custom_transport(
            send,
            Some(format!("http://{host}")),
            super::PATIENCE.as_secs(),
            API_DEFAULT_VERSION,
        );
        docker.map_err(|error| EngineError::from(&error))
    }

    async fn connect(&self) -> io::Result<Box<dyn Duplex>> {
        Ok(match &self.way {
            EngineRoute::Unix(path) => Box::new(UnixStream::connect(path).await?),
            EngineRoute::Tcp(host) => Box::new(TcpStream::connect(host).await?),
            EngineRoute::Tls { host, name, config } => {
                let stream = TcpStream::connect(host).await?;
                Box::new(TlsConnector::from(Arc::clone(config)).connect(name.clone(), stream).await?)
            }
        })
    }
}

/// Sends one request on a connection of its own. Without an allowance, the answer is a document.
async fn send(
    transport: EngineTransport,
    allowance: Option<Allowance>,
    request: BollardRequest,
) -> Result<Response<Incoming>, Error> {
    let (mut head, body) = request.into_parts();
    // On a connection to the server itself a request names the path alone, and the host in a header (RFC 9112, 3.2.1).
    let host = head.uri.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    head.headers.insert(HOST, host.unwrap_or(HeaderValue::from_static("localhost")));
    let target = head.uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    let name = format!("{} {}", head.method, target.path());
    head.uri = target.into();
    let stream = Counted {
        inner: transport.connect().await?,
        bound: match allowance {
            Some(allowance) => AnswerBound::Item(allowance),
            None => AnswerBound::Answer { left: Allowance::new(transport.limits.engine_answer), deadline: None },
        },
        name,
    };
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    // It runs while its request or its answer is waited for, and its errors are theirs.
    tokio::spawn(connection.with_upgrades());
    Ok(sender.send_request(Request::from_parts(head, body)).await?)
}

/// A stream in both directions.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection that fails once the engine has sent more than it may.
struct Counted {
    inner: Box<dyn Duplex>,
    bound: AnswerBound,
    /// The request: `GET /version`.
    name: String,
}

enum AnswerBound {
    /// A document, which is kept in memory whole, and the end of its time once it has begun.
    Answer { left: Allowance, deadline: Option<Pin<Box<Sleep>>> },
    /// A stream, of which one item is kept.
    Item(Allowance),
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { inner, bound, name } = &mut *self;
        if let AnswerBound::Answer { deadline: Some(deadline), .. } = bound
            && deadline.as_mut().poll(context).is_ready()
        {
            let why = format!("the answer to {name} took more than {} seconds", ARRIVAL.as_secs());
            return Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, why)));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(inner).poll_read(context, buffer))?;
        let count = buffer.filled().len().saturating_sub(before);
        let why = match bound {
            AnswerBound::Answer { left, deadline } => {
                if deadline.is_none() {
                    *deadline = Some(Box::pin(tokio::time::sleep(ARRIVAL)));
                }
                if left.charge(count) {
                    return Poll::Ready(Ok(()));
                }
                let what = format!("the answer to {name} has more than {} bytes", left.full);
                OverLimit::new(what, "engine_answer", left.full).to_string()
            }
            AnswerBound::Item(left) if left.charge(count) => return Poll::Ready(Ok(())),
            AnswerBound::Item(left) => format!("an item of the answer to {name} has more than {} bytes", left.full),
        };
        Poll::Ready(Err(io::Error::new(ErrorKind::FileTooLarge, why)))
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// `HOST:PORT` of a host with or without a port.
fn with_port(host: &str, port: u16) -> String {
    if without_port(host).len() < host.trim_matches(['[', ']']).len() {
        host.to_owned()
    } else {
        format!("{host}:{port}")
    }
}

/// The host of `HOST:PORT`, without the brackets of an address of IPv6.
fn without_port(host: &str) -> &str {
    let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
    let is_port =
        !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) && (!name.contains(':') || name.ends_with(']'));
    (if is_port { name } else { host }).trim_matches(['[', ']'])
}

/// The TLS settings of Docker's folder of certificates: its `ca.pem` beside the system's authorities, as `docker` trusts
/// them, and its `cert.pem` and `key.pem`, if the folder has them.
fn settings(certificates: &Path) -> Result<ClientConfig, EngineError> {
    let unusable = |what: &Path, why: &str| {
        let what = what.to_string_lossy();
        EngineError::new(SourceErrorKind::Unreachable, format!("cannot use {}: {why}", printable(&what)))
    };
    let [key, certificate, ca] = ["key.pem", "cert.pem", "ca.pem"].map(|file| certificates.join(file));
    if let Err(error) = fs::metadata(&ca) {
        let ca = ca.to_string_lossy();
        let why = format!("cannot read {}: {}", printable(&ca), cause(&error));
        return Err(EngineError::new(SourceErrorKind::Unreachable, why));
    }
    let chain = |path: &Path| -> Result<Vec<CertificateDer<'static>>, EngineError> {
        let chain = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
        chain.map_err(|error| unusable(path, &error.to_string()))
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trust = Verifier::new_with_extra_roots(chain(&ca)?, Arc::clone(&provider));
    let trust = trust.map_err(|error| unusable(&ca, &error.to_string()))?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(certificates, &error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust));
    if !certificate.exists() || !key.exists() {
        return Ok(builder.with_no_client_auth());
    }
    let private = PrivateKeyDer::from_pem_file(&key).map_err(|error| unusable(&key, &error.to_string()))?;
    builder
        .with_client_auth_cert(chain(&certificate)?, private)
        .map_err(|error| unusable(&certificate, &error.to_string()))
}

impl fmt::Debug for Streaming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Streaming({:?})", self.allowance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_added_where_there_are_none() {
        for (host, name, full) in [
            ("box", "box", "box:80"),
            ("box:2375", "box", "box:2375"),
            ("[::1]:2375", "::1", "[::1]:2375"),
            ("[::1]", "::1", "[::1]:80"),
            ("10.0.0.1", "10.0.0.1", "10.0.0.1:80"),
        ] {
            assert_eq!((without_port(host), &*with_port(host, 80)), (name, full));
        }
    }

    #[test]
    fn an_allowance_is_spent_and_renewed() {
        let allowance = Allowance::new(10);
        assert!(allowance.charge(6) && !allowance.charge(5) && allowance.charge(4));
        assert!(!allowance.charge(1));
        allowance.renew();
        assert!(allowance.charge(10));
    }
}
