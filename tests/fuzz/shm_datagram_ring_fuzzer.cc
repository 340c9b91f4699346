// A sender of datagrams that writes anything into its ring, between any two steps of a reader.
//
//     input: slots:1, then records, kind:1 …
//         0 scribble  offset:4 length:1 bytes           anywhere in the ring
//         1 written   count:8                           how many datagrams it says there are
//         2 slot      lead:1 bytes:4                    marks a datagram, `lead` ahead, as complete
//         3 write     length:1 payload                  a valid datagram
//         4 read      capacity:2                        all waiting ones, into a buffer of that size
//         5 skip                                        to the end, as a reader that joins

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "fabric/shm/datagram_ring.h"
#include "tests/fuzz/fuzz.h"

namespace nam::fuzz {
namespace {

using namespace fabric::shm;
using Outcome = DatagramRingReader::Outcome;

constexpr uint32_t kSlotsMax = 8;
constexpr uint32_t kMadeUpReadsMax = 4 * kSlotsMax;

class Session {
 public:
  explicit Session(uint32_t slots) : slots_(slots), reader_(MapFresh(slots)) {}

  void Scribble(uint32_t offset, std::span<const std::byte> bytes) {
    const size_t at = offset % DatagramRingBytes(slots_);
    if (bytes.empty()) return;
    std::memcpy(Shared().data() + at, bytes.data(), std::min(bytes.size(), DatagramRingBytes(slots_) - at));
  }
  void SetWritten(uint64_t count) { ring().written.store(count); }
  void MakeSlot(uint8_t lead, uint32_t bytes) {
    const uint64_t number = ring().written.load() + lead;
    slot(number).sequence.store(2 * number + 2);
    slot(number).bytes.store(bytes);
  }
  void Write(std::span<const std::byte> payload) {
    const uint64_t number = ring().written.load();
    if (!payload.empty()) std::memcpy(slot(number).payload.data(), payload.data(), payload.size());
    MakeSlot(0, static_cast<uint32_t>(payload.size()));
    SetWritten(number + 1);
  }
  void ReadAll(uint32_t capacity_bytes) {
    reader_.Refresh();
    NAM_CHECK(reader_.waiting() <= slots_, "more waits than there are slots");
    const auto into = std::make_unique<std::byte[]>(capacity_bytes);  // exactly: a byte more is an error
    for (uint32_t reads = 0; reader_.waiting() > 0; ++reads) {
      NAM_CHECK(reads < kMadeUpReadsMax, "reads without end");
      uint32_t bytes = 0;
      if (reader_.Read(into.get(), capacity_bytes, &bytes) != Outcome::kRead) continue;
      NAM_CHECK(bytes <= capacity_bytes && bytes <= fabric::kMaxDatagramBytes);
    }
  }
  void Skip() {
    reader_.SkipToEnd();
    NAM_CHECK(reader_.waiting() == 0);
  }

 private:
  // Kept from input to input: making it takes far longer than an input does.
  static SharedMemory& TheMemory() {
    static SharedMemory memory =
        *CreateShared("ring", DatagramRingBytes(kSlotsMax), PeerAccess::kReadOnly, false);
    return memory;
  }
  static Mapping& Shared() { return TheMemory().mapping; }
  static DatagramRingReader MapFresh(uint32_t slots) {
    std::memset(Shared().data(), 0, Shared().bytes());
    auto reader = DatagramRingReader::Map(TheMemory().descriptor.get(), slots);
    NAM_CHECK(reader.ok(), "a ring of this size is refused");
    return *std::move(reader);
  }
  static DatagramRing& ring() { return *reinterpret_cast<DatagramRing*>(Shared().data()); }
  DatagramSlot& slot(uint64_t number) const { return ring().slots[number & (slots_ - 1)]; }

  const uint32_t slots_;
  DatagramRingReader reader_;
};

template <typename... Parts>
std::string Record(char kind, const Parts&... parts) {
  std::string record(1, kind);
  (Append(record, parts), ...);
  return record;
}

std::string Written(const std::string& payload) {
  return Record('\3', static_cast<uint8_t>(payload.size())) + payload;
}

void RunRecord(Session& session, Input& input) {
  switch (input.Byte() % 6) {
    case 0: {
      const auto offset = input.Consume<uint32_t>();
      session.Scribble(offset, input.Bytes(input.Byte()));
      break;
    }
    case 1:
      session.SetWritten(input.Consume<uint64_t>());
      break;
    case 2: {
      const uint8_t lead = input.Byte();
      session.MakeSlot(lead, input.Consume<uint32_t>());
      break;
    }
    case 3:
      session.Write(input.Bytes(input.Byte()));
      break;
    case 4:
      session.ReadAll(input.Consume<uint16_t>());
      break;
    default:
      session.Skip();
  }
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string read = Record('\4', uint16_t{4096}), read_little = Record('\4', uint16_t{3});
  const std::string skip = Record('\5'), hello = Written("hello");
  const std::string slots(1, '\2');  // 4
  const auto written = [](uint64_t count) { return Record('\1', count); };
  std::string overrun = slots;
  for (int i = 0; i < 6; ++i) overrun += hello;
  return {slots + hello + hello + read,
          slots + hello + read_little + hello + read,
          overrun + read,
          slots + written(~uint64_t{0}) + read + hello + read + hello + read,
          slots + hello + read + written(0) + read,
          slots + skip + hello + read,
          slots + Record('\2', uint8_t{0}, uint32_t{4097}) + written(1) + read,
          slots + Record('\2', uint8_t{0}, ~uint32_t{0}) + written(1) + Record('\4', uint16_t{65535}),
          slots + hello + Record('\0', uint32_t{64}, uint8_t{8}, uint64_t{1}) + read};
}

}  // namespace nam::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  nam::fuzz::Input input(data, size);
  nam::fuzz::Session session(1u << input.Byte() % 4);
  for (int records = 0; !input.empty() && records < 256; ++records) nam::fuzz::RunRecord(session, input);
  return 0;
}
