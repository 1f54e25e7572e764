#include "corpus.hpp"

#include <utility>
#include <variant>

namespace document_network {

Corpus gather(Listing listing, Progress& progress) {
  Corpus corpus;
  corpus.skipped = std::move(listing.skipped);
  std::size_t done = 0;
  for (Document& document : listing.documents) {
    progress.show("reading", done++, listing.documents.size());
    const auto read = read_document(document.path);
    if (const auto* unusable = std::get_if<Unusable>(&read)) {
      ++corpus.skipped[unusable->reason];
      continue;
    }
    const Text& text = std::get<Text>(read);
    Bag bag = corpus.vocabulary.count(text.utf8);
    if (bag.empty()) {
      ++corpus.skipped["no words"];
      continue;
    }
    corpus.repaired += text.repaired;
    corpus.documents.push_back(std::move(document));
    corpus.bags.push_back(std::move(bag));
  }
  return corpus;
}

}  // namespace document_network
