//! The best sequence of settings, if each change has a cost: the reference for tuners that only
//! change settings.

use units::Nanos;

/// A sequence of settings and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switching {
    /// Total time of all phases and changes.
    pub time: Nanos,
    /// Setting of each phase, by index.
    pub settings: Vec<usize>,
}

impl Switching {
    pub fn changes(&self) -> usize {
        self.settings.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }
}

/// Returns the best sequence. `costs[phase][setting]` is the time of a phase under a setting; each
/// change takes `change`. `None` if there is no phase, or a phase without settings.
pub fn best_switching(costs: &[Vec<Nanos>], change: Nanos) -> Option<Switching> {
    let settings = costs.iter().map(Vec::len).min()?;
    if settings == 0 {
        return None;
    }
    let add = |a: Nanos, b: Nanos| Nanos::new(a.get().saturating_add(b.get()));
    let mut best: Vec<Nanos> = costs[0][..settings].to_vec();
    let mut came_from: Vec<Vec<usize>> = Vec::with_capacity(costs.len());
    for phase in &costs[1..] {
        let cheapest = (0..settings).min_by_key(|setting| best[*setting])?;
        let other = add(best[cheapest], change);
        let from: Vec<usize> = (0..settings)
            .map(|setting| if best[setting] <= other { setting } else { cheapest })
            .collect();
        best = (0..settings).map(|setting| add(best[setting].min(other), phase[setting])).collect();
        came_from.push(from);
    }
    let mut setting = (0..settings).min_by_key(|setting| best[*setting])?;
    let time = best[setting];
    let mut path = vec![setting];
    for from in came_from.iter().rev() {
        setting = from[setting];
        path.push(setting);
    }
    path.reverse();
    Some(Switching { time, settings: path })
}
