#pragma once
/// Translates the driver's result codes to errors.
#include <wye/base/error.hpp>

#include <string>
#include <string_view>

#include "backend/vulkan/vulkan_dispatch.hpp"

namespace wye::inline v0::vulkan {

/// The error code of a result code, and its name.
struct ResultMeaning {
  Errc code;
  std::string_view name;
};
ResultMeaning meaning(VkResult result) noexcept;

/// Makes the error of a failed driver call.
Error failure(VkResult result, std::string_view api, std::string sentence, Place place = Place::here());

}  // namespace wye::vulkan
