#include "kernel/source.hpp"

namespace wye {
inline namespace v0 {

using kernel::SourceData;

AnySource::AnySource(Glsl source)
    : data_(std::make_shared<const SourceData>(SourceData{std::move(source)})) {}

AnySource::AnySource(SpirV source)
    : data_(std::make_shared<const SourceData>(SourceData{std::move(source)})) {}

AnySource::AnySource(std::shared_ptr<const device::HostCode> code, HostOptions options)
    : data_(std::make_shared<const SourceData>(SourceData{kernel::HostSource{std::move(code), options}})) {}

std::string_view AnySource::language() const noexcept {
  struct Name {
    std::string_view operator()(const Glsl&) const { return "Glsl"; }
    std::string_view operator()(const SpirV&) const { return "SpirV"; }
    std::string_view operator()(const kernel::HostSource&) const { return "host"; }
  };
  return std::visit(Name{}, data_->source);
}

}  // namespace v0
}  // namespace wye
