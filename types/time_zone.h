#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

/// Time zones, and texts of timestamps with one.
namespace nam {

inline constexpr char kUtc[] = "UTC";

/// What turns moments of UTC into a place's clocks: a fixed offset, or the rules of a place, which are read
/// from the system's zone files.
class TimeZone {
 public:
  TimeZone() = default;

  /// `UTC`, `Europe/Berlin` in any case; abbreviations with a fixed offset (`CET`, `PST`); POSIX offsets,
  /// which count to the west: `+02`, `UTC-05:30`, `<+02>-02`. Nothing if it is none of these. May read a
  /// file, the first time that a process asks for a name.
  static std::optional<TimeZone> Find(std::string_view name);
  /// The zone of the thread's last call, if it has this name; otherwise as Find. The pointer holds until the
  /// thread's next call; nullptr: there is no such zone.
  static const TimeZone* OfThread(std::string_view name);
  static TimeZone Fixed(int32_t offset_seconds, std::string abbreviation = {});

  /// Whether clocks are always as far from UTC.
  bool fixed() const { return fixed_; }
  /// How far clocks are ahead of UTC at a moment: microseconds since 1970 UTC.
  int32_t OffsetSeconds(int64_t utc_us) const;
  /// What clocks show at a moment.
  int64_t LocalOf(int64_t utc_us) const;
  /// When clocks show that. A time that clocks skip is taken by the offset before; of two moments with one
  /// time it is the later: as in PostgreSQL.
  int64_t UtcOf(int64_t local_us) const;
  /// `CET`, `CEST`; empty for an offset alone.
  std::string Abbreviation(int64_t utc_us) const;

 private:
  bool fixed_ = true;
  int32_t offset_ = 0;        // of a fixed one
  std::string abbreviation_;  // of a fixed one
  absl::TimeZone zone_;       // of a place
};

/// `<+02>-02`: a name that Find knows.
std::string NameOfOffset(int32_t offset_seconds);

/// `2024-01-31 10:00:00+02`, as PostgreSQL prints it.
std::string TimestampTzText(int64_t utc_us, const TimeZone& zone);

/// A text of a timestamp, and the zone at its end: `+02`, `-05:30`, `+0530`, `Z`, `PST`, ` Europe/Berlin`.
struct ZonedText {
  std::string_view text;  // without the zone
  std::optional<TimeZone> zone;
  enum class Fault : uint8_t { kNone, kUnknownZone, kOffsetOutOfRange } fault = Fault::kNone;
};
ZonedText SplitZone(std::string_view text);

/// `HH:MM[:SS[.fraction]]`, `HHMM`, `HHMMSS`, or the time of a timestamp: microseconds of a day, 24:00:00
/// included. Errors are those of ParseTimestamp.
absl::StatusOr<int64_t> ParseTime(std::string_view text);

}  // namespace nam
