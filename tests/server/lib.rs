//! A small static file server: the standard library alone, so `make serve` needs no other tool.
//!
//! It does what the notes in `deploy/` ask of a real host: right content types, the compressed neighbour
//! where the browser takes it, long caching for hashed names only. It sends no Content-Security-Policy
//! header, so that what the browser tests meet is the policy inside the page itself.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Longest request head that is read.
const MAX_HEAD: u64 = 64 * 1024;

/// A directory, listening.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    root: PathBuf,
    prefix: String,
}

impl Server {
    /// Serves `root` under the path `prefix` (`/` or `/some/where/`) on the first free port of `ports`.
    ///
    /// Errors: no `index.html` in `root`, or no free port.
    pub fn bind(root: &Path, prefix: &str, ports: impl IntoIterator<Item = u16>) -> io::Result<Server> {
        if !root.join("index.html").is_file() {
            let text = format!("{} holds no index.html; run `make build` first", root.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        let mut last = io::Error::other("no port to try");
        for port in ports {
            match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                Ok(listener) => {
                    return Ok(Server { listener, root: root.to_owned(), prefix: prefix.to_owned() });
                }
                Err(e) => last = e,
            }
        }
        Err(last)
    }

    /// Where it listens.
    ///
    /// Errors: the socket is gone.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until the process ends.
    pub fn run(self) {
        for stream in self.listener.incoming().flatten() {
            let (root, prefix) = (self.root.clone(), self.prefix.clone());
            // One thread a request: a page has a handful of files. A broken connection concerns only itself.
            std::thread::spawn(move || drop(answer(&stream, &root, &prefix)));
        }
    }
}

/// Status line, headers and body of one response.
struct Response {
    status: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Response {
    fn text(status: &'static str) -> Response {
        let headers = vec![("Content-Type", "text/plain; charset=utf-8".to_owned())];
        Response { status, headers, body: status.as_bytes().to_vec() }
    }
}

fn answer(mut stream: &TcpStream, root: &Path, prefix: &str) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut lines = BufReader::new(stream.take(MAX_HEAD)).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut encodings = String::new();
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("accept-encoding")
        {
            encodings = value.to_ascii_lowercase();
        }
    }
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let response = match method {
        "GET" | "HEAD" => find(root, prefix, target, &encodings),
        _ => Response::text("405 Method Not Allowed"),
    };
    let mut head = format!("HTTP/1.1 {}\r\nContent-Length: {}\r\n", response.status, response.body.len());
    for (name, value) in &response.headers {
        for piece in [name, ": ", value, "\r\n"] {
            head.push_str(piece);
        }
    }
    head.push_str("X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    if method != "HEAD" {
        stream.write_all(&response.body)?;
    }
    stream.flush()
}

fn find(root: &Path, prefix: &str, target: &str, encodings: &str) -> Response {
    let path = target.split(['?', '#']).next().unwrap_or("");
    let Some(inside) = path.strip_prefix(prefix) else { return Response::text("404 Not Found") };
    let inside = if inside.is_empty() { "index.html" } else { inside };
    let relative = Path::new(inside);
    // Plain names only: no `..`, no absolute path, no escape (the build makes no name that needs one).
    if inside.contains('%') || !relative.components().all(|c| matches!(c, Component::Normal(_))) {
        return Response::text("404 Not Found");
    }
    let file = root.join(relative);
    let mut headers = vec![
        ("Content-Type", content_type(inside).to_owned()),
        ("Cache-Control", cache(inside).to_owned()),
        ("Vary", "Accept-Encoding".to_owned()),
    ];
    for (coding, ending) in [("br", "br"), ("gzip", "gz")] {
        let neighbour = PathBuf::from(format!("{}.{ending}", file.display()));
        if encodings.split(',').any(|e| e.split(';').next().unwrap_or("").trim() == coding)
            && let Ok(body) = fs::read(neighbour)
        {
            headers.push(("Content-Encoding", coding.to_owned()));
            return Response { status: "200 OK", headers, body };
        }
    }
    match fs::read(&file) {
        Ok(body) => Response { status: "200 OK", headers, body },
        Err(_) => Response::text("404 Not Found"),
    }
}

/// The content type of a file name.
fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or("") {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "wasm" => "application/wasm",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// Names with a hash of at least 12 hexadecimal digits never change; all others are asked for again.
fn cache(name: &str) -> &'static str {
    let hashed = name.split(|c: char| !c.is_ascii_hexdigit()).any(|run| run.len() >= 12);
    if hashed { "public, max-age=31536000, immutable" } else { "no-cache" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hashed_names_are_kept() {
        assert!(cache("oom-ledger-site-e28f3afd7452af4e_bg.wasm").contains("immutable"));
        assert_eq!(cache("index.html"), "no-cache");
        assert_eq!(cache("model_presets/deadbeef.json"), "no-cache");
    }

    #[test]
    fn nothing_outside_the_directory_is_read() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(find(here, "/x/", "/x/lib.rs?y=/../z", "").status, "200 OK");
        for target in
            ["/lib.rs", "/x/../x/lib.rs", "/x//etc/hostname", "/x/%2e%2e/lib.rs", "/x/none", "", "/x"]
        {
            assert_eq!(find(here, "/x/", target, "").status, "404 Not Found", "{target}");
        }
    }
}
