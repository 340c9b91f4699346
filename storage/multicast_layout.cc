#include "storage/multicast_layout.h"

#include <cstring>

#include "storage/block.h"

namespace nam::storage {
namespace {

/// All fragments but the last have one length, so each one alone shows whether its numbers are consistent.
bool Consistent(const FragmentHeader& h) {
  if (h.bytes == 0 || h.block_bytes == 0 || h.block_bytes > kMaxBlockBytes) return false;
  if (h.fragment >= h.fragments || h.fragments > h.block_bytes) return false;
  if (h.offset >= h.block_bytes || h.bytes > h.block_bytes - h.offset) return false;
  if (h.fragments == 1) return h.bytes == h.block_bytes;
  const uint32_t last = h.fragments - 1;
  if (h.fragment < last) {
    return h.offset == uint64_t{h.fragment} * h.bytes && FragmentsOf(h.block_bytes, h.bytes) == h.fragments;
  }
  return h.offset + h.bytes == h.block_bytes && h.offset % last == 0 && h.offset / last >= h.bytes;
}

}  // namespace

std::optional<Fragment> DecodeFragment(std::span<const std::byte> datagram) {
  Fragment fragment;
  FragmentHeader& header = fragment.header;
  if (datagram.size() < sizeof(header) || datagram.size() > fabric::kMaxDatagramBytes) return std::nullopt;
  std::memcpy(&header, datagram.data(), sizeof(header));
  fragment.payload = datagram.subspan(sizeof(header));
  if (header.magic != FragmentHeader::kMagic || header.bytes != fragment.payload.size()) return std::nullopt;
  if (header.block >= kMulticastBlocksMax || header.datagram >= kMulticastDatagramsMax) return std::nullopt;
  if (!Consistent(header)) return std::nullopt;
  return fragment;
}

void EncodeFragmentHeader(const FragmentHeader& header, std::byte* datagram) {
  std::memcpy(datagram, &header, sizeof(header));
}

}  // namespace nam::storage
