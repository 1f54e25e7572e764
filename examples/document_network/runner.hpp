#pragma once
/// Jobs given to wye, and an account of where each ran and why.
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <wye/wye.hpp>

#include "report.hpp"

namespace document_network {

/// Opens a runtime that has `backend`, which is "auto", a backend ("vulkan") or a device ("vulkan:0").
/// Errors: not_found: no such backend or device, with those there are; unavailable: not on this machine, with the
///         reason.
wye::Result<wye::Runtime> open_runtime(const std::string& backend);

/// How far `values` are from `reference`, which is as long: the largest difference in relation to the reference, or to
/// a millionth of its largest value where that is more.
double max_relative_error(std::span<const float> values, std::span<const float> reference);

/// Runs jobs, one after the other.
/// Threads: one thread at a time.
class Runner {
 public:
  /// Runs on `backend`, as above. With `compare`, every job also runs on each backend there is.
  Runner(wye::Runtime runtime, const std::string& backend, bool compare);

  /// Makes the job that fills `output`, from what is in it at first and other things, and runs it. Several jobs may
  /// make up one step.
  /// Errors: how the job failed, here or on the backends it is compared on.
  wye::Result<void> run(std::string_view step, std::span<float> output,
                        const std::function<wye::Job(std::span<float> output)>& make);

  /// What ran so far, in order.
  const std::vector<Step>& steps() const { return steps_; }
  /// What each backend's answers are worth, in order; the CPU's are the measure.
  const std::vector<Agreement>& agreements() const { return agreements_; }

 private:
  wye::Result<wye::Outcome> run_on(std::string_view backend, wye::Job job);
  void note(std::string_view step, const wye::Outcome& outcome);
  void note(std::string_view step, const std::string& backend, double error);

  wye::Runtime runtime_;
  std::string on_;                    ///< empty: wherever the scheduler sees fit
  std::vector<std::string> compare_;  ///< backends other than the CPU
  bool has_measure_ = false;
  std::vector<Step> steps_;
  std::vector<Agreement> agreements_;
};

}  // namespace document_network
