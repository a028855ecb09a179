//! Plots for a terminal: throughput over read-ahead on a logarithmic axis, one small plot for each
//! workload.

use textplots::{Chart, Plot, Shape};
use units::{Bytes, Kib};

use crate::number::short;

pub(crate) struct Point {
    pub setting: Kib,
    pub value: f64,
}

/// Size of the canvas in character cells; a cell has 2 × 4 Braille points.
const CANVAS_COLUMNS: usize = 60;
const CANVAS_LINES: usize = 7;

/// Draws the points; `None` if there are fewer than two.
pub(crate) fn plot(points: &[Point]) -> Option<String> {
    // Zero has no logarithm: draw it at 2 KiB, half a page.
    let x = |setting: Kib| (setting.get().max(2) as f32).log2();
    let drawn: Vec<(f32, f32)> = points
        .iter()
        .filter(|point| point.value.is_finite())
        .map(|point| (x(point.setting), point.value as f32))
        .collect();
    let label = |point: &Point| {
        let setting = point.setting.to_bytes();
        let text = if setting == Bytes::ZERO { "0".to_owned() } else { setting.to_string() };
        let text = text.replace(" KiB", "K").replace(" MiB", "M").replace(" GiB", "G");
        let last = points.last().is_some_and(|last| last.setting == point.setting);
        let named = last || point.setting.get().is_power_of_two();
        named.then_some((x(point.setting), text))
    };
    let labels: Vec<_> = points.iter().filter_map(label).collect();
    draw(&[Shape::Lines(&drawn)], &drawn, &labels)
}

/// Draws a curve over a logarithmic or linear axis.
pub(crate) fn plot_curve(points: &[(f64, f64)], logarithmic: bool) -> Option<String> {
    let drawn = scaled(points, logarithmic);
    let label = |&(x, y): &(f64, f64)| {
        let place = scaled(&[(x, y)], logarithmic).first()?.0;
        let whole = x.fract() == 0.0 && x < 1e6;
        Some((place, if whole { format!("{x}") } else { short(x)? }))
    };
    let labels: Vec<_> = points.iter().filter_map(label).collect();
    draw(&[Shape::Lines(&drawn)], &drawn, &labels)
}

/// Draws a line and points on the same logarithmic axis, for simulated and published figures. Both
/// are pairs of setting and figure, ascending.
pub(crate) fn plot_beside(line: &[(f64, f64)], points: &[(f64, f64)]) -> Option<String> {
    let (line, points) = (scaled(line, true), scaled(points, true));
    let labels: Vec<_> =
        line.iter().map(|&(x, _)| (x, short(f64::from(x.exp2())).unwrap_or_default())).collect();
    let all: Vec<_> = line.iter().chain(&points).copied().collect();
    draw(&[Shape::Lines(&line), Shape::Points(&dashes(&points, ends(&line)?))], &all, &labels)
}

/// Returns where the points lie on the canvas, without those that have no place on it.
fn scaled(points: &[(f64, f64)], logarithmic: bool) -> Vec<(f32, f32)> {
    let place = |x: f64| if logarithmic { x.log2() } else { x };
    let placed = points.iter().map(|&(x, y)| (place(x) as f32, y as f32));
    placed.filter(|(x, y)| x.is_finite() && y.is_finite()).collect()
}

/// Makes each point a short dash: a single dot would not be visible on a line.
fn dashes(points: &[(f32, f32)], (left, right): (f32, f32)) -> Vec<(f32, f32)> {
    let step = (right - left) / (CANVAS_COLUMNS as f32 * 2.0);
    points.iter().flat_map(|&(x, y)| [(x - step, y), (x, y), (x + step, y)]).collect()
}

/// Draws a bar with a resolution of 1/8 character.
pub(crate) fn bar(share: f64, widest: usize) -> String {
    const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
    let eighths = (share.clamp(0.0, 1.0) * widest as f64 * 8.0).round().max(1.0) as usize;
    let mut text = "█".repeat(eighths / 8);
    if let Some(last) = (eighths % 8).checked_sub(1) {
        text.push(EIGHTHS[last]);
    }
    text
}

/// Draws a line over time or another quantity.
pub(crate) fn plot_over(points: &[(f64, f64)], unit: &str) -> Option<String> {
    let line = scaled(points, false);
    let (least, most) = ends(&line)?;
    let label = |x: f32| {
        let text = format!("{} {unit}", short(f64::from(x)).unwrap_or_default());
        (x, text.trim_end().to_owned())
    };
    let labels = [least, (least + most) / 2.0, most].map(label);
    draw(&[Shape::Lines(&line)], &line, &labels)
}

/// Draws points on linear axes, and a line through those on the front.
pub(crate) fn scatter(front: &[(f64, f64)], points: &[(f64, f64)]) -> Option<String> {
    let (mut line, points) = (scaled(front, false), scaled(points, false));
    line.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, most) = ends(&points)?;
    let label = |x: f32| (x, format!("{}x", short(f64::from(x)).unwrap_or_default()));
    let labels = [least, (least + most) / 2.0, most].map(label);
    draw(&[Shape::Lines(&line), Shape::Points(&dashes(&points, (least, most)))], &points, &labels)
}

