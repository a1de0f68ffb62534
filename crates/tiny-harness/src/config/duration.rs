//! Durations as ISO 8601 writes them, without years and months: those have no fixed length.

use std::time::Duration;

/// Why a text is no duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DurationError {
    /// Not of the shape.
    Shape,
    /// Has years or months.
    NoFixedLength,
    /// Longer than a duration can be.
    TooLong,
}

/// Reads `PT30S`, `P30D`, `PT0.25S`, `P1DT2H3M4.5S` or `P2W`.
pub(super) fn parse(text: &str) -> Result<Duration, DurationError> {
    use DurationError::{NoFixedLength, Shape, TooLong};
    let upper = text.to_ascii_uppercase();
    let rest = upper.strip_prefix('P').ok_or(Shape)?;
    let (date, time) = match rest.split_once('T') {
        Some((date, time)) if !time.is_empty() => (date, time),
        Some(_) => return Err(Shape),
        None => (rest, ""),
    };
    if date.is_empty() && time.is_empty() {
        return Err(Shape);
    }
    if date.contains(['Y', 'M']) {
        return Err(NoFixedLength);
    }
    let seconds = part(date, &[('W', 604_800), ('D', 86_400)]).ok_or(Shape)?
        + part(time, &[('H', 3_600), ('M', 60), ('S', 1)]).ok_or(Shape)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| TooLong)
}

/// Seconds of one half. Units come in order, each at most once; only the last number may have a fraction.
fn part(text: &str, units: &[(char, u32)]) -> Option<f64> {
    let (mut rest, mut seconds) = (text, 0.0);
    for (unit, factor) in units {
        let Some(at) = rest.find(*unit) else { continue };
        let (number, after) = (&rest[..at], &rest[at + 1..]);
        let fraction_allowed = after.is_empty();
        let valid = !number.is_empty()
            && number.len() <= 12
            && number.starts_with(|c: char| c.is_ascii_digit())
            && number.ends_with(|c: char| c.is_ascii_digit())
            && number.bytes().all(|b| b.is_ascii_digit() || (b == b'.' && fraction_allowed));
        seconds += valid.then(|| number.parse::<f64>().ok()).flatten()? * f64::from(*factor);
        rest = after;
    }
    rest.is_empty().then_some(seconds)
}

/// Writes a duration so that [`parse`] reads it back: whole days alone, otherwise hours, minutes and seconds.
pub(super) fn format(duration: Duration) -> String {
    let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
    if nanos == 0 && seconds > 0 && seconds % 86_400 == 0 {
        return format!("P{}D", seconds / 86_400);
    }
    let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let mut text = "PT".to_owned();
    if hours > 0 {
        text.push_str(&format!("{hours}H"));
    }
    if minutes > 0 {
        text.push_str(&format!("{minutes}M"));
    }
    if nanos > 0 {
        let fraction = format!("{nanos:09}");
        text.push_str(&format!("{rest}.{}S", fraction.trim_end_matches('0')));
    } else if rest > 0 || seconds == 0 {
        text.push_str(&format!("{rest}S"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        for (text, millis, canonical) in [
            ("PT30S", 30_000, "PT30S"),
            ("pt1m", 60_000, "PT1M"),
            ("PT0.25S", 250, "PT0.25S"),
            ("P30D", 2_592_000_000, "P30D"),
            ("P2W", 1_209_600_000, "P14D"),
            ("P1DT2H3M4.5S", 93_784_500, "PT26H3M4.5S"),
            ("PT1.5H", 5_400_000, "PT1H30M"),
            ("PT0S", 0, "PT0S"),
            ("PT90S", 90_000, "PT1M30S"),
        ] {
            let duration = parse(text).unwrap();
            assert_eq!(duration, Duration::from_millis(millis), "{text}");
            assert_eq!(format(duration), canonical, "{text}");
            assert_eq!(parse(canonical), Ok(duration));
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "", "P", "PT", "30", "30S", "PT30", "PT-1S", "P1DT", "PT1S1M", "PT.5S", "PT1.5M2S", "PT1e3S",
            "P1.2.3D", "PTS",
        ] {
            assert_eq!(parse(text), Err(DurationError::Shape), "{text}");
        }
        assert_eq!(parse("P1Y"), Err(DurationError::NoFixedLength));
        assert_eq!(parse("P1M"), Err(DurationError::NoFixedLength));
        assert_eq!(parse("PT9999999999999S"), Err(DurationError::Shape));
    }
}
