#pragma once
/// Programs for the tests of this room. They count their calls.
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "cache/cache.hpp"
#include "device/provider.hpp"
#include "support/memory_store.hpp"

namespace wye::test {

/// A program whose artefact is its name. `on_build` may wait, fail or throw.
class CountingProgram final : public device::Program {
 public:
  explicit CountingProgram(std::string name, bool storable = true)
      : name_(std::move(name)), key_(Hasher().add(name_).finish()), storable_(storable) {}

  std::string_view name() const noexcept override { return name_; }
  const ParamSchema& schema() const noexcept override { return schema_; }
  std::uint64_t id() const noexcept override { return id_; }
  const device::ProgramDigests& digests() const noexcept override { return digests_; }
  std::optional<Error> refusal(const device::DeviceBase&) const override { return std::nullopt; }
  Result<Digest> key(const device::DeviceBase&) const override { return key_; }
  bool storable(const device::DeviceBase&) const noexcept override { return storable_; }
  Result<device::Artefact> build(const device::DeviceBase&) const override {
    ++builds;
    if (on_build)
      if (auto done = on_build(); !done) return std::move(done).error();
    return artefact();
  }
  device::Artefact artefact() const {
    device::Artefact made;
    made.kernel = name_;
    made.language = "spirv";
    for (char c : name_) made.code.push_back(static_cast<std::byte>(c));
    made.key = key_;
    return made;
  }

  mutable std::atomic<int> builds{0};
  std::function<Result<void>()> on_build;

 private:
  static std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last{1ull << 32};  // different from those of the kernel room
    return ++last;
  }

  std::string name_;
  Digest key_;
  device::ProgramDigests digests_{key_, key_};
  bool storable_;
  std::uint64_t id_ = next_id();
  ParamSchema schema_;
};

inline std::shared_ptr<CountingProgram> program(std::string name, bool storable = true) {
  return std::make_shared<CountingProgram>(std::move(name), storable);
}

/// Returns all metrics of a cache, read at one moment.
inline CacheMetrics metrics(const cache::Cache& cache) {
  const auto still = cache.freeze();
  return cache.metrics_locked();
}

}  // namespace wye::test
