#pragma once
// Captures of streams.
#include "support/cuda/world.hpp"

namespace standin {

/// Returns the error of a call that a capture prohibits to this thread, and invalidates the capture; otherwise 0.
int prohibited(std::string_view name);

}  // namespace standin
