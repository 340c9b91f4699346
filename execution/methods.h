#pragma once

#include "catalog/control_plane.h"
#include "proto/compute.pb.h"

/// The methods of proto/compute.proto.
namespace nam::execution {

inline constexpr catalog::Method<proto::FragmentRequest, proto::FragmentReply> kRunFragment{
    "/nam.proto.Compute/RunFragment"};
inline constexpr catalog::Method<proto::ReleaseResultRequest, proto::ReleaseResultReply> kReleaseResult{
    "/nam.proto.Compute/ReleaseResult"};

}  // namespace nam::execution
