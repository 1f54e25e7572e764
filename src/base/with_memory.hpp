#pragma once
/// The end of a public function that ran out of the host's memory.
#include <wye/base/result.hpp>

#include <new>
#include <string_view>
#include <type_traits>

#include "base/text.hpp"

namespace wye::inline v0::base {

/// Returns `work()`. Errors: out_of_memory if it throws bad_alloc. `task` completes "The host has
/// no memory left to".
template <class Work>
std::invoke_result_t<Work&> with_memory(std::string_view task, Work work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, text("The host has no memory left to {}.", task));
  }
}

}  // namespace wye::base
