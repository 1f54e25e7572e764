#include "backend/vulkan/vulkan_error.hpp"

#include <utility>

namespace wye::inline v0::vulkan {
namespace {

struct Row {
  VkResult result;
  ResultMeaning meaning;
};

#define WYE_VULKAN_ROW(result, code) \
  Row {                              \
    result, { Errc::code, #result }  \
  }
constexpr Row rows[] = {
    WYE_VULKAN_ROW(VK_NOT_READY, unavailable),
    WYE_VULKAN_ROW(VK_TIMEOUT, timed_out),
    WYE_VULKAN_ROW(VK_INCOMPLETE, unavailable),
    WYE_VULKAN_ROW(VK_ERROR_OUT_OF_HOST_MEMORY, out_of_memory),
    WYE_VULKAN_ROW(VK_ERROR_OUT_OF_DEVICE_MEMORY, out_of_memory),
    WYE_VULKAN_ROW(VK_ERROR_OUT_OF_POOL_MEMORY, out_of_memory),
    WYE_VULKAN_ROW(VK_ERROR_FRAGMENTED_POOL, out_of_memory),
    WYE_VULKAN_ROW(VK_ERROR_FRAGMENTATION, out_of_memory),
    WYE_VULKAN_ROW(VK_ERROR_MEMORY_MAP_FAILED, out_of_memory),
    WYE_VULKAN_ROW(VK_ERROR_TOO_MANY_OBJECTS, out_of_memory),
    WYE_VULKAN_ROW(VK_ERROR_DEVICE_LOST, device_lost),
    WYE_VULKAN_ROW(VK_ERROR_INITIALIZATION_FAILED, unavailable),
    WYE_VULKAN_ROW(VK_ERROR_INCOMPATIBLE_DRIVER, unavailable),
    WYE_VULKAN_ROW(VK_ERROR_LAYER_NOT_PRESENT, unavailable),
    WYE_VULKAN_ROW(VK_ERROR_EXTENSION_NOT_PRESENT, unsupported),
    WYE_VULKAN_ROW(VK_ERROR_FEATURE_NOT_PRESENT, unsupported),
    WYE_VULKAN_ROW(VK_ERROR_FORMAT_NOT_SUPPORTED, unsupported),
    WYE_VULKAN_ROW(VK_ERROR_NOT_PERMITTED_EXT, unavailable),
    WYE_VULKAN_ROW(VK_ERROR_INVALID_SHADER_NV, compile_failed),
    WYE_VULKAN_ROW(VK_ERROR_INVALID_EXTERNAL_HANDLE, invalid_argument),
    WYE_VULKAN_ROW(VK_ERROR_VALIDATION_FAILED_EXT, internal),
    WYE_VULKAN_ROW(VK_PIPELINE_COMPILE_REQUIRED, unavailable),
    WYE_VULKAN_ROW(VK_ERROR_UNKNOWN, unavailable),
};
#undef WYE_VULKAN_ROW

}  // namespace

ResultMeaning meaning(VkResult result) noexcept {
  for (const Row& row : rows)
    if (row.result == result) return row.meaning;
  return {Errc::unavailable, "VkResult"};
}

Error failure(VkResult result, std::string_view api, std::string sentence, Place place) {
  const ResultMeaning m = meaning(result);
  return Error(m.code, std::move(sentence), NativeError{std::string(api), result, std::string(m.name)},
               place);
}

}  // namespace wye::vulkan
