//! `oom-ledger-serve DIR [PORT]`: serves a built site on 127.0.0.1 and prints its address.

use oom_ledger_serve::Server;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = writeln!(io::stderr(), "oom-ledger-serve: {e}");
            ExitCode::from(2)
        }
    }
}

fn serve() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let usage = || io::Error::other("usage: oom-ledger-serve DIR [PORT]");
    let dir = args.next().ok_or_else(usage)?;
    let port: u16 = args.next().map_or(Ok(8080), |p| p.parse()).map_err(|_| usage())?;
    let server = Server::bind(Path::new(&dir), "/", port..=port.saturating_add(99))?;
    writeln!(io::stdout(), "\n  OOM Ledger is open at http://{}/   (Ctrl-C ends it)\n", server.address()?)?;
    io::stdout().flush()?;
    server.run();
    Ok(())
}
