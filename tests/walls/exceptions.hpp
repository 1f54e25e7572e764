#pragma once
/// Tables of exceptions from a limit. They may only become shorter.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "walls.hpp"

namespace walls {

/// A file, or a class or function in it, for which something is counted.
struct Place {
  std::string kind;  // "sleep_for"
  std::string path;
  std::string name;  // empty: the whole file

  auto operator<=>(const Place&) const = default;
};
using Counts = std::map<Place, long>;

/// A limit with exceptions.
struct Limit {
  std::string kind;     // as in the table
  std::string rule;     // of violations
  std::string subject;  // "Class": of the sentence of a violation
  std::string unit;     // "functions"
  std::string advice;
  long most;      // without an entry in the table
  long most_sum;  // of the entries: lower it with them
};

/// Compares counts with their limits and with the table at `table` below `root`. A line of the table
/// is "<count> <kind> <path>[ <name>]", with a count above the limit. A count above its entry, an
/// entry above its count or within the limit, and a sum of entries that differs from `most_sum`, are
/// violations.
std::vector<Violation> compare(const std::filesystem::path& root, const std::string& table,
                               const std::vector<Limit>& limits, const Counts& counts);

}  // namespace walls
