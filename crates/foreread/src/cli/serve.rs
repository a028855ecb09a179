//! `foreread serve`.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use fleet::FleetSite;
use report::serve::{RunPages, Server};

use super::Context;
use super::examination::Tree;
use super::fleet::open_database;
use super::metrics::MetricsSite;
use crate::exit::Exit;
use crate::signals::Signals;

const AFTER_HELP: &str = "\
Examples:
  foreread serve
  foreread serve --port 0              on a free port, which it prints
  foreread serve --fleet postgresql://fleet_reader@db/foreread
  foreread serve --metrics --listen 0.0.0.0 --port 9797 --policy policy.toml";

/// Serve the reports of all runs to a browser, live
///
/// With --fleet, serve the hosts of a database of `foreread fleet`: their settings, what changed,
/// outliers and runs. With --metrics, serve what `doctor --metrics` writes, and the metrics of a
/// running `auto`, at /metrics.
///
/// The server is read-only (GET and HEAD), listens on the loopback address unless --listen is
/// given, and rejects requests with another Host header. Every client that can reach it sees all
/// pages.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ServeArgs {
    /// Port; 0 chooses a free one
    #[arg(long, default_value_t = 8277)]
    port: u16,
    /// IP address to listen on, or localhost; if it is not loopback, hosts on the network can read
    /// all pages
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    #[arg(value_parser = listen_address)]
    listen: IpAddr,
    /// Serve this database, as for psql: a URL or a connection string. Without one, that of
    /// FOREREAD_DATABASE
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    fleet: Option<String>,
    /// Serve this host's metrics for Prometheus, at /metrics
    #[arg(long, conflicts_with = "fleet")]
    metrics: bool,
    /// Include the violations of this policy in the metrics
    #[arg(long, value_name = "FILE", requires = "metrics")]
    policy: Option<PathBuf>,
    /// With --metrics: examine the host whose file tree is in this directory, as in a container
    #[arg(long, value_name = "DIR", requires = "metrics")]
    root: Option<OsString>,
}

/// Parses the address of --listen, which has no port.
fn listen_address(text: &str) -> Result<IpAddr, String> {
    if text == "localhost" {
        return Ok(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().map_err(|_| match text.rsplit_once(':') {
        Some((address, port)) if port.parse::<u16>().is_ok() && listen_address(address).is_ok() => {
            format!("the port is an option of its own: --listen {address} --port {port}")
        }
        _ => "must be an IP address, such as 127.0.0.1, ::1 or 0.0.0.0 (all), or localhost"
            .to_owned(),
    })
}

impl ServeArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let signals = Signals::listen().context("cannot listen for signals")?;
        let address = SocketAddr::new(self.listen, self.port);
        let server = match self.fleet {
            None if self.metrics => {
                let host = Tree::from_option(self.root).host(context)?;
                Server::bind(address, MetricsSite::new(host, self.policy.as_deref())?)?
            }
            None => Server::bind(address, RunPages { store: context.store_path() })?,
            Some(named) => {
                let site = FleetSite::new(open_database("--fleet", &named)?);
                site.check()?;
                Server::bind(address, site)?
            }
        };
        if !self.listen.is_loopback() {
            context.note("note: not a loopback address: hosts on the network can read all pages");
        }
        context.note(&format!("http://{} (Ctrl-C stops it)", server.address()));
        server.run(&signals.flag());
        Ok(Exit::Fine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_localhost_and_has_no_port() {
        for text in ["localhost", "127.0.0.1"] {
            assert_eq!(listen_address(text), Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)), "{text}");
        }
        assert_eq!(listen_address("[::1]"), listen_address("::1"));
        for text in ["localhost:80", "127.0.0.1:80", "[::1]:80"] {
            let error = listen_address(text).expect_err(text);
            assert!(error.ends_with("--port 80"), "{error}");
        }
        for text in ["", "localhosts", "example.org:80", "[::1"] {
            let error = listen_address(text).expect_err(text);
            assert!(error.starts_with("must be an IP address"), "{error}");
        }
    }
}
