#pragma once
/// The processor, the memory and the identity of the machine.
#include <wye/base/bytes.hpp>
#include <wye/base/clock.hpp>

#include <array>
#include <cstdint>
#include <string>

namespace wye::inline v0::base {

struct HostInfo {
  std::string processor;  ///< "AMD EPYC"; "CPU" if unknown
  Bytes memory;           ///< physical memory, or the limit of the process's control group; 0 if unknown
  std::array<std::uint8_t, 16>
      machine{};  ///< the same on every run on this machine; zero if it has no identity
};

/// Returns the description of this machine.
/// Threads: thread-safe.
/// Cost:    reads a few small files.
HostInfo host_info();

// In tests `root` is a folder with the files of the system. A number that is missing there is
// unknown, and no limit.

/// Returns `HostInfo::memory`.
Bytes host_memory(const std::string& root = {});

/// Returns the system's estimate of the memory that can be allocated now without swapping, and
/// within the limits of the process's control groups; all ones if both are unknown.
Bytes available_memory(const std::string& root = {});

/// Asks the system for huge pages if the memory has at least some MiB. Its first access then takes
/// a fraction of the time.
void prefer_huge_pages(void* memory, Bytes size) noexcept;

/// Lets the system take the pages of memory that stays allocated when it needs some. Their contents
/// are undefined until the next write. A system that cannot keeps them.
void offer_pages(void* memory, Bytes size) noexcept;

/// Returns the part of the last 10 s in which some process of the machine waited for memory; 0 if
/// the system does not tell.
double memory_stall();

/// The use of the machine by this process.
struct ProcessUse {
  Bytes resident;             ///< memory, now; 0 if unknown
  Duration processor_time{};  ///< of all threads, in the process and in the system
};

/// Cost: two system calls, and a small file.
ProcessUse process_use();

/// Returns the number of processors that this process may use, at least 1: by its affinity and, up to
/// the next whole one, by the quotas of its control groups.
unsigned usable_processors(const std::string& root = {}) noexcept;

}  // namespace wye::base