/// Returns the smallest and the largest abscissa.
fn ends(points: &[(f32, f32)]) -> Option<(f32, f32)> {
    let least = points.iter().map(|point| point.0).reduce(f32::min)?;
    let most = points.iter().map(|point| point.0).reduce(f32::max)?;
    Some((least, most))
}

/// Draws shapes within the bounds of `all`, with labels on the horizontal axis.
fn draw(shapes: &[Shape<'_>], all: &[(f32, f32)], labels: &[(f32, String)]) -> Option<String> {
    let (left, right) = ends(all)?;
    let top = all.iter().map(|(_, y)| *y).fold(0.0, f32::max) * 1.05;
    if all.len() < 2 || right <= left || top <= 0.0 {
        return None;
    }
    let (width, height) = (CANVAS_COLUMNS as u32 * 2, CANVAS_LINES as u32 * 4);
    let mut chart = Chart::new_with_y_range(width, height, left, right, 0.0, top);
    let mut chart = &mut chart;
    for shape in shapes {
        chart = chart.lineplot(shape);
    }
    chart.figures();
    let mut text = with_scale(&chart.frame(), f64::from(top));
    let place = |x: f32| (x - left) / (right - left);
    let labels: Vec<_> = labels.iter().map(|(x, label)| (place(*x), label.as_str())).collect();
    text.push_str(&axis(&labels));
    Some(text)
}

/// Adds the scale of the vertical axis to the left of the canvas.
fn with_scale(frame: &str, top: f64) -> String {
    let mut text = String::new();
    let lines: Vec<&str> = frame.lines().take(CANVAS_LINES).collect();
    for index in 0..CANVAS_LINES {
        let label = match index {
            0 => short(top).unwrap_or_default(),
            i if i == CANVAS_LINES / 2 => short(top / 2.0).unwrap_or_default(),
            i if i == CANVAS_LINES - 1 => "0".to_owned(),
            _ => String::new(),
        };
        let line = lines.get(index).copied().unwrap_or("").trim_end();
        text.push_str(&format!("{label:>8} ┤{line}\n"));
    }
    text
}

/// Returns the horizontal axis with as many labels as fit, always the first and the last. Positions
/// are between 0 and 1.
fn axis(labels: &[(f32, &str)]) -> String {
    let mut line: Vec<char> = vec![' '; 10 + CANVAS_COLUMNS + 8];
    let mut taken = 0;
    let mut put = |(place, label): (f32, &str), line: &mut Vec<char>, until: usize| {
        let at = 10 + (place * (CANVAS_COLUMNS - 1) as f32).round() as usize;
        let start = at.saturating_sub(label.len() / 2).max(9);
        if start < taken || start + label.len() > until {
            return;
        }
        for (offset, letter) in label.chars().enumerate() {
            line[start + offset] = letter;
        }
        taken = start + label.len() + 2;
    };
    let Some((last, others)) = labels.split_last() else { return String::new() };
    let end = line.len();
    for label in others {
        put(*label, &mut line, end - 14);
    }
    put(*last, &mut line, end);
    let mut text: String = line.into_iter().collect();
    text.truncate(text.trim_end().len());
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(figures: &[(u64, f64)]) -> Vec<Point> {
        let point = |&(kib, mib_s)| Point { setting: Kib::new(kib), value: mib_s };
        figures.iter().map(point).collect()
    }

    #[test]
    fn the_highest_point_is_at_the_top_and_the_ends_are_named() {
        let text = plot(&points(&[(4, 10.0), (64, 50.0), (1024, 100.0), (65536, 100.0)])).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), CANVAS_LINES + 1, "{text}");
        assert!(
            lines[0].contains("105") && lines[CANVAS_LINES - 1].starts_with("       0"),
            "{text}"
        );
        let drawn = |line: &str| line.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c));
        assert!(drawn(lines[0]) && drawn(lines[CANVAS_LINES - 1]), "{text}");
        for label in ["4K", "64K", "1M", "64M"] {
            assert!(lines[CANVAS_LINES].contains(label), "{label} in {text}");
        }
    }

    #[test]
    fn points_stand_beside_a_line() {
        let (line, points) = ([(8.0, 1.0), (64.0, 50.0)], [(8.0, 100.0), (64.0, 100.0)]);
        let text = plot_beside(&line, &points).unwrap();
        assert!(text.lines().next().unwrap().contains("105"), "{text}");
        assert!(text.lines().last().unwrap().contains("8.00"), "{text}");
        assert!(plot_beside(&[], &points).is_none());
    }

    #[test]
    fn one_point_is_no_line() {
        assert!(plot(&points(&[(4, 10.0)])).is_none());
        assert!(plot(&points(&[(4, 10.0), (8, f64::NAN)])).is_none());
        assert!(plot(&[]).is_none());
    }
}
