//! `foreread serve`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::Context as _;
use clap::Args;
use serve::Server;

use super::Context;
use crate::exit::Exit;
use crate::signals::Signals;

/// Show the reports of all runs in a browser, live while a study runs
///
/// Listens on this machine only unless told otherwise, and answers nothing but reading: whoever
/// can reach it sees all runs and changes none.
#[derive(Debug, Args)]
pub struct Serve {
    /// The port; 0 takes a free one
    #[arg(long, default_value_t = 8277)]
    port: u16,
    /// The address; another than a loopback one lets others on the network read all runs
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    listen: IpAddr,
}

impl Serve {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let signals = Signals::listen().context("listening to signals")?;
        let address = SocketAddr::new(self.listen, self.port);
        let server = Server::bind(address, &context.store_path())?;
        if !self.listen.is_loopback() {
            context
                .note("note: not on a loopback address: others on the network can read all runs");
        }
        context.note(&format!("http://{} (control-C ends it)", server.address()));
        server.run(&signals.flag());
        Ok(Exit::Fine)
    }
}
