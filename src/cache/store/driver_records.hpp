#pragma once
/// Records about builds of drivers, in the store of the cache.
#include "cache/store/artefact_store.hpp"
#include "device/driver_records.hpp"

namespace wye::inline v0::cache {

/// Keeps records with the reports of checked devices, so kernels do not displace them.
class StoredDriverRecords final : public device::DriverRecords {
 public:
  /// `store` outlives it.
  explicit StoredDriverRecords(ArtefactStore& store) : store_(store) {}
  Result<std::optional<std::vector<std::byte>>> load(const Digest& key) override;
  bool update(const Digest& key, const Subject& subject, const Update& update) override;

 private:
  ArtefactStore& store_;
};

}  // namespace wye::cache
