#include "cache/store/artefact_store.hpp"

#include <cstring>
#include <exception>
#include <new>
#include <type_traits>

#include "base/text.hpp"
#include "cache/store/artefact_bytes.hpp"
#include "cache/store/directory_store.hpp"

namespace wye::inline v0::cache {

namespace {

constexpr std::string_view without_store =
    "The cache continues without the stored kernels that it cannot reach";
constexpr std::string_view without_locks =
    "The cache continues without waiting for builds of other processes";

/// Calls the store, which may be the application's. Its exceptions become errors.
template <class F>
std::invoke_result_t<F&> call(F store) {
  try {
    return store();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& thrown) {
    return Error(Errc::io, base::text("The store of kernels threw: {}.", thrown.what()));
  } catch (...) {
    return Error(Errc::io, "The store of kernels threw.");
  }
}

/// Keys that share a place wait for each other, once in 2^61 pairs.
std::uint64_t place_of(const Digest& key) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, key.bytes.data(), sizeof(bits));
  return bits >> 2;
}

}  // namespace

ArtefactStore::Loaded ArtefactStore::load(const Digest& key) {
  auto blob = call([&] { return blobs_->get(key); });
  if (!blob) {
    // Out of memory here means that the file is far larger than any artefact.
    if (blob.error() != Errc::out_of_memory) return log_once(without_store, blob.error()), Loaded{};
  } else {
    if (!*blob) return {};
    if (auto artefact = decode(**blob, key)) return {std::move(artefact), false};
  }
  drop(key);
  return {std::nullopt, true};
}

std::optional<std::vector<std::byte>> ArtefactStore::get_from(BlobStore& store, const Digest& key) {
  auto blob = call([&] { return store.get(key); });
  if (blob) return *std::move(blob);
  log_once(without_store, blob.error());
  return std::nullopt;
}

bool ArtefactStore::put_to(BlobStore& store, const Digest& key, std::span<const std::byte> blob) {
  const auto put = call([&] { return store.put(key, blob); });
  if (!put) log_once(without_store, put.error());
  return put.has_value();
}

void ArtefactStore::drop_from(BlobStore& store, const Digest& key) {
  if (BuildMarks* const all = marks()) all->end(key);
  if (auto removed = call([&] { return store.remove(key); }); !removed)
    log_once(without_store, removed.error());
}

std::optional<std::vector<std::byte>> ArtefactStore::get(const Digest& key) { return get_from(*blobs_, key); }
bool ArtefactStore::put(const Digest& key, std::span<const std::byte> blob) {
  return put_to(*blobs_, key, blob);
}
void ArtefactStore::drop(const Digest& key) { drop_from(*blobs_, key); }

std::optional<std::vector<std::byte>> ArtefactStore::get_report(const Digest& key) {
  return get_from(*reports_, key);
}
bool ArtefactStore::put_report(const Digest& key, std::span<const std::byte> report) {
  return put_to(*reports_, key, report);
}
void ArtefactStore::drop_report(const Digest& key) { drop_from(*reports_, key); }

bool ArtefactStore::holds(const Digest& key) {
  const auto blob = call([&] { return blobs_->get(key); });
  return blob && *blob && decode(**blob, key);
}

Claim ArtefactStore::claim(const Digest& key, Instant until, const Clock& clock) {
  Claim claim;
  if (locks_.empty()) return claim;
  auto lock = base::FileLock::acquire(locks_, place_of(key), Instant{});
  if (!lock && lock.error().native() && lock.error().native()->name == "ENOENT" &&
      base::make_private_directory(locks_.substr(0, locks_.rfind('/'))))  // the directory was removed
    lock = base::FileLock::acquire(locks_, place_of(key), Instant{});
  if (lock && !*lock) {
    claim.waited = true;
    lock = base::FileLock::acquire(locks_, place_of(key), until, clock);
  }
  if (lock)
    claim.lock = std::move(*lock);
  else
    claim.failure = std::move(lock).error();
  return claim;
}

/// Returns the marks, beside the locks. Null if there are none.
BuildMarks* ArtefactStore::marks() {
  if (locks_.empty()) return nullptr;
  const std::lock_guard lock(mutex_);
  if (!marks_) {
    auto opened = BuildMarks::open(DirectoryStore::mark_file(locks_.substr(0, locks_.rfind('/'))));
    if (!opened) return nullptr;
    marks_ = std::move(*opened);
  }
  return &*marks_;
}

MarkedBuild ArtefactStore::mark(const Digest& what, const Claim& claim) {
  BuildMarks* const all = claim.lock ? marks() : nullptr;
  if (!all) return {};
  const auto deaths = all->settle(what);
  return deaths ? MarkedBuild(all, what, *deaths) : MarkedBuild();
}

Deaths ArtefactStore::deaths(const Digest& what) {
  BuildMarks* const all = marks();
  return all ? all->deaths(what).value_or(Deaths{}) : Deaths{};
}

void ArtefactStore::clear_deaths() {
  if (BuildMarks* const all = marks()) (void)all->clear().has_value();
}

void ArtefactStore::save(const device::Artefact& artefact, const Claim& claim) {
  // If nothing can be written there are no locks either. One message is enough.
  if (put(artefact.key, encode(artefact)) && claim.failure) log_once(without_locks, *claim.failure);
}

void ArtefactStore::log_once(std::string_view what, const Error& error) {
  if (said_.exchange(true, std::memory_order_relaxed)) return;
  log_.write(LogLevel::warning, "cache", base::text("{}: {}", what, error.sentence()));
}

}  // namespace wye::cache
