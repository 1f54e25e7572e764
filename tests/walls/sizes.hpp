#pragma once
/// Checks the sizes of classes and functions.
#include <filesystem>
#include <string>
#include <vector>

#include "exceptions.hpp"

namespace walls {

/// Returns the limits of the sizes that `sizes_of` reads.
const std::vector<Limit>& size_limits();

/// Returns each class and function of the tree at `root` whose size is over its limit, or is not
/// that of its entry in `tests/walls/by_size.txt`.
std::vector<Violation> check_sizes(const std::filesystem::path& root);

}  // namespace walls
