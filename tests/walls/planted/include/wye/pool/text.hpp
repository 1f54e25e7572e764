#pragma once
#include <fmt/core.h>

inline auto text() { return fmt::format("{}", 1); }
