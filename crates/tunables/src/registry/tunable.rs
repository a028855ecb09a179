//! A tunable: its names, its files and the form of its values.

use std::fmt;
use std::path::PathBuf;

use host::{DevNo, Root};
use units::Bytes;

use super::declared_form::DeclaredForm;
use crate::{TunableScope, Value};

/// Prefix of the names of sysctls without a table of their own, in records.
pub(super) const SYSCTL_PREFIX: &str = "sysctl.";

/// The type of a tunable's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueForm {
    /// A count, share or switch without a unit, within these bounds.
    Count { least: i64, most: i64 },
    /// An amount of data, in units of this many bytes in the kernel.
    Amount { unit: u64, least: Bytes, most: Bytes },
    /// A read-ahead window, in KiB in the kernel.
    Window,
    /// A data rate, in KiB per second in the kernel.
    Rate,
    /// The same for one array; `system` means that it follows the machine's rate.
    ArrayRate,
    /// A time, in units of this many nanoseconds in the kernel.
    Span { unit: u64 },
    /// One of the words that the file itself lists, with the current one in brackets.
    Choice,
    /// Any text that the kernel accepts.
    Text,
    /// A text within the limits that a user declared.
    Declared(&'static DeclaredForm),
}

/// A valid value with notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidatedValue {
    /// The value as the kernel rounds it.
    pub value: Value,
    /// Notes for the user: rounding, or a surprising effect.
    pub notes: Vec<String>,
}

