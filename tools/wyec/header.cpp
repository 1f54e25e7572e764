#include <algorithm>
#include <cstdio>

#include "write.hpp"

namespace wyec {
namespace {

/// The C++ type of a number; empty if it has none.
std::string number_type(wye::ElementType type) {
  switch (type) {
    case wye::ElementType::float32: return "float";
    case wye::ElementType::float64: return "double";
    case wye::ElementType::opaque:
    case wye::ElementType::float16: return {};
    default: return "std::" + std::string(wye::name(type)) + "_t";
  }
}

/// "wye::ReadWrite<float>, float"; nothing if the application defines a type.
std::optional<std::string> parameter_types(const wye::Compiled& kernel) {
  std::string list;
  for (const wye::SourceParameter& p : kernel.parameters) {
    std::string type = number_type(p.slot.element);
    if (type.empty() || p.slot.kind == wye::SlotKind::address || p.slot.kind == wye::SlotKind::structure)
      return std::nullopt;
    if (p.slot.kind == wye::SlotKind::buffer) {
      const char* access = p.slot.access == wye::Access::read    ? "wye::Read<"
                           : p.slot.access == wye::Access::write ? "wye::Write<"
                                                                 : "wye::ReadWrite<";
      type = access + type + ">";
    }
    list += (list.empty() ? "" : ", ") + type;
  }
  return list;
}

/// A string of C++, of several lines one for each of its own.
std::string literal(std::string_view text) {
  const std::string break_line = "\n    \"";
  const bool several = std::min(text.find('\n'), text.size()) + 1 < text.size();
  std::string result = several ? break_line : "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      result += i + 1 < text.size() ? "\\n\"" + break_line : "\\n";
    } else if (c == '"' || c == '\\' || c == '?') {
      result.append({'\\', c});
    } else if (byte < 0x20 || byte >= 0x7f) {
      char octal[8];
      std::snprintf(octal, sizeof octal, "\\%03o", static_cast<unsigned>(byte));
      result += octal;
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string words(const std::vector<std::uint32_t>& list) {
  std::string text;
  char word[16];
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::snprintf(word, sizeof word, "0x%08x,", list[i]);
    text += i % 9 == 0 ? "\n    " : " ";
    text += word;
  }
  return text;
}

std::string spirv_source(const std::string& name, const wye::SpirV& source) {
  return "inline constexpr std::uint32_t " + name + "_words[] = {" + words(source.words) +
         "\n};\n\ninline wye::SpirV " + name +
         "_source() {\n  wye::SpirV source;\n  source.words.assign(std::begin(" + name +
         "_words), std::end(" + name + "_words));\n  source.entry = " + literal(source.entry) +
         ";\n  return source;\n}\n";
}

/// `name` is that of the function without its end.
std::string ptx_source(const std::string& name, const wye::Ptx& source) {
  return "inline wye::Ptx " + name +
         "_source() {\n  wye::Ptx source;\n  source.text = " + literal(source.text) +
         ";\n  source.entry = " + literal(source.entry) + ";\n  return source;\n}\n";
}

std::string cubin_source(const std::string& name, const wye::Cubin& source) {
  std::string list;
  char byte[8];
  for (std::size_t i = 0; i < source.bytes.size(); ++i) {
    std::snprintf(byte, sizeof byte, "0x%02x,", std::to_integer<unsigned>(source.bytes[i]));
    list += i % 16 == 0 ? "\n    " : " ";
    list += byte;
  }
  return "inline constexpr unsigned char " + name + "_bytes[] = {" + list + "\n};\n\ninline wye::Cubin " +
         name +
         "_source() {\n  wye::Cubin source;\n  const auto* bytes = reinterpret_cast<const std::byte*>(" +
         name + "_bytes);\n  source.bytes.assign(bytes, bytes + sizeof(" + name +
         "_bytes));\n  source.entry = " + literal(source.entry) + ";\n  return source;\n}\n";
}

template <class Source>
std::string text_source(const std::string& name, const char* type, const Source& source) {
  std::string text = std::string("inline wye::") + type + " " + name + "_source() {\n  wye::" + type +
                     " source;\n  source.text =" + literal(source.text) +
                     ";\n  source.file =" + literal(source.file) +
                     ";\n  source.entry =" + literal(source.entry) + ";\n";
  for (const wye::Macro& macro : source.macros)
    text += "  source.macros.push_back({" + literal(macro.name) + ", " + literal(macro.value) + "});\n";
  for (const wye::Include& include : source.includes)
    text += "  source.includes.push_back({" + literal(include.name) + ", " + literal(include.text) + "});\n";
  return text + "  return source;\n}\n";
}

/// The part of a function's name that tells the sources of one kernel apart: the shader has none.
std::string ending(const Part& part) {
  switch (part.language) {
    case Language::glsl:
    case Language::spirv: return {};
    case Language::slang:
      return part.target.empty() || part.target == "spirv" ? std::string() : "_" + part.target;
    case Language::cuda: return part.target.empty() ? "_cuda" : "_" + part.target;
    case Language::ptx: return "_ptx";
    case Language::cubin: return "_cubin";
  }
  return {};
}

std::string source_of(const std::string& name, const Part& part) {
  if (const auto* glsl = std::get_if<wye::Glsl>(&part.text)) return text_source(name, "Glsl", *glsl);
  if (const auto* slang = std::get_if<wye::Slang>(&part.text)) return text_source(name, "Slang", *slang);
  if (const auto* cuda = std::get_if<wye::CudaCpp>(&part.text)) return text_source(name, "CudaCpp", *cuda);
  if (part.compiled->ptx) return ptx_source(name, *part.compiled->ptx);
  if (part.compiled->cubin) return cubin_source(name, *part.compiled->cubin);
  return spirv_source(name, part.compiled->spirv);
}

/// The names of the parameters; none if one has none.
std::string names(const wye::Compiled& kernel) {
  std::string list;
  for (const wye::SourceParameter& p : kernel.parameters) {
    if (p.slot.name.empty()) return {};
    list += (list.empty() ? "" : ", ") + literal(p.slot.name);
  }
  return list;
}

/// A name from outside as a part of a comment.
std::string in_comment(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == '\\') c = '?';
  return text;
}

}  // namespace

