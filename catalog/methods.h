#pragma once

#include "catalog/control_plane.h"
#include "proto/catalog.pb.h"
#include "proto/memory.pb.h"

/// The methods of proto/catalog.proto and proto/memory.proto.
namespace nam::catalog {

inline constexpr Method<proto::GetClusterRequest, proto::Cluster> kGetCluster{
    "/nam.proto.Catalog/GetCluster"};
inline constexpr Method<proto::JoinRequest, proto::JoinReply> kJoin{"/nam.proto.Catalog/Join"};
inline constexpr Method<proto::LeaveRequest, proto::LeaveReply> kLeave{"/nam.proto.Catalog/Leave"};
inline constexpr Method<proto::BuryRequest, proto::BuryReply> kBury{"/nam.proto.Catalog/Bury"};
inline constexpr Method<proto::ListTablesRequest, proto::ListTablesReply> kListTables{
    "/nam.proto.Catalog/ListTables"};
inline constexpr Method<proto::GetTableRequest, proto::GetTableReply> kGetTable{
    "/nam.proto.Catalog/GetTable"};
inline constexpr Method<proto::GetTablesRequest, proto::GetTablesReply> kGetTables{
    "/nam.proto.Catalog/GetTables"};
inline constexpr Method<proto::BeginLoadRequest, proto::BeginLoadReply> kBeginLoad{
    "/nam.proto.Catalog/BeginLoad"};
inline constexpr Method<proto::CommitLoadRequest, proto::CommitLoadReply> kCommitLoad{
    "/nam.proto.Catalog/CommitLoad"};
inline constexpr Method<proto::AbortLoadRequest, proto::AbortLoadReply> kAbortLoad{
    "/nam.proto.Catalog/AbortLoad"};
inline constexpr Method<proto::DropTableRequest, proto::DropTableReply> kDropTable{
    "/nam.proto.Catalog/DropTable"};
inline constexpr Method<proto::BeginExtendRequest, proto::BeginExtendReply> kBeginExtend{
    "/nam.proto.Catalog/BeginExtend"};
inline constexpr Method<proto::CommitExtendRequest, proto::CommitExtendReply> kCommitExtend{
    "/nam.proto.Catalog/CommitExtend"};
inline constexpr Method<proto::ChangePartRequest, proto::ChangePartReply> kChangePart{
    "/nam.proto.Catalog/ChangePart"};
inline constexpr Method<proto::ChangeCatalogRequest, proto::ChangeCatalogReply> kChangeCatalog{
    "/nam.proto.Catalog/ChangeCatalog"};
inline constexpr Method<proto::QuietRequest, proto::QuietReply> kQuiet{"/nam.proto.Catalog/Quiet"};

inline constexpr Method<proto::AllocateGroupsRequest, proto::AllocateGroupsReply> kAllocateGroups{
    "/nam.proto.Catalog/AllocateGroups"};
inline constexpr Method<proto::ReleaseGroupsRequest, proto::ReleaseGroupsReply> kReleaseGroups{
    "/nam.proto.Catalog/ReleaseGroups"};

inline constexpr Method<proto::CalibrateRequest, proto::CalibrateReply> kCalibrate{
    "/nam.proto.Catalog/Calibrate"};

inline constexpr Method<proto::RenewRequest, proto::RenewReply> kRenew{"/nam.proto.Leases/Renew"};
inline constexpr Method<proto::PulseRequest, proto::PulseReply> kPulse{"/nam.proto.Leases/Pulse"};

inline constexpr Method<proto::AllocateRequest, proto::AllocateReply> kAllocate{"/nam.proto.Memory/Allocate"};
inline constexpr Method<proto::OpenExtentsRequest, proto::OpenExtentsReply> kOpenExtents{
    "/nam.proto.Memory/OpenExtents"};
inline constexpr Method<proto::CloseExtentsRequest, proto::CloseExtentsReply> kCloseExtents{
    "/nam.proto.Memory/CloseExtents"};
inline constexpr Method<proto::SealRequest, proto::SealReply> kSeal{"/nam.proto.Memory/Seal"};
inline constexpr Method<proto::FenceRequest, proto::FenceReply> kFence{"/nam.proto.Memory/Fence"};
inline constexpr Method<proto::ReleaseRequest, proto::ReleaseReply> kRelease{"/nam.proto.Memory/Release"};
inline constexpr Method<proto::ReleaseScratchRequest, proto::ReleaseReply> kReleaseScratch{
    "/nam.proto.Memory/ReleaseScratch"};
inline constexpr Method<proto::ListRegionsRequest, proto::ListRegionsReply> kListRegions{
    "/nam.proto.Memory/ListRegions"};
inline constexpr Method<proto::StartMulticastRequest, proto::StartMulticastReply> kStartMulticast{
    "/nam.proto.Memory/StartMulticast"};
inline constexpr Method<proto::EndMulticastRequest, proto::EndMulticastReply> kEndMulticast{
    "/nam.proto.Memory/EndMulticast"};

}  // namespace nam::catalog
