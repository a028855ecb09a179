//! `foreread completions`.

use clap::Args;
use clap_complete::Shell;

use super::ResultFile;
use super::invocation::command;
use crate::exit::Exit;
use crate::output;

/// Print a completion script for a shell
///
/// In bash, zsh and fish it knows models, workloads, policies, tunables, presets, runs and virtual
/// disks as well as verbs and options.
///
///   bash:  foreread completions bash > /etc/bash_completion.d/foreread
///   zsh:   foreread completions zsh > ~/.zfunc/_foreread
///   fish:  foreread completions fish > ~/.config/fish/completions/foreread.fish
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
    #[command(flatten)]
    file: ResultFile,
}

impl CompletionsArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let own = match self.shell {
            Shell::Bash => Some(include_str!("foreread.bash")),
            Shell::Zsh => Some(include_str!("foreread.zsh")),
            Shell::Fish => Some(include_str!("foreread.fish")),
            _ => None,
        };
        match own {
            Some(script) => output::print_document(script)?,
            // Scripts of other shells know only verbs and options.
            None => {
                let mut script = Vec::new();
                clap_complete::generate(self.shell, &mut command(), "foreread", &mut script);
                output::with_stdout(|out| out.write_all(&script))?;
            }
        }
        Ok(Exit::Fine)
    }
}
