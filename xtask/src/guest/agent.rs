//! Runs commands inside the guest, through QEMU's guest agent.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::wire::Wire;
use crate::command::Output;

/// Time limit of a boot, which takes seconds on an idle machine and longer during a build.
const BOOT_TIMEOUT: Duration = Duration::from_secs(900);
/// Interval of the greetings until the agent answers.
const GREETING_INTERVAL: Duration = Duration::from_secs(10);
/// Time limit of a reply by the agent, which itself performs no long operation.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval of the checks whether a command has exited.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct Agent {
    wire: Wire,
}

impl Agent {
    /// Waits until the guest has booted.
    pub fn greet(socket: &Path) -> Result<Self> {
        let mut wire = Wire::connect(socket, ANSWER_TIMEOUT)?;
        let deadline = Instant::now() + BOOT_TIMEOUT;
        // An agent that is restarted during the boot may read a greeting and not answer it.
        for id in 1.. {
            wire.send("guest-sync", &json!({ "id": id }))?;
            while let Some(answer) = wire.reply("guest-sync", GREETING_INTERVAL)? {
                if answer == id {
                    return Ok(Self { wire });
                }
            }
            if Instant::now() > deadline {
                break;
            }
        }
        bail!("the guest's agent has not answered in {} s", BOOT_TIMEOUT.as_secs())
    }

    /// Runs a script, and waits until it exits.
    pub fn run(&mut self, script: &str, patience: Duration) -> Result<Output> {
        let arguments = json!({ "path": "/bin/sh", "arg": ["-c", script], "capture-output": true });
        let started = self.wire.ask("guest-exec", &arguments, ANSWER_TIMEOUT)?;
        let deadline = Instant::now() + patience;
        loop {
            let pid = json!({ "pid": started["pid"] });
            let status = self.wire.ask("guest-exec-status", &pid, ANSWER_TIMEOUT)?;
            if status["exited"] == true {
                return output(&status);
            }
            if Instant::now() > deadline {
                bail!("still running after {} s: {script}", patience.as_secs());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

fn output(status: &Value) -> Result<Output> {
    let code = status["exitcode"].as_i64().unwrap_or_else(|| 128 + signal(status));
    let text = |field: &str| {
        let data = STANDARD.decode(status[field].as_str().unwrap_or_default());
        let data = data.with_context(|| format!("{field} of the agent is not base64"))?;
        Ok::<_, anyhow::Error>(String::from_utf8_lossy(&data).into_owned())
    };
    Ok(Output { code, stdout: text("out-data")?, stderr: text("err-data")? })
}

fn signal(status: &Value) -> i64 {
    status["signal"].as_i64().unwrap_or_default()
}
