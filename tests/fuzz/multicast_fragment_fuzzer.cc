// Datagrams of a multicast stream, as a receiver sees them: the decoder, and the window that says whether a
// fragment is one of the sender's, what is lost and how much more may be sent.
//
//     input: fragment_bytes:1 blocks:1 bytes_of_a_block:2 …, then records, kind:1 …
//         0 datagram  length:1 bytes                      as they are
//         1 changed   block:1 fragment:1 field:1 value:4  what the sender would send, but for one field
//         2 sent      block:1 fragment:1                  what the sender would send
//         3 passed    datagrams:8                         what the sender's board says
//         4 taken                                         a block, by the consumer

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/check.h"
#include "storage/block.h"
#include "storage/multicast_layout.h"
#include "storage/multicast_window.h"
#include "tests/fuzz/fuzz.h"

namespace nam::fuzz {
namespace {

using namespace storage;

constexpr uint32_t kDatagramsMax = 8;
constexpr uint32_t kBlocksMax = 4;
constexpr uint32_t kReorder = 2;

std::vector<std::byte> Datagram(const FragmentHeader& header) {
  std::vector<std::byte> bytes(sizeof(header) + header.bytes % fabric::kMaxDatagramBytes);
  EncodeFragmentHeader(header, bytes.data());
  return bytes;
}

class Receiver {
 public:
  Receiver(const std::vector<uint32_t>& block_bytes, uint32_t fragment_bytes)
      : block_bytes_(block_bytes),
        fragment_bytes_(fragment_bytes),
        window_(block_bytes, fragment_bytes, kDatagramsMax, kBlocksMax) {
    uint32_t datagram = 0;
    for (const uint32_t bytes : block_bytes) {
      first_.push_back(datagram);
      datagram += FragmentsOf(bytes, fragment_bytes);
      arrived_.emplace_back(bytes);
    }
  }

  void Take(std::span<const std::byte> datagram) {
    // It is a copy, so that a byte read beyond it is an error.
    const std::vector<std::byte> bytes(datagram.begin(), datagram.end());
    const auto fragment = DecodeFragment(bytes);
    if (!fragment) return;
    const FragmentHeader& h = fragment->header;
    NAM_CHECK(h.bytes > 0 && fragment->payload.size() == h.bytes && h.block_bytes <= kMaxBlockBytes);
    NAM_CHECK(uint64_t{h.offset} + h.bytes <= h.block_bytes && h.fragment < h.fragments);
    if (!window_.Matches(h)) return;
    NAM_CHECK(h.datagram < window_.datagrams());
    // A receiver that copies relies on this: the fragment fills its place in the block, and no more.
    std::vector<bool>& block = arrived_[h.block];
    NAM_CHECK(h.offset + h.bytes <= block.size());
    NAM_CHECK(h.bytes == std::min<uint64_t>(fragment_bytes_, block.size() - h.offset));
    std::fill_n(block.begin() + h.offset, h.bytes, true);
    if (std::find(block.begin(), block.end(), false) == block.end()) window_.SetHas(h.block);
    Passed(uint64_t{h.datagram} + 1);
  }
  bool empty() const { return block_bytes_.empty(); }
  FragmentHeader Sent(uint8_t block, uint8_t fragment) const {
    const uint32_t b = block % window_.blocks();
    const uint32_t f = fragment % window_.fragments(b);
    const uint32_t offset = f * fragment_bytes_;
    return {.magic = FragmentHeader::kMagic,
            .datagram = first_[b] + f,
            .stream = 0,
            .block = b,
            .block_bytes = block_bytes_[b],
            .offset = offset,
            .bytes = std::min(fragment_bytes_, block_bytes_[b] - offset),
            .fragment = f,
            .fragments = window_.fragments(b)};
  }
  void TakeSent(const FragmentHeader& header) {
    const auto bytes = Datagram(header);
    NAM_CHECK(DecodeFragment(bytes).has_value() && window_.Matches(header), "refused what a sender sends");
    Take(bytes);
  }
  void Passed(uint64_t datagram) {
    window_.Passed(datagram);
    NAM_CHECK(window_.next() <= window_.datagrams());
    while (const auto lost = window_.NextLost(kReorder)) {
      NAM_CHECK(*lost < window_.blocks() && !window_.Has(*lost), "gave up a block that is here");
      window_.SetHas(*lost);
    }
    CheckCredit();
  }
  void Taken() {
    if (taken_ == window_.blocks()) return;
    ++taken_;
    window_.Taken();
    CheckCredit();
  }

