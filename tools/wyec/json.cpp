#include <cstdio>

#include "write.hpp"

namespace wyec {
namespace {

std::string json_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result.append({'\\', c});
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      result += escaped;
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string field(const char* name, std::string_view value) {
  return json_text(name) + ": " + json_text(value);
}
std::string field(const char* name, std::uint64_t value) {
  return json_text(name) + ": " + std::to_string(value);
}

std::string parameter(const wye::SourceParameter& p) {
  std::string line = "{" + field("name", p.slot.name) + ", " + field("kind", wye::name(p.slot.kind));
  const bool memory = p.slot.kind == wye::SlotKind::buffer || p.slot.kind == wye::SlotKind::address;
  if (memory) line += ", " + field("access", wye::name(p.slot.access));
  line += ", " + field("element", wye::name(p.slot.element)) + ", " + field("size", p.slot.size) + ", ";
  return line + (p.binding ? field("binding", *p.binding) : field("offset", p.offset)) + "}";
}

/// "float64, int64" as a list.
std::string features(wye::Features needs) {
  std::string list, all = needs.empty() ? std::string() : to_string(needs);
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find(", ", at), all.size());
    list += (list.empty() ? "" : ", ") + json_text(all.substr(at, end - at));
    at = end + 2;
  }
  return "[" + list + "]";
}

}  // namespace

std::string json(const Command& command, const Part& part) {
  const wye::Compiled& kernel = *part.compiled;
  const bool shader = kernel.spirv.words.size() != 0;
  std::string text = "{\n  " + field("kernel", command.name) + ",\n  ";
  const char* const languages[] = {"Glsl", "Slang", "SpirV", "CudaCpp", "Ptx", "Cubin"};
  text += field("language", languages[static_cast<std::size_t>(part.language)]) + ",\n  ";
  const std::string entry = shader ? "main" : command.name;
  text += field("entry", command.entry.empty() ? entry : command.entry) + ",\n  \"parameters\": [";
  const char* separator = "\n    ";
  for (const wye::SourceParameter& p : kernel.parameters) {
    text += separator + parameter(p);
    separator = ",\n    ";
  }
  const wye::Extent3& w = kernel.workgroup;
  text += kernel.parameters.empty() ? "],\n  " : "\n  ],\n  ";
  text += field("push_bytes", kernel.push_bytes) + ",\n  \"workgroup\": [" + std::to_string(w.x) + ", " +
          std::to_string(w.y) + ", " + std::to_string(w.z) + "],\n  \"features\": " + features(kernel.needs);
  return text + "\n}\n";
}

}  // namespace wyec
