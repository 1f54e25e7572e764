#pragma once
/// The conformance suite: every case runs on a freshly opened device of every adapter that is
/// there, once as the backend is and once through the checked decorator.
#include <wye/base/clock.hpp>
#include <wye/device/buffer.hpp>
#include <wye/device/device.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/backend.hpp"
#include "device/checked.hpp"
#include "device/lane.hpp"
#include "support/catch.hpp"
#include "support/device/test_kernels.hpp"
#include "support/skip.hpp"

namespace wye::test {

/// The default number of words of a buffer. It is no multiple of a workgroup.
inline constexpr std::size_t usual_length = 3000;

using namespace device;
using namespace std::chrono_literals;
using namespace literals;

/// The abilities that a case needs of a backend. suite.cpp lists the abilities that each backend
/// lacks.
enum class Ability {
  data,       ///< commands move bytes
  order,      ///< submissions wait for timelines
  functions,  ///< kernels are host functions, which can fail
  checks,     ///< misuse is found: the checked decorator does
};

using Word = std::uint32_t;

/// One device under test.
struct Subject {
  std::shared_ptr<Adapter> adapter;
  std::shared_ptr<DeviceBase> device;
  bool checked = false;
  std::string note = {};  ///< "stand-in"

  const AdapterInfo& info() const { return adapter->info(); }
  std::shared_ptr<DeviceBase> open_another() const;

  std::unique_ptr<LaneBase> lane_base() const;
  std::unique_ptr<Lane> lane() const { return std::make_unique<Lane>(lane_base()); }
  std::shared_ptr<BufferBase> buffer(Bytes bytes, std::shared_ptr<MemoryAccount> account = nullptr) const;
  /// A buffer that holds `words`.
  std::shared_ptr<BufferBase> buffer(std::span<const Word> words) const;
  std::shared_ptr<BufferBase> words(std::size_t count) const { return buffer(Bytes{count * sizeof(Word)}); }
  std::shared_ptr<ExecutableBase> kernel(std::string_view name, Twin twin = Twin::addresses) const {
    return test_executable(*device, name, twin);
  }
  std::shared_ptr<Timeline> timeline() const;

  /// When to give up: never through the checked decorator, a minute else, for backends may wait
  /// differently then.
  Instant patience() const { return checked ? Instant::max() : Clock::steady().now() + 60s; }
  /// Fails the case if the lane failed.
  void settle(Lane& lane) const;
  std::vector<Word> read(const std::shared_ptr<BufferBase>& buffer) const;
};

/// All of a buffer, or bytes [offset, offset + size) of it.
BufferRange range(const std::shared_ptr<BufferBase>& buffer);
BufferRange range(const std::shared_ptr<BufferBase>& buffer, std::uint64_t offset, std::uint64_t size);
/// A buffer of words as an argument.
Operand argument(const std::shared_ptr<BufferBase>& buffer, ElementType element = ElementType::uint32);
Operand argument(const std::shared_ptr<BufferBase>& buffer, std::uint64_t first, std::uint64_t count);
inline Operand argument(Operand operand) { return operand; }
/// A number as an argument.
template <class T>
requires std::is_arithmetic_v<T> Operand argument(T value) { return Operand::of_value(value); }
template <class... A>
Arguments arguments_of(const A&... values) {
  Arguments list;
  (list.push_back(argument(values)), ...);
  return list;
}

std::vector<Word> random_words(std::mt19937_64& random, std::size_t count);
template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}
template <class T>
std::span<std::byte> writable_bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

/// Runs `function` in `count` threads, with the number of each, and waits for them. An exception
/// fails the case.
void in_threads(unsigned count, const std::function<void(unsigned)>& function);

/// Fails the case, on any thread.
void expect(bool condition, std::string_view what);

/// A case with the abilities that it needs. Runs on every subject. A subject that lacks an ability
/// is counted as skipped.
class Case {
 public:
  Case(std::string_view name, std::initializer_list<Ability> needs, void (*run)(const Subject&));
  void run() const;
  const std::string_view name;
  const std::vector<Ability> needs;

 private:
  void (*const run_)(const Subject&);
};

}  // namespace wye::test

#define WYE_JOIN_(a, b) a##b
#define WYE_JOIN(a, b) WYE_JOIN_(a, b)
/// CONTRACT_CASE("a sentence", {Ability::data}) { ... subject ... }
#define CONTRACT_CASE(...) WYE_CONTRACT_CASE_NUMBERED(__COUNTER__, __VA_ARGS__)
#define WYE_CONTRACT_CASE_NUMBERED(number, ...) \
  WYE_CONTRACT_CASE(WYE_JOIN(run_, number), WYE_JOIN(case_, number), __VA_ARGS__)
#define WYE_CONTRACT_CASE(function, object, sentence, ...)               \
  static void function(const wye::test::Subject& subject);               \
  static const wye::test::Case object(sentence, __VA_ARGS__, &function); \
  TEST_CASE(sentence, "[contract]") { object.run(); }                    \
  static void function([[maybe_unused]] const wye::test::Subject& subject)
