#pragma once
// Vulkan Memory Allocator, where its header is installed, on the device of wye.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace wye {
inline namespace v0 {
class Device;
}
}  // namespace wye

namespace wye_bench {

class Vma {
 public:
  // Null where the header is not installed, or something failed.
  static std::unique_ptr<Vma> open(const wye::Device& device, std::size_t buffers);
  ~Vma();

  // Creates a buffer as wye does, with an address and mapped, in place `number`.
  bool create(std::uint32_t number, std::uint64_t bytes);
  void destroy(std::uint32_t number);
  // Of the driver's memory that it has allocated, in bytes.
  std::uint64_t held() const;

 private:
  struct State;
  explicit Vma(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The same with an allocation of the driver for each buffer.
class OwnAllocations {
 public:
  static std::unique_ptr<OwnAllocations> open(const wye::Device& device, std::size_t buffers);
  ~OwnAllocations();
  bool create(std::uint32_t number, std::uint64_t bytes);
  void destroy(std::uint32_t number);
  std::uint64_t held() const;

 private:
  struct State;
  explicit OwnAllocations(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace wye_bench
