#include "backend/vulkan/vulkan_batch.hpp"

#include <cstring>

namespace wye::inline v0::vulkan {

void Batch::use(VulkanBuffer& buffer, const std::shared_ptr<device::Retained>& handle) {
  if (buffer.last_user.load(std::memory_order_relaxed) == serial) return;
  buffers.emplace_back(handle, &buffer);
  buffer.last_user.store(serial, std::memory_order_relaxed);
  buffer.uses.fetch_add(1, std::memory_order_relaxed);
}

Result<void> Batch::write() {
  for (const Upload& u : uploads) {
    std::memcpy(u.to->mapped() + u.offset, u.source, u.bytes);
    if (auto flushed = u.to->flush(u.offset, u.bytes); !flushed) return flushed;
  }
  uploads.clear();
  return {};
}

void Batch::register_downloads(const std::shared_ptr<VulkanTimeline>& timeline) {
  for (const Download& d : downloads)
    if (d.in_place) d.from->add_read({this, d.offset, d.bytes, d.target, timeline, value});
}

Result<void> Batch::deliver() {
  for (const Download& d : downloads) {
    if (!d.in_place)
      std::memcpy(d.target, d.from->host() + d.offset, d.bytes);
    else if (auto completed = d.from->complete_reads(this); !completed)
      return completed;
  }
  downloads.clear();
  return {};
}

void Batch::abandon() noexcept {
  for (const Download& d : downloads)
    if (d.in_place) d.from->discard_reads(this);
  downloads.clear();
}

void Batch::retire(Staging& from) noexcept {
  abandon();
  uploads.clear();
  // Release order: a thread that sees no use may write the memory that `deliver` has read.
  for (const auto& buffer : buffers) buffer->uses.fetch_sub(1, std::memory_order_release);
  buffers.clear();
  recording.reset();
  waits.clear();  // completed until now, because the driver may use the semaphores of foreign timelines
  signals.clear();
  from.release(staging);
  sets.reset();
}

}  // namespace wye::vulkan
