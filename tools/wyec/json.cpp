#include <algorithm>
#include <nlohmann/json.hpp>

#include "write.hpp"

namespace wyec {
namespace {

using Json = nlohmann::ordered_json;

/// Prints a list of scalars on one line, and a list of lists with one element a line.
std::string text(const Json& value, const std::string& margin = "") {
  if (!value.is_structured()) return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  const bool nests = std::any_of(value.begin(), value.end(), [](const Json& e) { return e.is_structured(); });
  std::string list;
  for (const auto& [key, element] : value.items()) {
    list += list.empty() ? "" : nests ? "," : ", ";
    if (nests) list += "\n  " + margin;
    if (value.is_object()) list += Json(key).dump() + ": ";
    list += text(element, margin + "  ");
  }
  if (nests) list += "\n" + margin;
  return value.is_object() ? "{" + list + "}" : "[" + list + "]";
}

Json parameter(const wye::SourceParameter& p) {
  Json made{{"name", p.slot.name}, {"kind", wye::name(p.slot.kind)}};
  if (p.slot.kind == wye::SlotKind::buffer || p.slot.kind == wye::SlotKind::address)
    made["access"] = wye::name(p.slot.access);
  made["element"] = wye::name(p.slot.element);
  made["size"] = p.slot.size;
  if (p.binding)
    made["binding"] = *p.binding;
  else
    made["offset"] = p.offset;
  return made;
}

/// Splits "float64, int64".
Json features(wye::Features needs) {
  Json list = Json::array();
  const std::string all = needs.empty() ? std::string() : to_string(needs);
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find(", ", at), all.size());
    list.push_back(all.substr(at, end - at));
    at = end + 2;
  }
  return list;
}

}  // namespace

std::string json(const Command& command, const Part& part) {
  const wye::Compiled& kernel = *part.compiled;
  const std::string entry = kernel.spirv.words.empty() ? command.name : "main";
  const char* const languages[] = {"Glsl", "Slang", "SpirV", "CudaCpp", "Ptx", "Cubin"};
  Json parameters = Json::array();
  for (const wye::SourceParameter& p : kernel.parameters) parameters.push_back(parameter(p));
  const wye::Extent3& w = kernel.workgroup;
  const Json made{{"kernel", command.name},
                  {"language", languages[static_cast<std::size_t>(part.language)]},
                  {"entry", command.entry.empty() ? entry : command.entry},
                  {"parameters", parameters},
                  {"push_bytes", kernel.push_bytes},
                  {"workgroup", {w.x, w.y, w.z}},
                  {"features", features(kernel.needs)}};
  return text(made) + "\n";
}

}  // namespace wyec
