#include "cache/artefact_store.hpp"

#include "base/text.hpp"
#include "cache/artefact_bytes.hpp"

namespace wye {
inline namespace v0 {
namespace cache {

ArtefactStore::Loaded ArtefactStore::load(const Digest& key) {
  auto blob = blobs_->get(key);
  if (!blob) {
    // Out of memory here means that the file is far larger than any of ours.
    if (blob.error() != Errc::out_of_memory) return say_once(blob.error()), Loaded{};
  } else {
    if (!*blob) return {};
    if (auto artefact = decode(**blob, key)) return {std::move(artefact), false};
  }
  if (auto removed = blobs_->remove(key); !removed) say_once(removed.error());
  return {std::nullopt, true};
}

void ArtefactStore::save(const device::Artefact& artefact) {
  if (auto put = blobs_->put(artefact.key, encode(artefact)); !put) say_once(put.error());
}

void ArtefactStore::say_once(const Error& error) {
  if (said_.exchange(true, std::memory_order_relaxed)) return;
  log_.write(
      LogLevel::warning, "cache",
      base::text("Going on without stored kernels where they cannot be reached: {}", error.sentence()));
}

}  // namespace cache
}  // namespace v0
}  // namespace wye
