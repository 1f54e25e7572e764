#pragma once
/// A layer over the Vulkan driver. It counts calls, created and destroyed objects. A test can make
/// any call fail and replace any function.
#include <any>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "backend/vulkan/vulkan_dispatch.hpp"

namespace wye::test {

/// One at a time: there is one set of functions in a process.
/// Threads: thread-safe once its device is open.
class Driver {
 public:
  Driver();
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// For VulkanOptions.
  vulkan::Wrap wrap();

  /// Makes the `nth` call of `name` from now on (1: the next) answer `result` instead of being
  /// made. A lost device stays lost: its work ends, and every later call that can return the loss
  /// does.
  void fail(std::string_view name, unsigned nth, VkResult result);
  /// Returns whether the failing call was made.
  bool failed() const { return failed_; }
  /// Puts `function(real, arguments...)` in the place of a function.
  template <class Pfn, class F>
  void replace(std::string_view name, F function) {
    replace_with(name, Replacement<Pfn>::make(std::move(function)));
  }

  unsigned calls(std::string_view name) const;
  /// Returns the objects that were created and not destroyed, by kind, "Buffer". Empty without
  /// leaks.
  std::map<std::string, int> alive() const;
  std::string alive_text() const;

 private:
  template <class Pfn>
  struct Replacement;
  template <class R, class... A>
  struct Replacement<R(VKAPI_PTR*)(A...)> {
    using Function = std::function<R(R(VKAPI_PTR*)(A...), A...)>;
    template <class F>
    static std::any make(F f) {
      return Function(std::move(f));
    }
  };
  template <class Tag, class Pfn>
  friend struct Hook;
  void replace_with(std::string_view name, std::any function);
  /// Counts a call; the result to answer with instead of making it, or VK_SUCCESS.
  VkResult arrive(std::string_view name, bool can_fail, bool can_be_lost);
  void made(std::string_view name);
  void ended(std::string_view name);
  void stop_device();
  bool is_lost(VkQueue queue) const;

  std::shared_mutex submitting_;  // shared by submissions; locked before `mutex_`
  mutable std::mutex mutex_;
  std::map<std::string, unsigned, std::less<>> calls_;
  std::map<std::string, int, std::less<>> alive_;
  std::map<std::string, std::any, std::less<>> replaced_;
  std::string target_;
  unsigned countdown_ = 0;
  VkResult result_ = VK_SUCCESS;
  std::atomic<bool> failed_{false};
  bool lost_ = false;
  std::map<VkQueue, VkDevice> queues_;
  std::set<VkDevice> lost_devices_;
  VkDevice device_ = VK_NULL_HANDLE;
};

}  // namespace wye::test
