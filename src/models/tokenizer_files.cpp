#include "tokenizer_files.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "mapped_file.hpp"

namespace wye::inline v0::models {
namespace {

constexpr std::uint64_t token_limit = std::uint64_t{1} << 31;

/// Returns the beginning of a text of a file, for an error.
std::string excerpt(std::string_view text) {
  constexpr std::size_t limit = 60;
  if (text.size() <= limit) return std::string(text);
  std::size_t end = limit;
  while (end > 0 && (text[end] & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

/// A value of a file and the path of keys to it. Without a value, an error was found before.
struct Place {
  const Json* value = nullptr;
  std::string path;
};

/// Reads values and keeps the first error. After an error, values are empty.
class KeyReader {
 public:
  KeyReader(const Json& root, const std::string& file) : file_(file), root_{&root, ""} {
    if (!root.is_object()) fail(Errc::corrupt, "File '" + file_ + "' has no JSON object.");
  }

  const std::string& file() const { return file_; }
  const std::optional<Error>& error() const { return error_; }
  void fail(Errc code, std::string sentence) {
    if (!error_) error_ = Error(code, std::move(sentence));
  }

  Place root() const { return error_ ? Place{} : root_; }
  /// Returns the value of a key, which may be absent or null.
  Place find(const Place& object, std::string_view key) {
    if (!typed(object, object.value && object.value->is_object(), "an object")) return {};
    const auto found = object.value->find(key);
    if (found == object.value->end() || found->is_null()) return {};
    return {&*found, join(object.path, key)};
  }
  Place at(const Place& object, std::string_view key) {
    if (!typed(object, object.value && object.value->is_object(), "an object")) return {};
    const auto found = object.value->find(key);
    if (found != object.value->end()) return {&*found, join(object.path, key)};
    fail(Errc::corrupt, "File '" + file_ + "' has no key '" + join(object.path, key) + "'.");
    return {};
  }
  /// Returns the elements of an array of `count`; of any number without `count`.
  std::vector<Place> elements(const Place& array, std::optional<std::size_t> count = {}) {
    std::vector<Place> result;
    if (!typed(array, array.value && array.value->is_array(), "an array")) return result;
    if (count && array.value->size() != *count) {
      fail(Errc::corrupt, named(array.path) + " has " + std::to_string(array.value->size()) +
                              " elements; it must have " + std::to_string(*count) + ".");
      return result;
    }
    for (const Json& one : *array.value)
      result.push_back({&one, array.path + "[" + std::to_string(result.size()) + "]"});
    return result;
  }
  std::string text(const Place& place) {
    if (!typed(place, place.value && place.value->is_string(), "a string")) return {};
    return *place.value->get_ptr<const Json::string_t*>();
  }
  bool boolean(const Place& place) {
    return typed(place, place.value && place.value->is_boolean(), "true or false") &&
           *place.value->get_ptr<const Json::boolean_t*>();
  }
  std::uint32_t number(const Place& place) {
    if (!typed(place, place.value && place.value->is_number_integer(), "an integer")) return 0;
    const auto value = place.value->is_number_unsigned() ? place.value->get<std::uint64_t>() : token_limit;
    if (value < token_limit) return static_cast<std::uint32_t>(value);
    fail(Errc::corrupt, named(place.path) + " is " + place.value->dump() + "; it must be from 0 to " +
                            std::to_string(token_limit - 1) + ".");
    return 0;
  }
  /// Returns the string at `place`, which must be one of `supported`.
  std::string choice(const Place& place, std::initializer_list<std::string_view> supported) {
    const std::string found = place.value && place.value->is_null() ? place.value->type_name() : text(place);
    if (error_ || std::ranges::find(supported, found) != supported.end()) return found;
    std::string list;
    for (const auto one : supported) list += (list.empty() ? "'" : ", '") + std::string(one) + "'";
    fail(Errc::unsupported, named(place.path) + " is '" + excerpt(found) + "'; supported: " + list + ".");
    return {};
  }
  /// Requires that the object of `kind` (a normalizer, say) has a supported type.
  std::string type(const Place& object, std::initializer_list<std::string_view> supported) {
    if (object.value && object.value->is_null()) return choice(object, supported);
    return choice(at(object, "type"), supported);
  }

  std::string named(const std::string& path) const { return "Key '" + path + "' of file '" + file_ + "'"; }

 private:
  bool typed(const Place& place, bool right, std::string_view wanted) {
    if (error_ || !place.value) return false;
    if (!right)
      fail(Errc::corrupt, named(place.path) + " is of type " + place.value->type_name() + "; it must be " +
                              std::string(wanted) + ".");
    return right;
  }
  static std::string join(const std::string& path, std::string_view key) {
    return path.empty() ? excerpt(key) : path + "." + excerpt(key);
  }

  std::string file_;
  Place root_;
  std::optional<Error> error_;
};

/// Collects pieces, and checks that their tokens are the numbers 0 to n - 1.
class Pieces {
 public:
  void reserve(std::size_t count) { tokens_.reserve(count); }
  /// Returns false if the piece is there already.
  bool add(std::string piece, std::uint32_t token, bool listed) {
    const auto [at, added] = tokens_.emplace(std::move(piece), token);
    if (added) order_.push_back({&at->first, token, listed});
    return added;
  }
  const std::uint32_t* find(const std::string& piece) const {
    const auto found = tokens_.find(piece);
    return found == tokens_.end() ? nullptr : &found->second;
  }

  /// Returns false if the token is marked already.
  bool mark_added(std::uint32_t token) { return added_.insert(token).second; }

  void fill(WordPieceParts& parts, KeyReader& reader) const {
    const std::size_t count = order_.size();
    std::vector<const Piece*> by_token(count);
    for (const Piece& piece : order_) {
      if (piece.token >= count)
        return reader.fail(Errc::corrupt, "Token '" + excerpt(*piece.text) + "' of file '" + reader.file() +
                                              "' has the id " + std::to_string(piece.token) +
                                              "; the ids of " + std::to_string(count) +
                                              " tokens must be 0 to " + std::to_string(count - 1) + ".");
      const Piece*& place = by_token[piece.token];
      if (place)
        return reader.fail(Errc::corrupt, "Tokens '" + excerpt(*place->text) + "' and '" +
                                              excerpt(*piece.text) + "' of file '" + reader.file() +
                                              "' have the same id (" + std::to_string(piece.token) + ").");
      place = &piece;
    }
    for (const Piece* piece : by_token) {
      parts.pieces.push_back(*piece->text);
      parts.listed.push_back(piece->listed ? 1 : 0);
    }
  }

 private:
  struct Piece {
    const std::string* text;
    std::uint32_t token;
    bool listed;
  };
  std::unordered_map<std::string, std::uint32_t> tokens_;  // its keys do not move
  std::vector<Piece> order_;
  std::unordered_set<std::uint32_t> added_;
};

/// Returns the token of a special piece, which must be in the vocabulary.
std::uint32_t special(KeyReader& reader, const Pieces& pieces, const std::string& piece,
                      const std::string& key) {
  if (reader.error()) return 0;
  if (const std::uint32_t* const token = pieces.find(piece)) return *token;
  reader.fail(Errc::corrupt, "The vocabulary of file '" + reader.file() + "' lacks '" + excerpt(piece) +
                                 "', which is " + key + ".");
  return 0;
}

/// Spaces around an added token end words anyway: its `lstrip` and `rstrip` change no tokens.
void read_added(KeyReader& reader, const Place& place, std::uint32_t token, Pieces& pieces,
                WordPieceParts& parts) {
  const std::string content = reader.text(reader.at(place, "content"));
  if (reader.boolean(reader.at(place, "single_word")))
    reader.fail(Errc::unsupported, reader.named(place.path + ".single_word") + " is true; supported: false.");
  const bool normalized = reader.boolean(reader.at(place, "normalized"));
  if (reader.error()) return;
  const std::uint32_t* const known = pieces.find(content);
  if (known && *known != token)
    return reader.fail(Errc::corrupt, "Token '" + excerpt(content) + "' of file '" + reader.file() +
                                          "' has two ids (" + std::to_string(*known) + ", " +
                                          std::to_string(token) + ").");
  if (!pieces.mark_added(token))
    return reader.fail(Errc::corrupt, reader.named(place.path) + " has the id of another added token (" +
                                          std::to_string(token) + ").");
  if (!known) pieces.add(content, token, false);
  parts.added.push_back({token, normalized});
}

/// Reads a name and its token, which must be that of the vocabulary.
std::uint32_t checked(KeyReader& reader, const Pieces& pieces, const std::string& piece, const Place& id) {
  const std::uint32_t token = reader.number(id);
  const std::uint32_t known = special(reader, pieces, piece, "a token of 'post_processor'");
  if (token != known)
    reader.fail(Errc::corrupt, reader.named(id.path) + " is " + std::to_string(token) + "; the token of '" +
                                   excerpt(piece) + "' is " + std::to_string(known) + ".");
  return token;
}

void read_post_processor(KeyReader& reader, const Place& place, const Pieces& pieces, WordPieceParts& parts) {
  const std::string type = reader.type(place, {"TemplateProcessing", "BertProcessing"});
  if (type == "BertProcessing") {
    const auto read = [&](const char* key) {
      const auto pair = reader.elements(reader.at(place, key), 2);
      return pair.empty() ? 0 : checked(reader, pieces, reader.text(pair[0]), pair[1]);
    };
    parts.begin = read("cls");
    parts.end = read("sep");
    return;
  }
  const Place single = reader.at(place, "single");
  const auto steps = reader.elements(single);
  if (reader.error()) return;
  const auto is = [&](std::size_t i, const char* key) {
    const Place step = i < steps.size() ? reader.find(steps[i], key) : Place{};
    return step.value && reader.number(reader.at(step, "type_id")) == 0;
  };
  const bool known = steps.size() == 3 && is(0, "SpecialToken") && is(1, "Sequence") && is(2, "SpecialToken");
  if (!known)
    return reader.fail(Errc::unsupported, reader.named(single.path) +
                                              " has other steps; supported: SpecialToken, Sequence and "
                                              "SpecialToken, each with the type_id 0.");
  reader.choice(reader.at(reader.at(steps[1], "Sequence"), "id"), {"A"});
  const auto read = [&](const Place& step) {
    const std::string name = reader.text(reader.at(reader.at(step, "SpecialToken"), "id"));
    const Place about = reader.at(reader.at(place, "special_tokens"), name);
    const auto ids = reader.elements(reader.at(about, "ids"), 1);
    const auto names = reader.elements(reader.at(about, "tokens"), 1);
    return ids.empty() || names.empty() ? 0 : checked(reader, pieces, reader.text(names[0]), ids[0]);
  };
  parts.begin = read(steps[0]);
  parts.end = read(steps[2]);
}

}  // namespace

Result<WordPieceParts> parse_tokenizer(const Json& root, const std::string& file) {
  WordPieceParts parts;
  KeyReader reader(root, file);
  const Place model = reader.at(reader.root(), "model");
  reader.type(model, {"WordPiece"});
  const Place normalizer = reader.at(reader.root(), "normalizer");
  reader.type(normalizer, {"BertNormalizer"});
  reader.type(reader.at(reader.root(), "pre_tokenizer"), {"BertPreTokenizer"});
  if (reader.error()) return *reader.error();

  parts.normalizer.clean = reader.boolean(reader.at(normalizer, "clean_text"));
  parts.normalizer.ideographs = reader.boolean(reader.at(normalizer, "handle_chinese_chars"));
  parts.normalizer.lower = reader.boolean(reader.at(normalizer, "lowercase"));
  const Place accents = reader.find(normalizer, "strip_accents");
  parts.normalizer.accents = accents.value ? reader.boolean(accents) : parts.normalizer.lower;
  parts.prefix = reader.text(reader.at(model, "continuing_subword_prefix"));
  parts.longest_word = reader.number(reader.at(model, "max_input_chars_per_word"));

  const Place vocabulary = reader.at(model, "vocab");
  if (vocabulary.value && !vocabulary.value->is_object())
    reader.fail(Errc::corrupt, reader.named(vocabulary.path) + " is of type " +
                                   vocabulary.value->type_name() + "; it must be an object.");
  if (reader.error()) return *reader.error();
  Pieces pieces;
  pieces.reserve(vocabulary.value->size());
  for (const auto& [piece, token] : vocabulary.value->items()) {
    // The path is written for errors only.
    const bool number = token.is_number_unsigned() && token.get<std::uint64_t>() < token_limit;
    const auto id =
        number ? token.get<std::uint32_t>() : reader.number({&token, vocabulary.path + "." + excerpt(piece)});
    pieces.add(piece, id, true);
  }
  // Before tokens are added: only pieces of the vocabulary stand for unknown words.
  parts.unknown = special(reader, pieces, reader.text(reader.at(model, "unk_token")), "'model.unk_token'");
  if (const Place added = reader.find(reader.root(), "added_tokens"); added.value)
    for (const Place& one : reader.elements(added))
      read_added(reader, one, reader.number(reader.at(one, "id")), pieces, parts);
  read_post_processor(reader, reader.at(reader.root(), "post_processor"), pieces, parts);
  if (!reader.error()) pieces.fill(parts, reader);
  if (reader.error()) return *reader.error();
  return parts;
}

Result<WordPieceParts> parse_vocabulary(std::string_view text, const std::string& file, const Json& config,
                                        const std::string& config_file) {
  WordPieceParts parts;
  KeyReader reader(config, config_file);
  const auto flag = [&](const char* key, bool otherwise) {
    const Place place = reader.find(reader.root(), key);
    return place.value ? reader.boolean(place) : otherwise;
  };
  if (const Place type = reader.find(reader.root(), "tokenizer_class"); type.value)
    reader.choice(type, {"BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer",
                         "DistilBertTokenizerFast", "ElectraTokenizer", "ElectraTokenizerFast"});
  if (!flag("do_basic_tokenize", true))
    reader.fail(Errc::unsupported, reader.named("do_basic_tokenize") + " is false; supported: true.");
  if (const Place kept = reader.find(reader.root(), "never_split");
      kept.value && !reader.elements(kept).empty())
    reader.fail(Errc::unsupported, reader.named("never_split") + " has elements; supported: an empty list.");
  parts.normalizer.lower = flag("do_lower_case", true);
  parts.normalizer.accents = flag("strip_accents", parts.normalizer.lower);
  parts.normalizer.ideographs = flag("tokenize_chinese_chars", true);
  if (reader.error()) return *reader.error();

  std::string memory;
  if (valid_utf8(text, memory).data() != text.data())
    return Error(Errc::corrupt, "File '" + file + "' is no UTF-8.");
  Pieces pieces;
  std::uint32_t lines = 0;
  for (std::string_view rest = text; !rest.empty(); ++lines) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (lines == token_limit)
      return Error(Errc::corrupt, "File '" + file + "' has more than 2147483647 lines.");
    if (!pieces.add(std::string(line), lines, true))
      return Error(Errc::corrupt, "Line " + std::to_string(lines + 1) + " of file '" + file + "' ('" +
                                      excerpt(line) + "') is line " +
                                      std::to_string(*pieces.find(std::string(line)) + 1) + ", too.");
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }

  KeyReader vocabulary(config, file);
  const auto name = [&](const char* key, const char* otherwise) {
    const Place place = reader.find(reader.root(), key);
    if (!place.value) return std::string(otherwise);
    return reader.text(place.value->is_object() ? reader.at(place, "content") : place);
  };
  parts.unknown = special(vocabulary, pieces, name("unk_token", "[UNK]"), "the unknown token");
  if (const Place added = reader.find(reader.root(), "added_tokens_decoder"); added.value) {
    if (!added.value->is_object())
      reader.fail(Errc::corrupt, reader.named(added.path) + " is of type " + added.value->type_name() +
                                     "; it must be an object.");
    else
      for (const auto& [key, value] : added.value->items()) {
        const bool digits = !key.empty() && key.size() <= 10 &&
                            std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
        const std::uint64_t id = digits ? std::stoull(key) : token_limit;
        if (id >= token_limit)
          reader.fail(Errc::corrupt, "File '" + config_file + "' has the key '" + excerpt(key) +
                                         "' in 'added_tokens_decoder'; keys must be from 0 to " +
                                         std::to_string(token_limit - 1) + ".");
        else
          read_added(reader, {&value, added.path + "." + key}, static_cast<std::uint32_t>(id), pieces, parts);
      }
  }
  parts.begin = special(vocabulary, pieces, name("cls_token", "[CLS]"), "the token before a sequence");
  parts.end = special(vocabulary, pieces, name("sep_token", "[SEP]"), "the token after a sequence");
  for (const auto& piece :
       {name("unk_token", "[UNK]"), name("cls_token", "[CLS]"), name("sep_token", "[SEP]"),
        name("pad_token", "[PAD]"), name("mask_token", "[MASK]")}) {
    const std::uint32_t* const token = pieces.find(piece);
    if (token && pieces.mark_added(*token)) parts.added.push_back({*token, false});
  }
  if (!reader.error()) pieces.fill(parts, vocabulary);
  if (reader.error()) return *reader.error();
  if (vocabulary.error()) return *vocabulary.error();
  return parts;
}

Result<WordPieceParts> read_tokenizer(const std::string& folder) {
  const std::string json_file = folder + "/tokenizer.json", text_file = folder + "/vocab.txt",
                    config_file = folder + "/tokenizer_config.json",
                    added_file = folder + "/added_tokens.json";
  auto json = read_json(json_file);
  if (json) return parse_tokenizer(*json, json_file);
  if (json.error() != Errc::not_found) return std::move(json).error();
  auto text = MappedFile::open(text_file);
  if (!text && text.error() == Errc::not_found)
    return Error(Errc::not_found, "Folder '" + folder + "' has no 'tokenizer.json' and no 'vocab.txt'.");
  if (!text) return std::move(text).error();
  const auto added = MappedFile::open(added_file);
  if (added)
    return Error(Errc::unsupported,
                 "File '" + added_file +
                     "' adds tokens to 'vocab.txt'; supported: those of "
                     "'tokenizer.json', and 'added_tokens_decoder' of 'tokenizer_config.json'.");
  if (added.error() != Errc::not_found) return added.error();
  auto config = read_json(config_file);
  if (!config && config.error() != Errc::not_found) return std::move(config).error();
  const auto bytes = text->bytes();
  return parse_vocabulary({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, text_file,
                          config ? *config : Json::object(), config_file);
}

}  // namespace wye::models
