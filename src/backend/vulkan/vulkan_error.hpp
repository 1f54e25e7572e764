#pragma once
/// What the driver's result codes mean here.
#include <wye/base/error.hpp>

#include <string>
#include <string_view>

#include "backend/vulkan/vulkan_dispatch.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

/// A result code's place among wye's, and its name.
struct ResultMeaning {
  Errc code;
  std::string_view name;
};
ResultMeaning meaning(VkResult result) noexcept;

/// The error of a call of the driver that failed.
Error failure(VkResult result, std::string_view api, std::string sentence, Place place = Place::here());

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
