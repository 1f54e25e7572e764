#pragma once
#include <fmt/core.h>

inline auto text() { return fmt::format("{}", 1); }

/// A pool.
class Pool {};
/// A view.
/// Threads: thread-safe.
template <class T>
class View {};
