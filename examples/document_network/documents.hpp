#pragma once
/// Finds and reads documents. Files that cannot be used are counted by reason.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace document_network {

/// Counts of unused files, by reason.
using Skipped = std::map<std::string, std::size_t, std::less<>>;

struct Document {
  std::string path;
  std::string label;          ///< short, for pictures and tables; any bytes
  std::int64_t modified = 0;  ///< seconds since 1970
  bool known = false;         ///< a well-known name: the text of a licence
};

/// The documents that are used unless another limit is given: of the machine, of a folder.
inline constexpr std::size_t system_limit = 400, folder_limit = 20'000;

struct Listing {
  std::vector<Document> documents;  ///< ordered by path
  Skipped skipped;
};

/// Finds texts that every Debian machine has, at most `limit`: licences and an even sample of
/// copyright files.
Listing find_system_documents(std::size_t limit = system_limit);

/// Finds every file in `folder` and its subfolders, at most `limit`. A link to a file counts as the
/// file, once. Links to folders are not followed, so links cannot loop.
Listing find_documents(const std::string& folder, std::size_t limit = folder_limit);

/// The reason why a file is not used.
struct Unusable {
  const char* reason;
};

struct Text {
  std::string utf8;
  bool repaired = false;  ///< it was not UTF-8 and was read as Latin-1
};

/// Reads a document. Blocks on nothing but the disk.
std::variant<Text, Unusable> read_document(const std::string& path);

}  // namespace document_network
