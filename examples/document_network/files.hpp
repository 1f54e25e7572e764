#pragma once
/// Files that are written whole or not at all.
#include <optional>
#include <string>
#include <vector>

namespace document_network {

struct File {
  std::string path;
  std::string bytes;
};

/// Writes all files beside their places first, and puts them there once all are complete. Missing folders are
/// made. Returns what went wrong, one sentence; then what was there before is still there.
std::optional<std::string> write_all(const std::vector<File>& files);

}  // namespace document_network
