//! An engine that gives one answer, whatever it is asked.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;

use ncclcheck::image::{Request, load};
use ncclcheck::model::NoProgress;
use tempfile::TempDir;
use unpack::pipe::Cancel;

/// What Docker answers to `/version`, `/info` and `/images/NAME/json`, in one document.
pub const ANSWER: &str = r#"{"Components":[{"Name":"Engine","Version":"28.2.2"}],"Version":"28.2.2","ApiVersion":"1.51",
"Id":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","RepoTags":["torch:2.9"],
"RepoDigests":["registry.example/torch@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
"Os":"linux","Architecture":"amd64","Variant":"","Size":7,"Config":{"Env":["A=b"],"Entrypoint":["/entry.sh"],"Cmd":null},
"RootFS":{"Type":"layers","Layers":["sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"]},
"GraphDriver":{"Name":"overlay2","Data":{"UpperDir":"/nowhere/diff","LowerDir":"/nowhere/a:/nowhere/b"}},
"Descriptor":{"mediaType":"application/vnd.oci.image.index.v1+json","size":1,
"digest":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
"DockerRootDir":"/nowhere","Driver":"overlay2","DriverStatus":[["Backing Filesystem","extfs"]],"message":"no such image"}"#;

/// A socket, and what it answers.
pub struct Engine {
    folder: TempDir,
    answer: Arc<Mutex<Vec<u8>>>,
}

impl Engine {
    /// Listens. The thread ends with the process.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let listener = UnixListener::bind(folder.path().join("engine.sock")).expect("a socket");
        let answer = Arc::new(Mutex::new(Vec::new()));
        let given = Arc::clone(&answer);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                respond(stream, &given.lock().expect("no panic holds the answer"));
            }
        });
        Self { folder, answer }
    }

    /// Looks for an image in the engine while it gives this answer.
    pub fn search(&self, answer: &[u8]) {
        *self.answer.lock().expect("no panic holds the answer") = answer.to_vec();
        let mut request = Request::new("docker-daemon:torch:2.9").expect("a reference");
        let socket = format!("unix://{}", self.folder.path().join("engine.sock").display());
        request.options.environment = [("DOCKER_HOST".to_owned(), socket)].into_iter().collect();
        let outcome = load(&request, &NoProgress, &Cancel::default());
        assert!(outcome.is_err(), "no answer is an image");
    }
}

/// Reads the head of a request, and answers it. The client may hang up at any time.
fn respond(mut stream: UnixStream, body: &[u8]) {
    let head = BufReader::new(&stream).lines().map_while(Result::ok);
    head.take_while(|line| !line.is_empty()).for_each(drop);
    let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let _ = stream.write_all(body);
}
