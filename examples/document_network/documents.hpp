#pragma once
/// The documents: which there are, and what is in them. Whatever cannot be used is counted under its reason.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace document_network {

/// Files that are not used, counted by the reason.
using Skipped = std::map<std::string, std::size_t, std::less<>>;

struct Document {
  std::string path;
  std::string label;          ///< short, for pictures and tables; any bytes
  std::int64_t modified = 0;  ///< seconds since 1970
  bool known = false;         ///< by its name, to many: the text of a licence
};

struct Listing {
  std::vector<Document> documents;  ///< in order of their paths
  Skipped skipped;
};

/// The texts every Debian machine has: its licences, and an even sample of its copyright files.
Listing find_system_documents(std::size_t limit = 400);

/// Every file in `folder` and the folders in it, at most `limit`. A link to a file counts as the file, once;
/// a link to a folder is not followed, so no links can loop.
Listing find_documents(const std::string& folder, std::size_t limit = 20'000);

/// Why a file is not used.
struct Unusable {
  const char* reason;
};

struct Text {
  std::string utf8;
  bool repaired = false;  ///< it was not UTF-8 and has been read as Latin-1
};

/// Reads a document. Never blocks on anything but the disk.
std::variant<Text, Unusable> read_document(const std::string& path);

}  // namespace document_network
