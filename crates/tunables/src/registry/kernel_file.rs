//! Tunables that are one small file of sysfs or procfs each, and differ only in its path and
//! values. Their tables are in [`super::queue`], [`super::md`] and [`super::vm`].

use std::path::PathBuf;

use host::DevNo;
use units::PageSize;

use super::form::{FormedValue, ValueForm, values_of_form};
use crate::{SideEffect, Tunable, TunableError, TunableScope, ValidatedValue, Value};

/// The files, and what their paths are relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileScope {
    /// `queue/…` of each lowest device: these have requests and a scheduler of their own.
    Queue(&'static str),
    /// `device/…` of each lowest device: the driver's attributes.
    Driver(&'static str),
    /// `md/…` of each array in the stack.
    Array(&'static str),
    /// `read_ahead_kb` of the bdis below the effective one.
    MemberBdi,
    /// One file for the whole machine.
    Machine(&'static str),
}

/// A tunable that is a file.
#[derive(Debug)]
pub(super) struct KernelFile {
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    pub(super) json_key: &'static str,
    pub(super) summary: &'static str,
    pub(super) order: u8,
    pub(super) place: FileScope,
    pub(super) form: ValueForm,
    pub(super) side_effects: &'static [SideEffect],
    /// A value that only means that another tunable applies, and cannot be written.
    pub(super) inert: Option<i64>,
}

impl KernelFile {
    /// The values that most of them share.
    pub(super) const PLAIN: Self = Self {
        name: "",
        aliases: &[],
        json_key: "",
        summary: "",
        order: 100,
        place: FileScope::Machine(""),
        form: ValueForm::Text,
        side_effects: &[],
        inert: None,
    };

    const fn formed(&self) -> FormedValue {
        FormedValue { tunable: self.name, form: self.form }
    }
}

impl Tunable for KernelFile {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    fn json_key(&self) -> &'static str {
        self.json_key
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn write_rank(&self) -> u8 {
        self.order
    }

    fn parse(&self, name: &str, text: &str) -> Result<Value, TunableError> {
        self.formed().parse(&name.trim().to_ascii_lowercase(), text)
    }

    fn candidates(&self, site: &TunableScope) -> Vec<PathBuf> {
        let block = |devices: &[DevNo], rest: &str| -> Vec<PathBuf> {
            devices.iter().map(|d| format!("/sys/dev/block/{d}/{rest}").into()).collect()
        };
        match self.place {
            FileScope::Queue(file) => block(&site.undermost(), &format!("queue/{file}")),
            FileScope::Driver(file) => block(&site.undermost(), &format!("device/{file}")),
            FileScope::Array(file) => block(&site.all_layers(), &format!("md/{file}")),
            FileScope::MemberBdi => {
                let mut below = site.all_layers();
                below.retain(|device| device.to_string() != site.bdi.as_str());
                let bdi = |d: DevNo| format!("/sys/class/bdi/{d}/read_ahead_kb").into();
                below.into_iter().map(bdi).collect()
            }
            FileScope::Machine(file) => vec![file.into()],
        }
    }

    fn is_of_machine(&self) -> bool {
        matches!(self.place, FileScope::Machine(_))
    }

    fn needs(&self) -> Option<&'static str> {
        match self.place {
            FileScope::Array(_) => Some("an md array"),
            FileScope::MemberBdi => Some("an array, volume or multipath device with members"),
            FileScope::Queue(_) | FileScope::Driver(_) => Some("a disk with this attribute"),
            FileScope::Machine(_) => None,
        }
    }

    fn side_effects(&self) -> &'static [SideEffect] {
        self.side_effects
    }

    fn defers_to_other(&self, value: &Value) -> bool {
        let zero = self.inert.is_some_and(|inert| inert == 0);
        let is_zero = |value: &Value| match value.bytes() {
            Some(bytes) => bytes.is_zero(),
            None => matches!(value, Value::Number(0)),
        };
        zero && is_zero(value)
    }

    values_of_form!();
}
