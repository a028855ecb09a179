//! Helper for the tests of this crate. `serve …` runs the server, like `foreread vdisk serve`.
//! `hold DIR WORDS` creates a disk that is removed when this process exits, prints the disk's path,
//! and waits until it is killed.

use std::error::Error;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use foreread_vdisk::{DiskConfig, Lifetime, ServerCommand, VirtualDisk, serve_main};
use host::Dirs;

fn main() -> ExitCode {
    match run(std::env::args_os().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Vec<OsString>) -> Result<(), Box<dyn Error>> {
    let (verb, rest) = args.split_first().ok_or("usage: serve … | hold DIR WORDS")?;
    match verb.to_str() {
        Some("serve") => Ok(serve_main(rest.iter().cloned())?),
        Some("hold") => hold(rest),
        _ => Err(format!("no such verb: {verb:?}").into()),
    }
}

fn hold(args: &[OsString]) -> Result<(), Box<dyn Error>> {
    let [dir, words] = args else { return Err("usage: hold DIR WORDS".into()) };
    let server =
        ServerCommand { program: std::env::current_exe()?, args: vec![OsString::from("serve")] };
    let config = DiskConfig::parse(words.to_str().ok_or("WORDS are no text")?)?;
    let disk = VirtualDisk::create(&Dirs::under(dir), config, &server, Lifetime::DiesWithMe)?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", disk.target().display())?;
    out.flush()?;
    loop {
        std::thread::park();
    }
}
