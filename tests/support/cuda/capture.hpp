#pragma once
// Captures of streams.
#include "support/cuda/world.hpp"

namespace standin {

/// Returns the error of a call that a capture prohibits to this thread, and invalidates the
/// capture; otherwise 0.
int prohibited(std::string_view name);

/// Ends all captures, and gives the calling thread the mode of a new thread. A call that a fault of a
/// test has failed may have left others.
void end_captures();
/// Invalidates the capture of `stream`, which is given work that is not part of it. Returns false
/// if it has no capture.
bool invalidates(CUstream stream);

}  // namespace standin
