#pragma once
/// Runs jobs on wye and records where each ran and why.
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <wye/wye.hpp>

#include "report.hpp"

namespace document_network {

/// Opens a runtime that has `backend`: "auto", a backend ("vulkan") or a device ("vulkan:0").
/// Errors: not_found, if there is no such backend or device, with the existing ones; unavailable,
///         with the reason.
wye::Result<wye::Runtime> open_runtime(const std::string& backend);

/// Returns the largest difference between `values` and `reference`, of equal length, relative to
/// the reference or to a millionth of its largest value, whichever is larger.
double max_relative_error(const std::vector<double>& values, const std::vector<double>& reference);

/// Runs jobs one after the other.
/// Threads: one thread at a time.
class Runner {
 public:
  /// Runs on `backend`, as above. With `compare`, every job also runs on each other backend.
  Runner(wye::Runtime runtime, const std::string& backend, bool compare);

  /// Runs the job that `make(output)` returns, which writes `output`. Several jobs may form one
  /// step. `number` selects the number of an element that is compared.
  /// Errors: those of the job, here or on a compared backend.
  template <class T, class Make, class Number = std::identity>
  wye::Result<void> run(std::string_view step, std::span<T> output, Make make, Number number = {}) {
    const std::vector<T> before(output.begin(), compares() ? output.end() : output.begin());
    auto done = run_here(step, make(output));
    if (!done || !compares()) return done;

    std::vector<double> reference;
    for (const std::string& backend : backends_) {
      std::vector<T> values = before;
      done = run_again(step, backend, make(std::span(values)));
      if (!done) return done;
      std::vector<double> numbers;
      for (const T& value : values) numbers.push_back(static_cast<double>(number(value)));
      if (reference.empty())
        reference = std::move(numbers);
      else
        note_agreement(step, backend, max_relative_error(numbers, reference));
    }
    return done;
  }

  /// Runs a job whose results differ between backends, which are not compared.
  /// Errors: those of the job.
  wye::Result<void> run(std::string_view step, wye::Job job) { return run_here(step, std::move(job)); }

  /// Records a step that another library ran on the runtime.
  void note(std::string_view step, const wye::AdapterInfo& device, const std::string& reason, double seconds);
  /// Records the difference between a backend's results and the CPU's.
  void note_agreement(std::string_view step, const std::string& backend, double error);

  const wye::Runtime& runtime() const { return runtime_; }
  /// The device or backend of all jobs; empty: the scheduler chooses.
  const std::string& on() const { return on_; }
  /// The backends to compare, the reference first; empty: none.
  const std::vector<std::string>& backends() const { return backends_; }
  /// The steps so far, in order.
  const std::vector<Step>& steps() const { return steps_; }
  /// The devices that were considered for them.
  const std::vector<ConsideredDevice>& devices() const { return devices_; }
  /// The differences between the backends' results and the CPU's.
  const std::vector<Agreement>& agreements() const { return agreements_; }

 private:
  bool compares() const { return backends_.size() > 1; }
  wye::Result<void> run_here(std::string_view step, wye::Job job);
  wye::Result<void> run_again(std::string_view step, const std::string& backend, wye::Job job);
  void note_devices(std::string_view step, const std::vector<wye::Candidate>& candidates);

  wye::Runtime runtime_;
  std::string on_;
  std::vector<std::string> backends_;
  std::vector<Step> steps_;
  std::vector<ConsideredDevice> devices_;
  std::vector<Agreement> agreements_;
};

}  // namespace document_network
