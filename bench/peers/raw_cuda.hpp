#pragma once
// The same work on the bare driver, as an expert would write it for this purpose only.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace wye_bench {

/// One stream of the first card, on its primary context. Calls return false where the driver
/// refuses.
class RawCuda {
 public:
  /// Null, and the reason, where there is no card.
  static std::unique_ptr<RawCuda> open(std::string& why);
  ~RawCuda();

  /// "sm_90".
  const std::string& architecture() const;
  /// Takes the kernel `name` out of a cubin.
  bool load(const std::byte* cubin, const char* name);
  /// Memory of the card, freed with this object; 0 where there is none.
  std::uint64_t memory(std::size_t bytes);
  /// Memory of the host that copies go to and from directly, freed with this object.
  std::byte* pinned(std::size_t bytes);
  /// Launches the kernel with these parameters, packed as it has them.
  bool launch(unsigned blocks, unsigned threads, void* parameters, std::size_t bytes);
  bool copy(std::uint64_t to, std::uint64_t from, std::size_t bytes);
  bool wait();
  /// Copies between memory of the card and any memory of the host, and waits.
  bool write(std::uint64_t to, const void* from, std::size_t bytes);
  bool read(void* to, std::uint64_t from, std::size_t bytes);

  /// Makes a graph of so many launches, one after the other.
  bool record(int times, unsigned blocks, unsigned threads, void* parameters, std::size_t bytes);
  bool launch_graph();

  // The calls that wye makes around a submission: it makes the context current, and then what was;
  // it puts an event behind, looks for that as long as wye does, and then sleeps; `wait` does as
  // the context does, which may be to spin.
  bool enter();
  bool leave();
  bool mark();
  bool wait_for_mark();
  /// Polls the event only, or sleeps for it only.
  bool poll_mark();
  bool sleep_for_mark();

  /// The memory of the card that is in use by all processes.
  std::uint64_t memory_in_use();

  /// c = a b, row after row, by cuBLAS in float32; false, and why, where there is no cuBLAS.
  bool open_cublas(std::string& why);
  bool multiply(std::uint64_t a, std::uint64_t b, std::uint64_t c, int n);
  /// The stream of all calls: a CUstream.
  void* stream() const;

 private:
  struct State;
  explicit RawCuda(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace wye_bench
