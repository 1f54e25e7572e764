#pragma once
/// Requests to the stand-in for CUDA's driver.
#include <wye/base/dynamic_library.hpp>

#include <cstdlib>
#include <optional>

namespace wye::test {

class StandIn {
 public:
  explicit StandIn(const char* driver) : library_(DynamicLibrary::open(driver).value()) {}

  /// Lets the `nth` call of a function from now on return `code`.
  void fail(const char* name, long nth, int code) const {
    library_.function<void (*)(const char*, long, int)>("wye_standin_fail")(name, nth, code);
  }
  /// Clears faults, counts, and the broken state of the device. Requires that no device is open.
  void reset() const { library_.function<void (*)()>("wye_standin_reset")(); }
  long calls(const char* name) const {
    return library_.function<long (*)(const char*)>("wye_standin_calls")(name);
  }

 private:
  DynamicLibrary library_;
};

/// The stand-in, if it is the driver of these tests (tests/with-stand-in-cuda.sh).
inline std::optional<StandIn> stand_in_driver() {
  const char* const driver = std::getenv("WYE_CUDA_DRIVER");
  if (!driver) return std::nullopt;
  return StandIn(driver);
}

}  // namespace wye::test