 private:
  void CheckCredit() {
    const uint64_t credit = window_.Credit();
    NAM_CHECK(credit >= credit_, "credit fell");
    NAM_CHECK(credit <= std::max<uint64_t>(1, window_.datagrams()), "credit for more than there is");
    credit_ = credit;
  }

  const std::vector<uint32_t> block_bytes_;
  const uint32_t fragment_bytes_;
  MulticastWindow window_;
  std::vector<uint32_t> first_;
  std::vector<std::vector<bool>> arrived_;
  uint32_t taken_ = 0;
  uint64_t credit_ = 0;
};

Receiver TakeReceiver(Input& input) {
  const uint32_t fragment_bytes = 1 + input.Byte();
  std::vector<uint32_t> block_bytes(input.Byte() % 16);
  for (uint32_t& bytes : block_bytes) bytes = 1 + input.Consume<uint16_t>() % 2048;
  return {block_bytes, fragment_bytes};
}

void RunRecord(Receiver& receiver, Input& input) {
  const uint8_t record = input.Byte() % 5;
  switch (record) {
    case 0:
      receiver.Take(input.Bytes(input.Byte()));
      break;
    case 1:
    case 2: {
      if (receiver.empty()) break;
      const uint8_t block = input.Byte();
      FragmentHeader header = receiver.Sent(block, input.Byte());
      if (record == 2) {
        receiver.TakeSent(header);
        break;
      }
      const size_t at = input.Byte() % (sizeof(header) / sizeof(uint32_t)) * sizeof(uint32_t);
      const auto value = input.Consume<uint32_t>();
      std::memcpy(reinterpret_cast<std::byte*>(&header) + at, &value, sizeof(value));
      receiver.Take(Datagram(header));
      break;
    }
    case 3:
      receiver.Passed(input.Consume<uint64_t>());
      break;
    default:
      receiver.Taken();
  }
}

/// Blocks of 250, 100 and 1 bytes in fragments of 100: datagrams 0 to 2, 3 and 4.
std::string Blocks() {
  std::string start{'\x63', '\3'};
  for (const uint16_t bytes : {249, 99, 0}) Append(start, bytes);
  return start;
}

std::string Changed(char block, char fragment, size_t offset, uint32_t value) {
  std::string record{'\1', block, fragment, static_cast<char>(offset / sizeof(value))};
  Append(record, value);
  return record;
}

}  // namespace

std::vector<std::string> Seeds() {
  const auto sent = [](char block, char fragment) { return std::string{'\2', block, fragment}; };
  const std::string taken(1, '\4');
  std::string passed(1, '\3'), far(1, '\3');
  Append(passed, uint64_t{4});
  Append(far, ~uint64_t{0});
  const FragmentHeader raw{.magic = FragmentHeader::kMagic, .block_bytes = 4, .bytes = 4, .fragments = 1};
  std::string whole{'\0', '\x2c'};
  Append(whole, raw);
  whole += "four";
  return {Blocks() + sent(0, 0) + sent(0, 1) + sent(0, 2) + taken + sent(1, 0) + sent(2, 0) + taken,
          Blocks() + sent(0, 2) + sent(2, 0) + passed + taken + far,
          Blocks() + Changed(0, 0, offsetof(FragmentHeader, bytes), 90) + sent(0, 1) + sent(0, 2),
          Blocks() + Changed(0, 2, offsetof(FragmentHeader, offset), 201) + sent(0, 2) + sent(0, 2),
          Blocks() + whole,
          Blocks() + far + sent(0, 0)};
}

}  // namespace nam::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  nam::fuzz::Input input(data, size);
  nam::fuzz::Receiver receiver = nam::fuzz::TakeReceiver(input);
  for (int records = 0; !input.empty() && records < 256; ++records) nam::fuzz::RunRecord(receiver, input);
  return 0;
}
