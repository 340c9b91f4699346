#pragma once

#include "catalog/control_plane.h"
#include "proto/compute.pb.h"
#include "types/sql_error.h"

/// The methods of proto/compute.proto.
namespace nam::execution {

inline constexpr catalog::Method<proto::AttemptRequest, proto::AttemptReply> kRunAttempt{
    "/nam.proto.Compute/RunAttempt"};
inline constexpr catalog::Method<proto::OpenExchangesRequest, proto::OpenExchangesReply> kOpenExchanges{
    "/nam.proto.Compute/OpenExchanges"};
inline constexpr catalog::Method<proto::ReleaseResultRequest, proto::ReleaseResultReply> kReleaseResult{
    "/nam.proto.Compute/ReleaseResult"};
inline constexpr catalog::Method<proto::CompactTableRequest, proto::CompactTableReply> kCompactTable{
    "/nam.proto.Compute/CompactTable"};

/// SQLSTATE of an attempt that a server refused because too many wait there: another server may take it.
inline constexpr const char* kTooManyQueries = sqlstate::kTooManyConnections;
/// The payload of an attempt's error on a server that stalled for longer than its lease: it is no member any
/// more, and its work is lost as if it had died.
inline constexpr char kServerOver[] = "nam/server-over";
/// The payload of an attempt's error if the build sides of its joins do not fit its memory.
inline constexpr char kBuildSidesTooLarge[] = "nam/build-sides-too-large";

}  // namespace nam::execution