std::string header(const Command& command, const std::vector<Part>& parts) {
  const std::string& name = command.name;
  // A shader declares the types of its parameters, CUDA code their sizes only.
  const Part* typed = nullptr;
  for (const Part& part : parts)
    if (part.compiled && !part.compiled->spirv.words.empty()) typed = &part;
  std::string files;
  for (const Input& input : command.inputs) files += (files.empty() ? "" : " and ") + file_name(input.path);
  std::string text = "// Written by wyec " + to_string(wye::library_version()) + " from " +
                     in_comment(files) +
                     ".\n#pragma once\n#include <wye/kernel/kernel.hpp>\n\n#include <cstddef>\n#include "
                     "<cstdint>\n#include <iterator>\n#include <utility>\n#include <vector>\n\nnamespace " +
                     command.space + " {\n\n";
  for (const Part& part : parts) text += source_of(name + ending(part), part) + "\n";
  const auto types = typed ? parameter_types(*typed->compiled) : std::nullopt;
  const std::string made = types ? name + "_kernel" : "wye::Kernel<P...>";
  if (const wye::Compiled* kernel = typed               ? &*typed->compiled
                                    : parts[0].compiled ? &*parts[0].compiled
                                                        : nullptr) {
    wye::ParamSchema schema;
    for (const wye::SourceParameter& p : kernel->parameters) schema.slots.push_back(p.slot);
    const wye::Extent3& w = kernel->workgroup;
    text += "/// Parameters " + in_comment(to_string(schema)) + ", workgroup " + std::to_string(w.x) + " x " +
            std::to_string(w.y) + " x " + std::to_string(w.z) + ".\n";
  }
  if (types) text += "using " + made + " = wye::Kernel<" + *types + ">;\n\n";
  text += "/// `others` are further sources of the kernel: a function of the host, for one.\n";
  text += types ? "inline " : "template <class... P>\n";
  text += "wye::Result<" + made + "> " + name + "(std::vector<" + (types ? "" : "typename ") + made +
          "::Source> others = {}) {\n";
  for (const Part& part : parts) text += "  others.push_back(" + name + ending(part) + "_source());\n";
  text += "  return " + made + "::make({.name = \"" + name +
          "\",\n      .sources = std::move(others),\n      .parameters = {" +
          (typed ? names(*typed->compiled) : std::string()) + "}});\n}\n\n}  // namespace " + command.space +
          "\n";
  return text;
}

}  // namespace wyec
