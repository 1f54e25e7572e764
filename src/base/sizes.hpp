#pragma once
/// Sizes in error sentences.
#include <wye/base/bytes.hpp>

#include <string>

#include "base/text.hpp"

namespace wye::inline v0::base {

/// Formats sizes in a sentence that compares two of them: rounded, or exact if both would round to
/// the same text.
class Sizes {
 public:
  Sizes(Bytes a, Bytes b) : exact_(a != b && to_string(a) == to_string(b)) {}
  std::string operator()(Bytes size) const { return exact_ ? text("{} bytes", size.count) : to_string(size); }

 private:
  bool exact_;
};

}  // namespace wye::base
