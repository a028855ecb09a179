//! Builds devices from specifications.

use crate::array::Array;
use crate::controller::Controller;
use crate::drive::Drive;
use crate::flash::Flash;
use crate::jitter::part_seed;
use crate::volume::Volume;
use crate::zero::Zero;
use crate::{Device, DeviceSpec, Spec, SpecError};

impl Spec {
    /// Builds the device; the same seed produces the same device.
    ///
    /// # Errors
    ///
    /// If a value is out of range.
    pub fn build(&self, seed: u64) -> Result<Box<dyn Device>, SpecError> {
        self.validate()?;
        self.device.build(seed)
    }
}

impl DeviceSpec {
    pub(crate) fn build(&self, seed: u64) -> Result<Box<dyn Device>, SpecError> {
        Ok(match self {
            Self::Hdd(spec) => Box::new(Drive::new(spec, seed)?),
            Self::Flash(spec) => Box::new(Flash::new(spec, seed)),
            Self::Volume(spec) => Box::new(Volume::new(spec, seed)),
            Self::Zero(spec) => Box::new(Zero::new(spec)),
            Self::Array(spec) => {
                let member = |index| spec.member.build(part_seed(seed, index));
                let members = (0..spec.members as u64).map(member).collect::<Result<_, _>>()?;
                Box::new(Array::new(spec, members))
            }
            Self::Controller(spec) => {
                let behind = spec.behind.build(part_seed(seed, 0))?;
                Box::new(Controller::new(spec, behind, seed))
            }
        })
    }
}
