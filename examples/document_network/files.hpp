#pragma once
/// Writes files completely or not at all.
#include <optional>
#include <string>
#include <vector>

namespace document_network {

struct File {
  std::string path;
  std::string bytes;
};

/// Writes all files under temporary names, and renames them when all are complete. Creates missing
/// folders. Returns the error as one sentence; the earlier files then remain.
std::optional<std::string> write_all(const std::vector<File>& files);

}  // namespace document_network
