//! A registry for tests: answers each request with a function, over plain HTTP, and records the requests.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) body: String,
    /// The server's own address.
    pub(super) host: String,
    headers: Vec<(String, String)>,
}

impl Ask {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// A response.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    status: u16,
    headers: String,
    body: Vec<u8>,
    length: Option<usize>,
    /// Number of bytes of the body sent before the connection breaks.
    cut: Option<usize>,
    /// Time that the connection then stays open.
    silence: Duration,
}

impl Reply {
    pub(super) fn new(status: u16, body: &[u8]) -> Self {
        Self {
            status,
            headers: String::new(),
            body: body.to_owned(),
            length: Some(body.len()),
            cut: None,
            silence: Duration::ZERO,
        }
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.extend([name, ": ", value, "\r\n"]);
        self
    }

    pub(super) fn cut(mut self, after: usize) -> Self {
        self.cut = Some(after);
        self
    }

    pub(super) fn silent_for(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// Ends the body with the connection.
    pub(super) fn without_length(mut self) -> Self {
        self.length = None;
        self
    }
}

pub(super) struct Server {
    host: String,
    asked: Arc<Mutex<Vec<Ask>>>,
    listener: Arc<TcpListener>,
}

type Handler = dyn Fn(&Ask) -> Reply + Send + Sync;

impl Server {
    pub(super) fn start(handler: impl Fn(&Ask) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_with(None, handler)
    }

    /// Serves TLS if there are settings for it.
    pub(super) fn start_with(
        tls: Option<Arc<ServerConfig>>,
        handler: impl Fn(&Ask) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = Arc::new(TcpListener::bind("127.0.0.1:0").unwrap());
        let host = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let handler: Arc<Handler> = Arc::new(handler);
        let server = Self { host: host.clone(), asked: Arc::clone(&asked), listener: Arc::clone(&listener) };
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let handler = Arc::clone(&handler);
                let asked = Arc::clone(&asked);
                let host = host.clone();
                if Arc::strong_count(&listener) == 1 {
                    return;
                }
                let tls = tls.clone().map(|config| ServerConnection::new(config).unwrap());
                thread::spawn(move || match tls {
                    Some(tls) => serve(StreamOwned::new(tls, stream), &host, &handler, &asked),
                    None => serve(stream, &host, &handler, &asked),
                });
            }
        });
        server
    }

    pub(super) fn host(&self) -> String {
        self.host.clone()
    }

    /// The paths of all requests, in order.
    pub(super) fn paths(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|ask| ask.path.clone()).collect()
    }

    /// All requests for a path, in order.
    pub(super) fn asked(&self, path: &str) -> Vec<Ask> {
        self.asked.lock().unwrap().iter().filter(|ask| ask.path == path).cloned().collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The accepting thread notices that it holds the last reference, and stops listening.
        self.listener = Arc::new(TcpListener::bind("127.0.0.1:0").unwrap());
        _ = TcpStream::connect(&self.host);
        thread::sleep(Duration::from_millis(20));
    }
}

/// Serves one request per connection. A TLS handshake gets no answer, because it does not begin with a method.
fn serve(stream: impl Read + Write, host: &str, handler: &Arc<Handler>, asked: &Mutex<Vec<Ask>>) {
    let mut reader = BufReader::new(stream);
    if !reader.fill_buf().is_ok_and(|bytes| bytes.first().is_some_and(u8::is_ascii_uppercase)) {
        return;
    }
    let mut line = || {
        let mut text = String::new();
        reader.read_line(&mut text).map(|_| text.trim_end().to_owned()).unwrap_or_default()
    };
    let first = line();
    let headers: Vec<(String, String)> = std::iter::repeat_with(line)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect();
    let [method, target] = [0, 1].map(|index| first.split(' ').nth(index).unwrap_or_default().to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut ask = Ask {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        body: String::new(),
        host: host.to_owned(),
        headers,
    };
    let length = ask.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    ask.body = String::from_utf8(body).unwrap();
    let reply = handler(&ask);
    asked.lock().unwrap().push(ask);
    let length = reply.length.map(|length| format!("Content-Length: {length}\r\n")).unwrap_or_default();
    let head = format!("HTTP/1.1 {} X\r\nConnection: close\r\n{length}{}\r\n", reply.status, reply.headers);
    let sent = reply.cut.map_or(&*reply.body, |cut| &reply.body[..cut.min(reply.body.len())]);
    // The client may have hung up.
    let stream = reader.get_mut();
    _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(sent)).and_then(|()| stream.flush());
    thread::sleep(reply.silence);
}
