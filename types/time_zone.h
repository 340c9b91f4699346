#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

/// Time zones, and timestamp texts with zones.
namespace nam {

inline constexpr char kUtc[] = "UTC";

/// Converts between UTC and local time: a fixed offset, or the rules of a place, which are read from the
/// system's zone files.
class TimeZone {
 public:
  TimeZone() = default;

  /// Finds `UTC` or `Europe/Berlin` in any case; abbreviations with a fixed offset (`CET`, `PST`); POSIX
  /// offsets, which count to the west: `+02`, `UTC-05:30`, `<+02>-02`. Nothing otherwise. May read a file on
  /// the process's first use of a name.
  static std::optional<TimeZone> Find(std::string_view name);
  /// The zone of the thread's last call if it has this name; otherwise like Find. The pointer is valid until
  /// the thread's next call; nullptr if there is no such zone.
  static const TimeZone* OfThread(std::string_view name);
  static TimeZone Fixed(int32_t offset_seconds, std::string abbreviation = {});

  /// True if the offset from UTC never changes.
  bool fixed() const { return fixed_; }
  /// The offset of local time from UTC at a moment, given in microseconds since 1970 UTC.
  int32_t OffsetSeconds(int64_t utc_us) const;
  /// The local time at a moment.
  int64_t LocalOf(int64_t utc_us) const;
  /// The moment of a local time, as in PostgreSQL: a skipped time uses the previous offset; of two moments
  /// with the same time it is the later one.
  int64_t UtcOf(int64_t local_us) const;
  /// `CET`, `CEST`; empty for a plain offset.
  std::string Abbreviation(int64_t utc_us) const;

 private:
  bool fixed_ = true;
  int32_t offset_ = 0;        // if fixed
  std::string abbreviation_;  // if fixed
  absl::TimeZone zone_;       // if not fixed
};

/// `<+02>-02`: a name that Find accepts.
std::string NameOfOffset(int32_t offset_seconds);

/// `2024-01-31 10:00:00+02`, as PostgreSQL prints it.
std::string TimestampTzText(int64_t utc_us, const TimeZone& zone);

/// A timestamp text, and the zone at its end: `+02`, `-05:30`, `+0530`, `Z`, `PST`, ` Europe/Berlin`.
struct ZonedText {
  std::string_view text;  // without the zone
  std::optional<TimeZone> zone;
  enum class Fault : uint8_t { kNone, kUnknownZone, kOffsetOutOfRange } fault = Fault::kNone;
};
ZonedText SplitZone(std::string_view text);

/// Parses `HH:MM[:SS[.fraction]]`, `HHMM`, `HHMMSS`, or a timestamp's time as microseconds of a day,
/// including 24:00:00. Errors are those of ParseTimestamp.
absl::StatusOr<int64_t> ParseTime(std::string_view text);

}  // namespace nam