/// The files, and what their paths are relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileScope {
    /// `read_ahead_kb` of the effective bdi.
    Bdi,
    /// `read_ahead_kb` of the bdis below the effective one.
    MemberBdi,
    /// `queue/…` of each lowest device: these have requests and a scheduler of their own.
    Queue(&'static str),
    /// `device/…` of each lowest device: the driver's attributes.
    Driver(&'static str),
    /// `md/…` of each array in the stack.
    Array(&'static str),
    /// One file for the whole machine.
    Machine(&'static str),
    /// The path that a user declared, with placeholders.
    Declared(&'static str),
    /// No file: it belongs to this other system.
    OtherSystem(&'static str),
}

/// The effect of writing one tunable on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideEffect {
    /// The kernel may change its value: the old value is written again.
    Recomputed(&'static str),
    /// The kernel clears it, and it must stay so: the two set the same in different ways. It is
    /// restored when the first is undone.
    Cleared(&'static str),
}

impl SideEffect {
    pub fn name(self) -> &'static str {
        match self {
            Self::Recomputed(name) | Self::Cleared(name) => name,
        }
    }
}

/// A setting of the kernel: its names, unit, files and values. Reading, writing and undoing are the
/// same for all ([`crate::read`], [`crate::BdiLease`]).
pub struct Tunable {
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    /// Empty if it is the name.
    pub(super) json_key: &'static str,
    pub(super) order: u8,
    pub(super) place: FileScope,
    pub(super) form: ValueForm,
    pub(super) side_effects: &'static [SideEffect],
    /// Whether 0 only means that another tunable applies, and cannot be written.
    pub(super) defers_at_zero: bool,
    pub(super) default_words: Option<&'static str>,
}

impl Tunable {
    /// The values that most of them share.
    pub(super) const PLAIN: Self = Self {
        name: "",
        aliases: &[],
        json_key: "",
        order: 100,
        place: FileScope::Machine(""),
        form: ValueForm::Text,
        side_effects: &[],
        defers_at_zero: false,
        default_words: None,
    };

    /// Its name on the command line: `read_ahead`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its name in JSON, unit included: `read_ahead_kib`.
    pub fn json_key(&self) -> &'static str {
        if self.json_key.is_empty() { self.name } else { self.json_key }
    }

    /// The order among several writes: later writes overwrite side effects of earlier ones, as the
    /// kernel recomputes read-ahead when `max_sectors_kb` is written.
    pub fn write_rank(&self) -> u8 {
        self.order
    }

    pub fn side_effects(&self) -> &'static [SideEffect] {
        self.side_effects
    }

    /// The system's default in words, if known.
    pub fn default_words(&self) -> Option<&'static str> {
        self.default_words
    }

    /// All its names: the first is the usual one.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        [self.name, self.json_key()].into_iter().chain(self.aliases.iter().copied())
    }

    /// Its name for sysctl(8), if it is a sysctl.
    pub fn sysctl(&self) -> Option<&'static str> {
        match self.name.strip_prefix(SYSCTL_PREFIX) {
            Some(bare) => Some(bare),
            None => self.names().find(|name| name.contains('.') && !name.contains('/')),
        }
    }

    /// Its operating system, if that is not Linux.
    pub fn other_os(&self) -> Option<&'static str> {
        match self.place {
            FileScope::OtherSystem(system) => Some(system),
            _ => None,
        }
    }

    /// Whether it belongs to the whole machine, whatever the target.
    pub fn is_of_machine(&self) -> bool {
        matches!(self.place, FileScope::Machine(_) | FileScope::OtherSystem(_))
    }

    /// The kind of storage that has it, if not all have it.
    pub fn needs(&self) -> Option<&'static str> {
        match self.place {
            FileScope::Array(_) => Some("an md array"),
            FileScope::MemberBdi => Some("an array, volume or multipath device with members"),
            FileScope::Queue(_) | FileScope::Driver(_) => Some("a disk with this attribute"),
            _ => None,
        }
    }

    /// Whether the value only means that another tunable applies, so that it is never written.
    pub fn defers_to_other(&self, value: &Value) -> bool {
        let is_zero = match value.bytes() {
            Some(bytes) => bytes.is_zero(),
            None => matches!(value, Value::Number(0)),
        };
        self.defers_at_zero && is_zero
    }

    /// The possible files in `/sys` or `/proc`: one, or one for each device of a stack (not all
    /// need exist). Empty for tunables of another system.
    pub fn candidates(&self, site: &TunableScope) -> Vec<PathBuf> {
        let each = |devices: Vec<DevNo>, pattern: &str, mark: &str| -> Vec<PathBuf> {
            devices.iter().map(|device| pattern.replace(mark, &device.to_string()).into()).collect()
        };
        let block = |devices, rest: &str| each(devices, &format!("/sys/dev/block/D/{rest}"), "D");
        match self.place {
            FileScope::Bdi => vec![site.bdi.dir().join("read_ahead_kb")],
            FileScope::MemberBdi => {
                let mut below = site.all_layers();
                below.retain(|device| device.to_string() != site.bdi.as_str());
                each(below, "/sys/class/bdi/D/read_ahead_kb", "D")
            }
            FileScope::Queue(file) => block(site.undermost(), &format!("queue/{file}")),
            FileScope::Driver(file) => block(site.undermost(), &format!("device/{file}")),
            FileScope::Array(file) => block(site.all_layers(), &format!("md/{file}")),
            FileScope::Machine(file) => vec![file.into()],
            FileScope::Declared(pattern) => {
                let pattern = pattern.replace("{bdi}", site.bdi.as_str());
                if pattern.contains("{device}") {
                    each(site.undermost(), &pattern, "{device}")
                } else if pattern.contains("{md}") {
                    each(site.all_layers(), &pattern, "{md}")
                } else {
                    vec![pattern.into()]
                }
            }
            FileScope::OtherSystem(_) => Vec::new(),
        }
    }

    /// The first of its files, for errors and for tunables with exactly one.
    pub fn file(&self, site: &TunableScope) -> PathBuf {
        self.candidates(site).into_iter().next().unwrap_or_else(|| PathBuf::from(self.name))
    }

    /// Its existing files: usually with the same value, but each is restored to its own.
    pub fn files(&self, root: &Root, site: &TunableScope) -> Vec<PathBuf> {
        let mut files = self.candidates(site);
        files.retain(|file| root.exists(file));
        files
    }
}

impl fmt::Debug for Tunable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
