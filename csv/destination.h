#pragma once

#include <string>

namespace nam::csv {

/// The way in which the file of a path is written.
///
///     a.csv                      kReplace a.csv           new, or regular: another file takes its name
///     link ─▶ b.csv              kReplace b.csv           also if there is no b.csv yet
///     a.csv (has other names)    kInPlace a.csv           regular, but not to be replaced
///     pipe                       kStream pipe             FIFOs, devices
///     /dev/stdout ─▶ /proc/self/fd/1   kDescriptor 1      of this process, from where it is
struct Destination {
  enum class Kind { kReplace, kInPlace, kStream, kDescriptor };
  Kind kind = Kind::kReplace;
  std::string folder, name;  // kReplace: where the file is, or will be
  bool fifo = false;         // kStream
  int descriptor = -1;       // kDescriptor
};

/// Finds the destination of a path. Returns 0, or the errno that says why the path cannot be written.
int FindDestination(const std::string& path, Destination& destination);

}  // namespace nam::csv
