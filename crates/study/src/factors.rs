//! Studies of several tunables at once: selects the combinations to measure.

use serde::{Deserialize, Serialize};
use tunables::{Setting, TunableValues};
use units::Kib;

use crate::error::StudyError;
use crate::settings::{CellSettings, Labels};

/// Maximum number of cells; more would take too long.
const MAX_CELLS: usize = 500;

/// A tunable that is varied in addition to read-ahead, with its levels as typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    pub tunable: String,
    pub levels: Vec<String>,
}

impl Factor {
    pub(crate) fn settings(&self) -> Result<Vec<Setting>, StudyError> {
        let tunable = tunables::find(&self.tunable)?;
        let level = |text: &String| {
            let value = tunable.parse(tunable.name(), text)?;
            let value = tunable.validate(&value, host::page_size())?.value;
            Ok(Setting { tunable, value })
        };
        self.levels.iter().map(level).collect()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Design {
    /// Each level alone, with all other tunables at the baseline: the values before the study.
    #[default]
    OneAtATime,
    Full,
    /// All combinations whose level indices add up to a multiple of the smallest number of levels.
    /// With three or more factors, each pair of levels of two factors still occurs.
    Fractional,
}

impl Design {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// All varied tunables, including read-ahead.
#[derive(Clone, Debug)]
pub(crate) struct FactorSpace {
    /// The levels of each factor; the baseline comes first in one-at-a-time designs.
    pub(crate) factors: Vec<Vec<Setting>>,
}

impl FactorSpace {
    /// Builds the levels. In a one-at-a-time design, the level of `present` comes first, as the
    /// baseline, even if it was not requested.
    pub(crate) fn new(
        factors: &[Factor],
        read_ahead: &[Kib],
        design: Design,
        present: &TunableValues,
    ) -> Result<Self, StudyError> {
        let window = |kib: &Kib| TunableValues::read_ahead(kib.to_bytes()).iter().next().cloned();
        let mut all: Vec<Vec<Setting>> =
            factors.iter().map(Factor::settings).collect::<Result<_, _>>()?;
        if read_ahead.len() > 1 {
            all.push(read_ahead.iter().filter_map(window).collect());
        }
        for levels in &mut all {
            let Some(name) = levels.first().map(|setting| setting.tunable.name()) else { continue };
            let found = present.iter().find(|setting| setting.tunable.name() == name);
            if let (Some(found), Design::OneAtATime) = (found, design) {
                levels.retain(|level| level != found);
                levels.insert(0, found.clone());
            }
        }
        if all.iter().any(|levels| levels.len() < 2) {
            let text = "a tunable has only one level: name two or more to compare";
            return Err(StudyError::Plan(text.to_owned()));
        }
        Ok(Self { factors: all })
    }

    pub(crate) fn cells(
        &self,
        design: Design,
        found: Kib,
    ) -> Result<Vec<CellSettings>, StudyError> {
        let base = TunableValues::read_ahead(found.to_bytes());
        let with = |indices: &[usize]| {
            let levels = self.factors.iter().zip(indices);
            levels.fold(base.clone(), |all, (levels, at)| all.with(levels[*at].clone()))
        };
        let chosen: Vec<Vec<usize>> = match design {
            Design::OneAtATime => {
                let zero = vec![0; self.factors.len()];
                let each = self.factors.iter().enumerate().flat_map(|(factor, levels)| {
                    let zero = zero.clone();
                    (1..levels.len()).map(move |level| {
                        let mut one = zero.clone();
                        one[factor] = level;
                        one
                    })
                });
                std::iter::once(zero.clone()).chain(each).collect()
            }
            Design::Full => self.product()?,
            Design::Fractional => {
                let least = self.factors.iter().map(Vec::len).min().unwrap_or(1);
                let mut all = self.product()?;
                all.retain(|indices| indices.iter().sum::<usize>().is_multiple_of(least));
                all
            }
        };
        Self::refuse_many(chosen.len())?;
        let mut cells: Vec<CellSettings> = chosen
            .iter()
            .filter_map(|indices| CellSettings::from_tunables(&with(indices), Labels::new()))
            .collect();
        cells.sort_unstable();
        cells.dedup();
        Ok(cells)
    }

    fn refuse_many(cells: usize) -> Result<(), StudyError> {
        if cells <= MAX_CELLS {
            return Ok(());
        }
        Err(StudyError::Plan(format!(
            "{cells} combinations would take too long ({MAX_CELLS} at most): vary fewer levels, \
             or use --design fractional or one-at-a-time"
        )))
    }

    fn product(&self) -> Result<Vec<Vec<usize>>, StudyError> {
        let count =
            self.factors.iter().fold(1usize, |count, levels| count.saturating_mul(levels.len()));
        // A fractional design may still be small enough.
        Self::refuse_many(count / 8)?;
        let mut all = vec![Vec::new()];
        for levels in &self.factors {
            let longer = |indices: Vec<usize>| {
                (0..levels.len()).map(move |level| {
                    let mut longer = indices.clone();
                    longer.push(level);
                    longer
                })
            };
            all = all.into_iter().flat_map(longer).collect();
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn factor(tunable: &str, levels: &[&str]) -> Factor {
        let levels = levels.iter().map(|level| (*level).to_owned()).collect();
        Factor { tunable: tunable.to_owned(), levels }
    }

    fn field(design: Design) -> FactorSpace {
        let factors = [
            factor("scheduler", &["none", "bfq", "kyber"]),
            factor("nr_requests", &["64", "256"]),
            factor("rotational", &["0", "1"]),
        ];
        let present = "scheduler=none nr_requests=128 rotational=1".parse().unwrap();
        FactorSpace::new(&factors, &[], design, &present).unwrap()
    }

    /// Returns the index of each level of a cell.
    fn places(field: &FactorSpace, settings: &CellSettings) -> Vec<usize> {
        let all = settings.tunables();
        let place = |levels: &Vec<Setting>| {
            let value = all.get(levels[0].tunable.name()).unwrap();
            levels.iter().position(|level| level.value == *value).unwrap()
        };
        field.factors.iter().map(place).collect()
    }

    fn words(design: Design) -> Vec<String> {
        let cells = field(design).cells(design, Kib::new(128)).unwrap();
        cells.iter().map(CellSettings::to_string).collect()
    }

    #[test]
    fn one_at_a_time_begins_at_what_is_there() {
        let words = words(Design::OneAtATime);
        let base = "read_ahead=128K scheduler=none nr_requests=128 rotational=1".to_owned();
        assert!(words.contains(&base), "{words:?}");
        // Two other schedulers, two other numbers of requests, one other kind of disk.
        assert_eq!(words.len(), 1 + 2 + 2 + 1, "{words:?}");
    }

    #[test]
    fn full_is_every_combination_and_a_fraction_still_has_every_level_and_pair() {
        assert_eq!(words(Design::Full).len(), 3 * 2 * 2);
        let field = field(Design::Fractional);
        let cells = field.cells(Design::Fractional, Kib::new(128)).unwrap();
        assert_eq!(cells.len(), 6);
        let places: Vec<Vec<usize>> = cells.iter().map(|c| places(&field, c)).collect();
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            let pairs: BTreeSet<_> = places.iter().map(|place| (place[a], place[b])).collect();
            assert_eq!(pairs.len(), field.factors[a].len() * field.factors[b].len());
        }
    }

    #[test]
    fn plans_that_make_no_sense_are_refused() {
        let none = TunableValues::default();
        let new = |factors: &[Factor]| FactorSpace::new(factors, &[], Design::Full, &none);
        assert!(new(&[factor("scheduler", &["none"])]).is_err());
        assert!(new(&[factor("nr_requests", &["0", "1"])]).is_err());
        assert!(new(&[factor("no_such", &["0", "1"])]).is_err());
        let many: Vec<String> = (64..164).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let field = new(&[factor("nr_requests", &many), factor("queue_depth", &many)]);
        assert!(field.unwrap().cells(Design::Full, Kib::new(128)).is_err());
    }

    #[test]
    fn read_ahead_is_a_factor_like_others() {
        let present = "read_ahead=128K scheduler=none".parse().unwrap();
        let windows = [128, 1024].map(Kib::new);
        let factors = [factor("scheduler", &["none", "bfq"])];
        let field = FactorSpace::new(&factors, &windows, Design::OneAtATime, &present).unwrap();
        let cells = field.cells(Design::OneAtATime, Kib::new(128)).unwrap();
        assert_eq!(cells.len(), 3);
        assert_eq!(field.factors[1][0].tunable.name(), "read_ahead");
    }
}
