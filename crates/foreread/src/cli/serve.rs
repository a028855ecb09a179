//! `foreread serve`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::Context as _;
use clap::Args;
use report::serve::Server;

use super::Context;
use crate::exit::Exit;
use crate::signals::Signals;

const AFTER_HELP: &str = "\
Examples:
  foreread serve
  foreread serve --port 0              on a free port, which it prints";

/// Serve the reports of all runs to a browser, live
///
/// The server is read-only (GET and HEAD), listens on the loopback address unless --listen is
/// given, and rejects requests with another Host header. Every client that can reach it sees all
/// runs.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ServeArgs {
    /// Port; 0 chooses a free one
    #[arg(long, default_value_t = 8277)]
    port: u16,
    /// Address to listen on; if it is not loopback, hosts on the network can read all runs
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    listen: IpAddr,
}

impl ServeArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let signals = Signals::listen().context("cannot listen for signals")?;
        let address = SocketAddr::new(self.listen, self.port);
        let server = Server::bind(address, &context.store_path())?;
        if !self.listen.is_loopback() {
            context.note("note: not a loopback address: hosts on the network can read all runs");
        }
        context.note(&format!("http://{} (Ctrl-C stops it)", server.address()));
        server.run(&signals.flag());
        Ok(Exit::Fine)
    }
}
