#include "exceptions.hpp"

#include <optional>
#include <set>
#include <sstream>

#include "reader.hpp"

namespace walls {
namespace {

Counts entries_of(const std::filesystem::path& table) {
  Counts entries;
  std::istringstream lines(text_of(table));
  long count = 0;
  for (Place place; lines >> count >> place.kind >> place.path;) {
    std::getline(lines, place.name);
    place.name.erase(0, place.name.find_first_not_of(' '));
    entries[place] = count;
  }
  return entries;
}

// Returns the end of the sentence about a count that its entry, or without one the limit, does not
// allow.
std::string objection(const Limit& limit, long count, std::optional<long> entry, const std::string& table) {
  const std::string its_limit = "the limit of " + std::to_string(limit.most);
  if (!entry) return count > limit.most ? ", over " + its_limit + ": " + limit.advice + "." : "";
  const std::string its_entry = "its entry (" + std::to_string(*entry) + ") in " + table;
  if (count > *entry) return ", over " + its_entry + ": " + limit.advice + ".";
  if (count <= limit.most) return ", within " + its_limit + ": remove " + its_entry + ".";
  return count < *entry ? ", under " + its_entry + ": lower the entry." : "";
}

}  // namespace

std::vector<Violation> compare(const std::filesystem::path& root, const std::string& table,
                               const std::vector<Limit>& limits, const Counts& counts) {
  std::vector<Violation> found;
  const Counts entries = entries_of(root / table);
  Counts all = counts;
  for (const auto& [place, entry] : entries) all.try_emplace(place, 0);
  std::set<std::string> kinds;
  for (const auto& limit : limits) {
    kinds.insert(limit.kind);
    long sum = 0;
    for (const auto& [place, count] : all) {
      if (place.kind != limit.kind) continue;
      const auto entry = entries.find(place);
      const std::optional allowed = entry == entries.end() ? std::nullopt : std::optional(entry->second);
      sum += allowed.value_or(0);
      const std::string end = objection(limit, count, allowed, table);
      if (end.empty()) continue;
      const std::string subject = place.name.empty() ? "The file" : limit.subject + " '" + place.name + "'";
      const std::string sentence = subject + " has " + std::to_string(count) + " " + limit.unit + end;
      found.push_back({limit.rule, place.path, sentence});
    }
    const std::string sentence = "The entries of '" + limit.kind + "' have the sum " + std::to_string(sum);
    if (sum > limit.most_sum)
      found.push_back({"sum of " + limit.rule, table, sentence + ", over its limit: add no entry."});
    if (sum < limit.most_sum)
      found.push_back({"sum of " + limit.rule, table, sentence + ", under its limit: lower the limit."});
  }
  for (const auto& [place, entry] : entries)
    if (!kinds.contains(place.kind))
      found.push_back({limits.front().rule, table, "'" + place.kind + "' is no kind of an entry."});
  return found;
}

}  // namespace walls
