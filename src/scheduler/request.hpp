#pragma once
/// A job as it was accepted, and the decisions about devices for it.
#include <wye/base/clock.hpp>
#include <wye/base/error.hpp>
#include <wye/device/detail/inline_list.hpp>
#include <wye/scheduler/job.hpp>
#include <wye/scheduler/ticket.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "device/provider.hpp"
#include "flight/flight.hpp"

namespace wye::inline v0::scheduler {

struct Row;

/// The decision about one device, as data. `Explainer` makes sentences of it.
struct Decision {
  /// Objects that the sentence of a decision names.
  struct Detail {
    std::shared_ptr<const device::Program> program =
        nullptr;  ///< kernel_unsupported, kernel_blamed, foreign_buffer
    std::shared_ptr<const device::DeviceBase> owner = nullptr;  ///< foreign_buffer: the device of the buffer
    std::optional<Error> error = std::nullopt;                  ///< device_lost, attempt_failed
  };

  std::uint32_t device = 0;
  std::uint16_t argument = 0;  ///< foreign_buffer: its number, from 1
  Candidate::Verdict verdict = Candidate::Verdict::passed;
  RefusalCode code = RefusalCode::none;
  std::shared_ptr<const Detail> detail = nullptr;

  /// Returns the error of device_lost and attempt_failed. Null if the attempt ended with the error
  /// of the job.
  const Error* error() const noexcept { return detail && detail->error ? &*detail->error : nullptr; }

  /// Throws: std::bad_alloc.
  void set_error(const Error& error) { detail = std::make_shared<Detail>(Detail{.error = error}); }
  /// Returns whether the device may run the job and has not been tried.
  bool is_open() const noexcept { return verdict == Candidate::Verdict::passed && code == RefusalCode::none; }
  void refuse(RefusalCode why) noexcept {
    verdict = Candidate::Verdict::refused;
    code = why;
  }
};

/// A job as it was accepted.
/// Threads: it does not change. When it settles, the arguments of `job` are released.
struct Request {
  explicit Request(Job&& kept) noexcept : job(std::move(kept)) {}

  Job job;
  const Row* row = nullptr;  ///< of the preference table
  Duration time_limit{};
  Fallback fallback = Fallback::allow;
  bool borrows = false;  ///< an argument is host memory of the caller

  std::string_view name() const noexcept { return job.name(); }
  std::string_view tag() const noexcept { return std::string_view(labels_).substr(0, tag_size_); }
  /// Returns the device or backend that the job requests; empty: any.
  std::string_view on() const noexcept { return std::string_view(labels_).substr(tag_size_); }
  flight::Labels labels() const noexcept { return {name(), tag()}; }
  /// Throws: std::bad_alloc.
  void set_labels(std::string_view tag, std::string_view on) {
    labels_.reserve(tag.size() + on.size());
    labels_.append(tag).append(on);
    tag_size_ = static_cast<std::uint32_t>(tag.size());
  }
  /// Returns "Job 'scale'" or "Job 'scale' (tag 'frame 7')", for the beginning of a sentence.
  std::string subject() const { return labels().subject(); }
  /// Returns the same for the middle of a sentence.
  std::string object() const { return labels().object(); }

 private:
  std::uint32_t tag_size_ = 0;
  std::string labels_;  // the tag, then `on`
};

/// A job, and the decisions about the devices that may run it.
/// Threads: the thread that submits, runs or settles it; others read it once it has settled.
struct Candidates : Request {
  using Request::Request;

  detail::InlineList<Decision, 3> decisions;
  std::uint32_t next_candidate = 0;  ///< an index into `Row::devices`
  bool has_failed = false;           ///< on a device; a further device is a fallback

  /// Adds a decision. Throws: std::bad_alloc.
  Decision& add_decision(std::size_t about) {
    Decision& decision = decisions.emplace_back();
    decision.device = static_cast<std::uint32_t>(about);
    return decision;
  }
  bool has_decision(std::size_t about) const noexcept {
    for (const Decision& decision : decisions)
      if (decision.device == about) return true;
    return false;
  }
};

}  // namespace wye::scheduler
