#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "proto/catalog_header.pb.h"

/// The part that every message to and from the catalog may carry in addition to its own fields. It travels as
/// the field with the highest number, which no catalog message declares, so none of them needs a field for
/// it.
namespace nam::catalog {

inline constexpr int kHeaderField = 536'870'911;

inline proto::CatalogHeader HeaderOf(const google::protobuf::Message& message) {
  proto::CatalogHeader header;
  const google::protobuf::UnknownFieldSet& fields = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    if (field.number() == kHeaderField &&
        field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      (void)header.MergeFromString(field.length_delimited());
    }
  }
  return header;
}

inline void SetHeader(google::protobuf::Message& message, const proto::CatalogHeader& header) {
  google::protobuf::UnknownFieldSet* const fields = message.GetReflection()->MutableUnknownFields(&message);
  fields->DeleteByNumber(kHeaderField);
  fields->AddLengthDelimited(kHeaderField, header.SerializeAsString());
}

inline proto::StoreMark MarkOf(const google::protobuf::Message& message) {
  return HeaderOf(message).mark();
}

inline void SetMark(google::protobuf::Message& message, const proto::StoreMark& mark) {
  proto::CatalogHeader header = HeaderOf(message);
  *header.mutable_mark() = mark;
  SetHeader(message, header);
}

}  // namespace nam::catalog
