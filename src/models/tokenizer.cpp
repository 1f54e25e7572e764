#include <wye/models/tokenizer.hpp>

#include <utility>

#include "tokenizer_files.hpp"
#include "wordpiece.hpp"

namespace wye::inline v0::models {

struct Tokenizer::State {
  WordPiece words;
};

Result<Tokenizer> Tokenizer::open(const std::string& folder) {
  auto parts = read_tokenizer(folder);
  if (!parts) return std::move(parts).error();
  return Tokenizer(std::make_shared<const State>(State{WordPiece(std::move(parts).value())}));
}

std::vector<std::uint32_t> Tokenizer::encode(std::string_view text) const {
  return state_->words.encode(text);
}

std::uint32_t Tokenizer::vocabulary() const noexcept {
  return static_cast<std::uint32_t>(state_->words.parts().pieces.size());
}
std::uint32_t Tokenizer::begin() const noexcept { return state_->words.parts().begin; }
std::uint32_t Tokenizer::end() const noexcept { return state_->words.parts().end; }
std::uint32_t Tokenizer::unknown() const noexcept { return state_->words.parts().unknown; }

std::string_view Tokenizer::piece(std::uint32_t token) const noexcept {
  const auto& pieces = state_->words.parts().pieces;
  return token < pieces.size() ? std::string_view(pieces[token]) : std::string_view();
}

}  // namespace wye::models
