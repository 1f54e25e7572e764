// A manifest that an application ships: reading it returns what was written, or it is rejected.
#include <cstdlib>
#include <string>

#include "base/digest.hpp"
#include "cache/manifest_text.hpp"
#include "fuzz/edits.hpp"

namespace {

using namespace wye;

Manifest sample() {
  Manifest manifest;
  manifest.entries.push_back(
      {Hasher().add("a").finish(), "scale", "vulkan", "NVIDIA H200", 12, Duration(3'000'000)});
  manifest.entries.push_back({Hasher().add("b").finish(), "a name\n100%", "", "x", 0, Duration::max()});
  return manifest;
}

/// Corrects the checksum of `text`, so that the reader of its lines is reached.
std::string signed_text(std::string text) {
  const std::size_t last = text.rfind("end ");
  if (last == text.npos || (last > 0 && text[last - 1] != '\n')) return text;
  text.resize(last);
  std::size_t lines = 0;
  for (const char c : text) lines += c == '\n';
  return text + "end " + std::to_string(lines > 0 ? lines - 1 : 0) + " " +
         digest(std::as_bytes(std::span(text))).hex() + "\n";
}

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string valid = cache::to_text(sample());
  static const std::vector<char> letters(valid.begin(), valid.end());
  test::Input input(data, size);
  const bool signs = input.take<std::uint8_t>() % 4 != 0;
  const std::vector<char> changed = test::edited(letters, input);
  std::string text(changed.begin(), changed.end());
  if (signs) text = signed_text(std::move(text));
  const auto read = cache::from_text(text, "m");
  if (text == valid) expect(read.has_value());
  if (!signs && text != valid) expect(!read);
  // A manifest has one form: writing it again gives the same bytes.
  if (read) expect(cache::to_text(*read) == text);
  if (!read) expect(read.error() == Errc::corrupt || read.error() == Errc::unsupported);
  return 0;
}
