#pragma once
#include <wye/data/array.hpp>
#include <wye/models/encoder.hpp>
#include <wye/models/safetensors.hpp>
#include <wye/runtime/runtime.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace wye::inline v0::models {

/// How the rows of a sequence become one row.
enum class Pooling : std::uint8_t { mean, first };

/// The dimensions of a BERT encoder, and the limits of its sequences.
struct BertConfig {
  std::uint32_t vocabulary = 0;
  std::uint32_t positions = 0;
  std::uint32_t types = 0;
  std::uint32_t width = 0;
  std::uint32_t heads = 0;
  std::uint32_t layers = 0;
  std::uint32_t hidden = 0;
  float epsilon = 1e-12f;
  std::uint32_t max_tokens = 0;
  Pooling pooling = Pooling::mean;
};

/// Reads the configuration of a model's folder.
/// Errors: not_found, corrupt, unsupported (with the value, and the supported ones).
Result<BertConfig> read_bert_config(const std::string& folder);

/// The sequences of one run. The memory is borrowed until its jobs have settled.
struct BertBatch {
  std::vector<std::uint32_t> tokens;      ///< of all sequences, one after the other
  std::vector<std::uint32_t> positions;   ///< of each token in its sequence
  std::vector<std::uint32_t> offsets{0};  ///< the first token of each sequence, and the end
  std::uint32_t sequences() const noexcept { return static_cast<std::uint32_t>(offsets.size() - 1); }
};

/// The weights of a BERT encoder on the devices of a runtime.
/// Threads: thread-safe.
class Bert {
 public:
  /// Takes the weights from a file, which must outlive the object and its jobs.
  /// Errors: not_found (a tensor), invalid_argument (a tensor of another shape, with both; rows
  ///         that no block of q8_0 divides), unsupported (an element type); those of jobs.
  static Result<std::unique_ptr<Bert>> load(Runtime& runtime, const Safetensors& file,
                                            const BertConfig& config, Precision precision);
  virtual ~Bert() = default;
  /// Returns the jobs that set `rows` to a row of length 1 for each sequence, in their order.
  virtual std::vector<Job> jobs(Runtime& runtime, const BertBatch& batch, const Array<float>& rows) const = 0;
  virtual Bytes weight_bytes() const noexcept = 0;
};

}  // namespace wye::models
