#include "pictures.hpp"

#include <algorithm>

namespace document_network {

std::uint32_t speaker(const Groups& groups, std::size_t group, const std::vector<Document>& documents,
                      const std::vector<float>& rank) {
  const std::vector<std::uint32_t>& members = groups.members[group];
  return *std::max_element(members.begin(), members.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (documents[a].known != documents[b].known) return documents[b].known;
    return rank[a] < rank[b];
  });
}

std::string with_commas(std::size_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

}  // namespace document_network
